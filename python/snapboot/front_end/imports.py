"""Finds which modules a main part surely imports: those of the imports that precede any other statement with an effect."""

import sys

ONLY_AST = 0x400  # ast.PyCF_ONLY_AST, without importing ast


class Import:
    """One import statement, as the arguments that `__import__` takes for it.

    guarded: whether the program is prepared for its failure.
    """

    def __init__(self, name, names, level):
        self.name = name
        self.names = names
        self.level = level
        self.guarded = False

    def run(self, package):
        """Executes the statement without binding names. Raises whatever the import raises."""
        __import__(self.name, {"__name__": "__main__", "__package__": package}, None, self.names, self.level)


def leading_imports(source):
    """Returns the imports at the head of `source` (str or bytes), as a list of Import; an empty list if it cannot be parsed.

    Definitions, docstrings and assignments of plain constants have no effect and are skipped, and so is a `try` that contains only imports.
    A lazy import (CPython 3.15) is skipped, since the program may never use it. The first statement of any other kind ends the list, since
    it may decide what a later import finds.
    """
    try:
        tree = compile(source, "<main>", "exec", ONLY_AST, True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = []
    for statement in tree.body:
        imports = _imports_of(statement)
        if imports is None:
            break
        found += imports
    return found


def _imports_of(statement, is_guarded=False):
    """Returns the imports of a statement that has no other effects; None if it has some. is_guarded: whether it stands in a `try`."""
    kind = type(statement).__name__
    if kind in ("Import", "ImportFrom") and _is_lazy(statement, is_guarded):
        return []
    if kind == "Import":
        return [Import(alias.name, (), 0) for alias in statement.names]
    if kind == "ImportFrom":
        if statement.module == "__future__":
            return []
        return [Import(statement.module or "", tuple(alias.name for alias in statement.names), statement.level)]
    if kind == "Try" and all(type(inner).__name__ in ("Import", "ImportFrom") for inner in statement.body):
        guarded = [one for inner in statement.body for one in _imports_of(inner, True)]
        for one in guarded:
            one.guarded = True
        return guarded
    if kind in ("FunctionDef", "AsyncFunctionDef"):
        return [] if _is_inert_definition(statement) else None
    if kind == "Expr" and _is_constant(statement.value):
        return []
    if kind == "Assign" and _is_constant(statement.value):
        return [] if all(type(it).__name__ == "Name" and it.id != LAZY_MODULES for it in statement.targets) else None
    if kind == "Pass":
        return []
    return None


def _is_lazy(statement, is_guarded):
    if getattr(statement, "is_lazy", False):
        return True
    # Even where all imports are lazy, those in a `try` and those of all names (`*`) are not.
    if is_guarded or get_lazy_imports is None or get_lazy_imports() != "all":
        return False
    return statement.names[0].name != "*"


def _is_inert_definition(function):
    arguments = function.args
    computed = function.decorator_list + arguments.defaults + [one for one in arguments.kw_defaults if one is not None]
    return all(_is_constant(one) for one in computed) and function.returns is None and not _annotated(arguments)


def _annotated(arguments):
    every = getattr(arguments, "posonlyargs", []) + arguments.args + arguments.kwonlyargs
    every += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return any(one.annotation is not None for one in every)


def _is_constant(node):
    kind = type(node).__name__
    if kind in ("Tuple", "List"):
        return all(_is_constant(element) for element in node.elts)
    return kind == "Constant"


# A program that also runs in older versions lists there the modules to import lazily.
LAZY_MODULES = "__lazy_modules__"
get_lazy_imports = getattr(sys, "get_lazy_imports", None)
