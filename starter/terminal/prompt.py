"""Questions to a person at a terminal: what a typed line means for a blocked run, and reading lines from the terminal.

Reading never holds the event loop or a thread, so a question can be withdrawn and Ctrl-C works while it stands.
"""

import asyncio
import json
import os
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Protocol

from starter.client.errors import Refused
from starter.terminal.console import Terminal
from workflows.messages.views import BlockedOn
from workflows.plan.language.text import one_line

Decision = tuple[str, dict[str, Any]]


def question(item: BlockedOn) -> str:
    """Return the prompt for what a run waits for."""
    node = one_line(item.node)
    if item.update == "answer":
        return f"answer for {node}: "
    if item.update == "approve":
        return f"approve {node}? [y]es, [n]o and why: "
    if item.update == "raise_budget":
        return f"raise the budget ({_limits(item)})? [y]es, [f]inish with what there is: "
    return f"{node}: [r]etry, [s]kip, [f]inish with what there is: "


def decision(item: BlockedOn, line: str) -> Decision:
    """Return the update that a typed line stands for; raises Refused when it stands for none."""
    text = line.strip()
    if item.update == "answer":
        if not text:
            raise Refused("an answer is needed; Ctrl-D leaves the run waiting")
        return "answer", {"node": item.node, "value": value_of(text, item.example.get("value"))}
    word, _, rest = text.partition(" ")
    word = word.lower()
    if item.update == "approve":
        return _verdict(item.node, word, rest)
    if item.update == "raise_budget":
        return _raise(item, word)
    if word in ("r", "retry"):
        return "retry_node", {"node": item.node}
    if word in ("s", "skip"):
        return "skip_node", {"node": item.node}
    if word in ("f", "finish"):
        return "finish", {}
    raise Refused("type r, s or f; Ctrl-D leaves the run waiting")


def _verdict(node: str, word: str, reason: str) -> Decision:
    if word in ("y", "yes"):
        return "approve", {"node": node}
    if word in ("n", "no"):
        return "reject", {"node": node, **({"reason": reason.strip()} if reason.strip() else {})}
    raise Refused("type y or n; Ctrl-D leaves the run waiting")


def _limits(item: BlockedOn) -> str:
    return ", ".join(f"{name} {limit}" for name, limit in item.example.items())


def _raise(item: BlockedOn, word: str) -> Decision:
    if word in ("y", "yes"):
        return "raise_budget", dict(item.example)
    if word in ("f", "finish"):
        return "finish", {}
    raise Refused(f"type y or f, or send other limits: {item.command}; Ctrl-D leaves the run waiting")


def value_of(text: str, example: Any = None) -> Any:
    """Return a typed value: JSON where it is JSON, else text. It stays text if the expected `example` is text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, float) and not isfinite(value):
        return text
    return text if isinstance(example, str) and not isinstance(value, str) else value


class Person(Protocol):
    """Somebody who can be asked."""

    async def ask(self, prompt: str) -> str | None:
        """Return a line, or None when there will be none."""


@dataclass(slots=True)
class Typist:
    """The person at the terminal on standard input."""

    terminal: Terminal
    _typed: bytearray = field(default_factory=bytearray)

    async def ask(self, prompt: str) -> str | None:
        """Show `prompt` and return the next line without its end; None at the end of input (Ctrl-D)."""
        self.terminal.err.write(prompt)
        self.terminal.err.flush()
        descriptor = self.terminal.stdin.fileno()
        try:
            while b"\n" not in self._typed:
                if not await self._more(descriptor):
                    self.terminal.err.write("\n")
                    return None
        except asyncio.CancelledError:
            self.terminal.err.write("\n")
            raise
        line, _, rest = bytes(self._typed).partition(b"\n")
        self._typed[:] = rest
        return line.decode(errors="replace")

    async def _more(self, descriptor: int) -> bool:
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
