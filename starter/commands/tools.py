"""`sennit tools`: what a plan may call."""

import argparse

from starter.client.errors import Exit
from starter.client.text import fit
from starter.commands.command_line import Parser
from starter.plans.catalogue import Catalogue, read_catalogue
from starter.terminal.console import Terminal
from workflows.plan.language.text import one_line
from workflows.plan.programs.stubs import stubs_of


def add_arguments(parser: Parser) -> None:
    parser.describe("", "SENNIT_TOOLS=mytools sennit tools --output json\nsennit tools --stubs")
    stubs_help = "write what programs can call, with its types, for your editor"
    parser.add_argument("--stubs", action="store_true", help=stubs_help)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Write the tools with their effects and arguments; as JSON with their whole schemas."""
    catalogue = await read_catalogue()
    if args.stubs:
        terminal.answer(stubs_of(catalogue.tools).rstrip())
    elif terminal.output == "json":
        terminal.answer_json(catalogue.tools)
    elif terminal.output == "jsonl":
        for tool in catalogue.tools:
            terminal.answer_json(tool)
    else:
        terminal.answer(tools_text(catalogue, terminal.width))
    return Exit.ANSWER


def tools_text(catalogue: Catalogue, width: int | None) -> str:
    """Return a few lines a tool: name, arguments (required ones first), effect, what it does, and any hint."""
    lines = []
    for tool in catalogue.tools:
        schema = tool.get("schema") or {}
        required = schema.get("required", ())
        names = sorted(schema.get("properties", {}), key=lambda name: name not in required)
        arguments = ", ".join(name if name in required else f"{name}?" for name in names)
        call, about = one_line(f"{tool['name']}({arguments})"), one_line(str(tool.get("description", "")))
        if width is not None:
            call, about = fit(call, width - 10), fit(about, width - 4)
        lines += [f"{call}  {fit(str(tool.get('effect', '')), 8)}", f"    {about}"]
        if tool.get("hint"):
            lines.append(f"    {one_line(str(tool['hint']))}")
    return "\n".join(lines)
