"""The program in a planner's reply."""

import ast
import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from sennit.workflows.plan.language.text import clean, format_name, format_names, without_thoughts
from sennit.workflows.plan.programs.parsing import names_in, parsed
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
    """Return the script that a reply holds: bare, in code fences or tags, or as the code
    of a JSON object. Several that together define each name once are one. Whether it is
    Python is for the check.

    Raises UnreadableProgram.
    """
    text = _in_json(clean(without_thoughts(reply)))
    scripts = [text]
    if not _is_main(text):
        scripts = _scripts_in(text)
    whole = _joined([_straight(script) for script in scripts])
    if not _FUNCTION.search(whole):
        raise UnreadableProgram(
            "the reply holds no script; write one with `async def main(goal: str)`"
        )
    return whole.strip() + "\n"


def _is_main(text: str) -> bool:
    """Whether a text is Python as it stands, with all that looks like a fence in its strings."""
    return bool(_MAIN.search(text) and _tree(text).body)


def _scripts_in(text: str) -> list[str]:
    """Return the scripts that a text has in fences and tags, and what stands around them if that is
    one. Raises UnreadableProgram.
    """
    fenced, rest, is_open = fenced_in(text, _TAGS, lambda inside: bool(_tree(inside).body))
    if is_open:
        raise UnreadableProgram(
            "the code fence is never closed; write the whole script again, and close it"
        )

    # A fence without a function is an example, or the output of one. A fence may hold
    # others, as in a quoted reply.
    scripts = list[str]()
    for inside in fenced:
        code = _in_json(inside)
        if not _FUNCTION.search(code):
            continue
        if _is_wrapped(code):
            scripts += _scripts_in(code)
        else:
            scripts.append(code)
    if _MAIN.search(rest) or not fenced:
        scripts.append(rest)
    return scripts


def _is_wrapped(text: str) -> bool:
    """Whether a text is no Python, but has fences or tags inside it."""
    if _tree(text).body:
        return False
    fenced, _, _ = fenced_in(text, _TAGS)
    return bool(fenced)


def _in_json(text: str) -> str:
    """Return the code of a JSON object that has code under one of its usual names, also as what a
    call is given; any other text as it is.
    """
    if not text.lstrip().startswith("{"):
        return text
    try:
        holder = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text

    # The text begins with a brace, so that it is an object. A call has its
    # code among its arguments.
    for name in _CALLS:
        arguments = holder.get(name)
        if isinstance(arguments, dict) and _has_main(arguments):
            holder = arguments
    codes: list[str] = []
    for name in _CODE:
        code = holder.get(name)
        if isinstance(code, str):
            codes.append(code)
    if len(codes) != 1:
        return text
    return clean(codes[0])


def _has_main(arguments: dict[str, Any]) -> bool:
    for name in _CODE:
        code = str(arguments.get(name))
        if _MAIN.search(code):
            return True
    return False


def _straight(script: str) -> str:
    """Return a script that is Python only with straight quotes and plain spaces with these."""
    if _tree(script).body:
        return script
    straight = script.translate(_STRAIGHT)
    if _tree(straight).body:
        return straight
    return script


def _joined(scripts: list[str]) -> str:
    """Return one script of several. Raises UnreadableProgram if one defines what another does."""
    names: list[str] = []
    for script in scripts:
        names += _defined(script)
    has_duplicates = len(names) > len(set(names))
    has_broken_part = False
    if len(scripts) > 1:
        has_broken_part = not all(_tree(script).body for script in scripts)
    if has_duplicates or has_broken_part:
        raise UnreadableProgram("the reply holds several scripts; write one, in one code fence")
    return "\n\n".join(script.strip("\n") for script in scripts)


def _defined(script: str) -> Iterator[str]:
    """Yield the functions and classes that a script defines, and the constants, each as often."""
    for node in _tree(script).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from names_in(target)


def fenced_in(
    text: str, tags: Collection[str] = (), is_whole: Callable[[str], bool] = lambda _: True
) -> tuple[list[str], str, bool]:
    """Return what stands in code fences, or between rows of one of the `tags`, each text once;
    what stands around them, and whether one is never closed. A fence ends where what is in it
    is whole, or else at the first row that may end it. One that opens behind everything else
    closes what has no other.
    """
    fenced: dict[str, None] = {}
    rest: list[str] = []
    rows = text.rstrip().split("\n")
    number = 0
    while number < len(rows):
        opening = _opening(rows[number], tags)
        if opening is None:
            rest.append(f"{rows[number]}\n")
            number += 1
            continue
        last = _end_of(rows, number + 1, opening, is_whole)
        if last is None:
            # An opening in the last row may be the end of nothing: the fence that
            # it closes was cut off.
            is_last = number == len(rows) - 1
            is_stray_end = is_last and rows[number].strip(" \t") == opening.end
            return list(fenced), "".join(rest), not is_stray_end
        fenced[_inside(rows, number + 1, last)] = None
        number = last + 1
    return list(fenced), "".join(rest), False


@dataclass(frozen=True, slots=True)
class _Opening:
    """The row that opens a fence or a tag."""

    end: str
    """How the row reads that ends it."""
    indent_limit: int | None
    """A row that is indented so much, or more, does not end it. None is without a limit."""


def _opening(row: str, tags: Collection[str]) -> _Opening | None:
    """Return the fence or the tag that a row opens, None for any other row."""
    fence = _FENCE.match(row)
    if fence is not None:
        return _Opening(fence[1], fence.start(1) + _CODE_INDENT)
    bare = row.strip(" \t")
    is_in_angles = bare[:1] == "<" and bare[-1:] == ">"
    if is_in_angles and bare[1:-1] in tags:
        return _Opening(f"</{bare[1:]}", None)
    return None


def _end_of(
    rows: list[str], start: int, opening: _Opening, is_whole: Callable[[str], bool]
) -> int | None:
    """Return the row that ends what begins at a row, None if none does."""
    ends: list[int] = []
    for number in range(start, len(rows)):
        row = rows[number]
        indent = len(row) - len(row.lstrip())
        if opening.indent_limit is not None and indent >= opening.indent_limit:
            continue
        is_last = number == len(rows) - 1
        if _ends(row.strip(" \t"), opening.end, is_last):
            ends.append(number)
        if len(ends) == _ENDS:
            break

    # A script may have fences in its texts: it ends at the first fence before which it is whole.
    for end in ends:
        if is_whole(_inside(rows, start, end)):
            return end
    if ends:
        return ends[0]
    return None


def _ends(bare: str, end: str, is_last: bool) -> bool:
    """Whether a row is the end; the last row may be a tag that is cut."""
    is_cut = is_last and bare.startswith("</") and end.startswith(bare)
    return bare.removesuffix(_END_MARK).rstrip() == end or is_cut


def _inside(rows: list[str], first: int, last: int) -> str:
    inside = [f"{row}\n" for row in rows[first:last]]
    return dedent("".join(inside))


def program_plan_of(script: str, goal: str = "$goal") -> dict[str, Any]:
    """Return the plan of a planned program. Its `main` gets the goal if it asks for it."""
    arguments = {"goal": goal} if "goal" in parameters_of(script) else {}
    node = {"id": PROGRAM, "kind": "program", "script": script, "arguments": arguments}
    return {"nodes": [node], "answer": f"${PROGRAM}"}


def planned_problems(script: str, models: Collection[str]) -> Iterator[str]:
    """Yield what a planner may not write though people may: inputs of `main`, and
    models that serve no role.
    """
    for name, parameter in parameters_of(script).items():
        if parameter.required and name != "goal":
            yield f"`main` is given `goal` alone, not {format_name(name)}"
    main: ast.AsyncFunctionDef | None = None
    for node in _tree(script).body:
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "main":
            main = node
    if main is not None and not _returns_value(main):
        yield (
            f"line {line_of(main)}: `main` returns nothing; end it with `return` and the answer "
            "to the goal"
        )
    yield from foreign_models(script, models)


def foreign_models(script: str, models: Collection[str]) -> Iterator[str]:
    """Yield each call of a script that may ask a model which serves no role of the run."""
    for node in ast.walk(_tree(script)):
        match node:
            case ast.Call(func=ast.Name(id="llm"), keywords=keywords):
                pass
            case _:
                continue
        for keyword in keywords:
            if _may_name_model(keyword, models):
                known = format_names(sorted(models))
                yield (
                    f"line {line_of(node)}: `llm` may ask {known} alone; leave `model` and `**` out"
                )


def _may_name_model(keyword: ast.keyword, models: Collection[str]) -> bool:
    """Whether an argument of `llm` may name a model that is none of these."""
    if keyword.arg is None:
        return True
    if keyword.arg != "model":
        return False
    # A model that the script works out counts as one without a name. With None the
    # model of the role answers.
    model: Any = ""
    if isinstance(keyword.value, ast.Constant):
        model = keyword.value.value
    return model is not None and model not in models


def _returns_value(function: ast.AsyncFunctionDef) -> bool:
    """Whether a function may end with a value, or ends with an error."""
    for statement in function.body:
        for part in within(statement):
            if _gives(part):
                return True
    return False


def _gives(node: ast.AST) -> bool:
    """Whether a statement ends a function with a value, or with an error."""
    if isinstance(node, ast.Raise):
        return True
    if not isinstance(node, ast.Return) or node.value is None:
        return False
    is_none = isinstance(node.value, ast.Constant) and node.value.value is None
    return not is_none


def _tree(script: str) -> ast.Module:
    """Return the tree of a script, an empty one if it is no Python."""
    try:
        return parsed(script)
    except SyntaxError:
        return ast.Module([], [])
