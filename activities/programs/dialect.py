"""Where Monty is not Python, and what it leaves out of its errors."""

import ast
from collections.abc import Collection, Iterator

from workflows.plan.programs.source import parsed


def with_texts(script: str, exceptions: Collection[str]) -> str:
    """Return a script with the same lines that gives its exceptions texts, which is all that Monty lets them carry:
    `KeyError(5)` becomes `KeyError(str(5))`.
    """
    try:
        calls = [call for call in _calls(parsed(script)) if call.func.id in exceptions]  # type: ignore[attr-defined]
    except SyntaxError:
        return script
    body, lines = script.encode(), [0, *(place for place, byte in enumerate(script.encode(), 1) if byte == ord("\n"))]
    edits: list[tuple[int, bytes]] = []
    for call in calls:
        first, last = call.args[0], call.args[-1]
        is_one = first is last and not isinstance(first, ast.Starred)
        edits.append((lines[first.lineno - 1] + first.col_offset, b"str(" if is_one else b"str(("))
        edits.append((lines[(last.end_lineno or 1) - 1] + (last.end_col_offset or 0), b")" if is_one else b",))"))
    for place, text in sorted(edits, reverse=True):
        body = body[:place] + text + body[place:]
    try:
        parsed(changed := body.decode())
    except (SyntaxError, UnicodeDecodeError):
        return script
    return changed


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of plain names that are given anything but one text; places in f-strings are not reliable."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.JoinedStr):
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args and not node.keywords:
            first = node.args[0]
            is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
            if len(node.args) > 1 or not (is_text or isinstance(first, ast.JoinedStr | ast.GeneratorExp)):
                yield node


def endless_loop(script: str) -> tuple[str, int]:
    """Return which loop of a script may not end, in words and as a line: one of those that never wait for a call."""
    try:
        nodes = list(ast.walk(parsed(script)))
    except SyntaxError:
        nodes = []
    loops = [node for kind in (ast.While, ast.For) for node in nodes if isinstance(node, kind)]
    lines = [node.lineno for node in loops if not any(isinstance(part, ast.Await) for part in ast.walk(node))]
    if len(lines) == 1:
        return "", lines[0]
    return f"a loop on one of the lines {', '.join(map(str, lines[:5]))} does not end; " if lines else "", 0
