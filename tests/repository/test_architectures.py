"""What is known of one architecture stands in `arch` folders, of one C library in `libc`; every crate compiles for the architectures."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = "aarch64-unknown-linux-gnu"
CHOICE = re.compile(r"\btarget_arch\b")
# Assembly, intrinsics, and calls and registers that one architecture has.
KNOWN_HERE = re.compile(
    r"\b(?:core|std)::arch\b|\b(?:naked_|global_)?asm!|\b(?:SYS|__NR)_arch_prctl\b|_x86_64\.rs\b|\b__cpuid|\b_mm\d*_"
)


def sources():
    return [path for path in (ROOT / "crates").glob("*/src/**/*.rs") if "tests" not in path.parts]


def test_an_architecture_is_chosen_in_one_file_of_a_crate():
    choosing = {path for path in sources() if CHOICE.search(path.read_text())}
    assert choosing
    assert all(path.match("src/arch/mod.rs") for path in choosing), "move what differs to src/arch of the crate"


def test_what_one_architecture_knows_stands_with_it():
    outside = [str(path.relative_to(ROOT)) for path in sources() if "arch" not in path.parent.parts]
    assert [name for name in outside if KNOWN_HERE.search((ROOT / name).read_text())] == []


def test_the_inside_of_the_c_library_is_known_in_one_place_of_the_freezer():
    inside = re.compile(r"mallo(?:pt|c_trim)\(|\b__rseq_|\b_nl_|\bfcloseall\b")
    knowing = [path for path in sources() if "freezer" in path.parts and inside.search(path.read_text())]
    assert knowing
    assert [path.name for path in knowing if "glibc" not in path.parts] == []


@pytest.mark.parametrize("folder", sorted({path.parent for path in sources() if path.match("src/arch/mod.rs")}))
def test_each_architecture_has_the_same_interface(folder):
    choice = (folder / "mod.rs").read_text()
    for name in re.findall(r'target_arch = "(\w+)"', choice):
        assert (folder / f"{name}.rs").is_file() or (folder / name / "mod.rs").is_file()
        assert f"pub use {name}::*;" in choice


def test_all_crates_compile_for_aarch64():
    asked = ["rustc", "--print", "target-libdir", "--target", TARGET]
    library = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    if library.returncode != 0 or not pathlib.Path(library.stdout.strip()).is_dir():
        pytest.skip(f"Rust's standard library for {TARGET} is not installed here")
    made = subprocess.run(["make", "check-aarch64"], cwd=ROOT, capture_output=True, text=True, env=os.environ)
    assert made.returncode == 0, made.stderr[-4000:]
    assert "warning: unused" not in made.stderr
