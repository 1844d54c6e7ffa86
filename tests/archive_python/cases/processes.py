"""Processes, threads and interpreters beside the first."""

from . import case

WORKERS = """
import multiprocessing, sys, os
def work(n):
    import late
    return n * late.L, "PYTHONPATH" in os.environ, type(sys.modules.get("sitecustomize")).__name__
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool: print(pool.map(work, range(4)))
    process = context.Process(target=print, args=("child",))
    process.start()
    process.join()
    print(process.exitcode)
"""
CASES = {
    "multiprocessing": case(
        WORKERS,
        {"late.py": "L = 3\n"},
        words=[["main.py", how] for how in ("fork", "spawn", "forkserver")],
        shows="child",
    ),
    "child-interpreter": case(
        """\
import subprocess, sys, os
print(subprocess.run([sys.executable, '-c',
    'import os, sys; print(os.environ.get("PYTHONPATH"), sys.path, [type(f).__name__ for f in sys.meta_path])'],
    capture_output=True, text=True).stdout)
print(open('/proc/self/environ').read().count('nothing'), os.popen('echo $PYTHONPATH').read(), os.system('test -z "$PYTHONPATH"'))
""",
        shows="None",
    ),
    "child-with-path": case(
        """\
import subprocess, sys, os
print(subprocess.run([sys.executable, '-c', 'import os, sys; print(os.environ["PYTHONPATH"], sys.path)'], capture_output=True,
    text=True).stdout)
""",
        env={"PYTHONPATH": "one:"},
        shows="one",
    ),
    "fork": case(
        """\
import os, sys
for n in range(5):
    pid = os.fork()
    if pid == 0:
        import late; print('child', n, late.L, flush=True)
        if n == 2: os._exit(0)
        if n == 3: raise KeyError('child')
        sys.exit(n)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if hasattr(os, 'waitstatus_to_exitcode') else os.waitpid(pid, 0)[1], flush=True)
import late; print(late.L)
""",
        {
            "late.py": """\
import colorsys
L = 'late'
class A:
    def __del__(self): print('del', flush=True)
a = A(); a.m = a
""",
        },
        words=[["main.py"], ["-W", "error", "main.py"]],
        shows="late",
    ),
    "fork-in-import": case(
        """\
import forking
print('main', flush=True)
""",
        {
            "forking.py": """\
import os
pid = os.fork()
if pid == 0:
    import late
else: os.waitpid(pid, 0)
print('both' if pid else 'child', flush=True)
""",
            "late.py": "L = [1]\n",
        },
        shows="child",
    ),
    "exec": case(
        """\
import os, sys
if len(sys.argv) == 1: os.execv(sys.executable, [sys.executable, 'main.py', os.environ.get('PYTHONPATH', 'none')])
print(sys.argv, [type(f).__name__ for f in sys.meta_path])
""",
        shows="none",
    ),
    "sub-interpreters": case(
        """\
try: import _xxsubinterpreters as subs
except ImportError: import _interpreters as subs
for n in range(3):
    i = subs.create()
    r = subs.run_string(i, '''
import filler0, filler1, filler2, filler3, filler4, late, os, sys, re, colorsys, textwrap
print(late.L, "sitecustomize" in sys.modules, "PYTHONPATH" in os.environ, sys.path[0][-3:])
''')
    print(r)
    subs.destroy(i)
import late
print('end')
""",
        {
            "late.py": """\
import re
L = re.compile('x+')
class A:
    def __del__(self): print('del', flush=True)
a = A(); a.m = a
""",
        },
        env={"PYTHONWARNINGS": "ignore", "PYTHONPATH": "."},
        shows="end",
    ),
    "sub-interpreters-ended-by-exit": case(
        """\
try: import _xxsubinterpreters as subs
except ImportError: import _interpreters as subs
i = subs.create(); subs.run_string(i, 'import late, re, colorsys, json')
import late, json; print('end')
""",
        {
            "late.py": """\
import re
L = re.compile('x+')
""",
        },
        env={"PYTHONWARNINGS": "ignore", "PYTHONPATH": "."},
        shows="end",
    ),
    "threads-importing": case(
        """\
import threading
results = []
barrier = threading.Barrier(6)
def work():
    barrier.wait(); import slow; results.append(slow.X)
threads = [threading.Thread(target=work) for _ in range(6)]
for t in threads: t.start()
for t in threads: t.join()
print(results)
""",
        {
            "slow.py": """\
import time; time.sleep(0.01)
print('once')
X = 5
""",
        },
        shows="once",
    ),
    "threads-and-collector": case(
        """\
import gc, threading
def work():
    for n in range(50): __import__('m%d' % n)
t = threading.Thread(target=work); t.start()
for n in range(49, -1, -1): __import__('m%d' % n)
t.join(); print(gc.isenabled(), gc.get_threshold())
""",
        {f"m{n}.py": "X = [[] for _ in range(50)]\n" for n in range(50)},
        shows="True",
    ),
    "faulthandler": case(
        """\
import faulthandler, late
late.f()
""",
        {
            "late.py": """\
import faulthandler, sys
def f(): faulthandler.dump_traceback(file=sys.stdout, all_threads=False)
f()
""",
        },
        until=(3, 11),
        shows="late.py",
    ),
    "asyncio": case(
        """\
import asyncio
async def main():
    import late
    p = await asyncio.create_subprocess_exec('echo', 'x', stdout=-1)
    print(await p.communicate(), await asyncio.get_running_loop().run_in_executor(None, lambda: __import__('colorsys').__name__))
asyncio.run(main())
""",
        {"late.py": ""},
        shows="colorsys",
    ),
}
