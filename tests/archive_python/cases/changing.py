"""What a program changes of its own modules while it runs: the next import sees it, as it does without an archive.

Python itself may miss a change that comes right behind a look at the directory, within one tick of the file system's clock. So each
program waits for a tick where Python needs one, or calls importlib.invalidate_caches.
"""

from . import case

MANY = {f"d{number}/only{number}.py": f"N = {number}\n" for number in range(60)}
LOOKED = """
import os, sys, time, importlib
folders = [os.path.abspath("d%d" % n) for n in range(60)]
sys.path[1:1] = folders
import only59
def write(path, text, wait=True):
    if wait: time.sleep(0.005)
    with open(path, "w") as f: f.write(text)
"""
CLEAN = (
    "rm -rf d*/made* d*/later* d*/__pycache__; printf \"W = 'last'\\n\" > d59/shadowed.py; "
    "rm -rf d0/shadowed.py d30/shadowed*; sleep 0.03"
)
CASES = {
    "added": case(
        LOOKED + """\
try: import made
except ImportError as e: print(e)
write(folders[5] + '/made.py', 'M = 1')
import made; print(made.M, made.__file__)
""",
        MANY,
        between=CLEAN,
        shows="d5/made.py",
    ),
    "added-invalidated": case(
        LOOKED + """\
try: import made
except ImportError as e: print(e)
write(folders[5] + '/made.py', 'M = 1', False)
importlib.invalidate_caches()
import made; print(made.M, made.__file__)
""",
        MANY,
        between=CLEAN,
        shows="d5/made.py",
    ),
    "added-without-asking-before": case(
        LOOKED + """\
write(folders[5] + '/made.py', 'M = 1')
import made; print(made.M, made.__file__)
""",
        MANY,
        between=CLEAN,
        shows="d5/made.py",
    ),
    "shadowed": case(
        LOOKED + """\
import shadowed; print(shadowed.W); del sys.modules['shadowed']
write(folders[0] + '/shadowed.py', 'W = "first"')
import shadowed; print(shadowed.W)
""",
        MANY,
        between=CLEAN,
        shows="first",
    ),
    "shadowed-by-package": case(
        LOOKED + """\
import shadowed; print(shadowed.W); del sys.modules['shadowed']
time.sleep(0.005)
os.mkdir(folders[30] + '/shadowed')
write(folders[30] + '/shadowed/__init__.py', 'W = "package"')
import shadowed; print(shadowed.W)
""",
        MANY,
        between=CLEAN,
        shows="package",
    ),
    "shadowed-by-child": case(
        LOOKED + """\
import shadowed, subprocess; print(shadowed.W); del sys.modules['shadowed']
time.sleep(0.005); subprocess.run('echo "W = 1" > d0/shadowed.py', shell=True)
import shadowed; print(shadowed.W)
""",
        MANY,
        between=CLEAN,
        shows="1",
    ),
    "shadowed-by-rename": case(
        LOOKED + """\
import shadowed; print(shadowed.W); del sys.modules['shadowed']
write('made.txt', 'W = "renamed"'); os.rename('made.txt', folders[0] + '/shadowed.py')
import shadowed; print(shadowed.W)
""",
        MANY,
        between=CLEAN,
        shows="renamed",
    ),
    "shadowed-by-link": case(
        LOOKED + """\
import shadowed; print(shadowed.W); del sys.modules['shadowed']
time.sleep(0.005); os.symlink('../filler0.py', folders[0] + '/shadowed.py')
import shadowed; print(hasattr(shadowed, 'W'))
""",
        MANY,
        between=CLEAN,
        shows="False",
    ),
    "removed": case(
        LOOKED + """\
write(folders[3] + '/made.py', 'M = 1'); write(folders[40] + '/made.py', 'M = 2')
import made
print(made.M)
del sys.modules['made']
time.sleep(0.005)
os.remove(folders[3] + '/made.py')
import made
print(made.M)
del sys.modules['made']
time.sleep(0.005)
os.remove(folders[40] + '/made.py')
try: import made
except ImportError as e: print(e)
""",
        MANY,
        between=CLEAN,
        shows="2",
    ),
    "edited": case(
        LOOKED + """\
import shadowed; print(shadowed.W); del sys.modules['shadowed']
write(folders[59] + '/shadowed.py', 'W = "another"'); import shadowed; print(shadowed.W)
""",
        MANY,
        between=CLEAN,
        shows="another",
    ),
    "edited-same-size-and-time": case(
        LOOKED + """\
import shadowed; print(shadowed.W); del sys.modules['shadowed']
s = os.stat(folders[59] + '/shadowed.py')
write(folders[59] + '/shadowed.py', "W = 'tsal'\\n")
os.utime(folders[59] + '/shadowed.py', ns=(s.st_mtime_ns, s.st_mtime_ns))
import shadowed; print(shadowed.W[:0])
sys.dont_write_bytecode = True
import shutil
shutil.rmtree(folders[59] + '/__pycache__', True)
del sys.modules['shadowed']
import shadowed
print(shadowed.W)
""",
        MANY,
        between=CLEAN,
        shows="tsal",
    ),
    "while-it-is-imported": case(
        """\
import selfish; print(selfish.A)
import importlib; importlib.reload(selfish); print(selfish.A)
""",
        {
            "selfish.py": """\
A = 1
open(__file__, 'w').write('A = 22')
""",
        },
        between="printf \"A = 1\\nopen(__file__, 'w').write('A = 22')\\n\" > selfish.py; sleep 0.03",
        shows="22",
    ),
    "submodules": case(
        LOOKED + """\
os.mkdir('later'); write('later/__init__.py', ''); write('later/a.py', 'A = 1')
import later.a; print(later.a.A)
write('later/b.py', 'B = 2'); import later.b; print(later.b.B)
for n in range(20):
    write('later/c%d.py' % n, 'C = %d' % n)
    print(importlib.import_module('later.c%d' % n).C, end=' ')
""",
        MANY,
        between=CLEAN + "; rm -rf later",
        shows="19",
    ),
    "folder-replaced": case(
        LOOKED + """\
import shadowed; print(shadowed.W); del sys.modules['shadowed']
time.sleep(0.005)
os.rename('d59', 'd59.old')
os.mkdir('d59')
write('d59/shadowed.py', 'W = "new folder"')
import shadowed; print(shadowed.W)
""",
        MANY,
        between="rm -rf d59; test -e d59.old && mv d59.old d59 || mkdir -p d59; echo 'N = 59' > d59/only59.py;" + CLEAN,
        shows="new folder",
    ),
    "entry-appears": case(
        LOOKED + """\
sys.path.insert(0, os.path.abspath('later'))
try: import made
except ImportError as e: print(e)
time.sleep(0.005)
os.mkdir('later')
write('later/made.py', 'M = 1')
importlib.invalidate_caches()
import made
print(made.M)
""",
        MANY,
        between=CLEAN + "; rm -rf later",
        shows="1",
    ),
    "entry-goes": case(
        LOOKED + """\
os.mkdir('later'); write('later/shadowed.py', 'W = 1'); sys.path.insert(0, os.path.abspath('later'))
import shadowed
print(shadowed.W)
del sys.modules['shadowed']
import shutil
shutil.rmtree('later')
import shadowed
print(shadowed.W)
""",
        MANY,
        between=CLEAN + "; rm -rf later",
        shows="last",
    ),
}
