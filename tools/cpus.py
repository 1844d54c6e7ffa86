#!/usr/bin/env python3
"""Tries images for levels of CPUs on models of CPUs that QEMU emulates, under a kernel of Debian, as tools/kernels.py does.

    tools/cpus.py              all of MODELS
    tools/cpus.py EPYC Haswell some

Images for v2 and v3 are made here. On a model with the level each must print what an ordinary start prints here, and may not fall back.
On a model without the level each must start the ordinary way, name a feature that is missing, and print the same. The emulator has no
AVX-512, so v4 is not tried.
"""

import argparse
import sys

import kernels
import platforms
import workloads
from workloads import Unavailable

SUITE = "bookworm"  # the kernel
LEVELS = ("v2", "v3")
# The levels of each model. Nehalem has x86-64-v2, but neither AES nor PCLMULQDQ.
MODELS = {
    "Nehalem": (),
    "Westmere": ("v2",),
    "IvyBridge": ("v2",),
    "Opteron_G5": ("v2",),
    "Denverton": ("v2",),
    "Haswell": ("v2", "v3"),
    "Skylake-Server": ("v2", "v3"),
    "Icelake-Server": ("v2", "v3"),
    "EPYC": ("v2", "v3"),
    "EPYC-Rome": ("v2", "v3"),
    "EPYC-Milan": ("v2", "v3"),
}
STALE = "the image was made for a CPU with a feature that this one lacks"

CRYPTO = """\
import hashlib, ssl
if __name__ == '__main__':
    print([hashlib.new(name, b'a' * 100000).hexdigest()[:16] for name in ('sha1', 'sha256', 'sha512', 'sha3_256')], len(ssl.RAND_bytes(9)))
"""
RUBY_CRYPTO = """\
require 'openssl'
%w[aes-256-gcm chacha20-poly1305].each do |name|
  cipher = OpenSSL::Cipher.new(name).encrypt
  cipher.key, cipher.iv = 'k' * 32, 'n' * 12
  puts OpenSSL::Digest.hexdigest('SHA256', cipher.update('a' * 100_000) + cipher.final + cipher.auth_tag)
end
"""


def programs() -> dict[str, tuple[list[str], list[str]]]:
    """Options of the freeze and command, of each program that can be had here: those for other kernels, and two that encrypt."""
    found = kernels.programs()
    python, ruby = kernels.FOLDER / "programs/crypto.py", kernels.FOLDER / "programs/crypto.rb"
    python.write_text(CRYPTO)
    ruby.write_text(RUBY_CRYPTO)
    found["crypto"] = (["--preload", "hashlib,ssl"], [sys.executable, "-I", str(python)])
    if "ruby" in found:
        found["ruby-crypto"] = (["--preload", "openssl"], ["ruby", str(ruby)])
    return found


def freeze(level: str) -> dict[str, tuple[str, tuple[int, str]]]:
    """Makes the images for a level. Returns the path of each, and what an ordinary start of its program prints here."""
    folder = kernels.FOLDER / "cpus"
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for program, (options, command) in programs().items():
        image = folder / f"{program}-{level}.img"
        status, text = kernels.here([str(kernels.SNAPBOOT), "freeze", "-q", "--cpu", level, *options, "-o", str(image), "--", *command])
        if "asks the CPU what it can" in text:
            print(f"  {program} has no image for {level}: a library of it cannot be kept to a level")
            continue
        if status:
            raise Unavailable(f"{program} cannot be frozen for {level} here: {text}")
        made[program] = (str(image), kernels.ordinary(command))
    return made


def try_model(model: str, images: dict[str, dict[str, tuple[str, tuple[int, str]]]]) -> dict:
    """Try all images on one model. Returns the stored result."""
    kernels.KERNELS[model] = kernels.Kernel(SUITE, cpu=model)
    commands = {}
    for level, made in images.items():
        extra = {"SNAPBOOT_ON_STALE": "error"} if level in MODELS[model] else {"SNAPBOOT_LOG": "1"}
        commands.update({f"{program}-{level}": ([image], extra) for program, (image, _) in made.items()})
    outcomes = kernels.there(model, commands)
    print(f"{model}: Linux {outcomes['release'][1]}")
    tried = kernels.Counted()
    for level, made in images.items():
        for program, (_, expected) in made.items():
            outcome = outcomes[f"{program}-{level}"]
            if level not in MODELS[model]:
                status, text = outcome
                reasons = [line for line in text.splitlines() if line.startswith("snapboot:")]
                rest = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("snapboot:"))
                outcome = (status, rest) if any(STALE in line for line in reasons) else (status, f"no reason: {text}")
            way = "thawed" if level in MODELS[model] else "below the level"
            tried.add(f"{program} for {level}, {way}", outcome, expected)
    has = f"up to {MODELS[model][-1]}" if MODELS[model] else "below v2: ordinary starts"
    platforms.store("cpu", model, f"CPUs {has}", {"programs": tried.result})
    return tried.result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help=f"some of {', '.join(MODELS)}")
    chosen = parser.parse_args().models or list(MODELS)
    try:
        workloads.install_debian_packages(("qemu-system-x86",))
        images = {level: freeze(level) for level in LEVELS}
        good = not any([try_model(model, images)["failed"] for model in chosen])
    except Unavailable as reason:
        print(f"cannot try: {reason}", file=sys.stderr)
        return 1
    platforms.write()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
