"""What a prompt's inputs hold, found by shape whatever the plan looks like: facts, calculations, passages, text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from activities.providers.offline.sentences import Passage, passage_of

_GIVEN = "input"
"""The name, no node's, under which the run's own inputs come."""
_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class Fact:
    """A found or missing fact, as `extract` gives it, and the node it came from."""

    node: str
    value: dict[str, Any]

    @property
    def found(self) -> bool:
        """Whether there is a value or a quotation."""
        return self.value.get("found") is True

    def text(self, name: str) -> str:
        """Return a field as text, empty when it is missing."""
        found = self.value.get(name)
        return found if isinstance(found, str) else ""


@dataclass(slots=True)
class Material:
    """The inputs of a node, sorted. `lost` names nodes that gave nothing: (status, error)."""

    facts: list[Fact] = field(default_factory=list)
    results: dict[str, tuple[str, float]] = field(default_factory=dict)
    passages: list[Passage] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    lost: dict[str, tuple[str, str]] = field(default_factory=dict)
    truncated: bool = False

    @property
    def readable(self) -> list[Passage]:
        """All that can be quoted: passages, and any other text as a passage without path."""
        return [*self.passages, *(Passage("", node, text, node) for node, text in self.texts)]

    def why_lost(self, node: str) -> str:
        """Return how a node ended that gave nothing."""
        status, error = self.lost.get(node, ("missing", ""))
        return f"{node} was {status}{f' ({error})' if error else ''}"


def material_of(inputs: Mapping[str, Any]) -> Material:
    """Sort a node's inputs. What the run itself was given counts only where nothing else is."""
    found = Material()
    for name, value in inputs.items():
        if name != _GIVEN:
            _sort(value, name, found, 0)
    if found == Material():
        _sort(inputs.get(_GIVEN), _GIVEN, found, 0)
    return found


def _sort(value: Any, node: str, into: Material, depth: int) -> None:
    if depth > _DEEPEST or value is None or isinstance(value, bool):
        return
    if isinstance(value, list):
        for item in value:
            _sort(item, node, into, depth + 1)
    elif isinstance(value, dict):
        _sort_object(value, node, into, depth)
    elif not isinstance(value, str) or value.strip():
        into.texts.append((node, value if isinstance(value, str) else f"{value:,}"))


def _sort_object(value: dict[str, Any], node: str, into: Material, depth: int) -> None:
    passage = passage_of(value, node)
    if {"id", "status", "value"} <= set(value) and isinstance(value["id"], str) and isinstance(value["status"], str):
        if value["status"] == "succeeded":
            _sort(value["value"], value["id"], into, depth + 1)
        else:
            into.lost[value["id"]] = value["status"], str(value.get("error") or "")
    elif isinstance(value.get("found"), bool):
        into.facts.append(Fact(node, value))
    elif isinstance(value.get("expression"), str) and isinstance(value.get("value"), int | float):
        into.results[node] = value["expression"], value["value"]
    elif passage is not None:
        into.passages.append(passage)
    elif isinstance(value.get("items"), list):
        into.truncated = into.truncated or value.get("truncated") is True
        _sort(value["items"], node, into, depth + 1)
    else:
        for name, item in value.items():
            if name not in ("query", "bytes", "path", "score", "count", "evidence"):
                _sort(item, node, into, depth + 1)
