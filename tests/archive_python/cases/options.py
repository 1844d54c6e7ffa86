"""Options of the interpreter, the ways to name a program, and what a program sees of the process."""

from . import case

STATE = """
import sys
print([m for m in sorted(sys.modules) if m != "encodings.ascii" and (m != "atexit" or sys.version_info >= (3, 10))])
import os, gc, atexit, threading, warnings, signal
print([f for f in sys.meta_path if type(f).__name__ != 'Finder'], sys.path_hooks, sys.path, sys.argv, sys.flags, sys.warnoptions,
    sys._xoptions)
print(sorted((k, v) for k, v in os.environ.items() if k not in ("SNAPBOOT_ARCHIVE",)), os.environb.get(b"PYTHONPATH"),
    os.getenv("PYTHONPATH"))
print(__name__ == "__main__" and gc.get_threshold(), gc.isenabled(), gc.get_debug(), len(gc.garbage), gc.get_stats()[2]["uncollectable"])
print(threading.active_count(), [t.name for t in threading.enumerate()], warnings.filters, signal.getsignal(signal.SIGINT),
    sys.gettrace(), sys.getprofile())
print(sys.orig_argv[1:] if hasattr(sys, "orig_argv") else 0, __name__, globals().get("__file__"), __spec__, sorted(globals()),
    sys.excepthook, sys.displayhook, sys.unraisablehook, sys.getrecursionlimit())
print(sys.executable, sys.prefix, sys.dont_write_bytecode, sys.pycache_prefix, sys.getswitchinterval(), sorted(os.listdir('/proc/self/fd')))
import builtins
print(len(dir(builtins)), sorted(dir(sys)), [n for n in sys.builtin_module_names][:3])
"""
OPTIONS = [
    [], ["-B"], ["-s"], ["-O"], ["-OO"], ["-u"], ["-b"], ["-q"], ["-W", "error"], ["-X", "dev"], ["-X", "utf8"],
    ["-X", "faulthandler"], ["-X", "tracemalloc"], ["-x"],
]
CASES = {
    "state": case(
        STATE.replace("# \n", ""),
        words=[[*option, "main.py", "a b"] for option in OPTIONS[:8]],
        shows="a b",
    ),
    "state-more": case("#\n" + STATE, words=[[*option, "main.py"] for option in OPTIONS[8:]]),
    "ways": case(
        STATE,
        {"folder/__main__.py": STATE, "pack/__init__.py": "", "pack/__main__.py": STATE, "st.py": STATE},
        stdin="""\
import filler0, filler1, filler2, filler3, filler4, st
print(st.__file__)
""",
        prepare="""\
import zipfile
z = zipfile.ZipFile('z.pyz', 'w')
z.write('folder/__main__.py', '__main__.py')
z.write('filler0.py')
z.close()
""",
        words=[["-c", "import filler0, filler1, filler2, filler3, filler4, st", "x"], ["-m", "pack", "x"], ["-"], [], ["folder"],
            ["z.pyz", "x"], ["nowhere.py"], ["-m", "st"], ["-c", """\
import filler0
raise SystemExit('said')"""], ["-i", "-c", "import filler0,filler1,filler2,filler3,filler4"]],
        shows="z.pyz",
    ),
    "with-path": case(STATE, env={"PYTHONPATH": "one:two"}, words=[["main.py"]]),
    "variables": case(
        STATE,
        env={
            "PYTHONHASHSEED": "3",
            "PYTHONNOUSERSITE": "1",
            "PYTHONUTF8": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONINSPECT": "",
            "PYTHONWARNINGS": "default",
        },
    ),
    "safe-path": case(
        """\
import sys; print(sys.path)
try: import filler0
except ImportError as e: print(e)
""",
        words=[["-P", "-c", "import sys; print(sys.path, sys.flags.safe_path)"]],
        since=(3, 11),
        shows="True",
    ),
    "terminated": case("import os, signal; print('x', flush=True); os.kill(os.getpid(), signal.SIGTERM)\n", shows="x"),
    "interrupted": case(
        """\
import os, signal
print('x', flush=True)
os.kill(os.getpid(), signal.SIGINT)
import time
time.sleep(5)
""",
        shows="KeyboardInterrupt",
    ),
    "interrupted-in-import": case(
        "import stopping\n",
        {
            "stopping.py": "import signal, os; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(5)\n",
        },
        shows="KeyboardInterrupt",
    ),
    "home-gone": case(STATE, env={"HOME": None, "XDG_CACHE_HOME": None}),
}
