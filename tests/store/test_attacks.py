"""Another user of the machine, who plants files, links, pipes and folders where a victim's commands look, and swaps them under its hands.

Whatever he does, no command of the victim runs his code, waits for him, or leaves anything in his folders. The victim is root, and
an ordinary user. A sixteenth of what the table holds is tried with the latter, all of it where SNAPBOOT_STEPS asks for the long walks.
"""

import os
import shutil

import pytest
from common import support

from store.attacks import ATTACKER, NAME, SECRET, Scene, Swapping, built, clean, give, plant

pytestmark = support.needs_root
ORDINARY = 12345
RACES = 25


# What a builder is at work on may be gone before it is copied.
BEING_MADE = shutil.ignore_patterns("*.freezing-*")


@pytest.fixture(scope="module", params=[0, ORDINARY], ids=["root", "ordinary user"])
def scene(request, open_directory):
    top = open_directory / f"attacks-{request.param}"
    top.mkdir()
    scene = Scene(top, request.param)
    reached = scene.start(support.SNAPBOOT, "--version")
    if reached.status:
        pytest.skip(f"an ordinary user cannot reach the command: {reached}")
    return scene


def bare_words():
    """A word without a slash, in a folder where the attacker has put something of that name."""
    kinds = ["code", "pipe", "link to code", "link to a pipe", "folder", "link to itself"]
    commands = [
        ["run", NAME], ["run", "--", NAME], ["run", "--no-freeze", "--", NAME], ["run", "--lazy", "--", NAME], ["explain", "--", NAME],
        ["explain", "--start", "thawed", "--", NAME], ["time", "--", NAME], ["freeze", "--", NAME], ["freeze", NAME],
        ["install", NAME], ["install", "--in-place", NAME], ["archive", "build", "--", NAME],
    ]
    for kind in kinds:
        for command in commands:
            for place in ("evil", "shared"):
                yield f"{' '.join(command)} beside a {kind} in {place}", kind, NAME, command, place


def named_files():
    """A file of the attacker's that the victim has named, where an image or a report should be."""
    reading = [["inspect", "X"], ["inspect", "--why", "X"], ["inspect", "--strings", "x", "X"], ["verify", "X"], ["refreeze", "X"]]
    starting = [["run", "./X"], ["run", "--no-freeze", "--", "./X"], ["explain", "--", "./X"], ["explain", "X.json"]]
    for kind in ("pipe", "code", "link to a pipe", "folder"):
        for command in reading + starting:
            name = "X.json" if "X.json" in command else "X"
            yield f"{' '.join(command)} that is a {kind}", kind, name, command, "shared"


def left_over():
    """Names that lie where a start looks at them."""
    for kind in ("pipe", "code", "folder", "link to code", "link to a pipe"):
        for name in (".python-version", ".ruby-version", "Gemfile", "pyvenv.cfg", "config.ru"):
            yield f"run beside {name}, a {kind}", kind, name, ["run", "--no-freeze", "--", "{python}", "-c", "print('right')"], "shared"


PLANTED = [*bare_words(), *named_files(), *left_over()]


def sample(scene, table):
    """All of it for root; for others a sixteenth, since the same code runs."""
    return table if scene.user == 0 or "SNAPBOOT_STEPS" in os.environ else table[::16]


@pytest.mark.fault("another user plants files, links, pipes and folders where a command looks", "none of it is run, and nothing waits")
def test_what_is_planted_is_neither_run_nor_waited_for(scene):
    for what, kind, name, command, place in sample(scene, PLANTED):
        clean(scene)
        folder = getattr(scene, place)
        plant(scene, kind, folder / name)
        # An ordinary user cannot write to a folder of the attacker's, nor the attacker to one of his.
        result = scene.snapboot(*(word.format(python=scene.python) for word in command), cwd=folder)
        assert "wrong" not in result.out and not scene.marked(), (what, result)
        assert "print('right')" not in command or result.out == "right\n", (what, result)


@pytest.mark.fault("another user plants pipes, links and folders with the names that a freeze uses beside its image", "the freeze goes on")
def test_a_freeze_waits_for_nothing_beside_its_image(scene):
    """In a folder where everybody may write, as in /tmp. What is not its own it leaves alone."""
    names = [".app.img.freezing-1", ".app.img.freezing-4194305", "app.img.thaws", "app.img.seen"]
    for kind in ("pipe", "folder", "link to a pipe"):
        clean(scene)
        for name in names:
            (scene.evil / "hidden").unlink(missing_ok=True)
            plant(scene, kind, scene.shared / name)
        words = ["freeze", "-q", "-o", "app.img", "--", scene.python, "-I", "-S", str(scene.tool)]
        result = scene.snapboot(*words, cwd=scene.shared)
        assert result.status == 0 and sorted(os.listdir(scene.shared)) == sorted([*names, "app.img"]), (kind, result)
        assert scene.start(scene.shared / "app.img").out == "right []\n"


SETTINGS = "command = '{python} {evil}/mark.py'\n"


def settings_files():
    """Where the attacker puts a project's file, from where the victim freezes without a command, and what it is."""
    for name in ("snapboot.toml", "pyproject.toml"):
        for place, cwd in (("evil", "evil/victims"), ("shared", "shared"), ("shared", "shared/victims"), ("evil", "evil/victims/deep")):
            for kind in ("file", "pipe", "link to the victim's", "link to a pipe", "folder", "writable"):
                yield name, place, cwd, kind


@pytest.mark.fault("another user plants the settings of a project above a directory, or in a shared one", "they are refused")
def test_settings_of_others_are_not_obeyed(scene):
    for name, place, cwd, kind in sample(scene, list(settings_files())):
        clean(scene)
        mark = scene.theirs(scene.evil / "mark.py", f"open('{scene.marks}/ran', 'w')\n")
        text = SETTINGS.format(python=scene.python, evil=scene.evil)
        text = text if name == "snapboot.toml" else "[tool.snapboot]\n" + text
        directory = scene.top / cwd
        directory.mkdir(parents=True, exist_ok=True)
        if directory.name != "shared":
            for path in (scene.top / place / "victims", directory):
                if path.exists():
                    os.chown(path, scene.user, scene.user)
        file = scene.top / place / name
        if kind == "file":
            scene.theirs(file, text)
        elif kind == "writable":  # of root, and anybody has written to it
            scene.own(file, text, owner=0, mode=0o666)
        elif kind == "link to the victim's":
            file.symlink_to(scene.own(scene.home / name, text))
            os.lchown(file, ATTACKER, ATTACKER)
        else:
            plant(scene, kind, file)
        result = scene.snapboot("freeze", "-q", "-o", str(scene.home / "out.img"), cwd=directory)
        what = (name, place, cwd, kind, mark, result)
        assert result.status != 0 and not (scene.home / "out.img").exists() and not scene.marked(), what
        (scene.home / name).unlink(missing_ok=True)


def places(scene):
    """Environments over which a store, archives and counts lie in the attacker's folders, as with `sudo -E`."""
    evil, victims = str(scene.evil), str(scene.evil / "victims")
    linked = scene.shared / "link"
    for there in (evil, victims, str(linked), str(scene.evil / "new")):
        yield {"HOME": there}
        yield {"SNAPBOOT_STORE": f"{there}/store"}
        yield {"XDG_CACHE_HOME": there, "XDG_DATA_HOME": there}
        yield {"SNAPBOOT_STATE": there}
        yield {"XDG_STATE_HOME": there}
        yield {"SNAPBOOT_ARCHIVE": f"{there}/x.archive"}
        yield {"HOME": there, "XDG_CACHE_HOME": None, "SNAPBOOT_ARCHIVE": None}
    yield {"HOME": "/nonexistent"}
    yield {"HOME": "relative"}
    yield {"HOME": ""}


@pytest.mark.fault("the environment is another user's, as with sudo -E", "the start is right, and nothing is left in the other's home")
def test_nothing_is_left_in_the_home_of_others(scene):
    clean(scene)
    image = scene.home / "kept.img"
    frozen = scene.snapboot("freeze", "-q", "-o", str(image), "--", scene.python, str(scene.tool))
    assert frozen.status == 0, frozen
    for variables in sample(scene, list(places(scene))):
        clean(scene)
        (scene.evil / "victims").mkdir()
        os.chown(scene.evil / "victims", scene.user, scene.user)
        (scene.shared / "link").symlink_to(scene.evil)
        os.lchown(scene.shared / "link", ATTACKER, ATTACKER)
        for words in (["run", "--", scene.python, str(scene.tool)], ["run", str(image)], ["list"]):
            result = scene.snapboot(*words, **variables)
            assert words == ["list"] or result.out == "right []\n", (variables, result)
        assert not scene.left_in_evil(), variables
    image.unlink()


def forgeries(scene, store):
    """Copies of the victim's store in the attacker's hands: what he makes of each, and the variables that lead there."""
    def with_code(copy):
        for image in copy.glob("*/*/*.img"):
            scene.theirs(image, scene.code())

    def with_command(copy):
        for command in copy.glob("*/*/command.json"):
            command.write_text(command.read_text().replace(str(scene.tool), str(scene.theirs(scene.evil / "mark.py", "print('wrong')"))))
        for image in copy.glob("*/*/*.img"):
            image.unlink()

    def with_pipes(copy):
        for name in ("command.json", "attempt.json", "lock", "profile", "1.img"):
            for path in copy.glob(f"*/*/{name}"):
                path.unlink()
                os.mkfifo(path, 0o666)

    def with_links(copy):
        for path in copy.glob("*/*/1.img"):
            path.unlink()
            path.symlink_to(scene.theirs(scene.evil / "hidden", scene.code()))

    changes = {"code": with_code, "command": with_command, "pipes": with_pipes, "links": with_links}
    owners = ["his own", "the victim's folders in his", "a link in a shared folder"]
    return [(what, change, owner) for what, change in changes.items() for owner in owners]


@pytest.mark.fault("another user makes a store of his own look like the victim's", "it is not used")
def test_a_store_in_the_hands_of_others_is_not_used(scene):
    clean(scene)
    store = built(scene)
    for what, change, owner in forgeries(scene, store):
        clean(scene)
        copy = scene.evil / "victims-store"
        shutil.copytree(store, copy, symlinks=True, ignore=BEING_MADE)
        change(copy)
        if owner == "the victim's folders in his":
            for path in (copy, *copy.rglob("*")):
                os.lchown(path, scene.user, scene.user)
            for path in copy.rglob("*.img"):
                os.lchown(path, ATTACKER, ATTACKER)
        else:
            give(copy, ATTACKER)
        place = copy
        if owner == "a link in a shared folder":
            place = scene.shared / "store"
            place.symlink_to(copy)
            os.lchown(place, ATTACKER, ATTACKER)
        folder = next((place / "cache").iterdir(), None)
        for words in (["run", "--", scene.python, str(scene.tool)], ["list"], ["refreeze", str(folder / "1.img")], ["install", "nosuch"]):
            result = scene.snapboot(*words, SNAPBOOT_STORE=str(place))
            assert "wrong" not in result.out + result.err and not scene.marked(), (what, owner, words, result)
            assert words[0] != "run" or result.out == "right []\n", (what, owner, result)


@pytest.mark.fault("another user swaps folders and links while a store is looked at", "his code never runs")
def test_a_race_for_the_store_is_never_won(scene):
    store = built(scene)
    clean(scene)
    good, bad = scene.evil / "victims-store", scene.evil / "other"
    shutil.copytree(store, good, ignore=BEING_MADE)
    shutil.copytree(store, bad, ignore=BEING_MADE)
    give(good, scene.user)
    for image in bad.glob("*/*/*.img"):
        scene.theirs(image, scene.code())
    give(bad, ATTACKER)
    # In a folder of the attacker's; then as links of his in a shared one.
    links = [scene.shared / "one", scene.shared / "two"]
    for link, target in zip(links, (good, bad), strict=True):
        link.symlink_to(target)
        os.lchown(link, ATTACKER, ATTACKER)
    # `good` is the victim's: to swap the two names is up to the owner of the folder that they are in.
    for pair in ((good, bad), links):
        with Swapping(*pair):
            for _ in range(RACES if scene.user == 0 else RACES // 5):
                result = scene.snapboot("run", "--", scene.python, str(scene.tool), SNAPBOOT_STORE=str(pair[0]))
                assert result.out == "right []\n" and not scene.marked(), result


def test_links_of_ones_own_and_of_root_go_on_working(scene):
    """A home, a cache and a store behind links: thawed as without them."""
    clean(scene)
    store = built(scene)
    own, roots = scene.home / "own-link", scene.shared / "roots-link"
    own.symlink_to(store)
    os.lchown(own, scene.user, scene.user)
    roots.symlink_to(scene.home)
    for place in (own, roots / "store"):
        result = scene.snapboot("run", "--", scene.python, str(scene.tool), SNAPBOOT_STORE=str(place))
        assert (result.out, result.err) == ("right []\n", ""), result
    own.unlink()


def test_what_is_in_the_store_is_for_nobody_else(scene):
    """Images hold what a program has in memory."""
    store = built(scene)
    for path in store.glob("cache/*/*"):
        shown = support.run(support.as_nobody(["cat", path]), cwd="/", log=False)
        assert shown.status != 0 and SECRET not in shown.out, path


@pytest.mark.fault("root installs in place what others start, too, and its store lies in a home that they cannot enter", "it is refused")
def test_in_place_is_for_all_who_start_the_command(scene):
    clean(scene)
    public = scene.top / "bin"
    shutil.rmtree(public, ignore_errors=True)
    public.mkdir()
    os.chown(public, scene.user, scene.user)
    tool = scene.own(public / "intool", f"#!{scene.python} -IS\nprint('right')\n", mode=0o755)
    private = scene.home / "private"
    private.mkdir(mode=0o700, exist_ok=True)
    os.chown(private, scene.user, scene.user)
    before = tool.read_text()
    refused = scene.snapboot("install", "--in-place", str(tool), SNAPBOOT_STORE=str(private / "store"))
    assert refused.status == 2 and "other users can start intool" in refused.err and tool.read_text() == before, refused
    assert sorted(os.listdir(public)) == ["intool"]
    reached = scene.snapboot("install", "-q", "--in-place", str(tool), SNAPBOOT_STORE=str(scene.home / "open-store"))
    assert reached.status == 0 and tool.is_symlink(), reached
    as_other = support.run(support.as_nobody([tool]), env=scene.env(HOME="/"), cwd="/", log=False)
    assert (as_other.status, as_other.out) == (0, "right\n"), as_other
    undone = scene.snapboot("uninstall", "-q", str(tool), SNAPBOOT_STORE=str(scene.home / "open-store"))
    assert undone.status == 0 and tool.read_text() == before, undone


def test_nothing_that_a_terminal_obeys_is_printed(scene):
    """Names of files and reasons come from anybody."""
    clean(scene)
    hostile = "\x1b]0;title\x07\x1b[2J\u009b31m\u202e.py"
    script = scene.own(scene.home / f"x{hostile}", "print('right')\n")
    store = str(scene.home / "names")
    for words in (
        ["run", "--", scene.python, str(script)], ["list"], ["run", "./" + hostile], ["run", hostile], ["inspect", hostile],
        ["verify", hostile], ["freeze", "-o", "x.img", "--", hostile], ["time", "--", hostile], ["install", hostile],
        ["uninstall", hostile], ["refreeze", hostile], ["explain", "--", hostile], ["archive", "list", hostile],
    ):
        result = scene.snapboot(*words, SNAPBOOT_STORE=store)
        shown = result.out + result.err
        assert not set("\x1b\x07\u009b\u202e") & set(shown), (words, shown)
    script.unlink()


def test_an_applications_cache_stays_open_to_others(scene):
    """The archive in tmp/cache is private, and that folder is the application's."""
    if support.RUBY is None:
        pytest.skip("there is no ruby")
    clean(scene)
    app = scene.home / "app"
    shutil.rmtree(app, ignore_errors=True)
    (app / "tmp").mkdir(parents=True)
    scene.own(app / "Gemfile")
    scene.own(app / "main.rb", "require 'set'\nputs 'right'\n")
    give(app, scene.user)
    result = scene.snapboot("run", "--no-freeze", "--", support.RUBY, "main.rb", cwd=app)
    assert result.out == "right\n", result
    archive = app / "tmp/cache/snapboot.archive"
    assert archive.exists() and archive.stat().st_mode & 0o777 == 0o600, result
    assert archive.parent.stat().st_mode & 0o777 == 0o755
