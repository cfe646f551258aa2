"""What is wrong with a script before it runs: all of it at once, each with its line and what to write instead."""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workflows.plan.language.problems import Problem
from workflows.plan.language.text import did_you_mean, format_name
from workflows.plan.programs.source import Function, Source, line_of, parsed
from workflows.plan.programs.vocabulary import AWAITED, BUILTINS, INSTEAD, JOINS, MODULES, PLAIN, WORDS

MAX_SCRIPT_BYTES = 1 << 20
MAX_PROBLEMS = 50

_CONSTRUCTS: dict[str, str] = {
    "Yield": "there is no `yield`: collect a list and return it",
    "YieldFrom": "there is no `yield`: collect a list and return it",
    "AsyncFor": "there is no `async for`: await the list, and go through it with `for`",
    "AsyncWith": "there is no `async with`: call the function with `await`, and clean up in `finally`",
    "TryStar": "there is no `except*`: write `except`",
    "Delete": "there is no `del`: write .pop(...), or assign None",
    "TypeAlias": "there is no `type`: write the type itself",
    "TemplateStr": "there are no t-strings: write an f-string",
    "Global": "a script's globals never change: return the value, or give it as an argument",
}
_TOP_LEVEL = (
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign,
)  # fmt: skip
_CONTAINERS = (
    ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Starred, ast.IfExp, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp, ast.keyword,
)  # fmt: skip
"""What hands a value on to what is around it."""
_ASSIGNING = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)
_CHANGING = (
    "append", "appendleft", "add", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse",
    "setdefault", "sort", "update",
)  # fmt: skip
_JSON_TYPES = ("str", "int", "float", "bool", "None", "list", "dict", "Any", "Optional", "Union", "Literal", "object")

Found = Iterator[tuple[str, ast.AST, str]]
"""The code, the place and the sentence of each problem."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of `main`: its type as it is written, "" if it has none, and whether it may be left out."""

    annotation: str
    required: bool
    default: Any = None


def problems_in(script: str, tools: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with a script that may call the tools, by line, the first 50. Never raises."""
    if len(script.encode(errors="replace")) > MAX_SCRIPT_BYTES:
        return [Problem("size", (), "the script has more than 1 MB: read data with tools, or give it as arguments")]
    try:
        source = Source(parsed(script))
    except SyntaxError as error:
        return [Problem("syntax", ("line", error.lineno or 0), f"this is not Python: {error.msg}")]
    check = _Check(source, tools)
    found = dict.fromkeys((line_of(place), code, text) for code, place, text in check.all())
    ordered = sorted(found, key=lambda problem: problem[0])
    return [Problem(code, ("line", line), text) for line, code, text in ordered[:MAX_PROBLEMS]]


def parameters_of(script: str) -> dict[str, Parameter]:
    """Return the parameters of `main`; a default that is no literal is None. A script that does not parse has none."""
    try:
        functions = [node for node in parsed(script).body if isinstance(node, Function)]
    except SyntaxError:
        return {}
    mains = [function.args for function in functions if function.name == "main"]
    return {arg.arg: _parameter(arg, default) for args in mains[-1:] for arg, default in _with_defaults(args)}


def _with_defaults(args: ast.arguments) -> list[tuple[ast.arg, ast.expr | None]]:
    places = [*args.posonlyargs, *args.args]
    defaults = [*[None] * (len(places) - len(args.defaults)), *args.defaults]
    return [*zip(places, defaults, strict=True), *zip(args.kwonlyargs, args.kw_defaults, strict=True)]


def _parameter(arg: ast.arg, default: ast.expr | None) -> Parameter:
    annotation = ast.unparse(arg.annotation) if arg.annotation else ""
    try:
        value = ast.literal_eval(default) if default else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        value = None
    return Parameter(annotation, default is None, value)


class _Check:
    """All checks of one script."""

    def __init__(self, source: Source, tools: Collection[str]) -> None:
        self.source = source
        self.tools = tools
        self.top = source.bound.get(source.tree, {})
        self.known = [*tools, *WORDS, *sorted({name for names in source.bound.values() for name in names}), *BUILTINS]
        self.unknown = 0

    def all(self) -> Found:
        yield from self._main()
        yield from self._top_level()
        for node in self.source.nodes:
            if (instead := _CONSTRUCTS.get(type(node).__name__)) is not None:
                yield "construct", node, instead
            if (check := _CHECKS.get(type(node))) is not None:
                yield from check(self, node)

    def _main(self) -> Found:
        main = self.top.get("main")
        if not isinstance(main, ast.AsyncFunctionDef):
            text = "a script has an `async def main(...)`: the run calls it"
            yield "main", main or ast.Pass(lineno=1), text
            return
        yield from self._by_name(main)
        for arg, _ in _with_defaults(main.args):
            for name in ast.walk(arg.annotation) if arg.annotation else ():
                if isinstance(name, ast.Name) and name.id not in _JSON_TYPES:
                    text = f"`{name.id}` has no JSON, so `main` cannot get it: write str, int, list[...] or dict"
                    yield "argument", arg, text

    def _by_name(self, function: ast.AsyncFunctionDef) -> Found:
        args = function.args
        for arg in (*args.posonlyargs, *filter(None, (args.vararg, args.kwarg))):
            yield "argument", arg, f"{format_name(function.name)} gets its arguments by name: write `{arg.arg}` alone"

    def _top_level(self) -> Found:
        for name, node in self.top.items():
            if name in WORDS or name in self.tools:
                kind = "word" if name in WORDS else "tool"
                yield "name", node, f"there is a {kind} `{name}` already: give this another name"
        for number, node in enumerate(self.source.tree.body):
            is_docstring = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not (is_docstring or isinstance(node, _TOP_LEVEL)):
                yield "top_level", node, "the top of a script only defines things: put this into a function"

    def _class(self, node: ast.ClassDef) -> Found:
        if node.bases or node.keywords:
            yield "construct", node, "classes have no bases here: write a dataclass with all of its fields"
        for method in node.body:
            if isinstance(method, Function) and method.decorator_list:
                yield "construct", method, "methods have no decorators here: write a plain method, or a function"

    def _async(self, node: ast.AsyncFunctionDef) -> Found:
        if node.decorator_list:
            yield "construct", node, "an `async def` has no decorators here: do it in the function"

    def _import(self, node: ast.Import | ast.ImportFrom) -> Found:
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
        for module in modules:
            if module not in MODULES:
                hint = (
                    _hint(module.partition(".")[0], MODULES) or ": use a tool; scripts have json, re, math and the like"
                )
                yield "import", node, f"there is no module {format_name(module)}{hint}"
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if alias.name == "*":
                yield "import", node, "name what you import, in the place of `*`"
            elif modules == ["asyncio"] and alias.name != "gather":
                yield "construct", node, _of_asyncio(alias.name)

    def _attribute(self, node: ast.Attribute) -> Found:
        if node.attr.startswith("__"):
            yield "construct", node, f"there is no `{node.attr}`: a script reaches values, not how they are made"
        elif self._module(node.value) == "asyncio" and node.attr != "gather":
            yield "construct", node, _of_asyncio(node.attr)
        if not isinstance(node.ctx, ast.Load):
            yield from self._changes(node)

    def _subscript(self, node: ast.Subscript) -> Found:
        if not isinstance(node.ctx, ast.Load):
            yield from self._changes(node)

    def _changes(self, node: ast.expr) -> Found:
        """Find what changes a constant of the script: each task begins with it as it was written."""
        root: ast.AST = node
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        meaning = self.source.meaning(root) if isinstance(root, ast.Name) else None
        top = self.source.tree
        if isinstance(meaning, ast.Name) and self.source.function(meaning) is top is not self.source.function(node):
            yield "global", node, f"`{meaning.id}` never changes: keep what changes in a variable of a function"

    def _comprehension(self, node: ast.comprehension) -> Found:
        if node.is_async:
            yield "construct", node.iter, _CONSTRUCTS["AsyncFor"]

    def _name(self, node: ast.Name) -> Found:
        if node.id.startswith("__"):
            yield "name", node, f"there is no {format_name(node.id)} in a script"
        elif isinstance(node.ctx, ast.Load):
            meaning = self.source.meaning(node)
            if meaning is None and node.id not in WORDS and node.id not in self.tools:
                yield from self._unknown(node)
            elif self._is_async(node) or (meaning is None and node.id in PLAIN):
                yield from self._as_data(node)

    def _unknown(self, node: ast.Name) -> Found:
        if node.id not in BUILTINS:
            self.unknown += 1
            hint = _hint(node.id, self.known) if self.unknown <= MAX_PROBLEMS else ""
            yield "name", node, f"there is no {format_name(node.id)}{hint}"

    def _as_data(self, node: ast.Name) -> Found:
        """Find functions that are neither called nor given to `task` or `pipeline`."""
        around = self.source.parents[node]
        if isinstance(around, ast.Call):
            word = self._word(around.func)
            is_first = bool(around.args) and around.args[0] is node
            if around.func is node or (word == "task" and is_first) or (word == "pipeline" and not is_first):
                return
        hint = "call it, or give it to task(function, ...)"
        if any(isinstance(part, ast.keyword) and part.arg == "tools" for part in self.source.around(node)):
            hint = f'write its name as a text, "{node.id}"'
        yield "function", node, f"the function `{node.id}` is no value: {hint}"

    def _await(self, node: ast.Await) -> Found:
        if not isinstance(self.source.function(node), ast.AsyncFunctionDef):
            yield "await", node, "`await` stands in an `async def` only"
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            if self._word(call.func) == "phase":
                yield "await", node, "`phase` is called without `await`"
            elif self._word(call.func) == "task":
                yield "await", node, "`task` returns a ticket at once: wait for it with `await parallel([ticket, ...])`"
            elif isinstance(self.source.meaning(call.func), ast.FunctionDef):
                text = f"`{call.func.id}` is no `async def`: call it without `await`, or define it with `async`"
                yield "await", node, text

    def _call(self, node: ast.Call) -> Found:
        word = self._word(node.func)
        if word == "task":
            yield from self._given(node, node.args[:1] or [node])
            if self._is_dropped(self._user(node)[0]):
                yield "await", node, "nothing waits for this task: write `await parallel([task(...), ...])`"
            for extra in node.args[1:]:
                yield "argument", extra, "`task` takes arguments by name: task(function, name=value)"
        elif word == "pipeline":
            yield from self._given(node, node.args[1:] or [node])
        if isinstance(node.func, ast.Name):
            yield from self._shadowed(node.func)
        if isinstance(node.func, ast.Name) and (word or self._is_async(node.func)):
            if self.source.function(node) is self.source.tree:
                yield "top_level", node, f"the top of a script only defines things: call `{node.func.id}` in a function"
            elif word not in PLAIN:
                yield from self._awaited(node, node.func)
        if self._is_gather(node.func) and node.keywords:
            yield "construct", node, "`gather` takes calls only: for errors, write `await settled([task(...), ...])`"
        if isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            yield from self._changes(node.func)

    def _shadowed(self, name: ast.Name) -> Found:
        if (name.id in WORDS or name.id in self.tools) and isinstance(self.source.meaning(name), ast.Name | ast.arg):
            yield "name", name, f"`{name.id}` is a variable here, not the word or tool: give it another name"

    def _given(self, call: ast.Call, functions: Iterable[ast.expr]) -> Found:
        """Find what `task` or `pipeline` cannot run."""
        for given in functions:
            if isinstance(given, ast.Starred):
                continue
            meaning = self.source.meaning(given) if isinstance(given, ast.Name) else given
            text = "write the name of an `async def` at the top of the script, or of a tool"
            if isinstance(given, ast.Name) and meaning is None:
                if given.id in WORDS:
                    yield "function", given, f"`{given.id}` is no function for this: {text} that calls it"
            elif isinstance(meaning, ast.FunctionDef):
                yield "function", given, f"`{meaning.name}` is no `async def`: define it with `async`"
            elif isinstance(given, ast.Call):
                yield "function", given, f"give the function and its arguments, without calling it: {text}"
            elif not isinstance(meaning, ast.AsyncFunctionDef):
                yield "function", given, text
            elif not self.source.is_top_level(meaning):
                yield "function", given, f"`{meaning.name}` stands inside another function: move it to the top"
            elif self._word(call.func) == "task":
                yield from self._by_name(meaning)

    def _awaited(self, call: ast.Call, name: ast.Name) -> Found:
        """Find a call that is never awaited, or used as if it were its result."""
        is_own = self.source.meaning(name) is not None
        user, via = self._user(call)
        if isinstance(user, ast.Await):
            return
        if self._is_dropped(user):
            yield "await", call, f"the call of `{name.id}` is never awaited: write `await {name.id}(...)`"
        elif isinstance(user, _ASSIGNING) and not (is_own and via):
            return
        elif isinstance(user, ast.Call) and (self._word(user.func) in JOINS or (self._is_gather(user.func) and is_own)):
            yield "await", call, f"write `await parallel([task({name.id}, ...), ...])`: it waits for tickets"
        elif isinstance(user, ast.Call) and not is_own and self._takes_calls(user):
            return
        elif is_own and via:
            yield "await", call, f"write `task({name.id}, ...)`, and wait for the tickets with `await parallel([...])`"
        else:
            yield "await", call, f"this uses the call of `{name.id}`, not its result: write `await {name.id}(...)`"

    def _user(self, call: ast.expr) -> tuple[ast.AST, bool]:
        """Return what uses the value of a call, and whether a list or the like stands between."""
        via = False
        for around in self.source.around(call):
            if isinstance(around, ast.comprehension):
                return around, via
            if not isinstance(around, _CONTAINERS):
                return around, via
            via = True
        return self.source.tree, via

    def _is_dropped(self, user: ast.AST) -> bool:
        """Whether a statement does nothing with a value, or gives it a name that is never read."""
        targets = user.targets if isinstance(user, ast.Assign) else [getattr(user, "target", None)]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if not isinstance(user, _ASSIGNING) or not names or len(names) < len(targets):
            return isinstance(user, ast.Expr)
        read = self.source.read.get(self.source.function(user), ())
        return not any(target in read for target in names)

    def _takes_calls(self, user: ast.Call) -> bool:
        """Whether a call may take calls that are not awaited: gather, methods such as append, the script's own."""
        if self._is_gather(user.func) or isinstance(user.func, ast.Attribute):
            return self._module(getattr(user.func, "value", None)) in ("", "asyncio")
        return isinstance(user.func, ast.Name) and isinstance(self.source.meaning(user.func), ast.FunctionDef)

    def _is_gather(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Attribute):
            return function.attr == "gather" and self._module(function.value) == "asyncio"
        meaning = self.source.meaning(function) if isinstance(function, ast.Name) else None
        return isinstance(meaning, ast.alias) and meaning.name == "gather"

    def _module(self, node: ast.AST | None) -> str:
        """Return the module that a name was imported as, or ""."""
        meaning = self.source.meaning(node) if isinstance(node, ast.Name) else None
        is_module = isinstance(meaning, ast.alias) and isinstance(self.source.parents[meaning], ast.Import)
        return meaning.name if is_module and isinstance(meaning, ast.alias) else ""

    def _word(self, function: ast.expr) -> str:
        """Return the word that a name stands for, or ""."""
        is_word = isinstance(function, ast.Name) and function.id in WORDS and self.source.meaning(function) is None
        return function.id if is_word and isinstance(function, ast.Name) else ""

    def _is_async(self, name: ast.Name) -> bool:
        """Whether a name stands for what must be awaited when it is called."""
        meaning = self.source.meaning(name)
        if meaning is None:
            return name.id in AWAITED or (name.id in self.tools and name.id not in PLAIN)
        return isinstance(meaning, ast.AsyncFunctionDef)


def _of_asyncio(name: str) -> str:
    return f"asyncio has only `gather` here, no {format_name(name)}{_hint(name, ['gather'])}"


def _hint(name: str, known: Collection[str]) -> str:
    return f": {INSTEAD[name]}" if name in INSTEAD else did_you_mean(name, known)


_CHECKS: dict[type[ast.AST], Callable[[_Check, Any], Found]] = {
    ast.AsyncFunctionDef: _Check._async,
    ast.ClassDef: _Check._class,
    ast.Import: _Check._import,
    ast.ImportFrom: _Check._import,
    ast.Attribute: _Check._attribute,
    ast.Subscript: _Check._subscript,
    ast.comprehension: _Check._comprehension,
    ast.Name: _Check._name,
    ast.Await: _Check._await,
    ast.Call: _Check._call,
}
