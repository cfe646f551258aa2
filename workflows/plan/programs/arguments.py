"""What is wrong with the arguments of a script's calls, where the script itself says it: names, numbers, words."""

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from sennit.workflows.plan.checking.schemas import unknown_keywords
from sennit.workflows.plan.language.call_settings import CallSettings
from sennit.workflows.plan.language.limits import Limits
from sennit.workflows.plan.language.nodes import parse_turn_rule
from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.text import did_you_mean, format_name, format_names, nearest_or_known
from sennit.workflows.plan.language.validation_messages import describe_error, describe_errors
from sennit.workflows.plan.limits import MAX_ATTEMPTS
from sennit.workflows.plan.programs.parsing import expression
from sennit.workflows.plan.programs.sizes import Sizes
from sennit.workflows.plan.programs.source import Found, Function, Source
from sennit.workflows.plan.programs.vocabulary import (
    AS_TASKS,
    BUDGETED,
    BUILTINS,
    JOINS,
    LIMITS,
    NEXT_OF,
    RETRIED,
    ROLES,
    SILENCES,
    TASK_LIMITS,
    TIMED,
    TYPES,
    WORDS,
)
from sennit.workflows.plan.programs.without_json import without_json
from sennit.workflows.plan.programs.written_schemas import is_json_schema, written_value

_WORK = 200_000
"""So many names of arguments are looked at."""
_A_TYPE = "write a type, such as bool or list[str], a dict of types, or a JSON schema"
_A_DAY = re.compile(r"\d{4}-?(\d{2}|W)-?\d")
_MODEL = ("llm", "agent", "ask")


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes: its names, those it needs, how many of them without a name, the first of them only so; and
    whether it takes any more, without a name or with one.
    """

    names: tuple[str, ...]
    needed: tuple[str, ...]
    places: int
    place_only: int = 0
    takes_more: bool = False
    takes_any_name: bool = False

    @classmethod
    def of(cls, args: ast.arguments) -> "Signature":
        """Return that of a function of Python."""
        places = [*args.posonlyargs, *args.args]
        needed = [*places[: len(places) - len(args.defaults)]]
        needed += [arg for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default is None]
        names = tuple(arg.arg for arg in (*places, *args.kwonlyargs))
        has_more, has_names = args.vararg is not None, args.kwarg is not None
        return cls(names, tuple(arg.arg for arg in needed), len(places), len(args.posonlyargs), has_more, has_names)

    @classmethod
    def of_tool(cls, entry: Any) -> "Signature | None":
        """Return that of a tool, None if its schema does not say it."""
        schema = entry.get("schema") if isinstance(entry, Mapping) else None
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        if not isinstance(properties, Mapping) or not isinstance(schema, Mapping):
            return None
        is_open = schema.get("additionalProperties", True) is not False
        needed = tuple(schema.get("required") or ())
        return cls(tuple(properties), needed, len(properties), takes_any_name=is_open)


_LOOP = "tools=(), max_turns=8, turn=None"
_BEFORE = "messages=(), instructions=None, media=()"
_SETTINGS = ", ".join(f"{name}=None" for name in (*CallSettings.model_fields, *SILENCES))
SIGNATURES = {
    "llm": f'prompt, *material, schema=None, role="worker", model=None, {_LOOP}, {_BEFORE}, {_SETTINGS}',
    "agent": "goal, *, tools=None, budget=None, workspace=None",
    "ask": "question, *material, schema=None",
    "part": "ref, a=0, b=None",
    "sleep": "seconds",
    "sleep_until": "time",
    "parallel": "tickets, *, limit=None",
    "settled": "tickets, *, limit=None",
    "first": "tickets",
    "quorum": "k, tickets",
    "next_of": "tickets",
    "phase": "name",
    "now": "",
    "cancel": "ticket",
    "budget_left": "",
    "load": 'role="worker"',
    "width": "*, per_agent_calls=1, per_agent_tokens=None",
}
"""What words take; `task` and `pipeline` take what the functions do that they are given."""
_WORDS = {name: Signature.of(ast.parse(f"def f({given}): ...").body[0].args) for name, given in SIGNATURES.items()}  # type: ignore[attr-defined]


class _Given(NamedTuple):
    """How a function is called: with which arguments, and how it is named to people."""

    name: str
    args: list[ast.expr]
    keywords: list[ast.keyword]


class Arguments:
    """Checks the arguments of calls of words, tools and the script's own functions."""

    def __init__(self, source: Source, tools: Collection[str]) -> None:
        self.source = source
        self.tools = tools
        self._sizes = Sizes(source)
        self._left = _WORK
        self._signatures: dict[ast.AST, Signature] = {}

    def of(self, call: ast.Call) -> Found:
        """Find what is wrong with the arguments of a call."""
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        word = name if name in WORDS and self.source.meaning(call.func) is None else ""  # type: ignore[arg-type]
        if word == "task":
            yield from self._of_task(call)
        elif word == "pipeline":
            for stage in call.args[1:]:
                yield from self._of_stage(stage)
            yield from self._of_width(call)
        elif name:
            yield from self._fits(call, call.func, _Given(name, call.args, call.keywords))
            is_tool = not word and name in self.tools and self.source.meaning(call.func) is None  # type: ignore[arg-type]
            if word in _MODEL or is_tool:
                yield from self._of_values(call)
            yield from self._of_sleep(call, word)
        if word in _MODEL:
            yield from self._of_model(call.keywords)
        if word in (*JOINS, NEXT_OF):
            yield from self._of_join(call, word)

    def _of_width(self, call: ast.Call) -> Found:
        """Check what `pipeline` takes by name."""
        for each in call.keywords:
            if each.arg not in ("limit", "timeout", None):
                yield "argument", each.value, f"`pipeline` has no argument {format_name(each.arg)}; it takes `limit`"
            elif each.arg is not None:
                yield from self._of_amount(each)

    def _of_task(self, call: ast.Call) -> Found:
        function = call.args[0] if call.args else None
        if isinstance(function, ast.Name):
            yield from self._fits(call, function, _Given(function.id, call.args[1:], call.keywords))
            if function.id in AS_TASKS and self.source.meaning(function) is None:
                yield from self._of_model(call.keywords)

    def _of_stage(self, stage: ast.expr) -> Found:
        signature = self._signature(stage)
        if signature is None or not isinstance(stage, ast.Name):
            return
        if len(signature.needed) > 1 or not (signature.places or signature.takes_more):
            takes = format_names(signature.needed, form=format_name)
            yield "argument", stage, f"a stage gets one argument, each item: {format_name(stage.id)} needs {takes}"

    def _signature(self, function: ast.expr) -> Signature | None:
        if not isinstance(function, ast.Name):
            return None
        meaning = self.source.meaning(function)
        if isinstance(meaning, Function):
            is_plain = meaning not in self.source.again and not meaning.decorator_list
            if is_plain and meaning not in self._signatures:
                self._signatures[meaning] = Signature.of(meaning.args)
            return self._signatures.get(meaning)
        if meaning is not None:
            return None
        if function.id in _WORDS:
            return _WORDS[function.id]
        return Signature.of_tool(self.tools.get(function.id)) if isinstance(self.tools, Mapping) else None

    def _fits(self, call: ast.Call, function: ast.expr, arguments: _Given) -> Found:
        """Find arguments that a function does not take, and those that it lacks."""
        signature, shown = self._signature(function), format_name(arguments.name)
        self._left -= len(signature.names) if signature is not None else 0
        if signature is None or self._left < 0:
            return
        has_stars = any(isinstance(arg, ast.Starred) for arg in arguments.args)
        named = [each for each in arguments.keywords if each.arg is not None]
        if not has_stars and not signature.takes_more and len(arguments.args) > signature.places:
            number = signature.places
            most = f"{number} argument{'s' * (number != 1)} without a name" if number else "no arguments without a name"
            yield "argument", arguments.args[signature.places], f"{shown} takes {most}, not {len(arguments.args)}"
        filled = () if has_stars else signature.names[: min(len(arguments.args), signature.places)]
        for each in named:
            if each.arg in filled:
                yield "argument", each.value, f"{shown} gets its argument {format_name(each.arg or '')} twice"
            elif each.arg in signature.names[signature.place_only :] or signature.takes_any_name:
                continue
            elif each.arg in LIMITS:
                yield from self._of_limit(call, function, each)
            else:
                free = [name for name in signature.names if name not in filled]
                hint = nearest_or_known(str(each.arg), free) if free else "; it takes no other"
                yield "argument", each.value, f"{shown} has no argument {format_name(str(each.arg))}{hint}"
        if has_stars or len(named) < len(arguments.keywords):
            return
        lacking = [name for name in signature.needed if name not in filled and name not in {each.arg for each in named}]
        if lacking:
            yield "argument", call, f"{shown} needs the argument {format_names(lacking, form=format_name)}"

    def _of_limit(self, call: ast.Call, function: ast.expr, given: ast.keyword) -> Found:
        """Check what a call is allowed beside its arguments: `timeout`, `retry` and `budget`."""
        name, meaning = ast.unparse(function), self.source.meaning(function)  # type: ignore[arg-type]
        is_task, is_word = function is not call.func, meaning is None and name in WORDS
        if meaning is not None and not is_task:
            instead = {
                "timeout": f"write `await asyncio.wait_for({name}(...), 5)`",
                "retry": "call it in a loop",
                "budget": f"start it as a task, `task({name}, ..., budget=...)`",
            }
            yield "argument", given.value, f"`{name}` has no argument `{given.arg}`: {instead[str(given.arg)]}"
        elif given.arg == "budget" and meaning is None and name not in BUDGETED:
            why = "that is for tasks of functions, and for calls of `llm`"
            yield "argument", given.value, f"`{name}` has no `budget`: {why}"
        elif given.arg == "budget":
            yield from self._of_task_budget(given.value)
        elif given.arg == "retry" and (meaning is not None or (is_word and name not in RETRIED)):
            yield "argument", given.value, f"`{name}` has no `retry`: that is for calls of tools and of `llm`"
        elif is_word and name not in TIMED:
            yield "argument", given.value, f"`{name}` has no `timeout`"
        else:
            yield from self._of_amount(given)

    def _of_amount(self, given: ast.keyword) -> Found:
        is_right, what = _AMOUNTS[str(given.arg)]
        value = given.value.operand if isinstance(given.value, ast.UnaryOp) else given.value
        if isinstance(value, ast.Constant) and value.value is not None:
            written = ast.unparse(given.value)
            if value is not given.value or not is_right(value.value):
                yield "argument", given.value, f"`{given.arg}` is {what}, not {written[:40]}"

    def _of_values(self, call: ast.Call) -> Found:
        """Find what is given to a tool or a model and has no JSON."""
        for given in (*call.args, *(each.value for each in call.keywords if each.arg != "schema")):
            for part, text in without_json(self.source, given):
                yield "value", part, text

    def _of_sleep(self, call: ast.Call, word: str) -> Found:
        """Check a time that is written as it is."""
        given = call.args[0] if call.args else None
        text = given.value if isinstance(given, ast.Constant) else None
        if word == "sleep_until" and isinstance(text, str) and not _A_DAY.match(text):
            yield "argument", call, f'{text!r:.40} is no time: write one like "2026-01-31T09:00"'
        elif word == "sleep" and isinstance(given, ast.UnaryOp) and isinstance(given.op, ast.USub):
            yield "argument", call, f"`sleep` takes 0 seconds or more, not {ast.unparse(given):.40}"

    def _of_model(self, keywords: list[ast.keyword]) -> Found:
        for keyword in keywords:
            check = _OF_KEYWORDS.get(keyword.arg or "")
            if check is not None:
                yield from check(self, keyword.value)
            elif keyword.arg in SILENCES:
                yield from self._of_amount(keyword)
            elif keyword.arg in CallSettings.model_fields:
                yield from self._of_setting(keyword.arg, keyword.value)

    def _of_tools(self, value: ast.expr) -> Found:
        if isinstance(value, ast.Constant) and value.value is not None:
            yield "argument", value, '`tools` is a list of names: write tools=["search"]'
        for name in value.elts if isinstance(value, ast.List | ast.Tuple) else ():
            if isinstance(name, ast.Constant) and name.value not in self.tools:
                hint = did_you_mean(str(name.value), self.tools)
                yield "name", name, f"there is no tool {format_name(str(name.value))}{hint}"

    def _of_turn(self, value: ast.expr) -> Found:
        """Check when the next turn of a model with tools starts, if that is written as it is."""
        try:
            written = ast.literal_eval(value)
        except ValueError:
            return  # it is worked out when the script runs
        try:
            parse_turn_rule(written)
        except ValidationError as error:
            _, sentence = describe_error(error.errors(include_url=False)[0])
            yield "argument", value, f"`turn`: {sentence}"

    def _of_role(self, value: ast.expr) -> Found:
        if isinstance(value, ast.Constant) and value.value not in ROLES:
            yield "argument", value, f"`role` is one of {format_names(ROLES)}, not {str(value.value)!r:.40}"

    def _of_budget(self, limit: ast.expr) -> Found:
        """Check what a sub-agent may spend."""
        yield from self._of_amounts(limit, "a budget", list(Limits.model_fields))

    def _of_task_budget(self, limit: ast.expr) -> Found:
        """Check what the calls of a task may spend."""
        yield from self._of_amounts(limit, "the budget of a task", TASK_LIMITS)

    def _of_amounts(self, limit: ast.expr, what: str, names: Sequence[str]) -> Found:
        if isinstance(limit, ast.Constant) and limit.value is not None:
            yield "argument", limit, '`budget` is a dict: write budget={"tokens": 20000}'
        if not isinstance(limit, ast.Dict):
            return
        for key, value in zip(limit.keys, limit.values, strict=True):
            if not isinstance(key, ast.Constant):
                continue
            name, number = str(key.value), self._sizes.number(value)
            if name not in names:
                hint = nearest_or_known(name, names)
                yield "argument", key, f"{what} has no {format_name(name)}{hint}"
            elif number is not None and number < 1:
                yield "argument", value, f"a budget of {number} {name} allows nothing: write 1 or more, or leave it out"
            else:
                yield from self._of_written(value, name, "a budget", Limits)

    def _of_setting(self, name: str, value: ast.expr) -> Found:
        """Check a setting of a model call that is written as it is."""
        yield from self._of_written(value, name, "", CallSettings)

    def _of_written(self, value: ast.expr, name: str, what: str, model: type[BaseModel]) -> Found:
        """Check a field of something that is written as it is."""
        try:
            written = ast.literal_eval(value)
        except (ValueError, TypeError):
            return  # it is worked out when the script runs
        try:
            model.model_validate({name: written})
        except ValidationError as error:
            problem = describe_errors(error, model.model_fields)
            yield "argument", value, f"{what}: {problem}" if what else problem

    def _of_schema(self, value: ast.expr) -> Found:
        """Check a type, a dict of types, or a JSON schema."""
        written = self.source.assigned(value)
        if isinstance(written, ast.Dict) and all(isinstance(key, ast.Constant) for key in written.keys):
            yield from self._of_object(written)
        else:
            yield from self._of_type(value)

    def _of_object(self, written: ast.Dict) -> Found:
        """Check a dict: it is a JSON schema, or each of its fields has a type."""
        if not is_json_schema(written_value(written)):
            for part in written.values:
                yield from self._of_field(part)
            return
        try:
            schema = ast.literal_eval(written)
        except (ValueError, TypeError):
            return  # a part of it has a name: only the run knows it
        for where, sentence in unknown_keywords(schema):
            place = f"{place_of(where)}: " if where else ""
            yield "argument", _part_at(written, where), f"the JSON schema is wrong: {place}{sentence}"

    def _of_field(self, part: ast.expr) -> Found:
        """Check what a field of a dict of types has as its type."""
        match part:
            case ast.Dict():
                yield from self._of_schema(part)
            case ast.List([one]):
                yield from self._of_field(one)
            case ast.Constant(value) if value is not None and not isinstance(value, str):
                yield "argument", part, f"`{ast.unparse(part)[:40]}` is no type, nor part of a JSON schema: {_A_TYPE}"
            case _:
                yield from self._of_type(part)

    def _of_type(self, value: ast.expr) -> Found:
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and not self._is_type(value, value.value):
            yield "argument", value, f"the schema {value.value!r:.60} is no type: {_A_TYPE}"
        function = value.func if isinstance(value, ast.Call) else value
        meaning = self.source.meaning(function) if isinstance(function, ast.Name) else None
        if isinstance(meaning, ast.ClassDef) and function is not value:
            yield "argument", value, f"give the class itself: schema={meaning.name}"
        is_builtin = isinstance(value, ast.Name) and meaning is None and value.id in BUILTINS and value.id not in TYPES
        if isinstance(meaning, Function) or is_builtin:
            yield "argument", value, f"the function `{ast.unparse(function)}` is no type: {_A_TYPE}"

    def _is_type(self, node: ast.expr, text: str) -> bool:
        try:
            tree = expression(text.strip())
        except SyntaxError:
            return False
        if not isinstance(tree, ast.Name | ast.Attribute | ast.Subscript | ast.BinOp | ast.Constant | ast.Dict):
            return False
        known = (*TYPES, *self.source.bound.get(self.source.module_tree(node), {}))
        return all(part.id in known for part in ast.walk(tree) if isinstance(part, ast.Name))

    def _of_join(self, call: ast.Call, word: str) -> Found:
        arguments = {each.arg: each.value for each in call.keywords}
        args = dict(zip(("k", "tickets") if word == "quorum" else ("tickets",), call.args, strict=False))
        if "limit" in arguments and word in ("parallel", "settled"):
            yield from self._of_amount(next(each for each in call.keywords if each.arg == "limit"))
        tickets, k = arguments.get("tickets", args.get("tickets")), arguments.get("k", args.get("k"))
        if tickets is None:
            return
        if word == "quorum" and isinstance(tickets, ast.Constant):
            yield "argument", call, "`quorum` takes the number first: quorum(2, tickets)"
            return
        parts = [tickets.elt] if isinstance(tickets, ast.ListComp) else getattr(tickets, "elts", [])
        if awaited := next((part for part in parts if isinstance(part, ast.Await)), None):
            if isinstance(awaited.value, ast.Call):
                name = ast.unparse(awaited.value.func)
                yield "argument", awaited, f"`{word}` takes tickets: write `task({name}, ...)`, without `await`"
            return
        if isinstance(tickets, ast.Call) and isinstance(tickets.func, ast.Name) and tickets.func.id == "task":
            if self.source.meaning(tickets.func) is None:
                yield "argument", tickets, f"`{word}` takes a list of tickets: write `{word}([task(...)])`"
            return
        length = self._sizes.length(tickets)
        if word in ("first", NEXT_OF) and length == 0:
            yield "argument", tickets, f"`{word}` of no tickets can never end"
        number = self._sizes.number(k) if k is not None else None
        if number is None:
            return
        if number < 1 or (length is not None and number > length):
            of = f" of {length} tickets" if length is not None else ""
            yield "argument", call, f"`quorum({number}, ...)`{of} can never end: give 1 or more, and as many tickets"


def _part_at(written: ast.expr, where: Sequence[Any]) -> ast.expr:
    """Return what is written at a path of a value, or the innermost that is written around it."""
    for step in where:
        inner: ast.expr | None = None
        if isinstance(written, ast.Dict):
            names = [key.value if isinstance(key, ast.Constant) else None for key in written.keys]
            inner = written.values[names.index(step)] if step in names else None
        elif isinstance(written, ast.List | ast.Tuple) and isinstance(step, int):
            inner = written.elts[step]
        if inner is None:
            return written
        written = inner
    return written


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and value > 0


_AMOUNTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("timeout", *SILENCES), (_is_time, "a number of seconds above 0")),
    "retry": (lambda value: _is_count(value) and value <= MAX_ATTEMPTS, f"1 to {MAX_ATTEMPTS} attempts"),
    "limit": (_is_count, "how many run at once, 1 or more"),
}
"""What calls are allowed beside their arguments."""
_OF_KEYWORDS: dict[str, Callable[[Arguments, ast.expr], Found]] = {
    "tools": Arguments._of_tools,
    "role": Arguments._of_role,
    "turn": Arguments._of_turn,
    "budget": Arguments._of_budget,
    "schema": Arguments._of_schema,
}
