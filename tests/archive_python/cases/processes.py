"""Processes, threads and interpreters beside the first."""

from . import case

WORKERS = """
import multiprocessing, sys, os
def work(n):
    import late
    return n * late.L, "PYTHONPATH" in os.environ, type(sys.modules.get("sitecustomize"))
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool: print(pool.map(work, range(4)))
    process = context.Process(target=print, args=("child",)); process.start(); process.join(); print(process.exitcode)
"""
CASES = {
    "multiprocessing": case(WORKERS, {"late.py": "L = 3\n"}, words=[["main.py", how] for how in ("fork", "spawn", "forkserver")], shows="child"),
    "child-interpreter": case("import subprocess, sys, os\nprint(subprocess.run([sys.executable, '-c', 'import os, sys; print(sorted(os.environ.items())[:0], os.environ.get(\"PYTHONPATH\"), sys.path, [type(f).__name__ for f in sys.meta_path])'], capture_output=True, text=True).stdout)\nprint(open('/proc/self/environ').read().count('nothing'), os.popen('echo $PYTHONPATH').read(), os.system('test -z \"$PYTHONPATH\"'))\n", shows="None"),
    "child-with-path": case("import subprocess, sys, os\nprint(subprocess.run([sys.executable, '-c', 'import os, sys; print(os.environ[\"PYTHONPATH\"], sys.path)'], capture_output=True, text=True).stdout)\n", env={"PYTHONPATH": "one:"}, shows="one"),
    "fork": case("import os, sys\nfor n in range(5):\n    pid = os.fork()\n    if pid == 0:\n        import late; print('child', n, late.L, flush=True)\n        if n == 2: os._exit(0)\n        if n == 3: raise KeyError('child')\n        sys.exit(n)\n    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if hasattr(os, 'waitstatus_to_exitcode') else os.waitpid(pid, 0)[1], flush=True)\nimport late; print(late.L)\n", {"late.py": "import colorsys\nL = 'late'\nclass A:\n    def __del__(self): print('del', flush=True)\na = A(); a.m = a\n"}, words=[["main.py"], ["-W", "error", "main.py"]], shows="late", ),
    "fork-in-import": case("import forking\nprint('main', flush=True)\n", {"forking.py": "import os\npid = os.fork()\nif pid == 0:\n    import late\nelse: os.waitpid(pid, 0)\nprint('both' if pid else 'child', flush=True)\n", "late.py": "L = [1]\n"}, shows="child"),
    "exec": case("import os, sys\nif len(sys.argv) == 1: os.execv(sys.executable, [sys.executable, 'main.py', os.environ.get('PYTHONPATH', 'none')])\nprint(sys.argv, [type(f).__name__ for f in sys.meta_path])\n", shows="none"),
    "sub-interpreters": case("try: import _xxsubinterpreters as subs\nexcept ImportError: import _interpreters as subs\nfor n in range(3):\n    i = subs.create()\n    r = subs.run_string(i, 'import filler0, filler1, filler2, filler3, filler4, late, sys, re, colorsys, textwrap; print(late.L, \"sitecustomize\" in sys.modules, \"PYTHONPATH\" in __import__(\"os\").environ, sys.path[0][-3:])')\n    print(r)\n    subs.destroy(i)\nimport late\nprint('end')\n", {"late.py": "import re\nL = re.compile('x+')\nclass A:\n    def __del__(self): print('del', flush=True)\na = A(); a.m = a\n"}, env={"PYTHONWARNINGS": "ignore", "PYTHONPATH": "."}, shows="end"),
    "sub-interpreters-ended-by-exit": case("try: import _xxsubinterpreters as subs\nexcept ImportError: import _interpreters as subs\ni = subs.create(); subs.run_string(i, 'import late, re, colorsys, json')\nimport late, json; print('end')\n", {"late.py": "import re\nL = re.compile('x+')\n"}, env={"PYTHONWARNINGS": "ignore", "PYTHONPATH": "."}, shows="end"),
    "threads-importing": case("import threading\nresults = []\nbarrier = threading.Barrier(6)\ndef work():\n    barrier.wait(); import slow; results.append(slow.X)\nthreads = [threading.Thread(target=work) for _ in range(6)]\nfor t in threads: t.start()\nfor t in threads: t.join()\nprint(results)\n", {"slow.py": "import time; time.sleep(0.01)\nprint('once')\nX = 5\n"}, shows="once"),
    "threads-and-collector": case("import gc, threading\ndef work():\n    for n in range(50): __import__('m%d' % n)\nt = threading.Thread(target=work); t.start()\nfor n in range(49, -1, -1): __import__('m%d' % n)\nt.join(); print(gc.isenabled(), gc.get_threshold())\n", {f"m{n}.py": "X = [[] for _ in range(50)]\n" for n in range(50)}, shows="True"),
    "faulthandler": case("import faulthandler, late\nlate.f()\n", {"late.py": "import faulthandler, sys\ndef f(): faulthandler.dump_traceback(file=sys.stdout, all_threads=False)\nf()\n"}, until=(3, 11), shows="late.py"),
    "asyncio": case("import asyncio\nasync def main():\n    import late\n    p = await asyncio.create_subprocess_exec('echo', 'x', stdout=-1)\n    print(await p.communicate(), await asyncio.get_running_loop().run_in_executor(None, lambda: __import__('colorsys').__name__))\nasyncio.run(main())\n", {"late.py": ""}, shows="colorsys"),
}
