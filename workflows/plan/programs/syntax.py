"""What is wrong with a script before it runs: all of it at once, each with its line and
what to write instead.
"""

import ast
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sennit.workflows.plan.language.problems import OFFERED, Problem
from sennit.workflows.plan.language.text import did_you_mean, format_name, nearest_or_known
from sennit.workflows.plan.limits import MAX_SCRIPT_PROBLEMS
from sennit.workflows.plan.programs.arguments import Arguments
from sennit.workflows.plan.programs.files import place_in
from sennit.workflows.plan.programs.parsing import TooLarge, names_in, parsed
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
_NAME_IT = "write the name of an `async def` at the top of the script, or of a tool"
_JSON_TYPES = (
    "str", "int", "float", "bool", "None", "list", "dict", "tuple", "Any", "Optional", "Union",
    "Literal", "object", "List", "Dict", "Tuple", "Sequence", "Iterable", "Mapping", "typing",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of `main`: its type as it is written, "" if it has none, and
    whether it may be left out.
    """

    annotation: str
    required: bool
    default: Any = None


class _Finding(NamedTuple):
    """One thing wrong with a script; two that are equal are one problem."""

    line: int
    code: str
    text: str

    @property
    def rank(self) -> tuple[bool, int]:
        """Its place among the others: doubts come last, so that they take no problem's place."""
        return self.code == DOUBT, self.line


def problems_in(script: str, tools: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with a script that may call the tools, by line, the first 50. What a
    tool takes and gives is checked as far as its entry says it. Never raises.
    """
    return [problem for problem in _found_in(script, tools) if problem.code != DOUBT]


def doubts_in(script: str, tools: Mapping[str, Any]) -> list[Problem]:
    """Return what may be wrong with a script that has no problems: for people to read, and
    no reason to refuse it.
    """
    return [problem for problem in _found_in(script, tools) if problem.code == DOUBT]


def _found_in(script: str, tools: Mapping[str, Any]) -> list[Problem]:
    try:
        source = source_of(script)
    except TooLarge as error:
        finding = _Finding(error.lineno or 1, "size", f"the script is too large: {error.msg}")
        return [_problem(script, finding)]
    except SyntaxError as error:
        finding = _Finding(error.lineno or 1, "syntax", f"this is not Python: {error.msg}")
        return [_problem(script, finding)]

    findings: dict[_Finding, None] = {}
    for code, place, text in _Check(source, tools).all():
        findings[_Finding(line_of(place), code, text)] = None
    ordered = sorted(findings, key=lambda finding: finding.rank)
    return [_problem(script, finding) for finding in ordered[:MAX_SCRIPT_PROBLEMS]]


def _problem(script: str, finding: _Finding) -> Problem:
    """Return what is wrong as a problem, with its line as people know it."""
    where = ("line", place_in(script, finding.line))
    return Problem(finding.code, where, finding.text)


def parameters_of(script: str) -> dict[str, Parameter]:
    """Return the parameters of `main`; a default that is no literal is None. A script that
    does not parse has none.
    """
    try:
        tree = parsed(script)
    except SyntaxError:
        return {}

    # Python keeps the last of several functions with the same name.
    main: ast.arguments | None = None
    for node in tree.body:
        if isinstance(node, Function) and node.name == "main":
            main = node.args
    if main is None:
        return {}

    parameters: dict[str, Parameter] = {}
    for arg, default in _with_defaults(main):
        parameters[arg.arg] = _parameter(arg, default)
    return parameters


def _with_defaults(args: ast.arguments) -> list[tuple[ast.arg, ast.expr | None]]:
    """Return the parameters of a function but `*args` and `**kwargs`, each with its default."""
    places = [*args.posonlyargs, *args.args]
    # Defaults belong to the last places.
    defaults: list[ast.expr | None] = [None] * (len(places) - len(args.defaults))
    defaults += args.defaults
    parameters = list(zip(places, defaults, strict=True))
    parameters += zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return parameters


def _parameter(arg: ast.arg, default: ast.expr | None) -> Parameter:
    """Return a parameter with its type and its default as they are written."""
    annotation = ""
    if arg.annotation is not None:
        annotation = ast.unparse(arg.annotation)
    if default is None:
        return Parameter(annotation, required=True)
    try:
        value = ast.literal_eval(default)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        value = None
    return Parameter(annotation, required=False, default=value)


class _Check(Uses):
    """All checks of one script."""

    def __init__(self, source: Source, tools: Collection[str]) -> None:
        super().__init__(source, tools)
        self.top = source.top
        bound: set[str] = set()
        for names in source.bound.values():
            bound.update(names)
        self.known = [*tools, *WORDS, *sorted(bound), *BUILTINS]
        self.hints = MAX_SCRIPT_PROBLEMS
        self._named: set[ast.AST] = set()
        self._arguments = Arguments(source, tools)
        self._shapes = Shapes(source, tools)
        self._caught = _caught_in(source)

    def all(self) -> Found:
        yield from self._main()
        yield from self._top_level()
        for node in self.source.nodes:
            check = _CHECKS.get(type(node))
            if check is not None:
                yield from check(self, node)

    def _main(self) -> Found:
        main = self.top.get("main")
        if not isinstance(main, ast.AsyncFunctionDef):
            text = "a script has an `async def main(...)`: the run calls it"
            if isinstance(main, ast.FunctionDef):
                text = f"write `async` before `def main`: {text}"
            yield "main", main or ast.Pass(lineno=1), text
            return
        yield from self._by_name(main)
        for arg, _ in _with_defaults(main.args):
            if arg.annotation is None:
                continue
            for name in names_in(arg.annotation):
                if name not in _JSON_TYPES:
                    text = (
                        f"`{name}` has no JSON, so `main` cannot get it: write str, int, "
                        "list[...] or dict"
                    )
                    yield "argument", arg, text

    def _by_name(self, function: ast.AsyncFunctionDef) -> Found:
        """Find parameters that have no name of their own, once for each function."""
        if function in self._named:
            return
        self._named.add(function)
        args = function.args
        nameless = list(args.posonlyargs)
        for collecting in (args.vararg, args.kwarg):
            if collecting is not None:
                nameless.append(collecting)
        shown = format_name(function.name)
        for arg in nameless:
            yield "argument", arg, f"{shown} gets its arguments by name: write `{arg.arg}` alone"

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
            root = module.partition(".")[0]
            hint = self._hint(root, MODULES) or _NO_MODULE
            yield "import", node, f"there is no module {format_name(module)}{hint}"

    def _from_module_of_python(self, node: ast.ImportFrom, module: str) -> Found:
        for alias in node.names:
            if alias.name == "*":
                yield "import", node, "name what you import, in the place of `*`"
            elif module == "asyncio" and alias.name in NOT_OF_ASYNCIO:
                yield "construct", node, self._of_asyncio(alias.name)

    def _from_own_module(self, node: ast.ImportFrom, module: str) -> Found:
        for alias in node.names:
            inner = f"{module}.{alias.name}"
            if alias.name == "*" or self.source.is_module(inner):
                continue
            if self.source.defined(module, alias.name) is None:
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
            yield (
                "construct",
                node,
                "`main` and tasks return one value: collect a list and return it",
            )

    def _name(self, node: ast.Name) -> Found:
        if not isinstance(node.ctx, ast.Load):
            return
        meaning = self.source.meaning(node)
        is_known = meaning is not None or node.id in WORDS or node.id in self.tools
        is_plain_word = meaning is None and node.id in PLAIN
        if not is_known:
            yield from self._unknown(node)
        elif is_plain_word or self._is_async(node):
            yield from self._as_data(node)

    def _unknown(self, node: ast.Name) -> Found:
        module, _, name = node.id.rpartition(".")
        if module:
            yield from self._not_in_module(node, module, name)
            return
        is_caught = node.id in CALL_ERRORS and node.id in self._caught
        if is_caught or node.id in BUILTINS or node.id in OWN_NAMES:
            return
        hint = import_of(node.id) or self._hint(node.id, self.known)
        yield "name", node, f"there is no {format_name(node.id)}{hint}"

    def _of_asyncio(self, name: str) -> str:
        return f"asyncio has no {format_name(name)} here{self._hint(name, ())}"

    def _hint(self, name: str, known: Collection[str]) -> str:
        """Return what to write instead, for as many names as are shown."""
        self.hints -= 1
        if self.hints < 0:
            return ""
        instead = INSTEAD.get(name) or OFFERED.get(name)
        if not instead and name in MODULES:
            instead = f"write `import {name}`"
        if instead:
            return f": {instead}"
        return did_you_mean(name, known)

    def _as_data(self, node: ast.Name) -> Found:
        """Find functions where values are to be: what a word or a tool is given, and what
        is no function at all.
        """
        user: ast.AST = node
        for around in self.source.around(node):
            if isinstance(around, ast.Call) and user is not around.func:
                if self._takes_data(around, user):
                    hint = _CALL_IT
                    if isinstance(user, ast.keyword) and user.arg == "tools":
                        hint = f'write its name as a text, "{node.id}"'
                    yield "function", node, f"the function `{node.id}` is no value: {hint}"
            elif isinstance(around, ast.Return):
                function = self.source.function(node)
                if self.source.is_session(function):
                    yield "function", node, f"the function `{node.id}` is no value: {_CALL_IT}"
            if not isinstance(around, CONTAINERS):
                return
            user = around

    def _takes_data(self, call: ast.Call, argument: ast.AST) -> bool:
        """Whether a word or a tool is called, and takes no function as that argument."""
        word = self._word(call.func)
        if word == "task":
            return False
        if word == "pipeline":
            return bool(call.args) and argument is call.args[0]
        return word != "" or self._tool(call.func) != ""

    def _await(self, node: ast.Await) -> Found:
        if not isinstance(self.source.function(node), ast.AsyncFunctionDef):
            yield "await", node, "`await` stands in an `async def` only"
        yield from self._awaited_list(node)
        match node.value:
            case ast.Call(func=ast.Name() as function):
                yield from self._awaited_call(node, function)

    def _awaited_call(self, node: ast.Await, name: ast.Name) -> Found:
        """Find the call of a function that is awaited and gives nothing to wait for."""
        word = self._word(name)
        if word in ("phase", "cancel", "now"):
            yield "await", node, f"`{word}` is called without `await`"
        function = self.source.meaning(name)
        if isinstance(function, ast.FunctionDef) and not self._gives_call(function):
            text = (
                f"`{name.id}` is no `async def`: call it without `await`, or define it with `async`"
            )
            yield "await", node, text

    def _call(self, node: ast.Call) -> Found:
        word = self._word(node.func)
        if word == "task":
            yield from self._task(node)
        elif word == "pipeline":
            yield from self._pipeline(node)
        if isinstance(node.func, ast.Name):
            yield from self._shadowed(node.func)
            yield from self._without_f(node)
        yield from self._arguments.of(node)
        if isinstance(node.func, ast.Name):
            yield from self._place_of_call(node, node.func)
        yield from self._asyncio_call(node)

    def _task(self, node: ast.Call) -> Found:
        """Check what `task` starts, and that something waits for it."""
        # Without a function, the call itself is where one is lacking.
        yield from self._given(node, node.args[:1] or [node])
        user, _ = self._user(node)
        if self._is_dropped(user):
            yield (
                "await",
                node,
                "nothing waits for this task: write `await parallel([task(...), ...])`",
            )
        if node.args and self._is_started_word(node.args[0]):
            return
        for extra in node.args[1:]:
            yield "argument", extra, "`task` takes arguments by name: task(function, name=value)"

    def _is_started_word(self, started: ast.expr) -> bool:
        """Whether `task` starts a word, which takes arguments without a name too."""
        if not isinstance(started, ast.Name) or started.id not in AS_TASKS:
            return False
        return self.source.meaning(started) is None

    def _pipeline(self, node: ast.Call) -> Found:
        """Check the stages of `pipeline`."""
        items = node.args[:1]
        stages = node.args[1:]
        if items and isinstance(items[0], ast.Starred):
            yield from self._given(node, items)
        else:
            yield from self._given(node, stages or [node])

    def _place_of_call(self, node: ast.Call, name: ast.Name) -> Found:
        """Check where a word, a tool or an async function is called, and
        that its call is awaited.
        """
        word = self._word(name)
        if not word and not self._is_async(name):
            return
        if isinstance(self.source.function(node), ast.Module):
            yield (
                "top_level",
                node,
                f"the top of a script only defines things: call `{name.id}` in a function",
            )
        elif word not in PLAIN and self._gives_coroutine(name):
            yield from self._awaited(node, name)

    def _shadowed(self, name: ast.Name) -> Found:
        if name.id not in WORDS and name.id not in self.tools:
            return
        meaning = self.source.meaning(name)
        if isinstance(meaning, ast.Name | ast.arg):
            yield (
                "name",
                name,
                f"`{name.id}` is a variable here, not the word or tool: give it another name",
            )

    def _without_f(self, call: ast.Call) -> Found:
        """Find a prompt that names variables in braces, but is no f-string."""
        if not call.args or self._word(call.func) not in AS_TASKS:
            return
        prompt = call.args[0]
        if not isinstance(prompt, ast.Constant) or not isinstance(prompt.value, str):
            return
        if len(prompt.value) > _TEXT:
            return
        variables: set[str] = set()
        for scope in self.source.scopes(call):
            variables.update(self.source.bound.get(scope, ()))
        for name in _BRACED.findall(prompt.value):
            if name in variables:
                yield (
                    DOUBT,
                    prompt,
                    f'`{{{name}}}` stands in a text without `f` before it: write f"..."',
                )
                return

    def _given(self, call: ast.Call, functions: Iterable[ast.expr]) -> Found:
        """Find what `task` or `pipeline` cannot run."""
        for function in functions:
            yield from self._given_function(call, function)

    def _given_function(self, call: ast.Call, function: ast.expr) -> Found:
        """Find why a call of `task` or `pipeline` cannot run one function."""
        meaning: ast.AST = function
        if isinstance(function, ast.Name):
            defined = self.source.meaning(function)
            if defined is None:
                yield from self._given_word(call, function)
                return
            meaning = defined

        # A table of functions, a choice between two, or a variable may give any function.
        is_one_of_several = isinstance(function, ast.Subscript | ast.IfExp)
        is_variable = isinstance(meaning, ast.arg | ast.Name)

        if isinstance(meaning, ast.FunctionDef):
            yield (
                "function",
                function,
                f"`{meaning.name}` is no `async def`: define it with `async`",
            )
        elif isinstance(function, ast.Call):
            yield (
                "function",
                function,
                f"give the function and its arguments, without calling it: {_NAME_IT}",
            )
        elif is_one_of_several or is_variable:
            return
        elif not isinstance(meaning, ast.AsyncFunctionDef) or meaning.decorator_list:
            yield "function", function, _NAME_IT
        elif not self.source.is_top_level(meaning):
            yield (
                "function",
                function,
                f"`{meaning.name}` stands inside another function: move it to the top",
            )
        elif self._word(call.func) == "task":
            yield from self._by_name(meaning)

    def _given_word(self, call: ast.Call, name: ast.Name) -> Found:
        """Find a word that `task` or `pipeline` is given and cannot run."""
        is_started = name.id in AS_TASKS and self._word(call.func) == "task"
        if name.id in WORDS and not is_started:
            yield "function", name, f"`{name.id}` is no function for this: {_NAME_IT} that calls it"


def _caught_in(source: Source) -> set[str]:
    """Return the names in `except` clauses and in questions for a type: errors of calls
    are known by these alone.
    """
    caught = set[str]()
    for node in source.nodes:
        types = _types_asked(node)
        if types is not None:
            caught.update(names_in(types))
    return caught


def _types_asked(node: ast.AST) -> ast.expr | None:
    """Return the types that an `except` clause or an `isinstance` asks for,
    None for any other node.
    """
    match node:
        case ast.ExceptHandler(type=types):
            return types
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, types, *_]):
            return types
    return None


_OFTEN_FORGOTTEN = {
    "collections": "Counter defaultdict deque namedtuple OrderedDict",
    "dataclasses": "asdict dataclass field replace",
    "datetime": "date datetime timedelta timezone",
    "decimal": "Decimal",
    "enum": "Enum IntEnum StrEnum auto",
    "functools": "cache lru_cache partial reduce wraps",
    "itertools": (
        "accumulate batched chain combinations count cycle groupby islice pairwise permutations "
        "product"
    ),
    "statistics": "mean median mode stdev",
    "typing": "Any Callable Literal NamedTuple Optional TypedDict Union",
}
"""Names that are often used and not imported, by their modules."""


def import_of(name: str) -> str:
    """Return how a script imports what it names, "" for what it does not import."""
    for module, names in _OFTEN_FORGOTTEN.items():
        if name in names.split():
            return f": write `from {module} import {name}`"
    if name in MODULES:
        return f": write `import {name}`"
    return ""


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
