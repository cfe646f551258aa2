"""What the model server answers: rules over what it is asked, replies, and every
fault a server can have.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

Fault = Literal[
    "hang",  # takes the request and never answers
    "slow head",  # the head of the answer, a byte at a time
    "hang in stream",  # stops after half of the stream
    "slow loris",  # the stream, a byte at a time
    "cut",  # closes in the middle of the stream
    "reset",  # resets the connection in the middle of the stream
    "huge",  # 50 MB of stream
    "bomb",  # 50 MB of it in gzip
    "html",  # a web page with status 200
    "wrong type",  # the stream as text/plain
    "not utf-8",  # bytes that are no text
    "not json",  # an event that is no JSON
    "odd json",  # an event of another shape
    "error event",  # an error inside the stream
    "no usage",  # a stream without any usage
    "no end",  # a complete reply, and then nothing
]


@dataclass(frozen=True)
class Call:
    """A call of a tool that the model asks for."""

    name: str
    arguments: Any
    id: str = ""


@dataclass(frozen=True)
class Reply:
    """One answer. `status` other than 200 is an error with `text` as its message
    and `code` as its type.

    Pace: seconds to the first token, tokens a second with 0 for all at once, and how the stream is
    cut into writes: by event, into pieces of so many bytes, or at random from a seed. A token is a
    word, or 12 characters of arguments; with `characters` it is so many characters of either.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    refusal: str = ""
    stop: Literal["end", "length"] = "end"
    usage: tuple[int, int] | None = None
    status: int = 200
    code: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    fault: Fault | None = None
    first_token: float = 0.0
    rate: float = 0.0
    characters: int = 0
    cut: Literal["event", "random"] | int = "event"
    seed: int = 0

    @property
    def words(self) -> list[str]:
        """The text in pieces that joined give it again."""
        if self.characters:
            return cut(self.text, self.characters)
        return re.findall(r"\s*\S+|\s+\Z", self.text)


@dataclass(frozen=True)
class Asked:
    """A request as both formats mean it; `turns` are (role, text) with each tool
    result as a turn of `tool`.
    """

    format: Literal["openai", "anthropic"]
    model: str
    system: str
    turns: tuple[tuple[str, str], ...]
    tools: tuple[str, ...]
    schema: dict[str, Any] | None
    stream: bool
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """Everything the model is sent."""
        texts = [text for _, text in self.turns]
        return "\n".join([self.system, *texts])

    @property
    def results(self) -> tuple[str, ...]:
        """The results of tools so far."""
        return tuple(text for role, text in self.turns if role == "tool")


@dataclass
class Rule:
    """Answers requests in whose text `match` is found, or for which it holds;
    `times` limits how often.

    `results` is how many tool results there must be, None for any number. Several replies are given
    in turn, the last one from then on.
    """

    match: str | Callable[[Asked], bool]
    replies: tuple[Reply | Callable[[Asked], Reply], ...]
    times: int | None = None
    results: int | None = None
    used: int = 0

    def takes(self, asked: Asked) -> bool:
        """Whether this rule answers."""
        if self.times is not None and self.used >= self.times:
            return False
        if self.results is not None and len(asked.results) != self.results:
            return False
        if callable(self.match):
            return self.match(asked)
        found = re.search(self.match, asked.text, re.DOTALL)
        return found is not None

    def reply(self, asked: Asked) -> Reply:
        """Return the next reply."""
        last = len(self.replies) - 1
        reply = self.replies[min(self.used, last)]
        self.used += 1
        if callable(reply):
            return reply(asked)
        return reply


def rule(
    match: str | Callable[[Asked], bool],
    *replies: Reply | str | Callable[[Asked], Reply],
    **fields: Any,
) -> Rule:
    """Return a rule; a text is a reply with that text."""
    given: list[Reply | Callable[[Asked], Reply]] = []
    for reply in replies:
        if isinstance(reply, str):
            reply = Reply(text=reply)
        given.append(reply)
    return Rule(match, tuple(given), **fields)


def load_rules(path: Path) -> list[Rule]:
    """Return the rules of a JSON file: a list of `{match, times?, results?, replies:
    [{text, calls, ...}]}`.

    A reply has the fields of `Reply`; a call is `{name, arguments}`; a rule with one reply may
    hold its fields itself.
    """
    return [_rule(entry) for entry in json.loads(path.read_text())]


def _rule(entry: dict[str, Any]) -> Rule:
    # What is no field of a rule is one of its reply.
    rest = dict(entry)
    match = rest.pop("match", "")
    counts = {name: rest.pop(name) for name in ("times", "results") if name in entry}
    replies = rest.pop("replies", [rest])
    return rule(match, *map(_reply, replies), **counts)


def _reply(entry: dict[str, Any]) -> Reply:
    fields = dict(entry)
    fields["calls"] = tuple(Call(**call) for call in entry.get("calls", ()))
    fields["usage"] = None
    if entry.get("usage"):
        fields["usage"] = tuple(entry["usage"])
    return Reply(**fields)


def cut(text: str, size: int) -> list[str]:
    """Return a text in pieces of so many characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def paced(reply: Reply, first_token: float, rate: float) -> Reply:
    """Return a reply with the server's own pace where it has none."""
    return replace(reply, first_token=reply.first_token or first_token, rate=reply.rate or rate)


def pieces(data: bytes, cut: Literal["event", "random"] | int, seed: int) -> Iterator[bytes]:
    """Yield `data` cut into pieces."""
    if cut == "event":
        yield data
        return
    chance = random.Random(seed)  # noqa: S311  # it only cuts replies into pieces
    start = 0
    while start < len(data):
        size = cut if isinstance(cut, int) else chance.randint(1, 40)
        yield data[start : start + size]
        start += size
