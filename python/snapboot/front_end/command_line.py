"""The interpreter's command line, from its main part on."""


class Main:
    """The program that a command line names.

    kind: "code", "module", "script" or "stdin". value: the code, the module's name, or the script's path as given (None for
    stdin). argv: what `sys.argv` starts as.
    """

    def __init__(self, kind, value, argv):
        self.kind = kind
        self.value = value
        self.argv = argv


def parse(arguments):
    """Parses the arguments after the interpreter's options, as CPython's own getopt would.

    Returns a Main, or None where only an ordinary start will do: for further options, which take effect long before an image continues, and
    for errors, which the interpreter words best.
    """
    if not arguments:
        return Main("stdin", None, [""])
    first = arguments[0]
    rest = arguments[1:]
    if first == "-":
        return Main("stdin", None, ["-"] + rest)
    option = first[:2]
    if option == "-c" or option == "-m":
        value = first[2:]
        if not value:
            if not rest:
                return None
            value = rest.pop(0)
        return Main("code" if option == "-c" else "module", value, [option] + rest)
    if not first or first[0] == "-":
        return None
    return Main("script", first, arguments)
