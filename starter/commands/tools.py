"""`weft tools`: what a plan may call."""

import argparse

from starter.catalogue import Catalogue, read_catalogue
from starter.exits import Exit
from starter.printable import fit, flat
from starter.terminal import Terminal

WIDTH = 100


async def run(_: argparse.Namespace, terminal: Terminal) -> Exit:
    """Write the tools with their effects and arguments; as JSON with their whole schemas."""
    catalogue = await read_catalogue()
    if terminal.output == "json":
        terminal.answer_json(catalogue.tools)
    elif terminal.output == "jsonl":
        for tool in catalogue.tools:
            terminal.answer_json(tool)
    else:
        terminal.answer(tools_text(catalogue, terminal.width or WIDTH))
    return Exit.ANSWER


def tools_text(catalogue: Catalogue, width: int) -> str:
    """Return two lines a tool: name, effect and arguments, then what it does."""
    lines = []
    for tool in catalogue.tools:
        schema = tool.get("schema") or {}
        needed = schema.get("required", ())
        arguments = ", ".join(name if name in needed else f"{name}?" for name in schema.get("properties", {}))
        effect = fit(str(tool.get("effect", "")), 8)
        lines.append(fit(f"{tool['name']}({arguments})", width - 10) + f"  {effect}")
        lines.append("    " + fit(flat(str(tool.get("description", ""))), width - 4))
    return "\n".join(lines)
