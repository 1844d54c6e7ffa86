#!/usr/bin/env python3
"""Tries images on aarch64: a Debian of that architecture in QEMU, emulated, with this tree in it (virtiofs).

    tools/aarch64.py              all of PROGRAMS, the behaviour cases of its Python and its Ruby (hours), and a sample of TESTS
    tools/aarch64.py behaves.rb   some programs; none: no program
    tools/aarch64.py --quick      the programs alone
    tools/aarch64.py -- COMMAND   a shell command in this tree on that machine

Wheel and gem are built here for that architecture (tools/architectures.py) and installed there. The packages of the other Debian are
unpacked in .work/aarch64, never installed. What is frozen there must print in each thaw what an ordinary start prints there, under the
same kernel and under others, and draw other random numbers. On a CPU with fewer features it must start the ordinary way, and name one
that is missing. Results lie in target/aarch64, and in the README's table (tools/platforms.py).
"""

import argparse
import json
import os
import pathlib
import shlex
import shutil
import sys

import behaviour_sample
import cpus
import kernels
import packages
import platforms
import results
import workloads
from architectures import ARCHITECTURES
from workloads import Unavailable

ROOT = kernels.ROOT
FOLDER = workloads.WORK / "aarch64"
SYSTEM = FOLDER / "system"
SUITE = "trixie"
ARCHITECTURE = ARCHITECTURES["aarch64"]
PACKAGES_FOLDER = ROOT / "target/aarch64/packages"
SNAPBOOT = pathlib.Path("/var/venv/bin/snapboot")  # on that machine
SECONDS = 7200  # the CPU is emulated
PYTEST_SECONDS = 6 * 3600
MEMORY = 3072  # MiB
# For its disk, where they are not built into the kernel; in the order in which they need each other.
MODULES = ("virtio_blk", "crc16", "crc32c_generic", "libcrc32c", "mbcache", "jbd2", "ext4")
DISK = 4 << 30  # bytes
# With pointer authentication by an algorithm that is quick to emulate, and without vectors of variable length, which are slow.
CPU = "max,pauth-impdef=on,sve=off"
PACKAGES = (
    "base-files base-passwd bash coreutils dash diffutils findutils gawk grep hostname libc-bin mount procps sed tar util-linux "
    "ca-certificates gcc git libc6-dev libcap2-bin libxxhash0 locales ncurses-base openssl python3 python3-dev python3-pytest python3-venv "
    "ruby ruby-dev ruby-minitest strace tzdata"
).split()


PROGRAMS = {"behaves.py": "python3", "behaves.rb": "ruby", "draws.py": "python3", "draws.rb": "ruby"}
ARGUMENTS = ["one", "two words"]
# What is refused, what is left, who may, sessions, and that no value comes twice. Those that read Rust need a program of this machine.
TESTS = [
    f"tests/images/test_{name}.py"
    for name in ("refusals", "hostile", "memory", "mistakes", "permissions", "session", "uniqueness")
]
OF_X86 = "tests/images/test_refusals.py::test_this_is_x86_64"
STRICT = {"SNAPBOOT_ON_STALE": "error"}
OTHER_KERNELS = ("bookworm", "sid")
LESSER_CPU = "cortex-a57"


def download(suite: str, packages: list[str], folder: pathlib.Path) -> list[pathlib.Path]:
    """Fetch packages of a suite and all that they need, none of which is installed. Returns them, those first that others lie in."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    sources, status = folder / "sources.list", folder / "status"
    sources.write_text(f"deb {kernels.MIRROR} {suite} main\n")
    status.write_text("")
    options = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "root",
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::State::status": status,
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
    }
    apt = ["apt-get", "-q", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    workloads.run([*apt, "update"])
    workloads.run([*apt, "install", "-y", "--download-only", "--no-install-recommends", *packages])
    return sorted((folder / "cache/archives").glob("*.deb"), key=lambda path: not path.name.startswith("base-files_"))


def unpacked() -> None:
    """Make the disk of the machine."""
    with workloads.locked("aarch64"):
        if (FOLDER / "done").exists():
            return
        shutil.rmtree(SYSTEM, ignore_errors=True)
        for package in download(SUITE, list(PACKAGES), FOLDER):
            workloads.run(["dpkg-deb", "-x", package, SYSTEM])
        complete(SYSTEM)
        make_disk()
        (FOLDER / "done").touch()


def kernel(suite: str) -> pathlib.Path:
    """The folder of a suite's kernel, with `system` in it."""
    folder = FOLDER / "kernels" / suite
    with workloads.locked("aarch64"):
        if not (folder / "done").exists():
            for package in download(suite, ["linux-image-cloud-arm64"], folder):
                if package.name.startswith("linux-"):
                    workloads.run(["dpkg-deb", "-x", package, folder / "system"])
            (folder / "done").touch()
    return folder


def complete(system: pathlib.Path) -> None:
    """Do what the scripts of the packages would do, as far as a start needs it."""
    for name in ("passwd", "group"):
        shutil.copy(system / f"usr/share/base-passwd/{name}.master", system / f"etc/{name}")
    (system / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (system / "etc/hostname").write_text("aarch64\n")
    (system / "etc/localtime").symlink_to("/usr/share/zoneinfo/Etc/UTC")
    (system / "usr/bin/awk").symlink_to("gawk")
    (system / "usr/bin/cc").symlink_to("gcc")
    certificates = sorted((system / "usr/share/ca-certificates").rglob("*.crt"))
    (system / "etc/ssl/certs/ca-certificates.crt").write_bytes(b"".join(path.read_bytes() for path in certificates))


def make_disk() -> None:
    """The disk of the machine: files that it shares with this one would take several times as long to open."""
    (SYSTEM / str(ROOT).lstrip("/")).mkdir(parents=True, exist_ok=True)
    disk = FOLDER / "disk"
    with open(disk, "wb") as file:
        file.truncate(DISK)
    workloads.run(["mke2fs", "-q", "-t", "ext4", "-d", SYSTEM, disk])


def run_there(script: str, name: str, suite: str = SUITE, cpu: str = CPU, seconds: int = SECONDS) -> pathlib.Path:
    """Run a shell script on that machine, in this tree. Returns the folder with its output (`out`) and its `status`."""
    folder = ROOT / "target/aarch64" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "body").write_text(f"cd {shlex.quote(str(ROOT))}\n{script}\n")
    (folder / "script").write_text(
        f"mount -t tmpfs tmpfs /tmp; hostname aarch64\nbash {folder}/body < /dev/null > {folder}/out 2>&1; echo $? > {folder}/status\n"
    )
    linux = kernel(suite)
    line = f"console=ttyAMA0 quiet panic=-1 DISK=/dev/vda TREE={ROOT} SCRIPT={folder}/script"
    emulator = ["qemu-system-aarch64", "-M", "virt", "-cpu", cpu, "-smp", len(os.sched_getaffinity(0))]
    emulator += ["-drive", f"file={FOLDER}/disk,format=raw,if=none,id=disk", "-device", "virtio-blk-pci,drive=disk"]
    emulator += ["-kernel", kernels.kernel_file(linux), "-append", line]
    emulator += ["-initrd", kernels.initial_files(linux, ARCHITECTURE.compiler, MODULES)]
    kernels.emulate(emulator, folder / "machine", ROOT, MEMORY, seconds, folder / "out")
    if not (folder / "status").exists():
        raise Unavailable(f"the machine has not run the script; see {folder}/machine.console")
    return folder


def there(commands: kernels.Commands, name: str, suite: str = SUITE, cpu: str = CPU) -> dict[str, tuple[int, str]]:
    """Status and output of commands on that machine. `name`: of the folder with its results."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    lines = kernels.script_lines(commands, ROOT / "target/aarch64" / name, environment)
    return kernels.outcomes_in(run_there("\n".join(["mkdir -p /var/images", *lines]), name, suite, cpu), commands)


def installed_there(tried: kernels.Counted) -> None:
    """Install wheel and gem on that machine."""
    wheel, gem = (next(PACKAGES_FOLDER.glob(pattern)) for pattern in ("*.whl", "*.gem"))
    venv, gems = SNAPBOOT.parent.parent, "/var/gems"
    # The disk may have those of another try.
    pip = f"rm -rf {venv} && python3 -m venv {venv} && {venv}/bin/pip -q install --no-index {wheel} && {SNAPBOOT} --version"
    install = f"rm -rf {gems} && gem install -q --no-document --local --install-dir {gems} {gem}"
    install += f" && GEM_HOME={gems} {gems}/bin/snapboot --version"
    commands = {"wheel": (["sh", "-c", pip], {}), "gem": (["sh", "-c", install], {})}
    for name, (status, text) in there(commands, "installed").items():
        tried.check(name, status == 0 and "\nsnapboot " in f"\n{text}", "installed", f"status {status}, {text!r}")


def frozen_there(programs: list[str], tried: kernels.Counted) -> dict[str, tuple[int, str]]:
    """Freeze the programs, thaw them, and compare. Returns what ordinary starts of those show that could be frozen."""
    commands = {}
    for name in programs:
        command, image = [PROGRAMS[name], str(ROOT / "tools/aarch64" / name)], f"/var/images/{name}"
        commands[f"{name}-ordinary"] = ([*command, *ARGUMENTS], {})
        commands[f"{name}-freeze"] = ([str(SNAPBOOT), "freeze", "-q", "-o", image, "--", *command], {})
        commands[f"{name}-first"] = commands[f"{name}-second"] = ([image, *ARGUMENTS], STRICT)
    commands["level"] = ([str(SNAPBOOT), "freeze", "--cpu", "v3", "-o", "/tmp/level", "--", "python3"], {})
    outcomes, frozen = there(commands, "frozen"), {}
    for name in programs:
        ordinary, freeze, first, second = (outcomes[f"{name}-{what}"] for what in ("ordinary", "freeze", "first", "second"))
        if freeze[0]:
            tried.check(name, False, "", f"cannot be frozen: {freeze[1]}")
            continue
        frozen[name] = ordinary
        if name.startswith("draws"):
            lines = [line for _, text in (ordinary, first, second) for line in text.splitlines()]
            differ = ordinary[0] == first[0] == second[0] == 0 and len(set(lines)) == len(lines) > 0
            tried.check(name, differ, "no number twice", f"THE SAME NUMBERS, or none: {first}, {second}")
        else:
            tried.add(name, first, ordinary)
            tried.add(f"{name}, once more", second, ordinary)
    status, text = outcomes["level"]
    tried.check("an image for v3", status != 0 and "level of x86-64" in text, "refused", f"status {status}, {text!r}")
    return frozen


def thawed_elsewhere(expected: dict[str, tuple[int, str]], tried: kernels.Counted) -> None:
    """Thaw the images under other kernels, and on a CPU that lacks features."""
    compared = [name for name in expected if not name.startswith("draws")]
    thaws = {name: ([f"/var/images/{name}", *ARGUMENTS], STRICT) for name in compared}
    for suite in OTHER_KERNELS:
        for name, outcome in there(thaws, f"kernel-{suite}", suite).items():
            tried.add(f"{name}, kernel of {suite}", outcome, expected[name])
    logged = {name: (argv, {"SNAPBOOT_LOG": "1"}) for name, (argv, _) in thaws.items()}
    for name, (status, text) in there(logged, "lesser-cpu", cpu=LESSER_CPU).items():
        is_told = cpus.STALE in text and text.endswith(expected[name][1]) and status == expected[name][0]
        tried.check(f"{name}, on {LESSER_CPU}", is_told, text.partition("\n")[0], f"ANOTHER: status {status}, {text!r}")


def tested_there(name: str, words: list[str], reports: pathlib.Path) -> dict:
    """Run a command that leaves reports of pytest in a folder. `name`: of the folder with the results. Returns what `results.summed`
    returns."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8", "SNAPBOOT": str(SNAPBOOT)}
    variables = [f"{variable}={value}" for variable, value in environment.items()]
    try:
        run_there(shlex.join(["env", "-i", *variables, "/usr/bin/python3", *words]), name, seconds=PYTEST_SECONDS)
    except Unavailable as reason:
        # What has run until then counts.
        print(f"  {name}: {reason}")
    counted = [results.counted(report) for report in sorted(reports.glob("*.xml"))]
    if not counted:
        raise Unavailable(f"pytest wrote no report; see target/aarch64/{name}/out")
    return results.summed(counted)


def behaviour_there(share: int) -> dict:
    """Freeze and thaw one in `share` of the behaviour cases there. What was not run, for the machine was ended, is counted as such."""
    reports = ROOT / "target/aarch64/behaviour/reports"
    words = ["tools/behaviour_sample.py", "--share", str(share), "--commit", results.commit(), str(reports)]
    found = tested_there("behaviour", words, reports)
    chosen = len(json.loads((reports / behaviour_sample.LISTED).read_text()))
    left = chosen - found["passed"] - len(found["failed"]) - sum(found["not run"].values())
    return {**found, "not run": {**found["not run"], **({"the machine was ended": left} if left else {})}}


def images_there() -> dict:
    """Run a sample of TESTS there."""
    reports = ROOT / "target/aarch64/images/reports"
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml={reports}/images.xml", "--deselect", OF_X86]
    return tested_there("images", ["-m", "pytest", *options, *TESTS], reports)


def main() -> int:
    words, command = sys.argv[1:], []
    if "--" in words:
        words, command = words[: words.index("--")], words[words.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help=f"some of {', '.join(PROGRAMS)}; none: no program")
    parser.add_argument("--quick", action="store_true", help="the programs alone")
    parser.add_argument("--share", type=int, default=1, help="one in so many behaviour cases (default: %(default)s)")
    options = parser.parse_args(words)
    programs = [name for name in options.programs or PROGRAMS if name != "none"]
    try:
        workloads.install_debian_packages(("qemu-system-arm",))
        unpacked()
        packages.make(list(packages.KINDS), ARCHITECTURE, PACKAGES_FOLDER)
        if command:
            folder = run_there(" ".join(command), "command")
            print((folder / "out").read_text(), end="")
            return int((folder / "status").read_text())
        tried, parts = kernels.Counted(), {}
        installed_there(tried)
        if programs:
            thawed_elsewhere(frozen_there(programs, tried), tried)
            parts["programs"] = tried.result
        if not options.quick:
            parts["behaviour"], parts["images"] = behaviour_there(options.share), images_there()
            print(f"  behaviour cases: {results.figure(parts['behaviour'])}, tests of images: {results.figure(parts['images'])}")
    except Unavailable as reason:
        print(f"cannot try: {reason}", file=sys.stderr)
        return 1
    platforms.store("architecture", "aarch64", "aarch64, three kernels and two CPUs", parts)
    platforms.write()
    return 1 if any(result["failed"] for result in (tried.result, *parts.values())) else 0


if __name__ == "__main__":
    sys.exit(main())
