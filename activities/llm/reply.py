"""Reads the reply of a model call. Of a joiner: an answer with evidence, or nodes to add to the plan, in many forms."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from pydantic_core import from_json

from activities.nodes.context import NodeOutput
from activities.prompts.joiner import Replanning
from activities.prompts.outputs import Result
from activities.prompts.planner import MOST_NODES
from activities.providers import ModelReply
from activities.providers.errors import SchemaMismatch
from workflows.plan.edits.merge import Delta
from workflows.plan.language.text import format_names, format_value
from workflows.plan.planner_format.calls import Tools, call_name
from workflows.plan.planner_format.json_calls import calls_in
from workflows.plan.planner_format.json_text import NoJson, decode, extract_json
from workflows.plan.planner_format.lines import LineReader

MOST_EVIDENCE = 50

_MARK = re.compile(r"(?P<ticks>`+)|\s?\[(?P<n>\d{1,3})\]")
_NODE = re.compile(r"[\s$\[{(]*(?P<name>[A-Za-z0-9_]{1,40})")
_KEYS = r"(?:answer|replan|final[_ ]?answer|response|thoughts?|evidence)"
_FIELD = re.compile(rf"\{{\s*[\"'\u201c]?{_KEYS}\b|[\"'\u201c]{_KEYS}[\"'\u201d]\s*:", re.IGNORECASE)
_FIELD_NAME = re.compile(_KEYS, re.IGNORECASE)
_OBJECT = re.compile(r'\s*(?:```\w*\s*)?\{\s*["\'\u201c]')
_ANSWERS = ("finalanswer", "theanswer", "answertext", "response", "reply")
_THOUGHTS = ("thought", "thoughts", "thinking", "reasoning")
_ASIDES = (*_THOUGHTS, "explanation", "confidence", "notes", "citations", "sources")
_ALIKE = 0.8
_NUMBER = re.compile(r"[-+]?[$\u20ac\u00a3]? ?\d[\d.,' ]*%?")
_PLACES = ("path", "url", "source")
_DEEPEST = 12
_STRAIGHT = str.maketrans("\u201c\u201d\u2018\u2019\u00a0", "\"\"'' ")


class UnreadableReply(Exception):
    """A reply that is neither an answer nor a plan; the message says why. The same joiner may do better."""


@dataclass(frozen=True, slots=True)
class JoinerReply:
    """A joiner's reply: `output` as `{answer, evidence}`, or a `delta` to the plan; and what was left out."""

    output: dict[str, Any] | None = None
    delta: Delta | None = None
    warnings: tuple[str, ...] = ()


def read_reply(
    text: str,
    results: Mapping[str, Result],
    tools: Tools | None = None,
    known: Sequence[str] = (),
    writes: Sequence[str] = (),
) -> JoinerReply:
    """Return what a reply says. Text that is neither JSON nor lines to add is the answer. `known` are the nodes of the
    plan, which new lines may refer to; without `tools` none may be added. Raises UnreadableReply; nothing else.
    """
    reader = LineReader(tools or {}, known or list(results), list(results), writes)
    data = _json_in(text)
    if isinstance(data, dict) and data.get("replan"):
        if tools is None:
            raise UnreadableReply("the joiner asks for more nodes, and none may be added any more")
        return _delta(data["replan"], reader)
    if (calls := [call.name for call in calls_in(data) or ()]) and all(call_name(name, tools or {}) for name in calls):
        raise UnreadableReply(f"the joiner's reply calls {format_names(calls, 3)} in JSON; write lines under `replan`")
    if isinstance(data, dict) and data.get("answer") is not None:
        return _answer(data["answer"], data.get("evidence"), results)
    if isinstance(data, dict) and not data.keys().isdisjoint(("answer", "replan")):
        raise UnreadableReply("the joiner's reply holds no answer; `answer` is empty in it")
    if isinstance(data, dict) and (key := _meant_key(data)):
        return _answer(data[key], next((data[name] for name in data if _like(name, "evidence")), None), results)
    if not text.strip():
        raise UnreadableReply("the joiner's reply is empty")
    if data is None and tools is not None and _read_lines(reader, text):
        return _delta(reader.plan, reader)
    return _answer(text.strip(), (), results)


def _json_in(text: str) -> Any:
    """Return the JSON that a reply is or has in it, None if it has none. Raises UnreadableReply where it is broken, or
    if there are two answers.
    """
    found = _FIELD.search(text)
    start = _brace_of(found) if found else text.find("{") if _OBJECT.match(text) else -1
    if (
        found
        and start < 0
        and (_FIELD.match(text.lstrip("` *\n")) or _FIELD.search(text, text.find("{") + 1 or len(text)))
    ):
        raise UnreadableReply("the joiner's reply is no whole answer: a bracket of its JSON is missing")
    try:
        if start < 0:
            return extract_json(text)[0]
        value, end = decode(text, start)
        other = _FIELD.search(text, end)
        if other and not (isinstance(value, dict) and any(map(_FIELD_NAME.fullmatch, value))):
            raise UnreadableReply("the joiner's reply is no whole answer: its JSON ends too early")
        if other and "{" in text[end : other.end()] and decode(text, text.index("{", end))[0] != value:
            raise UnreadableReply("the joiner's reply holds two JSON objects; write one")
    except NoJson as error:
        if start >= 0:
            raise UnreadableReply(f"the joiner's reply is no whole answer: {error}") from None
        return None
    return value


def _brace_of(found: re.Match[str]) -> int:
    """Return where the object begins that a field is in, -1 if it is in none."""
    return found.string.find("{", found.start() if found[0][0] == "{" else 0, found.end())


def _meant_key(data: Mapping[str, Any]) -> str:
    """Return the key that can only be a misspelled `answer`, "" if the reply is JSON of another kind.

    Raises UnreadableReply where it is not plain which key holds the answer.
    """
    keys = [name for name in data if _like(name, "answer") or _letters(name) in _ANSWERS]
    aside = [name for name in data if _like(name, "evidence") or _letters(name) in _ASIDES]
    own = any(_like(name, "evidence") or _like(name, "replan") or _letters(name) in _THOUGHTS for name in data)
    if len(keys) == 1 and len(aside) == len(data) - 1 and data[keys[0]] is not None:
        return keys[0]
    if keys or own:
        raise UnreadableReply(
            f"the joiner's reply has no `answer` among {format_names(data, 6)}; write that key for the answer, or "
            "`replan` for more lines"
        )
    return ""


def _letters(name: str) -> str:
    return "".join(filter(str.isalpha, name.lower()))


def _like(name: str, key: str) -> bool:
    """Whether a key is another one, misspelled."""
    return len(name) < 2 * len(key) and SequenceMatcher(None, _letters(name), key).ratio() > _ALIKE


def _delta(request: Any, reader: LineReader) -> JoinerReply:
    fields = request if isinstance(request, dict) else {"nodes": request}
    nodes = fields.get("nodes")
    if isinstance(nodes, list) and nodes and all(isinstance(line, str) for line in nodes):
        nodes = "\n".join(nodes)
    if isinstance(nodes, str):
        _read_lines(reader, nodes)
        fields = {**fields, **reader.plan}
        nodes = reader.plan.get("nodes")
    if reader.errors:
        raise UnreadableReply(f"the joiner's new lines cannot be read: {format_names(reader.errors, 3)}")
    if not isinstance(nodes, list) or not nodes or not all(isinstance(node, dict) for node in nodes):
        raise UnreadableReply("the joiner asks for another plan and writes none")
    if len(nodes) > MOST_NODES:
        raise UnreadableReply(f"the joiner adds {len(nodes):,} nodes; at most {MOST_NODES}")
    why = str(fields.get("why") or "the results do not hold the answer")
    return JoinerReply(delta=Delta(" ".join(why.split())[:500], tuple(nodes), fields.get("answer")))


def _read_lines(reader: LineReader, text: str) -> bool:
    """Whether a text holds lines to add, even if there is something wrong with some of them."""
    reader.feed(text)
    reader.close()
    return bool(reader.plan.get("nodes"))


def _answer(answer: Any, evidence_data: Any, results: Mapping[str, Result]) -> JoinerReply:
    """Return the answer with the evidence that stands, numbered by its marks; the others' marks go.

    Brackets that mark no entry, what stands in code, and numbers and JSON are left as they are.
    """
    entries = evidence_data if isinstance(evidence_data, list) else []
    warnings: list[str] = []
    numbers: dict[int, str] = {}
    evidence: list[dict[str, Any]] = []
    for place, entry in enumerate(entries, 1):
        piece = _piece(entry, results, warnings) if place <= MOST_EVIDENCE else None
        own = entry.get("n") if isinstance(entry, dict) else None
        number = own if isinstance(own, int) else place
        numbers.setdefault(number, "")
        if piece is not None:
            evidence.append({"n": len(evidence) + 1, **piece})
            numbers[number] = str(len(evidence))
    if isinstance(answer, str) and entries and not _is_data(answer):
        answer = _renumbered(answer, numbers, len(evidence))
        marked = {int(mark["n"]) for mark in _marks(answer)}
        unmarked = [f"[{piece['n']}]" for piece in evidence if piece["n"] not in marked]
        answer = " ".join([answer, "".join(unmarked)]) if unmarked else answer
    return JoinerReply(output={"answer": answer, "evidence": evidence}, warnings=tuple(warnings))


def _is_data(answer: str) -> bool:
    """Whether an answer is a number, JSON or a block of code, which marks would spoil."""
    text = answer.strip()
    if _NUMBER.fullmatch(text) or text.endswith("```"):
        return True
    try:
        from_json(text)
    except ValueError:
        return False
    return True


def _marks(answer: str) -> Iterator[re.Match[str]]:
    """Yield the marks outside of code, which begins and ends with as many backticks."""
    found = list(_MARK.finditer(answer))
    last = {mark["ticks"]: place for place, mark in enumerate(found) if mark["ticks"]}
    code = None
    for place, mark in enumerate(found):
        ticks = mark["ticks"]
        if code is not None:
            code = None if ticks == code else code
        elif not ticks:
            yield mark
        elif last[ticks] > place:
            code = ticks


def _renumbered(answer: str, numbers: Mapping[int, str], most: int) -> str:
    pieces, end = [], 0
    for mark in _marks(answer):
        pieces += [answer[end : mark.start()], _numbered(mark, numbers, most)]
        end = mark.end()
    return "".join([*pieces, answer[end:]])


def _numbered(mark: re.Match[str], numbers: Mapping[int, str], most: int) -> str:
    """Return a mark as its evidence is numbered now. One of no entry is left, unless it would name another's."""
    written = int(mark["n"])
    number = numbers.get(written, "" if 0 < written <= most else mark["n"])
    return mark[0].replace(mark["n"], number) if number else ""


def _piece(entry: Any, results: Mapping[str, Result], warnings: list[str]) -> dict[str, str] | None:
    if not isinstance(entry, dict):
        warnings.append(f"evidence {format_value(entry)} is no object and was left out")
        return None
    found = _NODE.match(str(entry.get("node", "")))
    name = found["name"] if found else ""
    name = f"n{int(name)}" if name.isdecimal() and name.isascii() else name
    if name not in results:
        warnings.append(f"evidence of {format_value(entry.get('node'))} was left out: there is no such result")
        return None
    quote, claim = _line(entry.get("quote")), _line(entry.get("claim"))
    source, held = _held(results[name].value, _plain(quote), "", 0) if quote else ("", True)
    if not held:
        warnings.append(f"a quotation of {name} was left out: {format_value(quote)} does not stand in it")
        quote = ""
    return {"node": name, "claim": claim, "source": source, "quote": quote}


def _held(value: Any, quote: str, place: str, depth: int) -> tuple[str, bool]:
    """Return (document, whether) of a quotation in a result: the path or address nearest to where it stands."""
    if isinstance(value, str):
        return (place, True) if quote in _plain(value) else ("", False)
    if depth > _DEEPEST:
        return "", False
    if isinstance(value, int | float):
        return (place, True) if quote == str(value) else ("", False)
    if isinstance(value, dict):
        places = (value[field] for field in _PLACES if isinstance(value.get(field), str))
        place = next(places, place)
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found = _held(item, quote, place, depth + 1)
        if found[1]:
            return found
    return "", False


def _plain(text: str) -> str:
    """Return text as quotations are compared: one space between words, straight quotes, small letters."""
    return " ".join(text.translate(_STRAIGHT).split()).strip("\"'. …").lower()


def _line(text: Any) -> str:
    return " ".join(text.split())[:1000] if isinstance(text, str) else ""


@dataclass(frozen=True, slots=True)
class PromptFormat:
    """A call whose reply is the output."""

    system: str = ""
    prompt: str = ""

    def read(self, reply: ModelReply, _progress: Callable[[str], None]) -> NodeOutput:
        """Return what the reply makes of the node."""
        return NodeOutput(_text(reply) if reply.stop == "length" else reply.output, reply.usage)


@dataclass(frozen=True, slots=True)
class JoinerFormat(PromptFormat):
    """A joiner's call. It makes `{answer, evidence}`, or `{replan: {why, nodes, answer}}` while it may replan."""

    results: Mapping[str, Result] = field(default_factory=dict)
    replanning: Replanning | None = None

    def read(self, reply: ModelReply, progress: Callable[[str], None]) -> NodeOutput:
        """Return what the reply makes of the node. Raises SchemaMismatch, with its usage."""
        if isinstance(reply.output, dict):  # the rules took over, and give an answer as it should be
            return NodeOutput(reply.output, reply.usage)
        try:
            more = (self.replanning.tools, self.replanning.nodes, self.replanning.writes) if self.replanning else ()
            if reply.stop == "length":
                cut_at = f"{reply.usage.output_tokens:,} tokens"
                raise UnreadableReply(f"the joiner's reply was cut at {cut_at}; write a shorter one")
            joined = read_reply(reply.text, self.results, *more)
        except UnreadableReply as error:
            fault = SchemaMismatch(str(error), retryable=True)
            fault.usage = reply.usage
            raise fault from None
        for warning in joined.warnings:
            progress(warning)
        if joined.delta is None:
            return NodeOutput(joined.output, reply.usage)
        return NodeOutput(joined.delta.expansion_request, reply.usage, "replan")


def _text(reply: ModelReply) -> str:
    """Return what the model wrote, with a mark where it was cut."""
    return f"{reply.text}\n[cut at {reply.usage.output_tokens:,} tokens]" if reply.stop == "length" else reply.text
