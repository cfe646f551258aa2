"""Text from anywhere, made safe and short for people to read, and rid of what a model only
thought. Nothing raises.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Any

from sennit.workflows.plan.limits import (
    MAX_NAMES_CHARACTERS,
    MAX_SENTENCE_CHARACTERS,
    MAX_VALUE_CHARACTERS,
)

_COMPARED_NAMES = 1_000
_MAX_WRITTEN_BITS = 200
"""Longer numbers are not written out."""

_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"
_CONTROL = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
_SHORT = r"\x1b[ -/]*[0-~]"
_ESCAPES = re.compile(f"{_STRING}|{_CONTROL}|{_SHORT}")
_RETURNS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
DIRECTION_MARKS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HIDDEN = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ud800-\udfff{DIRECTION_MARKS}]")

_PREFIX = r"(?:[a-z]{1,12}[:_]|[a-z]{1,12}\d[a-z0-9._]{0,8}|ant)?"
"""What models write before the word of a tag: a name as in `<seed:think>` or `<longcat_think>`,
their own name as in `<M2_7think>`, and Claude `<antThinking>`.
"""
_TAGS = rf"{_PREFIX}(?:think|thinking|thoughts?|thought_?process|reasoning|reflection|scratchpad)"
_FIRST_TAGS = (
    rf"{_PREFIX}(?:analysis|planning|reason|rationale|cot|chain_of_thought|inner_?monologue"
    r"|deliberation)"
)
"""Words that a text may have as tags of its own too: they open a thought only where a
reply begins with them.
"""
_PAIRS = {
    "[think]": "[/think]",
    "[thinking]": "[/thinking]",
    "[thought]": "[/thought]",
    "[reasoning]": "[/reasoning]",
    "&lt;think&gt;": "&lt;/think&gt;",
    "&lt;thinking&gt;": "&lt;/thinking&gt;",
    "◁think▷": "◁/think▷",
    "<|start_thinking|>": "<|end_thinking|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|channel>thought": "<channel|>",
}
_CLOSING = rf"</{_TAGS}>|\[BEGIN FINAL RESPONSE\]|" + "|".join(map(re.escape, _PAIRS.values()))
IN_TICKS = r"(?<!`)(?P<ticks>`{1,8})(?!`).*?(?<!`)(?P=ticks)(?!`)"
"""Code in a row. It ends with as many backticks: their number is bounded, so that few
are searched for in vain.
"""
_IN_QUOTES = r"\"(?:[^\"\\]|\\.)*\""
_ANY_TAG = (
    rf"(?P<opens><{_TAGS}>|{'|'.join(map(re.escape, _PAIRS))})|(?P<first><{_FIRST_TAGS}>)"
    rf"|(?P<closes>{_CLOSING})|(?P<final>(?:<\|start\|>assistant)?<\|channel\|>final[^<\n]*"
    r"(?:<\|constrain\|>\w+)?<\|message\|>)"
    r"|(?P<aside>(?:<\|start\|>assistant)?<\|channel\|>(?![^<\n]*\bto=)[^<\n]*<\|message\|>)"
    r"|(?P<frame><\|(?:return|end|(?:START|END)_(?:RESPONSE|TEXT)|CHATBOT_TOKEN|(?:begin"
    r"|end)_of_solution)\|>"
    r"|\[END FINAL RESPONSE\])|(?P<bare>assistantfinal)"
)
"""`bare` is the final channel of harmony where a server has left out the special tokens, but
not the names between.
"""
_FIRST_CHANNEL = re.compile(r"\s*+(?:assistant)?analysis")
"""How a reply in harmony begins where a server has left out the special tokens."""
_CALLS = r"\bto=[\w.-]{1,80}\s?<\|channel\|>"
_TAG = re.compile(rf"(?P<code>{IN_TICKS}|{_CALLS})|{_ANY_TAG}", re.IGNORECASE)
_TAG_IN_JSON = re.compile(rf"(?P<code>{IN_TICKS}|{_CALLS}|{_IN_QUOTES})|{_ANY_TAG}", re.IGNORECASE)
_JSON_ROW = re.compile(r"\s*(?:\[\s*)?[{\"]")
_ASIDE_ENDS = re.compile(r"<\|end\|>|(?=<\|start\|>|<\|channel\|>)")
_FENCE = re.compile(r"\s*+(?P<marks>```++|~~~++)(?P<info>[^`\n]*+)\s*+\Z")
_FENCE_IN_THOUGHT = re.compile(rf"\s*+(?P<marks>```++|~~~++)(?:{_CLOSING})", re.IGNORECASE)
"""The end of a fence, and behind it the end of the thought that it stands in."""


_LEFT_OUT = " [...] "
_SHOWN_THOUGHT = re.compile(
    r"(?s)\A\s*+Thinking\.\.\.[^\S\n]*+\n.*?\n\.\.\.done thinking\.[^\S\n]*+(?:\n|\Z)"
)
"""How the command line of Ollama shows a thought."""
_RESPONSE = re.compile(r"\s*+<(?P<tag>response|answer)>(?P<text>.*)</(?P=tag)>\s*+", re.DOTALL)
"""How Granite and DeepSeek R1-Zero write what stands behind their thoughts."""
_TURN_NAMES = r"(?:assistant|model)"
_TURN_BEGINS = re.compile(
    rf"\A\s*+(?:(?:<\|begin_of_text\|>|<bos>|<s>|<\|begin_of_box\|>|<\|assistant\|>)\s*+"
    rf"|<\|im_start\|>{_TURN_NAMES}\s*+|<start_of_turn>{_TURN_NAMES}\s*+"
    rf"|<\|start_header_id\|>{_TURN_NAMES}<\|end_header_id\|>\s*+)+",
)
TURN_ENDS = (
    r"<\|(?:im_end|eom_id|eot_id|eot|end|endoftext|end_of_text|return|call|END_OF_TURN_TOKEN"
    r"|END_RESPONSE|end_of_box)\|>"
    r"|</s>|<end_of_turn>|<eos>|\[END FINAL RESPONSE\]|<\uff5cend\u2581of\u2581sentence\uff5c>"
    r"|<\|(?:user|observation|begin_of_text)\|>|\]<\]minimax\[>\[(?:</tool_call>)?"
)
"""Special tokens with which chat templates end a turn, or begin the one behind it. MiniMax M3
leaves a piece of a call that it does not make.
"""
_NEXT_TURN = re.compile(
    rf"(?s)(?:{TURN_ENDS})\s*+(?:<\|im_start\|>|<start_of_turn>|<\|start_header_id\|>)(?:user"
    r"|system|tool)\b.*+\Z"
)
_ENDS_OF_TURNS = re.compile(rf"(?<!\s)(?:\s*+(?:{TURN_ENDS}))++\s*+")


def without_frame(text: str) -> str:
    """Return a reply without the special tokens with which a chat template begins and ends it, and
    without a next turn that the model has made up behind them.
    """
    if "<" not in text and "[" not in text:
        return text
    begun = _TURN_BEGINS.sub("", text)
    whole = _NEXT_TURN.sub("", begun)

    # Each row of tokens is read once; a pattern that ends at the end would begin
    # again at each of them.
    def last_removed(tokens: re.Match[str]) -> str:
        if tokens.end() == len(whole):
            return ""
        return tokens[0]

    return _ENDS_OF_TURNS.sub(last_removed, whole)


def clean(text: str) -> str:
    """Return `text` without terminal escapes, control characters and direction marks.
    Line breaks and tabs stay.
    """
    if text.isprintable():
        return text
    without_escapes = _ESCAPES.sub("", text)
    in_lines = _RETURNS.sub("\n", without_escapes)
    return _HIDDEN.sub("", in_lines)


def text_bytes(text: str) -> int:
    """Return how many bytes a text takes in UTF-8, which limits in bytes count. Half a surrogate
    pair, which JSON may hold, counts three.
    """
    return len(text.encode(errors="surrogatepass"))


def one_line(text: str, limit: int | None = None) -> str:
    """Return `text` cleaned, printable and on one line, cut to `limit`
    characters with an ellipsis.
    """
    # To clean all of a long text would take long.
    start = text
    if limit is not None:
        start = text[: 4 * limit]
    if not start.isprintable():
        start = "".join(char for char in clean(start) if char.isprintable() or char.isspace())
    line = " ".join(start.split())
    if limit is None or (len(line) <= limit and len(text) <= 4 * limit):
        return line
    return line[: limit - 1] + "…"


def both_ends(text: str, limit: int) -> str:
    """Return `text` as `one_line` does; of a longer one its beginning and its end, where
    errors say what went wrong.
    """
    if len(text) > 8 * limit:  # to clean all of it would take long
        text = f"{text[: 4 * limit]}{_LEFT_OUT}{text[-4 * limit :]}"
    line = one_line(text)
    if len(line) <= limit:
        return line
    head = (limit - len(_LEFT_OUT)) * 2 // 3
    tail = limit - len(_LEFT_OUT) - head
    beginning = line[:head].rstrip()
    end = line[len(line) - tail :].lstrip()
    return f"{beginning}{_LEFT_OUT}{end}"


def cut(text: str, most: int) -> str:
    """Return `text` in at most so many characters, with an ellipsis where it was cut."""
    if len(text) <= most:
        return text
    return text[: most - 1] + "…"


def printable(text: str, limit: int = MAX_SENTENCE_CHARACTERS) -> str:
    """Return `text` cut to `limit` characters, with each character that does not
    print written as an escape.
    """
    short = cut(text, limit)
    if short.isprintable():
        return short
    return "".join(map(_as_escape, short))


def _as_escape(char: str) -> str:
    if char.isprintable():
        return char
    return ascii(char)[1:-1]


def format_value(value: Any) -> str:
    """Return a value as JSON writes it, short and on one line; of lists and objects
    only what kind they are.
    """
    if isinstance(value, str):
        quoted = printable(value, MAX_VALUE_CHARACTERS).replace('"', '\\"')
        return f'"{quoted}"'
    if value is None or isinstance(value, bool | float):
        return json.dumps(value)
    if isinstance(value, int):
        if value.bit_length() > _MAX_WRITTEN_BITS:
            return f"a number of {value.bit_length()} bits"
        return str(value)
    if isinstance(value, dict):
        if not value:
            return "an empty object"
        return f"an object with {format_names(value, 3)}"
    if isinstance(value, list | tuple):
        if not value:
            return "an empty list"
        return f"a list of {len(value)}"
    return printable(type(value).__name__, MAX_VALUE_CHARACTERS)


def format_name(name: str) -> str:
    return f"`{printable(name, MAX_VALUE_CHARACTERS)}`"


def format_names(names: Iterable[Any], most: int = 20, form: Callable[[Any], str] = str) -> str:
    """Return names as `a, b, c`, at most the first `most`; `none` when there are none.
    `form` gives each its text.
    """
    if not isinstance(names, Collection):
        names = list(names)
    shown = [printable(form(name), MAX_VALUE_CHARACTERS) for name in islice(names, most)]
    text = printable(", ".join(shown), MAX_NAMES_CHARACTERS) or "none"
    if len(names) > most:
        text += f" and {len(names) - most} more"
    return text


def did_you_mean(name: str, names: Collection[str]) -> str:
    """Return `; did you mean ...?` with the most similar name, or nothing.
    Compares 1,000 names at most.
    """
    wanted = name[:80]
    candidates: Collection[str] = names
    if len(names) > _COMPARED_NAMES:
        as_long = [other for other in names if abs(len(other) - len(wanted)) <= 1]
        candidates = as_long[:_COMPARED_NAMES]
    nearest = get_close_matches(wanted, candidates, 1)
    if not nearest:
        return ""
    return f"; did you mean {format_name(nearest[0])}?"


def nearest_or_known(name: str, names: Collection[str]) -> str:
    """Return `; did you mean ...?` with the most similar name, else `; known: ...`."""
    return did_you_mean(name, names) or f"; known: {format_names(names)}"


class ThoughtFilter:
    """Takes a text row by row, each with its line end, and gives back what is no thought.

    Thoughts are what stands between tags such as `<think>` and `</think>`, and channels of harmony
    but the final one. Tags count wherever they stand, but not in code: in a fence, between
    backticks of a row, or in strings of JSON. Servers and chat templates may keep the opening tag
    back: a closing tag that is the first tag of all makes everything before it a thought.
    """

    def __init__(self) -> None:
        # What ends the thought that the rows are in, and the tag that opened it.
        self._closing: re.Pattern[str] | None = None
        self._opened = ""
        # The marks of the code fence that the rows are in, and the first tag in it.
        self._fence = ""
        self._hidden = ""
        # A tag that closes a thought behind text that was none.
        self._stray = ""
        self._begun = False
        self._names_channel: bool | None = None

    @property
    def open(self) -> bool:
        """Whether the next row begins inside a thought."""
        return self._closing is not None

    @property
    def wrong(self) -> str:
        """Why nobody can tell what of the rows so far is a thought, if they are
        all; "" if that is plain.
        """
        if self._closing is not None:
            return f"a thought, `{self._opened}`, is never closed"
        if self._stray:
            return f"`{self._stray}` closes a thought that was never opened"
        if self._fence and self._hidden:
            return f"`{self._hidden}` stands in a code fence that is never closed"
        return ""

    def take(self, row: str) -> tuple[str, bool]:
        """Return what of the row is no thought, and whether all rows before turn out to be one."""
        tags = _TAG_IN_JSON if _JSON_ROW.match(row) else _TAG
        if self._names_channel is None and row.strip():
            self._names_channel = _FIRST_CHANNEL.match(row) is not None
        kept: list[str] = []
        was_thought = False
        is_blank = True
        position = 0
        while position < len(row):
            # Inside a thought nothing counts but its end.
            if self._closing is not None:
                end = self._closing.search(row, position)
                if end is None:
                    break
                position = end.end()
                self._closing = None
                continue

            # Text up to the next tag. A fence begins and ends on a row of its own.
            tag = None
            if not is_blank or not self._fenced(row, position):
                tag = tags.search(row, position)
            if tag is None:
                kept.append(row[position:])
                break
            text = row[position : tag.start()]
            kept.append(text)
            is_blank = is_blank and not text.strip()
            position = tag.end()

            # A tag that closes what was never opened makes all before it a thought,
            # unless a reply had begun.
            if text.strip() and tag["first"]:
                self._begun = True
            closes = tag["closes"] or tag["final"] or (tag["bare"] and self._names_channel)
            if closes and not self._begun:
                kept = []
                was_thought = True
            elif self._is_text(tag):
                kept.append(tag[0])
            elif not tag["frame"] and not tag["final"]:
                self._open(tag)
            if not tag["code"] and not tag["frame"] and (self._names_channel or not tag["bare"]):
                self._begun = True
        return "".join(kept), was_thought

    def _is_text(self, tag: re.Match[str]) -> bool:
        """Whether a tag stands for itself: in code, behind the beginning of a reply, or
        where it closes nothing.
        """
        if tag["closes"] or (tag["bare"] and self._names_channel):
            self._stray = tag[0]
            return True
        return bool(tag["code"] or tag["bare"] or (tag["first"] and self._begun))

    def _open(self, tag: re.Match[str]) -> None:
        self._opened = tag[0]
        if tag["aside"]:
            self._closing = _ASIDE_ENDS
            return
        closing = _PAIRS.get(tag[0].lower(), f"</{tag[0][1:]}")
        self._closing = re.compile(re.escape(closing), re.IGNORECASE)

    def _fenced(self, row: str, position: int) -> bool:
        """Whether what is left of a row stands in a code fence or is one of its ends."""
        fence = _FENCE.match(row, position)
        if not self._fence:
            self._hidden = ""
            if fence is None:
                return False
            self._fence = fence["marks"]
            return True

        # The thought that a fence stands in may end on the row that closes it.
        last = _FENCE_IN_THOUGHT.match(row, position)
        if last and last["marks"].startswith(self._fence):
            self._fence = ""
            return False
        if fence and fence["marks"].startswith(self._fence) and not fence["info"].strip():
            self._fence = ""
        elif not self._hidden:
            tag = _TAG.search(row, position)
            if tag and (tag["opens"] or tag["closes"]):
                self._hidden = tag[0]
        return True


def without_thoughts(text: str) -> str:
    """Return the text of a whole reply without thoughts; nothing if nobody can
    tell what of it is one.
    """
    text = _SHOWN_THOUGHT.sub("", text)
    thoughts = ThoughtFilter()
    kept: list[str] = []
    for row in text.splitlines(keepends=True):
        rest, was_thought = thoughts.take(row)
        if was_thought:
            kept.clear()
        kept.append(rest)
    if thoughts.wrong:
        return ""

    # Behind a thought, some models put their response between tags of its own.
    rest = "".join(kept)
    if rest != text:
        response = _RESPONSE.fullmatch(rest)
        if response is not None:
            return response["text"]
    return rest


def arguments_text(args: dict[str, Any]) -> str:
    """Return arguments in a few words: the first speaks for itself; the rest are named."""
    parts: list[str] = []
    for name, value in islice(args.items(), 10):
        if not parts:
            parts.append(_argument_text(value, 150))
        elif isinstance(value, str):
            parts.append(f"{name}={value[:30]}"[:30])
        else:
            parts.append(f"{name}={_argument_text(value, 30)}"[:30])
    return " ".join(parts)


def _argument_text(value: Any, most: int) -> str:
    if isinstance(value, str):
        value = value[:most]
    return _ENCODER.encode(value)[:most]


_ENCODER = json.JSONEncoder(ensure_ascii=False)
"""Made once: `json.dumps` with an option makes another one each time."""
