#!/usr/bin/env python3
"""The real programs that tests, benchmarks and the demo run, made ready under .work/.

Each workload is a row of WORKLOADS: the Debian packages, the Python packages and the build step it needs. Making one ready is idempotent
(a stamp tells that it is done and from which recipe), safe in parallel (one lock per workload) and quick the second time.

    tools/workloads.py web django           make these ready; print what each offers as JSON
    tools/workloads.py web --python PYTHON  for another CPython
    tools/workloads.py --list

From Python: `workloads.prepare("web")` returns the same values as a dict, or raises `Unavailable`, which says what is missing.
"""

import argparse
import contextlib
import dataclasses
import fcntl
import hashlib
import inspect
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable

from debian_packages import is_installed, that_can_be_had

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = (ROOT / ".work").resolve()
SETUP_SECONDS = 900  # no single set-up command may take longer

# Variables that would make two machines, or two shells, measure or test different things.
INHERITED = ("PATH", "HOME", "USER", "TMPDIR")
# What package managers need besides: proxies, certificates, mirrors, as this machine has them.
FOR_PACKAGE_MANAGERS = (
    *("PIP_", "MAVEN_", "JAVA_HOME", "SSL_CERT", "REQUESTS_CA", "CURL_CA"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)


class Unavailable(Exception):
    """A workload cannot be had on this machine; the text says why and what would help."""


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment that every measured or tested program gets: a few inherited variables, UTF-8, and `extra`."""
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**kept, "LANG": "C.UTF-8", **extra}


def run(argv: list, cwd: pathlib.Path | None = None) -> None:
    """Run one set-up command quietly. Raises Unavailable with the end of its output when it fails."""
    packaging = {k: v for k, v in os.environ.items() if k.startswith(FOR_PACKAGE_MANAGERS)}
    environment = clean_environment(**packaging, DEBIAN_FRONTEND="noninteractive")
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words, cwd=cwd, env=environment, timeout=SETUP_SECONDS, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except FileNotFoundError:
        raise Unavailable(f"{words[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"`{' '.join(words)}` took longer than {SETUP_SECONDS} s") from None
    if done.returncode != 0:
        tail = "\n".join(done.stdout.strip().splitlines()[-5:])
        raise Unavailable(f"`{' '.join(words)}` failed with status {done.returncode}:\n{tail}")


@contextlib.contextmanager
def locked(name: str):
    """Hold the lock of that name, so that parallel runs make each thing once."""
    locks = WORK / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with open(locks / name, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install_debian_packages(packages: tuple[str, ...]) -> None:
    """Install what is missing of `packages`; a name with a question mark behind it only where this Debian has that package. Raises
    Unavailable where that is not possible or not allowed."""
    lacking = [package for package in packages if not is_installed(package.rstrip("?"))]
    missing = that_can_be_had(lacking)
    if not missing:
        return
    remedy = f"apt-get install {' '.join(missing)}"
    if os.environ.get("SNAPBOOT_NO_INSTALLS"):  # half of it would go into the tests' snapshot of the machine
        raise Unavailable(f"missing here, and nothing is installed while tests run: {', '.join(missing)}; as root: {remedy}")
    if not shutil.which("apt-get"):
        raise Unavailable(f"missing here: {', '.join(missing)} (on Debian: {remedy})")
    privilege = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if privilege and (
        not shutil.which("sudo") or subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode
    ):
        raise Unavailable(f"missing here: {', '.join(missing)}; as root: {remedy}")
    apt = [*privilege, "apt-get", "-o", "DPkg::Lock::Timeout=300", "-y", "-q"]
    with locked("apt"):
        try:
            run([*apt, "install", "--no-install-recommends", *missing])
        except Unavailable:  # most often: no package lists, or old ones
            run([*apt, "update"])
            run([*apt, "install", "--no-install-recommends", *that_can_be_had(lacking)])


def install_all_debian_packages() -> None:
    """Install what any workload needs, where that is possible; where it is not, say why."""
    for name, workload in WORKLOADS.items():
        try:
            install_debian_packages(() if workload.is_large else workload.debian)
        except Unavailable as reason:
            print(f"{name}: {reason}", file=sys.stderr, flush=True)


# ---- build steps: each takes the workload's directory and the values it offers so far, and adds to them ----


def build_nothing(directory: pathlib.Path, values: dict) -> None:
    pass


def build_django(directory: pathlib.Path, values: dict) -> None:
    run([values["python"], "-m", "django", "startproject", "skel", directory])


def build_pytest(directory: pathlib.Path, values: dict) -> None:
    """A folder with one test."""
    (directory / "tests").mkdir()
    (directory / "tests/test_sum.py").write_text("def test_sum():\n    assert 1 + 1 == 2\n")


def build_code_data_share(directory: pathlib.Path, values: dict) -> None:
    """What code-data-share keeps of the web trio, made as its documentation says."""
    modules, values["archive"] = directory / "modules", str(directory / "web.img")
    run(["env", "PYCDSMODE=TRACE", f"PYCDSLIST={modules}", values["python"], "-c", "import flask, requests, pymongo"])
    run([values["python"], "-c", "import sys, cds.dump; cds.dump.run_dump(*sys.argv[1:])", modules, values["archive"]])


def build_debian_python(directory: pathlib.Path, values: dict) -> None:
    """The machine's own CPython, which has Debian's packages."""
    values["python"] = "/usr/bin/python3"


def build_heaps(directory: pathlib.Path, values: dict) -> None:
    """Programs that differ only in how much they hold: preload heap_30, heap_100 or heap_1024, then run main."""
    for source in ("heap.py", "heap.rb", "main.py", "main.rb"):
        shutil.copy(ROOT / "bench/programs/heap" / source, directory)
    for megabytes in (30, 100, 1024):
        (directory / f"heap_{megabytes}.py").write_text(f"from heap import build\n\nDATA = build({megabytes})\n")
        (directory / f"heap_{megabytes}.rb").write_text(
            f"require_relative 'heap'\n\nHEAP_DATA = build_heap({megabytes})\n"
        )


def build_floors(directory: pathlib.Path, values: dict) -> None:
    floors = ROOT / "bench/floors"
    compile_c = ["gcc", "-O2", "-Wall", "-o"]
    freestanding = ["-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector"]
    run([*compile_c, directory / "no-libc", *freestanding, floors / "no_libc.c"])
    run([*compile_c, directory / "static", "-static", floors / "empty.c"])
    run([*compile_c, directory / "dynamic", floors / "empty.c"])
    run([*compile_c, directory / "fork-client", "-static", floors / "fork_client.c"])


# Which gems, all from Debian's packages. `bundle install` would want to build those with extensions again, and have their sources for it.
LOCK_GEMS = ["bundle", "lock", "--local"]


def build_rails(directory: pathlib.Path, values: dict) -> None:
    """A new Rails application in production mode, with one page to ask for: of Rails 6.1 in Debian 12, of 7.2 in Debian 13."""
    skel = directory / "skel"
    skipped = ["bundle", "javascript", "webpack-install", "spring", "git", "system-test", "bootsnap", "docker"]
    options = [f"--skip-{part}" for part in skipped]
    options.append("--asset-pipeline=propshaft")  # of those that Rails 7.2 asks for, the one that Debian has
    known = subprocess.run(["rails", "new", "--help"], cwd=directory, capture_output=True, text=True).stdout
    options = [option for option in options if option.split("=")[0] in known]
    run(["rails", "new", "skel", *options, "--database=sqlite3", "-q"], cwd=directory)
    gemfile = (skel / "Gemfile").read_text()
    (skel / "Gemfile").write_text(gemfile[: gemfile.index("group :development")])
    edit(skel / "config/environments/production.rb", "config.eager_load = true", "config.eager_load = ENV['EL'] != '0'")
    edit(skel / "config/routes.rb", "routes.draw do", "routes.draw do\n  root 'home#show'")
    page = ROOT / "bench/programs/rails"
    shutil.copy(page / "home_controller.rb", skel / "app/controllers")
    (skel / "app/views/home").mkdir()
    shutil.copy(page / "show.html.erb", skel / "app/views/home")
    run(LOCK_GEMS, cwd=skel)
    values["dir"] = str(skel)


def build_rails_bootsnap(directory: pathlib.Path, values: dict) -> None:
    """The same application with Bootsnap, set up as its documentation says."""
    skel = copy_rails(directory, values)
    with open(skel / "Gemfile", "a") as gemfile:
        gemfile.write("gem 'bootsnap', require: false\n")
    with open(skel / "config/boot.rb", "a") as boot:
        boot.write("require 'bootsnap/setup'\n")
    run(LOCK_GEMS, cwd=skel)


def build_rails_snapboot(directory: pathlib.Path, values: dict) -> None:
    """The same application with the boot archive; RUBYLIB says where snapboot/setup is."""
    skel = copy_rails(directory, values)
    edit(skel / "config/boot.rb", "require \"bundler/setup\"", "require 'snapboot/setup'\nrequire \"bundler/setup\"")


def build_rails_yjit(directory: pathlib.Path, values: dict) -> None:
    """The same application, whose Rails has turned YJIT on. Raises Unavailable where this Ruby or this Rails does not."""
    skel = copy_rails(directory, values)
    check = "defined?(RubyVM::YJIT.enable) && RubyVM::YJIT.enabled? or abort 'YJIT is off'"
    run(["env", "RAILS_ENV=production", "bin/rails", "runner", check], cwd=skel)


def copy_rails(directory: pathlib.Path, values: dict) -> pathlib.Path:
    """A copy of the application, without what it wrote while running."""
    skel = directory / "skel"
    ignored = shutil.ignore_patterns("log", "cache")
    shutil.copytree(prepare("rails")["dir"], skel, symlinks=True, ignore=ignored)
    (skel / "log").mkdir()
    values["dir"] = str(skel)
    return skel


def build_load_path(directory: pathlib.Path, values: dict) -> None:
    """Folder `full` with 10,000 empty files c1.rb, c2.rb ..., and 512 others with one file each, for the load path before it."""
    (directory / "full").mkdir()
    for number in range(1, 10_001):
        (directory / f"full/c{number}.rb").touch()
    for number in range(1, 513):
        folder = directory / f"other/{number}"
        folder.mkdir(parents=True)
        (folder / f"other_{number}.rb").touch()


def build_big_file(directory: pathlib.Path, values: dict) -> None:
    """big.rb: 5,500 lines of RubyGems' own code, without comments, in a branch never taken; big.bin: its plain ISeq binary."""
    ask = "print RbConfig::CONFIG['rubylibdir']"
    library = subprocess.run([values["ruby"], "-e", ask], capture_output=True, text=True).stdout
    lines: list[str] = []
    for path in sorted(pathlib.Path(library, "rubygems").glob("*.rb")):
        if len(lines) < 5_500:
            lines += [line for line in path.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) < 5_500:
        raise Unavailable(f"{library}/rubygems was expected to have 5,500 lines, and has {len(lines)}")
    (directory / "big.rb").write_text("\n".join(["if $never", *lines, "end", ""]))
    compile_it = "File.binwrite(ARGV[1], RubyVM::InstructionSequence.compile_file(ARGV[0]).to_binary)"
    run([values["ruby"], "-e", compile_it, directory / "big.rb", directory / "big.bin"])


def build_yaml(directory: pathlib.Path, values: dict) -> None:
    """A file as those of i18n: 2,000 keys in 100 groups."""
    lines = ["en:"]
    for group in range(100):
        lines.append(f"  group_{group}:")
        for key in range(20):
            lines.append(f'    key_{key}: "Text {key} of group {group}, with %{{name}}"')
    (directory / "en.yml").write_text("\n".join(lines) + "\n")


def edit(path: pathlib.Path, old: str, new: str) -> None:
    """Replace `old` with `new` in a generated file. Raises Unavailable where the generator wrote something else."""
    text = path.read_text()
    if old not in text:
        raise Unavailable(f"{path.name} was expected to contain {old!r}; another version of its generator?")
    path.write_text(text.replace(old, new))


def build_truffleruby(directory: pathlib.Path, values: dict) -> None:
    """TruffleRuby for any JDK, always interpreted; the command `truffleruby` (tools/jvm/Boots.java says what it takes)."""
    properties = ["-Dorg.graalvm.version=25.0.0", f"-Dpolyglot.engine.userResourceCache={directory / 'resources'}"]
    build_jvm_ruby(directory, values, "truffleruby", "TruffleRuby", properties)


def build_jruby(directory: pathlib.Path, values: dict) -> None:
    """JRuby for any JDK; the command `jruby` (tools/jvm/Boots.java says what it takes)."""
    modules = ("java.base/java.io", "java.base/java.nio.channels", "java.base/sun.nio.ch")  # as JRuby's own command does
    build_jvm_ruby(directory, values, "jruby", "JRuby", [f"--add-opens={module}=ALL-UNNAMED" for module in modules])


def build_jvm_ruby(directory: pathlib.Path, values: dict, name: str, launcher: str, properties: list[str]) -> None:
    """Get the jars of tools/jvm/`name`.xml with Maven, compile `launcher`.java against them, write the command `name`."""
    jars, classes, sources = directory / "jars", directory / "classes", ROOT / "tools/jvm"
    # The reader of the project file needs it by this name, and beside it a place that it may write to.
    shutil.copy(sources / f"{name}.xml", directory / "pom.xml")
    copy_jars = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
    run(["mvn", "-q", "-B", copy_jars, "-DincludeTypes=jar", f"-DoutputDirectory={jars}"], cwd=directory)
    run(["javac", "-d", classes, "-cp", f"{jars}/*", sources / "Boots.java", sources / f"{launcher}.java"])
    command = directory / name
    java = ["java", "-XX:+UseSerialGC", *properties, "-cp", f"{jars}/*:{classes}", launcher]
    command.write_text("#!/bin/sh\nexec " + " ".join(map(shlex.quote, java)) + ' "$@"\n')
    command.chmod(0o755)
    run([command, "-e", "exit RUBY_ENGINE == ARGV[0]", name])  # TruffleRuby unpacks its library when it first runs
    values[name] = str(command)


# ---- the workloads ----


@dataclasses.dataclass(frozen=True)
class Workload:
    """What one workload needs. `python` None: no Python at all; otherwise the packages of its virtual environment."""

    about: str
    python: tuple[str, ...] | None = None
    debian: tuple[str, ...] = ()
    build: Callable[[pathlib.Path, dict], None] = build_nothing
    sources: str | None = None  # a directory of the repository whose content the build step copies or compiles
    is_large: bool = False  # not installed before all tests, but when it is asked for


RAILS_PACKAGES = (
    *("ruby", "ruby-dev", "ruby-rails", "ruby-sqlite3", "puma", "ruby-bundler", "bundler"),
    *("ruby-jbuilder", "ruby-listen", "ruby-jquery-rails"),
    *("ruby-sass-rails?", "ruby-turbolinks?"),  # that a new application of Rails 6.1 wants
    "ruby-rails-propshaft?",  # and one of 7.2
)

TEST_PACKAGES = (  # compilers and what makes faults, other allocators, other users' tests, a browser
    *("gcc", "libc6-dev", "binutils", "libcap2-bin", "strace", "util-linux", "bsdutils", "procps"),
    *("libxxhash0", "libjemalloc2", "ruby", "bundler", "ruby-rspec", "python3-venv", "python3-dev", "chromium", "chromium-driver"),
)
CLIENTS = ("redis", "psycopg[binary,pool]", "psycopg2-binary", "sqlalchemy", "django", "pymongo", "requests", "httpx", "boto3")
CLIENTS += ("grpcio", "rq", "celery[redis]")
DEBIAN_PYTHON = pathlib.Path(os.path.realpath("/usr/bin/python3")).name  # such as python3.11: the machine's, whichever runs this
JVM_PACKAGES = ("default-jdk-headless", "maven")

WORKLOADS = {
    "bare": Workload("an empty virtual environment", python=()),
    "tools": Workload("what checks the project itself: pytest and ruff", python=("pytest", "pytest-timeout", "ruff")),
    "packages": Workload("what builds and checks wheel and gem", python=("auditwheel", "cargo-zigbuild", "hatchling", "ziglang")),
    "storages": Workload("S3, WebDAV, Redis, metrics", ("moto[s3,server]", "wsgidav", "cheroot", "prometheus-client"), ("redis-server",)),
    "cryptography": Workload("an extension with an OpenSSL of its own", python=("cryptography",)),
    "web": Workload("the web trio", python=("flask", "requests", "pymongo")),
    "code-data-share": Workload(
        "the web trio with code-data-share, an archive to compare with; for CPython 3.8 to 3.12",
        python=("flask", "requests", "pymongo", "code-data-share==0.1.0"), build=build_code_data_share,
    ),
    "django": Workload("a new Django project", python=("django",), build=build_django),
    "development": Workload("a new Django project with pytest", python=("django", "pytest", "pytest-django"), build=build_django),
    "connections": Workload("clients of servers, and workers", python=CLIENTS, debian=("postgresql", "redis-server")),
    "servers": Workload("servers of Python", python=("gunicorn", "flask", "django", "uvicorn", "fastapi", "celery", "awslambdaric")),
    "ruby-servers": Workload("servers of Ruby", debian=("ruby", "ruby-rack", "puma", "unicorn", "ruby-sidekiq", "redis-server")),
    "pandas": Workload("pandas, with numpy's OpenBLAS threads", python=("pandas",)),
    "levels": Workload("numpy and cryptography", python=("numpy", "cryptography")),
    "streamlit": Workload("Streamlit, a server of pages", python=("streamlit",)),
    "boto3": Workload("boto3, the AWS client", python=("boto3",)),
    "pyyaml": Workload("PyYAML", python=("pyyaml",)),
    "black": Workload("black, a command-line tool", python=("black",)),
    "sqlalchemy": Workload("SQLAlchemy", python=("sqlalchemy",)),
    "setproctitle": Workload("setproctitle", python=("setproctitle",)),
    "ansible": Workload("ansible, a command-line tool", python=("ansible-core",)),
    "jupyter": Workload("jupyter, a large command-line tool", python=("jupyter",)),
    "pytest": Workload("pytest, with one test", python=("pytest",), build=build_pytest),
    "scikit-learn": Workload("scikit-learn", python=("scikit-learn",)),
    "polars": Workload("polars", python=("polars",)),
    "pyarrow": Workload("pyarrow", python=("pyarrow",)),
    "onnxruntime": Workload("onnxruntime, and onnx to make a model", python=("onnxruntime", "onnx")),
    "transformers": Workload("transformers, with its tokenizers", python=("transformers",)),
    "tensorflow": Workload("tensorflow for CPUs, and a server", python=("tensorflow-cpu", "fastapi", "uvicorn")),
    "torch": Workload("Debian's PyTorch", debian=("python3-torch",), build=build_debian_python, is_large=True),
    "python-cli": Workload("the libraries of examples/python-cli", python=("click", "pydantic", "rich")),
    "ruby": Workload("Ruby and its standard library", debian=("ruby",)),
    "rack": Workload("Rack", debian=("ruby", "ruby-rack")),
    "rubocop": Workload("what checks the project's Ruby", debian=("ruby", "rubocop")),
    "rails": Workload(
        "a new Rails application, production mode", debian=RAILS_PACKAGES, build=build_rails, sources="bench/programs/rails"
    ),
    "truffleruby": Workload("TruffleRuby", debian=(*JVM_PACKAGES, "libyaml-0-2"), build=build_truffleruby, sources="tools/jvm"),  # psych
    "jruby": Workload("JRuby 9.4", debian=JVM_PACKAGES, build=build_jruby, sources="tools/jvm"),
    "rails-bootsnap": Workload(
        "the same application with Bootsnap", debian=(*RAILS_PACKAGES, "ruby-bootsnap"), build=build_rails_bootsnap,
        sources="bench/programs/rails",
    ),
    "rails-snapboot": Workload(
        "the same with the boot archive", debian=RAILS_PACKAGES, build=build_rails_snapboot, sources="bench/programs/rails"
    ),
    "rails-yjit": Workload(
        "the same for a Ruby with YJIT, Rails 7.2", debian=RAILS_PACKAGES, build=build_rails_yjit, sources="bench/programs/rails"
    ),
    "bootsnap": Workload("Bootsnap, to compare with", debian=("ruby", "ruby-bootsnap")),
    "jekyll": Workload("jekyll, a command-line tool in Ruby", debian=("ruby", "jekyll")),
    "puppet": Workload("puppet, a large command-line tool in Ruby", debian=("ruby", "puppet")),
    "asciidoctor": Workload("asciidoctor, a command-line tool in Ruby", debian=("ruby", "asciidoctor")),
    "load-path": Workload("10,000 empty Ruby files and 513 folders", debian=("ruby",), build=build_load_path),
    "big-file": Workload("a Ruby file of 5,500 lines", debian=("ruby",), build=build_big_file),
    "yaml": Workload("a YAML file of 2,000 keys", debian=("ruby",), build=build_yaml),
    "strangers": Workload("the sample of tests/strangers", debian=("rake", "kramdown", "coderay")),
    "strace": Workload("strace", debian=("strace",)),
    "tests": Workload("what tests use besides", debian=TEST_PACKAGES),
    "sessions": Workload("shells and consoles that tests talk to", debian=("fish", "zsh", "pry")),
    "cpython-tests": Workload("the tests of Debian's own CPython", debian=(DEBIAN_PYTHON, f"lib{DEBIAN_PYTHON}-testsuite")),
    "heap": Workload("heaps of 30 MB, 100 MB and 1 GB", python=(), build=build_heaps, sources="bench/programs/heap"),
    "perl": Workload("perl", debian=("perl",)),
    "floors": Workload("the floors of any process's start", debian=("gcc", "libc6-dev"), build=build_floors, sources="bench/floors"),
}


def prepare(name: str, python: str = sys.executable) -> dict[str, str]:
    """Make workload `name` ready, for the CPython `python` where it has a Python part.

    Returns what it offers: `dir`; `python` and `bin` of its virtual environment; `ruby` or `perl` where it needs that.
    Raises Unavailable when it cannot be had, and KeyError for an unknown name.
    """
    workload = WORKLOADS[name]
    version = None if workload.python is None else python_version(python)
    directory = WORK / "workloads" / (name if version is None else f"{name}-{version}")
    stamp = directory / "ready.json"
    recipe = recipe_digest(workload, python)
    with locked(directory.name):
        if stamp.exists():
            ready = json.loads(stamp.read_text())
            # Virtual environments name their own folder, and do not move with it.
            if ready["recipe"] == recipe and pathlib.Path(ready["values"]["dir"]).is_relative_to(directory):
                return ready["values"]
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        print(f"setting up {directory.name}: {workload.about}", file=sys.stderr, flush=True)
        values = {"dir": str(directory)}
        install_debian_packages(workload.debian)
        if workload.python is not None:
            build_venv(directory, values, python, workload.python)
        for command in ("ruby", "perl", "strace", "jekyll", "asciidoctor", "puppet", "puma", "unicorn"):
            if command in workload.debian:
                values[command] = shutil.which(command)
        workload.build(directory, values)
        recipe = recipe_digest(workload, python)  # it was asked for before Ruby was installed, perhaps
        stamp.write_text(json.dumps({"recipe": recipe, "values": values}, indent=1))
        return values


def recipe_digest(workload: Workload, python: str) -> str:
    """A digest of everything that a set-up was made from: another one means that it must be made again."""
    parts = [repr((workload.python, workload.debian)), inspect.getsource(workload.build)]
    if workload.python is not None:
        parts.append(os.path.realpath(python))
    if "ruby" in workload.debian:
        parts.append(ruby_description())
    if workload.sources:
        parts += [path.read_text() for path in sorted((ROOT / workload.sources).iterdir()) if path.is_file()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def build_venv(directory: pathlib.Path, values: dict, python: str, packages: tuple[str, ...]) -> None:
    """Make `directory`/venv for `python` and install `packages` into it."""
    has_ensurepip = subprocess.run([python, "-c", "import ensurepip"], capture_output=True).returncode == 0
    if packages and not has_ensurepip:
        install_debian_packages(("python3-venv",))
    venv = directory / "venv"
    run([python, "-m", "venv", *([] if packages else ["--without-pip"]), venv])
    values |= {"bin": str(venv / "bin"), "python": str(venv / "bin/python")}
    if packages:
        run([values["python"], "-m", "pip", "install", "-q", *packages])


def python_version(python: str) -> str:
    """For example 3.11.7, or 3.13.0t for a free-threaded build. Raises Unavailable when `python` does not run."""
    code = "import sys; print('%d.%d.%d' % sys.version_info[:3] + sys.abiflags)"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(f"{python} is not a Python that runs: {error}") from None


def ruby_description() -> str:
    """The exact Ruby: a generated Gemfile asks for its version, and compiled code is for it. Empty where there is none."""
    ask = ["ruby", "--disable-gems", "-e", "print RUBY_DESCRIPTION"]
    try:
        return subprocess.run(ask, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads to make ready")
    parser.add_argument("--python", default=sys.executable, help="the CPython to make them for")
    parser.add_argument("--list", action="store_true", help="name all workloads")
    options = parser.parse_args()
    if options.list:
        for name, workload in WORKLOADS.items():
            print(f"{name:12} {workload.about}")
        return 0
    unknown = [name for name in options.names if name not in WORKLOADS]
    if unknown or not options.names:
        parser.error(f"{'unknown: ' + ', '.join(unknown) if unknown else 'no NAME'}; --list names all workloads")
    offered, status = {}, 0
    for name in options.names:
        try:
            offered[name] = prepare(name, options.python)
        except Unavailable as reason:
            print(f"{name} skipped: {reason}", file=sys.stderr)
            status = 1
    print(json.dumps(offered, indent=1))
    return status


if __name__ == "__main__":
    sys.exit(main())
