"""What depends on HOME, PATH and the user's name, as another start shows: a thaw renews what is only kept, the rest binds the image.

Each program is started as another user at another place, with the image and in the ordinary way: the same must come out, thawed or not.
"""

import os

import pytest
from common import support
from common.languages import both

# What is done with a value, in each language, and whether a thaw renews it. V stands for the value.
WAYS = {
    "kept": (("V", True), ("V", True)),
    "kept as bytes": (("V.encode()", True), ("V.b", True)),
    "joined": (("V + '/.config/x'", True), ("File.join(V, '.config/x')", True)),
    "within a text": (("'in ' + V + ', and ' + V", True), ("\"in #{V}, and #{V}\"", True)),
    "a path": (("pathlib.PurePath(V + '/x')", True), ("Pathname(V + '/x')", True)),
    "a path that C code holds": (("held_by_c(pathlib.PurePath(V + '/x'))", True), None),
    "a key that C code holds": (
        ("(lambda key: lambda: {key: {key}}[pathlib.Path(os.environ[{name!r}] + '/x')])(held_by_c(pathlib.Path(V + '/x')))", True),
        None,
    ),
    "a text that C code holds": (("held_by_c(V + '/x')", False), None),
    "in a list in a table": (("{'a': [1, V]}", True), ("{ 'a' => [1, V] }", True)),
    "in tuples": (("((V, 1), 2)", True), None),
    "in a set": (("{V, 'other'}", True), ("Set[V, 'other']", True)),
    "a key": (("{V: 1}", True), ("{ V => 1 }", True)),
    "a key that exists once": (None, ("{ +V => 1 }", False)),
    "a key of a frozen table": (None, ("{ V => 1 }.freeze", False)),
    "a default": (("(lambda value=V: value).__defaults__", True), ("Hash.new(V)[:x]", True)),
    "the default of a table": (None, ("Hash.new(V).then { |table| -> { table[:x] } }", True)),
    "in a closure": (("(lambda value: lambda: value)(V)()", True), ("V.then { |value| -> { value } }", True)),
    "in a partial": (("functools.partial(print, V).args", True), ("V.method(:itself)", True)),
    "in what defines a method": (None, ("V.then { |value| Class.new { define_method(:call) { value } }.new }", True)),
    "in a variable of an object": (
        None,
        ("Exception.new.tap { |it| it.instance_variable_set(:@v, V) }.instance_eval { -> { @v } }", True),
    ),
    "in a variable of a class": (
        None,
        ("Class.new { class_variable_set(:@@v, V); def self.call = class_variable_get(:@@v) }", True),
    ),
    "in a Struct": (None, ("Struct.new(:a).new(V)", True)),
    "in an exception": (None, ("RuntimeError.new(V).message", True)),
    "frozen": (None, ("(+V).freeze", True)),
    "a private constant": (
        None,
        ("Class.new { const_set(:K, ::V); private_constant :K; def self.call = const_get(:K) }", True),
    ),
    "a text that exists once": (None, ("-(V + '/x')", False)),
    "a symbol": (None, ("V.to_sym", False)),
    "a range": (None, ("V..(V + 'x')", True)),
    "in code": (None, ("Class.new { class_eval(\"def call = #{V.inspect}\") }.new", False)),
    "its length": (("len(V)", False), ("V.size", False)),
    "its length in a closure": (None, ("V.size.then { |value| -> { value } }", False)),
    "its length in what defines a method": (
        None,
        ("V.size.then { |value| Class.new { define_method(:call) { value } }.new }", False),
    ),
    "its length as a private constant": (
        None,
        ("Class.new { const_set(:K, ::V.size); private_constant :K; def self.call = const_get(:K) }", False),
    ),
    "its parts": (("V.split('e')", False), ("V.split('e')", False)),
    "its end": (("V[-3:]", False), ("V[-3..]", False)),
    "in capitals": (("V.upper()", False), ("V.upcase", False)),
    "in another encoding": (None, ("V.encode('UTF-16LE')", False)),
    "hashed": (("hashlib.sha256(V.encode()).hexdigest()", False), ("Digest::SHA256.hexdigest(V)", False)),
    "hashed so far": (None, ("Digest::SHA256.new.tap { |it| it << V }.to_s", False)),
    "compared": (("V == {value!r}", False), ("V == {value!r}", False)),
    "a branch": (("[1, 2] if V == {value!r} else None", False), ("V == {value!r} ? [1, 2] : nil", False)),
    "a pattern": (("re.compile(re.escape(V))", False), ("/#{Regexp.escape(V)}/", False)),
    "a class by it": (
        ("type('A' if V == {value!r} else 'B', (), dict()).__name__", False),
        ("Object.const_set(V == {value!r} ? :Aa : :Bb, Class.new)", False),
    ),
    "a method by it": (None, ("Class.new { if V == {value!r}\n def call = 1\nelse def call = 2\nend }.new", False)),
    "in the environment": (None, ("ENV['OWN'] = \"#{V}/x\"; -> { ENV['OWN'] }", True)),
    "in a global variable": (None, ("$kept = \"#{V}/x\"; -> { $kept }", True)),
    "what runs at the end": (None, ("V.then { |value| at_exit { p value } }; 1", True)),
    "what runs at the end by its length": (None, ("V.size.then { |value| at_exit { p value } }; 1", False)),
    "in a thread's variable": (None, ("Thread.current[:kept] = V; -> { Thread.current[:kept] }", True)),
    "copies of it": (None, ("[V, V.dup, V + '', V[1..], V.b, V.to_s, \"#{V}\"]", False)),
    "equal copies of it": (None, ("[V, V.dup, V + '', V.b, V.to_s, \"#{V}\", File.expand_path(V)]", True)),
    "beside what each boot has another of": (
        None,
        ("\"#{V} #{Process.clock_gettime(1, :nanosecond)}\".then { |text| -> { text[/\\A\\S+/] } }", False),
    ),
    "below a key": (None, ("{ [V] => 1 }.then { |table| -> { table[[ENV[{name!r}]]] } }", False)),
    "below a key that is kept elsewhere": (
        None,
        ("[[V]].then { |keys| table = keys.to_h { |key| [key, 1] }; -> { [keys, table[keys[0]]] } }", False),
    ),
    "in a Struct in a set": (
        None,
        ("Set[Struct.new(:a).new(V)].then { |set| -> { set.map { |it| [it.a, set.include?(it)] } } }", False),
    ),
    "the order of a table": (None, ("V == {value!r} ? { a: 1, 'b' => 2 } : { 'b' => 2, a: 1 }", False)),
    "one of two closures in a line": (None, ("V == {value!r} ? -> { 1 } : -> { 2 }", False)),
    "one of two methods in a line": (None, ("Class.new { V == {value!r} ? (def call = 1) : (def call = 2) }.new", False)),
    "a method in C by it": (
        None,
        ("Class.new(String) { alias_method :call, V == {value!r} ? :upcase : :downcase }.new('Aa')", False),
    ),
    "a closure in C by it": (
        None,
        ("(V == {value!r} ? :upcase : :downcase).to_proc.then { |it| -> { it.call('Aa') } }", False),
    ),
    "who may call a method by it": (
        None,
        ("Class.new { def call = 1; private :call if V == {value!r} }.new.then { |it| -> { it.call rescue 2 } }", False),
    ),
    "whether something is frozen": (
        None,
        ("[+'a'].tap { |it| it.freeze if V == {value!r} }.then { |it| -> { it.frozen? } }", False),
    ),
    "whether a text is frozen": (
        None,
        ("(+'a').tap { |it| it.freeze if V == {value!r} }.then { |it| -> { it.frozen? } }", False),
    ),
    "in a queue": (None, ("Queue.new.tap { |it| it << V.size }.then { |it| -> { it.pop } }", False)),
    "as an exit status": (None, ("SystemExit.new(V.size % 100).then { |it| -> { it.status } }", False)),
    "as a key that is missing": (None, ("KeyError.new(key: V.size, receiver: 1).then { |it| -> { it.key } }", False)),
    "as the umask": (None, ("File.umask(V == {value!r} ? 0o27 : 0o22); -> { File.umask }", False)),
    "as a signal's handler": (
        None,
        ("trap('USR1', V == {value!r} ? 'IGNORE' : 'DEFAULT'); -> { trap('USR1', 'DEFAULT') }", False),
    ),
    "a part of it read later": (None, ("StringIO.new(V).tap { |it| it.read(2) }.string", True)),
}
LANGUAGES = {
    "python": (
        support.PYTHON,
        "V = os.environ[{name!r}]\nVALUE = {way}\ndel V",
        "import boot; value = boot.VALUE\n"
        "if callable(value): value = value()\n"
        "if isinstance(value, set): value = sorted(value)\n"
        "if isinstance(value, dict): value = {k: v for k, v in value.items() if not str(k).startswith('SNAPBOOT')}\n"
        "print(value)",
    ),
    "ruby": (
        support.RUBY,
        "require 'digest'; require 'pathname'; require 'set'; require 'stringio'\nV = ENV[{name!r}]\nVALUE = {way}\n"
        "Object.send(:remove_const, :V)",
        "value = VALUE\nvalue = value.call if value.respond_to?(:call)\np value\np value[value.keys.first] if value.is_a?(Hash)\n"
        "p value.encoding if value.is_a?(String)",
    ),
}


HELD_BY_C = """
def held_by_c(thing):
    import ctypes
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return thing
"""


class Program:
    """A module that is preloaded, and its image."""

    def __init__(self, folder, source, env, language="python", start=None):
        self.start = start or folder
        self.program, _, self.show = LANGUAGES[language]
        self.env = {**support.environment(PYTHONPATH=str(folder)), **env}
        self.image = folder / "x.img"
        if language == "python":
            (folder / "boot.py").write_text("import functools, hashlib, os, pathlib, re, shutil, sys\n" + HELD_BY_C + source + "\n")
            self.preload, self.option = "boot", "-c"
        else:
            (folder / "boot.rb").write_text(source + "\n")
            self.preload, self.option = f"{folder}/boot", "-e"
            self.show = f"require {str(folder / 'boot')!r}\n{self.show}"
        self.result = support.freeze(self.image, [self.program], "--preload", self.preload, env=self.env, cwd=self.start)
        assert self.result.status == 0, self.result

    def check(self, is_served, **changes):
        """A start with other variables prints what an ordinary one prints. is_served: whether the image serves it, or None."""
        env = {name: value for name, value in {**self.env, **changes}.items() if value is not None}
        image, plain = (
            support.run([program, self.option, self.show], env=env, cwd=self.start) for program in (self.image, self.program)
        )
        assert (image.out, image.status) == (plain.out, plain.status), (image, plain)
        assert is_served is None or image.fell_back != is_served, image


def cases(ways):
    """Pairs of a language and a way that it has. ways: a row for each language by the way, as WAYS."""
    for way, rows in ways.items():
        for language, row in zip(LANGUAGES, rows, strict=True):
            if row:
                yield pytest.param(language, way, marks=[support.needs_ruby] if language == "ruby" else [])


@pytest.mark.sample(128)
@pytest.mark.parametrize("variable", ["HOME", "USER", "LOGNAME", "PATH", "SITE"])
@pytest.mark.parametrize("language, way", list(cases(WAYS)))
def test_what_is_only_kept_is_renewed(language, way, variable, tmp_path, homes):
    path = ":".join(dict.fromkeys(os.environ["PATH"].split(":")))
    values = {"HOME": homes, "SITE": homes, "PATH": [path, f"{path}:/nowhere"]}.get(variable, ["one", "the-other"])
    expression, is_renewed = dict(zip(LANGUAGES, WAYS[way], strict=True))[language]
    _, source, _ = LANGUAGES[language]
    source = source.replace("{way}", expression.replace("{value!r}", repr(values[0]))).replace("{name!r}", repr(variable))
    program = Program(tmp_path, source, {variable: values[0]}, language)
    program.check(True)
    program.check(is_renewed, **{variable: values[1]})
    program.check(False, **{variable: None})


@both
def test_what_was_looked_for_below_home_counts_where_it_is(language, tmp_path, homes):
    first, second = homes
    source = {
        "python": "VALUE = os.path.exists(os.path.expanduser('~/.config/x'))",
        "ruby": "VALUE = File.exist?(File.expand_path('~/.config/x'))",
    }
    program = Program(tmp_path, source[language.name], {"HOME": first}, language.name)
    program.check(True, HOME=second)
    # RubyGems looks whether it is there.
    program.check(language.name == "python", HOME=f"{tmp_path}/is-not-there")
    os.makedirs(f"{first}/.config/x")
    program.check(True, HOME=second)
    program.check(False)
    os.makedirs(f"{second}/.config/x")
    program.check(False, HOME=second)


@both
def test_packages_of_the_user_count_where_home_is(language, tmp_path, homes):
    """A program that reads nothing of HOME itself: who starts it may be another user than who has made its image."""
    first, second = homes
    program = Program(tmp_path, "VALUE = 1", {"HOME": first}, language.name)
    if language.name == "python":
        show = [language.program, "-c", "import site; print(site.getusersitepackages())"]
    else:
        show = [language.program, "-e", "puts Gem.user_dir"]
    folders = [support.run(show, env={**program.env, "HOME": home}).out.strip() for home in homes]
    assert folders[0].startswith(first), folders
    program.check(True, HOME=second)
    os.makedirs(folders[0])
    program.check(True, HOME=second)
    program.check(False)
    os.makedirs(folders[1])
    program.check(False, HOME=second)


@support.needs_root
@pytest.mark.parametrize("command", [("python3", "-c", "print(1)"), pytest.param(("ruby", "-e", "puts 1"), marks=support.needs_ruby)])
def test_another_user_is_served(command, open_path):
    """As in a container whose image root has built: nobody else may look into root's home directory."""
    first, second = open_path / "home", open_path / "another-home"
    first.mkdir(mode=0o700)
    second.mkdir(mode=0o755)
    program, *words = command
    if not os.path.exists(f"/usr/bin/{program}"):
        pytest.skip("needs a runtime that everybody may look into")
    env = support.environment(HOME=str(first))
    image = support.frozen(open_path / "x.img", [f"/usr/bin/{program}"], env=env, cwd="/")
    env = {**env, "HOME": str(second), "SNAPBOOT_ON_STALE": "error"}
    result = support.run(support.as_nobody([image, *words]), env=env, cwd="/")
    assert (result.out, result.status) == ("1\n", 0), result


def test_that_the_current_directory_is_there_counts_nowhere(tmp_path):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    source = "VALUE = pathlib.Path.cwd().resolve().is_dir(), os.path.islink(os.getcwd())"
    program = Program(tmp_path, source, {}, start=tmp_path / "here")
    program.check(True)
    program.start = tmp_path / "there"
    program.check(True)
    (tmp_path / "here").rmdir()
    program.check(True)


@both
def test_whether_home_itself_is_there_counts(language, tmp_path, homes):
    first, second = homes
    source = {"python": "VALUE = os.path.isdir(os.environ['HOME'])", "ruby": "VALUE = File.directory?(ENV['HOME'])"}
    program = Program(tmp_path, source[language.name], {"HOME": first}, language.name)
    program.check(True, HOME=second)
    program.check(False, HOME=f"{tmp_path}/is-not-there")


@both
def test_what_was_found_below_home_binds_to_it(language, tmp_path, homes):
    first, second = homes
    (tmp_path / "home" / "settings").write_text("1")
    source = {
        "python": "VALUE = open(os.path.expanduser('~/settings')).read()",
        "ruby": "VALUE = File.read(File.expand_path('~/settings'))",
    }
    program = Program(tmp_path, source[language.name], {"HOME": first}, language.name)
    program.check(True)
    (tmp_path / "another-home" / "settings").write_text("2")
    program.check(False, HOME=second)


@support.needs_ruby
def test_ruby_keeps_values_that_were_not_tried_apart(tmp_path, homes):
    """A path is put together in another way where it ends with a slash, or is the root."""
    program = Program(tmp_path, "VALUE = ENV['HOME'] + '/x', File.join(ENV['HOME'], 'x')", {"HOME": homes[0]}, "ruby")
    program.check(True, HOME=homes[1])
    names = ["/", "/../home", "\u00e4", " x", "~", "$x", ":x", "/" + "long" * 25]
    for value in (*(homes[1] + name for name in names), "/", "relative"):
        program.check(False, HOME=value)


@support.needs_ruby
def test_ruby_keeps_homes_of_another_kind_apart(tmp_path, homes):
    """A program that has only kept HOME has looked neither whether it is a link, nor whose it is."""
    program = Program(tmp_path, "VALUE = File.realpath(ENV['HOME']) == ENV['HOME']", {"HOME": homes[0]}, "ruby")
    (tmp_path / "link").symlink_to(homes[1])
    program.check(True, HOME=homes[1])
    program.check(False, HOME=f"{tmp_path}/link")
    if support.IS_ROOT:
        os.chown(homes[1], support.NOBODY, support.NOBODY)
        program.check(False, HOME=homes[1])


@support.needs_ruby
def test_ruby_keeps_search_paths_of_another_form_apart(tmp_path):
    program = Program(tmp_path, "VALUE = ENV['PATH'].split(':').uniq.size > 1", {"PATH": "/bin:/usr/bin"}, "ruby")
    program.check(True, PATH="/usr/bin:/nowhere")
    for value in ("/bin:/bin", "/usr/bin:", ":/usr/bin", "/usr/bin:.", "/usr/bin:/a b"):
        program.check(False, PATH=value)


@support.needs_ruby
def test_ruby_keeps_names_of_another_form_apart(tmp_path):
    program = Program(tmp_path, "VALUE = ENV['USER'].match?(/[ @]/)", {"USER": "one"}, "ruby")
    program.check(True, USER="Two.and-2")
    for value in ("one two", "one@here", "o" * 41, ""):
        program.check(False, USER=value)


# What a boot does in Ruby where no name leads, and what shows it.
OUT_OF_SIGHT = {
    "a handler of one start": ("at_exit { puts 'bye' } if ENV['HOME'].end_with?('/home')", "p 0"),
    "bound arguments": ("BOUND = ->(a, b) { [a, b] }.curry[ENV['HOME'].dup]", "p BOUND[1]"),
    "methods of one hash": ("KEPT = {}; home = ENV['HOME'].dup; KEPT.define_singleton_method(:home) { home }", "p KEPT.home"),
    "methods of one list": ("KEPT = []; home = ENV['HOME'].dup; KEPT.define_singleton_method(:home) { home }", "p KEPT.home"),
    "a pattern made once": ("def pattern(text) = /#{text}/o; pattern(ENV['HOME'])", "p pattern('x')"),
    "an offset": ("TIME = Time.at(0, in: ENV['HOME'].end_with?('/home') ? '+01:00' : '+02:00')", "p TIME"),
    "the name of a thread": ("Thread.current.name = ENV['HOME'].end_with?('/home') ? 'home' : 'other'", "p Thread.current.name"),
}


@support.needs_ruby
@pytest.mark.sample(32)
@pytest.mark.parametrize("what", OUT_OF_SIGHT)
def test_what_ruby_keeps_out_of_sight(what, tmp_path, homes):
    source, show = OUT_OF_SIGHT[what]
    program = Program(tmp_path, source, {"HOME": homes[0]}, "ruby")
    program.show = f"require {str(tmp_path / 'boot')!r}\n{show}"
    program.check(True)
    program.check(None, HOME=homes[1])


@support.needs_ruby
def test_ruby_keeps_texts_apart_that_happen_to_be_one(tmp_path, homes):
    source = f"HERE = ENV['HOME'] + '/x'\nVALUE = [HERE, HERE == '{homes[0]}/x' ? HERE : '{homes[0]}/x'.dup]"
    program = Program(tmp_path, source, {"HOME": homes[0]}, "ruby")
    program.check(True)
    program.check(None, HOME=homes[1])


@support.needs_ruby
def test_ruby_keeps_values_apart_that_have_to_do_with_each_other(tmp_path, homes):
    program = Program(
        tmp_path,
        "VALUE = Dir.pwd.start_with?(ENV['HOME']), ENV['USER'] == ENV['LOGNAME'], ENV['HOME'].include?(ENV['USER'])",
        {"HOME": homes[0], "USER": "one", "LOGNAME": "two"},
        "ruby",
    )
    program.check(True)
    program.check(True, USER="three", LOGNAME="four")
    program.check(False, USER="two")
    program.check(False, USER="home")
    program.check(True, HOME=homes[1])
    program.check(False, HOME=str(tmp_path))


@support.needs_ruby
def test_ruby_goes_to_home_while_it_boots(tmp_path, homes):
    program = Program(tmp_path, "Dir.chdir; VALUE = 1", {"HOME": homes[0]}, "ruby")
    program.check(True)
    program.check(False, HOME=homes[1])


@support.needs_ruby
def test_a_program_without_rubygems_has_what_it_kept_as_well(tmp_path, homes):
    (tmp_path / "main.rb").write_text("require_relative 'boot'\np KEPT, $?\n")
    (tmp_path / "boot.rb").write_text("KEPT = [\"#{ENV['HOME']}/x\"].freeze\n")
    env = support.environment(HOME=homes[0])
    command = [support.RUBY, "--disable-gems", tmp_path / "main.rb"]
    image = support.frozen(tmp_path / "x.img", command, "--preload", f"{tmp_path}/boot", env=env)
    for home in homes:
        result = support.thawed([image], env={**env, "HOME": home})
        assert result.out == support.run(command, env={**env, "HOME": home}).out


def test_what_was_found_along_path_counts_by_where(tmp_path):
    one, other = (tmp_path / name for name in ("one", "other"))
    for folder in (one, other):
        folder.mkdir()
    (one / "thing").write_text("#!/bin/sh\n")
    (one / "thing").chmod(0o755)
    plain = os.environ["PATH"]
    program = Program(tmp_path, "VALUE = shutil.which('thing'), shutil.which('no-such-thing')", {"PATH": f"{plain}:{one}"})
    program.check(True, PATH=f"{other}:{one}")
    program.check(True, PATH=f"{one}:/nowhere:{plain}")
    program.check(False, PATH=plain)
    (other / "no-such-thing").write_text("#!/bin/sh\n")
    (other / "no-such-thing").chmod(0o755)
    program.check(False, PATH=f"{other}:{one}")


@support.needs_ruby
def test_what_c_code_reads_binds_ruby_too(tmp_path, homes):
    """Ruby itself reads by a C function; Fiddle calls it as an extension does."""
    read = "Fiddle::Function.new(Fiddle::Handle::DEFAULT['getenv'], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOIDP)"
    source = f"require 'fiddle'\nVALUE = {read}.call('USER').to_s.size"
    program = Program(tmp_path, source, {"USER": "one", "HOME": homes[0]}, "ruby")
    program.check(True, HOME=homes[1])
    program.check(False, USER="two")


def test_what_c_code_reads_binds(tmp_path, homes):
    getenv = "C = __import__('ctypes').CDLL(None); C.getenv.restype = __import__('ctypes').c_char_p\n"
    program = Program(tmp_path, getenv + "VALUE = C.getenv(b'HOME')", {"HOME": homes[0]})
    program.check(True)
    program.check(False, HOME=homes[1])


# What goes through the whole environment, and which variables count for it.
WHOLES = {
    "a beginning": ("{k: v for k, v in os.environ.items() if k.startswith('MY_')}", ["MY_OWN"], ["MINE", "OTHER"]),
    "an end": ("[v for k, v in os.environ.items() if k.lower().endswith('_proxy')]", ["http_proxy", "HTTPS_PROXY"], ["FOO"]),
    "a name in a copy": ("dict(os.environ).get('SETTING')", ["SETTING"], ["SETTINGS_FILE", "FOO"]),
    "a pattern": ("sorted(k for k in os.environ if re.match('^APP_[A-Z]+$', k))", ["APP_X"], ["FOO"]),
    "urllib": ("__import__('urllib.request').request.getproxies_environment()", ["http_proxy", "ftp_proxy"], ["PYENV_VERSION"]),
    "how many": ("len([k for k in os.environ if not k.startswith('SNAPBOOT')])", ["FOO", "BAR"], []),
    "nothing": ("[k for k in os.environ if k == 'no such']", [], ["FOO", "no_such"]),
}


@pytest.mark.sample(32)
@pytest.mark.parametrize("how", WHOLES)
def test_who_goes_through_the_environment_depends_on_what_it_picks(how, tmp_path):
    expression, counting, others = WHOLES[how]
    program = Program(tmp_path, f"VALUE = {expression}", {"GIVEN": "1"})
    program.check(True)
    for name in counting:
        program.check(False, **{name: "given"})
    for name in others:
        program.check(True, **{name: "given"})


def test_only_a_much_larger_environment_counts_by_its_size(tmp_path):
    room = "min(131072, 300000 - sum(len(k) + len(v) for k, v in os.environ.items() if not k.startswith('SNAPBOOT')))"
    program = Program(tmp_path, f"VALUE = {room}", {"GIVEN": "1"})
    program.check(True, FOO="bar")
    program.check(False, FOO="bar" * 40000)


def test_the_order_of_what_has_none_is_no_difference(tmp_path, homes):
    source = (
        "@functools.lru_cache(None)\ndef text(thing): return 'text %d' % THINGS[thing]\n"
        "THINGS = {object(): number for number in range(200)}\n"
        "for thing in set(THINGS): text(thing)\n"
        "CODES = {compile('1', 'file %d' % number, 'eval') for number in range(50)}\n"
        "VALUE = os.environ['HOME']"
    )
    program = Program(tmp_path, source, {"HOME": homes[0]})
    program.check(True, HOME=homes[1])


def test_a_copy_of_the_environment_is_that_of_each_start(tmp_path):
    program = Program(tmp_path, "VALUE = dict(os.environ, OWN='1')", {"GIVEN": "1"})
    for changes in ({}, {"GIVEN": "2"}, {"FOO": "bar"}, {"GIVEN": None}):
        program.check(True, **changes)
