"""Small programs whose ends, and whose views of themselves, must be the same thawed as ordinary."""

PROGRAMS = {
    "asyncio": """\
import asyncio
async def m(): await asyncio.sleep(0); print('async')
asyncio.run(m())
async def never(): pass
n=never()
""",
    "atexit_order": """\
import atexit
atexit.register(print,'one'); atexit.register(print,'two')
atexit.register(lambda:1/0)
""",
    "bad_stdout": """\
import os
os.close(1); print('x')
""",
    "chained_exception": """\
import sys
try: 1/0
except Exception as e:
    raise KeyError('k') from e
""",
    "closed_stdout": """\
import sys,os
sys.stdout.close()
""",
    "environment": """\
import os,time,locale
print(dict(os.environ), time.tzname, os.getcwd(), locale.getpreferredencoding(), os.environb)
""",
    "excepthook": """\
import sys
sys.excepthook=lambda *a: print('hook',a[0],a[1])
raise ValueError(3)
""",
    "excepthook_raises": """\
import sys
def h(*a): raise RuntimeError('in hook')
sys.excepthook=h
1/0
""",
    "executor": """\
from concurrent.futures import ThreadPoolExecutor
e=ThreadPoolExecutor(2); e.submit(lambda: print('job'))
""",
    "exit_builtin": """\
exit(7)
""",
    "exit_huge": """\
import sys; sys.exit(2**40)
""",
    "exit_list": """\
import sys; sys.exit([1,2])
""",
    "exit_negative": """\
import sys; sys.exit(-1)
""",
    "exit_none": """\
raise SystemExit
""",
    "exit_status": """\
import sys; sys.exit(3)
""",
    "exit_text": """\
import sys; sys.exit('bye')
""",
    "faulthandler": """\
import faulthandler; faulthandler.dump_traceback()
""",
    "finaliser_imports": """\
class A:
    def __del__(self):
        import colorsys
a=A()
""",
    "finaliser_raises": """\
class A:
    def __del__(self):
        raise ValueError('q')
a=A()
""",
    "finalisers": """\
class A:
    def __del__(self): print('del', self.n)
a=A(); a.n=1
b=A(); b.n=2; b.me=b
class C: x=A()
C.x.n=3
A.own=A(); A.own.n=4
""",
    "foreign_stdout": """\
import sys
class B:
    def __init__(s): s.l=[]
    def write(s,x): sys.__stdout__.write('<'+x+'>')
    def flush(s): sys.__stdout__.write('F')
sys.stdout=B(); print('a')
""",
    "fork": """\
import os
if os.fork()==0: print('c'); raise SystemExit(4)
print(os.wait()[1]>>8)
""",
    "future_and_docstring": """\
from __future__ import annotations
'''doc'''
x: int = 3
print(__annotations__, __doc__)
""",
    "gc_state": """\
'''doc'''
print(__doc__)
import gc; print(gc.isenabled(), gc.get_threshold(), gc.garbage)
""",
    "gzip": """\
import gzip
g=gzip.GzipFile('out','w',mtime=0)
g.write(b'hi')
""",
    "held_by_frozen_module": """\
import collections
class A:
    def __del__(self): print('del frozen-held')
collections.keep=A()
collections.keep2=open('out4','w'); collections.keep2.write('kept')
""",
    "hello": """\
print('hello')
""",
    "interpreter_state": """\
import sys
print(sys.argv, getattr(sys,'orig_argv',None), sys.path, sys.flags, sorted(sys.modules), sys._getframe().f_back)
m=sys.modules['__main__'].__dict__
import re
print(re.sub('0x[0-9a-f]+','',repr([(k,v) for k,v in list(m.items())])))
""",
    "keyboard_interrupt": """\
raise KeyboardInterrupt
""",
    "linecache": """\
import linecache; print(linecache.cache.keys())
""",
    "logging_file": """\
import logging
logging.basicConfig(filename='out_log'); logging.warning('w %d',1); logging.getLogger().handlers[0].stream.write('more')
""",
    "multiprocessing": """\
import multiprocessing
if __name__=='__main__':
    p=multiprocessing.get_context('fork').Process(target=print,args=('child',)); p.start()
""",
    "non_daemon_thread": """\
import threading,time
ends=threading.Event()
def f(): ends.wait(); time.sleep(.05); print('thread done')
threading.Thread(target=f).start()
print('main done'); ends.set()
""",
    "read_stdin": """\
import sys
print(input(), sys.stdin.read())
""",
    "replaced_stdout": """\
import sys,io
sys.stdout=open('out2','w'); print('x')
""",
    "runpy_state": """\
import runpy, pkgutil, sys; print('importlib.util' in sys.modules)
""",
    "sigint": """\
import signal,os
os.kill(os.getpid(), signal.SIGINT)
""",
    "signals": """\
import signal; print([signal.getsignal(s) for s in (signal.SIGINT,signal.SIGPIPE,signal.SIGTERM)])
""",
    "sigterm": """\
import os,signal
os.kill(os.getpid(), signal.SIGTERM)
""",
    "stack": """\
import sys,traceback,inspect
traceback.print_stack(); print(len(inspect.stack()))
""",
    "streams": """\
import sys,os
print(sys.stdout, sys.stdout.line_buffering, sys.stdin.line_buffering, sys.stderr, sys.stderr.line_buffering)
print(sys.stdout.buffer.raw, sys.stdin.buffer, sys.stdout.errors, sys.stdin.errors, sys.stderr.errors,sys.stdin.mode)
try: print(sys.stdin.seekable(), sys.stdout.tell())
except OSError as e: print(e)
""",
    "subprocess": """\
import subprocess,sys
print(subprocess.run([sys.executable,'-c','print(1)'],stdout=subprocess.PIPE).stdout)
""",
    "syntax_error": """\
x =
""",
    "syntax_warning": """\
print("a\\qb", 1 is 1)
""",
    "temporary_files": """\
import tempfile
d=tempfile.TemporaryDirectory(dir='.')
n=tempfile.NamedTemporaryFile(dir='.')
""",
    "thread_exits": """\
import threading,sys
def f(): sys.exit(5)
t=threading.Thread(target=f);t.start();t.join()
def g(): raise ValueError
t=threading.Thread(target=g);t.start();t.join()
""",
    "uncaught": """\
import sys
def f(): 1/0
f()
""",
    "unclosed_file": """\
f=open('out1','w'); f.write('a')
""",
    "unflushed_output": """\
import os,sys
print('buffered',end='')
os.write(1,b'raw')
sys.stderr.write('err')
""",
    "warnings": """\
import warnings
warnings.warn('x', stacklevel=2)
warnings.warn('y')
def f(): warnings.warn('z', DeprecationWarning, 2)
f()
""",
    "weakref_callbacks": """\
import weakref
class A: pass
a=A(); r=weakref.ref(a,lambda r:print('gone'))
weakref.finalize(a, print, 'finalize')
""",
}
