"""Which nodes use the same resource, and the locks that keep a write apart from everything else on it.

A tool's catalogue entry names what it uses: `file:{docs}/{path}`, a kind and a key made of arguments and of the run's
folder of documents, or a kind alone, for all of it. A node's locks depend on nothing but its own arguments, because the
plan may go on with nodes that nobody knows of yet. Where the arguments are known, it takes the lock of the key; where
one of them is a reference, whose value comes only when the node runs, that of the whole kind. So that these see each
other, a node with a key also has its share of two locks of the kind: of `file`, which only a write without a key has
alone, and if it writes of `file*`, which writes with a key and reads without one never have together.
"""

import re
from posixpath import normpath
from typing import Any
from unicodedata import normalize

from sennit.workflows.plan.compile.execution_plan import APART, EXCLUSIVE, SHARED
from sennit.workflows.plan.language.nodes import ToolCall

_SLOT = re.compile(r"\{(\w+)\}")
DOCS = "docs"

Lock = tuple[str, int]


def slots_of(resource: str) -> list[str]:
    """Return the arguments that the key is made of."""
    return [name for name in _SLOT.findall(resource) if name != DOCS]


def locks_of(work: ToolCall, tools: dict[str, dict[str, Any]], docs: str | None) -> list[Lock]:
    """Return the locks of a call by what it uses: none if no tool of the run writes a resource of that kind."""
    tool = tools.get(work.tool, {})
    kind, _, form = (tool.get("resource") or "").partition(":")
    if not kind or not any(_writes(each, kind) for each in tools.values()):
        return []
    key, writes = _key(kind, form, work.args, docs), tool.get("effect") == "write"
    if key is None:
        return [(kind, EXCLUSIVE)] if writes else [(kind, SHARED), (f"{kind}*", SHARED)]
    lock = (f"{kind}:{key}", EXCLUSIVE if writes else SHARED)
    return [(kind, SHARED), lock, *([(f"{kind}*", APART)] if writes else [])]


def _writes(tool: dict[str, Any], kind: str) -> bool:
    return tool.get("effect") == "write" and (tool.get("resource") or "").partition(":")[0] == kind


def _key(kind: str, form: str, args: dict[str, Any], docs: str | None) -> str | None:
    """Return the key, one for all spellings of a path; None for the whole kind."""
    if not form:
        return None
    known: dict[str, str] = {DOCS: docs or ""}
    for name in slots_of(form):
        value = args.get(name)
        if not isinstance(value, str | int) or "$" in str(value):
            return None  # it is known only when the node runs
        known[name] = str(value)
    text = normalize("NFC", _SLOT.sub(lambda found: known[found[1]], form))
    return normpath(text) if kind == "file" else text
