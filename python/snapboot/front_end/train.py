"""The script on which a training run starts the interpreter."""

with open(__file__.rpartition("/")[0] + "/loader.py", encoding="utf-8") as _file:
    _code = compile(_file.read(), _file.name, "exec")
_names = {"__name__": "snapboot.front_end.loader"}
exec(_code, _names)
_names["loader"](__file__.rpartition("/")[0])("training").run()
