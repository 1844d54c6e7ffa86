"""Computes what the first argument names for a second or so, and prints the milliseconds of the fastest round."""

import hashlib
import sys
import time

import numpy
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

MEGABYTE = bytes(range(256)) * 4096
MATRIX = numpy.arange(490_000.0).reshape(700, 700) / 490_000
NUMBERS = numpy.linspace(0, 10, 1_000_000)
SHUFFLED = numpy.random.default_rng(1).permutation(NUMBERS)
TEXT = ("a" * 4000 + "é") * 250
KEY = b"k" * 32

WORK = {
    "matrix": lambda: MATRIX @ MATRIX,
    "exp": lambda: numpy.exp(NUMBERS),
    "sort": lambda: numpy.sort(SHUFFLED),
    "sha256": lambda: hashlib.sha256(MEGABYTE).digest(),
    "aes-gcm": lambda: AESGCM(KEY).encrypt(b"n" * 12, MEGABYTE, None),
    "chacha20": lambda: ChaCha20Poly1305(KEY).encrypt(b"n" * 12, MEGABYTE, None),
    "find": lambda: [MEGABYTE.find(b"\xff\x00\x01\x03"), MEGABYTE.count(b"\x80"), TEXT.find("b"), TEXT.encode().decode()],
    "copy": lambda: [bytearray(MEGABYTE), MEGABYTE[1:], MEGABYTE + MEGABYTE],
}


def main() -> None:
    work = WORK[sys.argv[1]]
    end, fastest = time.perf_counter() + 1, float("inf")
    while time.perf_counter() < end:
        begun = time.perf_counter()
        work()
        fastest = min(fastest, time.perf_counter() - begun)
    print(fastest * 1000)


if __name__ == "__main__":
    main()
