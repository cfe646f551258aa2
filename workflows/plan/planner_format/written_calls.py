"""Calls of tools that a model has written as text, in its chat template's way, where the
server did not read them.

One table has each way: what stands before a call, with its name, and how its arguments are written.
Calls begin at a mark, outside of code; a special token that is none, and a mark without a call, are
no answer: they are refused.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

from sennit.workflows.plan.language import json_schema
from sennit.workflows.plan.language.schema_keywords import Schema
from sennit.workflows.plan.language.text import TURN_ENDS, format_value
from sennit.workflows.plan.planner_format.call_text import CallText
from sennit.workflows.plan.planner_format.json_calls import JsonCall, call_in
from sennit.workflows.plan.planner_format.json_text import Unreadable, decode, decode_whole, flaw
from sennit.workflows.plan.planner_format.values import Scope, Tools, arguments_of, parse_call

Found = tuple[list[tuple[str, Any]], int]
"""Names and arguments of calls, and where in the text they end."""

_N = r"(?:functions?\.)?(?P<name>[\w.-]{1,80}?)"
_DSML = r"(?:\uff5c{1,2}DSML\uff5c{1,2}|\|{1,2}DSML\|{1,2})"
_SEP = r"<\uff5ctool\u2581sep\uff5c>"
_SPECIAL = (
    r"<\|/?[A-Za-z][\w/ .:-]{0,40}\|>|<\uff5c/?[^\uff5c<>\n]{1,40}\uff5c>|<\|[a-z_]{2,40}>"
    r"|<[a-z_]{2,40}\|>"
)
_TAGS = (
    rf"</?(?:minimax:|seed:|{_DSML})?(?:tool_calls?|function_calls?)>|</?TOOLCALL>|</?tools>"
    r"|<(?:start|end)_function_call>|<\|tool_call>|<tool_call\|>|\[/?TOOL_CALLS\]"
    r"|functools(?=\s*\[)"
    r"|Action:\s*+```(?:json)?\s*+(?=\[)"
)
_ENDS = TURN_ENDS
_MARKS = (
    r"<\|/?(?:tool_calls?(?:_begin|_start|_section_begin)?|python_tag|python_start|START_ACTION"
    r"|tools_prefix)\|>"
    rf"|<\uff5ctool\u2581calls?\u2581begin\uff5c>|<{_DSML}(?:function|tool)_calls>"
    r"|<(?:minimax|seed):tool_call>|<start_function_call>|<\|tool_call>|\[TOOL_CALLS\]"
    r"|(?:<\|start\|>assistant(?:<\|channel\|>commentary)?|<\|channel\|>commentary|(?<!\s)"
    r"|(?<=`\s))"
    r"\s*+to=functions\.(?=\w)|<\|channel\|>commentary\s++to=(?=\w)"
)
_MARK = re.compile(
    rf"(?<!`)(?:{_MARKS})|^[^\S\n]*+(?:{_TAGS}|<function(?:=|\sname=)|<invoke name="
    r"|```tool_code(?=\n))"
    rf"|(?<!`)(?:{_TAGS})(?=\s*[\[{{<])",
    re.MULTILINE,
)
_NOISE = re.compile(
    rf"(?:\s|{_TAGS}|(?!<\|(?:start|channel)\|>)(?:{_SPECIAL})|{_ENDS}|```\w*|[,;])+"
)
_TOKEN = re.compile(rf"{_SPECIAL}|</?\uff5c|\[(?:ARGS|CALL_ID)\](?=\s*[\w{{])")
_AT_END = re.compile(rf"(?<!\s)(?:\s*+(?:{_ENDS}))++\s*+")
_FENCE = re.compile("```")
_FENCED = re.compile(r"```\w*\s*")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_REMAINS = re.compile(r"\{\s*[\"'\u201c]|</tool_call|</function|</invoke|<arg_")
_NAMED = re.compile(r"[\"'](?:name|tool|tool_name)[\"']\s*:\s*(?=[\"'](?P<name>[\w.-]{1,80})[\"'])")
_HAS_ARGUMENTS = re.compile(r"[\"'](?:arguments|parameters)[\"']\s*:")
_BARE = re.compile(
    r"\s*+(?P<read>\[?+)\s*+(?P<name>[A-Za-z_][\w.]{0,79})(?:\(|\s*+\{)|\s*+(?P<gemma>call:\w)"
)
_TAGS_END = re.compile(rf"\s*</(?:{_DSML})?(?:function|invoke|tool_call)>")
_PARAMETER = re.compile(
    rf"\s*<(?:{_DSML})?param(?:eter)?(?:=| name=\")(?P<name>[\w.-]{{1,80}})\"?"
    r"(?: string=\"(?P<string>true|false)\")?>\n?"
    rf"(?P<text>.*?)\n?</(?:{_DSML})?param(?:eter)?>"
    r"|\s*<arg_key>(?P<key>[^<]{1,80}+)</arg_key>\s*+<arg_value>(?P<value>.*?)</arg_value>",
    re.DOTALL,
)
_GEMMA = re.compile(r"\s*+(?:<\|tool_call>|<start_function_call>)?+\s*+call:")
_QUOTED = re.compile(r"<escape>(.*?)<escape>|<\|\"\|>(.*?)<\|\"\|>", re.DOTALL)
_PYTHON = re.compile(r"\s*+[\[,]?+\s*+(?P<name>[A-Za-z_][\w.]{0,79})\(")
_PRINTED = re.compile(r"(?<=```tool_code\n)print\((.*\))\)(?=\s*```)")
"""How Gemini writes a call in code."""
_LIST_ENDS = re.compile(r"\s*+,?+\s*+\]")
_AS_WRITTEN = Scope(lambda _: "", {}, lambda text: text, {}, ())


def _json_at(text: str, at: int, name: str, _tools: Tools) -> Found:
    """The arguments are JSON."""
    value, end = decode(text, at)
    return [(name, value)], end


def _tags_at(text: str, at: int, name: str, tools: Tools) -> Found:
    """Each argument is a text between tags, whose type the tool knows; or they are
    JSON. A tag ends the call.
    """
    fields: Any = {}
    if text[at : at + 1] == "{":
        fields, at = decode(text, at)
    while True:
        parameter = _PARAMETER.match(text, at)
        if parameter is None:
            break
        field = parameter["name"] or (parameter["key"] or "").strip()
        written = parameter["text"] or parameter["value"] or ""
        if field in fields:
            raise Unreadable(f"{format_value(field)} stands twice in one call")
        fields[field] = _typed(written, field, tools.get(name, {}), parameter["string"])
        at = parameter.end()
    end = _TAGS_END.match(text, at)
    if end is None:
        raise Unreadable(
            f"{format_value(text[at:][:80])} stands where a parameter or the end is expected"
        )
    return [(name, fields)], end.end()


def _python_at(text: str, at: int, _name: str, _tools: Tools) -> Found:
    """A call with arguments by name, or a list of them, as the lines of a plan write them."""
    is_list = text.startswith("[", at)
    calls: list[tuple[str, Any]] = []
    while is_list or not calls:
        head = _PYTHON.match(text, at)
        if head is None:
            break
        read = _named_arguments_at(text, head.end())
        if read is None:
            raise Unreadable(
                f"{format_value(text[at:][:80])} is no list of calls with arguments by name"
            )
        arguments, at = read
        name = head["name"].removesuffix(".call").removeprefix("default_api.")
        calls.append((name, arguments))
    if calls and not is_list:
        return calls, at
    ended = _LIST_ENDS.match(text, at)
    if not calls or ended is None:
        raise Unreadable(f"{format_value(text[at:][:80])} stands in a list of calls")
    return calls, ended.end()


def _named_arguments_at(text: str, at: int) -> tuple[dict[str, Any], int] | None:
    """Return the arguments of a call in Python, behind its parenthesis, and where the call ends;
    None if they cannot be read, or not all have names.
    """
    written = CallText()
    try:
        end = written.take(text, at)
        if end is None:
            return None
        arguments = arguments_of(parse_call(written.python), _AS_WRITTEN)
    except Unreadable:
        return None
    if arguments.ordered:
        return None
    return arguments.by_name, end


def _objects_at(text: str, at: int, _name: str, tools: Tools) -> Found:
    """Calls as JSON, each with its name and arguments."""
    value, end = decode(text, at)
    if isinstance(value, dict) and list(value) == ["tool_calls"]:
        value = value["tool_calls"]
    items = [value]
    if isinstance(value, list):
        items = value
    calls: list[tuple[str, Any]] = []
    for item in items:
        call = call_in(item, 0)
        if call is not None and not call.fields:
            calls.append((call.name, call.arguments))
        elif isinstance(item, dict) and len(item) == 1 and item.keys() <= tools.keys():
            calls += item.items()
        else:
            raise Unreadable(
                f"{format_value(text[at:end][:80])} stands where `name` and `arguments` are "
                "expected"
            )
    return calls, end


class Form(NamedTuple):
    """A way to write calls: what stands before the arguments, with the call's
    name, and what reads them.
    """

    head: re.Pattern[str]
    arguments: Callable[[str, int, str, Tools], Found]


FORMS = {
    "Qwen Coder, Llama": Form(re.compile(rf"<function(?:=\"?|\sname=\"){_N}\"?>\s*"), _tags_at),
    "MiniMax, DeepSeek DSML": Form(re.compile(rf"<(?:{_DSML})?invoke name=\"{_N}\">\s*"), _tags_at),
    "GLM": Form(re.compile(rf"{_N}\s*(?=<arg_key>|</tool_call>)"), _tags_at),
    "DeepSeek": Form(
        re.compile(rf"(?:function)?(?:{_SEP})?{_N}(?:{_SEP})?\s*(?:```json\s*)?(?=\{{)"), _json_at
    ),
    "Kimi K2": Form(re.compile(rf"{_N}:\d+\s*<\|tool_call_argument_begin\|>\s*"), _json_at),
    "Mistral": Form(re.compile(rf"{_N}\s*(?:\[CALL_ID\]\w*\s*)?(?:\[ARGS\]\s*)?(?=\{{)"), _json_at),
    "harmony": Form(
        re.compile(
            rf"(?:<\|start\|>assistant)?(?:<\|channel\|>\w+)?\s*+to={_N}\s*+"
            r"(?:<\|channel\|>\w+)?\s*+"
            r"(?:(?:<\|constrain\|>)?json)?\s*+<\|message\|>\s*+"
        ),
        _json_at,
    ),
    "Gemma": Form(re.compile(rf"call:{_N}(?=\{{)"), _json_at),
    "LFM2, Llama 4": Form(re.compile(r"(?=\[?\s*[A-Za-z_][\w.]{0,79}\()(?P<name>)"), _python_at),
    "Hermes, Command-R": Form(re.compile(r"(?=[\[{])(?P<name>)"), _objects_at),
}  # fmt: skip


_ARGUMENTS_OF = re.compile(
    r"[\"']\w{0,20}?(?:arguments|args|param(?:eter)?s|inputs?|variables|kwargs"
    r"|tool_uses)\\{0,3}[\"']\s*+:",
    re.IGNORECASE,
)
"""A key with arguments, also in JSON that stands in a text of JSON."""
_ASKED = re.compile(
    r"^[^\w\n`]{0,8}(?:(?:action|call|calling|tool|function|tool_call"
    r"|function_call)s?[^\w\n]{1,6})*"
    r"(?P<name>[\w.-]{1,80}+)[^\w\n`(\[{]{0,6}(?:[(\[{]\s*+(?:[\"'{\[\u201c]|\w{1,40}\s*+[=:]|\)))",
    re.IGNORECASE | re.MULTILINE,
)
"""A row that begins with a name and arguments in brackets, whatever stands around the name."""
_ACTION = re.compile(
    r"^(?:[^\S\n]|[*#>])*+(?:action|\u884c\u52a8|\u52a8\u4f5c|\uc561\uc158"
    r"|\u30a2\u30af\u30b7\u30e7\u30f3)[*\s]*+[:\uff1a][*\s`\"']*+"
    r"(?P<name>[\w.-]{1,80}+)|\bFUNCTION\W{1,4}(?P<marked>[\w.-]{1,80}+)",
    re.IGNORECASE | re.MULTILINE,
)
_TAGGED = re.compile(
    r"<[\w:-]*(?:call|tool|function|invoke|action)[\w:-]*\b[^<>\n]{0,200}>{0,3}"
    r"(?:\s*+<[\w:-]+>)?\s*+\"?(?P<name>[\w.-]{1,80})",
    re.IGNORECASE,
)
_ELEMENT = re.compile(
    r"^[^\S\n]*+<(?P<name>[\w.-]{1,80})(?:\s++\w++=[\"'][^<>\n]{0,200})?\s*+/?>", re.MULTILINE
)
"""A row that begins with a tag of this name, as in `<search><query>a</query></search>`."""
_CLOSED = re.compile(
    r"^[^\S\n]*+\[/(?P<name>[\w.-]{1,80}+)\]|\[/(?P<closed>[\w.-]{1,80}+)\][^\S\n]*+$"
    r"|\A\s*+\[(?:[^\[\]\n]{0,40}[\s:])?(?P<noted>[\w.-]{1,80})\]\s*+\Z"
    r"|^[^\S\n]*+\[(?:tool|function)_calls?\s*+[:=]\s*+(?P<begun>[\w.-]{1,80})\]",
    re.MULTILINE,
)
"""Tags in brackets that end or begin a call, and a note in them that is the whole reply,
as in `[used: search]`.
"""
_LAST_FENCE = re.compile(
    r"```\w*+[^\S\n]*+\n\s*+(?:print\(\s*+)?(?:await\s++)?"
    r"(?P<name>[\w.-]{1,80})\([^\n]*\)[^\S\n]*+\n\s*+```\s*+\Z"
)
"""Code at the end of a reply that is a call and nothing else."""
_LAST_LIST = re.compile(r"\[\s*+(?P<name>[\w.-]{1,80}+)\([^\[\]\n]*+(?<=\))\]\s*+\Z")
"""Calls as Python lists them, at the end of a reply."""
_TAG_NAME = re.compile(
    r"<[\w:-]*(?:call|tool|function|invoke|action)[\w:-]*\s[^<>\n]{0,80}?=[\"']?"
    r"(?P<name>[\w.-]{1,80})"
)


_THOUGHT_ROW = re.compile(
    r"^[^\S\n]*+[*#>_]{0,4}\s?thought[*_]{0,2}\s?:", re.IGNORECASE | re.MULTILINE
)
_ACTION_ROW = re.compile(
    r"^[^\S\n]*+[*#>_]{0,4}\s?action[*_]{0,2}\s?:[*_`\"'\s]*+(?:functions\.)?"
    r"(?P<name>[\w.-]{1,80}+)",
    re.IGNORECASE | re.MULTILINE,
)
_NO_TOOLS = ("None", "Finish", "finish")
"""Names of actions that are no tools, behind a thought that begins a reply."""
_ACTION_INPUT = re.compile(
    r"^[^\S\n]*+[*#>_]{0,4}\s?action[ _]input[*_]{0,2}\s?:", re.IGNORECASE | re.MULTILINE
)
_ACTION_WITH_INPUT = re.compile(
    r"^[^\S\n]*+[*#>_]{0,4}\s?action[*_]{0,2}\s?:[^\n]++\n\s*+[*#>_]{0,4}\s?action[ "
    r"_]input[*_]{0,2}\s?:",
    re.IGNORECASE | re.MULTILINE,
)
"""An action and its input in two rows."""
_ACTION_OBJECT = re.compile(
    r"\s*+(?:(?:[*#>_]{0,4}\s?(?:thought|action)\b[^{]{0,2000}+)"
    r"|```\w*\s*+)?\{\s*+[\"']action[\"']\s*+:[^{}]{0,200}?[\"']action_input[\"']\s*+:",
    re.IGNORECASE,
)
"""What LangChain's agents for chats write in place of rows, also to give the answer."""
_NAME_ALONE = re.compile(
    r"\{\s*+[\"'](?:name|tool|tool_name)[\"']\s*+:\s*+[\"'](?P<name>[\w.-]{1,80}+)[\"']\s*+\}"
)
"""A call without arguments, as Ollama leaves it in the text."""
_MARKS_ALONE = re.compile(r"[\s{}\[\]\"':,]++")
_RESULT = re.compile(
    r"^[^\S\n]*+<(?:tool|function)_(?:response|result|output)s?\b", re.IGNORECASE | re.MULTILINE
)
_ELSEWHERE = re.compile(
    r"^[^\S\n]*+<(?:attempt_completion|ask_followup_question|use_mcp_tool)>", re.MULTILINE
)
"""Calls that Cline and its kin want as tags, also to give the answer."""
_ARGUMENT = re.compile(r"</?arg_(?:key|value)>")
_PARTS = ("tool_call", "function", "invoke", "parameter")
"""Tags of calls: one that closes and was never opened is what is left of a call."""
_OPENED = re.compile(r"<(tool_call|function|invoke|parameter)\b")
_CLOSED_ROW = re.compile(
    r"^[^\S\n]*+</(?P<first>tool_call|function|invoke|parameter)>"
    r"|</(?P<last>tool_call|function|invoke|parameter)>[^\S\n]*+(?=$|</)",
    re.MULTILINE,
)
"""Such a tag where a call would have it: at the beginning of a row or at its
end, not in a sentence.
"""


def left_of_calls(text: str, tools: Tools) -> str:
    """Return what in the answer of a model with tools is left of a call or of its result, "" if
    there is nothing: rows of ReAct (arXiv 2210.03629), a result that no tool has given, and tags
    that close what was never opened.

    Minutes have rows for actions too, so one counts if it names a tool, or has its input in a
    row of its own. A tag counts at the beginning or the end of a row: in the midst of a
    sentence it is told of.
    """
    shown = _without_code(text)
    thought = _THOUGHT_ROW.search(shown)
    if thought is not None:
        names = list(tools)
        is_first = not shown[: thought.start()].strip()
        if is_first:
            names += _NO_TOOLS
        if _names_action(shown, thought.end(), names):
            return "an action in words"
    if _ACTION_WITH_INPUT.search(shown):
        return "an action in words"
    if _ACTION_OBJECT.match(text):
        return "an action in JSON"
    if _MARKS_ALONE.fullmatch(text) and flaw(text):
        return "no word"
    if _RESULT.search(shown):
        return "a result that no tool has given"
    tag = _ARGUMENT.search(shown) or _ELSEWHERE.search(shown)
    if tag is not None:
        return f"`{tag[0].strip()}`"
    opened = _OPENED.findall(shown)
    closed = [row["first"] or row["last"] for row in _CLOSED_ROW.finditer(shown)]
    for part in _PARTS:
        is_unopened = shown.count(f"</{part}>") > opened.count(part)
        if is_unopened and part in closed:
            return f"`</{part}>`"
    return ""


def _without_code(text: str) -> str:
    """Return a text without the code in it; one that is code as a whole stays."""
    if _FENCED.match(text.lstrip()):
        return text
    return _CODE.sub("", text)


def _names_action(text: str, start: int, names: Sequence[str]) -> bool:
    """Whether a row behind `start` is an action of ReAct: one of these
    names, or one with an input.
    """
    if _ACTION_INPUT.search(text, start):
        return True
    for found in _ACTION_ROW.finditer(text, start):
        name = found["name"].rstrip(".")
        if name in names:
            return True
    return False


def asked_in(text: str, tools: Tools) -> str:
    """Return the tool that a text asks for in a way that is none of a chat template's,
    "" if it asks for none.

    It looks for the names of tools where a call would have them: before brackets at the beginning
    of a row, behind `Action:`, in a tag, in code that ends the text, and in JSON that is the whole
    text. A tool that a sentence mentions is none that it asks for.
    """
    shown = _without_code(text)
    asked = chain(
        _ASKED.finditer(shown),
        _ACTION.finditer(shown),
        _TAGGED.finditer(shown),
        _TAG_NAME.finditer(shown),
        _ELEMENT.finditer(shown),
        _CLOSED.finditer(shown),
        _LAST_FENCE.finditer(text),
        _LAST_LIST.finditer(text),
    )
    for match in asked:
        for group in match.groupdict().values():
            name = (group or "").removeprefix("functions.")
            if name and name in tools:
                return name
    whole = _FENCED.sub("", text.strip()).strip("`").strip()
    if whole.startswith(("{", "[", '"')) and _ARGUMENTS_OF.search(whole):
        for tool in tools:
            if re.search(_named(tool), whole):
                return tool
        return ""
    only = _NAME_ALONE.fullmatch(whole)
    if only is not None and only["name"] in tools:
        return only["name"]
    return ""


def _named(tool: str) -> str:
    return rf"[\"'](?:functions\.)?{re.escape(tool)}\\{{0,3}}[\"']"


def mark_of_call(text: str) -> int | None:
    """Return where in a text the first written call begins, None if there is none. In
    code, one is only shown.
    """
    opening = _FENCED.match(text, len(text) - len(text.lstrip()))
    fences = [fence.end() for fence in _FENCE.finditer(text)]
    for found in _MARK.finditer(text):
        before = bisect_right(fences, found.start())
        if before % 2 == 0:
            return found.start()
        if opening and opening.end() >= found.start():
            return found.start()
    return None


def calls_of(text: str, tools: Tools) -> tuple[str, list[JsonCall]]:
    """Return (words, calls) of a whole reply, without the special tokens that end it.
    Raises only Unreadable.
    """
    whole = len(text)

    def last_removed(tokens: re.Match[str]) -> str:
        if tokens.end() == whole:
            return ""
        return tokens[0]

    text = _AT_END.sub(last_removed, text)
    begins = mark_of_call(text)
    if begins is not None:
        words = text[:begins]
        ticks = words.replace("```", "").count("`")
        is_code_open = ticks % 2 == 1
        if is_code_open or _REMAINS.search(words):
            raise _unreadable(text)
        calls, behind = written_calls(text[begins:], tools)
        return f"{words.strip()}\n{behind}".strip(), calls
    calls = _bare_calls(text, tools)
    if calls:
        return "", calls
    if not text.lstrip().startswith(("{", "[")):
        token = _TOKEN.search(_CODE.sub("", text))
        if token:
            shown = format_value(token[0])
            raise Unreadable(
                f"{shown} is a special token; leave it out, or write it between backticks"
            )
    return text, []


def written_calls(text: str, tools: Tools) -> tuple[list[JsonCall], str]:
    """Return (calls, text behind them) of a text that begins with a mark. Raises
    Unreadable; nothing else.
    """
    text = _PRINTED.sub(r"\1", text)
    calls: list[JsonCall] = []
    position = 0
    why = ""
    if _GEMMA.match(text):  # whose texts stand between special tokens
        text = _QUOTED.sub(_as_json, text)
    while True:
        # The first call is marked, and so is a later one behind a token that begins it.
        is_marked = not calls
        noise = _NOISE.match(text, position)
        if noise:
            position = noise.end()
            is_marked = is_marked or noise[0].rstrip().endswith("start|>")
        try:
            found, position = _next(text, position, tools, marked=is_marked)
        except Unreadable as error:
            why = f": {error}"
            break
        if not found:
            break
        for name, arguments in found:
            calls.append(JsonCall(len(calls) + 1, name, arguments))
    if why or not calls:
        raise _unreadable(text, why)
    behind = text[position:]
    if _REMAINS.search(text, position) or mark_of_call(behind) is not None:
        raise _unreadable(text)
    return calls, behind.strip()


def _as_json(quoted: re.Match[str]) -> str:
    """Return a text between Gemma's tokens as JSON writes it."""
    text = quoted[2]
    if text is None:
        text = quoted[1]
    return json.dumps(text)


def _next(text: str, at: int, tools: Tools, *, marked: bool) -> Found:
    """Return the calls that stand at a place, and where they end; none if what stands there is
    none, or is Python that is not `marked`. Raises Unreadable.
    """
    for form in FORMS.values():
        head = form.head.match(text, at)
        if head is not None and (marked or form.arguments is not _python_at):
            return form.arguments(text, head.end(), head["name"], tools)
    return [], at


def _bare_calls(text: str, tools: Tools) -> list[JsonCall]:
    """Return the calls that a whole text is without a mark, in JSON or as Python lists
    them. Raises Unreadable.
    """
    bare = _BARE.match(text)
    if bare and (bare["gemma"] or bare["name"] in tools):
        if not bare["gemma"] and not bare["read"]:
            raise _unreadable(text)
    elif not _is_json_of_call(text, tools):
        return []
    calls, behind = written_calls(text, tools)
    if behind:
        raise _unreadable(text)
    for call in calls:
        if call.name not in tools:
            raise _unreadable(text)
    return calls


def _is_json_of_call(text: str, tools: Tools) -> bool:
    """Whether a text has JSON that names a tool: with arguments, or with a flaw, so
    that it has to be told of.
    """
    if not any(found["name"] in tools for found in _NAMED.finditer(text)):
        return False
    if _HAS_ARGUMENTS.search(text):
        return True
    return text.lstrip().startswith(("{", "[")) and flaw(text) != ""


def _unreadable(text: str, why: str = "") -> Unreadable:
    return Unreadable(
        f"{format_value(text[:80])} looks like a call of a tool, and cannot be read{why}"
    )


def _typed(text: str, name: str, schema: Schema, is_text: str | None) -> Any:
    """Return an argument as its type wants it: a text as it was written, all else as JSON."""
    fields = schema.get("properties") or {}
    defs = json_schema.definitions(schema)
    types = json_schema.types_of(fields.get(name), defs) or ("string",)
    if is_text == "true" or (is_text is None and "string" in types):
        return text
    with suppress(Unreadable):
        return decode_whole(text)
    return text
