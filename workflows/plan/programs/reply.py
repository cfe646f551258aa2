"""The program in a planner's reply."""

import ast
import re
from collections.abc import Collection, Iterator
from textwrap import dedent
from typing import Any

from workflows.plan.language.text import clean, format_name, format_names, without_thoughts
from workflows.plan.programs.source import line_of, parsed
from workflows.plan.programs.syntax import parameters_of

PROGRAM = "main"
"""The id of a planned program's node."""
_FENCE = re.compile(r"[ \t]*(```+|~~~+)[^`]*\Z")
_FUNCTION = re.compile(r"^[ \t]*(?:async[ \t]+)?def\b", re.MULTILINE)
_MAIN = re.compile(r"^[ \t]*async[ \t]+def[ \t]+main\b", re.MULTILINE)


class UnreadableProgram(ValueError):
    """A reply that is not one whole script. The text tells the planner what to write instead."""


def script_in(reply: str) -> str:
    """Return the script that a reply holds, in a code fence or bare. Whether it is Python is for the check.

    Raises UnreadableProgram.
    """
    text = clean(without_thoughts(reply))
    fenced, rest, is_open = _fenced(text)
    if is_open:
        raise UnreadableProgram("the code fence is never closed; write the whole script again, and close it")
    scripts = [*fenced, *([text] if _MAIN.search(rest) or not fenced else [])]
    mains = [node for node in _tree(scripts[0]).body if getattr(node, "name", "") == "main"]
    if len(scripts) > 1 or len(mains) > 1:
        raise UnreadableProgram("the reply holds several scripts; write one, in one code fence")
    if not _FUNCTION.search(scripts[0]):
        raise UnreadableProgram("the reply holds no script; write one with `async def main(goal: str)`")
    return scripts[0].strip() + "\n"


def _fenced(text: str) -> tuple[list[str], str, bool]:
    """Return what stands in code fences, each text once, what stands around them, and whether one is never closed."""
    found, rest, inside, fence = dict[str, None](), list[str](), list[str](), ""
    for line in text.split("\n"):
        begins = _FENCE.match(line) if not fence else None
        if begins:
            fence, inside = begins[1], []
        elif fence and line.strip(" \t") == fence:
            found[dedent("".join(inside))], fence = None, ""
        else:
            (inside if fence else rest).append(f"{line}\n")
    return list(found), "".join(rest), bool(fence)


def program_plan_of(script: str, goal: str = "$goal") -> dict[str, Any]:
    """Return the plan of a planned program. Its `main` gets the goal if it asks for it."""
    arguments = {"goal": goal} if "goal" in parameters_of(script) else {}
    node = {"id": PROGRAM, "kind": "program", "script": script, "arguments": arguments}
    return {"nodes": [node], "answer": f"${PROGRAM}"}


def planned_problems(script: str, models: Collection[str]) -> Iterator[str]:
    """Yield what a planner may not write though people may: inputs of `main`, and models that serve no role."""
    for name, parameter in parameters_of(script).items():
        if parameter.required and name != "goal":
            yield f"`main` is given `goal` alone, not {format_name(name)}"
    for node in ast.walk(_tree(script)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "llm":
            for given in node.keywords:
                named = given.value.value if isinstance(given.value, ast.Constant) else ""
                if given.arg is None or (given.arg == "model" and named is not None and named not in models):
                    known = format_names(sorted(models))
                    yield f"line {line_of(node)}: `llm` may ask {known} alone; leave `model` and `**` out"


def _tree(script: str) -> ast.Module:
    """Return the tree of a script, an empty one if it is no Python."""
    try:
        return parsed(script)
    except SyntaxError:
        return ast.Module([], [])
