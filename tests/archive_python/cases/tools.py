"""Debuggers, tracers, coverage and audits."""

from . import case

M = {
    "m.py": """\
def f(a):
    b = a + 1
    return b

for n in range(2):
    f(n)

class C:
    X = 1
""",
}
CASES = {
    "settrace": case(
        """\
import sys
seen = []
def tracer(frame, event, arg):
    if frame.f_code.co_filename.endswith('m.py'): seen.append((frame.f_code.co_name, event, frame.f_lineno))
    return tracer
sys.settrace(tracer); import m; sys.settrace(None)
print(seen)
""",
        M,
        shows="'line', 2",
    ),
    "setprofile": case(
        """\
import sys
seen = []
def tracer(frame, event, arg):
    if frame.f_code.co_filename.endswith('m.py'): seen.append((frame.f_code.co_name, event))
sys.setprofile(tracer); import m; sys.setprofile(None)
print(seen)
""",
        M,
        shows="return",
    ),
    "monitoring": case(
        """\
import sys
E = sys.monitoring.events; seen = []
sys.monitoring.use_tool_id(1, 'x'); sys.monitoring.set_events(1, E.LINE | E.PY_START)
sys.monitoring.register_callback(1, E.LINE, lambda c, l: seen.append((c.co_name,
    l)) if c.co_filename.endswith('m.py') else sys.monitoring.DISABLE)
import m; sys.monitoring.set_events(1, 0); print(seen)
""",
        M,
        since=(3, 12),
        shows="('f', 2)",
    ),
    "pdb": case(
        """\
import m
print(m.f(1))
""",
        M,
        words=[["-m", "pdb", "main.py"]],
        stdin="""\
b m.py:2
c
w
p a
c
c
q
""",
        shows="Breakpoint",
    ),
    "profile": case(
        """\
import m, profile
p = profile.Profile()
p.runcall(m.f, 2)
print(sorted(k[2] for k in p.getstats() if 0) if 0 else 'profiled')
""",
        M,
    ),
    "tracemalloc": case(
        """\
import tracemalloc
tracemalloc.start(5)
import m
s = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, '*m.py')])
print(len(s.statistics('lineno')) > 0, tracemalloc.get_object_traceback(m.C) is not None)
""",
        M,
        shows="True",
    ),
    "audit": case(
        """\
import sys
seen = []
def hook(event, args):
    if event in ('import', 'exec') and (event == 'exec' or args[0] in ('m', 'later')): seen.append((event,
        args[0] if event == 'import' else args[0].co_filename[-8:]))
sys.addaudithook(hook)
import m, later; hook = None
print([s for s in seen if s[1] != 'ector.py'])
""",
        {**M, "later.py": ""},
        shows="import",
    ),
    "audit-refusing": case(
        """\
import sys
def hook(event, args):
    if event == 'import' and args[0] == 'refused': raise RuntimeError('refused')
sys.addaudithook(hook)
try: import refused
except RuntimeError as e: print(e)
import m; print(m.C.X)
""",
        {**M, "refused.py": "print('wrong')"},
        shows="refused",
    ),
    "audit-before": case(
        "print('main')\n",
        {
            **M,
            "sites/sitecustomize.py": """\
import sys
sys.addaudithook(lambda e, a: print('exec') if e == 'exec' and a[0].co_filename.endswith('m.py') else None)
""",
        },
        env={"PYTHONPATH": "sites"},
    ),
    "patterns": case(
        """\
import late
for p in late.P: print(p, p.flags, p.groups, p.groupindex, p.pattern)
print(late.P[0].sub('x', 'aaab'), late.P[1].match('Ab').groupdict(), late.E, late.P[2].findall('äöa'), late.P[0] == late.Q,
    late.P[3].fullmatch(b'ab') is not None)
import re, copy, pickle
print(re.compile('a+') is late.P[0], copy.copy(late.P[1]) is late.P[1], pickle.loads(pickle.dumps(late.P[1])) == late.P[1])
""",
        {
            "late.py": """\
import re, warnings
P = [re.compile('a+'), re.compile('(?P<x>a)(?P<y>b)', re.I), re.compile(r'\\w', re.A), re.compile(b'ab', re.S | re.M), re.compile('''a # x
 b''', re.X), re.compile('[a-z\\U0001f600]|(?<=x)y(?!z)', 0), re.compile('x{2,5}?(?i:Y)')]
Q = re.compile('a+')
E = []
for p in '(', '*', '[a', '(?P<1>x)', 'a{99999999999}', '(?z)', '\\\\q', '(?<=a+)':
    try: re.compile(p)
    except BaseException as e: E.append((type(e).__name__, str(e), getattr(e, 'pos', None)))
""",
        },
        shows="(?P<x>a)",
    ),
    "patterns-warned": case(
        "import late\n",
        {
            "late.py": """\
import re
re.compile('[[a]')
re.compile('[a--b]')
re.compile('a(?i)b') if __import__('sys').version_info < (3, 11) else 0
""",
        },
        words=[["-W", "always", "main.py"], ["-W", "error", "main.py"], ["main.py"], ["-W", "always", "main.py"]],
        shows="Warning",
    ),
    "patterns-debug": case(
        "import late\n",
        {
            "late.py": """\
import re
re.compile('a+b', re.DEBUG)
re.compile('a+b')
re.compile(b'a', re.LOCALE)
re.compile('(?L)a') if 0 else 0
class S(str): pass
print(type(re.compile(S('a')).pattern).__name__, re.compile('a').pattern)
""",
        },
        shows="MAX_REPEAT",
    ),
    "re-internals": case(
        """\
import re, late, inspect
c = getattr(re, '_compiler', None) or re.sre_compile
print(c.compile.__name__, c.compile.__qualname__, c.compile.__code__.co_name, c.isstring('a'))
re.purge(); print(re.compile('a', 16) is re.compile('a', 16), len(re._cache))
class T(re.Scanner): pass
print(re.Scanner([('a+', None)]).scan('aa'))
""",
        {"late.py": "import re; re.compile('x')"},
    ),
}
