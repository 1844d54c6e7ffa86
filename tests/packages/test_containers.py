"""The Dockerfiles of docs/containers.md, built and run with podman from a base that needs no registry: wheel and gem are installed in an
empty container each, what is frozen in one layer is thawed in another, by another user, on a read-only root.

SNAPBOOT_CONTAINERS=all, as `make containers` has it: Rails, too, whose base takes minutes to make.
"""

import functools
import itertools
import os
import re
import shutil
import subprocess
import tempfile

import containers
import pytest
import workloads
from common import support

BLOCK = re.compile(r"^```dockerfile\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENT = support.ROOT / "docs/containers.md"
BASE, RAILS_BASE = "snapboot-base", "snapboot-rails-base"
# Where these tests may run in a container themselves: what podman asks for by default can be more than is permitted.
RUNTIMES = ([], ["--runtime", "runc"], ["--runtime", "crun"])
LIMITS = ([], ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"])
STRICT = ["--read-only", "-e", "SNAPBOOT_ON_STALE=error"]


class Podman:
    """podman, with a storage of its own that is gone in the end."""

    def __init__(self, top, runtime=(), limits=()):
        self.top, self.runtime, self.limits = top, list(runtime), list(limits)

    def __call__(self, *words, **options):
        places = ["--root", f"{self.top}/storage", "--runroot", f"{self.top}/run", "--cgroup-manager", "cgroupfs"]
        argv = ["podman", *places, *self.runtime, *map(str, words)]
        return subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=support.SECONDS, **options)

    def must(self, *words, **options):
        done = self(*words, **options)
        assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout

    def start(self, *words):
        """Run a container without a network. Returns what it printed; fails the test when it fails."""
        return self.must("run", "--rm", "--network=none", *self.limits, *words)

    def build(self, text, tag, context, *options):
        return self.must("build", "-q", "--network=none", "-t", tag, *options, "-f", "-", context, input=text)

    def remove(self):
        self("rm", "--all", "--force")
        self("rmi", "--all", "--force")
        subprocess.run(["umount", f"{self.top}/storage/overlay"], capture_output=True)
        shutil.rmtree(self.top, ignore_errors=True)


@pytest.fixture(scope="module")
def storage():
    """Makes places for podman's storage, where an overlay can lie; the last one is gone with the module."""
    made = []

    def make(*options):
        made.append(Podman(tempfile.mkdtemp(prefix="podman-", dir=workloads.WORK), *options))
        return made[-1]

    yield make
    for podman in made:
        podman.remove()


@pytest.fixture(scope="module")
def podman(storage):
    """podman with the base, and the options with which a container starts here. Skips where none does."""
    try:
        base = containers.prepare()
    except workloads.Unavailable as reason:
        pytest.skip(f"containers cannot be tried here: {reason}")
    podman = storage()
    if (done := podman("import", "-q", base, BASE)).returncode:
        pytest.skip(f"containers cannot be tried here: {done.stderr.strip()}")
    for podman.runtime, podman.limits in itertools.product(RUNTIMES, LIMITS):
        if (done := podman("run", "--rm", "--network=none", *podman.limits, BASE, "true")).returncode == 0:
            return podman
    pytest.skip(f"containers cannot be tried here: podman starts none: {done.stderr.strip()}")


def recipe(text):
    """The Dockerfile of the document in which this stands."""
    (found,) = [block for block in BLOCK.findall(DOCUMENT.read_text()) if text in block]
    return found


@pytest.fixture(scope="module")
def tool(podman, wheel, tmp_path_factory):
    context = tmp_path_factory.mktemp("tool")
    shutil.copy(wheel, context)
    wheels = f"{containers.wheels()}:{containers.WHEELS}:ro"
    podman.build(recipe("black.img"), "tool", context, "--build-arg", f"BASE={BASE}", "-v", wheels)
    return functools.partial(podman.start, *STRICT)


def test_a_tool_is_frozen_in_one_layer_and_thawed_in_another(podman, tool):
    ordinary = podman.start("--entrypoint", "/opt/app/bin/black", "tool", "--version")
    assert tool("tool", "--version") == ordinary
    assert tool("--user", "4321:4321", "tool", "--version") == ordinary
    assert tool("--user", "0", "tool", "--version") == ordinary
    assert tool("--user", "4321:4321", "-e", "HOME=/elsewhere", "-e", "LANG=C.UTF-8", "tool", "--version") == ordinary
    assert podman("run", "--rm", "--entrypoint", "/opt/snapboot/bin/snapboot", *podman.limits, "tool").returncode != 0


def test_layers_that_were_loaded_elsewhere_thaw(podman, tool, storage, tmp_path):
    ordinary = podman.start("--entrypoint", "/opt/app/bin/black", "tool", "--version")
    podman.must("save", "-q", "-o", tmp_path / "tool.tar", "tool")
    elsewhere = storage(podman.runtime, podman.limits)
    elsewhere.must("load", "-q", "-i", tmp_path / "tool.tar")
    (tmp_path / "tool.tar").unlink()
    assert elsewhere.start(*STRICT, "tool", "--version") == ordinary


def test_what_a_later_layer_or_the_environment_changes_is_named(podman, tool, tmp_path):
    text = "FROM tool\nUSER 0\nRUN for file in /opt/app/lib/python3*/site-packages/click/__init__.py; do echo '# edited' >> $file; done\n"
    podman.build(text, "edited", tmp_path)
    ordinary = podman.start("--entrypoint", "/opt/app/bin/black", "tool", "--version")
    cases = {"click/__init__.py": ["edited"], "XDG_CACHE_HOME": ["-e", "XDG_CACHE_HOME=/elsewhere", "tool"]}
    for name, words in cases.items():
        done = podman("run", "--rm", "--network=none", *podman.limits, "-e", "SNAPBOOT_LOG=1", *words, "--version")
        assert done.stdout == ordinary
        assert "snapboot: stale: " in done.stderr and name in done.stderr, done.stderr


if os.environ.get("SNAPBOOT_CONTAINERS") == "all":

    def test_a_rails_application_is_frozen_in_one_layer_and_thawed_in_another(podman, gem, tmp_path):
        podman.must("import", "-q", containers.prepare(containers.RAILS), RAILS_BASE)
        shutil.copy(gem, tmp_path)
        application = workloads.prepare("rails")["dir"]
        ignored = shutil.ignore_patterns("*.log", "tmp", "Gemfile.lock", ".ruby-version")
        shutil.copytree(application, tmp_path / "app", symlinks=True, ignore=ignored)
        gemfile = tmp_path / "app/Gemfile"
        gemfile.write_text(re.sub(r"^ruby .*\n", "", gemfile.read_text(), flags=re.MULTILINE))
        # Debian's gems lie where Bundler would not install any.
        text = recipe("rails.img").replace("bundle install --local", "bundle lock --local")
        podman.build(text, "application", tmp_path, "--build-arg", f"BASE={RAILS_BASE}")
        words = ["application", "runner", "puts Rails.env, Rails.version"]
        ordinary = podman.start("--entrypoint", "bin/rails", *words)
        assert ordinary.startswith("production\n")
        assert podman.start(*STRICT, *words) == ordinary
        assert podman.start(*STRICT, "--user", "4321:65534", *words) == ordinary

        ask = "Net::HTTP.get(URI('http://127.0.0.1:3000/'))"
        fetch = f"require 'net/http'; begin; puts {ask}; rescue Errno::ECONNREFUSED; sleep 0.1; retry; end"
        server = ["-d", "--network=none", "--tmpfs", "/app/tmp", *podman.limits, *STRICT, "application", "server", "-b", "127.0.0.1"]
        container = podman.must("run", *server).strip()
        assert "<li>thawed</li>" in podman.must("exec", container, "ruby", "-e", fetch)
        podman.must("stop", "-t", "60", container)
