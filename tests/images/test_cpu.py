"""Another CPU than the one that an image was made on or for: the ordinary way, and the feature that differs is named.

There is one CPU here, so it is the image that says that it comes from another one.
"""

import json
import subprocess

import pytest
from common import support
from common.image_file import ImageFile
from common.ready import prepared

pytestmark = pytest.mark.sample(6, whole=True)

ASK = ["-c", "print('right')"]
XCR0 = 0xFFFFFFFF


def leaf(image_file, number, subleaf=0):
    """Where in the file the row of a leaf is."""
    rows = image_file.rows("cpu")
    (row,) = [
        row
        for row in rows
        if (image_file.get("CpuLeaf", "leaf", row), image_file.get("CpuLeaf", "subleaf", row)) == (number, subleaf)
    ]
    return row


def flipped(image, path, number, register, bit, subleaf=0):
    """A copy of an image that wants the opposite of one bit, and whether it wants the bit now."""
    changed = ImageFile(support.read(image))
    row = leaf(changed, number, subleaf)
    value = changed.get("CpuLeaf", register, row) ^ (1 << bit)
    changed.set("CpuLeaf", register, row, value)
    changed.set("CpuLeaf", register + "_mask", row, changed.get("CpuLeaf", register + "_mask", row) | 1 << bit)
    return support.write(path, changed.seal()), bool(value >> bit & 1)


def why(image):
    """Status and lines of `snapboot inspect --why` without the first."""
    result = support.run([support.SNAPBOOT, "inspect", "--why", image], log=False)
    return result.status, [line.strip() for line in result.out.splitlines()[1:]]


@pytest.fixture(scope="module")
def native_image(open_directory):
    """An image for CPUs with all features of this one."""
    return support.frozen(open_directory / "native.img", [support.PYTHON], "--cpu", "native")


@pytest.mark.parametrize(
    "number, subleaf, register, bit, name",
    [
        (1, 0, "ecx", 20, "sse4_2"),
        (1, 0, "edx", 26, "sse2"),
        (7, 0, "ebx", 5, "avx2"),
        (7, 0, "ebx", 16, "avx512f"),
        (7, 0, "ecx", 8, "gfni"),
        (7, 1, "eax", 4, "avx_vnni"),
        (0xD, 1, "eax", 1, "xsavec"),
        (0x80000001, 0, "ecx", 5, "abm"),
        (XCR0, 0, "eax", 6, "xcr0_avx512_zmm_hi256"),
        (XCR0, 0, "eax", 18, "xcr0_amx_tiledata"),
    ],
)
@pytest.mark.fault(
    "a CPU with another feature, or other register states (XCR0)",
    "the ordinary start; the feature is named",
)
def test_a_cpu_with_or_without_one_feature(native_image, tmp_path, number, subleaf, register, bit, name):
    image, wanted = flipped(native_image, tmp_path / "other.img", number, register, bit, subleaf)
    result = support.run([image, *ASK])
    assert (result.out, result.status, result.fell_back) == ("right\n", 0, True), result
    assert f": {name}; " in result.err and ("lacks" if wanted else "without a feature") in result.err, result
    assert why(image) == (1, [f"CPU: {name}: {'there -> gone' if wanted else 'not there -> there'}"])


@pytest.mark.fault("another model of CPU, with the same features or more", "the image is used")
def test_another_model_with_more_features_will_do(native_image, tmp_path):
    """What the image wants is taken away from it, as if it came from a CPU that has less."""
    changed = ImageFile(support.read(native_image))
    assert changed.get("CpuLeaf", "eax_mask", leaf(changed, 1)) == 0, "the model"
    for number, register, bit in [(1, "ecx", 28), (7, "ebx", 5), (7, "ebx", 29), (0x80000001, "ecx", 5)]:
        row = leaf(changed, number)
        for name in (register, register + "_mask"):
            changed.set("CpuLeaf", name, row, changed.get("CpuLeaf", name, row) & ~(1 << bit))
    image = support.write(tmp_path / "other.img", changed.seal())
    assert support.thawed([image, *ASK]).out == "right\n"
    assert why(image) == (0, [])


def test_every_feature_that_differs_is_listed(native_image, tmp_path):
    changed = ImageFile(support.read(native_image))
    row = leaf(changed, 7)
    changed.set("CpuLeaf", "ebx", row, changed.get("CpuLeaf", "ebx", row) ^ (1 << 5 | 1 << 16 | 1 << 30))
    changed.set("CpuLeaf", "ebx_mask", row, changed.get("CpuLeaf", "ebx_mask", row) | 1 << 5 | 1 << 16 | 1 << 30)
    status, lines = why(support.write(tmp_path / "other.img", changed.seal()))
    assert status == 1 and [line.split(": ")[1] for line in lines] == ["avx2", "avx512f", "avx512bw"]


def test_what_does_not_count_may_differ(native_image, tmp_path):
    """A mask of zero: what is behind it is not asked for."""
    changed = ImageFile(support.read(native_image))
    row = leaf(changed, 7)
    for register in ("eax", "ebx", "ecx", "edx"):
        changed.set("CpuLeaf", register + "_mask", row, 0)
        changed.set("CpuLeaf", register, row, 0)
    assert support.thawed([support.write(tmp_path / "other.img", changed.seal()), *ASK]).out == "right\n"


@pytest.fixture(scope="module")
def baseline_image(open_directory):
    """An image for every CPU that has the baseline."""
    return support.frozen(open_directory / "baseline.img", [support.PYTHON], "--preload", "json,ssl", "--cpu", "baseline")


# What glibc uses of the CPU: of leaves 1 and 7, four registers each as the CPU answers and four as glibc uses them.
ACTIVE = """
import ctypes
leaf = ctypes.CDLL(None).__x86_get_cpuid_feature_leaf
leaf.restype = ctypes.POINTER(ctypes.c_uint32 * 8)
print(leaf(0).contents[6], leaf(1).contents[5])
"""


def active(argv):
    """ecx of leaf 1 and ebx of leaf 7, as glibc uses them in that process."""
    result = support.thawed([*argv, "-c", ACTIVE])
    if result.status != 0:
        pytest.skip("this glibc does not tell what it uses of the CPU")
    return [int(word) for word in result.out.split()]


def test_the_c_library_keeps_to_the_baseline(native_image, baseline_image):
    xsave, avx, avx2, avx512f = 1 << 26, 1 << 28, 1 << 5, 1 << 16
    ecx, ebx = active([baseline_image])
    assert not ecx & (xsave | avx) and not ebx & (avx2 | avx512f)
    if active([support.PYTHON])[0] & avx:
        assert active([native_image])[0] & avx, "an image for this CPU uses what it has"


# OPENSSL_info tells what OpenSSL 3 uses: ia32cap, with ecx of a leaf in front of edx or ebx.
IA32CAP = """
import ctypes, re, ssl
info = ctypes.CDLL(re.search(r"/\\S*libcrypto\\S*", open("/proc/self/maps").read()).group()).OPENSSL_info
info.restype = ctypes.c_char_p
print(info(1008).decode())
"""


def ia32cap(argv):
    """What OpenSSL uses of the CPU."""
    result = support.thawed([*argv, "-c", IA32CAP])
    if result.status != 0:
        pytest.skip("this OpenSSL does not tell what it uses of the CPU")
    return result.out


def test_openssl_uses_what_the_cpu_has_after_the_thaw(baseline_image):
    assert ia32cap([baseline_image]) == ia32cap([support.PYTHON])
    ssl_works = "import ssl, hashlib; ssl.create_default_context(); print(hashlib.sha256(b'a').hexdigest()[:8])"
    assert support.thawed([baseline_image, "-c", ssl_works]).out == "ca978112\n"


def test_numpy_and_openblas_keep_to_the_baseline(tmp_path):
    python = prepared("pandas")["python"]
    code = (
        "import ctypes, numpy, re\n"
        "try: from numpy._core import _multiarray_umath as core\n"
        "except ImportError: from numpy.core import _multiarray_umath as core\n"
        "newer = [name for name in core.__cpu_dispatch__ if name.startswith(('AVX', 'F16C', 'FMA', 'X86_V3', 'X86_V4'))]\n"
        "print(len(newer) > 0, any(core.__cpu_features__[name] for name in newer))\n"
        "library = ctypes.CDLL(re.search(r'/\\S*/lib[^/]*openblas\\S*', open('/proc/self/maps').read()).group())\n"
        "for name in ('scipy_openblas_get_corename64_', 'openblas_get_corename64_'):\n"
        "    if hasattr(library, name):\n"
        "        ask = getattr(library, name)\n"
        "ask.restype = ctypes.c_char_p\n"
        "print(ask().decode(), (numpy.ones((50, 50)) @ numpy.ones((50, 50))).sum())\n"
    )
    image, quiet = tmp_path / "numpy.img", [python, "-W", "error"]
    result = support.freeze(image, quiet, "--preload", "numpy", "--cpu", "baseline")
    assert result.status == 0 and result.err == "", "numpy warns of names that its version does not know"
    result = support.thawed([for_lower_cpus(image, tmp_path / "lower.img"), "-c", code])
    assert result.out == "True False\nNehalem 125000.0\n", result
    script = tmp_path / "script.py"
    script.write_text(code + "import warnings\nprint([one for one in warnings.filters if 'snapboot' in repr(one)])\n")
    support.frozen(image, [*quiet, script], "--cpu", "baseline")
    expected = "True False\nNehalem 125000.0\n[]\n"
    lower = for_lower_cpus(image, tmp_path / "lower.img")
    assert support.thawed([lower]).out == expected, "what the script imports first is in the image as well"


def test_an_image_for_the_baseline_asks_for_nothing_else(baseline_image, tmp_path):
    image = ImageFile(support.read(baseline_image))
    leaves = [image.get("CpuLeaf", "leaf", row) for row in image.rows("cpu")]
    assert leaves == [1, 0x80000001], "neither a model nor XCR0"
    masks = [image.get("CpuLeaf", register + "_mask", leaf(image, 1)) for register in ("eax", "ebx", "ecx")]
    assert masks[:2] == [0, 0] and masks[2] & (1 << 20) and not masks[2] & (1 << 28), "SSE4.2 counts, AVX does not"
    code = "import decimal, sqlite3, zlib; print(decimal.Decimal(2) ** 64)"
    assert support.thawed([baseline_image, "-c", code]).out == f"{2**64}\n"
    older, _ = flipped(baseline_image, tmp_path / "older.img", 1, "ecx", 20)
    result = support.run([older, *ASK])
    assert result.fell_back and ": sse4_2; " in result.err and result.out == "right\n", result
    assert "CPU          v2\n" in support.run([support.SNAPBOOT, "inspect", baseline_image]).out


def has(level):
    """Whether this CPU has a level, as the C library finds it."""
    loader = subprocess.run(["/lib64/ld-linux-x86-64.so.2", "--help"], capture_output=True, text=True)
    return f"x86-64-{level} (supported" in loader.stdout


def cpu_line(image):
    """The level of an image, and why it is no other one if `snapboot inspect` says so."""
    shown = json.loads(support.run([support.SNAPBOOT, "inspect", "--json", image], log=False).out)
    return shown["cpu"], [line for line in shown["depends"] if "CPU" in line]


def test_v3_is_the_default(python_image):
    assert cpu_line(python_image) == ("v3" if has("v3") else "native", [])


# The core that OpenBLAS has chosen.
CORE = """
import ctypes, numpy, re
library = ctypes.CDLL(re.search(r'/\\S*/lib[^/]*openblas\\S*', open('/proc/self/maps').read()).group())
name, = [name for name in ('scipy_openblas_get_corename64_', 'openblas_get_corename64_') if hasattr(library, name)]
ask = getattr(library, name)
ask.restype = ctypes.c_char_p
print(ask().decode())
"""


# For each level: the leaves that an image compares, the core that OpenBLAS chooses, features of which numpy uses one, and how the
# names of those begin that it does not use.
LEVELS = {
    "v3": ([1, 7, 0x80000001, XCR0], "Haswell", ["AVX2", "X86_V3"], ("AVX512", "X86_V4")),
    "v4": ([1, 7, 0x80000001, XCR0], "SkylakeX", ["AVX512_SKX", "X86_V4"], ("AVX512_ICL", "AVX512_SPR")),
}


@pytest.fixture(scope="module", params=LEVELS)
def level_image(request, open_directory):
    """A level, and an image of numpy for it."""
    level = request.param
    if not has(level):
        refused = support.freeze(open_directory / f"{level}.img", [support.PYTHON], "--cpu", level)
        assert refused.status == 2 and f"--cpu {level} boots the program on a CPU of that level" in refused.err, refused
        pytest.skip(f"this CPU has no x86-64-{level}")
    python = prepared("pandas")["python"]
    return level, support.frozen(open_directory / f"{level}.img", [python], "--preload", "numpy,ssl,hashlib", "--cpu", level)


def on_higher_level(image):
    """How many processes of an image are for CPUs of a higher level."""
    return json.loads(support.run([support.SNAPBOOT, "inspect", "--json", image], log=False).out)["on_higher_level"]


def for_lower_cpus(image, path):
    """The image as it is on a CPU of its own level: its first process wants a CPU without AVX-512 if it is for a higher level."""
    return flipped(image, path, 7, "ebx", 16)[0] if on_higher_level(image) else image


@pytest.fixture(scope="module")
def kept_image(level_image, open_directory):
    """A level, and an image of numpy as it is on CPUs of this level."""
    level, image = level_image
    return level, for_lower_cpus(image, open_directory / f"{level}-lower.img")


@pytest.mark.fault("a CPU of the level of an image that was made on one of a higher level", "the image is used")
def test_an_image_for_a_level_keeps_to_it(kept_image):
    level, image = kept_image
    leaves, core, usual, never = LEVELS[level]
    file = ImageFile(support.read(image))
    assert [file.get("CpuLeaf", "leaf", row) for row in file.rows("cpu")] == leaves
    assert f"CPU          {level}\n" in support.run([support.SNAPBOOT, "inspect", image]).out
    code = (
        "import ctypes, hashlib, numpy, re\n"
        "try: from numpy._core import _multiarray_umath as core\n"
        "except ImportError: from numpy.core import _multiarray_umath as core\n"
        "library = ctypes.CDLL(re.search(r'/\\S*/lib[^/]*openblas\\S*', open('/proc/self/maps').read()).group())\n"
        "for name in ('scipy_openblas_get_corename64_', 'openblas_get_corename64_'):\n"
        "    if hasattr(library, name):\n"
        "        ask = getattr(library, name)\n"
        "ask.restype = ctypes.c_char_p\n"
        f"print(ask().decode(), any(core.__cpu_features__.get(name) for name in {usual}),\n"
        f"      any(core.__cpu_features__[name] for name in core.__cpu_dispatch__ if name.startswith({never})))\n"
        "print((numpy.ones((50, 50)) @ numpy.ones((50, 50))).sum(), hashlib.sha256(b'a').hexdigest()[:8])\n"
    )
    assert support.thawed([image, "-c", code]).out == f"{core} True False\n125000.0 ca978112\n"


def test_a_start_takes_the_process_for_the_best_level_of_its_cpu(level_image):
    """numpy and OpenBLAS pick once, so an image for v3 that is made on a CPU with v4 holds a process for each."""
    level, image = level_image
    count = int(level == "v3" and has("v4"))
    assert on_higher_level(image) == count and why(image) == (0, [])
    core = "SkylakeX" if count else LEVELS[level][1]
    assert support.thawed([image, "-c", CORE]).out == f"{core}\n"


def test_a_program_without_such_a_library_has_one_process(baseline_image):
    assert on_higher_level(baseline_image) == 0


def test_the_c_library_keeps_to_a_level_and_openssl_does_not(kept_image):
    level, image = kept_image
    _, ebx = active([image])
    avx2, avx512f = 1 << 5, 1 << 16
    assert ebx & avx2 and bool(ebx & avx512f) == (level == "v4"), hex(ebx)
    assert ia32cap([image]) == ia32cap([prepared("pandas")["python"]])


TLS_DESCRIPTORS = "extern __thread int counter; __thread int counter; int count(void) { return ++counter; }\n"


def test_a_library_with_tls_descriptors_is_refused(tmp_path):
    if not has("v3"):
        pytest.skip("this CPU has no x86-64-v3")
    library = support.cc(TLS_DESCRIPTORS, str(tmp_path / "libcount.so"), "-shared", "-fPIC", "-mtls-dialect=gnu2")
    (tmp_path / "helper.py").write_text(f"import ctypes\nctypes.CDLL({library!r}).count()\n")
    env = support.environment(PYTHONPATH=str(tmp_path))
    arguments = (tmp_path / "count.img", [support.PYTHON], "--preload", "helper")
    refused = support.freeze(*arguments, "--cpu", "v3", env=env)
    assert refused.status == 2 and f"{library} was compiled with TLS descriptors" in refused.err, refused
    assert support.freeze(*arguments, "--cpu", "v2", env=env).status == 0
    assert not_for_v3(*arguments, env=env) == [f"{library} was compiled with TLS descriptors"]


def not_for_v3(*arguments, env):
    """How the reasons begin that an image is for this CPU, though nobody has asked for that."""
    made = support.freeze(*arguments, env=env)
    assert made.status == 0 and "all features of this CPU" in made.out, made
    level, reasons = cpu_line(arguments[0])
    assert level == "native" and support.thawed([arguments[0], *ASK], env=env).out == "right\n"
    return [reason.removeprefix("all features of this CPU, since ").split(" (")[0] for reason in reasons]


@support.needs_ruby
def test_ruby_for_the_baseline(tmp_path):
    image = support.frozen(tmp_path / "ruby.img", [support.RUBY], "--preload", "openssl", "--cpu", "baseline")
    ask = "require 'openssl'; puts OpenSSL::Digest.hexdigest('SHA256', 'a')[0, 8]"
    assert support.thawed([image, "-e", ask]).out == "ca978112\n"


ASKS = """
int asked(void) {
    unsigned a = 1, b, c, d, low, high;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return c && low;
}
"""


def test_a_library_that_asks_the_cpu_itself_is_refused(tmp_path):
    library = support.cc(ASKS, str(tmp_path / "libasks.so"), "-shared", "-fPIC")
    (tmp_path / "helper.py").write_text(f"import ctypes\nctypes.CDLL({library!r})\n")
    env = support.environment(PYTHONPATH=str(tmp_path))
    arguments = (tmp_path / "asks.img", [support.PYTHON], "--preload", "helper")
    refused = support.freeze(*arguments, "--cpu", "baseline", env=env)
    assert refused.status == 2 and f"{library} asks the CPU" in refused.err and "--cpu native" in refused.err, refused
    if has("v3"):
        (reason,) = not_for_v3(*arguments, env=env)
        assert reason.startswith(f"{library} asks the CPU"), reason
        command = [support.PYTHON, "-c", "import helper"]
        explained = support.run([support.SNAPBOOT, "explain", "--all", "-q", "--", *command], env=env, log=False)
        assert "not on all of level v3" in explained.out, explained


def test_a_variable_that_says_otherwise_is_refused(tmp_path):
    env = support.environment(OPENSSL_ia32cap="~0x200000200000000")
    refused = support.freeze(tmp_path / "app.img", [support.PYTHON], "--cpu", "baseline", env=env)
    assert refused.status == 2 and "OPENSSL_ia32cap" in refused.err and "Unset it" in refused.err, refused
    if has("v3"):
        reason = "--cpu v3 sets OPENSSL_ia32cap for the boot, and it is set already"
        assert not_for_v3(tmp_path / "app.img", [support.PYTHON], env=env) == [reason]


def test_variables_of_the_boot_do_not_stay(baseline_image):
    ask = "import os; print([name for name in os.environ if name.startswith(('GLIBC', 'OPEN', 'NPY'))])"
    assert support.thawed([baseline_image, "-c", ask]).out == "[]\n"
    result = support.run([baseline_image, *ASK], env=support.environment(GLIBC_TUNABLES="glibc.malloc.check=0"))
    assert result.fell_back and "GLIBC_TUNABLES" in result.err, result


# A module that keeps its whole environment, as dictionary and as a list, and what a program that it starts has of it.
KEEPS = {
    "python": "import os, subprocess\nKEPT = dict(os.environ)\nPAIRS = list(os.environ.items())\n"
    "GIVEN = subprocess.run(['env'], stdout=-1, text=True).stdout.split('\\n')\n",
    "ruby": "KEPT = ENV.to_h\nPAIRS = ENV.to_a\nGIVEN = IO.popen('env', &:read).split(\"\\n\")\n",
}
# Snapboot's own variables are those of the boot.
SHOWN = {
    "python": "import keeps; print(sorted(keeps.KEPT.items()))\n"
    "print(sorted(pair for pair in keeps.PAIRS if not pair[0].startswith('SNAPBOOT_')))\n"
    "print(sorted(line for line in keeps.GIVEN if not line.startswith('SNAPBOOT_')))",
    "ruby": "p KEPT.sort, PAIRS.reject { _1[0].start_with?('SNAPBOOT_') }.sort, GIVEN.grep_v(/^SNAPBOOT_/).sort, ENV['GLIBC_TUNABLES']",
}


@pytest.mark.parametrize("language", ["python", pytest.param("ruby", marks=support.needs_ruby)])
@pytest.mark.parametrize("own", [{}, {"GLIBC_TUNABLES": "glibc.malloc.check=0"}], ids=["unset", "set"])
def test_copies_of_the_environment_have_no_variables_of_the_boot(tmp_path, language, own):
    """Neither has what a program that the boot starts is given. The libraries keep to the level all the same."""
    suffix, option, folder = {"python": ("py", "-c", "PYTHONPATH"), "ruby": ("rb", "-e", "RUBYLIB")}[language]
    (tmp_path / f"keeps.{suffix}").write_text(KEEPS[language])
    command = [support.PYTHON] if language == "python" else [support.RUBY, "-rkeeps"]
    preload = ["--preload", "keeps"] if language == "python" else []
    env = support.environment(**{folder: str(tmp_path)}, **own)
    image = support.frozen(tmp_path / "app.img", command, *preload, "--cpu", "v2", env=env)
    words = [option, SHOWN[language]]
    thawed = support.thawed([image, *words], env=env)
    ordinary = support.run([*command, *words], env=env)
    assert (thawed.out, thawed.status) == (ordinary.out, 0), (thawed, ordinary)
