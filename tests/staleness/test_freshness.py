"""Files that changed in nothing but their times keep an image fresh; files that changed make it stale, whatever their times."""

import glob
import os
import shutil
import subprocess
import sysconfig

import pytest
from common import support
from common.waiting import settle

pytestmark = pytest.mark.sample(20, whole=True)

ASK = ["-c", "import helper; print(helper.ANSWER)"]
FIRST, OTHER = "ANSWER = 'first!'\n", "ANSWER = 'second'\n"  # of one size


@pytest.fixture
def program(tmp_path):
    """A folder with a module, and the environment that finds it."""
    (tmp_path / "helper.py").write_text(FIRST)
    return tmp_path, support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")


def frozen(program, *options):
    folder, env = program
    return support.frozen(folder / "app.img", [support.PYTHON], "--preload", "helper", *options, env=env)


def seen(image):
    """The file in which a thaw remembers what it has compared."""
    return image.with_name(image.name + ".seen")


def touch(path):
    os.utime(path)


def hard_link(path):
    os.link(path, path.with_name("another name"))


def copy(path):
    """As a container layer or an rsync would: another file with the same content and time."""
    shutil.copy2(path, path.with_name("copy"))
    os.replace(path.with_name("copy"), path)


def checkout(path):
    """As a fresh checkout would: another file with the same content."""
    path.with_name("new").write_bytes(path.read_bytes())
    os.replace(path.with_name("new"), path)


@pytest.mark.parametrize("change", [touch, hard_link, copy, checkout])
def test_other_times_and_the_same_content(program, change):
    image, (folder, env) = frozen(program), program
    before = (folder / "helper.py").stat().st_ctime_ns
    change(folder / "helper.py")
    assert (folder / "helper.py").stat().st_ctime_ns != before, "otherwise this tests nothing"
    for _ in range(2):
        assert support.thawed([image, *ASK], env=env).out == "first!\n"
    assert seen(image).stat().st_mode & 0o777 == 0o600


def put_back(path):
    before = path.stat()
    path.write_text(OTHER)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size and path.stat().st_mtime_ns == before.st_mtime_ns


def replace_with_the_old_time(path):
    before = path.stat()
    path.with_name("new").write_text(OTHER)
    os.utime(path.with_name("new"), ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(path.with_name("new"), path)


def longer(path):
    path.write_text("ANSWER = 'second' + ''\n")


@pytest.mark.parametrize("policy", ["check", "content"])
@pytest.mark.parametrize("remembered", [False, True])
@pytest.mark.parametrize("change", [put_back, replace_with_the_old_time, longer])
def test_another_content(program, change, remembered, policy):
    image, (folder, env) = frozen(program, "--policy", policy), program
    if remembered:
        touch(folder / "helper.py")
        support.thawed([image, *ASK], env=env)
        assert seen(image).exists()
    change(folder / "helper.py")
    result = support.run([image, *ASK], env=env)
    assert result.out.startswith("second") and result.fell_back and "helper.py" in result.err, result


def opened(image, env, name):
    """How often a thaw opens a file of that name."""
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    argv = ["strace", "-f", "-e", "trace=openat", str(image), *ASK]
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    assert "first!" in done.stdout, done.stderr
    return sum(f'{name}"' in line and "ENOENT" not in line for line in done.stderr.splitlines())


def test_what_was_compared_is_not_compared_again(program):
    image, (folder, env) = frozen(program), program
    assert opened(image, env, "helper.py") == 0, "times alone need no comparison"
    touch(folder / "helper.py")
    assert opened(image, env, "helper.py") == 1
    before = seen(image).stat()
    assert opened(image, env, "helper.py") == 0
    assert seen(image).stat() == before or seen(image).stat().st_mtime_ns == before.st_mtime_ns
    touch(folder / "helper.py")
    assert opened(image, env, "helper.py") == 1


def damaged(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-5])


def writable(path):
    path.chmod(0o666)


def a_link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def a_directory(path):
    path.unlink()
    path.mkdir()


def endless(path):
    content = bytearray(path.read_bytes())
    content[16:24] = b"\xff" * 8
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [damaged, cut_off, writable, a_link, a_directory, endless])
@pytest.mark.fault("IMAGE.seen is damaged, cut off, a link, or can be written by others", "it is not believed")
def test_what_is_remembered_is_not_believed_blindly(program, harm):
    image, (folder, env) = frozen(program), program
    touch(folder / "helper.py")
    support.thawed([image, *ASK], env=env)
    harm(seen(image))
    assert opened(image, env, "helper.py") == 1, "it is compared again"
    assert support.thawed([image, *ASK], env=env).out == "first!\n"


def test_what_another_image_remembers_is_not_believed(program):
    image, (folder, env) = frozen(program), program
    touch(folder / "helper.py")
    support.thawed([image, *ASK], env=env)
    remembered = seen(image).read_bytes()
    (folder / "helper.py").write_text(OTHER)
    settle()
    frozen(program)
    touch(folder / "helper.py")
    seen(image).write_bytes(remembered)
    assert support.thawed([image, *ASK], env=env).out == "second\n"


def test_a_leftover_does_not_stay(program):
    image, (folder, env) = frozen(program), program
    touch(folder / "helper.py")
    leftover = image.with_name(image.name + ".seen~")
    leftover.write_text("half")
    for _ in range(2):
        support.thawed([image, *ASK], env=env)
    assert seen(image).exists() and not leftover.exists()


@pytest.mark.fault("IMAGE.seen cannot be written", "each thaw compares again")
def test_where_nothing_can_be_remembered(program):
    """A read-only place: compared in every thaw."""
    image, (folder, env) = frozen(program), program
    touch(folder / "helper.py")
    script = 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; shift; "$@"; "$@"'
    argv = support.in_mount_namespace(script, str(folder), str(image), *ASK)
    assert support.thawed(argv, env=env).out == "first!\n" * 2
    assert not seen(image).exists()


def test_a_library_that_was_copied(tmp_path):
    found = glob.glob(subprocess.run(
        [support.PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('platstdlib'))"], capture_output=True, text=True
    ).stdout.strip() + "/lib-dynload/_queue*.so")
    if not found:
        pytest.skip(f"{sysconfig.get_path('platstdlib')} has no extension module to copy")
    library = tmp_path / os.path.basename(found[0])
    shutil.copy(found[0], library)
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "_queue", env=env)
    ask = ["-c", "import _queue; print(_queue.__file__, _queue.SimpleQueue().qsize())"]
    copy(library)
    assert support.thawed([image, *ask], env=env).out == f"{library} 0\n"
    assert support.thawed([image, *ask], env=env).out == f"{library} 0\n"
    with open(library, "ab") as file:
        file.write(b"\0")
    result = support.run([image, *ask], env=env)
    assert result.fell_back and result.out == f"{library} 0\n", result


def test_trust_looks_at_no_loaded_file(program):
    image, (folder, env) = frozen(program, "--policy", "trust"), program
    put_back(folder / "helper.py")
    assert support.thawed([image, *ASK], env=env).out == "first!\n"
    (folder / "helper.py").unlink()
    assert support.thawed([image, *ASK], env=env).out == "first!\n"


def test_stale_as_an_error(program):
    image, (folder, env) = frozen(program, "--guard", "guarded"), program
    strict = {**env, "SNAPBOOT_ON_STALE": "error"}
    assert support.thawed([image, *ASK], env=strict).out == "first!\n"
    assert support.run([image, "-c", "print(1)", "guarded"], env=strict).out == "1\n"
    longer(folder / "helper.py")
    result = support.run([image, *ASK], env=strict, log=False)
    assert (result.status, result.out) == (125, ""), result
    assert f"{folder}/helper.py" in result.err and "SNAPBOOT_ON_STALE=error" in result.err, result
    for other in ("", "fallback"):
        assert support.run([image, *ASK], env={**env, "SNAPBOOT_ON_STALE": other}, log=False).out == "second\n"


def test_an_unknown_value_of_on_stale_is_said_where_somebody_asks(program):
    image, (folder, env) = frozen(program), program
    misspelt = {**env, "SNAPBOOT_ON_STALE": "eror"}
    said = "SNAPBOOT_ON_STALE=eror should be fallback or error"
    assert support.run([image, *ASK], env=misspelt, log=False).err == ""
    asked = support.run([support.SNAPBOOT, "inspect", "--why", image], env=misspelt, log=False)
    assert said in asked.err and asked.out == f"{image}: fresh\n", asked
    assert said in support.run([support.SNAPBOOT, "check"], env=misspelt, log=False).out
    longer(folder / "helper.py")
    silent = support.run([image, *ASK], env=misspelt, log=False)
    assert (silent.out, silent.err, silent.status) == ("second\n", "", 0), silent
    logged = support.run([image, *ASK], env=misspelt)
    assert logged.out == "second\n" and logged.fell_back and said in logged.err, logged


@support.needs_root
@pytest.mark.parametrize("count", [1, 40], ids=["a file", "a folder of many"])
def test_what_a_user_may_not_look_at_is_told_from_what_is_gone(count, open_directory):
    python = support.public_python()
    folder = open_directory / f"closed-{count}"
    folder.mkdir()
    names = [f"part{number}" for number in range(count)]
    for name in names:
        (folder / f"{name}.py").touch()
    env = support.environment(PYTHONPATH=str(folder), HOME="/nonexistent")
    image = support.frozen(open_directory / f"closed-{count}.img", [python], "--preload", ",".join(names), env=env)
    argv = support.as_nobody([image, "-c", "print(1)"])
    image.chmod(0o755)
    assert not support.run(argv, env=env, cwd="/").fell_back
    (folder / "part0.py").chmod(0o600)
    os.utime(folder / "part0.py", (1, 1))
    folder.chmod(0o700)
    for closed in ("folder", "file in it"):
        said = support.run(argv, env=env, cwd="/").err
        assert "stale: this user may not " in said and str(folder) in said and "(permission denied); starting" in said, (closed, said)
        folder.chmod(0o755)
    shutil.rmtree(folder)
    said = support.run(argv, env=env, cwd="/").err
    assert "is gone: " in said and "(no such file or directory); starting" in said, said
