"""`snapboot refreeze` makes images again as they were made; `snapboot freeze` names them after what they run."""

import json

import pytest
from common import support
from common.languages import both

pytestmark = pytest.mark.sample(4, whole=True)


def made(image):
    """The options, the directory and the command that an image was made with."""
    info = json.loads(support.run([support.SNAPBOOT, "inspect", "--json", image], log=False).out)
    options = info["origin"]["options"]
    if options[-2:-1] == ["-o"]:
        options = options[:-2]
    return options, info["origin"]["directory"], info["typed"], info["preloads"]


def refreeze(*images, env=None, **options):
    return support.run([support.SNAPBOOT, "refreeze", *images], env=env, log=False, **options)


@both
def test_an_image_is_made_again_from_another_folder(tmp_path, language):
    folder = tmp_path / "a folder"
    folder.mkdir()
    env, boot = language.write(folder, "VALUE = 1")
    options = ["--preload", language.preload(), "--guard=-z", "--max-age", "7d", "--policy", "content"]
    script = folder / ("prog" + language.ending)
    script.write_text("print(1)\n" if language.name == "python" else "puts 1\n")
    image = support.frozen("app.img", [language.program, script.name, "first"], *options, env=env, cwd=folder)
    image = folder / image
    before = made(image)
    language.write(folder, "VALUE = 22")
    assert "changed" in support.run([image], env=env, cwd=folder).err
    for name, place in (("app.img", folder), (image, "/")):
        result = refreeze(name, env=env, cwd=place)
        assert result.status == 0 and "thaws in" in result.out, result
        assert made(image) == before
        assert support.thawed([image], env=env, cwd=folder).out == "1\n"
    names = {path.name for path in folder.iterdir()} - {"__pycache__", "app.img.seen"}
    assert names == {"app.img", boot.name, script.name}


def test_what_cannot_be_made_again_is_said(tmp_path):
    env = support.environment(PYTHONHASHSEED="1")
    folder = tmp_path / "folder"
    folder.mkdir()
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], env=env, cwd=folder)
    before = support.read(image)
    other = refreeze(image, env=support.environment(PYTHONHASHSEED="2"))
    assert other.status == 2 and "PYTHONHASHSEED has another value now" in other.err, other
    folder.rmdir()
    gone = refreeze(image, env=env)
    assert gone.status == 2 and "that directory is gone" in gone.err, gone
    none = refreeze(tmp_path / "none.img", support.PYTHON, env=env)
    assert none.status != 0 and "none.img" in none.err and len(none.err.splitlines()) == 2, none
    assert support.read(image) == before


def test_a_module_gives_its_name(tmp_path):
    result = support.run([support.SNAPBOOT, "freeze", "--", support.PYTHON, "-m", "json.tool"], log=False, cwd=tmp_path)
    assert result.status == 0 and [path.name for path in tmp_path.iterdir()] == ["json.tool.img"], result


SERVER = """\
#!{python}
import importlib, os, sys
sys.path.insert(0, os.getcwd())
print(importlib.import_module(sys.argv[1]).VALUE, sys.path.count(os.getcwd()))
"""


def test_a_script_finds_its_application_in_the_current_directory(tmp_path):
    here, there, tools = (tmp_path / name for name in ("here", "there", "bin"))
    for folder, value in ((here, 1), (there, 2), (tools, 3)):
        folder.mkdir()
        if value < 3:
            (folder / "shop.py").write_text("from stock import VALUE\n")
            (folder / "stock.py").write_text(f"VALUE = {value}\n")
    support.write(tools / "serve", SERVER.format(python=support.PYTHON).encode())
    env = support.environment(PATH=f"{tools}:/usr/bin:/bin", PYTHONDONTWRITEBYTECODE="1")
    made = support.freeze(here / "serve.img", ["serve"], "--preload", "shop", env=env, cwd=here)
    assert made.status == 0 and "depends on the current directory" in made.out, made
    assert support.thawed([here / "serve.img", "shop"], env=env, cwd=here).out == "1 1\n"
    elsewhere = support.run([here / "serve.img", "shop"], env=env, cwd=there)
    assert elsewhere.out == "2 1\n" and elsewhere.fell_back, elsewhere
    guarded = support.run([here / "serve.img", "shop", "--chdir", "."], env=env, cwd=here)
    assert guarded.out == "1 1\n" and "guard" in guarded.err, guarded
    unknown = support.freeze(here / "serve.img", ["serve"], "--preload", "shoe", env=env, cwd=here)
    assert unknown.status == 2 and "shoe" in unknown.err, unknown


# The last boot, which is compared with that of the image, changes a file as another process might.
REPLACES = {
    "python": """
import os
with open({data!r}) as file:
    VALUE = file.read()
boots = os.path.getsize({boots!r})
os.system("echo >> {boots}")
if boots == {last}:
    os.system("printf 2 > {data}")
""",
    "ruby": """
VALUE = File.read({data!r})
boots = File.size({boots!r})
system("echo >> {boots}")
system("printf 2 > {data}") if boots == {last}
""",
}


@both
def test_a_file_that_is_replaced_while_the_program_boots_is_no_failure(tmp_path, language):
    data, boots = tmp_path / "data", tmp_path / "boots"
    count = 0
    for shown in ("1", "2"):
        support.write(data, b"1")
        support.write(boots, b"")
        source = REPLACES[language.name].format(data=str(data), boots=str(boots), last=count - 1)
        env, _ = language.write(tmp_path, source)
        image = support.frozen(tmp_path / "app.img", [language.program], "--preload", language.preload(), env=env, cwd=tmp_path)
        assert support.thawed(language.argv(image), env=env, cwd=tmp_path).out.strip() == shown
        count, before = boots.stat().st_size, count
    assert count > before > 1
