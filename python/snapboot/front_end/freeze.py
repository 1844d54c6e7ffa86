"""The script on which `snapboot freeze` starts the interpreter. Kept short: the interpreter frees its syntax tree after the thaw."""

with open(__file__.rpartition("/")[0] + "/loader.py", encoding="utf-8") as _file:
    _code = compile(_file.read(), _file.name, "exec")
# The file is closed by now, so an image does not depend on this installation.
exec(_code)
