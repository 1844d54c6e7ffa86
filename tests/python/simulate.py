"""A thaw without freezer and launcher: the front end's fork simply goes on in its child, given the new process' descriptors.

Started as `python [options] simulate.py` with SNAPBOOT_FREEZE_DIR set. Besides `request`, the folder holds `arguments`,
`environment` and `directory`, NUL-terminated: what the kernel would say of the thawed process. Descriptors 7, 8 and 9 become its
0, 1 and 2; one that is not open stands for a closed stream. Ends as the thawed process ends.
"""

import posix
import sys

RESULT = 7


def simulate(folder, front_end):
    """Loads the front end, replaces what only a real thaw has, and starts it."""
    known = set(sys.modules)
    path = front_end + "/loader.py"
    names = {"__name__": "front end"}
    with open(path) as file:
        exec(compile(file.read(), path, "exec"), names)
    load = names["loader"](front_end)
    freeze_run = load("freeze_run")
    for name in set(sys.modules) - known:
        del sys.modules[name]
    process = load("process")
    fork = load("fork")
    process.started_with = lambda: (strings(folder + b"/arguments"), strings(folder + b"/environment"))
    really_freeze = fork.freeze

    def freeze():
        status = really_freeze()
        if status is None:
            become_new_process(folder)
            return None
        freeze_run.KEPT[0].report.write(folder)
        end_as(status)

    fork.freeze = freeze
    freeze_run.run(load)


def strings(path):
    with open(path, "rb") as file:
        return file.read().split(b"\0")[:-1]


def become_new_process(folder):
    """In the child: takes over the directory, the descriptors and the C library's environment."""
    posix.chdir(strings(folder + b"/directory")[0])
    for number in range(3):
        try:
            posix.dup2(RESULT + number, number)
            posix.close(RESULT + number)
        except OSError:
            posix.close(number)
    new = dict(entry.split(b"=", 1) for entry in strings(folder + b"/environment"))
    for name in set(posix.environ):
        posix.unsetenv(name)
    for name, value in new.items():
        posix.putenv(name, value)


def end_as(status):
    """In the parent: ends as the child ended."""
    if posix.WIFSIGNALED(status):
        import _signal

        number = posix.WTERMSIG(status)
        if number != _signal.SIGKILL:
            _signal.signal(number, _signal.SIG_DFL)
        posix.kill(posix.getpid(), number)
    posix._exit(posix.WEXITSTATUS(status))


if __name__ == "__main__":
    simulate(posix.environ[b"SNAPBOOT_FREEZE_DIR"], posix.environ[b"SNAPBOOT_FRONT_END"].decode())
