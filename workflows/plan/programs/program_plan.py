"""The plan of a script, and what is wrong with the scripts of a plan."""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from workflows.plan.language.nodes import Instead, Plan, ProgramNode
from workflows.plan.language.problems import Problem, Where
from workflows.plan.language.text import format_name, nearest_or_known
from workflows.plan.programs.source import Source, parsed
from workflows.plan.programs.syntax import parameters_of, problems_in
from workflows.plan.programs.vocabulary import BUILTINS, INSTEAD

Plain = dict[str, Any]
_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}
"""The type of an input by how its annotation begins; every other is text."""

_NO_INSTEAD = "a program has no `instead`; catch the error in its script, and call there what is to run"


def program_plan(script: str, given: Mapping[str, Any] | None = None) -> Plain:
    """Return the plan that runs a script, with the arguments of `main` as its inputs.

    With the inputs that are `given`, of those that `main` has defaults for only these are in it.
    """
    inputs: dict[str, Plain] = {}
    for name, parameter in parameters_of(script).items():
        kind = _TYPES.get(re.split(r"\W", parameter.annotation)[0], "string")
        if parameter.required or (given is not None and name in given):
            inputs[name] = {"type": kind}
        elif given is None:
            inputs[name] = {"type": kind, "default": None}
    arguments = {name: f"$input.{name}" for name in inputs}
    node = {"id": "main", "kind": "program", "script": script, "arguments": arguments}
    return {"inputs": inputs, "nodes": [node], "answer": "$main"}


def script_problems(script: str, tools: Mapping[str, Any] | None) -> list[Problem]:
    """Return what is wrong with a script; without `tools`, every name that it calls may be a tool."""
    return problems_in(script, dict.fromkeys(tools_called(script)) if tools is None else tools)


def program_problems(plan: Plan, tools: Mapping[str, Any] | None) -> Iterator[Problem]:
    """Yield what is wrong with the scripts of a plan, each problem with its line in the script, and with the arguments
    that they are given.
    """
    for index, node in enumerate(plan.nodes):
        if isinstance(node, ProgramNode) and node.step is None:
            if isinstance(node.on_error, Instead):
                yield Problem("on_error", ("nodes", index, "on_error"), _NO_INSTEAD)
            found = script_problems(node.script, tools)
            for problem in found:
                yield Problem(problem.code, ("nodes", index, "script", *problem.where), problem.message)
            is_readable = all(problem.code != "syntax" for problem in found)
            for where, sentence in _wrong_arguments(node) if is_readable else ():
                yield Problem("argument", ("nodes", index, "arguments", *where), sentence)


def _wrong_arguments(node: ProgramNode) -> Iterator[tuple[Where, str]]:
    parameters = parameters_of(node.script)
    for name in node.arguments:
        if name not in parameters:
            hint = nearest_or_known(name, list(parameters)) if parameters else "; it takes none"
            yield (name,), f"`main` has no argument {format_name(name)}{hint}"
    for name, parameter in parameters.items():
        if parameter.required and name not in node.arguments:
            yield (), f"`main` needs the argument {format_name(name)}"


def tools_called(script: str) -> Iterator[str]:
    """Yield the names that a script calls, or gives to others, and defines nowhere."""
    try:
        source = Source(parsed(script))
    except SyntaxError:
        return
    for node in source.nodes:
        if isinstance(node, ast.Name) and source.meaning(node) is None and node.id not in (*BUILTINS, *INSTEAD):
            yield node.id


def title_of(script: str) -> str:
    """Return the first line of a script's docstring, "" if it has none."""
    try:
        return (ast.get_docstring(parsed(script)) or "").strip().partition("\n")[0].strip()
    except SyntaxError:
        return ""
