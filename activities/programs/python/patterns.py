"""Patterns and replacements of `re` in which Monty differs from Python: they are translated where they are used."""

import ast

PATTERN, REPLACEMENT = "__pattern(", "__replacement("
_FLAGS_AT = {
    "re.compile": 1, "re.search": 2, "re.match": 2, "re.fullmatch": 2, "re.findall": 2, "re.finditer": 2,
    "re.split": 3, "re.sub": 4, "re.subn": 4,
}  # fmt: skip
"""Which argument the flags of each function are."""
_MULTILINE = ("M", "MULTILINE")

OF_PATTERNS = r"""
def __pattern(text, is_by_line):
    if not isinstance(text, str) or ('$' not in text and '\\Z' not in text):
        return text
    by_line = is_by_line
    for part in text.split('(?')[1:]:
        if 'm' in part[:len(part) - len(part.lstrip('aiLmsux'))]:
            by_line = True
    found, place, begin = [], 0, -1
    while place < len(text):
        char = text[place]
        if char == '\\':
            pair = text[place:place + 2]
            found.append('\\z' if pair == '\\Z' else pair)
            place += 2
            continue
        if begin < 0 and char == '[':
            begin = place + 2 if text[place + 1:place + 2] == '^' else place + 1
        elif begin >= 0 and char == ']' and place > begin:
            begin = -1
        found.append('(?=\\n?\\z)' if char == '$' and begin < 0 and not by_line else char)
        place += 1
    return ''.join(found)
"""
"""`$` stands at the end and before a line break there, `\\Z` at the end alone."""
OF_REPLACEMENTS = r"""
__escapes = {'n': '\n', 't': '\t', 'r': '\r', 'f': '\f', 'v': '\v', 'a': '\a', 'b': '\b', '\\': '\\\\'}
def __replacement(text):
    if not isinstance(text, str) or '\\' not in text:
        return text
    found, place = [], 0
    while place < len(text):
        char, name = text[place], text[place + 1:place + 2]
        if char != '\\':
            found.append(char)
            place += 1
        elif name and name in '123456789':
            number = text[place + 1:place + 3] if text[place + 2:place + 3].isdigit() else name
            found.append(f'\\g<{number}>')
            place += 1 + len(number)
        else:
            found.append(__escapes.get(name, '\\' + name))
            place += 2
    return ''.join(found)
"""
"""`\\1` ends where its digits end, and `\\n` is a line break."""


def pattern_of(function: str, call: ast.Call) -> ast.expr | None:
    """Return the pattern that a call of the function of that name has, None if it has none."""
    return _given(call, 0, "pattern") if function in _FLAGS_AT else None


def is_by_line(function: str, call: ast.Call) -> bool:
    """Whether the flags of such a call say that `$` stands at the end of each line."""
    flags = [given.value for given in call.keywords if given.arg == "flags"]
    flags += call.args[_FLAGS_AT[function] :]
    names = [part for flag in flags for part in ast.walk(flag)]
    return any(getattr(part, "attr", getattr(part, "id", "")) in _MULTILINE for part in names)


def replacement_of(function: str, call: ast.Call) -> ast.expr | None:
    """Return the replacement that a call has, None if it has none. That of a compiled pattern is known by what it looks
    like: a text with a backslash.
    """
    if function in ("re.sub", "re.subn"):
        return _given(call, 1, "repl")
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in ("sub", "subn") and not function
    first = call.args[0] if call.args else None
    is_text = isinstance(first, ast.Constant) and isinstance(first.value, str) and "\\" in first.value
    return first if is_method and is_text else None


def _given(call: ast.Call, place: int, name: str) -> ast.expr | None:
    """Return what a call gives at that place or by that name."""
    if any(isinstance(arg, ast.Starred) for arg in call.args[: place + 1]):
        return None
    named = [given.value for given in call.keywords if given.arg == name]
    return next(iter([*call.args[place : place + 1], *named]), None)
