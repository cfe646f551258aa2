"""What the check of types says of a script: what must fail is a problem, what types merely suspect is a doubt."""

import ast
import re
from collections import deque
from typing import Any

from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.programs.classes import ENUMS
from sennit.workflows.plan.programs.files import place_in
from sennit.workflows.plan.programs.source import source_of
from sennit.workflows.plan.programs.syntax import DOUBT

_NOT_AWAITED = {"'CoroutineType[": "; is an `await` missing?", "'Ticket[": "; wait for it with `await parallel([...])`"}
_ARGUMENTS = (
    "missing-argument", "unknown-argument", "too-many-positional-arguments", "parameter-already-assigned",
)  # fmt: skip
"""A call that Python refuses, whatever the values are."""
_ARGUMENT = "invalid-argument-type"
_BY_TYPE = ("unresolved-attribute", "not-subscriptable", "unsupported-operator", "invalid-await", "not-iterable")
"""What a value of that type cannot do."""
_UNSURE = re.compile(
    r"\||\bNone\b|\bUnknown\b|\bAny\b|\bobject\b|\bunion\b|\bTypeVar\b|\bmay\b|@|\bpossibly\b", re.IGNORECASE
)
_IN_MODULE = re.compile(r"Module '[\w.]+' has no")
_OF_MEMBER = re.compile(r"has no attribute '(value|name)'")
_OF_CLASS = re.compile(r"'<class '\w+'>'")
_OF_INSTANCE = re.compile(r"(?:must be a mapping type: Found|Cannot subscript object of type) '(\w+)'")
_NO_ITEM = re.compile(
    r"Method '__getitem__' of type '[^']*' cannot be called with key of type '([^']*)' on object of type '([^']*)'"
)
_MODEL_TASK = re.compile(r"task\(\s*llm\b")
_NO_ATTRIBUTE = re.compile(
    r"Object of type '(?:str|int|float|bool|(?:list|dict|set)\[[^']*\])' has no attribute '(\w+)'"
)
_PLAIN = (str, int, float, bool, list, dict, set, tuple, deque)
_HEAD = re.compile(r"[A-Za-z_]\w*")
_SAME = {
    "bool": ("bool", "int", "float"), "int": ("int", "float"), "float": ("float",), "str": ("str",), "list": ("list",),
    "dict": ("dict",), "set": ("set",), "CoroutineType": (), "Ticket": ("Ticket",),
}  # fmt: skip
"""What a value of a type is good for, of the types that JSON and Sennit have."""
_WORD = re.compile(r"\w+")
_LIMITS_OF_TASKS = tuple(
    f"Argument '{name}' does not match any known parameter of function 'task'" for name in ("timeout", "budget")
)
_LITERAL = re.compile(r"Literal\[(.*)\]\Z")


def is_of_use(found: dict[str, Any], script: str) -> bool:
    """Whether a finding says anything: names are checked elsewhere, and types of words have parameters. A task takes a
    `timeout` and a `budget` beside the arguments of its function, which no type says, and enums and their members are
    checked as plain classes and as their values. A class of the script may have the name of one of the words' types.
    """
    message = found["message"].replace("`", "'")
    is_named = found["code"] in ("unresolved-import", "unresolved-reference") or _IN_MODULE.match(message)
    is_limit = message.startswith(_LIMITS_OF_TASKS)
    is_member = any(name in script for name in ENUMS) and (_OF_MEMBER.search(message) or _OF_CLASS.search(message))
    instance = _OF_INSTANCE.search(message)  # which is a dict, or is read like one
    beginnings = (f"class {instance[1]}:", f"class {instance[1]}(") if instance else ()
    is_own = any(line.startswith(beginnings) for line in script.splitlines()) if beginnings else False
    is_ticket = _NO_ITEM.match(message) and _MODEL_TASK.search(script)  # whose schema no type says
    says_nothing = (
        is_ticket or message.startswith(("No overload of", "__future__ imports")) or "repl_type_stubs." in message
    )
    return not (is_named or is_limit or is_member or is_own or says_nothing) and "@" not in message


def type_problem(found: dict[str, Any], script: str) -> Problem:
    """Return one finding in a script as a problem with its line, as a doubt if the script may be right."""
    message = found["message"].replace("`", "'")
    hint = next((hint for kind, hint in _NOT_AWAITED.items() if kind in message), "")
    code = str(found["code"])
    place = place_in(script, int(found["location"]["row"]))
    shown = _NO_ITEM.sub(lambda match: f"A '{match[2]}' has no item {_written(match[1])}", message)
    is_problem = _must_fail(code, message, script)
    if is_problem and code in (*_ARGUMENTS, _ARGUMENT):
        is_problem = not _calls_a_variable(script, int(found["location"]["row"]))
    return Problem(code if is_problem else DOUBT, ("line", place), shown + hint)


def _calls_a_variable(script: str, row: int) -> bool:
    """Whether what is called on a line is one of several functions, of which types ask that each takes the same."""
    source = source_of(script)
    for node in source.nodes:
        if isinstance(node, ast.Call) and node.lineno <= row <= (node.end_lineno or node.lineno):
            for function in (node.func, *node.args[:1]):
                meaning = source.meaning(function) if isinstance(function, ast.Name) else None
                is_called = function is node.func or ast.unparse(node.func) == "task"
                if is_called and (isinstance(function, ast.Subscript) or isinstance(meaning, ast.Name | ast.arg)):
                    return True
    return False


def _written(kind: str) -> str:
    """Return a key by its type, as people write it."""
    literal = _LITERAL.fullmatch(kind)
    return literal[1] if literal else f"of type '{kind}'"


def _must_fail(code: str, message: str, script: str) -> bool:
    if (lacking := _NO_ATTRIBUTE.match(message)) is not None:  # also where a value has another type than is written
        return not any(hasattr(kind, lacking[1]) for kind in _PLAIN) and _WORD.findall(script).count(lacking[1]) == 1
    if code in _ARGUMENTS:
        return "union" not in message
    if code == _ARGUMENT:
        _, _, types = message.partition("Expected '")
        expected, _, found = types.removesuffix("'").partition("', found '")
        return bool(found) and _is_other(expected, found)
    if any(kind in message for kind in _NOT_AWAITED):
        return code in _BY_TYPE and "union" not in message
    return code in _BY_TYPE and not _UNSURE.search(
        re.sub(r"dict\[str, (Any|Unknown)\]|list\[(Any|Unknown)\]", "dict", message)
    )


def _is_other(expected: str, found: str) -> bool:
    """Whether no value of one type is one of the other: only for types that stand for themselves."""
    kind = _kind(found)
    if kind not in _SAME:
        return False
    heads = [_kind(part.strip()) for part in _alternatives(expected)]
    if "SupportsIndex" in heads and kind in ("str", "float", "list", "dict"):
        return True
    if any(head not in (*_SAME, "None") for head in heads):
        return False
    if set(heads) & set(_SAME[kind]):
        return _is_other_literal(expected, found)
    return True


def _is_other_literal(expected: str, found: str) -> bool:
    """Whether a known text or number is none of those that are allowed."""
    allowed, offered = _LITERAL.fullmatch(expected), _LITERAL.fullmatch(found)
    return bool(allowed and offered) and offered[1] not in allowed[1].split(", ")  # type: ignore[index]


def _alternatives(written: str) -> list[str]:
    """Return the types of a union that stands in no brackets."""
    parts, depth = [""], 0
    for character in written:
        depth += (character == "[") - (character == "]")
        if character == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _kind(written: str) -> str:
    """Return the class of a type as it is written, "" for one that is no single class."""
    if len(_alternatives(written)) > 1:
        return ""
    literal = _LITERAL.fullmatch(written)
    if literal is None:
        head = _HEAD.match(written)
        return head[0] if head and "object" not in written else ""
    first = literal[1][:1]
    if first in "\"'":
        return "str"
    return "bool" if literal[1] in ("True", "False") else "int" if first.isdigit() or first == "-" else ""
