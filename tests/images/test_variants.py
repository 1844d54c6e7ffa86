"""An image with variants: several frozen processes in one file, of which each start continues one."""

import os
import re
import signal
import subprocess

import pytest
from common import support
from common.image_file import ImageFile

pytestmark = pytest.mark.sample(4, whole=True)

RUNS = 40
ASK = {
    "python": "print(hash('a'), id(print), id(object()) >> 30)",
    "ruby": "p ''.hash, Object.new.to_s",
}
CODE = {"python": "-c", "ruby": "-e"}


@pytest.fixture(scope="module", params=["python", "ruby"])
def image(request, open_directory):
    """An image with three variants, and how to ask it for what they differ in."""
    interpreter = {"python": support.PYTHON, "ruby": support.RUBY}[request.param]
    if interpreter is None:
        pytest.skip("there is no ruby")
    image = open_directory / f"variants-{request.param}.img"
    support.frozen(image, [interpreter], "--preload", "json", "--variants", "3", serves_others=True)
    return image, [CODE[request.param], ASK[request.param]]


def test_each_start_takes_any_of_them(image):
    path, ask = image
    answers = [support.thawed([path, *ask]).out for _ in range(RUNS)]
    counts = sorted(answers.count(answer) for answer in set(answers))
    assert len(counts) == 3 and counts[0] >= 3, "one in 300,000 runs of this test may see a variant less than three times"


def test_layout_and_hash_seed_differ(tmp_path):
    folder = tmp_path / "app.img"
    support.frozen(folder, [support.PYTHON], "--variants", "2")
    code = "print(hash('a')); print(open('/proc/self/maps').read())"
    seen = {}
    while len(seen) < 2:
        first, maps = support.thawed([folder, "-c", code]).out.split("\n", 1)
        seen[first] = {line.split("-")[0] for line in maps.splitlines() if re.search(r"libc|\[heap\]|\[stack\]", line)}
    one, other = seen.values()
    assert one and other and not one & other


def test_a_given_hash_seed_stays(tmp_path):
    env = support.environment(PYTHONHASHSEED="7")
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--variants", "2", env=env)
    answers = {support.thawed([image, "-c", "print(hash('a'), id(print))"], env=env).out for _ in range(RUNS)}
    assert len(answers) == 2 and len({answer.split()[0] for answer in answers}) == 1


def test_it_is_one_file(image, tmp_path):
    path, ask = image
    moved = support.write(tmp_path / "moved.img", support.read(path))
    assert len({support.thawed([moved, *ask]).out for _ in range(RUNS)}) == 3
    assert os.listdir(tmp_path) == ["moved.img"]
    assert support.run([support.SNAPBOOT, "verify", moved], log=False).status == 0
    out = support.run([support.SNAPBOOT, "inspect", moved], log=False).out
    # All that Ruby keeps has the encoding of its locale.
    count = "6, 3 of them for another encoding" if "ruby" in path.name else "3"
    assert re.search(rf"variants +{count}\n", out), out
    assert support.run([support.SNAPBOOT, "inspect", "--why", moved], log=False).out == f"{moved}: fresh\n"


def variant_heads(patched):
    """Where the heads of all variants are."""
    size, first = patched.format.size("Head"), patched.head_at
    others = first + patched.format.constants["VARIANTS_OFFSET"]
    return [first] + [others + index * size for index in range(patched.head("variants") - 1)]


@pytest.mark.fault(
    "damage to head or tables of one of several variants", "the ordinary start, whenever a start draws that variant"
)
def test_damage_is_found_in_every_variant(image, tmp_path):
    path, ask = image
    for number, head in enumerate(variant_heads(ImageFile(support.read(path)))):
        patched = ImageFile(support.read(path))
        env = support.environment(LC_ALL="C" if number % patched.head("kinds") else None)
        patched.bytes[patched.get("Head", "pages_offset", head) + 100] ^= 1
        damaged = support.write(tmp_path / "pages.img", patched.bytes)
        result = support.run([support.SNAPBOOT, "verify", damaged], log=False)
        assert result.status == 1 and "data pages" in result.err, (number, result)
        patched = ImageFile(support.read(path))
        patched.bytes[patched.get("Head", "tables_offset", head) + 100] ^= 1
        damaged = support.write(tmp_path / "tables.img", patched.bytes)
        result = support.run([support.SNAPBOOT, "verify", damaged], log=False)
        assert result.status == 1 and "tables" in result.err, (number, result)
        empty = [damaged, CODE["ruby" if "ruby" in path.name else "python"], ""]
        fallbacks = [support.run(empty, env=env) for _ in range(RUNS)]
        assert all(result.status == 0 for result in fallbacks)
        assert 0 < sum(result.fell_back for result in fallbacks) <= RUNS, number
        patched = ImageFile(support.read(path))
        patched.bytes[head + 40] ^= 1
        damaged = support.write(tmp_path / "head.img", patched.bytes)
        result = support.run([support.SNAPBOOT, "verify", damaged], log=False)
        assert result.status == 1 and "head" in result.err, (number, result)
        assert any(support.run([damaged, *ask], env=env).fell_back for _ in range(RUNS))


def test_what_was_compared_is_remembered_for_all_variants(tmp_path):
    (tmp_path / "helper.py").write_text("")
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    options = ["--preload", "helper", "--variants", "3"]
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], *options, env=env)
    os.utime(tmp_path / "helper.py")
    seen = set()
    support.thawed([image, "-c", ""], env=env)
    remembered = image.with_name("app.img.seen")
    before = remembered.stat().st_mtime_ns
    while len(seen) < 3:
        seen.add(support.thawed([image, "-c", "print(hash('a'))"], env=env).out)
    assert remembered.stat().st_mtime_ns == before, "no variant compares again what another one has"


def test_thaws_of_all_variants_are_counted_together(tmp_path):
    options = ["--variants", "2", "--max-thaws", "12"]
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], *options)
    answers = [support.thawed([image, "-c", "print(hash('a'))"]).out for _ in range(12)]
    assert len(set(answers)) == 2, "one in 2000 runs of this test may see one variant only"
    assert support.run([image, "-c", "print(hash('a'))"]).fell_back


def test_the_program_boots_each_time(tmp_path):
    """Also where the first boot writes bytecode that the second one loads; warnings are said once."""
    (tmp_path / "helper.py").write_text(
        "import os, random\nos.write(2, b'booting\\n')\n"
        "class Own(random.Random):\n    def seed(self, *arguments):\n        pass\n\nown = Own()\n"
    )
    env = support.environment(PYTHONPATH=str(tmp_path))
    result = support.freeze(tmp_path / "app.img", [support.PYTHON], "--preload", "helper", "--variants", "3", env=env)
    assert result.status == 0 and "3 variants, preloaded helper" in result.out, result
    assert result.err.count("booting\n") == 3, result
    warnings = [line for line in result.err.splitlines() if "warning" in line]
    assert len(warnings) == len(set(warnings)) == 2 and "random state" in warnings[0] and "print" in warnings[1], result
    assert sorted(path.name for path in tmp_path.iterdir()) == ["__pycache__", "app.img", "helper.py"]


@pytest.mark.fault("one of the boots of `--variants` fails, or is interrupted", "the image that was there stays")
def test_a_later_boot_that_fails_leaves_the_old_image(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON])
    before = support.read(image)
    (tmp_path / "helper.py").write_text(
        f"import os\npath = {str(tmp_path / 'flag')!r}\n"
        "if os.path.exists(path):\n    raise SystemExit(3)\nopen(path, 'w').close()\n"
    )
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    result = support.freeze(image, [support.PYTHON], "--preload", "helper", "--variants", "2", env=env)
    assert result.status != 0 and (tmp_path / "flag").exists(), result
    assert support.read(image) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app.img", "flag", "helper.py"]


def test_a_file_that_changes_between_two_boots_makes_the_image_void(tmp_path):
    (tmp_path / "other.py").write_text("A = 1\n")
    (tmp_path / "helper.py").write_text(
        f"import other\nwith open({str(tmp_path / 'other.py')!r}, 'a') as file:\n    file.write('B = 1\\n')\n"
    )
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    result = support.freeze(tmp_path / "app.img", [support.PYTHON], "--preload", "helper", "--variants", "2", env=env)
    assert result.status == 1 and "other.py changed" in result.err, result


@pytest.mark.parametrize("given", ["0", "17", "many"])
def test_numbers_of_variants_that_are_none(tmp_path, given):
    result = support.freeze(tmp_path / "app.img", [support.PYTHON], "--variants", given)
    assert result.status == 2 and given in result.err, result


def test_without_address_randomization(tmp_path):
    fixed = ["setarch", "-R"]
    if subprocess.run([*fixed, "true"], capture_output=True).returncode:
        pytest.skip("setarch -R is not permitted here")
    argv = [*fixed, support.SNAPBOOT, "freeze", "-o", tmp_path / "app.img", "--variants", "2", "--", support.PYTHON]
    result = support.run(argv, log=False)
    assert result.status == 0 and "the variants have the same memory layout" in result.err, result


def test_interrupted_between_two_boots(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON])
    before = support.read(image)
    # In between the program is booted once more with /dev/null as its output, which nobody hears.
    (tmp_path / "helper.py").write_text(
        f"import os, time\npath, heard = {str(tmp_path / 'flag')!r}, not os.path.samefile('/dev/null', '/proc/self/fd/2')\n"
        "if heard and os.path.exists(path):\n    print('second', flush=True); time.sleep(600)\nopen(path, 'w').close()\n"
    )
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    argv = [support.SNAPBOOT, "freeze", "-o", image, "--preload", "helper", "--variants", "2", "--", support.PYTHON]
    with subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as freeze:
        assert freeze.stderr.readline() == b"second\n"
        freeze.send_signal(signal.SIGINT)
        freeze.stderr.read()
    assert freeze.returncode == -signal.SIGINT
    assert support.read(image) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app.img", "flag", "helper.py"]


def test_secrets_are_looked_for_in_all_variants(tmp_path):
    (tmp_path / "helper.py").write_text("import os\ntag = 'tag-of-boot-%d' % os.getpid()\n")
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    options = ["--preload", "helper", "--variants", "3"]
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], *options, env=env)
    found = support.run([support.SNAPBOOT, "inspect", "--strings", "tag-of-boot-[0-9]+", image], log=False)
    assert len(set(re.findall("tag-of-boot-[0-9]+", found.out))) == 3, found
