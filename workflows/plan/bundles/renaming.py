"""A file of a bundle with the names that it has there, each line in its place."""

import ast
import copy
import re
from collections.abc import Callable, Mapping
from typing import Any

from sennit.workflows.plan.bundles.text_edits import Edits
from sennit.workflows.plan.language.text import format_name, nearest_or_known
from sennit.workflows.plan.programs.source import QUALIFIED, Source
from sennit.workflows.plan.programs.vocabulary import RUN_PROGRAM

_DEFINED = re.compile(rb"(?:async\s+)?(?:def|class)\s+(\w+)")


class Renaming(Edits):
    """Renames in one file; `sources` are all of the bundle, the program's at "". What is wrong is in `problems`, each
    with its line.
    """

    def __init__(
        self, name: str, text: str, sources: Mapping[str, Source], program: Callable[[str], str | None]
    ) -> None:
        super().__init__(text)
        self.problems: list[tuple[int, str]] = []
        self._name = name
        self._sources = sources
        self._source = sources[name]
        self._program = program
        self._new: dict[ast.AST, str] = {}
        """What comes in the place of names, attributes and texts."""

    def text(self) -> str:
        """Return the text of the file in the bundle."""
        for node in self._source.nodes:
            self._find(node)
        in_text = set[ast.AST]()
        for node in self._source.nodes:
            if self._source.parents.get(node) in in_text:
                in_text.add(node)
            elif isinstance(node, ast.JoinedStr):
                in_text.add(node)  # places in f-strings are not reliable
                self._f_string(node)
            else:
                self._change(node)
        return self.changed()

    def _find(self, node: ast.AST) -> None:
        """Note what a name stands for in the bundle."""
        match node:
            case ast.Attribute(value=ast.Name() as owner) if (module := self._module(owner)) is not None:
                if not isinstance(node.ctx, ast.Load):
                    self._problem(node, f"what {module}.py defines never changes: keep it in a variable of a function")
                self._new[node] = self._of(module, node.attr, node)
            case ast.Name():
                self._find_name(node)
            case ast.Constant(value=str(text)) if self._is_type(node):
                if (renamed := self._type(text)) != text:
                    self._new[node] = repr(renamed)

    def _find_name(self, node: ast.Name) -> None:
        scope = self._source.scope_of(node)
        if scope is None:
            return
        around, meaning = self._source.parents[node], self._source.bound[scope][node.id]
        imported = self._imported(meaning)
        if imported is not None:
            self._new[node] = self._of(*imported, node)
        elif (module := self._module(node)) is not None:
            if not (isinstance(around, ast.Attribute) and around.value is node):
                self._problem(node, f"the module `{module}` is no value: name what you use, as in {module}.name")
        elif self._is_qualified(scope, meaning):
            self._new[node] = QUALIFIED.format(self._name, node.id)

    def _is_qualified(self, scope: ast.AST, meaning: ast.AST) -> bool:
        """Whether a name is bound at the top of a module, and no name of one of Python's that all files have alike."""
        if not self._name or scope is not self._source.tree:
            return False
        if not isinstance(meaning, ast.alias):
            return True
        name = meaning.asname or meaning.name.partition(".")[0]
        others = (source.bound.get(source.tree, {}).get(name) for source in self._sources.values())
        here = self._import(self._source, meaning)
        return any(
            other is not None and (not isinstance(other, ast.alias) or self._import(source, other) != here)
            for source, other in zip(self._sources.values(), others, strict=True)
        )

    @staticmethod
    def _import(source: Source, alias: ast.alias) -> str:
        around = source.parents[alias]
        module = f"{around.module}:" if isinstance(around, ast.ImportFrom) else ""
        return f"{module}{alias.name if module or alias.asname else alias.name.partition('.')[0]}"

    def _imported(self, meaning: ast.AST) -> tuple[str, str] | None:
        """Return the module and the name that a name is imported from, None for any other."""
        around = self._source.parents.get(meaning) if isinstance(meaning, ast.alias) else None
        if not (isinstance(meaning, ast.alias) and isinstance(around, ast.ImportFrom)):
            return None
        return (around.module, meaning.name) if around.module and around.module in self._sources else None

    def _module(self, name: ast.Name) -> str | None:
        """Return the module of the bundle that a name stands for."""
        meaning = self._source.meaning(name)
        if not (isinstance(meaning, ast.alias) and isinstance(self._source.parents[meaning], ast.Import)):
            return None
        return meaning.name if meaning.name in self._sources else None

    def _of(self, module: str, name: str, node: ast.AST) -> str:
        """Return what a name of a module is called in the bundle."""
        source = self._sources[module]
        bound = source.bound.get(source.tree, {})
        meaning = bound.get(name)
        if meaning is None:
            self._problem(node, f"{module}.py has no {format_name(name)}{nearest_or_known(name, sorted(bound))}")
        elif isinstance(meaning, ast.alias):
            other = Renaming(module, "", self._sources, self._program)
            if (imported := other._imported(meaning)) is not None:
                return self._of(*imported, node)
            if isinstance(source.parents[meaning], ast.Import) and meaning.name in self._sources:
                self._problem(node, f"`{name}` is a module that {module}.py imports: import it here, too")
            elif not other._is_qualified(source.tree, meaning):
                self._problem(node, f"{module}.py only imports {format_name(name)}: import it here, too")
        return QUALIFIED.format(module, name)

    def _is_type(self, node: ast.AST) -> bool:
        """Whether a text is read as a type: in an annotation, or in a schema."""
        inner = node
        for around in self._source.around(node):
            match around:
                case ast.arg() | ast.keyword(arg="schema"):
                    return True
                case ast.AnnAssign():
                    return inner is around.annotation
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    return inner is around.returns
                case ast.Subscript(value=ast.Name(id="Literal")) | ast.Call():
                    return False
                case ast.expr():
                    inner = around
                case _:
                    return False
        return False

    def _type(self, text: str) -> str:
        """Return a type in a text with the names that its classes have in the bundle."""
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError):
            return text
        top = self._source.bound.get(self._source.tree, {})
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name) if isinstance(top.get(name), ast.alias):
                    if (imported := self._imported(top[name])) is not None:
                        node.id = self._of(*imported, top[name])
                case ast.Name(id=name) if self._name and name in top:
                    node.id = QUALIFIED.format(self._name, name)
        return ast.unparse(tree)

    def _change(self, node: Any) -> None:
        """Write what a node is called in the bundle."""
        match node:
            case _ if node in self._new:
                self._instead(*self._at(node), self._new[node])
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if self._name and self._source.is_top_level(node):
                    begin = self._at(node)[0]
                    found = _DEFINED.match(self.body, begin)
                    if found is not None:
                        self._instead(found.start(1), found.end(1), QUALIFIED.format(self._name, node.name))
            case ast.Import() | ast.ImportFrom():
                self._import_statement(node)
            case ast.Call(func=ast.Name() as word, args=[ast.Constant(value=str(program)), *_]):
                module = self._program(program) if word.id == RUN_PROGRAM else None
                if self._source.meaning(word) is None and module is not None:
                    self._instead(*self._at(word), "task")
                    self._instead(*self._at(node.args[0]), QUALIFIED.format(module, "main") if module else "main")

    def _import_statement(self, node: ast.Import | ast.ImportFrom) -> None:
        """Leave out what is in the bundle, and give a name of a module's own what could be another's."""
        is_top = self._source.is_top_level(node)
        kept = []
        for alias in node.names:
            if (node.module if isinstance(node, ast.ImportFrom) else alias.name) in self._sources:
                continue
            bound = alias.asname or alias.name.partition(".")[0]
            is_qualified = is_top and self._is_qualified(self._source.tree, alias)
            if is_qualified and "." in alias.name and not alias.asname:
                self._problem(node, f"`{bound}` is something else in another file: write `import {alias.name} as ...`")
            kept.append(ast.alias(alias.name, QUALIFIED.format(self._name, bound)) if is_qualified else alias)
        if kept != node.names:
            new = ast.Import(kept) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, kept, node.level)
            self._statement(node, ast.unparse(new) if kept else f"pass{self._shown(node)}")

    def _shown(self, node: ast.stmt) -> str:
        """Return an import as a comment, for who reads the script, if there is room for one."""
        begin, end = self._at(node)
        is_last = self.body[end : end + 1] in (b"\n", b"")
        return f"  # {self.body[begin:end].decode()}" if is_last and node.lineno == node.end_lineno else ""

    def _f_string(self, node: ast.JoinedStr) -> None:
        """Write an f-string anew in which something is called otherwise."""
        if not any(part in self._new for part in ast.walk(node)):
            return
        copied = copy.deepcopy(node)
        pairs = zip(ast.walk(node), ast.walk(copied), strict=True)
        new = {made: self._new[old] for old, made in pairs if old in self._new}
        try:
            self.expression(node, ast.unparse(_Replaced(new).visit(copied)))
        except ValueError:
            self._problem(node, "this f-string is too intricate for a module: give its parts names before it")

    def _problem(self, node: ast.AST, text: str) -> None:
        self.problems.append((getattr(node, "lineno", 1), text))


class _Replaced(ast.NodeTransformer):
    """Puts other expressions into a tree."""

    def __init__(self, new: Mapping[ast.AST, str]) -> None:
        self._new = new

    def visit(self, node: ast.AST) -> Any:
        return ast.parse(self._new[node], mode="eval").body if node in self._new else self.generic_visit(node)
