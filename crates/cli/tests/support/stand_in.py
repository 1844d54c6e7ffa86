"""Stands in for the Python front end and the freezer in the tests of the command. The first preload says what to do:

written     writes a dump and a report               raise       fails as a program does
incomplete  reports, but writes no whole dump        killed      is killed by SIGSEGV
edited      writes, and edits a file it loaded       early       exits before its freeze point
refused     writes findings; with origins, says where descriptor 7 was opened
mistake     reports an error of the user             facts       prints what it was started with, then is `written`
noted       is `written`, with a warning, a guard and a note of the freezer
hang        waits, after saying so
"""

import json
import os
import signal
import struct
import sys
import time

folder = os.environ["SNAPBOOT_FREEZE_DIR"]
request = [entry.split("=", 1) for entry in open(folder + "/request").read().split("\0")[:-1]]
word = [value for key, value in request if key == "preload"][0]
loaded = os.path.abspath("loaded.py")


def write(name, entries):
    with open(folder + "/" + name, "w") as file:
        file.write("".join("%s=%s\0" % entry for entry in entries))


def finding(*fields):
    return "finding", "".join("%d:%s" % (len(field), field) for field in fields)


def dump():
    with open(folder + "/image", "r+b") as image:
        image.seek(0, 2)
        pages = image.tell()
        tables = open(os.path.dirname(__file__) + "/tables", "rb").read()
        image.write(b"page" * 1024 + tables)
        image.write(struct.pack("<8sQQQQ", b"SNAPDUMP", pages, 4096, pages + 4096, len(tables)))


def report(*more):
    files = [("loaded", loaded)] if os.path.exists(loaded) else []
    settings = [("renews", "locale")]
    write("report", [("runtime", "CPython 3.x"), ("preloaded", word)] + settings + files + list(more))


def facts():
    status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
    links = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            links[name] = [os.readlink("/proc/self/fd/" + name), os.get_inheritable(int(name))]
        except OSError:
            pass  # the listing's own
    signals = {key: int(status[key], 16) for key in ("SigIgn", "SigBlk")}
    print(json.dumps({"request": request, "env": dict(os.environ), "fds": links, "signals": signals, "argv": sys.orig_argv, "cwd": os.getcwd()}), flush=True)


if word == "raise":
    raise ValueError("boom")
elif word == "killed":
    os.kill(os.getpid(), signal.SIGSEGV)
elif word == "early":
    sys.exit(0)
elif word == "mistake":
    write("report", [("error", "there is no module called nope. Check the spelling.")])
    sys.exit(2)
elif word == "refused":
    origins = ("origins", "1") in map(tuple, request)
    write("report", [("fd_origin", "7:redis/connection.py:559")] if origins else [])
    write("findings", [finding("descriptor", "7", "is a socket; close it"), finding("timer", "", "a timer runs")])
    sys.exit(3)
elif word == "hang":
    print("waiting", flush=True)
    time.sleep(60)
elif word == "incomplete":
    report()
elif word == "edited":
    dump()
    report()
    open(loaded, "a").write("# edited\n")
elif word == "noted":
    dump()
    report(("warning", "watch out"), ("guard", "-e"))
    write("findings", [finding("note", "", "thread timer is dropped")])
else:
    if word == "facts":
        facts()
    dump()
    report()
