"""Which nodes use the same resource, and the locks that keep a write apart from everything else on it.

A tool's catalogue entry names what it uses: `file:{docs}/{path}`, a kind and a key made of arguments and of the run's
folder of documents, or a kind alone, for all of it. A kind that nobody in the plan writes needs no locks. Where the
arguments of every user are known, the lock is that of the key. As soon as one of them is a reference, whose value
comes only when the node runs, all users of the kind share one lock: many readers, or one writer.
"""

import re
from posixpath import normpath
from typing import Any
from unicodedata import normalize

from workflows.plan.language import dependencies
from workflows.plan.language.nodes import Plan, ToolCall

_SLOT = re.compile(r"\{(\w+)\}")
DOCS = "docs"

Locks = dict[str, list[tuple[str, bool]]]


class _Later(Exception):
    """The key depends on a value that is not known yet."""


def slots_of(resource: str) -> list[str]:
    """Return the arguments that the key is made of."""
    return [name for name in _SLOT.findall(resource) if name != DOCS]


def locks_of(plan: Plan, tools: dict[str, dict[str, Any]], docs: str | None) -> Locks:
    """Return the locks of each node by its id, (name, exclusive); nodes without any are left out."""
    uses: list[tuple[str, str, str | None, bool]] = []
    for node in plan.nodes:
        work = dependencies.work_of(node)
        tool = tools.get(work.tool, {}) if isinstance(work, ToolCall) else {}
        if isinstance(work, ToolCall) and tool.get("resource"):
            kind, _, form = tool["resource"].partition(":")
            uses.append((node.id, kind, _key(kind, form, work.args, docs), tool.get("effect") == "write"))
    written = {kind: True for _, kind, _, writes in uses if writes}
    whole = {kind: True for _, kind, key, _ in uses if key is None}
    return {
        name: [(kind if kind in whole else f"{kind}:{key}", writes)]
        for name, kind, key, writes in uses
        if kind in written
    }


def _key(kind: str, form: str, args: dict[str, Any], docs: str | None) -> str | None:
    """Return the key, one for all spellings of a path; None for the whole kind."""
    if not form:
        return None

    def value(found: re.Match[str]) -> str:
        given = (docs or "") if found[1] == DOCS else args.get(found[1])
        if not isinstance(given, str | int) or (found[1] != DOCS and "$" in str(given)):
            raise _Later
        return str(given)

    try:
        text = normalize("NFC", _SLOT.sub(value, form))
    except _Later:
        return None
    return normpath(text) if kind == "file" else text
