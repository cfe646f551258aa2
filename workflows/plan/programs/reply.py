"""The program in a planner's reply."""

import ast
import json
import re
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from textwrap import dedent
from typing import Any

from sennit.workflows.plan.language.text import clean, format_name, format_names, without_thoughts
from sennit.workflows.plan.programs.parsing import parsed
from sennit.workflows.plan.programs.source import line_of, within
from sennit.workflows.plan.programs.syntax import parameters_of

PROGRAM = "main"
"""The id of a planned program's node."""
_FENCE = re.compile(r"[ \t]*(```+|~~~+)[^`]*\Z")
_FUNCTION = re.compile(r"^[ \t]*(?:async[ \t]+)?def\b", re.MULTILINE)
_MAIN = re.compile(r"^[ \t]*async[ \t]+def[ \t]+main\b", re.MULTILINE)


_TAGS = ("code", "python", "program", "script", "execute", "tool_call")
_CODE = ("code", "script", "program", "python")
_CALLS = ("arguments", "parameters")
"""Under which the wrapper of a call has the code."""
_STRAIGHT = str.maketrans("\u201c\u201d\u2018\u2019\u00a0\u202f\u3000", "\"\"''   ")
_CODE_INDENT = 4
"""A row that is indented so much more than a fence is text in it."""
_END_MARK = "<end_code>"
"""What some models write behind the fence that ends their code."""
_ENDS = 10
"""So many rows are looked at as the end of one fence."""


class UnreadableProgram(ValueError):
    """A reply that is not one whole script. The text tells the planner what to write instead."""


def script_in(reply: str) -> str:
    """Return the script that a reply holds: bare, in code fences or tags, or as the code of a JSON object. Several that
    together define each name once are one. Whether it is Python is for the check.

    Raises UnreadableProgram.
    """
    text = _in_json(clean(without_thoughts(reply)))
    scripts = [text] if _is_main(text) else _scripts_in(text)
    whole = _joined(list(map(_straight, scripts)))
    if not _FUNCTION.search(whole):
        raise UnreadableProgram("the reply holds no script; write one with `async def main(goal: str)`")
    return whole.strip() + "\n"


def _is_main(text: str) -> bool:
    """Whether a text is Python as it stands, with all that looks like a fence in its strings."""
    return bool(_MAIN.search(text) and _tree(text).body)


def _scripts_in(text: str) -> list[str]:
    """Return the scripts that a text has in fences and tags, and what stands around them if that is one. Raises
    UnreadableProgram.
    """
    fenced, rest, is_open = fenced_in(text, _TAGS, lambda inside: bool(_tree(inside).body))
    if is_open:
        raise UnreadableProgram("the code fence is never closed; write the whole script again, and close it")
    scripts = list[str]()
    for each in map(_in_json, fenced):
        is_wrapped = _FUNCTION.search(each) and not _tree(each).body and fenced_in(each, _TAGS)[0]
        scripts += _scripts_in(each) if is_wrapped else [each] if _FUNCTION.search(each) else []
    return [*scripts, rest] if _MAIN.search(rest) or not fenced else scripts


def _in_json(text: str) -> str:
    """Return the code of a JSON object that has code under one of its usual names, also as what a call is given; any
    other text as it is.
    """
    if not text.lstrip().startswith("{"):
        return text
    try:
        found = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    for name in _CALLS:
        inner = found.get(name) if isinstance(found, dict) else None
        if isinstance(inner, dict) and any(_MAIN.search(str(inner.get(code))) for code in _CODE):
            found = inner
    codes = [found[name] for name in _CODE if isinstance(found.get(name), str)] if isinstance(found, dict) else []
    return clean(codes[0]) if len(codes) == 1 else text


def _straight(script: str) -> str:
    """Return a script that is Python only with straight quotes and plain spaces with these."""
    straight = script.translate(_STRAIGHT)
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


def fenced_in(
    text: str, tags: Collection[str] = (), is_whole: Callable[[str], bool] = lambda _: True
) -> tuple[list[str], str, bool]:
    """Return what stands in code fences, or between rows of one of the `tags`, each text once; what stands around them,
    and whether one is never closed. A fence ends where what is in it is whole, or else at the first row that may end
    it. One that opens behind everything else closes what has no other.
    """
    found, rest, last = dict[str, None](), list[str](), -1
    rows = text.rstrip().split("\n")
    for number, line in enumerate(rows):
        bare, begins = line.strip(" \t"), _FENCE.match(line)
        if number <= last:
            continue
        if begins:
            end, most = begins[1], begins.start(1) + _CODE_INDENT
        elif bare[:1] == "<" and bare[1:-1] in tags and bare[-1:] == ">":
            end, most = f"</{bare[1:]}", len(text)
        else:
            rest.append(f"{line}\n")
            continue
        last = _end_of(rows, number + 1, end, most, is_whole)
        if last < 0:
            is_empty = number == len(rows) - 1 and bare == end
            return list(found), "".join(rest), not is_empty
        found[_inside(rows, number + 1, last)] = None
    return list(found), "".join(rest), False


def _end_of(rows: list[str], first: int, end: str, most: int, is_whole: Callable[[str], bool]) -> int:
    """Return the row that ends what begins at a row, -1 if none does."""
    ends = (
        number
        for number, row in enumerate(rows[first:], first)
        if len(row) - len(row.lstrip()) < most and _ends(row.strip(" \t"), end, number == len(rows) - 1)
    )
    some = list(islice(ends, _ENDS))
    return next((number for number in some if is_whole(_inside(rows, first, number))), some[0] if some else -1)


def _ends(bare: str, end: str, is_last: bool) -> bool:
    """Whether a row is the end; the last row may be a tag that is cut."""
    is_cut = is_last and bare.startswith("</") and end.startswith(bare)
    return bare.removesuffix(_END_MARK).rstrip() == end or is_cut


def _inside(rows: list[str], first: int, last: int) -> str:
    return dedent("".join(f"{row}\n" for row in rows[first:last]))


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
    yield from foreign_models(script, models)


def foreign_models(script: str, models: Collection[str]) -> Iterator[str]:
    """Yield each call of a script that may ask a model which serves no role of the run."""
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
