"""What is wrong with a script before it runs: all of it at once, each with its line and what to write instead."""

import ast
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sennit.workflows.plan.language.problems import OFFERED, Problem
from sennit.workflows.plan.language.text import did_you_mean, format_name, nearest_or_known
from sennit.workflows.plan.limits import MAX_SCRIPT_PROBLEMS
from sennit.workflows.plan.programs.arguments import Arguments
from sennit.workflows.plan.programs.files import place_in
from sennit.workflows.plan.programs.parsing import TooLarge, parsed
from sennit.workflows.plan.programs.shapes import Shapes
from sennit.workflows.plan.programs.source import Found, Function, Source, line_of, source_of
from sennit.workflows.plan.programs.uses import CONTAINERS, Uses
from sennit.workflows.plan.programs.vocabulary import (
    AS_TASKS,
    BUILTINS,
    CALL_ERRORS,
    INSTEAD,
    MAY_BE_HIDDEN,
    MODULES,
    NOT_OF_ASYNCIO,
    OWN_NAMES,
    PLAIN,
    REFUSED_CALLS,
    WORDS,
)

DOUBT = "doubt"
"""The code of what is only suspected."""
_BRACED = re.compile(r"(?<!\{)\{(\w{1,60})\}(?!\})")
_TEXT = 20_000
_NO_MODULE = ": use a tool; scripts have json, re, math and the like"
_CALL_IT = "call it, or give it to task(function, ...)"
_JSON_TYPES = (
    "str", "int", "float", "bool", "None", "list", "dict", "tuple", "Any", "Optional", "Union", "Literal", "object",
    "List", "Dict", "Tuple", "Sequence", "Iterable", "Mapping", "typing",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of `main`: its type as it is written, "" if it has none, and whether it may be left out."""

    annotation: str
    required: bool
    default: Any = None


def problems_in(script: str, tools: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with a script that may call the tools, by line, the first 50. What a tool takes and gives is
    checked as far as its entry says it. Never raises.
    """
    return [problem for problem in _found_in(script, tools) if problem.code != DOUBT]


def doubts_in(script: str, tools: Mapping[str, Any]) -> list[Problem]:
    """Return what may be wrong with a script that has no problems: for people to read, and no reason to refuse it."""
    return [problem for problem in _found_in(script, tools) if problem.code == DOUBT]


def _found_in(script: str, tools: Mapping[str, Any]) -> list[Problem]:
    try:
        source = source_of(script)
    except TooLarge as error:
        return [Problem("size", ("line", place_in(script, error.lineno or 1)), f"the script is too large: {error.msg}")]
    except SyntaxError as error:
        return [Problem("syntax", ("line", place_in(script, error.lineno or 1)), f"this is not Python: {error.msg}")]
    check = _Check(source, tools)
    found = dict.fromkeys((line_of(place), code, text) for code, place, text in check.all())
    ordered = sorted(found, key=lambda problem: (problem[1] == DOUBT, problem[0]))
    return [Problem(code, ("line", place_in(script, line)), text) for line, code, text in ordered[:MAX_SCRIPT_PROBLEMS]]


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


class _Check(Uses):
    """All checks of one script."""

    def __init__(self, source: Source, tools: Collection[str]) -> None:
        super().__init__(source, tools)
        self.top = source.top
        self.known = [*tools, *WORDS, *sorted({name for names in source.bound.values() for name in names}), *BUILTINS]
        self.hints = MAX_SCRIPT_PROBLEMS
        self._named: set[ast.AST] = set()
        self._arguments = Arguments(source, tools)
        self._shapes = Shapes(source, tools)
        self._caught = _caught_in(source)

    def all(self) -> Found:
        yield from self._main()
        yield from self._top_level()
        for node in self.source.nodes:
            if (check := _CHECKS.get(type(node))) is not None:
                yield from check(self, node)

    def _main(self) -> Found:
        main = self.top.get("main")
        if not isinstance(main, ast.AsyncFunctionDef):
            text = "a script has an `async def main(...)`: the run calls it"
            hint = "write `async` before `def main`: " if isinstance(main, ast.FunctionDef) else ""
            yield "main", main or ast.Pass(lineno=1), f"{hint}{text}"
            return
        yield from self._by_name(main)
        for arg, _ in _with_defaults(main.args):
            for name in ast.walk(arg.annotation) if arg.annotation else ():
                if isinstance(name, ast.Name) and name.id not in _JSON_TYPES:
                    text = f"`{name.id}` has no JSON, so `main` cannot get it: write str, int, list[...] or dict"
                    yield "argument", arg, text

    def _by_name(self, function: ast.AsyncFunctionDef) -> Found:
        if function in self._named:
            return
        self._named.add(function)
        args = function.args
        for arg in (*args.posonlyargs, *filter(None, (args.vararg, args.kwarg))):
            yield "argument", arg, f"{format_name(function.name)} gets its arguments by name: write `{arg.arg}` alone"

    def _top_level(self) -> Found:
        for name, node in self.top.items():
            around = self.source.parents[node]
            is_of_asyncio = isinstance(around, ast.ImportFrom) and around.module == "asyncio"
            is_word = name in WORDS and name not in MAY_BE_HIDDEN
            if (is_word and not is_of_asyncio) or name in self.tools:
                kind = "word" if is_word else "tool"
                yield "name", node, f"there is a {kind} `{name}` already: give this another name"

    def _import(self, node: ast.Import | ast.ImportFrom) -> Found:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._module_of_import(node, alias.name)
            return
        module = self.source.imported_module(node)
        if not module:
            name = node.module or node.names[0].name
            yield "import", node, f"this file is in no package: write `import {name}`"
        elif self.source.is_module(module):
            yield from self._from_own_module(node, module)
        else:
            yield from self._module_of_import(node, module)
            yield from self._from_module_of_python(node, module)

    def _module_of_import(self, node: ast.AST, module: str) -> Found:
        if module not in MODULES and not self.source.is_module(module):
            hint = self._hint(module.partition(".")[0], MODULES) or _NO_MODULE
            yield "import", node, f"there is no module {format_name(module)}{hint}"

    def _from_module_of_python(self, node: ast.ImportFrom, module: str) -> Found:
        for alias in node.names:
            if alias.name == "*":
                yield "import", node, "name what you import, in the place of `*`"
            elif module == "asyncio" and alias.name in NOT_OF_ASYNCIO:
                yield "construct", node, self._of_asyncio(alias.name)

    def _from_own_module(self, node: ast.ImportFrom, module: str) -> Found:
        for alias in node.names:
            is_known = alias.name == "*" or self.source.is_module(f"{module}.{alias.name}")
            if not is_known and self.source.defined(module, alias.name) is None:
                yield from self._not_in_module(node, module, alias.name)

    def _not_in_module(self, node: ast.AST, module: str, name: str) -> Found:
        """Find a name that a module of the script does not have."""
        is_of_python = name.startswith("__")
        if not is_of_python and not self.source.is_open(module):
            hint = nearest_or_known(name, self.source.names_of(module))
            yield "name", node, f"the module {format_name(module)} has no {format_name(name)}{hint}"

    def _attribute(self, node: ast.Attribute) -> Found:
        if node.attr in NOT_OF_ASYNCIO and self._module(node.value) == "asyncio":
            yield "construct", node, self._of_asyncio(node.attr)
        elif node.attr == "run_in_executor":
            yield "construct", node, f"a script has no threads: {INSTEAD['to_thread']}"
        function = self.source.imported(node)
        if function in REFUSED_CALLS:
            yield "construct", node, f"a script has no {function}: {REFUSED_CALLS[function]}"
        yield from self._subscript(node)

    def _subscript(self, node: ast.Subscript | ast.Attribute) -> Found:
        for is_certain, text in self._shapes.unknown_field(node):
            yield "field" if is_certain else DOUBT, node, text

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> Found:
        if self.source.is_session(self.source.function(node)):
            yield "construct", node, "`main` and tasks return one value: collect a list and return it"

    def _name(self, node: ast.Name) -> Found:
        if isinstance(node.ctx, ast.Load):
            meaning = self.source.meaning(node)
            if meaning is None and node.id not in WORDS and node.id not in self.tools:
                yield from self._unknown(node)
            elif self._is_async(node) or (meaning is None and node.id in PLAIN):
                yield from self._as_data(node)

    def _unknown(self, node: ast.Name) -> Found:
        module, _, name = node.id.rpartition(".")
        if module:
            yield from self._not_in_module(node, module, name)
            return
        is_caught = node.id in CALL_ERRORS and node.id in self._caught
        if node.id not in (*BUILTINS, *OWN_NAMES) and not is_caught:
            hint = import_of(node.id) or self._hint(node.id, self.known)
            yield "name", node, f"there is no {format_name(node.id)}{hint}"

    def _of_asyncio(self, name: str) -> str:
        return f"asyncio has no {format_name(name)} here{self._hint(name, ())}"

    def _hint(self, name: str, known: Collection[str]) -> str:
        """Return what to write instead, for as many names as are shown."""
        self.hints -= 1
        if self.hints < 0:
            return ""
        instead = INSTEAD.get(name) or OFFERED.get(name) or (f"write `import {name}`" if name in MODULES else "")
        return f": {instead}" if instead else did_you_mean(name, known)

    def _as_data(self, node: ast.Name) -> Found:
        """Find functions where values are to be: what a word or a tool is given, and what is no function at all."""
        user: ast.AST = node
        for around in self.source.around(node):
            if isinstance(around, ast.Call) and user is not around.func:
                word = self._word(around.func) or (self._tool(around.func) and "tool")
                if word and not (word == "task" or (word == "pipeline" and user is not around.args[0])):
                    is_tool = isinstance(user, ast.keyword) and user.arg == "tools"
                    hint = f'write its name as a text, "{node.id}"' if is_tool else _CALL_IT
                    yield "function", node, f"the function `{node.id}` is no value: {hint}"
            if isinstance(around, ast.Return) and self.source.is_session(self.source.function(node)):
                yield "function", node, f"the function `{node.id}` is no value: {_CALL_IT}"
            if not isinstance(around, CONTAINERS):
                return
            user = around

    def _await(self, node: ast.Await) -> Found:
        if not isinstance(self.source.function(node), ast.AsyncFunctionDef):
            yield "await", node, "`await` stands in an `async def` only"
        yield from self._awaited_list(node)
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            if (word := self._word(call.func)) in ("phase", "cancel", "now"):
                yield "await", node, f"`{word}` is called without `await`"
            elif isinstance(called := self.source.meaning(call.func), ast.FunctionDef) and not self._gives_call(called):
                text = f"`{call.func.id}` is no `async def`: call it without `await`, or define it with `async`"
                yield "await", node, text

    def _call(self, node: ast.Call) -> Found:
        word = self._word(node.func)
        if word == "task":
            yield from self._given(node, node.args[:1] or [node])
            if self._is_dropped(self._user(node)[0]):
                yield "await", node, "nothing waits for this task: write `await parallel([task(...), ...])`"
            started = node.args[0] if node.args else None
            is_word = isinstance(started, ast.Name) and started.id in AS_TASKS and self.source.meaning(started) is None
            for extra in () if is_word else node.args[1:]:
                yield "argument", extra, "`task` takes arguments by name: task(function, name=value)"
        elif word == "pipeline":
            stars = [arg for arg in node.args[:1] if isinstance(arg, ast.Starred)]
            yield from self._given(node, stars or node.args[1:] or [node])
        if isinstance(node.func, ast.Name):
            yield from self._shadowed(node.func)
            yield from self._without_f(node)
        yield from self._arguments.of(node)
        if isinstance(node.func, ast.Name) and (word or self._is_async(node.func)):
            if isinstance(self.source.function(node), ast.Module):
                yield "top_level", node, f"the top of a script only defines things: call `{node.func.id}` in a function"
            elif word not in PLAIN and self._gives_coroutine(node.func):
                yield from self._awaited(node, node.func)
        yield from self._asyncio_call(node)

    def _shadowed(self, name: ast.Name) -> Found:
        if (name.id in WORDS or name.id in self.tools) and isinstance(self.source.meaning(name), ast.Name | ast.arg):
            yield "name", name, f"`{name.id}` is a variable here, not the word or tool: give it another name"

    def _without_f(self, call: ast.Call) -> Found:
        """Find a prompt that names variables in braces, but is no f-string."""
        text = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
        if self._word(call.func) not in AS_TASKS or not isinstance(text, str) or len(text) > _TEXT:
            return
        known = {name for scope in self.source.scopes(call) for name in self.source.bound.get(scope, ())}
        if named := [name for name in _BRACED.findall(text) if name in known]:
            yield DOUBT, call.args[0], f'`{{{named[0]}}}` stands in a text without `f` before it: write f"..."'

    def _given(self, call: ast.Call, functions: Iterable[ast.expr]) -> Found:
        """Find what `task` or `pipeline` cannot run."""
        for function in functions:
            meaning = self.source.meaning(function) if isinstance(function, ast.Name) else function
            text = "write the name of an `async def` at the top of the script, or of a tool"
            if isinstance(function, ast.Name) and meaning is None:
                if function.id in WORDS and not (function.id in AS_TASKS and self._word(call.func) == "task"):
                    yield "function", function, f"`{function.id}` is no function for this: {text} that calls it"
            elif isinstance(meaning, ast.FunctionDef):
                yield "function", function, f"`{meaning.name}` is no `async def`: define it with `async`"
            elif isinstance(function, ast.Call):
                yield "function", function, f"give the function and its arguments, without calling it: {text}"
            elif isinstance(function, ast.Subscript | ast.IfExp) or isinstance(meaning, ast.arg | ast.Name):
                pass  # one of several, as in a table of functions
            elif not isinstance(meaning, ast.AsyncFunctionDef) or meaning.decorator_list:
                yield "function", function, text
            elif not self.source.is_top_level(meaning):
                yield "function", function, f"`{meaning.name}` stands inside another function: move it to the top"
            elif self._word(call.func) == "task":
                yield from self._by_name(meaning)


def _caught_in(source: Source) -> set[str]:
    """Return the names in `except` clauses and in questions for a type: errors of calls are known by these alone."""
    caught = set[str]()
    for node in source.nodes:
        asked: ast.expr | None = None
        if isinstance(node, ast.ExceptHandler):
            asked = node.type
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance" and len(node.args) > 1:
            asked = node.args[1]
        if asked is not None:
            caught.update(part.id for part in ast.walk(asked) if isinstance(part, ast.Name))
    return caught


_OFTEN_FORGOTTEN = {
    "collections": "Counter defaultdict deque namedtuple OrderedDict",
    "dataclasses": "asdict dataclass field replace",
    "datetime": "date datetime timedelta timezone",
    "decimal": "Decimal",
    "enum": "Enum IntEnum StrEnum auto",
    "functools": "cache lru_cache partial reduce wraps",
    "itertools": "accumulate batched chain combinations count cycle groupby islice pairwise permutations product",
    "statistics": "mean median mode stdev",
    "typing": "Any Callable Literal NamedTuple Optional TypedDict Union",
}
"""Names that are often used and not imported, by their modules."""


def import_of(name: str) -> str:
    """Return how a script imports what it names, "" for what it does not import."""
    for module, names in _OFTEN_FORGOTTEN.items():
        if name in names.split():
            return f": write `from {module} import {name}`"
    return f": write `import {name}`" if name in MODULES else ""


_CHECKS: dict[type[ast.AST], Callable[[_Check, Any], Found]] = {
    ast.Import: _Check._import,
    ast.ImportFrom: _Check._import,
    ast.Attribute: _Check._attribute,
    ast.Subscript: _Check._subscript,
    ast.Name: _Check._name,
    ast.Await: _Check._await,
    ast.With: _Check._with,
    ast.Yield: _Check._yield,
    ast.YieldFrom: _Check._yield,
    ast.Call: _Check._call,
}
