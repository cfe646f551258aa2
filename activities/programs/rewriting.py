"""A script as Monty runs it: what Monty lacks is written in what it has, and each line keeps its number.

Lines that are put in end with a mark, so that `lines_of` tells the lines of the script; before it may stand
the line that is meant, `#7#~`, or the line after which the script goes on: `#=7#~`. So modules run before the program.
"""

import ast
from collections.abc import Callable, Collection
from typing import Any

from sennit.activities.programs.coroutines.statements import SideBySide, is_side_by_side
from sennit.activities.programs.python.classes import FIELD_WORDS, OwnClasses
from sennit.activities.programs.python.containers import Containers
from sennit.activities.programs.python.exceptions import OWN
from sennit.activities.programs.python.formats import PYTHON, as_calls
from sennit.activities.programs.python.modules import imported_as
from sennit.activities.programs.python.patterns import PATTERN, REPLACEMENT, is_by_line, pattern_of, replacement_of
from sennit.activities.programs.python.written_types import WrittenTypes
from sennit.workflows.plan.bundles.text_edits import MARK, modules_first
from sennit.workflows.plan.programs.classes import class_named, is_enum
from sennit.workflows.plan.programs.endings import is_session, within
from sennit.workflows.plan.programs.lacks import names_of
from sennit.workflows.plan.programs.source import Source, own_text, parsed
from sennit.workflows.plan.programs.vocabulary import BUILTINS, JOINS, NEXT_OF, WORDS

_TAKES_ANY = ("llm", "agent", "ask", "task", "pipeline")
"""Words that take values; the others take tickets, Refs and numbers."""
_METHODS = frozenset(name for kind in (str, list, dict, set) for name in dir(kind) if not name.startswith("_"))
_TYPES = ("str", "list", "dict", "set")
_ONLY_WRITTEN = (
    "NamedTuple", "TypedDict", "NotRequired", "Required", "TypeAlias", *names_of("collections.abc"),
)  # fmt: skip
"""Of `typing`: names for those who read types."""


def for_monty(script: str, exceptions: Collection[str]) -> str:
    """Return a script that asks whether what leaves it is a value, and that gives its exceptions texts, which is all
    that Monty lets them carry: `KeyError(5)` becomes `KeyError(str(5))`. What Monty lacks of Python is rewritten.
    """
    own = own_text(script)
    try:
        source = Source(parsed(script))
        rewriting = _Rewriting(source, own, exceptions)
        text = as_calls(source, own, rewriting.is_changed)
        if text != own:
            rewriting = _Rewriting(Source(ast.parse(text)), text, exceptions)
    except SyntaxError:
        return script
    changed = rewriting.text()
    try:
        ast.parse(changed)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return script
    return changed


def own_errors(text: str) -> dict[str, str]:
    """Return the own exceptions of a script as Monty has it, each with the error that stands for it."""
    line = text.rpartition("\n")[2] if OWN in text else ""
    return dict(each.split("=") for each in line.removeprefix(OWN).split()) if line.startswith(OWN) else {}


class _Rewriting(OwnClasses, Containers, WrittenTypes, SideBySide):
    """Rewrites one script."""

    def __init__(self, source: Source, text: str, exceptions: Collection[str]) -> None:
        super().__init__(source, text, exceptions)
        self.is_alone = not is_side_by_side(source)
        classes = [node for node in source.nodes if isinstance(node, ast.ClassDef)]
        self._has_enums = any(map(is_enum, classes))
        self._own = {name for node in classes for name in source.bound.get(node, ())}
        attributes = (node for node in source.nodes if isinstance(node, ast.Attribute))
        self._own.update(node.attr for node in attributes if not isinstance(node.ctx, ast.Load))
        if "namedtuple" in source.bound.get(source.tree, {}):
            texts = (node.value for node in source.nodes if isinstance(node, ast.Constant))
            self._own.update(name for text in texts if isinstance(text, str) for name in text.split())

    def is_changed(self, node: ast.AST) -> bool:
        """Whether an expression has to be rewritten where it stands."""
        match node:
            case ast.Await() | ast.Dict():
                return True
            case ast.FormattedValue(conversion=how):
                return chr(max(how, 0)) == "r" and bool(self._errors.carriers)
            case ast.Attribute(attr=name):
                return name in ("__name__", "__class__") or name in _METHODS or name in FIELD_WORDS
            case ast.Name(id=name):
                is_own = class_named(self.source, node) is not None or name in self._errors.carriers
                return is_own or name in ("next", "isinstance", "type", "object")
        return False

    def text(self) -> str:
        """Return the script rewritten."""
        in_text: set[ast.AST] = set()
        for node in self.source.nodes:
            if isinstance(node, ast.JoinedStr) or self.source.parents.get(node) in in_text:
                in_text.add(node)
            elif (rewrite := _REWRITES.get(type(node))) is not None:
                rewrite(self, node)
        carriers = self._errors.carriers
        if any(map(_is_name, self.source.nodes)):
            self._behind += [f"__kinds[str({name})] = {name!r}" for name in carriers]
        if "repr" in self.source.uses or PYTHON in self.source.uses:
            self._behind += [f"__shown[{kind!r}] = {self._written(name)!r}" for name, kind in carriers.items()]
        return modules_first(self.changed(), self.body.decode()) + "".join(
            f"\n{line}" for line in sorted(self._behind, key=lambda line: line.startswith(OWN))
        )

    def _return(self, node: ast.Return) -> None:
        function = self.source.function(node)
        if node.value is not None and isinstance(function, ast.AsyncFunctionDef) and self.source.is_top_level(function):
            keys, end = ("__plain_keys(", ")") if self._has_enums and is_session(self.source, function) else ("", "")
            self._around(node.value, f"{keys}__value((", f"), 'return'){end}")

    def _call(self, node: ast.Call) -> None:
        if node in self._errors.begun:
            self._begin(node)
        self._begin_as_asyncio(node)
        self._unite(node)
        function = self.source.imported(node.func)
        if function == "functools.wraps":
            self._instead(*self._at(node), "(lambda __f: __f)")
        if (pattern := pattern_of(function, node)) is not None:
            self._around(pattern, f"{PATTERN}(", f"), {is_by_line(function, node)})")
        if (replacement := replacement_of(function, node)) is not None:
            self._around(replacement, f"{REPLACEMENT}(", "))")
        if not isinstance(node.func, ast.Name) or node.func.id in self._errors.bodies:
            return
        name, meaning = node.func.id, self.source.meaning(node.func)
        if name in ("isinstance", "type") and meaning is None:
            self._ask(node)
        elif name == "object" and meaning is None:
            self._instead(*self._at(node.func), "__Object")
        elif name in self.exceptions or name in self._errors.carriers:
            self._give_text(node)
        elif name not in BUILTINS and meaning is None:
            self._give_values(node, name)

    def _give_text(self, call: ast.Call) -> None:
        """Give an exception one text in the place of anything else."""
        if call.args and not call.keywords:
            first, last = call.args[0], call.args[-1]
            is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
            if first is not last or isinstance(first, ast.Starred):
                self._around(first, "str((", ",))", last)
            elif not (is_text or isinstance(first, ast.JoinedStr | ast.GeneratorExp)):
                self._around(first, "str(", ")")

    def _give_values(self, call: ast.Call, name: str) -> None:
        """Have asked whether a word or a tool is given values."""
        if name == "task":
            self._own_limits(call)
        if name in (*JOINS, NEXT_OF):
            self._list_views(call)
        if name in WORDS and name not in _TAKES_ANY:
            return
        keys, end = ("__plain_keys(", ")") if self._has_enums else ("", "")
        arguments = call.args[: 1 if name == "pipeline" else None] if name != "task" else []
        named = [each.value for each in call.keywords if each.arg not in (None, "schema")]
        for each in (*arguments, *named):
            if not isinstance(each, ast.Starred | ast.GeneratorExp | ast.Constant | ast.JoinedStr):
                self._around(each, f"{keys}__value(", f", '{name}'){end}")

    def _generator(self, node: ast.GeneratorExp) -> None:
        """Monty makes a list of it, of which `next` knows nothing."""
        around = self.source.parents[node]
        names = around.targets if isinstance(around, ast.Assign) else []
        uses = (use for name in names if isinstance(name, ast.Name) for use in self.source.uses.get(name.id, ()))
        if not (_is_next(around) or any(_is_next(self.source.parents[use]) for use in uses)):
            return
        is_shared = isinstance(around, ast.Call) and self._at(node)[1] == self._at(around)[1]
        self._around(node, "(iter" if is_shared else "iter", ")" if is_shared else "")

    def _attribute(self, node: ast.Attribute) -> None:
        """Write a method that is no call as a function: `key=str.lower`, `max(votes, key=votes.get)`."""
        if node.attr == "__class__":
            self._around(node, "type(", "")
            self._instead(self._dot(node), self._at(node)[1], ")")
            return
        if _is_name(node):
            self._around(node, "__name_of(", "")
            self._instead(self._dot(node), self._at(node)[1], f", {self._modules})")
            return
        around, owner = self.source.parents[node], node.value
        if self._is_field_word(node):
            self._instead(*self._at(node), f"__{node.attr}")
            return
        is_called = isinstance(around, ast.Call) and around.func is node
        if is_called or node.attr not in _METHODS or node.attr in self._own or not isinstance(node.ctx, ast.Load):
            return
        meaning = self.source.meaning(owner) if isinstance(owner, ast.Name) else None
        if isinstance(meaning, ast.alias | ast.ClassDef):
            return
        if meaning is None and isinstance(owner, ast.Name) and owner.id in _TYPES:
            begin, end = self._at(node)
            self._instead(begin, end, f"(lambda __o, *__a: __o.{node.attr}(*__a))")
            return
        self._around(node, "(lambda *__a, __o=(", "")
        self._instead(self._dot(node), self._at(node)[1], f"): __o.{node.attr}(*__a))")

    def _assert(self, node: ast.Assert) -> None:
        """Have the error carry the text alone, to which Monty adds what was tried."""
        if node.msg is not None:
            self._instead(self._at(node)[0], self._at(node.test)[0], "(")
            self._instead(self._at(node.test)[1], self._at(node.msg)[0], ") or __fail(")
            self._around(node.msg, "", ")")

    def _delete(self, node: ast.Delete) -> None:
        """Write `del a, b[0]` as what it does, target by target; the check knows that no name is read afterwards."""
        for number, target in enumerate(node.targets):
            begin = self._at(node)[0] if number == 0 else self._at(node.targets[number - 1])[1]
            between = "" if number == 0 else "; "
            match target:
                case ast.Name():
                    self._instead(begin, self._at(target)[0], between)
                    self._around(target, "", " = None")
                case ast.Subscript(slice=ast.Slice()):
                    self._instead(begin, self._at(target)[0], between)
                    self._around(target, "", " = []")
                case ast.Subscript(value=value, slice=key):
                    first, last = self._at(key)
                    starts, middle = ("__delete((", "), (") if b"deque" in self.body else ("(", ").pop((")
                    self._instead(begin, self._at(value)[0], f"{between}{starts}")
                    self._instead(self._at(value)[1], first, middle)
                    self._instead(last, self._at(target)[1], "))")

    def _expression(self, node: ast.Expr) -> None:
        """Collect what a generator yields."""
        value = node.value
        if isinstance(value, ast.Yield | ast.YieldFrom):
            method, begin = "extend" if isinstance(value, ast.YieldFrom) else "append", self._at(node)[0]
            if value.value is None:
                self._instead(*self._at(node), "__out.append(None)")
            else:
                self._instead(begin, self._at(value.value)[0], f"__out.{method}((")
                self._around(value.value, "", "))")

    def _generator_function(self, node: ast.FunctionDef) -> None:
        parts = [part for statement in node.body for part in within(statement)]
        if not any(isinstance(part, ast.Yield | ast.YieldFrom) for part in parts):
            return
        for part in parts:
            if isinstance(part, ast.Return):
                self._instead(*self._at(part), "return iter(__out)")
        first, end = self._lines[node.body[0].lineno - 1], self.body.find(b"\n", self._at(node)[1])
        indent = self.body[first : first + node.body[0].col_offset].decode()
        self._instead(first, first, f"{indent}__out = []  {MARK.decode()}\n")
        end = end if end >= 0 else len(self.body)
        self._after(end, f"\n{indent}return iter(__out)  {MARK.decode()}")

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if does := imported_as(node):
            self._statement(node, does)
        if isinstance(node, ast.Import):
            if any(alias.name == "asyncio" for alias in node.names):
                self._import_asyncio(node)
            return
        if node.module == "asyncio":
            self._import_asyncio(node)
        if node.module == "functools" and any(alias.name == "wraps" for alias in node.names):
            rest = [alias for alias in node.names if alias.name != "wraps"]
            self._statement(node, ast.unparse(ast.ImportFrom("functools", rest, 0)) if rest else "pass")
        if node.module == "collections.abc":
            names = ", ".join(f"Any as {alias.asname or alias.name}" for alias in node.names)
            self._statement(node, f"from typing import {names}")
        for alias in node.names if node.module == "typing" else ():
            if alias.name in _ONLY_WRITTEN:
                self._instead(*self._at(alias), f"Any as {alias.asname or alias.name}")

    def _await(self, node: ast.Await) -> None:
        """Make what the schema of a call says of its result."""
        self._await_value(node)
        call = node.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("llm", "ask")):
            return
        schema = next((each.value for each in call.keywords if each.arg == "schema"), None)
        if self.source.meaning(call.func) is None and schema is not None and (made := self._made(schema, "__v")):
            self._around(node, "__made(", f", lambda __v: {made})")


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "__name__" and isinstance(node.ctx, ast.Load)


def _is_next(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next"


_REWRITES: dict[type[ast.AST], Callable[[_Rewriting, Any], None]] = {
    ast.Return: _Rewriting._return,
    ast.Call: _Rewriting._call,
    ast.GeneratorExp: _Rewriting._generator,
    ast.Attribute: _Rewriting._attribute,
    ast.Assert: _Rewriting._assert,
    ast.AugAssign: _Rewriting._add,
    ast.Delete: _Rewriting._delete,
    ast.Expr: _Rewriting._expression,
    ast.FunctionDef: _Rewriting._generator_function,
    ast.Dict: _Rewriting._dict,
    ast.ClassDef: _Rewriting._class,
    ast.Name: _Rewriting._name,
    ast.Await: _Rewriting._await,
    ast.Import: _Rewriting._import,
    ast.ImportFrom: _Rewriting._import,
    ast.Raise: _Rewriting._raise,
    ast.ExceptHandler: _Rewriting._handler,
    ast.AsyncWith: _Rewriting._async_with,
    ast.Subscript: _Rewriting._literal,
}
