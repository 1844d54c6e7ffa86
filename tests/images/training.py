"""What the tests of training runs do with a program, whatever its language."""

from common import support


class Program:
    """A script in a folder of its own, and its image.

    interpreter: its path. name: of the script.
    """

    def __init__(self, folder, interpreter, name, source):
        self.folder = folder
        self.interpreter = interpreter
        self.script = folder / name
        self.image = folder / "app.img"
        self.script.write_text(source)

    def freeze(self, *runs, **variables):
        """Freezes it with these training runs. Returns what was said."""
        options = [option for run in runs for option in ("--train", run)]
        env = support.environment(**variables)
        result = support.freeze(self.image, [self.interpreter, self.script.name], *options, env=env, cwd=self.folder)
        assert result.status == 0, result
        return result

    def start(self, arguments, variables, folder, script):
        """Starts image and command in a folder from which the script has that name. Returns what comes of both."""
        env = support.environment(**variables)
        thawed = support.run([self.image, *arguments], env=env, cwd=folder)
        ordinary = support.run([self.interpreter, script, *arguments], env=env, cwd=folder)
        assert not thawed.fell_back, thawed
        assert (thawed.status, thawed.out) == (ordinary.status, ordinary.out), (thawed, ordinary)
        return thawed, ordinary


PAGE = 4096
FEW = 40  # faults of a start that has all its pages


def pages_come_with_the_start(program, *options):
    """Whoever starts as a training run did has the pages that it wrote at once, and nobody else has them in memory.

    program: writes to all objects of a module unless its first argument is `idle`. Prints on stderr how many page faults that
    took, and before, how much memory of its own it had in kB.
    """
    for run in ("use", "idle", "--use"):
        options += ("--train", run)
    env = support.environment()
    result = support.freeze(program.image, [program.interpreter, program.script.name], *options, env=env, cwd=program.folder)
    assert result.status == 0, result
    seen = {}
    for argument in ("use", "--use", "--other", "idle", "other"):
        thawed, _ = program.start([argument], {}, program.folder, program.script.name)
        seen[argument] = [int(number) for number in thawed.err.split()]
    faults = {argument: numbers[0] for argument, numbers in seen.items()}
    memory = {argument: numbers[1] for argument, numbers in seen.items()}
    assert faults["other"] > 4 * FEW, "the program writes to too few pages to tell anything"
    assert all(faults[argument] <= FEW for argument in ("use", "--use", "--other")), faults
    for argument in ("idle", "other"):
        spared = (memory["use"] - memory[argument]) * 1024 // PAGE
        assert spared > (faults["other"] - FEW) // 2, seen


def a_tool_that_reads_where_it_is_started(program, folder, left, name):
    """A tool whose part `left` reads `settings` of the current directory while it is loaded starts from one image in any directory,
    and an image of a program of that directory depends on the file.

    folder: a new one, for the directories in which it is started. name: of the part, for the program.
    """
    directories = [folder / "one", folder / "two", folder / "none"]
    for directory in directories:
        directory.mkdir(parents=True)
    for directory in directories[:2]:
        (directory / "settings").write_text(directory.name + "\n")
    env = support.environment()
    command = [program.interpreter, program.script]
    options = [option for run in (f"{name} harmless", "harmless") for option in ("--train", run)]
    result = support.freeze(program.image, command, *options, env=env, cwd=directories[0])
    assert result.status == 0, result
    assert f"  {left} reads settings of the current directory" in result.out, result
    for directory in directories:
        thawed = support.run([program.image, name, "harmless"], env=env, cwd=directory)
        ordinary = support.run([*command, name, "harmless"], env=env, cwd=directory)
        assert not thawed.fell_back, thawed
        assert (thawed.status, thawed.out) == (ordinary.status, ordinary.out), (thawed, ordinary)
        assert (directory.name in thawed.out) == (directory.name != "none"), thawed
    # In the folder of the program it may stay.
    (program.folder / "settings").write_text("own\n")
    assert "settings of the current directory" not in program.freeze(f"{name} harmless").out
    program.start([name], {}, program.folder, program.script.name)
    (program.folder / "settings").write_text("edited\n")
    edited = support.run([program.image, name], env=env, cwd=program.folder)
    assert edited.fell_back
    assert "edited" in edited.out
