"""Secret variables: an image is made with a made-up value, each start finds its own wherever the program keeps it, and no real value is
in an image. Where something was made of one while the program booted, the freeze is refused and says what."""

import base64
import json
import os
import shutil
import socket
import threading

import pytest
from common import support
from common.languages import PYTHON, RUBY, both, names
from store.stores import Store

from .programs import workloads

pytestmark = pytest.mark.sample(20, whole=True)

FIRST = "first-Value-0123456789abcdef"
# Of other lengths and kinds of characters, too.
OTHERS = ("second-value-0000-and-longer-than-the-first", "short", "with spaces & %40 signs", FIRST)

# What a preload may do with the value of THE_KEY, many in one boot: expressions for the list VALUE, each of which shows it again.
KEPT = {
    PYTHON: """
import collections, dataclasses, functools, os
KEY = os.environ["THE_KEY"]
HEADERS = {"Authorization": "Bearer " + KEY, "nested": [{"deep": (1, (2, KEY))}]}
@dataclasses.dataclass(frozen=True)
class Settings:
    key: str
    pair: tuple
class Slots:
    __slots__ = ("key",)
    def __init__(self): self.key = KEY
class Kept:
    key = KEY
    def method(self, key=KEY, *, other=KEY): return key if key == other else None
class Text(str):
    pass
def make():
    key = KEY
    return lambda: key
SETTINGS, SLOTS, CLOSURE = Settings(KEY, (0, KEY)), Slots(), make()
POINT = collections.namedtuple("Point", "x key")(1, KEY)
KEYED, SET, FROZEN, DEQUE = {KEY: 1, "b": 2}, {KEY}, frozenset([KEY]), collections.deque([KEY])
ORDERED, PARTIAL = collections.OrderedDict(a=KEY), functools.partial(str.upper, KEY)
BYTES, ARRAY, TEXT = KEY.encode(), bytearray(KEY.encode()), Text(KEY)
@functools.lru_cache
def cached(key): return key + "!"
cached(KEY)
COPY = dict(os.environ)
os.environ["DERIVED"] = "x" + KEY
""",
    RUBY: """
KEY = ENV.fetch("THE_KEY")
HEADERS = { authorization: "Bearer #{KEY}", nested: [{ deep: [1, ENV["THE_KEY"]] }] }
FROZEN = "x-#{KEY}".freeze
Settings = Struct.new(:key)
class Kept; attr_reader :key; def initialize; @key = ENV["THE_KEY"].dup; end; end
class Text < String; end
SETTINGS, OBJECT, TEXT = Settings.new(KEY), Kept.new, Text.new(KEY)
LOCAL = KEY.dup.then { |it| -> { it } }
TABLE = { KEY => 1, "b" => 2 }
BYTES = KEY.b
COPY = ENV.to_h
ENV["DERIVED"] = "x#{KEY}"
""",
}
SHOW = {
    PYTHON: """
import os
from boot import *
all = [KEY, HEADERS["Authorization"][7:], HEADERS["nested"][0]["deep"][1][1], SETTINGS.key, SETTINGS.pair[1], SLOTS.key, Kept.key,
       Kept().method(), CLOSURE(), POINT.key, next(iter(KEYED)), *SET, *FROZEN, *DEQUE, ORDERED["a"], PARTIAL.args[0],
       os.fsdecode(BYTES), os.fsdecode(bytes(ARRAY)), str(TEXT), COPY["THE_KEY"], os.environ["DERIVED"][1:], cached(KEY)[:-1]]
print(set(all), len(all), KEY in SET, KEY in FROZEN, KEYED[KEY], type(TEXT).__name__, Kept.key is KEY, list(KEYED)[1])
""",
    RUBY: """
all = [KEY, HEADERS[:authorization][7..], HEADERS[:nested][0][:deep][1], FROZEN[2..], SETTINGS.key, OBJECT.key, TEXT.to_s, LOCAL.call,
       BYTES.dup.force_encoding("UTF-8"), COPY["THE_KEY"], ENV["DERIVED"][1..], ENV["THE_KEY"]]
puts all.uniq.inspect, all.size, TABLE[ENV["THE_KEY"]], TABLE.keys.last, FROZEN.frozen?, KEY.frozen?, OBJECT.key.frozen?, BYTES.encoding
""",
}


class Case:
    """A preload, and an image of it that was made with these variables."""

    def __init__(self, language, tmp_path, source, show, env, *options):
        self.plain, path = language.write(tmp_path, source)
        self.image, self.folder, self.language = tmp_path / "x.img", tmp_path, language
        preload = "boot" if language is PYTHON else str(path.with_suffix(""))
        options = ["--preload", preload, *options]
        self.result = support.freeze(self.image, [language.program], *options, env={**self.plain, **env}, cwd=tmp_path)
        load = "from boot import *" if language is PYTHON else f"require {preload!r}"
        self.arguments = ["-c" if language is PYTHON else "-e", f"{load}\n{show}"]

    def check(self, env, thaws=True):
        """A start with these variables is as without an image; whether it thaws."""
        image, ordinary = (
            support.run([program, *self.arguments], env={**self.plain, **env}, cwd=self.folder)
            for program in (self.image, self.language.program)
        )
        assert (image.out, image.status) == (ordinary.out, ordinary.status), (image, ordinary)
        assert image.fell_back != thaws, image

    def lacks(self, *values):
        """None of these is in the image, in any form."""
        content = support.read(self.image)
        for value in map(str.encode, values):
            assert not any(form in content for form in (value, base64.b64encode(value)[:-4], value.hex().encode()))


@both
def test_whatever_keeps_a_secret_has_that_of_the_start(language, tmp_path):
    case = Case(language, tmp_path, KEPT[language], SHOW[language], {"THE_KEY": FIRST})
    assert case.result.status == 0, case.result
    case.lacks(FIRST)
    for value in OTHERS:
        case.check({"THE_KEY": value})
    for env in ({}, {"THE_KEY": ""}):
        case.check(env, thaws=False)
    log = support.run(["sh", "-c", "cat x.img | grep -c value-0000; true"], env=case.plain, cwd=tmp_path)
    assert log.out == "0\n", "nor is that of a start"


# What cannot be exchanged or was made of it: what the freeze says of it.
MADE = {
    "a hash": (PYTHON, "import hashlib\nVALUE = hashlib.sha256(KEY.encode()).hexdigest()", "boot.VALUE (", ":4)"),
    "a state of a hash": (PYTHON, "import hashlib\nVALUE = hashlib.sha256(KEY.encode())", "boot.VALUE (", ":4)"),
    "a part": (PYTHON, "VALUE = KEY[:8]", "boot.VALUE (", ":3)"),
    "a number": (PYTHON, "VALUE = int.from_bytes(KEY.encode(), 'big')", "boot.VALUE (", ":3)"),
    "in an object": (PYTHON, "class A:\n    def __init__(self): self.digest = KEY[::-1]\nVALUE = A()", "boot.VALUE", ""),
    "a decision by length": (PYTHON, "VALUE = len(KEY) > 31", "", ""),
    "a pattern": (PYTHON, "import re\nVALUE = re.compile(KEY)", "", ""),
    "C code": (PYTHON, "import ctypes\nVALUE = ctypes.c_char_p(KEY.encode())", "", ""),
    "Ruby: a hash": (RUBY, "require 'digest'\nVALUE = Digest::SHA256.hexdigest(KEY)", "VALUE (", ":3)"),
    "Ruby: a part": (RUBY, "VALUE = KEY[0, 8]", "VALUE (", ":2)"),
    "Ruby: in an object": (RUBY, "class A; def initialize; @digest = KEY.reverse; end; end\nVALUE = A.new", "@digest", ""),
    "Ruby: a number": (RUBY, "class A; def initialize; @size = KEY.size; end; end; VALUE = A.new", "@size", ":2)"),
    "Ruby: a symbol": (RUBY, "VALUE = :\"#{KEY}x\"", "only once", ""),
    "Ruby: the only one of its kind": (RUBY, "VALUE = -KEY.dup", "only once", ""),
    "Ruby: a pattern": (RUBY, "VALUE = /#{KEY}x/", "only once", ""),
}
# What is for secrets of one form.
OF_FORM = ("a decision by length", "Ruby: a number")
SHOW_VALUE = {PYTHON: "print(KEY, VALUE)", RUBY: "puts KEY, VALUE"}
READ = {PYTHON: "import os\nKEY = os.environ['THE_KEY']\n", RUBY: "KEY = ENV['THE_KEY']\n"}


@pytest.mark.parametrize("name", names(MADE))
def test_what_is_made_of_a_secret_is_named(name, tmp_path):
    language, source, what, line = MADE[name]
    case = Case(language, tmp_path, READ[language] + source, "", {"THE_KEY": FIRST})
    if name in OF_FORM:
        assert case.result.status == 0, case.result
        # It is for secrets of that form.
        case.check({"THE_KEY": "x"}, thaws=False)
        return
    assert case.result.status == 2 and not case.image.exists(), case.result
    assert what in case.result.err and line in case.result.err and "THE_KEY" in case.result.err, case.result
    assert FIRST not in case.result.err and "--env" in case.result.err or "defer" in case.result.err, case.result


ASK = {
    PYTHON: "import socket\nwith socket.socket(socket.AF_UNIX) as peer:\n    peer.connect(ADDRESS)\n    peer.sendall(KEY.encode())\n"
    "    VALUE = peer.recv(99).decode()\n",
    RUBY: "require 'socket'\nVALUE = UNIXSocket.open(ADDRESS) { |peer| peer.write(KEY); peer.readpartial(99) }\n",
}


@both
def test_what_differs_by_chance_is_made_of_no_secret(language, tmp_path):
    """Something that has two values has the other one in the boot with another secret, and never again."""
    address = f"\0snapboot-{os.getpid()}-{language.name}"
    keys = []

    def answer():
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return  # it was shut down
            with peer:
                keys.append(peer.recv(99))
                is_first_other = keys[-1] != keys[0] and len(set(keys)) == 2 and keys.count(keys[-1]) == 1
                peer.sendall(b"the other value" if is_first_other else b"the usual value")

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        answers = threading.Thread(target=answer)
        answers.start()
        try:
            source = READ[language] + f"ADDRESS = {json.dumps(address)}\n" + ASK[language]
            case = Case(language, tmp_path, source, SHOW_VALUE[language], {"THE_KEY": FIRST})
            assert case.result.status == 0, case.result
            assert len(set(keys)) == 3, "one more boot with another secret"
            case.check({"THE_KEY": OTHERS[0]})
        finally:
            # A number that is free again may be that of another socket.
            server.shutdown(socket.SHUT_RDWR)
            answers.join()


ADDRESS = {
    PYTHON: (
        "import os, urllib.parse\nURL = os.environ['DATABASE_URL']\nPARTS = urllib.parse.urlsplit(URL)\n"
        "VALUE = {'user': PARTS.username, 'password': urllib.parse.unquote(PARTS.password), 'host': PARTS.hostname, 'port': PARTS.port}",
        "print(VALUE, URL, PARTS.netloc)",
    ),
    RUBY: (
        "require 'uri'\nURL = ENV['DATABASE_URL'].dup\nPARTS = URI.parse(URL)\n"
        "VALUE = { user: PARTS.user, password: URI.decode_www_form_component(PARTS.password), host: PARTS.host, port: PARTS.port }",
        "puts VALUE.inspect, URL, PARTS.to_s",
    ),
}


@both
@pytest.mark.parametrize("password", ["p4ssword-0123456", "p%40ss%2Fw0rd-012345"])
def test_an_address_is_exchanged_by_its_parts(language, password, tmp_path):
    source, show = ADDRESS[language]
    case = Case(language, tmp_path, source, show, {"DATABASE_URL": f"postgres://someb0dy-4711:{password}@db:5432/app?x=1"})
    assert case.result.status == 0, case.result
    case.lacks(password, "someb0dy-4711")
    other = "0ther" + password[1:]
    case.check({"DATABASE_URL": f"postgres://u:{other}@db:5432/app?x=1"})
    for elsewhere in (f"postgres://u:{other}@db:5433/app?x=1", f"postgres://u:{other}@other:5432/app?x=1", "postgres://db:5432/app?x=1"):
        assert support.run([case.image, *case.arguments], env={**case.plain, "DATABASE_URL": elsewhere}, cwd=tmp_path).fell_back


@both
def test_a_secret_that_the_program_has_from_a_file_is_found_in_the_image(language, tmp_path):
    (tmp_path / "file").write_text(FIRST)
    read = "open('file').read()" if language is PYTHON else "File.read('file')"
    case = Case(language, tmp_path, READ[language] + f"VALUE = {read}", "", {"THE_KEY": FIRST})
    assert case.result.status == 2 and "the value of THE_KEY" in case.result.err and FIRST not in case.result.err, case.result
    assert not case.image.exists() and not list(tmp_path.glob(".x.img*"))


@both
def test_a_secret_of_which_a_boot_cannot_have_another_is_named(language, tmp_path):
    source = {
        PYTHON: f"import os\nif os.environ['THE_KEY'] != '{FIRST}': raise SystemExit('wrong key')",
        RUBY: f"abort 'wrong key' if ENV['THE_KEY'] != '{FIRST}'",
    }
    case = Case(language, tmp_path, source[language], "", {"THE_KEY": FIRST})
    assert case.result.status == 1 and not case.image.exists(), case.result
    assert f"THE_KEY looks like a secret, and boot{language.ending}" in case.result.err and "made-up" in case.result.err, case.result


RAILS = """
require "digest"
puts Digest::SHA256.hexdigest(Rails.application.key_generator.generate_key("signed cookie") + Rails.application.secret_key_base)
puts Rails.application.env_config["action_dispatch.secret_key_base"] == ENV["SECRET_KEY_BASE"], SignedGlobalID.verifier.generate("id")
begin
  puts Rails.application.message_verifier("cookie").verify(ENV.fetch("COOKIE_MADE"))
rescue ActiveSupport::MessageVerifier::InvalidSignature
  puts "refused"
end
puts Rails.application.message_verifier("cookie").generate("content")
"""


@support.needs_ruby
def test_rails_signs_with_the_key_of_each_start(tmp_path):
    application = workloads.prepare("rails")["dir"]
    one, other = "ab12" * 32, "f00d" * 30
    env = support.environment(RAILS_ENV="production", EL="1", SNAPBOOT_LOG="1")
    image = tmp_path / "rails.img"
    result = support.freeze(image, ["bin/rails"], env={**env, "SECRET_KEY_BASE": one}, cwd=application)
    assert result.status == 0, result
    content = support.read(image)
    assert one.encode() not in content and other.encode() not in content
    def start(program, key, cookie):
        return support.run([program, "runner", RAILS], env={**env, "SECRET_KEY_BASE": key, "COOKIE_MADE": cookie}, cwd=application)
    cookie = start(image, one, "none").out.split("\n")[-2]
    for key, answer in ((one, "content"), (other, "refused")):
        thawed, ordinary = start(image, key, cookie), start("bin/rails", key, cookie)
        assert thawed.out == ordinary.out and answer in thawed.out.split("\n") and not thawed.fell_back, (thawed, ordinary)


# Encrypts credentials with a new key, and prints it.
CREDENTIALS = """
require "active_support"
require "active_support/encrypted_configuration"
ENV["RAILS_MASTER_KEY"] = key = ActiveSupport::EncryptedFile.generate_key
file = { config_path: "config/credentials.yml.enc", key_path: "config/master.key", env_key: "RAILS_MASTER_KEY", raise_if_missing_key: true }
ActiveSupport::EncryptedConfiguration.new(**file).write(File.read("credentials.yml"))
puts key
"""
KEPT_CREDENTIALS = """
aws: {region: eu-west-1, access_key_id: AKIAI0SF0DNN7EXAMPLE, secret_access_key: wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY}
database: postgres://app:pa55w0rd-long@db.example.com/x
list: [first-secret-0815, 42, true]
secret_key_base: %s
"""
INITIALIZER = """
Rails.application.config.x.aws = Rails.application.credentials.aws.dup
CLIENT = Struct.new(:key, :database).new(Rails.application.credentials.aws[:secret_access_key], Rails.application.credentials.database)
"""
SHOW_CREDENTIALS = """
puts Rails.application.config.x.aws, CLIENT.inspect, Rails.application.credentials.list.inspect, Rails.application.credentials.aws
puts Rails.application.message_verifier("cookie").generate("content"), Rails.application.secret_key_base
puts Rails.application.credentials.database, Rails.application.credentials.secret_key_base
"""


@support.needs_ruby
def test_rails_decrypts_its_credentials_in_each_start(tmp_path):
    application = tmp_path / "application"
    shutil.copytree(workloads.prepare("rails")["dir"], application, symlinks=True)
    (application / "config/master.key").unlink()
    (application / "credentials.yml").write_text(KEPT_CREDENTIALS % ("5eed" * 32))
    (application / "config/initializers/client.rb").write_text(INITIALIZER)
    key = support.run([support.RUBY, "-e", CREDENTIALS], cwd=application, log=False).out.strip()
    (application / "credentials.yml").unlink()
    env = support.environment(RAILS_ENV="production", RAILS_MASTER_KEY=key, SNAPBOOT_LOG="1")
    image = tmp_path / "rails.img"
    result = support.freeze(image, ["bin/rails"], env=env, cwd=application)
    assert result.status == 0 and "the application is not in the image" not in result.err, result
    content = support.read(image)
    for secret in (key, "wJalrXUtnFEMI", "AKIAI0SF0DNN7EXAMPLE", "pa55w0rd", "5eed5eed5eed", "first-secret-0815"):
        assert secret.encode() not in content, secret
    thawed, ordinary = (
        support.run([program, "runner", SHOW_CREDENTIALS], env=env, cwd=application) for program in (image, "bin/rails")
    )
    assert thawed.out == ordinary.out and "wJalrXUtnFEMI" in thawed.out and not thawed.fell_back, (thawed, ordinary)
    wrong = {**env, "RAILS_MASTER_KEY": key[::-1]}
    thawed, ordinary = (support.run([program, "runner", "puts 1"], env=wrong, cwd=application) for program in (image, "bin/rails"))
    assert (thawed.out, thawed.status) == (ordinary.out, ordinary.status) and ordinary.status != 0, (thawed, ordinary)


@both
def test_a_store_makes_images_with_and_without_a_secret(language, tmp_path):
    """A library goes through the environment: a start with a secret is no reason to have no image for others."""
    store = Store(tmp_path)
    source = {
        PYTHON: "import os\nALL = dict(os.environ)\nTOKEN = ALL.get('MY_TOKEN', 'none')",
        RUBY: "ALL = ENV.to_h\nTOKEN = ALL['MY_TOKEN'] || 'none'",
    }
    (tmp_path / f"lib{language.ending}").write_text(source[language])
    main = tmp_path / f"main{language.ending}"
    main.write_text("import lib; print(lib.TOKEN)" if language is PYTHON else "require_relative 'lib'; puts TOKEN")
    def start(**env):
        return store.run(language.program, str(main), env=env)
    start(MY_TOKEN="first-token-4711-abcd")
    rows = store.wait()
    assert rows[0]["state"] != "refused", rows
    result = start(MY_TOKEN="second-token-4712-and-longer")
    assert result.out == "second-token-4712-and-longer\n" and not result.fell_back, result
    assert start(FOO="2").out == "none\n"
    rows = store.wait()
    # Ruby's image leaves the library to the main part, and is for both.
    assert rows[0]["state"] != "refused" and (language is RUBY or len(list(store.place.rglob("*.img"))) == 2), rows
    assert start(FOO="2").out == "none\n"
    for path in store.place.rglob("*"):
        assert not path.is_file() or b"first-token-4711" not in path.read_bytes(), path
