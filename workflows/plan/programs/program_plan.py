"""The plan of a script, and what is wrong with the scripts of a plan."""

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from sennit.workflows.plan.language.dependencies import programs_in
from sennit.workflows.plan.language.nodes import Instead, Plan, Program
from sennit.workflows.plan.language.problems import Problem, Where
from sennit.workflows.plan.language.text import format_name, nearest_or_known
from sennit.workflows.plan.limits import MAX_SCRIPT_PROBLEMS
from sennit.workflows.plan.programs.files import file_of
from sennit.workflows.plan.programs.parsing import parsed
from sennit.workflows.plan.programs.source import source_of
from sennit.workflows.plan.programs.syntax import parameters_of, problems_in
from sennit.workflows.plan.programs.vocabulary import NO_TOOLS

Plain = dict[str, Any]
_TYPES = {
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    **dict.fromkeys(("list", "tuple", "List", "Tuple", "Sequence", "Iterable"), "array"),
    **dict.fromkeys(("dict", "Dict", "Mapping"), "object"),
}
"""The type of an input by the first type in its annotation; every other is text."""
_AROUND_TYPES = ("typing", "Optional", "Union")
"""What an annotation names around its types."""

_NO_INSTEAD = (
    "a program has no `instead`; catch the error in its script, and call there what is to run"
)


def program_plan(script: str, values: Mapping[str, Any] | None = None) -> Plain:
    """Return the plan that runs a script, with the arguments of `main` as its inputs.

    With the inputs that are `given`, of those that `main` has defaults for only these are in it.
    """
    inputs: dict[str, Plain] = {}
    for name, parameter in parameters_of(script).items():
        kind = _input_type(parameter.annotation)
        if parameter.required or (values is not None and name in values):
            inputs[name] = {"type": kind}
        elif values is None:
            inputs[name] = {"type": kind, "default": None}
    arguments = {name: f"$input.{name}" for name in inputs}
    node = {"id": "main", "kind": "program", "script": script, "arguments": arguments}
    return {"inputs": inputs, "nodes": [node], "answer": "$main"}


def _input_type(annotation: str) -> str:
    """Return the type of an input as JSON names it."""
    for name in re.findall(r"\w+", annotation):
        if name not in _AROUND_TYPES:
            return _TYPES.get(name, "string")
    return "string"


def script_problems(script: str, tools: Mapping[str, Any] | None) -> list[Problem]:
    """Return what is wrong with a script; without `tools`, every name that
    it calls may be a tool.
    """
    if tools is None:
        tools = dict.fromkeys(tools_called(script))
    return problems_in(script, tools)


def program_problems(plan: Plan, tools: Mapping[str, Any] | None) -> Iterator[Problem]:
    """Yield what is wrong with the scripts of a plan, each problem with its line in the script, and
    with the arguments that they are given.
    """
    for place, program in programs_of(plan):
        problems = [*policy_problems(program), *wrong_in(program.script, program.arguments, tools)]
        for problem in problems:
            yield problem_at(place, problem, program.script)


def programs_of(plan: Plan) -> Iterator[tuple[Where, Program]]:
    """Yield the programs of a plan that have a script, with their places, those
    in the `do` of maps too.
    """
    for index, node in enumerate(plan.nodes):
        for where, program in programs_in(node):
            yield ("nodes", index, *where), program


def problem_at(place: Where, problem: Problem, script: str) -> Problem:
    """Return a problem of a program as one of the plan in which it has that place: by the file and
    line of its script, if that names its file.
    """
    problem = in_file(problem, script)
    if problem.where[:1] == ("line",):
        return problem
    return _behind(place, problem)


def _behind(place: Where, problem: Problem) -> Problem:
    """Return a problem whose place stands behind another one."""
    return Problem(problem.code, (*place, *problem.where), problem.message)


def in_file(problem: Problem, script: str) -> Problem:
    """Return a problem of a script by its file and line, if the script names its file."""
    file = file_of(script)
    if not file or problem.where[-2:-1] != ("line",):
        return problem
    place = problem.where[-1]
    # A place in a module has the name of its file already.
    if not isinstance(place, str):
        place = f"{file}:{place}"
    return Problem(problem.code, ("line", place), problem.message)


def policy_problems(node: Program) -> Iterator[Problem]:
    """Yield what a program has that only other nodes may have."""
    if isinstance(node.on_error, Instead):
        yield Problem("on_error", ("on_error",), _NO_INSTEAD)


def wrong_in(
    script: str, arguments: Collection[str], tools: Mapping[str, Any] | None
) -> Iterator[Problem]:
    """Yield what is wrong with the script of a program, and with the arguments of these
    names that it is given.
    """
    found = script_problems(script, tools)
    for problem in found:
        yield _behind(("script",), problem)

    # A script that does not parse says nothing of its arguments.
    codes = [problem.code for problem in found]
    if "syntax" in codes or "size" in codes:
        return
    for where, sentence in islice(_wrong_arguments(script, arguments), MAX_SCRIPT_PROBLEMS):
        yield Problem("argument", ("arguments", *where), sentence)


def _wrong_arguments(script: str, arguments: Collection[str]) -> Iterator[tuple[Where, str]]:
    parameters = parameters_of(script)
    for name in arguments:
        if name not in parameters:
            hint = "; it takes none"
            if parameters:
                hint = nearest_or_known(name, list(parameters))
            yield (name,), f"`main` has no argument {format_name(name)}{hint}"
    for name, parameter in parameters.items():
        if parameter.required and name not in arguments:
            yield (), f"`main` needs the argument {format_name(name)}"


def tools_called(script: str) -> Iterator[str]:
    """Yield the names that a script calls, or gives to others, and defines nowhere; and
    those in lists of `tools`.
    """
    try:
        source = source_of(script)
    except SyntaxError:
        return
    for node in source.nodes:
        if isinstance(node, ast.Name):
            is_defined = source.meaning(node) is not None
            is_of_module = "." in node.id
            if not is_defined and not is_of_module and node.id not in NO_TOOLS:
                yield node.id
        match node:
            case ast.keyword(arg="tools", value=ast.List(elts=items) | ast.Tuple(elts=items)):
                yield from _texts_among(items)


def _texts_among(items: Sequence[ast.expr]) -> Iterator[str]:
    """Yield the texts in a list that a script writes."""
    for item in items:
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            yield item.value


def title_of(script: str) -> str:
    """Return the first line of a script's docstring, "" if it has none."""
    try:
        docstring = ast.get_docstring(parsed(script)) or ""
    except SyntaxError:
        return ""
    first_line, _, _ = docstring.strip().partition("\n")
    return first_line.strip()
