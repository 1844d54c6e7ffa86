"""Another user on the same machine: what he can plant where, in a scene of a victim's and an attacker's folders."""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess

from common import support
from common.waiting import wait_until

ATTACKER = support.NOBODY
# Only a command that hangs takes so long, whatever else the machine does.
PATIENCE = 120
MAGIC_AT = 8192
NAME = "tool"
SECRET = "correct horse battery staple"
# renameat2(2)
RENAME_EXCHANGE = 2
AT_FDCWD = -100


class Scene:
    """The folders of both: `top` holds `home`, the victim's; `evil`, the attacker's; `shared`, as /tmp is; and `marks`, where the
    attacker's code leaves a file when it runs, with the number of the user who runs it."""

    def __init__(self, top, user):
        self.top, self.user = top, user
        self.home, self.evil, self.shared, self.marks = (top / name for name in ("home", "evil", "shared", "marks"))
        for folder, owner, mode in (
            (self.home, user, 0o755), (self.evil, ATTACKER, 0o755), (self.shared, 0, 0o1777), (self.marks, 0, 0o1777),
        ):
            folder.mkdir()
            folder.chmod(mode)
            os.chown(folder, owner, owner)
        (self.home / "bin").mkdir()
        self.tool = self.own(self.home / "tool.py", f"import sys\nprint('right', sys.argv[1:])\nSECRET = {SECRET!r}\n")
        self.python = support.public_python()

    def env(self, **variables):
        """The environment of the victim, with a store of his own."""
        own = {"HOME": str(self.home), "PATH": f"{self.home}/bin:/usr/bin:/bin", "SNAPBOOT_STATE": None, "SNAPBOOT_STORE": None}
        return support.environment(**{**own, **variables})

    def start(self, *words, cwd=None, **variables):
        """What becomes of a command of the victim. Fails where it hangs."""
        argv = [os.fspath(word) for word in words]
        if self.user:
            argv = ["setpriv", "--reuid", str(self.user), "--regid", str(self.user), "--clear-groups", "--inh-caps=-all", *argv]
        done = subprocess.run(
            argv, env=self.env(SNAPBOOT_LOG="1", **variables), cwd=cwd or self.home, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, umask=0o022,
        )
        result = support.Result(done)
        support.no_signal(result)
        return result

    def snapboot(self, *words, **more):
        """The same of `snapboot WORDS`."""
        return self.start(support.SNAPBOOT, *words, **more)

    def own(self, path, text="", owner=None, mode=0o644):
        """Writes a file of the victim, or of somebody else."""
        owner = self.user if owner is None else owner
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        path.chmod(mode)
        os.chown(path, owner, owner)
        return path

    def theirs(self, path, text="", mode=0o755):
        """Writes a file of the attacker."""
        return self.own(path, text, ATTACKER, mode)

    def code(self):
        """A script that leaves a mark, with what makes Snapboot take it for an image."""
        script = f"#!/bin/sh\n: > {self.marks}/$$-by-$(id -u)\necho wrong\nexit\n".encode()
        return script.ljust(MAGIC_AT, b"#") + b"\0SNAPBT\n" + bytes(1 << 16)

    def marked(self):
        """Marks of the attacker's code, run by the victim."""
        return [path.name for path in self.marks.iterdir()]

    def left_in_evil(self):
        """What the victim has made in the attacker's folders."""
        found = [self.evil, *self.evil.rglob("*")]
        return [str(path) for path in found if path.lstat().st_uid == self.user and path.name not in KEPT]


# Files of the victim that an attack itself has put into the attacker's folders.
KEPT = {"victims", "victims-store"}


def builders(scene):
    """The numbers of processes that make images for starts of the scene, or are about to."""
    for number in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words, variables = ((pathlib.Path("/proc") / number / name).read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            continue
        if words.split(b"\0")[1:2] in ([b"build-image"], [b"learn"], [b"run"]) and str(scene.evil.parent).encode() in words + variables:
            yield number


def clean(scene):
    """Empties the attacker's folders and the shared one, when nobody makes an image there any more."""
    wait_until(lambda: not any(builders(scene)), "a builder goes on")
    for folder in (scene.evil, scene.shared, scene.marks):
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name in (".cache", ".local", "bin"):
        shutil.rmtree(scene.home / name, ignore_errors=True)
    (scene.home / "bin").mkdir()


def plant(scene, kind, path):
    """Puts something of the attacker's there."""
    if kind == "code":
        scene.theirs(path, scene.code())
    elif kind == "pipe":
        os.mkfifo(path)
        os.lchown(path, ATTACKER, ATTACKER)
    elif kind == "folder":
        path.mkdir()
        os.chown(path, ATTACKER, ATTACKER)
    elif kind == "link to code":
        path.symlink_to(scene.theirs(scene.evil / "hidden", scene.code()))
        os.lchown(path, ATTACKER, ATTACKER)
    elif kind == "link to a pipe":
        plant(scene, "pipe", scene.evil / "hidden")
        path.symlink_to(scene.evil / "hidden")
        os.lchown(path, ATTACKER, ATTACKER)
    elif kind == "link to itself":
        path.symlink_to(path.name)
        os.lchown(path, ATTACKER, ATTACKER)
    else:
        raise ValueError(kind)


def give(folder, owner):
    """Gives a tree to somebody."""
    for path in (folder, *folder.rglob("*")):
        os.lchown(path, owner, owner)


def built(scene):
    """The victim's store with an image of his tool, made in a safe place. Returns it."""
    store = scene.home / "store"
    words = [support.SNAPBOOT, "run", "--", scene.python, scene.tool]
    scene.start(*words, SNAPBOOT_STORE=str(store))

    def state():
        return json.loads(scene.snapboot("list", "--json", SNAPBOOT_STORE=str(store)).out)[0]["state"]

    def is_fresh():
        if state() == "failed":  # files changed under its hands: the next start tries again
            for attempt in store.glob("cache/*/attempt.json"):
                attempt.unlink()
            scene.start(*words, SNAPBOOT_STORE=str(store))
        return state() == "fresh"

    wait_until(is_fresh, state)
    return store


def exchange(one, other):
    """Swaps two names, at once."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2")


class Swapping:
    """Swaps two names again and again, as the attacker, until the end of the block."""

    def __init__(self, one, other):
        self.words = [one, other]

    def __enter__(self):
        program = (
            "import ctypes, os, sys\n"
            f"os.setgroups([]); os.setgid({ATTACKER}); os.setuid({ATTACKER})\n"
            "libc = ctypes.CDLL(None)\n"
            "one, other = map(os.fsencode, sys.argv[1:])\n"
            "print('goes', flush=True)\n"
            f"while True: assert libc.renameat2({AT_FDCWD}, one, {AT_FDCWD}, other, {RENAME_EXCHANGE}) == 0\n"
        )
        python = support.public_python()
        self.process = subprocess.Popen([python, "-c", program, *map(str, self.words)], stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"goes\n"
        return self

    def __exit__(self, *_):
        assert self.process.poll() is None, "it swaps to the end"
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
