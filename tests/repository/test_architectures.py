"""What is known of one architecture stands in `arch` folders, of one C library in `libc`; every crate compiles for the architectures."""

import os
import pathlib
import subprocess

import pytest
from common import sources, support

ROOT = support.ROOT
TARGET = "aarch64-unknown-linux-gnu"
# Assembly, intrinsics, and calls and registers that one architecture has.
MACROS = {"asm", "global_asm", "naked_asm", "SYS_arch_prctl", "__NR_arch_prctl"}
INTRINSICS = ("__cpuid", "_mm_", "_mm256_", "_mm512_")
MODULES = ("core::arch::", "std::arch::")
# The inside of the C library.
INSIDE = ("mallopt", "malloc_trim", "fcloseall", "__rseq_", "_nl_")


def knows_an_architecture(facts: sources.Rust) -> bool:
    in_names = facts.identifiers & MACROS or any(name.startswith(INTRINSICS) for name in facts.identifiers)
    return bool(in_names) or any(path.startswith(MODULES) for path in facts.paths) or any("_x86_64.rs" in it for it in facts.texts())


def test_an_architecture_is_chosen_in_one_file_of_a_crate():
    choosing = [path for path, facts in sources.product().items() if "target_arch" in facts.identifiers]
    assert choosing
    assert all(path.match("src/arch/mod.rs") for path in choosing), "move what differs to src/arch of the crate"


def test_what_one_architecture_knows_stands_with_it():
    knowing = [path for path, facts in sources.product().items() if knows_an_architecture(facts)]
    assert knowing
    assert [str(path.relative_to(ROOT)) for path in knowing if "arch" not in path.parent.parts] == []


def test_the_inside_of_the_c_library_is_known_in_one_place_of_the_freezer():
    freezer = {path: facts for path, facts in sources.product().items() if "freezer" in path.parts}
    knowing = [path for path, facts in freezer.items() if any(it.startswith(INSIDE) for it in [*facts.identifiers, *facts.texts()])]
    assert knowing
    assert [path.name for path in knowing if "glibc" not in path.parts] == []


@pytest.mark.parametrize("folder", sorted(path.parent for path in (ROOT / "crates").glob("*/src/**/arch/mod.rs")))
def test_each_architecture_has_the_same_interface(folder):
    facts = sources.crates()[folder / "mod.rs"]
    for name in facts.texts():
        assert (folder / f"{name}.rs").is_file() or (folder / name / "mod.rs").is_file()
        assert f"{name}::*" in facts.paths
    assert facts.texts()


def test_all_crates_compile_for_aarch64():
    asked = ["rustc", "--print", "target-libdir", "--target", TARGET]
    library = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    if library.returncode != 0 or not pathlib.Path(library.stdout.strip()).is_dir():
        pytest.skip(f"Rust's standard library for {TARGET} is not installed here")
    made = subprocess.run(["make", "check-aarch64"], cwd=ROOT, capture_output=True, text=True, env=os.environ)
    assert made.returncode == 0, made.stderr[-4000:]
    assert "warning: unused" not in made.stderr
