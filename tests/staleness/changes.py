"""What may be changed of a program between two starts. Each change takes a Program and a random.Random, and returns what it did."""

import os
import shutil

from . import programs

PYTHON_MARK, RUBY_MARK = "MARK = '%s'\n", "($marks ||= []) << '%s'\n"


def marked(program, source, word):
    """Adds a line to a source by which the program prints another thing."""
    line = (RUBY_MARK if source.suffix == ".rb" else PYTHON_MARK) % word
    return source.read_text() + line


def replaced(path, text, times=None):
    """Another file in the place of one, as most editors and package managers write."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    if times is not None:
        os.utime(new, ns=times)
    os.replace(new, path)


def times_of(path):
    status = path.stat()
    return status.st_atime_ns, status.st_mtime_ns


def edit(program, random):
    source = random.choice(program.sources)
    source.write_text(marked(program, source, f"e{random.randrange(1000)}"))
    return f"edit {source.name}"


def edit_same_size(program, random):
    """The last byte but one of a comment, within the same second as the last write."""
    source = random.choice(program.sources)
    text = source.read_text()
    other = "bb" if "'aa " in text else "aa"
    changed = text.replace(f"'{'aa' if other == 'bb' else 'bb'} ", f"'{other} ", 1)
    if changed == text:
        source.write_text(marked(program, source, "aa same size"))
        return f"prepare {source.name}"
    assert len(changed) == len(text)
    before = times_of(source)
    source.write_text(changed)
    if random.random() < 0.5:
        os.utime(source, ns=before)
    return f"edit {source.name} in its size"


def replace(program, random):
    source = random.choice(program.sources)
    times = times_of(source) if random.random() < 0.5 else None
    replaced(source, marked(program, source, f"r{random.randrange(1000)}"), times)
    return f"replace {source.name}"


def touch(program, random):
    source = random.choice(program.sources)
    os.utime(source)
    return f"touch {source.name}"


def copy(program, random):
    source = random.choice(program.sources)
    replaced(source, source.read_text())
    return f"copy {source.name}"


def hard_link(program, random):
    source = random.choice(program.sources)
    link = program.folder / "elsewhere" / f"{source.name}.{random.randrange(10**9)}"
    os.link(source, link)
    return f"link {source.name}"


def shadow(program, random):
    """A file that is found earlier, or goes away again."""
    path = random.choice(program.shadows)
    if path.exists():
        path.unlink()
        return f"unshadow {path.relative_to(program.folder)}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((RUBY_MARK if path.suffix == ".rb" else PYTHON_MARK) % "shadow")
    return f"shadow {path.relative_to(program.folder)}"


def unrelated(program, random):
    """What must not matter, and does not."""
    source = random.choice(program.sources)
    name = random.choice(["notes.txt", "core.1234", ".swp", "__pycache__/x.txt"])
    path = source.parent / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(str(random.random()))
    return f"unrelated {name}"


def pth(program, random):
    path = program.site / "local.pth"
    action = random.choice(["add", "edit", "remove"])
    if action == "remove":
        path.unlink(missing_ok=True)
    else:
        path.write_text(f"{program.folder}/{random.choice(['elsewhere', 'plugins', 'early'])}\n")
    return f"{action} local.pth"


def data(program, random):
    path = next(program.folder / name for name in ("data.json", "data.yml") if (program.folder / name).exists())
    before = times_of(path)
    text = path.read_text()
    path.write_text(text.replace("aa", "bb") if "aa" in text else text.replace("bb", "aa"))
    if random.random() < 0.5:
        os.utime(path, ns=before)
    return f"edit {path.name}"


def plugin(program, random):
    path = program.folder / "plugins" / f"{random.choice(['one', 'two', 'three'])}.{random.choice(['txt', 'bak'])}"
    path.unlink() if path.exists() else path.write_text("")
    return f"plugin {path.name}"


def link(program, random):
    path = program.folder / "link"
    to = random.choice(["target", "other"])
    path.unlink()
    path.symlink_to(to)
    return f"link to {to}"


def optional(program, random):
    path = program.folder / "optional"
    path.unlink() if path.exists() else path.write_text(str(random.randrange(10)))
    return "optional file"


def library(program, random):
    programs.build_library(program.folder, random.randrange(100))
    return "upgrade the library"


def gem(program, random):
    version = random.choice(["1.1", "2.0", "0.9"])
    spec = program.folder / f"gems/specifications/tiny-{version}.gemspec"
    if spec.exists():
        spec.unlink()
        return f"uninstall tiny {version}"
    programs.add_gem(program.folder, version)
    return f"install tiny {version}"


def environment(program, random):
    name = random.choice(["LANG", "TZ", "UNRELATED", "HOME", "PYTHONPATH", "RUBYLIB", "PYTHONHASHSEED", "RUBYOPT"])
    choices = {
        "LANG": ["C.UTF-8", "C", None],
        "TZ": [None, "Asia/Tokyo"],
        "UNRELATED": [None, "1", "2"],
        "HOME": ["/", str(program.folder / "elsewhere")],
        "PYTHONPATH": [f"{program.folder}/early:{program.folder}/late", f"{program.folder}/late:{program.folder}/early"],
        "RUBYLIB": [f"{program.folder}/early:{program.folder}/late", f"{program.folder}/late:{program.folder}/early"],
        "PYTHONHASHSEED": [None, "0"],
        "RUBYOPT": [None, "-W0"],
    }
    value = random.choice(choices[name])
    program.env.pop(name, None)
    if value is not None:
        program.env[name] = value
    return f"{name}={value}"


def working_directory(program, random):
    program.cwd = random.choice([program.folder, program.folder / "elsewhere", program.folder / "plugins"])
    return f"cd {program.cwd.name}"


def remove_and_restore(program, random):
    """A file goes away and comes back as it was."""
    source = random.choice(program.sources)
    text = source.read_text()
    source.unlink()
    source.write_text(text)
    return f"restore {source.name}"


def swap_folders(program, random):
    """A folder is replaced by a copy of itself, as a deployment does."""
    source = random.choice(program.sources).parent
    if source == program.folder:
        return "nothing"
    new = source.with_name(source.name + ".new")
    shutil.copytree(source, new, symlinks=True)
    old = source.with_name(source.name + ".old")
    os.rename(source, old)
    os.rename(new, source)
    shutil.rmtree(old)
    return f"deploy {source.name}"


COMMON = [edit, edit_same_size, replace, touch, copy, hard_link, shadow, unrelated, environment, remove_and_restore, swap_folders]
SMALL = [*COMMON, data, plugin, link, optional, library, working_directory]
