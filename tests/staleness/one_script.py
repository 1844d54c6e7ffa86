"""A script of one language in a folder of its own, and whether the image of it is used."""

from common import support
from common.waiting import settle


class Program:
    """A folder with a script of one language, what it loads, and the image of it."""

    def __init__(self, folder, runtime, script, **variables):
        self.folder, self.script, self.runtime = folder, folder / script, runtime
        self.image = folder / "out" / "app.img"
        self.image.parent.mkdir()
        self.env = support.environment(PYTHONDONTWRITEBYTECODE="1", **variables)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def freeze(self, *options):
        settle()
        return support.freeze(self.image, [self.runtime, self.script], *options, env=self.env, cwd=self.folder)

    def frozen(self, *options):
        result = self.freeze(*options)
        assert result.status == 0, result
        assert self.is_fresh()
        return self

    def run(self, **options):
        return support.run([self.image], env=self.env, cwd=self.folder, **options)

    def why(self):
        result = support.run([support.SNAPBOOT, "inspect", "--why", self.image], env=self.env, cwd=self.folder, log=False)
        return [line.strip() for line in result.out.splitlines()[1:]]

    def is_fresh(self):
        """Whether the image is used, by the launcher and by `inspect --why`; run twice, since the first may remember something."""
        fresh = [not self.run().fell_back for _ in range(2)]
        assert fresh == [not self.why()] * 2, (fresh, self.why())
        return fresh[0]

    def is_stale_for(self, path):
        """Whether the image falls back and both say that it is because of this path."""
        result = self.run()
        return result.fell_back and str(path) in result.err and any(line.removeprefix("./").startswith(str(path)) for line in self.why())
