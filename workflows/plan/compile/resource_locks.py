"""Works out the locks of calls: they keep a write apart from all other calls on the same resource.

A tool's catalogue entry names the resource that the tool uses: `file:{docs}/{path}`, a kind and a
key made of arguments and of the run's folder of documents, or a kind alone, for all of it. A call's
locks depend on nothing but its own arguments, because nodes may be added to the plan later. A call
whose arguments are known takes the lock of its key. A call with a reference, whose value comes only
when it runs, takes the whole kind. Both see each other by two locks of the kind:

| call | `file` | `file:a.md` | `file*` |
|---|---|---|---|
| a read of `a.md` | shared | shared | |
| a write of `a.md` | shared | exclusive | apart from reads of the whole kind |
| a read of the whole kind | shared | | shared |
| a write of the whole kind | exclusive | | |
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
    """Return the arguments of which a key is made."""
    return [name for name in _SLOT.findall(resource) if name != DOCS]


def locks_of(work: ToolCall, tools: dict[str, dict[str, Any]], docs: str | None) -> list[Lock]:
    """Return the locks of a call: none if no tool of the run writes a resource of its kind."""
    tool = tools.get(work.tool, {})
    kind, form = _resource(tool)
    if not kind or not _is_written(kind, tools):
        return []
    is_write = _is_write(tool)
    whole_kind = f"{kind}*"
    key = _key(kind, form, work.args, docs)
    if key is None:
        if is_write:
            return [(kind, EXCLUSIVE)]
        return [(kind, SHARED), (whole_kind, SHARED)]
    if is_write:
        return [(kind, SHARED), (f"{kind}:{key}", EXCLUSIVE), (whole_kind, APART)]
    return [(kind, SHARED), (f"{kind}:{key}", SHARED)]


def _resource(tool: dict[str, Any]) -> tuple[str, str]:
    """Return the kind of the resource that a tool uses, and the form of its key;
    empty if it uses none.
    """
    resource = tool.get("resource") or ""
    kind, _, form = resource.partition(":")
    return kind, form


def _is_written(kind: str, tools: dict[str, dict[str, Any]]) -> bool:
    """Whether a tool of the run writes a resource of this kind."""
    for tool in tools.values():
        if _is_write(tool):
            written, _ = _resource(tool)
            if written == kind:
                return True
    return False


def _is_write(tool: dict[str, Any]) -> bool:
    return tool.get("effect") == "write"


def _key(kind: str, form: str, args: dict[str, Any], docs: str | None) -> str | None:
    """Return the key, one for all spellings of a path; None for the whole kind."""
    if not form:
        return None
    known: dict[str, str] = {DOCS: docs or ""}
    for name in slots_of(form):
        value = args.get(name)
        if not isinstance(value, str | int) or "$" in str(value):
            return None  # the value is known only when the node runs
        known[name] = str(value)
    filled = _SLOT.sub(lambda slot: known[slot[1]], form)
    text = normalize("NFC", filled)
    if kind == "file":
        return normpath(text)
    return text
