"""From what a model has written to the output of its node.

`PromptFormat` is the common case: the reply is the output, as text or by a schema. `JoinerFormat`
reads an answer with evidence, or nodes to add to the plan. How the output is kept, and what the
workflow is told of it, is in `activities/nodes/replies.py`.

A joiner's reply is one JSON object, or text, which is the answer. Text that only mentions a call
is one too. A bare call, an action as in ReAct (arXiv 2210.03629), and an object in the midst of
text are asked for again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sennit.activities.limits import MAX_PLANNED_NODES
from sennit.activities.llm.evidence import cited
from sennit.activities.nodes.context import NodeOutput
from sennit.activities.prompts import joiner
from sennit.activities.prompts.joiner import Replanning
from sennit.activities.prompts.outputs import Result
from sennit.activities.providers.errors import SchemaMismatch
from sennit.activities.providers.model import ModelReply, ReplyForm
from sennit.workflows.plan.edits.merge import Delta
from sennit.workflows.plan.language.text import IN_TICKS, format_names, format_value
from sennit.workflows.plan.planner_format.json_text import (
    Unreadable,
    begins_with_json,
    decode_whole,
    find_json,
)
from sennit.workflows.plan.planner_format.lines import LineReader
from sennit.workflows.plan.planner_format.values import Tools
from sennit.workflows.plan.planner_format.written_calls import calls_of, left_of_calls
from sennit.workflows.plan.programs.reply import fenced_in

_IN_TICKS = re.compile(IN_TICKS)
_FORM = re.compile(
    r"[\"'\u201c](?:answer|replan|evidence|thought)[\"'\u201d]\s*:|\{\s*(?:answer|replan)\s*:",
    re.IGNORECASE,
)
_OBJECT = re.compile(r"\{\s*[\"'\u201c]")
_ACTION = re.compile(
    r"^[^\S\n]*+action(?:\s*+:\s*+(?:replan[^\S\n]*+$|[\w.]++\s*+[(\[{])|\s++input\s*+:)",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER_TAG = re.compile(
    r"(?s)\s*<(?P<tag>answer|final_answer|response|output)>(?P<inside>.*)</(?P=tag)>\s*",
    re.IGNORECASE,
)
_ANSWER_LABEL = re.compile(
    r"\A\s*+(?:[#*_]{0,4}\s*+(?:final ?answer|answer|assistant)[*_]{0,2}\s*+:[*_]{0,2}"
    r"|#{1,6}\s*+(?:response|answer):?[^\S\n]*+\n)\s*+",
    re.IGNORECASE,
)
_LAST_THOUGHT = re.compile(
    r"\A\s*+[*#_]{0,4}\s?thought[*_]{0,2}\s?:(?:(?!\n[^\S\n]*+[*#_]{0,4}\s?(?:action"
    r"|observation)\b).)*?\n"
    r"(?=[^\S\n]*+[*#_]{0,4}[^\S\n]*+final ?answer[*_]{0,2}[^\S\n]*+:)",
    re.IGNORECASE | re.DOTALL,
)
"""The thought before the answer as in ReAct, where no action stands between."""
_NEXT_QUESTION = re.compile(r"\n[^\S\n]*+\n(?:User|Human): ")
_NEXT_REPLY = re.compile(r"\n(?:Assistant|AI): ")
_YAML = re.compile(
    r"\A\s*+(?:```\w*+[^\S\n]*+\n\s*+(?:answer|replan)\s*+:(?!\s*+[{\[])"
    r"|replan\s*+:[^\S\n]*+[|>]?[-+]?[^\S\n]*+\n(?:[^\S\n]++\S|-\s))",
    re.IGNORECASE,
)
"""The object in YAML: its text would be told with the names of the fields."""
_MIDST = (
    "the joiner's reply has its JSON in the midst of text; write one JSON object and nothing else"
)
_BARE_CALL = "the joiner's reply is a bare call; write lines under `replan`, or the answer in words"


@dataclass(frozen=True, slots=True)
class JoinerReply:
    """A joiner's reply: `output` as `{answer, evidence}`, or a `delta` to the plan;
    and what was left out.
    """

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
    """Return what a reply says. Text without any form is the answer. `known` are the nodes of
    the plan, which new lines may refer to; without `tools` none may be added. Raises
    Unreadable; nothing else.
    """
    if not text.strip():
        raise Unreadable("the joiner's reply is empty")
    text, note = _answer_alone(_decoded(text))
    reader = LineReader(tools or {}, known or list(results), list(results), writes)
    data, around = _json_in(text)
    if _is_call(text, tools or {}):
        raise Unreadable(_BARE_CALL)
    if isinstance(data, list) and _FORM.search(text):
        raise Unreadable("the joiner's reply is a list; write one JSON object")
    if isinstance(data, dict) and (not around or _FORM.search(text)):
        return read_object(data, results, reader, tools)
    if _YAML.match(text):
        raise Unreadable(
            "the joiner's reply is YAML; write one JSON object, or the answer in words"
        )
    if _ACTION.search(text):
        raise Unreadable(
            "the joiner's reply names an action; write the answer in words, or one JSON object"
        )
    if tools and (left := left_of_calls(text, tools)):
        raise Unreadable(
            f"the joiner's reply holds {left}; write the answer in words, or one JSON object"
        )
    if reader.is_line_in(text):
        raise Unreadable(_BARE_CALL)
    return JoinerReply({"answer": text.strip(), "evidence": []}, warnings=note)


def _decoded(text: str) -> str:
    """Return the JSON object that a text holds as a string of JSON: some servers and
    models encode it twice.
    """
    written = text.strip()
    if not written.startswith('"{'):
        return text
    with suppress(Unreadable):
        inner = decode_whole(written)
        if isinstance(inner, str):
            return inner
    return text


def _answer_alone(text: str) -> tuple[str, tuple[str, ...]]:
    """Return an answer in words without its label, the thought before it or the tag around it, and
    without a conversation that the model has made up behind it, with a warning of that.
    """
    tagged = _ANSWER_TAG.fullmatch(text)
    if tagged is not None:
        text = tagged["inside"]
    thought = _LAST_THOUGHT.match(text)
    if thought is not None:
        text = text[thought.end() :]
    label = _ANSWER_LABEL.match(text)
    if label is not None and text[label.end() :].strip():
        text = text[label.end() :]
    made_up = _NEXT_QUESTION.search(text)
    if made_up is None or not text[: made_up.start()].strip():
        return text, ()
    if _NEXT_REPLY.search(text, made_up.end()) is None:
        return text, ()
    conversation = text[made_up.start() :].strip()
    beginning = format_value(conversation[:80])
    note = f"{beginning} behind the answer is a made-up conversation, and was left out"
    return text[: made_up.start()], (note,)


def _is_call(text: str, tools: Tools) -> bool:
    """Whether a text is a call of a tool in JSON or in the way of a chat
    template, or looks like one.
    """
    try:
        return bool(calls_of(text, tools)[1])
    except Unreadable:
        return True


def _json_in(text: str) -> tuple[Any, str]:
    """Return (JSON, text around it) of a reply that is JSON, bare or as its only fenced block, with
    no more than a label before it and words behind it.

    Raises Unreadable for an object that is broken, or that stands in the midst of text.
    """
    fences, around, is_open = fenced_in(text)
    if is_open or not fences:
        fences, around = [text], ""
    has_form = _FORM.search(_IN_TICKS.sub("", text)) is not None
    if len(fences) > 1 or _FORM.search(_IN_TICKS.sub("", around)):
        if has_form:
            raise Unreadable(_MIDST)
        return None, ""
    whole = fences[0].strip()
    begins = begins_with_json(whole)
    try:
        found = find_json(whole)
    except Unreadable as error:
        if begins and (_OBJECT.search(whole) or has_form):
            raise Unreadable(f"the joiner's reply is no whole answer: {error}") from None
        found = None
    if found is not None and begins and found.has_words_behind:
        return found.value, f"{around}{found.behind}".strip()
    if found is not None and begins:
        raise Unreadable("the joiner's reply is no whole answer: more stands behind the JSON")
    if has_form:
        raise Unreadable(_MIDST)
    return None, ""


def read_object(
    data: Mapping[str, Any], results: Mapping[str, Result], reader: LineReader, tools: Tools | None
) -> JoinerReply:
    """Return what an object with `answer` or `replan` says; `reader` is for new
    lines. Raises Unreadable.
    """
    data = _unwrapped(data)
    answer, replan = data.get("answer"), data.get("replan")
    # A server that wants every field has it filled.
    if isinstance(replan, dict) and not any(replan.values()):
        replan = None
    empty = answer is None or (isinstance(answer, str) and not answer.strip())
    odd: list[str] = []
    for name, value in data.items():
        if isinstance(value, dict) and name not in ("answer", "evidence", "replan"):
            odd.append(name)
    if odd:
        raise Unreadable(
            f"the joiner's reply holds an object as {format_names(odd, 3)}; only `replan` is one"
        )
    if replan and not empty:
        raise Unreadable("the joiner's reply holds an answer and a replan; write one of them")
    if replan and tools is None:
        raise Unreadable("the joiner asks for more nodes, and none may be added any more")
    if replan:
        return _delta(replan, reader)
    if empty:
        held = f"is not among {format_names(data, 6)}"
        if "answer" in data or "replan" in data:
            held = "is empty in it"
        raise Unreadable(
            f"the joiner's reply holds no answer: `answer` {held}; write it, or `replan` for more "
            "lines"
        )
    evidence = data.get("evidence")
    if not isinstance(evidence, list):
        evidence = []
    output, warnings = cited(answer, evidence, results)
    return JoinerReply(output, warnings=warnings)


def _unwrapped(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a joiner's object with the names of its fields as they are asked for,
    without an object around it.
    """
    fields = {name.strip().lower(): value for name, value in data.items()}
    if len(fields) < len(data):
        return data
    inner = None
    if len(fields) == 1:
        (inner,) = fields.values()
    if isinstance(inner, dict) and "replan" not in fields and {"answer", "replan"} & inner.keys():
        return inner
    return fields


def _delta(request: Any, reader: LineReader) -> JoinerReply:
    fields = {"nodes": request}
    if isinstance(request, dict):
        fields = request
    nodes: Any = fields.get("nodes", fields.get("lines"))
    if _is_list_of(nodes, str):
        nodes = "\n".join(nodes)
    if isinstance(nodes, str) and nodes.strip():
        reader.feed(nodes)
        reader.close()
        fields = {**fields, **reader.plan}
        nodes = reader.plan.get("nodes")
    if reader.errors:
        raise Unreadable(f"the joiner's new lines cannot be read: {format_names(reader.errors, 3)}")
    if not _is_list_of(nodes, dict):
        raise Unreadable("the joiner asks for another plan and writes none")
    if len(nodes) > MAX_PLANNED_NODES:
        raise Unreadable(f"the joiner adds {len(nodes):,} nodes; at most {MAX_PLANNED_NODES}")
    why = str(fields.get("why") or "the results do not hold the answer")
    why = " ".join(why.split())[:500]
    return JoinerReply(delta=Delta(why, tuple(nodes), fields.get("answer")))


def _is_list_of(value: Any, kind: type) -> bool:
    """Whether a value is a list of nothing but such parts, and of at least one."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(part, kind) for part in value)


@dataclass(frozen=True, slots=True)
class PromptFormat:
    """A call whose reply is the output."""

    system: str = ""
    prompt: str = ""

    @property
    def form(self) -> ReplyForm | None:
        """The form that the server is asked to hold the reply to."""
        return None

    def read(self, reply: ModelReply, _progress: Callable[[str], None]) -> NodeOutput:
        """Return what the reply makes of the node."""
        return NodeOutput(reply.output, reply.usage)


@dataclass(frozen=True, slots=True)
class JoinerFormat(PromptFormat):
    """A joiner's call. It makes `{answer, evidence}`, or `{replan: {why, nodes,
    answer}}` while it may replan.
    """

    results: Mapping[str, Result] = field(default_factory=dict)
    replanning: Replanning | None = None

    @property
    def form(self) -> ReplyForm | None:
        return ReplyForm(joiner.schema(self.replanning), self.system)

    def read(self, reply: ModelReply, progress: Callable[[str], None]) -> NodeOutput:
        """Return what the reply makes of the node. Raises SchemaMismatch, with its usage."""
        # The rules took over, and give an answer as it should be.
        if isinstance(reply.output, dict):
            return NodeOutput(reply.output, reply.usage)
        try:
            joined = self._joined(reply.text)
        except Unreadable as error:
            fault = SchemaMismatch(str(error), retryable=True)
            fault.usage = reply.usage
            raise fault from None
        for warning in joined.warnings:
            progress(warning)
        if joined.delta is None:
            output = {**(joined.output or {})}
            if joined.warnings:
                output["warnings"] = list(joined.warnings)
            return NodeOutput(output, reply.usage)
        return NodeOutput(joined.delta.expansion_request, reply.usage, "replan")

    def _joined(self, text: str) -> JoinerReply:
        """Return what the text says. Raises Unreadable."""
        if self.replanning is None:
            return read_reply(text, self.results)
        may = self.replanning
        return read_reply(text, self.results, may.tools, may.nodes, may.writes)
