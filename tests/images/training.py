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
