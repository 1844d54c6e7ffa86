"""`python -m snapboot.archive build -o FILE`: `snapboot archive`, for the Python that runs this."""

import sys

from snapboot.__main__ import main

if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["build"] and "--" not in words:
        words += ["--", sys.executable]
    sys.argv[1:] = ["archive", *words]
    main()
