"""The program in a planner's reply."""

import ast
import json
import re
from collections.abc import Collection, Iterator
from textwrap import dedent
from typing import Any

from sennit.workflows.plan.language.text import clean, format_name, format_names, without_thoughts
from sennit.workflows.plan.programs.endings import within
from sennit.workflows.plan.programs.source import line_of, parsed
from sennit.workflows.plan.programs.syntax import parameters_of

PROGRAM = "main"
"""The id of a planned program's node."""
_FENCE = re.compile(r"[ \t]*(```+|~~~+)[^`]*\Z")
_FUNCTION = re.compile(r"^[ \t]*(?:async[ \t]+)?def\b", re.MULTILINE)
_MAIN = re.compile(r"^[ \t]*async[ \t]+def[ \t]+main\b", re.MULTILINE)


_TAGS = ("code", "python", "program", "script")
_CODE = ("code", "script", "program", "python")
_QUOTES = str.maketrans("\u201c\u201d\u2018\u2019", "\"\"''")
_CODE_INDENT = 4
"""A row that is indented so much more than a fence is text in it."""


class UnreadableProgram(ValueError):
    """A reply that is not one whole script. The text tells the planner what to write instead."""


def script_in(reply: str) -> str:
    """Return the script that a reply holds: bare, in code fences or tags, or as the code of a JSON object. Several that
    together define each name once are one. Whether it is Python is for the check.

    Raises UnreadableProgram.
    """
    text = _in_json(clean(without_thoughts(reply)))
    fenced, rest, is_open = fenced_in(text, _TAGS)
    if is_open:
        raise UnreadableProgram("the code fence is never closed; write the whole script again, and close it")
    scripts = [script for each in fenced if _FUNCTION.search(script := _in_json(each))]
    scripts += [text] if _MAIN.search(rest) or not fenced else []
    whole = _joined(list(map(_straight, scripts)))
    if not _FUNCTION.search(whole):
        raise UnreadableProgram("the reply holds no script; write one with `async def main(goal: str)`")
    return whole.strip() + "\n"


def _in_json(text: str) -> str:
    """Return the code of a JSON object that has code under one of its usual names; any other text as it is."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        found = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    codes = [found[name] for name in _CODE if isinstance(found.get(name), str)] if isinstance(found, dict) else []
    return clean(codes[0]) if len(codes) == 1 else text


def _straight(script: str) -> str:
    """Return a script that is Python only with straight quotes with these."""
    straight = script.translate(_QUOTES)
    return straight if not _tree(script).body and _tree(straight).body else script


def _joined(scripts: list[str]) -> str:
    """Return one script of several. Raises UnreadableProgram if one defines what another does."""
    names = [name for script in scripts for name in _defined(script)]
    if len(names) > len(set(names)) or (len(scripts) > 1 and not all(_tree(script).body for script in scripts)):
        raise UnreadableProgram("the reply holds several scripts; write one, in one code fence")
    return "\n\n".join(script.strip("\n") for script in scripts)


def _defined(script: str) -> Iterator[str]:
    """Yield the functions and classes that a script defines, and the constants, each as often."""
    for node in _tree(script).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        for target in node.targets if isinstance(node, ast.Assign) else ():
            yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))


def fenced_in(text: str, tags: Collection[str] = ()) -> tuple[list[str], str, bool]:
    """Return what stands in code fences, or between rows of one of the `tags`, each text once; what stands around them,
    and whether one is never closed.
    """
    found, rest, inside, end, most = dict[str, None](), list[str](), list[str](), "", 0
    for line in text.split("\n"):
        bare = line.strip(" \t")
        begins = _FENCE.match(line) if not end else None
        if begins:
            end, inside, most = begins[1], [], begins.start(1) + _CODE_INDENT
        elif not end and bare[:1] == "<" and bare[1:-1] in tags and bare[-1:] == ">":
            end, inside, most = f"</{bare[1:]}", [], len(line)
        elif end and bare == end and len(line) - len(line.lstrip()) < most:
            found[dedent("".join(inside))], end = None, ""
        else:
            (inside if end else rest).append(f"{line}\n")
    return list(found), "".join(rest), bool(end)


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
    mains = [node for node in _tree(script).body if isinstance(node, ast.AsyncFunctionDef) and node.name == "main"]
    if mains and not any(_gives(part) for statement in mains[-1].body for part in within(statement)):
        yield f"line {line_of(mains[-1])}: `main` returns nothing; end it with `return` and the answer to the goal"
    for node in ast.walk(_tree(script)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "llm":
            for keyword in node.keywords:
                named = keyword.value.value if isinstance(keyword.value, ast.Constant) else ""
                if keyword.arg is None or (keyword.arg == "model" and named is not None and named not in models):
                    known = format_names(sorted(models))
                    yield f"line {line_of(node)}: `llm` may ask {known} alone; leave `model` and `**` out"


def _gives(node: ast.AST) -> bool:
    """Whether it ends a function with a value, or with an error."""
    is_none = isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and node.value.value is None
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Return) and node.value is not None and not is_none)


def _tree(script: str) -> ast.Module:
    """Return the tree of a script, an empty one if it is no Python."""
    try:
        return parsed(script)
    except SyntaxError:
        return ast.Module([], [])
