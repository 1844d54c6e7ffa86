"""Data files that Python code parses: YAML and TOML. The archive holds the results.

It answers only for the unmodified parser: a program that has extended it, or replaced a part of it, is served by its own parser. The native
part handles JSON.
"""

import io
import sys

# Shorter texts (characters) are parsed as fast as they are looked up.
SHORTEST = 200
# The modules of PyYAML that its safe loaders use.
YAML_MODULES = (
    "yaml.reader",
    "yaml.scanner",
    "yaml.parser",
    "yaml.composer",
    "yaml.constructor",
    "yaml.resolver",
    "yaml.nodes",
    "yaml.events",
)
FILES = (io.TextIOWrapper, io.BufferedReader)


def state(*things):
    """Returns the values of names in modules and classes, including the contents of tables."""
    return [{name: _content(value) for name, value in vars(thing).items()} for thing in things]


def _content(value):
    if type(value) is dict and "__name__" not in value:
        return {key: list(entry) if type(entry) is list else entry for key, entry in value.items()}
    return value


class Yaml:
    """The function `load` of the module `yaml`, served from the archive."""

    def __init__(self, native, module, pause):
        """module: just executed. pause: see the native part's `served`."""
        self._modules = [sys.modules[name] for name in YAML_MODULES]
        # Present if built with the library libyaml.
        fast = getattr(module, "CSafeLoader", None)
        self._usual = {loader: self._state(loader) for loader in (module.SafeLoader, fast) if loader is not None}
        self._versions = "yaml %s %s" % (module.__version__, sys.version)
        if fast is not None:
            self._versions += " libyaml " + sys.modules["yaml._yaml"].get_version_string()
        module.load = native.served(module.load, self.question, pause)

    def _state(self, loader):
        return state(*self._modules, *loader.__mro__[:-1])

    def question(self, arguments, options):
        """See the native part's `served`."""
        names = dict(zip(("stream", "Loader"), arguments), **(options or {}))
        if len(names) != 2 or len(arguments) + len(options or ()) != 2:
            return None
        stream, loader = names.get("stream"), names.get("Loader")
        # A class with a metaclass of its own may have no hash.
        if type(loader) is not type or loader not in self._usual:
            return None
        kind, before = type(stream), None
        if kind in FILES:
            if not stream.seekable():
                return None
            position = stream.tell()

            def before():
                stream.seek(position)

            try:
                text = stream.read()
            except Exception:
                before()
                return None
        elif kind is str or kind is bytes:
            text = stream
        else:
            return None
        if len(text) < SHORTEST or self._state(loader) != self._usual[loader]:
            if before is not None:
                before()
            return None
        return text, "%s %s %s" % (self._versions, loader.__name__, type(text).__name__), before


class Toml:
    """The function `loads` of `tomllib`, or of the package `tomli`, served from the archive."""

    def __init__(self, native, module, pause):
        """module: the one with the parser, just executed."""
        self._modules = [module, sys.modules[module.__name__.rpartition(".")[0] + "._re"]]
        version = getattr(sys.modules[module.__name__.partition(".")[0]], "__version__", "")
        self._versions = "%s %s %s" % (module.__name__, version, sys.version)
        module.loads = native.served(module.loads, self.question, pause)
        self._usual = state(*self._modules)

    def question(self, arguments, options):
        """See the native part's `served`."""
        if len(arguments) != 1 or type(arguments[0]) is not str or len(arguments[0]) < SHORTEST:
            return None
        if options and (list(options) != ["parse_float"] or options["parse_float"] is not float):
            return None
        if state(*self._modules) != self._usual:
            return None
        return arguments[0], self._versions, None


PARSERS = {"yaml": Yaml, "tomllib._parser": Toml, "tomli._parser": Toml}


def serve(native, module, pause):
    """Serves its parser from the archive. module: one of PARSERS, just executed."""
    try:
        PARSERS[module.__name__](native, module, pause)
    except (AttributeError, KeyError):
        pass  # an unfamiliar version
