"""Code of a module whose imports are lazy: its syntax tree, changed, and compiled.

An import statement `import x` of the module's top level becomes `if EAGER("x", ...): import x`: lazy_names.py says whether it is done at
once, or puts UNLOADED in the name's place. Where the code reads such a name, it reads `(x if x is not UNLOADED else LOAD("x"))`. Once a
name is loaded that costs a comparison. Each new piece has the place in the source of what it stands for, so tracebacks stay as they are.
"""

import _ast
import sys

# The names that the code uses, among those that are built in.
EAGER = "__snapboot_eager__"
LOAD = "__snapboot_load__"
UNLOADED = "__snapboot_unloaded__"
ARGUMENTS = "__snapboot_arguments__"
REVEAL = "__snapboot_reveal__"

PyCF_ONLY_AST = 0x400
FUNCTIONS = (_ast.FunctionDef, _ast.AsyncFunctionDef)
COMPREHENSIONS = (_ast.ListComp, _ast.SetComp, _ast.DictComp, _ast.GeneratorExp)
# What patterns of a `match` bind, by a name that is not a Name.
CAPTURES = tuple(getattr(_ast, name) for name in ("MatchAs", "MatchStar", "MatchMapping") if hasattr(_ast, name))
MATCH_CASE = getattr(_ast, "match_case", ())
# Fields with nothing to be found below them.
LEAVES = frozenset(("ctx", "op", "ops", "attr", "id", "arg", "lineno", "kind", "type_comment"))
# Calls that look at the names of a module.
CALLS = (b"eval", b"exec", b"globals", b"locals", b"vars")
# Methods of globals() that look at no value.
NAMES_ONLY = ("update", "keys", "setdefault")


def compile_lazily(source, filename, flags=0):
    """The code of that source with lazy imports, or None where there is nothing to be lazy about. flags: for the compiler."""
    filters = sys.modules["_warnings"].filters
    # Whoever compiles the source as it is hears of what is to be warned of.
    filters.insert(0, ("ignore", None, Warning, None, 0))
    try:
        tree = compile(source, filename, "exec", PyCF_ONLY_AST | flags, True)
        change = Change(tree)
        if not change.run(source if type(source) is bytes else source.encode()):
            return None
        return compile(tree, filename, "exec", 0, True)
    finally:
        del filters[0]


def children(node):
    """The nodes right below a node."""
    for field in node._fields:
        if field in LEAVES:
            continue
        value = getattr(node, field, None)
        if isinstance(value, _ast.AST):
            yield value
        elif type(value) is list:
            for one in value:
                if isinstance(one, _ast.AST):
                    yield one


def below(node):
    """A node, and all nodes below it."""
    waiting = [node]
    for node in waiting:
        yield node
        if node._fields:
            waiting.extend(children(node))


def in_scope(node):
    """A node, and those below it that are of the same scope of names."""
    waiting = [node]
    for node in waiting:
        yield node
        kind = type(node)
        if kind in FUNCTIONS or kind is _ast.ClassDef:
            waiting.extend(node.decorator_list)
        elif kind is not _ast.Lambda and kind not in COMPREHENSIONS and node._fields:
            waiting.extend(children(node))


def bound_by(alias):
    """The name that `import ALIAS` binds."""
    return alias.asname or alias.name.partition(".")[0]


class Change:
    """Makes the imports of a module lazy, in its tree."""

    def __init__(self, tree):
        self._tree = tree
        self._imports = []  # lists of statements and the places in them of imports that may become lazy
        self._names = frozenset()
        self._strings = False  # whether annotations are kept as text
        self._changed = False

    def run(self, source):
        """Does it. source: the text (bytes). Returns whether anything was changed."""
        body = self._tree.body
        for node in body:
            if type(node) is _ast.ImportFrom and node.module == "__future__":
                self._strings = self._strings or any(alias.name == "annotations" for alias in node.names)
        self._find_imports(body)
        candidates = {
            bound_by(alias)
            for statements, at in self._imports
            for alias in statements[at].names
            # Names of the language's own are read where no code says so; others are changed in classes.
            if not bound_by(alias).startswith("__")
        }
        if candidates:
            own = {id(statements[at]) for statements, at in self._imports}
            self._names = frozenset(candidates - set(self._bound_otherwise(own)))
        if not self._names and not any(call in source for call in CALLS):
            return False
        self._expressions(self._tree, frozenset(), True)
        if self._names:
            for statements, at in reversed(self._imports):
                statements[at : at + 1] = self._statement(statements[at])
        return self._changed

    def _find_imports(self, statements):
        for at, node in enumerate(statements):
            kind = type(node)
            if kind is _ast.If:
                self._find_imports(node.body)
                self._find_imports(node.orelse)
            elif kind is _ast.Import:
                self._imports.append((statements, at))
            elif kind is _ast.ImportFrom and node.module != "__future__" and node.names[0].name != "*":
                self._imports.append((statements, at))

    def _bound_otherwise(self, own):
        """Names of the module that other statements bind, delete or need as they are. own: ids of imports that do not count."""
        for statement in self._tree.body:
            for node in in_scope(statement):
                if id(node) not in own:
                    yield from self._bound(node)
        for node in below(self._tree):
            if type(node) is _ast.Global:
                yield from node.names
            elif type(node) is MATCH_CASE:
                # Patterns hold no other expressions than names.
                yield from (name.id for name in below(node.pattern) if type(name) is _ast.Name)
            elif type(node) in COMPREHENSIONS:
                # `:=` in one binds a name of what is around it.
                yield from (one.target.id for one in below(node) if type(one) is _ast.NamedExpr)

    def _bound(self, node):
        kind = type(node)
        if kind is _ast.Name:
            if type(node.ctx) is not _ast.Load:
                yield node.id
        elif kind in FUNCTIONS or kind is _ast.ClassDef or (kind is _ast.ExceptHandler and node.name):
            yield node.name
        elif kind is _ast.Import or kind is _ast.ImportFrom:
            yield from map(bound_by, node.names)
        elif kind in CAPTURES:
            yield from filter(None, (getattr(node, "name", None), getattr(node, "rest", None)))

    def _statement(self, node):
        made = []
        for alias in node.names:
            single = self._at(
                _ast.Import(names=[alias])
                if type(node) is _ast.Import
                else _ast.ImportFrom(module=node.module, names=[alias], level=node.level),
                node,
            )
            name = bound_by(alias)
            if name not in self._names:
                made.append(single)
                continue
            self._changed = True
            if type(node) is _ast.Import:
                # None: the name is bound to the module at the top.
                what = (name, alias.name, "" if alias.asname else None, 0)
            else:
                what = (name, node.module or "", alias.name, node.level or 0)
            arguments = [self._constant(value, node) for value in (*what, node.lineno)]
            made.append(self._at(_ast.If(test=self._call(EAGER, arguments, node), body=[single], orelse=[]), node))
        return made

    def _expressions(self, node, hidden, is_module):
        """Changes what is read below a node. hidden: names that are local there. is_module: whether `locals()` are the module's."""
        kind = type(node)
        inner = hidden
        own = ()
        if kind in FUNCTIONS or kind is _ast.Lambda:
            own = ("body",)
            inner = hidden | self._locals(node)
        elif kind is _ast.ClassDef:
            own = ("body",)
        for field in node._fields:
            value = getattr(node, field, None)
            if field in LEAVES or (self._strings and field in ("annotation", "returns")):
                continue
            place = (inner, False) if field in own else (hidden, is_module)
            if type(value) is list:
                for at, one in enumerate(value):
                    if isinstance(one, _ast.AST):
                        value[at] = self._expression(one, node, *place)
            elif isinstance(value, _ast.AST):
                if kind is MATCH_CASE and field == "pattern":
                    continue
                setattr(node, field, self._expression(value, node, *place))

    def _expression(self, node, parent, hidden, is_module):
        """What stands in the place of a node."""
        if type(node) is _ast.Name:
            if type(node.ctx) is not _ast.Load or node.id not in self._names or node.id in hidden:
                return node
            is_there = self._at(
                _ast.Compare(
                    left=self._name(node.id, node), ops=[_ast.IsNot()], comparators=[self._name(UNLOADED, node)]
                ),
                node,
            )
            load = self._call(LOAD, [self._constant(node.id, node)], node)
            return self._at(_ast.IfExp(test=is_there, body=self._name(node.id, node), orelse=load), node)
        self._expressions(node, hidden, is_module)
        if type(node) is _ast.Call and type(node.func) is _ast.Name and not node.keywords:
            self._call_of(node, parent, node.func.id, is_module)
        return node

    def _call_of(self, node, parent, name, is_module):
        """Calls that look at the names of a module all at once."""
        if name in ("eval", "exec") and node.args:
            inner = self._call(ARGUMENTS, node.args, node)
        elif not node.args and (name == "globals" or (is_module and name in ("locals", "vars"))):
            wanted = []
            if self._looks_at_names_only(node, parent):
                return
            if type(parent) is _ast.Subscript:
                # Up to CPython 3.8 an index is a node of its own.
                index = parent.slice if type(parent.slice) is _ast.Constant else getattr(parent.slice, "value", None)
                if type(index) is _ast.Constant:
                    wanted = [self._constant(index.value, node)]
            inner = self._call(REVEAL, wanted, node)
        else:
            return
        self._changed = True
        node.args = [self._at(_ast.Starred(value=inner, ctx=_ast.Load()), node)]

    def _looks_at_names_only(self, node, parent):
        kind = type(parent)
        return (
            (kind is _ast.Attribute and parent.attr in NAMES_ONLY)
            or (kind is _ast.Subscript and type(parent.ctx) is not _ast.Load)
            or (kind is _ast.Compare and parent.left is not node and type(parent.ops[-1]) in (_ast.In, _ast.NotIn))
            or kind is _ast.comprehension
        )

    def _locals(self, function):
        """Names that are local to a function for sure."""
        arguments = function.args
        found = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        found.update(one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None)
        if type(function) is _ast.Lambda:
            return found
        outer = set()
        for statement in function.body:
            for node in in_scope(statement):
                if type(node) is _ast.Global:
                    outer.update(node.names)
                else:
                    found.update(self._bound(node))
        return found - outer

    def _call(self, name, arguments, near):
        return self._at(_ast.Call(func=self._name(name, near), args=arguments, keywords=[]), near)

    def _name(self, name, near):
        return self._at(_ast.Name(id=name, ctx=_ast.Load()), near)

    def _constant(self, value, near):
        return self._at(_ast.Constant(value=value, kind=None), near)

    def _at(self, node, near):
        node.lineno, node.col_offset = near.lineno, near.col_offset
        node.end_lineno, node.end_col_offset = near.end_lineno, near.end_col_offset
        return node
