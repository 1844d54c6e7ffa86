"""The collector while modules are imported, and the end of the process: what is called then, in which order."""

from . import case

CASES = {
    # Made after the last import, and hung on what was set aside then.
    "del-of-the-main-part": case(
        """\
import holder
class A:
    def __init__(self, n): self.n = n
    def __del__(self): print('del', self.n, flush=True)
x = A('main'); x.me = x
holder.LIST.append(A('hung')); holder.LIST.append(holder.LIST)
f = open('hung.txt', 'w'); f.write('text'); holder.LIST.append(f); del f
""",
        {"holder.py": "LIST = []\n", "read.py": "print(open('hung.txt').read())\n"},
        words=[["main.py"], ["read.py"]],
        shows="del main",
    ),
    "del-at-end": case(
        """\
import holder
print('end of main')
""",
        {
            "holder.py": """\
class A:
    def __init__(self, n): self.n = n
    def __del__(self): print('del', self.n, flush=True)
one = A('one'); cycle = A('cycle'); cycle.me = cycle
lost = A('lost'); lost.me = lost; del lost
class B(A): pass
two = B('two')
""",
        },
        shows="del",
    ),
    "del-order": case(
        """\
from holder import A
x = A('main x'); import later; y = A('main y')
setattr(later, 'z', A('later z'))
""",
        {
            "holder.py": """\
class A:
    def __init__(self, n): self.n = n
    def __del__(self): print('del', self.n, flush=True)
a = A('holder a'); b = A('holder b')
""",
            "later.py": """\
import holder
q = holder.A('later q')
""",
        },
        shows="main x",
    ),
    "del-given-later": case(
        """\
import holder
holder.A.__del__ = lambda self: print('late del', flush=True)
""",
        {
            "holder.py": """\
class A: pass
a = A(); a.me = a
""",
        },
        shows="late del",
    ),
    "del-by-slots-and-c": case(
        "import holder\n",
        {
            "holder.py": """\
import tempfile, io, weakref, socket
f = tempfile.TemporaryDirectory(); import os
class W(io.StringIO):
    def close(self): print('closed', flush=True); super().close()
w = W(); w.me = [w]
class S:
    __slots__ = ('x', '__weakref__')
    def __del__(self): print('slots', flush=True)
s = S(); s.x = s
class T:
    __slots__ = ('x',)
    def __del__(self): print('no weakref', flush=True)
t = T(); t.x = t
""",
        },
        env={"PYTHONWARNINGS": "ignore"},
        shows="no weakref",
    ),
    "resource-warnings": case(
        "import holder\n",
        {
            "holder.py": """\
f = open(__file__); l = [f]; l.append(l)
import socket; s = socket.socket()
""",
        },
        words=[["-W", "always", "main.py"], ["-X", "dev", "main.py"]],
        shows="ResourceWarning",
    ),
    "resource-warning-of-a-file": case(
        "import holder\n",
        {
            "holder.py": """\
f = open(__file__); l = [f]; l.append(l); del f
b = [open(__file__, 'rb', 0)]; b.append(b)
""",
        },
        words=[["-W", "always", "main.py"], ["main.py"]],
        shows="ResourceWarning",
    ),
    "closed-by-its-class": case(
        "import holder\n",
        {
            "holder.py": """\
import io
class R(io.RawIOBase):
    def close(self):
        if not self.closed: print('closed', flush=True)
        super().close()
class F(io.FileIO):
    def close(self): print('file', flush=True); super().close()
r = [R(), F(__file__)]; r.append(r)
""",
        },
        shows="closed",
    ),
    "files-in-order": case(
        "import holder\n",
        {
            "holder.py": """\
import io
raw = open('out.txt', 'ab', 0)
class W:
    def write(self, t): raw.write(t)
one = open('out.txt', 'a'); two = open('out.txt', 'a')
one.write('one'); two.write('two'); l = [one, two]; l.append(l)
whole = [io.TextIOWrapper(io.BufferedWriter(raw))]; whole[0].write('whole'); whole.append(whole)
""",
            "read.py": "print(sorted(open('out.txt').read()))\n",
        },
        words=[["main.py"], ["read.py"]],
        between="rm -f out.txt",
        shows="'o', 'o'",
    ),
    "weakref-callbacks": case(
        """\
import holder
print('end')
""",
        {
            "holder.py": """\
import weakref
class A: pass
a = A(); a.me = a
r = weakref.ref(a, lambda r: print('callback', flush=True))
weakref.finalize(a, print, 'finalize', flush=True)
""",
        },
        shows="finalize",
    ),
    "generators": case(
        "import holder\n",
        {
            "holder.py": """\
def g():
    try: yield 1
    finally: print('closed', flush=True)
one = g(); next(one); keep = [one]; keep.append(keep)
async def c():
    try: await A()
    finally: print('coroutine', flush=True)
class A:
    def __await__(self): yield 1
co = c(); co.send(None); k = [co]; k.append(k)
unstarted = g(); u = [unstarted]; u.append(u)
async def never(): pass
n = never(); nn = [n]; nn.append(nn)
""",
        },
        shows="closed",
    ),
    "async-generators": case(
        "import holder\n",
        {
            "holder.py": """\
async def g():
    try: yield 1
    finally: print('aclosed', flush=True)
a = g(); a.asend(None).send if 0 else None
try: a.asend(None).send(None)
except StopIteration: pass
k = [a]; k.append(k)
""",
        },
    ),
    "unflushed": case(
        "import holder\n",
        {
            "holder.py": """\
import io
f = open('out.txt', 'w'); f.write('text'); l = [f]; l.append(l)
b = open('out2.txt', 'wb'); b.write(b'bytes')
class W(io.TextIOWrapper): pass
w = W(open('out3.txt', 'wb')); w.write('sub');
import gzip; z = gzip.open('out4.gz', 'wb'); z.write(b'zz')
""",
            "read.py": "print([len(open(n, 'rb').read()) for n in ('out.txt', 'out2.txt', 'out3.txt', 'out4.gz')])\n",
        },
        words=[["main.py"], ["read.py"]],
        env={"PYTHONWARNINGS": "ignore"},
        shows="[4, 5, 3",
    ),
    "atexit": case(
        """\
import atexit, holder
atexit.register(print, 'main first')
@atexit.register
def last():
    import late; print(late.L); import colorsys
atexit.register(lambda: 1 / 0)
""",
        {
            "holder.py": """\
import atexit
atexit.register(print, 'holder')
""",
            "late.py": """\
L = 'late'
import atexit; atexit.register(print, 'registered in exit')
""",
        },
        shows="late",
    ),
    "atexit-cleared": case(
        """\
import atexit, holder
atexit._clear(); print(atexit._ncallbacks())
""",
        {
            "holder.py": """\
class A:
    def __del__(self): print('del', flush=True)
a = A(); a.m = a
""",
        },
        shows="del",
    ),
    "atexit-run": case(
        """\
import atexit, gc
atexit.register(print, 'once')
atexit._run_exitfuncs(); print('after')
import late; print(late.L)
class A:
    def __del__(self): print('del', flush=True)
a = A(); a.m = a
""",
        {"late.py": "L = 1\n"},
        shows="once",
    ),
    "import-at-shutdown": case(
        """\
class A:
    def __del__(self):
        try:
            import colorsys; print(colorsys.__name__)
        except BaseException as e: print(type(e).__name__, e)
import builtins; builtins.keep = A()
""",
        until=(3, 12),
    ),
    "threads-at-end": case(
        """\
import threading, time
def work():
    time.sleep(0.05); import late; print(late.L, flush=True)
threading.Thread(target=work).start()
threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
""",
        {"late.py": "L = 'late'\n"},
        shows="late",
    ),
    "statuses": case(
        """\
import sys, os
if sys.argv[1] == '1': sys.exit(7)
if sys.argv[1] == '2': os._exit(8)
if sys.argv[1] == '3': raise KeyError('x')
if sys.argv[1] == '4': sys.exit('words')
if sys.argv[1] == '5': sys.stdout.close()
if sys.argv[1] == '6': os.abort()
if sys.argv[1] == '7': os.execv('/bin/echo', ['echo', 'executed'])
""",
        words=[["main.py", str(n)] for n in range(8)],
        shows="executed",
    ),
    "collector-seen": case(
        """\
import gc, holder
print(gc.get_threshold(), gc.isenabled(), len(gc.garbage), len(gc.callbacks) >= 0)
print(sum(isinstance(o, holder.A) for o in gc.get_objects()),
    [type(r).__name__ for r in gc.get_referrers(holder.a) if r is vars(holder)], holder.a in gc.get_referents(vars(holder)))
print(gc.is_tracked(holder.a)); del holder.a; gc.collect(); print(holder.r())
""",
        {
            "holder.py": """\
import weakref
class A: pass
a = A(); a.me = a; r = weakref.ref(a)
""",
        },
        shows="None",
    ),
    "collector-set": case(
        """\
import gc, setter, other
print(gc.get_threshold(), gc.isenabled(), gc.get_debug())
""",
        {
            "setter.py": """\
import gc
gc.set_threshold(123, 4, 5)
import inner
""",
            "inner.py": "import gc; print(gc.get_threshold()[1:]); gc.disable()\n",
            "other.py": "import gc; print(gc.isenabled())\n",
        },
        shows="123",
    ),
    "collector-in-import": case(
        """\
import made
print(made.seen)
""",
        {
            "made.py": """\
import gc
print(gc.isenabled(), gc.get_threshold())
gc.collect()
class A:
    def __del__(self): print('collected')
a = A(); a.me = a; del a
print(gc.collect() > 0)
gc.disable(); import other; print(gc.isenabled()); gc.enable()
seen = gc.isenabled()
""",
            "other.py": "X = [[]]\n",
        },
        shows="collected",
    ),
    "collector-debug": case(
        """\
import gc; gc.set_debug(gc.DEBUG_SAVEALL)
import made; gc.collect(); print(len([g for g in gc.garbage if isinstance(g, made.A)]))
""",
        {
            "made.py": """\
class A: pass
for n in range(3):
    a = A(); a.me = a
del a
""",
        },
        shows="3",
    ),
    "collector-callbacks": case(
        """\
import gc, made
calls = []
gc.callbacks.append(lambda phase, info: calls.append((phase, info['generation'])))
gc.collect(); print(calls, gc.callbacks[-1] is not None)
""",
        {"made.py": "X = []"},
    ),
    "frozen-by-program": case(
        """\
import gc
gc.collect()
gc.freeze()
n = gc.get_freeze_count()
import made
gc.collect()
print(gc.get_freeze_count() >= n)
gc.unfreeze()
print(gc.get_freeze_count())
""",
        {"made.py": "X = []"},
        shows="0",
    ),
    "garbage-much": case(
        """\
import weakref
alive = set()
import heavy
print(len(heavy.alive) < 150000)
""",
        {
            "heavy.py": """\
import weakref
alive = weakref.WeakSet()
class A: pass
for n in range(200000):
    a = A(); a.me = a
    if n % 10 == 0: alive.add(a)
""",
        },
        shows="True",
    ),
    "stdout-broken": case(
        """\
import sys
print('x')
sys.stdout = None
sys.stderr = None
""",
    ),
    "stdout-replaced": case(
        """\
import sys, io
class W(io.TextIOWrapper):
    def flush(self): super().flush(); sys.__stderr__.write('F')
sys.stdout = W(sys.stdout.buffer, line_buffering=True); print('x'); import late
""",
        {"late.py": "X = [1]\n"},
    ),
}
