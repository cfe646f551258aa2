"""Where Monty is not Python, and what it leaves out of its errors."""

import ast

from sennit.activities.programs.python.patterns import OF_PATTERNS, OF_REPLACEMENTS, PATTERN, REPLACEMENT
from sennit.workflows.plan.programs.classes import enum_members, is_enum
from sennit.workflows.plan.programs.source import Source, parsed

Classes = dict[str, list[tuple[str, str, bool]]]
"""The fields of each class: name, type as it is written, whether there is a default; of an enum its values alone."""


PRELUDE = """
def eval(*_, **__):
    raise NotImplementedError("a program has no eval and no exec")
exec = eval
def log(*values, sep=" "):
    print(*values, sep=sep)
class __Object:
    pass
__python = __Object()
__python.repr = repr
__NO_VALUES = (
    'coroutine', '__Call', '__Task', 'function', 'module', 'type', 'range', 'slice', 're.Pattern', 're.Match'
)
__MOST = 1 << 14000
def __value(value, name, level=0, left=None):
    left = [2000] if left is None else left
    left[0] -= 1
    kind = str(type(value))[8:-2]
    if kind == 'str' or left[0] < 0:
        return value
    if level > 50:
        raise TypeError(f"{name}: it is nested more than 50 levels deep")
    if kind == 'list' or kind == 'tuple':
        for part in value:
            __value(part, name, level + 1, left)
    elif kind == 'dict':
        for part in value.values():
            __value(part, name, level + 1, left)
    elif kind == 'int' and not -__MOST < value < __MOST:
        raise ValueError(f"{name}: a number of more than 14,000 bits has no JSON: write a part of it")
    elif kind.startswith('dict_') and level == 0:
        return list(value)
    elif kind in __NO_VALUES or kind.startswith('dict_') or kind.endswith('iterator'):
        is_list = kind == 'range' or kind.startswith('dict_')
        hint = "write list(...)" if is_list else "await a call, or give its function to task(function, ...)"
        kind = {'__Call': 'coroutine', '__Task': 'Task'}.get(kind, kind)
        raise TypeError(f"{name}: a {kind} is no value: {hint}")
    elif kind.startswith('__') and not kind.startswith('__own_'):
        raise TypeError(f"{name}: a {kind[2:]} is no value: coroutines share it, but a task has a session of its own")
    return value
"""
"""What a script finds defined. What has no value outside of Monty arrives there as a text like any other, so it is told
from values inside, by its type.
"""
OF_TYPES = """
def __enum(kind, names):
    members = []
    for name in names:
        value = getattr(kind, name)
        member = next(iter([each for each in members if each.value == value]), None)
        if member is None:
            member = kind()
            member.name, member.value, member.__is_member = name, value, True
            members.append(member)
        setattr(kind, name, member)
def __enum_equals(self, other):
    if type(other) is type(self):
        return self.value == other.value
    if hasattr(other, '__is_member') and (self.__is_plain or other.__is_plain):
        return False
    return self.value == other
def __enum_hash(self):
    return hash(self.value)
def __enum_name(self):
    return f"{self.__kind}.{self.name}"
def __enum_value(self):
    return str(self.value)
def __enum_shown(self):
    return f"<{self.__kind}.{self.name}: {self.value!r}>"
def __member(kind, members, value):
    for each in members:
        if each is value or each.value == value:
            return each
    raise ValueError(f"{value!r} is not a valid {kind}")
__fields = {}
def __mapping(value):
    names = __fields.get(str(type(value)))
    return value if names is None else {name: getattr(value, name) for name in names}
def __shown_fields(name, value):
    return f"{name}({', '.join([f'{field}={part!r}' for field, part in __mapping(value).items()])})"
def __plain_keys(value, left=None):
    left = [20000] if left is None else left
    left[0] -= 1
    if left[0] < 0:
        return value
    if isinstance(value, dict):
        pairs = [(key, __plain_keys(part, left)) for key, part in value.items()]
        return {key.value if hasattr(key, '__is_member') else key: part for key, part in pairs}
    return [__plain_keys(part, left) for part in value] if type(value) in (list, tuple) else value
def __asdict(value):
    kind = str(type(value))
    if kind in __fields:
        return {name: __asdict(getattr(value, name)) for name in __fields[kind]}
    if isinstance(value, dict):
        return {name: __asdict(part) for name, part in value.items()}
    return [__asdict(part) for part in value] if isinstance(value, list) else value
def __replace(value, **changes):
    return type(value)(**{**__mapping(value), **changes})
def __made(value, make):
    return None if value is None else make(value)
"""
"""What a script finds defined that has enums, or dataclasses."""


OF_ASSERT = """
def __fail(text):
    raise AssertionError(str(text))
"""
"""What a script finds defined that asserts something and says why."""


OF_ROUND = """
__round = round
def round(number, ndigits=None):
    if type(number) is not float or ndigits is None or ndigits < 0:
        return __round(number, ndigits)
    return float(f"{number:.{ndigits}f}")
"""
"""What a script finds defined that rounds: Monty rounds the digits of a float, and not its value."""


OF_REPR = """
__shown = {}
__repr = repr
def repr(value):
    text = __repr(value)
    for kind, name in __shown.items():
        text = text.replace(f"{kind}(", f"{name}(")
    return text
__python.repr = repr
"""
"""What a script finds defined that shows its own exceptions, for which others stand."""


OF_NAMES = """
def __name_of(kind, modules=()):
    text = str(kind)
    name = __kinds[text] if text in __kinds else text.split("'")[1] if "'" in text else text.rstrip('>').split(' ')[-1]
    name = name.split('.')[-1]
    for start in ('__own_', *[f"{module}__" for module in modules]):
        name = name.removeprefix(start)
    return name
__kinds = {str(KeyboardInterrupt): 'CancelledError'}
"""
"""What a script finds defined that asks for the name of a type or a function."""
OF_SUM = """
__sum = sum
def sum(iterable, start=0):
    values = list(iterable)
    if not any(type(value) is float for value in values):
        return __sum(values, start)
    if type(start) not in (int, float):
        return __sum(values, start)
    total, lost = start, 0.0
    for place, value in enumerate(values):
        if type(value) is float and type(total) is not float:
            total = float(total)
        if type(value) is float:
            result = total + value
            if abs(total) >= abs(value):
                lost += (total - result) + value
            else:
                lost += (value - result) + total
            total = result
        elif type(value) is int or type(value) is bool:
            total += value
        else:
            if lost - lost == 0:
                total += lost
            return __sum(values[place:], total)
    if type(total) is float and lost - lost == 0:
        total += lost
    return total
"""
"""What a script finds defined that sums: floats as Python sums them since 3.12, with what each addition loses."""
ON_DEMAND = {
    "__fail(": OF_ASSERT,
    "round": OF_ROUND,
    "sum": OF_SUM,
    PATTERN: OF_PATTERNS,
    REPLACEMENT: OF_REPLACEMENTS,
    "__shown[": OF_REPR,
    "__name_of(": OF_NAMES,
}
"""What only some scripts find defined, by what stands in their texts: all of it is in every snapshot."""


def endless_loop(script: str) -> tuple[str, int]:
    """Return which loop of a script may not end, in words and as a line: one of those that never wait for a call."""
    try:
        source = Source(parsed(script))
    except SyntaxError:
        return "", 0
    waits = {around for node in source.nodes if isinstance(node, ast.Await) for around in source.around(node)}
    loops = [node for kind in (ast.While, ast.For) for node in source.nodes if isinstance(node, kind)]
    lines = [node.lineno for node in loops if node not in waits]
    if len(lines) == 1:
        return "", lines[0]
    return f"a loop on one of the lines {', '.join(map(str, lines[:5]))} does not end; " if lines else "", 0


def classes_of(script: str) -> Classes:
    """Return the fields of a script's classes: name, type, whether there is a default."""
    try:
        classes = [node for node in parsed(script).body if isinstance(node, ast.ClassDef)]
    except SyntaxError:
        return {}
    found = {written.name: _fields_of(written) for written in classes}
    for alias in parsed(script).body:  # a name for a type: its only field has no name
        match alias:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() | ast.BinOp() | ast.Name() as value):
                found.setdefault(name, [("", ast.unparse(value), False)])
    return found


def _fields_of(written: ast.ClassDef) -> list[tuple[str, str, bool]]:
    if is_enum(written):
        values = ", ".join(ast.unparse(value) for _, value in enum_members(written))
        return [("", f"Literal[{values}]", False)]
    return [
        (field.target.id, ast.unparse(field.annotation), field.value is not None)
        for field in written.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    ]
