"""Questions to a person at a terminal: what a typed line means for a blocked run, and reading
lines from the terminal.

Reading never holds the event loop or a thread, so a question can be withdrawn and Ctrl-C
works while it stands.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sennit.starter.client.errors import Refused
from sennit.starter.terminal.console import Terminal
from sennit.workflows.messages.result import BlockedOn
from sennit.workflows.plan.language.json_schema import typed_value
from sennit.workflows.plan.language.text import one_line

Ask = Callable[[str], Awaitable[str | None]]
"""Shows a prompt to a person and returns the line they typed, or None if there will be none."""

_CHOICES = {
    "approve": {"yes": "approve", "no": "reject"},
    "raise_budget": {"yes": "raise_budget", "finish": "finish"},
    "retry_node": {"retry": "retry_node", "skip": "skip_node", "finish": "finish"},
    "finish": {"finish": "finish"},
}
"""For each update that a blocked run proposes, the words that a person may type and the
updates they stand for.
"""


def question(item: BlockedOn) -> str:
    """Return the prompt for what a run waits for."""
    node = one_line(item.node)
    if item.update == "answer":
        return f"answer for {node}: "
    if item.why == "plan":
        return "run this plan? [y]es, [n]o, [n]o and what to do instead: "
    if item.update == "approve":
        if item.parts:
            return f"approve all {item.parts} of {node}? [y]es, [n]o and why, [o]ne by one: "
        return f"approve {node}? [y]es, [n]o and why: "
    if item.update == "raise_budget":
        limits = ", ".join(f"{name} {limit}" for name, limit in item.example.items())
        return f"raise the budget ({limits})? [y]es, [f]inish with what there is: "
    if item.update == "finish":
        return "[f]inish with what there is: "
    if not item.node:
        return "[r]etry now, [f]inish with what there is: "
    again = "[r]etry (it may write again)" if "repeat_effect" in item.example else "[r]etry"
    return f"{node}: {again}, [s]kip, [f]inish with what there is: "


async def ask_line(ask: Ask, item: BlockedOn, notice: Callable[[str], None]) -> str | None:
    """Return what a person types about a question, None if they leave. An object they type
    field by field, or whole.
    """
    value = None
    if item.update == "answer":
        value = item.example.get("value")
    if not isinstance(value, dict) or not (value or item.full):
        return await ask(question(item))
    notice(
        f"{one_line(item.node)} takes an object: answer field by field, or type it whole as JSON"
    )
    typed: dict[str, Any] = {}
    needed = [path for path, _ in _fields(value, ())]
    for path, example in _fields(item.full or value, ()):
        is_optional = path not in needed
        shown = one_line(json.dumps(example, ensure_ascii=False))
        hint = f"such as {shown}"
        if is_optional:
            hint += "; Enter leaves it out"
        name = one_line(".".join(path))
        line = await _ask_field(ask, f"{name} ({hint}): ", notice, is_optional=is_optional)
        if line is None:
            return None
        if not line.strip():
            continue

        # In place of the first field, a person may type the object whole.
        if not typed:
            whole = value_of(line)
            if isinstance(whole, dict) and value.keys() <= whole.keys():
                return line
        _set_field(typed, path, value_of(line, example))
    return json.dumps(typed)


async def _ask_field(
    ask: Ask, prompt: str, notice: Callable[[str], None], *, is_optional: bool
) -> str | None:
    """Return the line that a person types for a field, asked again while one
    that is needed is empty.
    """
    line = await ask(prompt)
    while line is not None and not line.strip() and not is_optional:
        notice("a value is needed; Ctrl-D leaves the run waiting")
        line = await ask(prompt)
    return line


def _fields(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path of each field of an object, and of the objects in it, with
    an example of its value.
    """
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _fields(inner, (*path, name))
    else:
        yield path, value


def _set_field(value: dict[str, Any], path: tuple[str, ...], field: Any) -> None:
    for name in path[:-1]:
        value = value.setdefault(name, {})
    value[path[-1]] = field


def one_by_one(item: BlockedOn, line: str) -> bool:
    """Whether a person wants to decide about the parts of a question by themselves."""
    return bool(item.parts) and line.strip().lower() in ("o", "one", "one by one")


def decision(item: BlockedOn, line: str) -> tuple[str, dict[str, Any]]:
    """Return the update, with its fields, that a typed line stands for; raises Refused
    if it stands for none.
    """
    text = line.strip()
    if item.update == "answer":
        if not text:
            raise Refused("an answer is needed; Ctrl-D leaves the run waiting")
        value = value_of(text, item.example.get("value"))
        return "answer", {"node": item.node, "value": value}

    # A word may be shortened to its first letter.
    typed_word, _, reason = text.partition(" ")
    update = None
    words: list[str] = []
    choices = _CHOICES.get(item.update, _CHOICES["retry_node"])
    for word, meaning in choices.items():
        if meaning == "skip_node" and not item.node:
            continue  # the run waits as a whole: there is nothing to skip
        words.append(word[0])
        if typed_word.lower() in (word, word[0]):
            update = meaning
    if update is None:
        way = ""
        if item.update == "raise_budget":
            way = f", or send other limits: {item.command}"
        raise Refused(f"type {' or '.join(words)}{way}; Ctrl-D leaves the run waiting")

    if update == "finish":
        return update, {}
    fields: dict[str, Any] = {}
    if update == item.update or not item.node:
        fields |= item.example
    if item.node:
        fields["node"] = item.node
    if update == "reject" and reason.strip():
        fields["reason"] = reason.strip()
    return update, fields


def value_of(text: str, example: Any = None) -> Any:
    """Return a typed value: JSON where it is JSON, else text. It stays text if the
    expected `example` is text.
    """
    types: frozenset[str] = frozenset()
    if isinstance(example, str):
        types = frozenset({"string"})
    return typed_value(text, types)


@dataclass(slots=True)
class Typist:
    """The person at the terminal on standard input."""

    terminal: Terminal
    _typed: bytearray = field(default_factory=bytearray)

    async def ask(self, prompt: str) -> str | None:
        """Show `prompt` and return the next line without its end; None at the
        end of input (Ctrl-D).
        """
        self.terminal.err.write(prompt)
        self.terminal.err.flush()
        descriptor = self.terminal.stdin.fileno()
        try:
            while b"\n" not in self._typed:
                if not await self._read_more(descriptor):
                    self.terminal.err.write("\n")
                    return None
        except asyncio.CancelledError:
            self.terminal.err.write("\n")
            raise
        line, _, rest = bytes(self._typed).partition(b"\n")
        self._typed[:] = rest
        return line.decode(errors="replace")

    async def _read_more(self, descriptor: int) -> bool:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(descriptor, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(descriptor)
        piece = os.read(descriptor, 65536)
        self._typed += piece
        return bool(piece)
