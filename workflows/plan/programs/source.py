"""A script as trees in which each node knows what is around it, and each name what it stands for,
in its file or in another one.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sennit.workflows.plan.programs.files import files_in, own_name
from sennit.workflows.plan.programs.parsing import Trees, new_trees, trees_in
from sennit.workflows.plan.programs.vocabulary import RUN_PROGRAM

Function = ast.FunctionDef | ast.AsyncFunctionDef
Found = Iterator[tuple[str, ast.AST, str]]
"""The code, the place and the sentence of each problem."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
_IMPORTS = 50
"""So many imports are followed from one module to the next until what they name is defined."""


def source_of(script: str) -> "Source":
    """Return a script with its modules. What a program names of a module, as in `helpers.look`,
    is one name there, and `run_program("topic", ...)` is `task(topic.main, ...)`. Raises
    SyntaxError as `trees_in` does.
    """
    trees = trees_in(script)
    own = own_name(script)
    packages = frozenset(file.module for file in files_in(script) if file.is_package)
    if len(trees) == 1 and RUN_PROGRAM not in script:
        return Source(trees, packages, own)
    trees = new_trees(script)
    _name_what_modules_define(Source(trees, packages, own))
    return Source(trees, packages, own)


@dataclass(slots=True)
class Source:
    """A script that parses: its trees by module, which of these are packages, and the name
    by which it runs itself.
    """

    trees: Trees
    packages: frozenset[str] = frozenset()
    own: str = ""
    nodes: list[ast.AST] = field(default_factory=list)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    bound: dict[ast.AST, dict[str, ast.AST]] = field(default_factory=dict)
    """For each scope the names that it binds, with where it first does."""
    read: dict[ast.AST, set[str]] = field(default_factory=dict)
    """For each scope the names that are read in it, or in what it holds."""
    again: set[ast.AST] = field(default_factory=set)
    """Where names are bound first of those that are bound again in the same scope."""
    uses: dict[str, list[ast.Name]] = field(default_factory=dict)
    """Where each name is read."""
    started: set[ast.AST] = field(default_factory=set)
    """The functions that run as tasks or stages."""
    _looping: dict[tuple[ast.AST, str], list[ast.AST]] = field(default_factory=dict)
    """For each scope the names that only comprehensions in it bind, with those."""
    _globals: dict[ast.AST, set[str]] = field(default_factory=dict)
    """For each function the names that it says are those of the module."""
    _scope: dict[ast.AST, ast.AST] = field(default_factory=dict)
    """The innermost scope that each node stands in."""
    _names: dict[ast.AST, str] = field(default_factory=dict)
    """The name of each module."""

    def __post_init__(self) -> None:
        for name, tree in self.trees.items():
            self._names[tree] = name
            self.nodes.append(tree)

        # Trees from the outside in: the list of nodes grows while the loop goes through it.
        for node in self.nodes:
            children = [
                child
                for child in ast.iter_child_nodes(node)
                if not isinstance(child, ast.expr_context)
            ]
            self.nodes.extend(children)
            self.parents.update(dict.fromkeys(children, node))
            scope = node
            if not isinstance(node, _SCOPES):
                scope = self._scope[node]
            self._scope.update(dict.fromkeys(children, scope))

        # Where names are bound and read.
        for node in self.nodes:
            for name in _names_bound(node):
                self._bind(name, node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._note_read(node)

        # What a name means is known only now: a scope may bind it behind the line that reads it.
        for node in self.nodes:
            if isinstance(node, ast.Nonlocal):
                self._share(node)
            elif isinstance(node, ast.Global):
                function = self._scope[node]
                self._globals.setdefault(function, set()).update(node.names)
            elif isinstance(node, ast.Call):
                self._note_started(node)

    def _bind(self, name: str, node: ast.AST) -> None:
        """Note that a node binds a name in its scope."""
        scope = self._scope[node]
        first = self.bound.setdefault(scope, {}).setdefault(name, node)
        is_bound_again = first is not node
        if is_bound_again:
            self.again.add(first)

        # A name is one of comprehensions until anything else in its scope binds
        # it, and never after that.
        key = (scope, name)
        loop = self._comprehension(node)
        was_bound_elsewhere = is_bound_again and key not in self._looping
        if loop is None or was_bound_elsewhere:
            self._looping.pop(key, None)
        else:
            self._looping.setdefault(key, []).append(loop)

    def _note_read(self, name: ast.Name) -> None:
        """Note that a name is read in each scope around it."""
        self.uses.setdefault(name.id, []).append(name)
        for scope in self.scopes(name):
            self.read.setdefault(scope, set()).add(name.id)

    @property
    def tree(self) -> ast.Module:
        """The tree of the program."""
        return self.trees[""]

    @property
    def top(self) -> dict[str, ast.AST]:
        """The names at the top of the program, with where each is first bound."""
        return self.bound.get(self.tree, {})

    def _note_started(self, call: ast.Call) -> None:
        """Note the functions that `task` and `pipeline` are given."""
        word = call.func
        if not isinstance(word, ast.Name) or word.id not in ("task", "pipeline"):
            return
        if self.meaning(word) is not None:
            return
        for argument in call.args:
            if not isinstance(argument, ast.Name):
                continue
            function = self.meaning(argument)
            if function is not None:
                self.started.add(function)

    def _share(self, node: ast.Nonlocal) -> None:
        """Have names be those of a function around: they are bound there, and again here."""
        inner, *outer_scopes = self.scopes(node)
        for name in node.names:
            for outer in outer_scopes:
                if name in self.bound.get(outer, ()):
                    self.bound.get(inner, {}).pop(name, None)
                    self.again.add(self.bound[outer][name])
                    break

    def is_global(self, name: ast.Name) -> bool:
        """Whether the function that a name stands in says that it is one of the module."""
        function = self._scope[name]
        return name.id in self._globals.get(function, ())

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what a node stands in, from the inside out."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def scopes(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the functions and classes a node stands in, from the inside out, and the module."""
        while (scope := self._scope.get(node)) is not None:
            yield scope
            node = scope

    def function(self, node: ast.AST) -> ast.AST:
        """Return the innermost function that a node stands in, or the module."""
        return next(scope for scope in self.scopes(node) if not isinstance(scope, ast.ClassDef))

    def scope_of(self, name: ast.Name) -> ast.AST | None:
        """Return the innermost scope that binds the name, None if none does. A method sees
        no names of its class.
        """
        innermost = self._scope.get(name)
        for scope in self.scopes(name):
            if name.id not in self.bound.get(scope, ()):
                continue
            is_class_around = scope is not innermost and isinstance(scope, ast.ClassDef)
            if is_class_around:
                continue
            # The variable of a comprehension is bound inside it alone.
            loops = self._looping.get((scope, name.id))
            if loops is None or self._stands_in(name, loops):
                return scope
        return None

    def _stands_in(self, name: ast.Name, loops: list[ast.AST]) -> bool:
        """Whether a name stands in one of the comprehensions."""
        return any(around in loops for around in self.around(name))

    def _comprehension(self, node: ast.AST) -> ast.AST | None:
        """Return the comprehension whose variable a node is, None for any other."""
        for around in self.around(node):
            if isinstance(around, ast.comprehension):
                return self.parents[around]
            if not isinstance(around, ast.Tuple | ast.List | ast.Starred):
                return None
        return None

    def meaning(self, name: ast.Name) -> ast.AST | None:
        """Return where the name is bound, in the innermost scope that does; None if no scope does.
        What is imported of a module of the script is bound there.
        """
        module, _, of_module = name.id.rpartition(".")
        if module:
            return self.defined(module, of_module)
        scope = self.scope_of(name)
        if scope is None:
            return self._of_star(name)
        bound = self.bound[scope][name.id]
        return self._followed(bound) or bound

    def is_session(self, function: ast.AST) -> bool:
        """Whether a function is `main`, or one that runs as a task or a stage."""
        if not isinstance(function, ast.AsyncFunctionDef) or not self.is_top_level(function):
            return False
        is_main = function.name == "main" and self.parents[function] is self.tree
        return is_main or function in self.started

    # Modules of the script.

    def module_of(self, node: ast.AST) -> str:
        """Return the module that a node stands in, "" for the program."""
        return self._names[self.module_tree(node)]

    def module_tree(self, node: ast.AST) -> ast.AST:
        """Return the tree of the module that a node stands in."""
        for scope in self.scopes(node):
            node = scope
        return node

    def is_module(self, name: str) -> bool:
        """Whether the script has a module of that name, or modules in a package of that name."""
        if not name:
            return False
        if name in self.trees:
            return True
        return any(module.startswith(f"{name}.") for module in self.trees)

    def defined(self, module: str, name: str, imports: int = _IMPORTS) -> ast.AST | None:
        """Return where a module of the script binds a name at its top, or where that is bound which
        it imports; None if it does not.
        """
        if module == self.own and module not in self.trees:
            module = ""
        tree = self.trees.get(module)
        if tree is None or not imports:
            return None
        bound = self.bound.get(tree, {}).get(name)
        if bound is not None:
            return self._followed(bound, imports - 1) or bound
        for star in self._stars(tree):
            bound = self.defined(star, name, imports - 1)
            if bound is not None and not name.startswith("_"):
                return bound
        return None

    def names_of(self, module: str) -> list[str]:
        """Return the names that a module of the script binds at its top."""
        tree = self.trees.get(module)
        if tree is None:
            return []
        return sorted(self.bound.get(tree, ()))

    def is_open(self, module: str) -> bool:
        """Whether a module may have names that nobody sees before it runs."""
        modules = [module]
        for name in modules:  # which grows
            tree = self.trees.get(name)
            if tree is None:
                return True
            has_getattr = "__getattr__" in self.bound.get(tree, ())
            reads_globals = "globals" in self.read.get(tree, ())
            if has_getattr or reads_globals:
                return True
            for star in self._stars(tree):
                if star not in modules:
                    modules.append(star)
        return False

    def imported_module(self, node: ast.ImportFrom) -> str:
        """Return the whole name of the module that a statement imports from, "" if there
        is no package around it.
        """
        if not node.level:
            return node.module or ""
        module = self.module_of(node)
        package = module.split(".")
        if module not in self.packages:
            package.pop()
        above = node.level - 1
        if not package or len(package) <= above:
            return ""
        names = package[: len(package) - above]
        if node.module:
            names.append(node.module)
        return ".".join(names)

    def module_named(self, value: ast.AST) -> str:
        """Return the module of the script that an expression stands for, "" for any other."""
        if isinstance(value, ast.Attribute):
            package = self.module_named(value.value)
            if not package:
                return ""
            return self._module_in(package, value.attr)
        if not isinstance(value, ast.Name) or "." in value.id:
            return ""
        scope = self.scope_of(value)
        if scope is None:
            return ""
        return self._module_of(self.bound[scope][value.id])

    def _module_in(
        self, package: str, name: str, importing: ast.AST | None = None, imports: int = _IMPORTS
    ) -> str:
        """Return the module of the script that a module has under a name, "" for anything else: one
        that it imports, or one in the package that it is, which its own import may bind.
        """
        bound = self.defined(package, name)
        if bound is not None and bound is not importing:
            return self._module_of(bound, imports - 1)
        module = f"{package}.{name}"
        if not self.is_module(module):
            return ""
        return module

    def _module_of(self, bound: ast.AST | None, imports: int = _IMPORTS) -> str:
        """Return the module of the script that an import binds, "" for anything else."""
        if not isinstance(bound, ast.alias) or not imports:
            return ""
        around = self.parents[bound]
        if isinstance(around, ast.ImportFrom):
            package = self.imported_module(around)
            if not self.is_module(package):
                return ""
            return self._module_in(package, bound.name, bound, imports)
        module = module_bound(bound)
        if not self.is_module(module):
            return ""
        return module

    def _followed(self, bound: ast.AST, imports: int = _IMPORTS) -> ast.AST | None:
        """Return where that is bound which a name is imported as, None for what is not of
        a module of the script.
        """
        if not isinstance(bound, ast.alias):
            return None
        around = self.parents.get(bound)
        if not isinstance(around, ast.ImportFrom):
            return None
        return self.defined(self.imported_module(around), bound.name, imports)

    def _stars(self, tree: ast.Module) -> Iterator[str]:
        """Yield the modules of which a module imports all names."""
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                yield self.imported_module(statement)

    def _of_star(self, name: ast.Name) -> ast.AST | None:
        """Return where a name is bound that its module has by `from m import *`."""
        tree = self.module_tree(name)
        module = self._names[tree]
        has_star = "*" in self.bound.get(tree, ())
        if not has_star:
            return None
        return self.defined(module, name.id)

    def assigned(self, value: ast.expr) -> ast.expr:
        """Return what a name is given where it is given something once, any
        other expression as it is.
        """
        if not isinstance(value, ast.Name):
            return value
        meaning = self.meaning(value)
        if meaning is None or meaning in self.again:
            return value
        around = self.parents.get(meaning)
        if isinstance(around, ast.Assign) and around.targets == [meaning]:
            return around.value
        return value

    def imported(self, value: ast.AST) -> str:
        """Return what an expression is that a script imports, as
        `asyncio.gather`, "" for any other.
        """
        if isinstance(value, ast.Attribute):
            module = self.imported(value.value)
            if not module:
                return ""
            return f"{module}.{value.attr}"
        if not isinstance(value, ast.Name):
            return ""
        meaning = self.meaning(value)
        if not isinstance(meaning, ast.alias):
            return ""
        around = self.parents[meaning]
        if isinstance(around, ast.ImportFrom):
            return f"{around.module}.{meaning.name}"
        return module_bound(meaning)

    def is_top_level(self, node: ast.AST) -> bool:
        """Whether a node stands at the top of its module."""
        return isinstance(self.parents.get(node), ast.Module)


def module_bound(alias: ast.alias) -> str:
    """Return the module that an `import` binds: of `import xml.etree` the outer one,
    with `as e` the inner one.
    """
    if alias.asname:
        return alias.name
    return alias.name.partition(".")[0]


def within(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and what is in it, but for functions that are only defined there."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, _SCOPES):
            continue
        yield part
        waiting += reversed(list(ast.iter_child_nodes(part)))


def _name_what_modules_define(source: Source) -> None:
    """Write one name for each `helpers.look` in the trees, and `task(topic.main, ...)` for each
    `run_program("topic", ...)`.
    """
    for node in source.nodes:
        if isinstance(node, ast.Attribute):
            _name_attribute(source, node)
        elif isinstance(node, ast.Call):
            _name_program(source, node)


def _name_attribute(source: Source, node: ast.Attribute) -> None:
    """Write one name for an attribute of a module of the script, unless that is a module too."""
    is_read = isinstance(node.ctx, ast.Load)
    if not is_read or source.module_named(node):
        return
    module = source.module_named(node.value)
    if module:
        name = ast.Name(f"{module}.{node.attr}", ast.Load())
        _put_in_place(source, node, ast.copy_location(name, node))


def _name_program(source: Source, call: ast.Call) -> None:
    """Write `task` for `run_program` in a call that runs a program of the script."""
    match call:
        case ast.Call(
            func=ast.Name(id=word) as function, args=[ast.Constant(value=str(program)) as name, *_]
        ):
            is_itself = program != "" and program == source.own
            is_known = is_itself or program in source.trees
            if word == RUN_PROGRAM and is_known and source.meaning(function) is None:
                task = ast.Name("task", ast.Load())
                main = ast.Name(f"{program}.main", ast.Load())
                call.func = ast.copy_location(task, function)
                call.args[0] = ast.copy_location(main, name)


def _put_in_place(source: Source, node: ast.expr, instead: ast.expr) -> None:
    around = source.parents[node]
    for name, value in ast.iter_fields(around):
        if value is node:
            setattr(around, name, instead)
        elif isinstance(value, list) and node in value:
            value[value.index(node)] = instead


def _names_bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case (
            ast.FunctionDef(name=name)
            | ast.AsyncFunctionDef(name=name)
            | ast.ClassDef(name=name)
            | ast.arg(arg=name)
        ):
            yield name
        case ast.alias(name=name, asname=alias):
            root = name.partition(".")[0]
            yield alias or root
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
        ):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


def line_of(node: Any) -> int:
    return getattr(node, "lineno", 0)
