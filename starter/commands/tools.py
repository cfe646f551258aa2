"""`sennit tools`: what a plan may call. With a NAME it describes one tool, with `try NAME` it calls
that once, with `login SERVER` a person logs in at an MCP server.
"""

import argparse
import json
import shlex
from typing import Any

from sennit.starter.client.errors import Exit, Refused, SennitError
from sennit.starter.commands.command_line import Parser
from sennit.starter.plans.catalogue import Catalogue, log_in, read_catalogue, try_tool
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.text import fit
from sennit.workflows.plan.language.problems import no_such_tool
from sennit.workflows.plan.language.text import clean, one_line
from sennit.workflows.plan.programs.stubs import stubs_of
from sennit.workflows.views.example import example_value


def add_arguments(parser: Parser) -> None:
    examples = 'sennit tools calculate\nsennit tools try calculate --arg "expression=6650 - 6400"'
    parser.describe("[NAME | try NAME | login SERVER]", examples)
    about = "a tool to describe; after `try` the one to call, once and in a process of its own; "
    about += "after `login` the MCP server at which you log in with a browser"
    parser.add_argument("words", nargs="*", metavar="NAME", help=about)
    stubs_help = "write what programs can call, with its types, for your editor"
    parser.add_argument("--stubs", action="store_true", help=stubs_help)
    group = parser.add_argument_group("with try")
    group.add_argument(
        "--arg", action="append", default=[], metavar="NAME=VALUE", help="an argument; repeatable"
    )
    group.add_argument(
        "--docs", metavar="DIR", help="its folder of documents (default: SENNIT_DOCS)"
    )
    group.add_argument("--yes", action="store_true", help="call a tool that writes")


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Write the tools with their effects and arguments, or one with its schema; as JSON
    with their whole schemas.
    """
    if args.words[:1] == ["try"]:
        return await _try(args, terminal)
    if args.words[:1] == ["login"]:
        return await _log_in(args, terminal)
    if len(args.words) > 1:
        raise Refused(f"one NAME at a time; to call a tool: sennit tools try {args.words[0]}")
    catalogue = await read_catalogue()
    for reason in sorted(set(catalogue.unavailable.values())):
        terminal.say(f"unavailable: {reason}")
    if args.words:
        return _describe(args.words[0], catalogue, terminal)
    for name, reason in catalogue.left_out.items():
        terminal.say(f"off: {name}: {reason}")
    if catalogue.note:
        terminal.say(f"note: {catalogue.note}")
    for rule in catalogue.rules:
        terminal.say(f"rule: {rule}")
    if args.stubs:
        terminal.answer(stubs_of(catalogue.tools).rstrip())
    else:
        terminal.results(tools_text(catalogue, terminal.width), catalogue.tools)
    return Exit.ANSWER


async def _try(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Write what one call returns to standard output. Raises Refused if it was not made,
    SennitError if it failed.
    """
    if len(args.words) != 2:
        raise Refused(
            "name one tool: sennit tools try NAME --arg NAME=VALUE; sennit tools lists them"
        )
    name = args.words[1]
    options = [f"--arg={word}" for word in args.arg]
    if args.docs:
        options.append(f"--docs={args.docs}")
    if args.yes:
        options.append("--yes")

    reply = await try_tool(name, options)
    if "refused" in reply:
        raise Refused(clean(str(reply["refused"])))
    if "error" in reply:
        error = reply["error"]
        if error["stack"]:
            terminal.notice(error["stack"].rstrip())
        raise SennitError(f"{name} failed: {error['type']}: {clean(error['message'])}")
    result = reply["result"]
    text = json.dumps(result, ensure_ascii=False, indent=2)
    if isinstance(result, str):
        text = clean(result)
    terminal.result(text, result)
    return Exit.ANSWER


async def _log_in(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Have a person log in at an MCP server. Workers of the local stack use the login from
    their next request on.
    """
    if len(args.words) != 2:
        raise Refused("name one server of SENNIT_MCP: sennit tools login SERVER")
    name = args.words[1]
    await log_in(name)
    terminal.result(f"logged in at {name}", {"server": name, "logged_in": True})
    return Exit.ANSWER


def _describe(name: str, catalogue: Catalogue, terminal: Terminal) -> Exit:
    tools = {tool["name"]: tool for tool in catalogue.tools}
    tool = tools.get(name)
    if tool is None:
        why = catalogue.why_off(name)
        if why:
            raise Refused(f"{name} is off here: {why}")
        raise Refused(no_such_tool(name, tools))
    text = tool_text(tool, terminal.columns)
    terminal.result(text, {**tool, "example": example_of(tool)})
    return Exit.ANSWER


def tools_text(catalogue: Catalogue, width: int | None) -> str:
    """Return a few lines a tool: name, arguments (required ones first), effect, what
    it does, and any hint.
    """
    lines = []
    for tool in catalogue.tools:
        call = one_line(f"{tool['name']}({_arguments(tool)})")
        about = one_line(str(tool.get("description", "")))
        if width is not None:
            call = fit(call, width - 10)
            about = fit(about, width - 4)
        effect = fit(str(tool.get("effect", "")), 8)
        lines.append(f"{call}  {effect}")
        lines.append(f"    {about}")
        if tool.get("hint"):
            lines.append(f"    {one_line(str(tool['hint']))}")
    return "\n".join(lines)


def _arguments(tool: dict[str, Any]) -> str:
    """Return the names of a tool's arguments: `path, lines?`, with a mark at
    each that may be left out.
    """
    schema = tool.get("schema") or {}
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    names = [name for name in properties if name in required]
    names += [f"{name}?" for name in properties if name not in required]
    return ", ".join(names)


def tool_text(tool: dict[str, Any], width: int) -> str:
    """Return all of a tool: what it does and how it may be called, the
    schemas, and an example call.
    """
    effect = tool["effect"]
    is_write = effect == "write"
    if is_write:
        repeats = "may be repeated" if tool.get("idempotent") else "is not repeated"
        effect += f" (asks for approval; {repeats})"
    facts = {
        "effect": effect,
        "timeout": f"{tool['timeout']:g} s",
        "queue": tool["queue"],
        "resource": tool.get("resource"),
        "hint": tool.get("hint"),
    }
    lines = [tool["name"], f"    {one_line(str(tool.get('description', '')))}"]
    lines += [f"{name:<9} {one_line(str(value))}" for name, value in facts.items() if value]
    for title, schema in (
        ("arguments", tool.get("schema")),
        ("returns", tool.get("output_schema")),
    ):
        if schema:
            lines.append(title)
            for line in _pretty(schema, width - 4).splitlines():
                lines.append(f"    {line}")

    # The same call in a plan, and in a shell.
    example = example_of(tool)
    written = json.dumps(example, ensure_ascii=False)
    words = ["sennit", "tools", "try", tool["name"]]
    words += [f"--arg={name}={_word(value)}" for name, value in example.items()]
    if is_write:
        words.append("--yes")
    lines.append("example")
    lines.append(f"    - {{id: a, kind: tool, tool: {tool['name']}, args: {written}}}")
    lines.append(f"    {shlex.join(words)}")
    return clean("\n".join(lines))


def example_of(tool: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call that the schema allows; none where no such value is found."""
    value = example_value(tool.get("schema"))
    if not isinstance(value, dict):
        return {}
    return value


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _pretty(value: Any, width: int) -> str:
    """Return JSON with short objects and lists on one line each."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= width or not isinstance(value, dict | list) or not value:
        return line
    if isinstance(value, dict):
        entries = [
            f"{json.dumps(name)}: {_pretty(entry, width - 2)}" for name, entry in value.items()
        ]
        opening, closing = "{", "}"
    else:
        entries = [_pretty(entry, width - 2) for entry in value]
        opening, closing = "[", "]"
    body = ",\n".join(entries).replace("\n", "\n  ")
    return f"{opening}\n  {body}\n{closing}"
