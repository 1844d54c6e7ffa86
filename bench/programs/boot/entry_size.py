#!/usr/bin/env python3
"""Runs COMMAND, which loads one large file, and prints how many kilobytes its cache keeps of it: its largest entry.

entry_size.py SNAPBOOT PLACE [COMMAND...]    PLACE: a file, a folder of files (Bootsnap's), or an archive that SNAPBOOT lists
"""

import json
import pathlib
import subprocess
import sys

snapboot, place, *command = sys.argv[1:]
if command:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
path = pathlib.Path(place)
if path.suffix == ".archive":
    listed = subprocess.run([snapboot, "archive", "list", "--json", place], capture_output=True, check=True).stdout
    sizes = [entry["stored_size"] for entry in json.loads(listed)["entries"]]
else:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    sizes = [file.stat().st_size for file in files]
print(max(sizes) / 1000)
