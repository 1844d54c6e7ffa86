"""Random numbers of all kinds, one a line: no two starts may have one in common."""

import hashlib
import os
import random
import secrets
import ssl
import tempfile
import uuid

if __name__ == "__main__":
    print(random.random(), os.urandom(8).hex(), secrets.token_hex(8), uuid.uuid4(), ssl.RAND_bytes(8).hex(), sep="\n")
    print(next(tempfile._get_candidate_names()), random.Random().random(), hashlib.sha256(os.getrandom(8)).hexdigest()[:16], sep="\n")
