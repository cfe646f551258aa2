"""What is wrong with the arguments of a script's calls, where the script itself says it:
names, numbers, words.
"""

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from sennit.workflows.plan.checking.schemas import unknown_keywords
from sennit.workflows.plan.language.call_settings import CallSettings
from sennit.workflows.plan.language.limits import Limits
from sennit.workflows.plan.language.nodes import parse_turn_rule
from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.text import (
    did_you_mean,
    format_name,
    format_names,
    nearest_or_known,
)
from sennit.workflows.plan.language.validation_messages import describe_error, describe_errors
from sennit.workflows.plan.limits import MAX_ATTEMPTS
from sennit.workflows.plan.programs.parsing import expression, names_in
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
from sennit.workflows.plan.programs.written_schemas import (
    has_constant_keys,
    is_json_schema,
    written_value,
)

_WORK = 200_000
"""So many names of arguments are looked at."""
_A_TYPE = "write a type, such as bool or list[str], a dict of types, or a JSON schema"
_A_DAY = re.compile(r"\d{4}-?(\d{2}|W)-?\d")
_MODEL = ("llm", "agent", "ask")
_TYPE_EXPRESSIONS = (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.Constant, ast.Dict)
"""A text that is one of these may be a type."""
_SHOWN_LETTERS = 40
"""A sentence shows so much of a long expression."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes: its names, those it needs, how many of them without a name, the first
    of them only so; and whether it takes any more, without a name or with one.
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
        names = [arg.arg for arg in (*args.posonlyargs, *args.args)]
        places = len(names)

        # Defaults belong to the last places.
        needed = names[: places - len(args.defaults)]
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            names.append(arg.arg)
            if default is None:
                needed.append(arg.arg)
        return cls(
            names=tuple(names),
            needed=tuple(needed),
            places=places,
            place_only=len(args.posonlyargs),
            takes_more=args.vararg is not None,
            takes_any_name=args.kwarg is not None,
        )

    @classmethod
    def of_tool(cls, entry: Any) -> "Signature | None":
        """Return that of a tool, None if its schema does not say it."""
        if not isinstance(entry, Mapping):
            return None
        schema = entry.get("schema")
        if not isinstance(schema, Mapping):
            return None
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return None
        is_open = schema.get("additionalProperties", True) is not False
        needed = tuple(schema.get("required") or ())
        return cls(tuple(properties), needed, len(properties), takes_any_name=is_open)


_LOOP = "tools=(), max_turns=8, turn=None"
_BEFORE = "messages=(), instructions=None, media=()"
_SETTING_NAMES = (*CallSettings.model_fields, *SILENCES)
_SETTINGS = ", ".join(f"{name}=None" for name in _SETTING_NAMES)
SIGNATURES = {
    "llm": (
        f'prompt, *material, schema=None, role="worker", model=None, {_LOOP}, {_BEFORE}, '
        f"{_SETTINGS}"
    ),
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


def _signature_of(parameters: str) -> Signature:
    """Return the signature of a function with parameters that are written as Python has them."""
    function = ast.parse(f"def f({parameters}): ...").body[0]
    return Signature.of(function.args)  # type: ignore[attr-defined]


_WORDS = {name: _signature_of(parameters) for name, parameters in SIGNATURES.items()}


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
        function = call.func
        if not isinstance(function, ast.Name):
            return
        word = ""
        is_tool = False
        if self.source.meaning(function) is None:
            if function.id in WORDS:
                word = function.id
            else:
                is_tool = function.id in self.tools

        # `task` and `pipeline` take the arguments of the functions that they start.
        if word == "task":
            yield from self._of_task(call)
        elif word == "pipeline":
            yield from self._of_pipeline(call)
        else:
            yield from self._fits(call, function, call.args)
            if word in _MODEL or is_tool:
                yield from self._of_values(call)
            yield from self._of_sleep(call, word)

        if word in _MODEL:
            yield from self._of_model(call.keywords)
        if word in (*JOINS, NEXT_OF):
            yield from self._of_join(call, word)

    def _of_pipeline(self, call: ast.Call) -> Found:
        """Check the stages of `pipeline`, and what it takes by name."""
        for stage in call.args[1:]:
            yield from self._of_stage(stage)
        for keyword in call.keywords:
            if keyword.arg is None:
                continue
            if keyword.arg in ("limit", "timeout"):
                yield from self._of_amount(keyword)
            else:
                shown = format_name(keyword.arg)
                yield (
                    "argument",
                    keyword.value,
                    f"`pipeline` has no argument {shown}; it takes `limit`",
                )

    def _of_task(self, call: ast.Call) -> Found:
        if not call.args:
            return
        function = call.args[0]
        if not isinstance(function, ast.Name):
            return
        yield from self._fits(call, function, call.args[1:])
        is_defined = self.source.meaning(function) is not None
        if function.id in AS_TASKS and not is_defined:
            yield from self._of_model(call.keywords)

    def _of_stage(self, stage: ast.expr) -> Found:
        signature = self._signature(stage)
        if signature is None or not isinstance(stage, ast.Name):
            return
        takes_item = signature.places > 0 or signature.takes_more
        if len(signature.needed) > 1 or not takes_item:
            needed = format_names(signature.needed, form=format_name)
            yield (
                "argument",
                stage,
                f"a stage gets one argument, each item: {format_name(stage.id)} needs {needed}",
            )

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
        if not isinstance(self.tools, Mapping):
            return None
        return Signature.of_tool(self.tools.get(function.id))

    def _fits(self, call: ast.Call, function: ast.Name, args: list[ast.expr]) -> Found:
        """Find arguments that a function does not take, and those that it lacks. `args`
        are those without a name.
        """
        signature = self._signature(function)
        if signature is None:
            return
        self._left -= len(signature.names)
        if self._left < 0:
            return
        shown = format_name(function.id)

        # Only the run knows how many arguments `*values` gives.
        has_stars = any(isinstance(arg, ast.Starred) for arg in args)
        filled: tuple[str, ...] = ()
        if not has_stars:
            if len(args) > signature.places and not signature.takes_more:
                text = f"{shown} takes {_most_places(signature.places)}, not {len(args)}"
                yield "argument", args[signature.places], text
            filled = signature.names[: min(len(args), signature.places)]

        given = set(filled)
        has_double_stars = False
        for keyword in call.keywords:
            name = keyword.arg
            if name is None:
                has_double_stars = True
                continue
            given.add(name)
            if name in filled:
                yield (
                    "argument",
                    keyword.value,
                    f"{shown} gets its argument {format_name(name)} twice",
                )
            elif signature.takes_any_name or name in signature.names[signature.place_only :]:
                continue
            elif name in LIMITS:
                yield from self._of_limit(call, function, keyword)
            else:
                hint = _free_names(signature, filled, name)
                yield (
                    "argument",
                    keyword.value,
                    f"{shown} has no argument {format_name(name)}{hint}",
                )

        # `*values` and `**values` may give what seems to be lacking.
        if has_stars or has_double_stars:
            return
        lacking = [name for name in signature.needed if name not in given]
        if lacking:
            yield (
                "argument",
                call,
                f"{shown} needs the argument {format_names(lacking, form=format_name)}",
            )

    def _of_limit(self, call: ast.Call, function: ast.Name, given: ast.keyword) -> Found:
        """Check what a call is allowed beside its arguments: `timeout`, `retry` and `budget`."""
        name = function.id
        limit = str(given.arg)
        is_task = function is not call.func
        is_of_script = self.source.meaning(function) is not None
        is_word = name in WORDS and not is_of_script

        # A function of the script is limited only as a task.
        if is_of_script and not is_task:
            text = f"`{name}` has no argument `{limit}`: {_instead_of_limit(limit, name)}"
            yield "argument", given.value, text
            return

        if limit == "budget":
            if is_of_script or name in BUDGETED:
                yield from self._of_task_budget(given.value)
            else:
                text = (
                    f"`{name}` has no `budget`: that is for tasks of functions, and for calls of "
                    "`llm`"
                )
                yield "argument", given.value, text
            return

        is_word_without_retry = is_word and name not in RETRIED
        if limit == "retry" and (is_of_script or is_word_without_retry):
            yield (
                "argument",
                given.value,
                f"`{name}` has no `retry`: that is for calls of tools and of `llm`",
            )
        elif is_word and name not in TIMED:
            yield "argument", given.value, f"`{name}` has no `timeout`"
        else:
            yield from self._of_amount(given)

    def _of_amount(self, given: ast.keyword) -> Found:
        """Check a number that is written as it is."""
        number = given.value
        if isinstance(given.value, ast.UnaryOp):
            number = given.value.operand
        if not isinstance(number, ast.Constant) or number.value is None:
            return
        is_right, what = _AMOUNTS[str(given.arg)]
        has_sign = number is not given.value
        if has_sign or not is_right(number.value):
            written = ast.unparse(given.value)[:_SHOWN_LETTERS]
            yield "argument", given.value, f"`{given.arg}` is {what}, not {written}"

    def _of_values(self, call: ast.Call) -> Found:
        """Find what is given to a tool or a model and has no JSON."""
        values = list(call.args)
        for keyword in call.keywords:
            if keyword.arg != "schema":
                values.append(keyword.value)
        for value in values:
            for part, text in without_json(self.source, value):
                yield "value", part, text

    def _of_sleep(self, call: ast.Call, word: str) -> Found:
        """Check a time that is written as it is."""
        if not call.args:
            return
        match word, call.args[0]:
            case "sleep_until", ast.Constant(value=str(time)):
                if not _A_DAY.match(time):
                    yield (
                        "argument",
                        call,
                        f'{time!r:.40} is no time: write one like "2026-01-31T09:00"',
                    )
            case "sleep", ast.UnaryOp(op=ast.USub()) as seconds:
                yield (
                    "argument",
                    call,
                    f"`sleep` takes 0 seconds or more, not {ast.unparse(seconds):.40}",
                )

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
        if not isinstance(value, ast.List | ast.Tuple):
            return
        for item in value.elts:
            if isinstance(item, ast.Constant) and item.value not in self.tools:
                name = str(item.value)
                yield (
                    "name",
                    item,
                    f"there is no tool {format_name(name)}{did_you_mean(name, self.tools)}",
                )

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
            written = str(value.value)
            yield "argument", value, f"`role` is one of {format_names(ROLES)}, not {written!r:.40}"

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
            name = str(key.value)
            number = self._sizes.number(value)
            if name not in names:
                hint = nearest_or_known(name, names)
                yield "argument", key, f"{what} has no {format_name(name)}{hint}"
            elif number is not None and number < 1:
                yield (
                    "argument",
                    value,
                    f"a budget of {number} {name} allows nothing: write 1 or more, or leave it out",
                )
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
            text = describe_errors(error, model.model_fields)
            if what:
                text = f"{what}: {text}"
            yield "argument", value, text

    def _of_schema(self, value: ast.expr) -> Found:
        """Check a type, a dict of types, or a JSON schema."""
        written = self.source.assigned(value)
        if isinstance(written, ast.Dict) and has_constant_keys(written):
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
            if where:
                sentence = f"{place_of(where)}: {sentence}"
            yield "argument", _part_at(written, where), f"the JSON schema is wrong: {sentence}"

    def _of_field(self, part: ast.expr) -> Found:
        """Check what a field of a dict of types has as its type."""
        match part:
            case ast.Dict():
                yield from self._of_schema(part)
            case ast.List([one]):
                yield from self._of_field(one)
            case ast.Constant(value) if value is not None and not isinstance(value, str):
                shown = ast.unparse(part)[:_SHOWN_LETTERS]
                yield (
                    "argument",
                    part,
                    f"`{shown}` is no type, nor part of a JSON schema: {_A_TYPE}",
                )
            case _:
                yield from self._of_type(part)

    def _of_type(self, value: ast.expr) -> Found:
        """Check a text that is to be a type, and names that stand for something else."""
        match value:
            case ast.Constant(value=str(text)) if not self._is_type(value, text):
                yield "argument", value, f"the schema {text!r:.60} is no type: {_A_TYPE}"

        # A function stands where a type is to be, or is called there.
        function = value
        if isinstance(value, ast.Call):
            function = value.func
        if not isinstance(function, ast.Name):
            return
        is_called = function is not value
        meaning = self.source.meaning(function)
        if isinstance(meaning, ast.ClassDef) and is_called:
            yield "argument", value, f"give the class itself: schema={meaning.name}"
        is_of_python = meaning is None and function.id in BUILTINS and function.id not in TYPES
        if isinstance(meaning, Function) or (is_of_python and not is_called):
            yield "argument", value, f"the function `{function.id}` is no type: {_A_TYPE}"

    def _is_type(self, node: ast.expr, text: str) -> bool:
        """Whether a text at a node is a type, all of whose names are known there."""
        try:
            tree = expression(text.strip())
        except SyntaxError:
            return False
        if not isinstance(tree, _TYPE_EXPRESSIONS):
            return False
        module = self.source.module_tree(node)
        known = (*TYPES, *self.source.bound.get(module, ()))
        return all(name in known for name in names_in(tree))

    # Words that wait for tickets.

    def _of_join(self, call: ast.Call, word: str) -> Found:
        """Check the tickets that a word waits for, and how many of them it needs."""
        if word in ("parallel", "settled"):
            yield from self._of_width(call)
        arguments = _join_arguments(call, word)
        tickets = arguments.get("tickets")
        if tickets is None:
            return
        if word == "quorum" and isinstance(tickets, ast.Constant):
            yield "argument", call, "`quorum` takes the number first: quorum(2, tickets)"
            return

        # These are no tickets: nothing more is said of them.
        awaited = _first_awaited(tickets)
        if awaited is not None:
            if isinstance(awaited.value, ast.Call):
                name = ast.unparse(awaited.value.func)
                yield (
                    "argument",
                    awaited,
                    f"`{word}` takes tickets: write `task({name}, ...)`, without `await`",
                )
            return
        match tickets:
            case ast.Call(func=ast.Name(id="task") as function):
                if self.source.meaning(function) is None:
                    yield (
                        "argument",
                        tickets,
                        f"`{word}` takes a list of tickets: write `{word}([task(...)])`",
                    )
                return

        length = self._sizes.length(tickets)
        if word in ("first", NEXT_OF) and length == 0:
            yield "argument", tickets, f"`{word}` of no tickets can never end"
        if "k" in arguments:
            yield from self._of_number(call, arguments["k"], length)

    def _of_width(self, call: ast.Call) -> Found:
        """Check how many tickets may run at once."""
        for keyword in call.keywords:
            if keyword.arg == "limit":
                yield from self._of_amount(keyword)
                return

    def _of_number(self, call: ast.Call, k: ast.expr, length: int | None) -> Found:
        """Check how many of the tickets must end. `length` is how many there are,
        None if that is not known.
        """
        number = self._sizes.number(k)
        if number is None:
            return
        of = ""
        is_above = False
        if length is not None:
            of = f" of {length} tickets"
            is_above = number > length
        if number < 1 or is_above:
            yield (
                "argument",
                call,
                f"`quorum({number}, ...)`{of} can never end: give 1 or more, and as many tickets",
            )


def _most_places(places: int) -> str:
    """Return how many arguments a function takes without their names."""
    if places == 0:
        return "no arguments without a name"
    if places == 1:
        return "1 argument without a name"
    return f"{places} arguments without a name"


def _free_names(signature: Signature, filled: Collection[str], name: str) -> str:
    """Return which arguments a function takes in the place of one that it has not."""
    free = [known for known in signature.names if known not in filled]
    if not free:
        return "; it takes no other"
    return nearest_or_known(name, free)


def _instead_of_limit(limit: str, name: str) -> str:
    """Return how a script limits the call of a function of its own."""
    if limit == "timeout":
        return f"write `await asyncio.wait_for({name}(...), 5)`"
    if limit == "retry":
        return "call it in a loop"
    return f"start it as a task, `task({name}, ..., budget=...)`"


def _join_arguments(call: ast.Call, word: str) -> dict[str, ast.expr]:
    """Return what a word that waits for tickets is given, by the names of its arguments."""
    names: tuple[str, ...] = ("tickets",)
    if word == "quorum":
        names = ("k", "tickets")
    arguments = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is not None:
            arguments[keyword.arg] = keyword.value
    return arguments


def _first_awaited(tickets: ast.expr) -> ast.Await | None:
    """Return the first value that is awaited among tickets which are written as a
    list, None if none is.
    """
    items: list[ast.expr] = getattr(tickets, "elts", [])
    if isinstance(tickets, ast.ListComp):
        items = [tickets.elt]
    for item in items:
        if isinstance(item, ast.Await):
            return item
    return None


def _part_at(written: ast.expr, where: Sequence[Any]) -> ast.expr:
    """Return what is written at a path of a value, or the innermost that is written around it."""
    for step in where:
        part = _part(written, step)
        if part is None:
            return written
        written = part
    return written


def _part(written: ast.expr, step: Any) -> ast.expr | None:
    """Return what is written for a field of a dict or an item of a list, None for a part
    that is not written so.
    """
    if isinstance(written, ast.Dict):
        for key, value in zip(written.keys, written.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == step:
                return value
    if isinstance(written, ast.List | ast.Tuple) and isinstance(step, int):
        return written.elts[step]
    return None


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and value > 0


def _is_attempts(value: Any) -> bool:
    return _is_count(value) and value <= MAX_ATTEMPTS


_AMOUNTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("timeout", *SILENCES), (_is_time, "a number of seconds above 0")),
    "retry": (_is_attempts, f"1 to {MAX_ATTEMPTS} attempts"),
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
