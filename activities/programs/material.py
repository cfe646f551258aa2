"""What a script gives to its calls: material for a model or a person, arguments and how these
are shown, and limits.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from inspect import BoundArguments, Signature, signature
from typing import Any

from pydantic import ValidationError

from sennit.activities.limits import (
    MAX_BODY_BYTES,
    MAX_KEPT_SIGNATURES_BYTES,
    MAX_PATH_CHARACTERS,
    MAX_QUESTION_CHARACTERS,
    MAX_SLEEP_SECONDS,
)
from sennit.activities.nodes.error_mapping import ProgramFailed
from sennit.activities.programs.values import Call, NotJson, Ref, Sleep, has_refs, mapped
from sennit.activities.prompts.outputs import fair_shares
from sennit.activities.storage.run_context import ArtifactReader
from sennit.workflows.plan.bounded_cache import BoundedCache
from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.limits import Limits, format_amount, limit_fields
from sennit.workflows.plan.language.nodes import Retry
from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.references import as_text, literal
from sennit.workflows.plan.language.text import arguments_text, format_name, nearest_or_known
from sennit.workflows.plan.language.validation_messages import describe_errors
from sennit.workflows.plan.limits import MAX_ATTEMPTS
from sennit.workflows.plan.programs.vocabulary import (
    BUDGETED,
    LIMITS,
    OWN,
    RETRIED,
    TASK_LIMITS,
    TIMED,
    WORDS,
)

_SIGNATURE_BYTES = 8_192
"""Of the parameters of a function; 3 KB were measured."""


class Refused(Exception):
    """What a script has called wrongly: it is raised in the script, with this type."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def pieces(material: Sequence[Any]) -> list[Any]:
    """Return what is given, with the items of a list that has Refs one by one. Raises
    NotJson for other Refs.
    """
    items: list[Any] = []
    for value in material:
        if isinstance(value, list) and any(isinstance(part, Ref) for part in value):
            items += value
        else:
            items.append(value)
    for item in items:
        if not isinstance(item, Ref) and has_refs(item):
            raise NotJson(
                "a Ref is material by itself, or an item of a list: write llm(prompt, ref)"
            )
    return items


def shown(arguments: dict[str, Any]) -> str:
    """Return arguments as people read them."""
    return arguments_text(mapped(arguments, lambda ref: f"Ref({ref.size:,})"))


def question_text(question: str, material: Sequence[Any], names: Sequence[str]) -> str:
    """Return what a person is asked, as literal text with as much of the material as there is room
    for, and with the references `names` behind it.
    """
    most = MAX_QUESTION_CHARACTERS
    for name in names:
        most -= len(name) + 2
    texts = [as_text(value) for value in material]

    # Each text gets a fair share of the room that the question leaves.
    room = max(0, most - len(question) - 4 * len(texts))
    shares = fair_shares(list(map(len, texts)), room)
    paragraphs = [question]
    for text, share in zip(texts, shares, strict=True):
        if share <= 1:
            continue
        if len(text) > share:
            paragraphs.append(f"{text[: share - 1]}…")
        else:
            paragraphs.append(text)
    asked = "\n\n".join(paragraphs)

    # As literal text it may be longer, and is cut until it fits.
    while (excess := len(literal(asked)) - most) > 0:
        asked = asked[: -(excess // 2 + 2)] + "…"
    return "\n\n".join([str(literal(asked)), *names])


async def whole_of(library: ArtifactReader, prefix: str, value: Any) -> Any:
    """Return what a program returns, with the values that its Refs name. Raises ProgramFailed if
    they are too many, BodyMissing or StoreUnavailable.
    """
    times = Counter[str]()
    mapped(value, lambda ref: times.update((ref.digest,)))
    found = dict[str, Any]()
    left = MAX_BODY_BYTES
    for digest, count in times.items():
        size, body = await library.sized(prefix, digest)
        found[digest] = body
        left -= count * size
        if left < 0:
            raise ProgramFailed(
                f"it returns large results of more than {MAX_BODY_BYTES:,} bytes in all"
            )
    return mapped(value, lambda ref: found[ref.digest])


def tool_arguments(
    schema: dict[str, Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return a tool's arguments by name: those without one in the order of the schema."""
    names = list(schema.get("properties") or ())
    if len(args) > len(names):
        raise Refused("TypeError", f"takes {len(names)} arguments, not {len(args)}")
    arguments = dict(zip(names, args, strict=False))
    for name in arguments:
        if name in kwargs:
            raise Refused("TypeError", f"got two values for `{name}`")
    arguments |= kwargs

    # What a Ref stands for is not known here, so the schema says nothing of
    # arguments that have one.
    unknown = [name for name, value in arguments.items() if has_refs(value)]
    problems = list[str]()
    for where, sentence in violations(mapped(arguments, lambda ref: ref.digest), schema):
        if not where:
            problems.append(sentence)
        elif where[0] not in unknown:
            problems.append(f"{place_of(where)}: {sentence}")
    if problems:
        raise Refused("ValueError", "; ".join(problems)[:500])
    return arguments


def text_of(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise Refused("TypeError", f"`{name}` is a text, not {value!r:.60}")
    return value


def shortened(path: str) -> str:
    """Return the end of a path that is too long to be read: the innermost
    tasks tell calls apart.
    """
    if len(path) <= MAX_PATH_CHARACTERS:
        return path
    end = path[1 - MAX_PATH_CHARACTERS :]
    return "…" + end[max(end.find("/"), 0) :]


def made_node(made: type[Any], /, **fields: Any) -> Any:
    """Return a node of the plan, or raise Refused."""
    try:
        return made.model_validate(fields)
    except ValidationError as error:
        problems = list[str]()
        for entry in error.errors()[:3]:
            place = place_of(entry["loc"])
            problems.append(f"{place}: {entry['msg']}")
        raise Refused("ValueError", "; ".join(problems)) from None


def bound(word: Callable[..., Any], words: object, call: Call) -> BoundArguments:
    """Return what a word is called with, or raise Refused."""
    try:
        known = _SIGNATURES.get_or_make(word, lambda: signature(word))
        return known.bind(words, call, *call.args, **call.kwargs)
    except TypeError as error:
        raise Refused("TypeError", str(error)) from None


_SIGNATURES = BoundedCache[Callable[..., Any], Signature](
    MAX_KEPT_SIGNATURES_BYTES, lambda _: _SIGNATURE_BYTES
)


def sleep_for(seconds: Any, clock: int, since: int) -> Sleep:
    """Return the sleep of a script whose clock says `clock`, and which began again at `since`: one
    that would have been over by then is slept from then on. Raises Refused.
    """
    if type(seconds) not in (int, float) or not 0 <= seconds <= MAX_SLEEP_SECONDS:
        raise Refused(
            "ValueError", f"sleeps 0 to {MAX_SLEEP_SECONDS:,} seconds, not {seconds!r:.40}"
        )
    millis = round(seconds * 1000)
    due = clock + millis
    if due <= since:
        return Sleep(due, since + millis)
    return Sleep(due, due)


def sleep_until(time: Any, clock: int) -> Sleep:
    """Return the sleep until a time that a text names, in UTC if it names
    no zone. Raises Refused.
    """
    try:
        until = datetime.fromisoformat(time)
    except (ValueError, TypeError):
        message = f"`time` is a datetime, or a text like 2026-01-31T09:00, not {time!r:.40}"
        raise Refused("ValueError", message) from None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    due = max(clock, round(until.timestamp() * 1000))
    if due - clock > MAX_SLEEP_SECONDS * 1000:
        raise Refused("ValueError", f"sleeps at most {MAX_SLEEP_SECONDS:,} seconds")
    return Sleep(due, due)


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The time that a call may take in all, in milliseconds, and how often it is attempted; 0 where
    nothing is said. A model call may have a `budget`, by the names of the scheduler.
    """

    timeout: int = 0
    attempts: int = 0
    budget: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, call: Call, tools: Mapping[str, Any], run: Mapping[str, int]
    ) -> "tuple[CallLimits, Call]":
        """Return those of a call, and the call without them. What a function takes itself is its
        argument. The budget of a call is no larger than that of the `run`. Raises Refused.
        """
        # A task has the limits of what it calls: of a tool, of a word, or of a
        # function of the script.
        is_task = call.function == "task"
        name = call.function
        if is_task and call.args:
            name = str(call.args[0])
        tool = tools.get(name)
        kind = ""
        if name in WORDS:
            kind = name
        elif is_task and tool is None:
            kind = "task"

        # Arguments of the call itself are no limits, though they may have such names.
        takes = _TAKES.get(name, ())
        if tool is not None:
            takes = (tool.get("schema") or {}).get("properties") or ()
        own = dict[str, Any]()
        given = dict[str, Any]()
        for limit in LIMITS:
            own_name = f"{OWN}{limit}"
            if own_name in call.kwargs:
                own[limit] = call.kwargs[own_name]
            if limit in call.kwargs and limit not in takes:
                given[limit] = call.kwargs[limit]
        if not own and not given:
            return cls(), call

        kwargs = dict[str, Any]()
        for argument, value in call.kwargs.items():
            if argument not in given and not argument.startswith(OWN):
                kwargs[argument] = value
        kwargs.update(own)
        budget = _budget(given.get("budget"), kind, run)
        timeout = _millis(given.get("timeout"), kind)
        attempts = _attempts(given.get("retry"), kind)
        return cls(timeout, attempts, budget), replace(call, kwargs=kwargs)

    def retry(self) -> Retry | None:
        """Return the attempts as a node has them."""
        return Retry(attempts=self.attempts) if self.attempts else None


_TAKES = {"agent": ("budget",)}
"""What words take themselves that is a limit of other calls."""


def _budget(budget: Any, kind: str, run: Mapping[str, int]) -> dict[str, int]:
    if budget is None:
        return {}
    if kind not in BUDGETED:
        raise Refused(
            "TypeError", "has no `budget`: that is for tasks of functions, and for calls of `llm`"
        )
    return task_budget(budget, run)


def task_budget(given: Any, run: Mapping[str, int]) -> dict[str, int]:
    """Return what the calls of a task may spend, by the names of the scheduler. Raises Refused for
    what is no budget, or is larger than that of the `run`.
    """
    if not isinstance(given, dict) or not given:
        raise Refused(
            "TypeError", f'`budget` is a dict such as {{"tokens": 20000}}, not {given!r:.40}'
        )
    for name in given:
        if name not in TASK_LIMITS:
            hint = nearest_or_known(str(name), TASK_LIMITS)
            raise Refused(
                "ValueError", f"the budget of a task has no {format_name(str(name))}{hint}"
            )
    try:
        amounts = Limits.model_validate(given).amounts()
    except ValidationError as error:
        raise Refused("ValueError", f"`budget`: {describe_errors(error, TASK_LIMITS)}") from None
    for name, amount in amounts.items():
        if amount > run.get(name, amount):
            [(shown, most)] = limit_fields({name: run[name]}).items()
            asked = format_amount(name, amount)
            raise Refused(
                "ValueError",
                f"a budget of {asked:,} {shown} is larger than that of the run, which is {most:,}",
            )
    return amounts


def _millis(timeout: float | None, kind: str) -> int:
    if timeout is None:
        return 0
    if kind not in ("", "task", *TIMED):
        raise Refused("TypeError", "has no `timeout`")
    return millis_of("timeout", timeout)


def millis_of(name: str, seconds: float) -> int:
    """Return the milliseconds of an argument that is a number of seconds. Raises
    Refused for anything else.
    """
    if type(seconds) not in (int, float) or not seconds > 0:
        raise Refused("ValueError", f"`{name}` is a number of seconds above 0, not {seconds!r:.40}")
    if seconds > MAX_SLEEP_SECONDS:
        raise Refused(
            "ValueError", f"`{name}` is at most {MAX_SLEEP_SECONDS:,} seconds, not {seconds!r:.40}"
        )
    return max(1, round(seconds * 1000))


def _attempts(retry: int | None, kind: str) -> int:
    if retry is None:
        return 0
    if kind not in ("", *RETRIED):
        raise Refused("TypeError", "has no `retry`: that is for calls of tools and of `llm`")
    if type(retry) is not int or not 1 <= retry <= MAX_ATTEMPTS:
        raise Refused(
            "ValueError",
            f"`retry` is how often it is attempted, 1 to {MAX_ATTEMPTS}, not {retry!r:.40}",
        )
    return retry
