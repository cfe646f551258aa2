"""What the check of types says of a script: what must fail is a problem, what types
merely suspect is a doubt.
"""

import ast
import re
from collections import deque
from typing import Any

from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.programs.classes import ENUMS
from sennit.workflows.plan.programs.files import place_in
from sennit.workflows.plan.programs.source import Source, source_of
from sennit.workflows.plan.programs.syntax import DOUBT

_NOT_AWAITED = {
    "'CoroutineType[": "; is an `await` missing?",
    "'Ticket[": "; wait for it with `await parallel([...])`",
}
_ARGUMENTS = (
    "missing-argument", "unknown-argument", "too-many-positional-arguments",
    "parameter-already-assigned",
)  # fmt: skip
"""A call that Python refuses, whatever the values are."""
_ARGUMENT = "invalid-argument-type"
_BY_TYPE = (
    "unresolved-attribute",
    "not-subscriptable",
    "unsupported-operator",
    "invalid-await",
    "not-iterable",
)
"""What a value of that type cannot do."""
_UNSURE = re.compile(
    r"\||\bNone\b|\bUnknown\b|\bAny\b|\bobject\b|\bunion\b|\bTypeVar\b|\bmay\b|@|\bpossibly\b",
    re.IGNORECASE,
)
_IN_MODULE = re.compile(r"Module '[\w.]+' has no")
_OF_MEMBER = re.compile(r"has no attribute '(value|name)'")
_OF_CLASS = re.compile(r"'<class '\w+'>'")
_OF_INSTANCE = re.compile(
    r"(?:must be a mapping type: Found|Cannot subscript object of type) '(\w+)'"
)
_NO_ITEM = re.compile(
    r"Method '__getitem__' of type '[^']*' cannot be called with key of type '([^']*)' on object "
    r"of type '([^']*)'"
)
_MODEL_TASK = re.compile(r"task\(\s*llm\b")
_NO_ATTRIBUTE = re.compile(
    r"Object of type '(?:str|int|float|bool|(?:list|dict|set)\[[^']*\])' has no attribute '(\w+)'"
)
_PLAIN = (str, int, float, bool, list, dict, set, tuple, deque)
_HEAD = re.compile(r"[A-Za-z_]\w*")
_SAME = {
    "bool": ("bool", "int", "float"), "int": ("int", "float"), "float": ("float",), "str": ("str",),
    "list": ("list",), "dict": ("dict",), "set": ("set",), "CoroutineType": (),
    "Ticket": ("Ticket",),
}  # fmt: skip
"""What a value of a type is good for, of the types that JSON and Sennit have."""
_KNOWN_HEADS = frozenset((*_SAME, "None"))
_WORD = re.compile(r"\w+")
_LIMITS_OF_TASKS = (
    "Argument 'timeout' does not match any known parameter of function 'task'",
    "Argument 'budget' does not match any known parameter of function 'task'",
)
_LITERAL = re.compile(r"Literal\[(.*)\]\Z")
_OF_JSON = re.compile(r"dict\[str, (Any|Unknown)\]|list\[(Any|Unknown)\]")
_SAYS_NOTHING = ("No overload of", "__future__ imports")


def is_of_use(found: dict[str, Any], script: str) -> bool:
    """Whether a finding says anything: names are checked elsewhere, and types of words have
    parameters. A task takes a `timeout` and a `budget` beside the arguments of its function, which
    no type says, and enums and their members are checked as plain classes and as their values. A
    class of the script may have the name of one of the words' types.
    """
    message = found["message"].replace("`", "'")
    if message.startswith(_SAYS_NOTHING) or "repl_type_stubs." in message or "@" in message:
        return False
    if found["code"] in ("unresolved-import", "unresolved-reference") or _IN_MODULE.match(message):
        return False
    if message.startswith(_LIMITS_OF_TASKS):
        return False
    if _OF_MEMBER.search(message) or _OF_CLASS.search(message):
        has_enum = any(name in script for name in ENUMS)
        if has_enum:
            return False

    # An instance of a class of the script is a dict, or is read like one.
    instance = _OF_INSTANCE.search(message)
    if instance is not None and _has_class(script, instance[1]):
        return False

    # No type says the schema of a model's ticket.
    is_of_ticket = _NO_ITEM.match(message) and _MODEL_TASK.search(script)
    return not is_of_ticket


def _has_class(script: str, name: str) -> bool:
    """Whether a script defines a class of that name at the top of a file."""
    beginnings = (f"class {name}:", f"class {name}(")
    return any(line.startswith(beginnings) for line in script.splitlines())


def type_problem(found: dict[str, Any], script: str) -> Problem:
    """Return one finding in a script as a problem with its line, as a doubt if
    the script may be right.
    """
    message = found["message"].replace("`", "'")
    code = str(found["code"])
    row = int(found["location"]["row"])
    is_problem = _must_fail(code, message, script)
    if is_problem and code in (*_ARGUMENTS, _ARGUMENT):
        is_problem = not _calls_a_variable(script, row)
    if not is_problem:
        code = DOUBT
    text = _NO_ITEM.sub(_no_item, message) + _await_hint(message)
    return Problem(code, ("line", place_in(script, row)), text)


def _no_item(match: re.Match[str]) -> str:
    """Return the sentence for an item that a value does not have."""
    key, kind = match.groups()
    return f"A '{kind}' has no item {_written(key)}"


def _await_hint(message: str) -> str:
    """Return what to do with a call or a ticket that a message names, "" if it names none."""
    for kind, hint in _NOT_AWAITED.items():
        if kind in message:
            return hint
    return ""


def _calls_a_variable(script: str, row: int) -> bool:
    """Whether what is called on a line is one of several functions, of which types ask
    that each takes the same.
    """
    source = source_of(script)
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        last_row = node.end_lineno or node.lineno
        if not node.lineno <= row <= last_row:
            continue
        called = [node.func]
        if isinstance(node.func, ast.Name) and node.func.id == "task":
            called += node.args[:1]
        if any(_is_variable(source, function) for function in called):
            return True
    return False


def _is_variable(source: Source, function: ast.expr) -> bool:
    """Whether an expression may be one of several functions: an item of a table, a
    variable or an argument.
    """
    if isinstance(function, ast.Subscript):
        return True
    if not isinstance(function, ast.Name):
        return False
    meaning = source.meaning(function)
    return isinstance(meaning, ast.Name | ast.arg)


def _written(kind: str) -> str:
    """Return a key by its type, as people write it."""
    literal = _LITERAL.fullmatch(kind)
    if literal is None:
        return f"of type '{kind}'"
    return literal[1]


def _must_fail(code: str, message: str, script: str) -> bool:
    """Whether a script fails for certain where a finding is."""
    lacking = _NO_ATTRIBUTE.match(message)
    if lacking is not None:
        return _is_nowhere_else(lacking[1], script)
    if code in _ARGUMENTS:
        return "union" not in message
    if code == _ARGUMENT:
        _, _, types = message.partition("Expected '")
        expected, _, found = types.removesuffix("'").partition("', found '")
        return found != "" and _is_other(expected, found)
    if code not in _BY_TYPE:
        return False
    if _await_hint(message):
        return "union" not in message
    # A dict or a list is sure to be one, whatever is in it.
    return not _UNSURE.search(_OF_JSON.sub("dict", message))


def _is_nowhere_else(attribute: str, script: str) -> bool:
    """Whether no plain value has an attribute, and the script names it once: no value of
    another type has it either.
    """
    if any(hasattr(kind, attribute) for kind in _PLAIN):
        return False
    return _WORD.findall(script).count(attribute) == 1


def _is_other(expected: str, found: str) -> bool:
    """Whether no value of one type is one of the other: only for types
    that stand for themselves.
    """
    kind = _kind(found)
    if kind not in _SAME:
        return False
    heads = [_kind(part.strip()) for part in _alternatives(expected)]
    if "SupportsIndex" in heads and kind in ("str", "float", "list", "dict"):
        return True
    if not _KNOWN_HEADS.issuperset(heads):
        return False
    if set(heads).isdisjoint(_SAME[kind]):
        return True
    return _is_other_literal(expected, found)


def _is_other_literal(expected: str, found: str) -> bool:
    """Whether a known text or number is none of those that are allowed."""
    allowed = _LITERAL.fullmatch(expected)
    offered = _LITERAL.fullmatch(found)
    if allowed is None or offered is None:
        return False
    return offered[1] not in allowed[1].split(", ")


def _alternatives(written: str) -> list[str]:
    """Return the types of a union that stands in no brackets."""
    parts = [""]
    depth = 0
    for character in written:
        if character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
        if character == "|" and depth == 0:
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
        if head is None or "object" in written:
            return ""
        return head[0]
    return _kind_of_literal(literal[1])


def _kind_of_literal(written: str) -> str:
    """Return the class of the values in a `Literal`, by the first of them, "" for one
    that is none of the usual.
    """
    first = written[:1]
    if first in "\"'":
        return "str"
    if written in ("True", "False"):
        return "bool"
    if first.isdigit() or first == "-":
        return "int"
    return ""
