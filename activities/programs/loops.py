"""Which loop of a script keeps it from an end."""

import ast

from sennit.workflows.plan.programs.source import source_of


def endless_loop(script: str) -> tuple[str, int]:
    """Return which loop of a script may not end, in words and as a line: one of those that
    never wait for a call.
    """
    try:
        source = source_of(script)
    except SyntaxError:
        return "", 0
    waits = set[ast.AST]()
    for node in source.nodes:
        if isinstance(node, ast.Await):
            waits.update(source.around(node))
    lines = list[int]()
    for kind in (ast.While, ast.For):
        for node in source.nodes:
            if isinstance(node, kind) and node not in waits:
                lines.append(node.lineno)
    if not lines:
        return "", 0
    if len(lines) == 1:
        return "", lines[0]
    shown = ", ".join(map(str, lines[:5]))
    return f"a loop on one of the lines {shown} does not end; ", 0
