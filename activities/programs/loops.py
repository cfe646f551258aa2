"""Which loop of a script keeps it from an end."""

import ast

from sennit.workflows.plan.programs.source import source_of


def endless_loop(script: str) -> tuple[str, int]:
    """Return which loop of a script may not end, in words and as a line: one of those that never wait for a call."""
    try:
        source = source_of(script)
    except SyntaxError:
        return "", 0
    waits = {around for node in source.nodes if isinstance(node, ast.Await) for around in source.around(node)}
    loops = [node for kind in (ast.While, ast.For) for node in source.nodes if isinstance(node, kind)]
    lines = [node.lineno for node in loops if node not in waits]
    if len(lines) == 1:
        return "", lines[0]
    return f"a loop on one of the lines {', '.join(map(str, lines[:5]))} does not end; " if lines else "", 0
