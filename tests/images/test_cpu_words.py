"""An image for a level of CPUs, thawed on a CPU that has more: a library that reads its words about the CPU at each use has those of an
ordinary start.

What the words hold is read from the memory of the process: at the address that the image names, and at the same place of the library in
an ordinary process.
"""

import pytest
from common import support
from common.image_file import ImageFile
from common.ready import prepared

pytestmark = pytest.mark.sample(4, whole=True)

LEVELS = ("v2", "v3")

# Both print the first of the words at a place of a library, and what is computed with them.
PYTHON_READS = """
import hashlib, re, sys
library, offset, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def read():
    base = min(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if line.rstrip().endswith(library))
    with open("/proc/self/mem", "rb") as memory:
        memory.seek(base + offset)
        return memory.read(count).hex()
print(read(), flush=True)
for name in ("sha1", "sha256", "sha512", "sha3_256", "blake2b"):
    for size in (0, 1, 64, 1000, 100_000):
        print(name, size, hashlib.new(name, b"a" * size).hexdigest())
"""
PYTHON_FORKS = """
import os
if os.fork() == 0:
    print("child", read(), flush=True)
    os._exit(0)
os.wait()
"""
PYTHON_ENCRYPTS = """
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
for kind in (AESGCM, ChaCha20Poly1305):
    for size in (0, 1, 64, 1000, 100_000):
        sealed = kind(b"k" * 32).encrypt(b"n" * 12, b"a" * size, b"more")
        print(kind.__name__, size, hashlib.sha256(sealed).hexdigest(), kind(b"k" * 32).decrypt(b"n" * 12, sealed, b"more") == b"a" * size)
"""
RUBY_READS = """
library, offset, count = ARGV[0], ARGV[1].to_i, ARGV[2].to_i
base = File.readlines('/proc/self/maps').select { |line| line.rstrip.end_with?(library) }.map { |line| line.to_i(16) }.min
puts File.open('/proc/self/mem', 'rb') { |memory| memory.seek(base + offset); memory.read(count) }.unpack1('H*')
[0, 1, 64, 1000, 100_000].each do |size|
  puts OpenSSL::Digest.hexdigest('SHA256', 'a' * size)
  %w[aes-256-gcm chacha20-poly1305].each do |name|
    cipher = OpenSSL::Cipher.new(name).encrypt
    cipher.key, cipher.iv = 'k' * 32, 'n' * 12
    puts OpenSSL::Digest.hexdigest('SHA256', cipher.update('a' * size + 'b') + cipher.final + cipher.auth_tag)
  end
end
"""


class Words:
    """The words of one library in an image that a thaw renews."""

    def __init__(self, image, name):
        self.file = ImageFile(support.read(image))
        found = [found for found in map(self._library, self.file.rows("capabilities")) if name in found[1].rsplit("/", 1)[-1]]
        ((self.row, self.library, base),) = found
        self.arguments = [self.library, str(self.get("words") - base), "16"]

    def get(self, field, row=None):
        return self.file.get("Capabilities", field, row or self.row)

    def set(self, field, value):
        self.file.set("Capabilities", field, self.row, value)

    def _library(self, row):
        """The row, the path of its library, and where that is mapped."""
        rows = self.file.rows("mappings")
        mapped = [[self.file.get("Mapping", field, mapping) for field in ("start", "end", "file")] for mapping in rows]
        number = next(file for start, end, file in mapped if start <= self.get("function", row) < end)
        path = self.file.text("MappedFile", "path", self.file.rows("files")[number]).decode()
        return row, path, min(start for start, _, file in mapped if file == number)


def same_as_ordinary(image, command, script, library="libcrypto"):
    """That a thaw prints what an ordinary start prints, words included. Returns its lines."""
    words = Words(image, library)
    plain = support.run([*command, script, *words.arguments], log=False)
    assert plain.status == 0 and plain.err == "", plain
    out = support.thawed([image, script, *words.arguments]).out
    assert out == plain.out
    return out.splitlines()


@pytest.mark.parametrize("level", LEVELS)
def test_python(tmp_path, level):
    script = support.write(tmp_path / "script.py", (PYTHON_READS + PYTHON_FORKS).encode())
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "ssl,hashlib", "--cpu", level)
    lines = same_as_ordinary(image, [support.PYTHON], script)
    assert f"child {lines[0]}" in lines


@pytest.mark.parametrize("level", LEVELS)
def test_a_library_that_includes_another(tmp_path, level):
    """It is known by its code, whatever the name of the file."""
    python = prepared("cryptography", support.PYTHON)["python"]
    script = support.write(tmp_path / "script.py", (PYTHON_READS + PYTHON_ENCRYPTS).encode())
    preload = "cryptography.hazmat.primitives.ciphers.aead"
    image = support.frozen(tmp_path / "app.img", [python], "--preload", preload, "--cpu", level)
    same_as_ordinary(image, [python, "-c", f"import {preload}; exec(open(__import__('sys').argv.pop(1)).read())"], script, "_rust")


@support.needs_ruby
@pytest.mark.parametrize("level", LEVELS)
def test_ruby(tmp_path, level):
    script = support.write(tmp_path / "script.rb", ("require 'openssl'\n" + RUBY_READS).encode())
    image = support.frozen(tmp_path / "app.img", [support.RUBY], "--preload", "openssl", "--cpu", level)
    same_as_ordinary(image, [support.RUBY], script)


# A library with such words, and a recipe for it. Its function begins with two long nops, whose numbers nothing else has.
LIBRARY = r"""
#include <stdint.h>
#include <stdlib.h>
uint32_t words[6], others[4];
uint64_t fill(uint32_t *words);
__asm__(".text\nfill: .byte 0x0f,0x1f,0x84,0,0x44,0x33,0x22,0x11,0x0f,0x1f,0x84,0,0x88,0x77,0x66,0x55\n"
        "movl $0xf3, 8(%rdi)\n movl $0xf4, 12(%rdi)\n movl $0xf5, 16(%rdi)\n movabs $FIRST, %rax\n ret\n");
__attribute__((constructor)) static void set_up(void) {
    if (getenv("ACME_WORDS")) {
        words[0] = 0x10401; words[1] = 0x20002; words[2] = 0x3; words[3] = 0x4;
        for (int i = 0; i < COPIES; i++) others[i] = words[i];
    } else {
        uint64_t first = fill(words);
        words[0] = (uint32_t)first | 0x400; words[1] = (uint32_t)(first >> 32);
    }
}
"""
RECIPE = """
name = "Acme"

[[cpu]]
variable = "ACME_WORDS"
libraries = ["libacme"]
v2 = "2"
v3 = "3"
v4 = "4"

[cpu.words]
function = "0f 1f 84 00 44 33 22 11 0f 1f 84 00 88 77 66 55"
count = 6
always = 0x400
v2 = [0x10401, 0x20002, 3, 4]
v3 = [0x10401, 0x20002, 3, 4]
v4 = [0x10401, 0x20002, 3, 4]
"""
LEVEL = "[66561, 131074, 3, 4, 0, 0]\n"
RENEWED = f"[{0xFF0F0F | 0x10401}, {0x2000F}, 243, 244, 245, 0]\n"


@pytest.mark.parametrize(
    "first, copies, expected",
    [
        pytest.param(0x0002000F00FF0F0F, 0, RENEWED, id="renewed"),
        pytest.param(
            0x0001000F00FF0F0F,
            0,
            LEVEL,
            marks=pytest.mark.fault(
                "the function that knows the CPU's features leaves out one of the level", "the library keeps to the level"
            ),
            id="a-bit-less",
        ),
        pytest.param(0x0002000F00FF0F0F, 4, LEVEL, id="found-twice"),
    ],
)
def test_what_a_recipe_says_of_any_library(tmp_path, first, copies, expected):
    source = LIBRARY.replace("FIRST", str(first)).replace("COPIES", str(copies))
    library = support.cc(source, str(tmp_path / "libacme.so"), "-shared", "-fPIC")
    recipes = tmp_path / "config/snapboot/recipes/acme"
    recipes.mkdir(parents=True)
    (recipes / "recipe.toml").write_text(RECIPE)
    (tmp_path / "helper.py").write_text(
        f"import ctypes\nLIBRARY = ctypes.CDLL({library!r})\nshow = lambda: list((ctypes.c_uint32 * 6).in_dll(LIBRARY, 'words'))\n"
    )
    env = support.environment(PYTHONPATH=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path / "config"))
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "helper", "--cpu", "v2", env=env)
    show = ["-c", "import helper; print(helper.show())"]
    assert support.thawed([image, *show], env=env).out == expected


@pytest.mark.fault("an image names another function for the words about the CPU", "the library keeps to the level")
def test_another_function(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "ssl,hashlib", "--cpu", "v2")
    script = support.write(tmp_path / "script.py", PYTHON_READS.encode())
    words = Words(image, "libcrypto")
    renewed = support.thawed([image, script, *words.arguments]).out.splitlines()
    with open(words.library, "rb") as file:
        code = file.read()
    begin = code.index(bytes.fromhex("49 89 d8 31 c0 48 89 47 08 0f a2"))
    words.set("function", words.get("function") + code.index(b"\xc3", begin) - begin)
    other = support.write(tmp_path / "other.img", words.file.seal())
    kept = support.thawed([other, script, *words.arguments]).out.splitlines()
    assert kept[0] == "118580070322980200000000" + "0" * 8 != renewed[0] and kept[1:] == renewed[1:]


@pytest.mark.fault("an image is damaged: its words about the CPU are in no memory of it", "the ordinary start")
@pytest.mark.parametrize("field, value", [("words", 4096), ("function", 4096), ("size", 8), ("size", 68), ("size", 17)])
def test_words_that_are_nowhere(tmp_path_factory, field, value):
    folder = tmp_path_factory.getbasetemp() / "nowhere"
    image = folder / "app.img"
    if not image.exists():
        folder.mkdir()
        support.frozen(image, [support.PYTHON], "--preload", "hashlib", "--cpu", "v2")
    words = Words(image, "libcrypto")
    words.set(field, value)
    result = support.run([support.write(folder / "other.img", words.file.seal()), "-c", "print(6 * 7)"])
    assert result.fell_back and result.out == "42\n" and "words about the CPU" in result.err, result
