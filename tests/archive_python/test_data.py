"""Data files from the boot archive: the same objects, never stale, and only what is read from files."""

import json
import os
import sys

import pytest
import workloads
from common import support
from common.waiting import settle

pytestmark = pytest.mark.sample(3)

RUN = support.ROOT / "python/snapboot/archive/run"
# From CPython 3.15 on tomllib imports a part of itself when it first parses.
SERVES_TOML = sys.version_info < (3, 15)
# What the programs below use; a value is told with its type and the identity of what it contains.
HEAD = """
import datetime, gzip, io, json, sys
from collections import OrderedDict
def described(value, seen):
    if isinstance(value, (dict, list, tuple)):
        if id(value) in seen:
            return "the same as %d" % seen[id(value)]
        seen[id(value)] = len(seen)
    if isinstance(value, dict):
        return "%s(%s)" % (type(value).__name__, ", ".join(described(k, seen) + ": " + described(v, seen) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return "%s(%s)" % (type(value).__name__, ", ".join(described(one, seen) for one in value))
    return "%s %r" % (type(value).__name__, value)
def show(value):
    print(described(value, {}))
    # Equal strings are one object in what the archive gives: nothing but this shows where it comes from.
    print("from the archive" if value["twin"] is value["Twin"] else "parsed", file=sys.stderr)
"""
FILLER = {f"key {n}": [n, n * 1.5, None, True, {"text": f"text {n}"}] for n in range(200)}
JSON = json.dumps(
    {"twin": "the same", "Twin": "the same", "ä ☃ 𝄞": "𝄞 ü", "large": 2**62, "less": -5, "": {}, "empty": [], **FILLER}
)
YAML = """
twin: the same
Twin: the same
one: &one {text: &text some text, list: [1, 2.5, 0x10, ~, true, "-7", -7, .inf]}
two: *one
text: *text
dates: [2001-12-14, 2001-12-14t21:59:43.10-05:00, 2001-12-14T21:59:43Z, 2001-12-14 21:59:43]
ordered: !!omap [x: 1, y: 2]
binary: !!binary aGVsbG8=
merged: {<<: *one, more: ä ☃ 𝄞}
"""
TOML = """
twin = "the same"
Twin = "the same"
times = [1979-05-27T07:32:00-08:00, 1979-05-27T07:32:00Z, 1979-05-27T07:32:00, 1979-05-27, 07:32:00.5]
[table]
numbers = [1, 2.5, inf, 0x10, true]
[[tables]]
text = '''ä ☃
𝄞'''
[[tables]]
filler = "%s"
""" % ("-" * 200)


class Program:
    """A program in a folder of its own, and an archive."""

    def __init__(self, folder, code, python=support.PYTHON):
        self.folder, self.python = folder, python
        self.write("program.py", HEAD + code)

    def write(self, name, content):
        """Write a file, and wait until it is old enough to be kept."""
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        settle()

    def ordinary(self):
        """What an ordinary start prints."""
        return self._run({})[0]

    def start(self, **variables):
        """What a start with the archive prints, and for each document where it came from."""
        return self._run(
            {"PYTHONPATH": os.fspath(RUN), "SNAPBOOT_ARCHIVE": os.fspath(self.folder / "archive"), **variables}
        )

    def _run(self, variables):
        env = support.environment(**variables)
        result = support.run([self.python, "program.py"], env=env, log=False, cwd=self.folder)
        assert result.status == 0, result.err
        return result.out, result.err.splitlines()

    def check(self, documents=1):
        """Ordinary, cold and warm: the same, and the warm one from the archive."""
        ordinary = self.ordinary()
        assert self.start() == (ordinary, ["parsed"] * documents)
        assert self.start() == (ordinary, ["from the archive"] * documents)


READS = {
    "load": "show(json.load(open('data.json', encoding='utf-8')))",
    "loads": "show(json.loads(open('data.json', 'rb').read().decode()))",
    "bytes": "show(json.loads(open('data.json', 'rb').read()))",
    "ordered": "show(json.loads(open('data.json', 'rb').read(), object_pairs_hook=OrderedDict))",
    "gzip": "show(json.loads(gzip.open('data.json.gz').read().decode(), object_pairs_hook=OrderedDict))",
    "decoder": "show(json.JSONDecoder(strict=False).raw_decode(open('data.json', encoding='utf-8').read())[0])",
    "blanks": "show(json.JSONDecoder().decode('  ' + open('spaced.json', encoding='utf-8').read()[2:]))",
}


@pytest.mark.parametrize("read", READS)
def test_json_is_the_same(tmp_path, read):
    """All ways to read a file of JSON."""
    import gzip

    program = Program(tmp_path, READS[read])
    program.write("data.json", JSON)
    program.write("spaced.json", "  " + JSON)
    program.write("data.json.gz", gzip.compress(JSON.encode()))
    program.check()


def test_objects_are_fresh(tmp_path):
    """Two calls give objects that have nothing in common."""
    program = Program(
        tmp_path, "read = lambda: json.load(open('data.json'))\na, b = read(), read()\na['key 1'].append(0)\nshow(b)"
    )
    program.write("data.json", JSON)
    program.check()


def test_edited_file_is_parsed(tmp_path):
    """A file of the same size and with the same mtime."""
    program = Program(tmp_path, "show(json.load(open('data.json')))")
    program.write("data.json", JSON)
    program.check()
    times = os.stat(tmp_path / "data.json")
    program.write("data.json", JSON.replace("text 1", "TEXT 1"))
    os.utime(tmp_path / "data.json", ns=(times.st_atime_ns, times.st_mtime_ns))
    program.check()


def test_text_that_is_not_the_files(tmp_path):
    """What the program has made of a file's content is parsed, even where its size is the same."""
    program = Program(
        tmp_path,
        "text = open('data.json').read()\nshow(json.loads(text.replace('text 1', 'TEXT 1')))\nshow(json.loads(text))",
    )
    program.write("data.json", JSON)
    ordinary = program.ordinary()
    assert program.start() == (ordinary, ["parsed", "parsed"])
    assert program.start() == (ordinary, ["parsed", "from the archive"])


OPTIONS = {
    "hook": "object_hook=lambda pairs: dict(pairs, seen=1)",
    "pairs": "object_pairs_hook=lambda pairs: dict(pairs[::-1])",
    "float": "parse_float=str",
    "int": "parse_int=float",
    "class": "cls=type('Decoder', (json.JSONDecoder,), {'decode': lambda self, text: {'twin': [], 'Twin': ()}})",
    "constant": "parse_constant=str",
}


@pytest.mark.parametrize("option", OPTIONS)
def test_functions_of_the_program_are_called(tmp_path, option):
    """Whatever a program makes of objects or numbers itself is never kept."""
    program = Program(tmp_path, f"json.load(open('data.json'))\nshow(json.load(open('data.json'), {OPTIONS[option]}))")
    program.write("data.json", JSON[:-1] + ', "constant": NaN}')
    for _ in range(3):
        assert program.start() == (program.ordinary(), ["parsed"])


def test_nothing_but_files_is_kept(tmp_path):
    """Texts from elsewhere do not make the archive grow, and `json` is left alone after many of them."""
    code = """
for number in range(300):
    json.loads(json.dumps({"twin": number, "text": "x" * 5000}))
print(json.loads("[1]"), json.load(open("data.json")) == json.loads(open("data.json").read()))
is_c = json.scanner.make_scanner is json.scanner.c_make_scanner
print("left alone" if is_c and type(json._default_decoder.scan_once) is json.scanner.c_make_scanner else "served", file=sys.stderr)
"""
    program = Program(tmp_path, code)
    program.write("data.json", JSON)
    ordinary = program.ordinary()
    for _ in range(2):
        assert program.start() == (ordinary, ["left alone"])
        assert b"x" * 5000 not in (tmp_path / "archive").read_bytes()


def test_errors_are_the_same(tmp_path):
    """Message, place and frames."""
    program = Program(
        tmp_path,
        "import traceback\ntry:\n    json.load(open('data.json'))\nexcept ValueError:\n    print(traceback.format_exc())",
    )
    program.write("data.json", JSON[:-1])
    for _ in range(2):
        assert program.start() == (program.ordinary(), [])


def test_switch(tmp_path):
    """SNAPBOOT_ARCHIVE_DATA=off."""
    program = Program(tmp_path, "show(json.load(open('data.json')))")
    program.write("data.json", JSON)
    program.check()
    assert program.start(SNAPBOOT_ARCHIVE_DATA="off") == (program.ordinary(), ["parsed"])


@pytest.fixture(scope="module")
def yaml_python():
    """A Python with PyYAML; skips where it cannot be had."""
    try:
        return workloads.prepare("pyyaml")["python"]
    except workloads.Unavailable as reason:
        pytest.skip(str(reason))


def test_file_opened_while_the_interpreter_ends(tmp_path, yaml_python):
    """A finaliser that reads a file, when Python does not count as initialised any more; from a virtual environment."""
    code = "class X:\n    def __del__(self, open=open, write=sys.__stdout__.write, json=json):\n"
    code += "        with open('data.json') as file:\n            write(str(len(json.load(file))))\nx = X()\nx.me = x"
    program = Program(tmp_path, code, yaml_python)
    program.write("data.json", JSON)
    for _ in range(3):
        assert program.start(SNAPBOOT_ARCHIVE_EXIT="off") == (program.ordinary(), [])


YAMLS = {
    "text": "show(yaml.safe_load(open('data.yaml', encoding='utf-8').read()))",
    "file": "file = open('data.yaml', encoding='utf-8')\nshow(yaml.safe_load(file))\nprint(file.tell(), file.read())",
    "bytes": "show(yaml.load(open('data.yaml', 'rb'), Loader=yaml.SafeLoader))",
    "library": "show(yaml.load(open('data.yaml', 'rb'), yaml.CSafeLoader))",
    "pickled": "import pickle\nshow(pickle.loads(pickle.dumps(yaml.load))(open('data.yaml'), yaml.SafeLoader))",
    "method": "show(type('X', (), {'load': yaml.safe_load.__globals__['load'].__get__(open('data.yaml'))})().load(yaml.SafeLoader))",
}


@pytest.mark.parametrize("read", YAMLS)
def test_yaml_is_the_same(tmp_path, yaml_python, read):
    """All ways to read a file of YAML."""
    program = Program(tmp_path, "import yaml\n" + YAMLS[read], yaml_python)
    program.write("data.yaml", YAML)
    program.check()


TAUGHT = {
    "constructor": "yaml.add_constructor('tag:yaml.org,2002:int', lambda loader, node: 'own', Loader=yaml.SafeLoader)",
    "resolver": "yaml.add_implicit_resolver('tag:yaml.org,2002:null', __import__('re').compile('some text'), Loader=yaml.SafeLoader)",
    "method": "yaml.constructor.SafeConstructor.construct_yaml_int = None",
    "table": "yaml.constructor.SafeConstructor.bool_values['true'] = 'own'",
    "module": "yaml.constructor.datetime = __import__('types').SimpleNamespace(date=tuple.__call__)",
    "subclass": "yaml.SafeLoader = type('SafeLoader', (yaml.SafeLoader,), {})",
    "other loader": "yaml.SafeLoader = yaml.FullLoader",
}


@pytest.mark.parametrize("how", TAUGHT)
def test_yaml_that_the_program_has_changed(tmp_path, yaml_python, how):
    """A parser that was taught more, or changed, parses itself."""
    code = (
        "import yaml\ndef read():\n    return yaml.load(open('data.yaml'), yaml.SafeLoader)\nread()\n%s\n" % TAUGHT[how]
    )
    code += "try:\n    show(read())\nexcept Exception as error:\n    print(type(error), error)\n    print('parsed', file=sys.stderr)"
    program = Program(tmp_path, code, yaml_python)
    program.write("data.yaml", YAML)
    ordinary = program.ordinary()
    for _ in range(3):
        assert program.start() == (ordinary, ["parsed"])


def test_yaml_errors_are_the_same(tmp_path, yaml_python):
    """Message, place, name of the file and frames."""
    code = "import traceback, yaml\ntry:\n    yaml.safe_load(open('data.yaml'))\nexcept Exception:\n    print(traceback.format_exc())"
    program = Program(tmp_path, code, yaml_python)
    program.write("data.yaml", YAML + "x: [")
    for _ in range(2):
        assert program.start() == (program.ordinary(), [])


def test_function_is_described_as_before(tmp_path, yaml_python):
    """What inspection tells of a function that is served."""
    code = "import inspect, yaml\nload = yaml.load\nprint(inspect.signature(load), inspect.getsource(load), load.__doc__, load.__name__)\n"
    code += "print(load.__module__, load.__qualname__, load.__defaults__, inspect.getfile(inspect.unwrap(load)))"
    program = Program(tmp_path, code, yaml_python)
    for _ in range(2):
        assert program.start() == (program.ordinary(), [])


def test_toml_is_the_same(tmp_path):
    """tomllib, from Python 3.11 on."""
    pytest.importorskip("tomllib")
    program = Program(
        tmp_path,
        "import tomllib\nshow(tomllib.load(open('data.toml', 'rb')))\nshow(tomllib.loads(open('data.toml').read()))",
    )
    program.write("data.toml", TOML)
    ordinary = program.ordinary()
    assert program.start()[0] == ordinary
    assert program.start() == (ordinary, ["from the archive" if SERVES_TOML else "parsed"] * 2)


@pytest.mark.skipif(not SERVES_TOML, reason="tomllib loads a part of itself later, so the archive leaves it alone")
def test_parser_that_is_imported_first(tmp_path):
    """A program that imports nothing else before."""
    pytest.importorskip("tomllib")
    program = Program(tmp_path, "")
    program.write(
        "program.py",
        "import tomllib\nvalue = tomllib.load(open('data.toml', 'rb'))\nprint(value['twin'] is value['Twin'])",
    )
    program.write("data.toml", TOML)
    assert [program.start()[0] for _ in range(2)] == ["False\n", "True\n"]


def test_toml_with_functions_of_the_program(tmp_path):
    """parse_float, and a module that was changed."""
    pytest.importorskip("tomllib")
    code = "import tomllib\nread = lambda **options: show(tomllib.load(open('data.toml', 'rb'), **options))\nread(parse_float=str)\n"
    code += "tomllib._parser.parse_value = lambda *arguments: (arguments[1] + 3, 'own')\n"
    code += "try:\n    read()\nexcept Exception as error:\n    print(error)"
    program = Program(tmp_path, "import tomllib\ntomllib.load(open('data.toml', 'rb'))\n" + code)
    program.write("data.toml", TOML)
    for _ in range(3):
        assert program.start() == (program.ordinary(), ["parsed"])
