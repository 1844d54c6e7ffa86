"""State that no object of the program leads to, in the process, the kernel and C code: where a fact about the start decides of it, as
another start shows, the image does not serve starts with another one.
"""

import pytest
from common import support

from .test_other_start import Program

# What is done if V holds, and what shows it.
PYTHON = {
    "what runs at the end": ("import atexit\nif V: atexit.register(print, 'bye')", "1"),
    "a limit": ("import resource\nif V: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))", "__import__('resource').getrlimit(4)"),
    "the priority": ("if V: os.nice(3)", "os.nice(0)"),
    "the directory": ("if V: os.chdir('/usr')", "os.getcwd()"),
    "the mask of signals": ("import signal\nif V: signal.pthread_sigmask(0, [12])", "__import__('signal').pthread_sigmask(0, [])"),
    "a descriptor": ("if V: os.dup2(os.open('/etc/passwd', 0), 177)", "os.path.exists('/proc/self/fd/177')"),
    "how often threads take turns": ("if V: sys.setswitchinterval(0.5)", "sys.getswitchinterval()"),
    "how exact decimals are": ("import decimal\nif V: decimal.getcontext().prec = 5", "__import__('decimal').getcontext().prec"),
    "random numbers": ("import random\nrandom.seed(1)\nif V: random.random()", "__import__('random').random()"),
    "a compressor": ("import zlib\nD = zlib.compressobj()\nif V: D.compress(b'xyz')", "boot.D.flush()"),
    "what tells of crashes": ("import faulthandler\nif V: faulthandler.enable()", "__import__('faulthandler').is_enabled()"),
}
RUBY = {
    "a limit": ("Process.setrlimit(:CORE, 0, 0) if V", "Process.getrlimit(:CORE)"),
    "a thread": ("Thread.new { sleep } unless V", "Thread.list.size"),
    "a descriptor": ("IO.for_fd(IO.sysopen('/etc/passwd'), autoclose: false) if V", "Dir.children('/proc/self/fd').size"),
    "random numbers": ("srand(1); rand if V", "rand"),
    "a generator": ("R = Random.new(1); R.rand if V", "R.rand"),
    "a weak map": ("W = ObjectSpace::WeakMap.new; K = +'k'; W[K] = 1 if V", "W.size"),
    "a trace": ("T = TracePoint.new(:call) {}; T.enable if V", "T.enabled?"),
    "how a stream writes": ("$stdout.sync = true if V", "$stdout.sync"),
    "where a stream stands": ("F = File.open('/etc/passwd'); F.getc if V", "F.pos"),
    "what is loaded when it is used": ("autoload(:Zz, '/zz.rb') if V", "Object.autoload?(:Zz)"),
    "how a table compares": ("H = {}; H.compare_by_identity if V", "H.compare_by_identity?"),
    "what a module has": ("module Mm; end\nMm.extend(Comparable) if V", "Mm.singleton_class.include?(Comparable)"),
    "what a text has": ("S = +'s'\nS.extend(Module.new { def qq = 1 }) if V", "S.respond_to?(:qq)"),
    "who sees a constant": ("class Cc; X = 1; end\nCc.send(:private_constant, :X) if V", "(Cc::X rescue 0)"),
}
ASKED = {
    "python": "V = os.environ['HOME'] == {home!r}\n{source}\ndel V",
    "ruby": "V = ENV['HOME'] == {home!r}\n{source}\nObject.send(:remove_const, :V)",
}


class Hidden(Program):
    def __init__(self, folder, source, home, language, shows):
        super().__init__(folder, ASKED[language].format(home=home, source=source), {"HOME": home}, language)
        show = {"python": "import boot, os, sys; print({})", "ruby": "require %r\np({{}})" % f"{folder}/boot"}[language]
        self.show = show.replace("{{}}", "{}").replace("{}", shows)


def cases():
    for language, rows in (("python", PYTHON), ("ruby", RUBY)):
        for name in rows:
            yield pytest.param(language, name, marks=[support.needs_ruby] if language == "ruby" else [])


@pytest.mark.sample(24, each=lambda case: case["language"])
@pytest.mark.parametrize(("language", "name"), list(cases()))
def test_state_that_no_object_leads_to(tmp_path, language, name):
    homes = [str(tmp_path / name) for name in ("home", "another-home")]
    source, shows = (PYTHON if language == "python" else RUBY)[name]
    program = Hidden(tmp_path, source, homes[0], language, shows)
    program.check(True)
    program.check(False, HOME=homes[1])
