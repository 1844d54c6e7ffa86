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
