#!/usr/bin/env python3
"""Tries images under other kernels: Debian's cloud kernels in QEMU, emulated, with this machine's files as their root (virtiofs).

    tools/kernels.py           all of KERNELS
    tools/kernels.py sid       some
    tools/kernels.py --quick   without the behaviour cases, and only the smallest program is frozen there

What is frozen here is thawed there. What is frozen there (BOTH_WAYS alone: a freeze boots a program many times, and a boot takes the
emulator a minute) is thawed here and there. Each must print what an ordinary start prints here, and none may fall back. Then a part of
the behaviour cases (tools/behaviour_sample.py), with images that were made here. Kernels are unpacked in .work/kernels, never installed.
The results are in the README's table (tools/platforms.py).
"""

import argparse
import dataclasses
import json
import lzma
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import time

import behaviour_sample
import platforms
import results
import workloads
from workloads import Unavailable

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = workloads.WORK / "kernels"
MIRROR = "http://deb.debian.org/debian"
SNAPBOOT = ROOT / "target/release/snapboot"
SECONDS = 3600  # emulated machines are slow
MEMORY = 2048  # MiB
BOOTS = 3  # an emulated kernel may panic or hang while it patches its own code
BOOT_SECONDS = 300
VIRTIOFSD = ("/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd")
# Built into some of the kernels; in the order in which they need each other.
MODULES = ("virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "fuse", "virtiofs")


@dataclasses.dataclass
class Kernel:
    """A suite of Debian whose kernel it is, what its command line has besides, and the model and number of emulated CPUs."""

    suite: str
    options: str = ""
    cpu: str = "max"
    count: int = os.cpu_count() or 1


KERNELS = {
    "bullseye": Kernel("bullseye"),
    "bookworm": Kernel("bookworm"),
    "trixie": Kernel("trixie"),
    "trixie-without-vdso": Kernel("trixie", "vdso=0"),
    "sid": Kernel("sid"),
}

# What is frozen there, too.
BOTH_WAYS = ("hello", "ruby")

HELLO = """\
import datetime, json, random, time
def main():
    begun, now = time.monotonic(), time.time()
    print('hello', json.dumps([1, 2]), begun > 0, now > 1e9, datetime.datetime.now().year > 2000, time.monotonic() >= begun)
    print(len({random.random() for _ in range(9)}))
if __name__ == '__main__':
    main()
"""
WEB = """\
import flask, pymongo, requests
app = flask.Flask(__name__)
@app.route('/')
def index():
    return 'hello from flask'
if __name__ == '__main__':
    print(app.test_client().get('/').data, requests.Request('GET', 'http://localhost/').prepare().url)
"""
MATRIX = """\
import numpy as np
if __name__ == '__main__':
    a = np.arange(250000.0).reshape(500, 500)
    print((a @ a).sum(), np.sort(a.ravel()[::-1])[:3], np.exp(a[0, :3]))
"""
RUBY = """\
require 'json'
require 'set'
now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
later = Process.clock_gettime(Process::CLOCK_MONOTONIC)
puts ['hello', JSON.generate([1, 2]), Time.now.year > 2000, later >= now, Random.urandom(4).size].inspect
"""


def programs(wanted: tuple[str, ...] | list[str] = ()) -> dict[str, tuple[list[str], list[str]]]:
    """Options of the freeze and command, of each program of these names, or of all, that can be had here."""
    folder = FOLDER / "programs"
    folder.mkdir(parents=True, exist_ok=True)

    def script(name: str, text: str) -> str:
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        return str(path)

    def ruby() -> tuple[list[str], list[str]]:
        workloads.install_debian_packages(("ruby",))
        return ["--preload", "json,set"], ["ruby", script("hello.rb", RUBY)]

    def rails() -> tuple[list[str], list[str]]:
        application = pathlib.Path(workloads.prepare("rails")["dir"])
        code = "puts [1, Rails.env, Rails.version].inspect"
        return ["--preload", str(application / "config/environment")], [str(application / "bin/rails"), "runner", code]

    makers = {
        "hello": lambda: (["--preload", "json,random,datetime"], [sys.executable, "-I", script("hello.py", HELLO)]),
        "web": lambda: ([], [workloads.prepare("web")["python"], script("web.py", WEB)]),
        "matrix": lambda: ([], [workloads.prepare("pandas")["python"], script("matrix.py", MATRIX)]),
        "ruby": ruby,
        "rails": rails,
    }
    found = {}
    for name, make in makers.items():
        if wanted and name not in wanted:
            continue
        try:
            found[name] = make()
        except Unavailable as reason:
            print(f"{name}: {reason}")
    return found


def unpacked(suite: str) -> pathlib.Path:
    """A folder with the newest cloud kernel of a suite, and its modules."""
    folder = FOLDER / suite
    with workloads.locked("kernels"):
        if (folder / "done").exists():
            return folder
        for name in ("lists/partial", "cache/archives/partial", "debs"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        sources = folder / "sources.list"
        sources.write_text(f"deb {MIRROR} {suite} main\n")
        options = {
            "Dir::Etc::sourcelist": sources,
            "Dir::Etc::sourceparts": "-",
            "Dir::State::lists": folder / "lists",
            "Dir::Cache": folder / "cache",
            "APT::Sandbox::User": "root",
        }
        apt = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        workloads.run(["apt-get", *apt, "update"])

        def needed(package: str, pattern: str) -> list[str]:
            done = subprocess.run(["apt-cache", *apt, "depends", package], capture_output=True, text=True)
            return re.findall(rf"Depends: (linux-(?:{pattern})-\d\S*)", done.stdout)

        images = needed("linux-image-cloud-amd64", "image")
        if not images:
            raise Unavailable(f"{MIRROR} names no kernel for {suite}")
        workloads.run(["apt-get", *apt, "download", *images, *needed(images[0], "binary|modules")], cwd=folder / "debs")
        for package in (folder / "debs").glob("*.deb"):
            workloads.run(["dpkg-deb", "-x", package, folder / "system"])
        (folder / "done").touch()
    return folder


def kernel_file(folder: pathlib.Path) -> pathlib.Path:
    found = [path for path in (folder / "system").rglob("vmlinuz*") if path.is_file()]
    if not found:
        raise Unavailable(f"the package in {folder} has no kernel")
    return found[0]


def initial_files(folder: pathlib.Path, compiler: str = "cc", modules: tuple[str, ...] = ()) -> pathlib.Path:
    """The archive of files that the kernel starts with: init, and the modules for its root."""
    init = folder / "init"
    workloads.run([compiler, "-static", "-O1", "-o", init, ROOT / "tools/kernels/init.c"])
    directories = [(name, b"", 0o040755, (0, 0)) for name in ("root", "dev", "modules")]
    files = [("init", init.read_bytes(), 0o100755, (0, 0)), ("dev/console", b"", 0o020600, (5, 1))]
    listed = []
    for name in (*MODULES, *modules):
        for path in (folder / "system").rglob(f"{name}.ko*"):
            content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
            listed.append(f"/modules/{name}.ko\n")
            files.append((f"modules/{name}.ko", content, 0o100644, (0, 0)))
    files.append(("modules/list", "".join(listed).encode(), 0o100644, (0, 0)))
    entries = enumerate([*directories, *files, ("TRAILER!!!", b"", 0, (0, 0))], 1)
    archive = folder / "initial.cpio"
    archive.write_bytes(b"".join(cpio_entry(number, *entry) for number, entry in entries))
    return archive


def cpio_entry(number: int, name: str, content: bytes, mode: int, device: tuple[int, int]) -> bytes:
    """A file as the kernel reads it (buffer-format.rst, "newc")."""
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
    return b"".join(part + b"\0" * (-len(part) % 4) for part in (head, content))


def run_under(name: str, script: pathlib.Path) -> None:
    """Run a shell script under a kernel, with this machine's files as root. Raises Unavailable where that does not work."""
    kernel = KERNELS[name]
    folder = unpacked(kernel.suite)
    boot = ["-kernel", kernel_file(folder), "-initrd", initial_files(folder)]
    boot += ["-append", f"console=ttyS0 quiet panic=-1 SCRIPT={script} {kernel.options}"]
    words = ["qemu-system-x86_64", "-M", "q35", "-cpu", kernel.cpu, "-smp", kernel.count, *boot]
    emulate(words, FOLDER / name, "/", MEMORY, SECONDS, script.with_name("release"))


def emulate(emulator: list, log: pathlib.Path, source: os.PathLike | str, memory: int, seconds: int, sign: pathlib.Path) -> None:
    """Run an emulator with these words until its machine is off. The machine has `memory` MiB, and the files below `source`, by virtiofs,
    under the tag `root`. Its console is written to `log` with `.console`. `sign`: what the machine writes first; one that has not done so
    after BOOT_SECONDS hangs, and is ended. Raises Unavailable where the emulator does not work, or after `seconds`.
    """
    daemon = next((path for path in VIRTIOFSD if os.path.exists(path)), None)
    if daemon is None:
        raise Unavailable("virtiofsd is not installed")
    socket = FOLDER / f"socket.{os.getpid()}"
    FOLDER.mkdir(parents=True, exist_ok=True)
    machine = ["-accel", "tcg", "-m", memory, "-nodefaults", "-no-reboot", "-display", "none"]
    machine += ["-serial", f"file:{log}.console", "-object", f"memory-backend-memfd,id=memory,size={memory}M,share=on"]
    machine += ["-numa", "node,memdev=memory", "-chardev", f"socket,id=share,path={socket}"]
    machine += ["-device", "vhost-user-fs-pci,chardev=share,tag=root"]
    serve = [daemon, f"--socket-path={socket}", "-o", f"source={source}", "-o", "sandbox=chroot", "-o", "cache=auto"]
    with open(f"{log}.virtiofsd", "wb") as told:
        share_files = subprocess.Popen(serve, stdout=told, stderr=told)
    try:
        for _ in range(100):
            if socket.exists() or share_files.poll() is not None:
                break
            time.sleep(0.1)
        words = [str(word) for word in (*emulator, *machine)]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
            said = ended_by(running, BOOT_SECONDS)
            if said is None and sign.exists():
                said = ended_by(running, seconds - BOOT_SECONDS)
            running.kill()
        if said is None and sign.exists():
            raise Unavailable(f"it took longer than {seconds} s; see {log}.console")
        if said and running.returncode > 0:
            raise Unavailable(f"the emulator says: {said[-500:]}")
    finally:
        share_files.terminate()
        share_files.wait()
        socket.unlink(missing_ok=True)


def ended_by(running: subprocess.Popen, seconds: int) -> str | None:
    """What an emulator says that ends within so many seconds; None for one that does not."""
    try:
        return running.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        return None


def environment(**extra: str) -> dict[str, str]:
    """That of every start, here and there."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(FOLDER), "LANG": "C.UTF-8", "RAILS_ENV": "production", **extra}


def freezing(options: list[str], command: list[str], image: pathlib.Path) -> list[str]:
    return [str(SNAPBOOT), "freeze", "-q", *options, "-o", str(image), "--", *command]


def ordinary(command: list[str]) -> tuple[int, str]:
    """What an ordinary start shows on this machine. Raises Unavailable where it fails: then there is nothing to compare."""
    status, text = here(command)
    if status:
        raise Unavailable(f"{shlex.join(command)} ends with status {status} here: {text}")
    return status, text


def here(argv: list[str], **extra: str) -> tuple[int, str]:
    """Status and output of a command on this machine."""
    done = subprocess.run(
        argv, env=environment(**extra), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, done.stdout


Commands = dict[str, tuple[list[str], dict[str, str]]]  # by name: the words, and variables besides


def script_lines(commands: Commands, folder: pathlib.Path, environment: dict[str, str]) -> list[str]:
    """The lines of a shell script that runs commands elsewhere, and leaves output and status of each in a folder."""
    lines = []
    for key, (argv, extra) in commands.items():
        variables = [f"{variable}={value}" for variable, value in {**environment, **extra}.items()]
        words = shlex.join(["env", "-i", *variables, *argv])
        lines.append(f"{words} < /dev/null > {folder}/{key}.out 2>&1; echo $? > {folder}/{key}.status")
    return lines


def outcomes_in(folder: pathlib.Path, commands: Commands) -> dict[str, tuple[int, str]]:
    """Status and output of each of the commands of such a script."""
    read = {}
    for key in commands:
        status = folder / f"{key}.status"
        known = status.exists() and status.read_text().strip()
        read[key] = (int(known), (folder / f"{key}.out").read_text()) if known else (-1, "it did not end")
    return read


def limits() -> list[str]:
    """The lines of a shell script that set the limit of open files as it is here: a boot may have read it, and then images depend on it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return [f"ulimit -{kind} -n {'unlimited' if limit == resource.RLIM_INFINITY else limit}" for kind, limit in (("H", hard), ("S", soft))]


def there(name: str, commands: Commands) -> dict[str, tuple[int, str]]:
    """The same of several commands, under another kernel."""
    folder = FOLDER / f"{name}.run"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    script = folder / "script"
    first = [f"uname -r > {folder}/release", *limits()]
    script.write_text("\n".join([*first, *script_lines(commands, folder, environment())]) + "\n")
    for _ in range(BOOTS):
        run_under(name, script)
        if (folder / "release").exists():
            break
    else:
        raise Unavailable(f"{name} did not boot; see {FOLDER / name}.console")
    return {"release": (0, (folder / "release").read_text().strip()), **outcomes_in(folder, commands)}


class Counted:
    """Results of one platform: how many were as expected, and the names of the others. Prints a line for each."""

    def __init__(self):
        self.result = {"passed": 0, "failed": []}

    def add(self, what: str, got: tuple[int, str], expected: tuple[int, str]) -> None:
        """Count a result that should be the expected one."""
        self.check(what, got == expected, "the same", f"ANOTHER: status {got[0]}, {got[1]!r}")

    def check(self, what: str, is_right: bool, right: str, wrong: str) -> None:
        """Count a result, and print what is said of right or wrong ones."""
        print(f"  {what:34} {right if is_right else wrong}", flush=True)
        if is_right:
            self.result["passed"] += 1
        else:
            self.result["failed"].append(what)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", help=f"some of {', '.join(KERNELS)}")
    only = "some programs; none: no program, the behaviour cases alone"
    parser.add_argument("--only", metavar="PROGRAM,...", type=lambda text: text.split(","), default=[], help=only)
    parser.add_argument("--quick", action="store_true", help="without the behaviour cases, and only hello is frozen there")
    parser.add_argument("--share", type=int, default=behaviour_sample.SHARE, help="one in so many behaviour cases (default: %(default)s)")
    options = parser.parse_args()
    good = True
    try:
        workloads.install_debian_packages(("qemu-system-x86",))
        sample = None if options.quick else behaviour_sample.Sample(FOLDER / "behaviour", environment(), options.share)
        if sample:
            made = sample.make_images()
            print(f"behaviour cases here: {results.figure(made)}")
        frozen = frozen_here(options.only)
        for name in options.kernels or list(KERNELS):
            parts = try_kernel(name, frozen, sample)
            good &= not any(result["failed"] for result in parts.values())
    except Unavailable as reason:
        print(f"cannot try: {reason}", file=sys.stderr)
        return 1
    platforms.write()
    return 0 if good else 1


def is_for_level(image: pathlib.Path) -> bool:
    """Whether an image is for a level of CPUs. The emulated CPU lacks features that this one may have."""
    shown = subprocess.run([SNAPBOOT, "inspect", "--json", image], capture_output=True, text=True)
    return json.loads(shown.stdout)["cpu"] != "native"


@dataclasses.dataclass
class Program:
    """A program, with its image of this machine: options of the freeze, command, image, whether that can thaw on an emulated CPU, and what
    an ordinary start shows here."""

    options: list[str]
    command: list[str]
    image: pathlib.Path
    is_for_level: bool
    expected: tuple[int, str]


def frozen_here(wanted: list[str]) -> dict[str, Program]:
    """Freezes the programs of these names, or all. Raises Unavailable where that fails."""
    folder = FOLDER / "images"
    folder.mkdir(parents=True, exist_ok=True)
    frozen = {}
    for name, (options, command) in programs(wanted).items():
        image = folder / f"{name}.img"
        status, text = here(freezing(options, command, image))
        if status:
            raise Unavailable(f"{name} cannot be frozen here: {text}")
        frozen[name] = Program(options, command, image, is_for_level(image), ordinary(command))
    return frozen


def try_kernel(name: str, frozen: dict[str, Program], sample: behaviour_sample.Sample | None) -> dict[str, dict]:
    """Try programs, and a sample of behaviour cases, under one kernel. Returns the stored results."""
    strict = {"SNAPBOOT_ON_STALE": "error"}
    commands, programs_there, both_ways = {}, Counted(), BOTH_WAYS if sample else BOTH_WAYS[:1]
    theirs = FOLDER / f"{name}.images"
    theirs.mkdir(parents=True, exist_ok=True)
    for program, of in frozen.items():
        if of.is_for_level:
            commands[f"{program}-thawed"] = ([str(of.image)], strict)
        else:
            print(f"  {program}: its image wants all features of this CPU, which the emulated one has not")
        if program in both_ways:
            (theirs / f"{program}.img").unlink(missing_ok=True)
            commands[f"{program}-freeze"] = (freezing(of.options, of.command, theirs / f"{program}.img"), {})
            commands[f"{program}-own"] = ([str(theirs / f"{program}.img")], strict)
    report = FOLDER / f"{name}.xml"
    report.unlink(missing_ok=True)
    if sample:
        commands["behaviour"] = sample.command(report)
    outcomes = there(name, commands)
    release = outcomes["release"][1]
    print(f"{name}: Linux {release}")
    for program, of in frozen.items():
        wanted = of.expected
        if f"{program}-thawed" in commands:
            programs_there.add(f"{program}, frozen here", outcomes[f"{program}-thawed"], wanted)
        if program not in both_ways:
            continue
        status, text = outcomes[f"{program}-freeze"]
        if status:
            programs_there.add(f"{program}, frozen there", (status, text), wanted)
            continue
        programs_there.add(f"{program}, frozen there", outcomes[f"{program}-own"], wanted)
        programs_there.add(f"{program}, frozen there, thawed here", here([str(theirs / f"{program}.img")], **strict), wanted)
    parts = {"programs": programs_there.result} if frozen else {}
    if sample:
        if not report.exists():
            raise Unavailable(f"pytest wrote no report under {name}: {outcomes['behaviour'][1][-2000:]}")
        parts["behaviour"] = results.counted(report)
        print(f"  behaviour cases: {results.figure(parts['behaviour'])}")
    without = f" ({KERNELS[name].options})" if KERNELS[name].options else ""
    platforms.store("kernel", name, f"Linux {release}{without}", parts)
    return parts


if __name__ == "__main__":
    sys.exit(main())
