"""The Dockerfiles of docs/containers.md and docs/fleets.md, built and run with podman from roots that need no registry: wheel and gem
are installed in an empty container each, what is frozen in one layer is thawed in another, by another user, on a read-only root.

SNAPBOOT_CONTAINERS=all, as `make containers` has it: all Dockerfiles, and each way to start a container by itself.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import tempfile

import containers
import podman as engine
import pytest
import workloads
from common import support, waiting

BASE, RAILS_BASE, SLIM = "snapboot-base", "snapboot-rails-base", "snapboot-slim"
STRICT = ["-e", "SNAPBOOT_ON_STALE=error"]  # a start that does not thaw is an error
# What may differ between the build and a start, and changes nothing.
STARTS = {
    "read-only": ["--read-only"],
    "read-only, also below /tmp": ["--read-only", "--read-only-tmpfs=false"],
    "no capabilities": ["--cap-drop=all"],
    "no new privileges": ["--security-opt", "no-new-privileges"],
    "another user": ["--user", "4321:4321"],
    "root": ["--user", "0"],
    "more groups": ["--group-add", "33"],
    "another HOME": ["-e", "HOME=/elsewhere"],
    "another locale": ["-e", "LANG=C.UTF-8"],
    "another host name": ["--hostname", "other"],
    "half a CPU": ["--cpus", "0.5"],
    "one CPU": ["--cpuset-cpus", "0"],
    "little memory": ["--memory", "128m"],
    "few processes": ["--pids-limit", "10"],
    "few descriptors": ["--ulimit", "nofile=64:64"],
    "another umask": ["--umask", "0077"],
    "another /etc/hosts": ["--add-host", "other:192.0.2.1"],
    "another /etc/resolv.conf": ["--network=host", "--dns", "192.0.2.1"],
    "another time zone": ["-e", "TZ=Asia/Tokyo"],
    "a user namespace": ["--uidmap", "0:100000:65536", "--gidmap", "0:100000:65536"],
    "another first process": ["--pid", "host"],
    "no system calls forbidden": ["--security-opt", "seccomp=unconfined"],
    "all system calls and devices": ["--privileged"],
    "variables of Kubernetes": ["-e", "KUBERNETES_SERVICE_HOST=192.0.2.1", "-e", "KUBERNETES_PORT=tcp://192.0.2.1:443"],
}
# These go together.
ALL_AT_ONCE = (
    "read-only", "no capabilities", "no new privileges", "another user", "another HOME", "another host name", "another umask",
    "another /etc/hosts", "variables of Kubernetes",
)  # fmt: skip

# The interpreter and its libraries, as patterns of a shell.
SLIM_FILES = (
    "/bin /lib /lib64 /sbin", "/etc/passwd /etc/group", "/usr/bin/python3*", "/usr/lib/python3*", "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64", "/usr/share/zoneinfo",
)  # fmt: skip


@pytest.fixture(scope="module")
def storage():
    """Makes places for podman's storage, where an overlay can lie; the last one is gone with the module."""
    made = []

    def make(*options):
        made.append(engine.Podman(tempfile.mkdtemp(prefix="podman-", dir=workloads.WORK), *options))
        return made[-1]

    yield make
    for podman in made:
        podman.remove()


@pytest.fixture(scope="module")
def podman(storage):
    """podman with the base. Skips where no container starts."""
    podman = storage()
    try:
        podman.import_base(containers.prepare(), BASE)
    except workloads.Unavailable as reason:
        pytest.skip(f"containers cannot be tried here: {reason}")
    return podman


@pytest.fixture(scope="module")
def tool(podman, wheel, tmp_path_factory):
    containers.build(podman, "black", BASE, wheel, tmp_path_factory.mktemp("tool"))
    return functools.partial(podman.start, *STRICT)


@pytest.fixture(scope="module")
def ordinary(podman, tool):
    """What an ordinary start of the tool prints."""
    return podman.start("--entrypoint", "/opt/app/bin/black", "black", "--version")


def test_a_tool_is_frozen_in_one_layer_and_thawed_in_another(podman, tool, ordinary):
    assert tool("black", "--version") == ordinary
    options = [word for start in ALL_AT_ONCE for word in STARTS[start]]
    assert tool(*options, "black", "--version") == ordinary
    assert tool("--read-only", "--user", "0", "black", "--version") == ordinary
    assert podman.try_start("--entrypoint", "/opt/snapboot/bin/snapboot", "black").returncode != 0


def test_layers_that_were_loaded_elsewhere_thaw(podman, tool, ordinary, storage, tmp_path):
    podman.must("save", "-q", "-o", tmp_path / "tool.tar", "black")
    elsewhere = storage(podman.runtime, podman.limits)
    elsewhere.must("load", "-q", "-i", tmp_path / "tool.tar")
    (tmp_path / "tool.tar").unlink()
    assert elsewhere.start(*STRICT, "--read-only", "black", "--version") == ordinary


def test_what_a_later_layer_or_the_environment_changes_is_named(podman, tool, ordinary, tmp_path):
    text = "FROM black\nUSER 0\nRUN for file in /opt/app/lib/python3*/site-packages/click/__init__.py; do echo '# edited' >> $file; done\n"
    podman.build(text, "edited", tmp_path)
    cases = {"click/__init__.py": ["edited"], "XDG_CACHE_HOME": ["-e", "XDG_CACHE_HOME=/elsewhere", "black"]}
    for name, words in cases.items():
        done = podman.try_start("-e", "SNAPBOOT_LOG=1", *words, "--version")
        assert done.stdout == ordinary
        assert "snapboot: stale: " in done.stderr and name in done.stderr, done.stderr


if os.environ.get("SNAPBOOT_CONTAINERS") == "all":

    @pytest.mark.parametrize("start", STARTS)
    def test_a_tool_thaws_however_its_container_is_started(podman, tool, ordinary, start):
        options = STARTS[start]
        network = "host" if "--network=host" in options else "none"
        done = podman.try_start(*options, "--entrypoint", "/opt/app/bin/black", "black", "--version", network=network)
        if done.returncode != 0:
            pytest.skip(f"no container starts so here: {done.stderr.strip()}")
        assert done.stdout == ordinary
        assert podman.start(*STRICT, *options, "black", "--version", network=network) == ordinary

    def test_a_tool_thaws_under_crun(podman, tool, ordinary):
        try:
            crun = containers.unpacked("crun", "crun", "libyajl2")
        except workloads.Unavailable as reason:
            pytest.skip(f"crun cannot be tried here: {reason}")
        other = engine.Podman(podman.top, ["--runtime", crun], podman.limits)
        if (done := other.try_start(BASE, "true")).returncode != 0:
            # crun wants version 1 or 2 of control groups, and no mixture: in a mount namespace there is only the first one.
            spaces = ["unshare", "--mount", "sh", "-c", 'umount /sys/fs/cgroup/unified; exec "$@"', "sh"]
            other.words = lambda *words: [*spaces, *engine.Podman.words(other, *words)]
            done = other.try_start(BASE, "true")
        if done.returncode != 0:
            pytest.skip(f"crun starts no container here: {done.stderr.strip()}")
        assert other.start(*STRICT, "black", "--version") == ordinary

    def test_a_tool_thaws_in_a_user_namespace_of_its_own(podman, tool, ordinary):
        container = podman.must("create", "--network=none", "black").strip()
        root = podman.must("mount", container).strip()
        inside = ["unshare", "--user", "--map-root-user", "--pid", "--fork", f"--root={root}", "--mount-proc", "--wd=/"]
        variables = ["env", "-i", "PATH=/usr/bin", "SNAPBOOT_ON_STALE=error"]
        done = subprocess.run([*variables, *inside, "/opt/app/black.img", "--version"], capture_output=True, text=True)
        podman.must("rm", "--force", container)
        assert (done.returncode, done.stdout) == (0, ordinary), done.stderr

    def test_a_tool_starts_the_ordinary_way_under_gvisor_and_says_why(podman, tool, ordinary, tmp_path):
        try:
            runsc = [containers.unpacked("runsc", "runsc"), "--root", tmp_path, "--rootless", "--network=none", "--platform=ptrace"]
        except workloads.Unavailable as reason:
            pytest.skip(f"gVisor cannot be tried here: {reason}")
        container = podman.must("create", "--network=none", "black").strip()
        root = podman.must("mount", container).strip()

        def start(name, *words):
            bundle = tmp_path / name
            bundle.mkdir()
            subprocess.run([runsc[0], "spec", "--bundle", bundle, "--cwd", "/", "--", *words], check=True)
            config = json.loads((bundle / "config.json").read_text())
            config["root"] = {"path": root, "readonly": True}
            config["process"] |= {"terminal": False, "env": ["PATH=/usr/bin", "SNAPBOOT_LOG=1"]}
            (bundle / "config.json").write_text(json.dumps(config))
            pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            return subprocess.run([*runsc, "run", "--bundle", bundle, name], text=True, timeout=waiting.SECONDS, **pipes)

        if (done := start("nothing", "/usr/bin/true")).returncode != 0:
            pytest.skip(f"gVisor starts no container here: {done.stderr.strip()}")
        done = start("thawed", "/opt/app/black.img", "--version")
        podman.must("rm", "--force", container)
        assert (done.returncode, done.stdout) == (0, ordinary), done.stderr
        assert "this kernel does not show where its vdso is; starting the ordinary way" in done.stderr

    def test_a_tool_is_frozen_and_thawed_on_a_base_without_a_shell(podman, ordinary, wheel, tmp_path):
        copy = f"mkdir -p /slim/tmp /slim/proc && cp -a --parents {' '.join(SLIM_FILES)} /slim"
        podman.build(f"FROM {BASE} AS made\nRUN {copy}\nFROM scratch\nCOPY --from=made /slim /\n", SLIM, tmp_path)
        shutil.copy(wheel, tmp_path)
        place = f"{containers.wheels('black')}:{containers.WHEELS}:ro"
        bases = ["--build-arg", f"BASE={BASE}", "--build-arg", f"SLIM={SLIM}"]
        podman.build(containers.dockerfile("slim.img"), "slim", tmp_path, *bases, "-v", place)
        assert podman.try_start("--entrypoint", "/bin/sh", "slim", "-c", "true").returncode != 0
        assert podman.start("--entrypoint", "/opt/app/bin/black", "slim", "--version") == ordinary
        assert podman.start(*STRICT, "--read-only", "slim", "--version") == ordinary
        assert podman.start(*STRICT, "--user", "4321", "slim", "--version") == ordinary

    def test_a_second_build_takes_the_image_of_the_first(podman, ordinary, wheel, tmp_path):
        remote, secret = tmp_path / "remote", tmp_path / "secret/key"
        remote.mkdir()
        secret.parent.mkdir()
        assert support.run([support.SNAPBOOT, "remote", "key", secret]).status == 0
        shared = ["--no-cache", "--build-arg", "REMOTE=file:///remote", "-v", f"{remote}:/remote"]
        shared += ["--secret", f"id=snapboot-key,src={secret}"]
        for number in range(2):
            context = tmp_path / str(number)
            context.mkdir()
            shutil.copy(f"{secret}.pub", context / "ci.pub")
            containers.build(podman, "shared", BASE, wheel, context, *shared)
            assert podman.start(*STRICT, "--read-only", "shared", "--version") == ordinary
            counts = {kind: sum(path.is_file() for path in (remote / "v1" / kind).rglob("*")) for kind in ("images", "used")}
            # Who takes an image marks it as used.
            assert counts == {"images": 1, "used": number}, counts

    @pytest.mark.parametrize("name, program", {"flask": "app:app", "django": "shop.wsgi"}.items())
    def test_a_server_answers_from_a_thawed_container(podman, wheel, tmp_path, name, program):
        containers.build(podman, name, BASE, wheel, tmp_path)
        ordinary = answer(podman, "--entrypoint", "/opt/app/bin/gunicorn", name, program, "-b", "127.0.0.1:8000")
        assert answer(podman, *STRICT, name) == ordinary
        limits = ["--read-only", "--cap-drop=all", "--hostname", "other", "-e", "HOME=/elsewhere"]
        assert answer(podman, *STRICT, *limits, name, "-b", "127.0.0.1:8000", "-w", "2") == ordinary

    def test_a_function_answers_from_a_thawed_container(podman, wheel, tmp_path):
        containers.build(podman, "handler", BASE, wheel, tmp_path)
        event = json.dumps({"url": "https://host/path", "params": {"name": "a b"}})
        ordinary = podman.start("-i", "--entrypoint", "/opt/app/bin/python", "handler", "main.py", input=event)
        assert json.loads(ordinary) == {"url": "https://host/path?name=a+b"}
        assert podman.start("-i", *STRICT, "--read-only", "handler", input=event) == ordinary
        assert podman.start("-i", *STRICT, "--user", "4321", "handler", input=event) == ordinary

    def answer(podman, *words):
        """Text of the first answer of a server on port 8000 of a new container."""
        container = podman.must("run", "-d", "--network=none", *podman.limits, *words).strip()
        fetch = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/').read().decode())"

        def answered():
            state = podman("inspect", "-f", "{{.State.Status}}", container).stdout.strip()
            assert state in ("created", "running"), podman("logs", container).stderr
            return podman("exec", container, "/opt/app/bin/python", "-c", fetch).stdout

        try:
            return waiting.wait_until(answered, "an answer")
        finally:
            podman.must("rm", "--force", "--time", "60", container)

    def test_a_rails_application_is_frozen_in_one_layer_and_thawed_in_another(podman, gem, tmp_path):
        podman.must("import", "-q", containers.prepare(containers.RAILS), RAILS_BASE)
        shutil.copy(gem, tmp_path)
        application = workloads.prepare("rails")["dir"]
        ignored = shutil.ignore_patterns("*.log", "tmp", "Gemfile.lock", ".ruby-version")
        shutil.copytree(application, tmp_path / "app", symlinks=True, ignore=ignored)
        # The boot reads this, so who may not read it could not execute the image.
        (tmp_path / "app/config/master.key").chmod(0o644)
        gemfile = tmp_path / "app/Gemfile"
        gemfile.write_text(re.sub(r"^ruby .*\n", "", gemfile.read_text(), flags=re.MULTILINE))
        # Debian's gems lie where Bundler would not install any.
        text = containers.dockerfile("rails.img").replace("bundle install --local", "bundle lock --local")
        podman.build(text, "application", tmp_path, "--build-arg", f"BASE={RAILS_BASE}")
        words = ["application", "runner", "puts Rails.env, Rails.version"]
        ordinary = podman.start("--entrypoint", "bin/rails", *words)
        assert ordinary.startswith("production\n")
        strict = [*STRICT, "--read-only"]
        assert podman.start(*strict, *words) == ordinary
        assert podman.start(*strict, "--user", "4321:65534", *words) == ordinary

        ask = "Net::HTTP.get(URI('http://127.0.0.1:3000/'))"
        fetch = f"require 'net/http'; begin; puts {ask}; rescue Errno::ECONNREFUSED; sleep 0.1; retry; end"
        server = ["-d", "--network=none", "--tmpfs", "/app/tmp", *podman.limits, *strict, "application", "server", "-b", "127.0.0.1"]
        container = podman.must("run", *server).strip()
        assert "<li>thawed</li>" in podman.must("exec", container, "ruby", "-e", fetch)
        podman.must("stop", "-t", "60", container)
