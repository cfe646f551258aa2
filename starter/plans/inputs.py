"""`--input name=value`: values read by the type that the plan declares for them."""

from collections.abc import Iterable, Mapping
from typing import Any

from sennit.starter.client.errors import Refused
from sennit.workflows.plan.language.json_schema import typed_value
from sennit.workflows.plan.language.nodes import InputSpec
from sennit.workflows.plan.language.text import did_you_mean, format_names

_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": 'a JSON list such as ["a", "b"]',
    "object": 'a JSON object such as {"a": 1}',
}
_EXAMPLES = {
    "string": "TEXT",
    "integer": "3",
    "number": "2.5",
    "boolean": "true",
    "array": '\'["a", "b"]\'',
    "object": "'{\"a\": 1}'",
}


def read_inputs(
    words: Iterable[str], declared: Mapping[str, InputSpec], *, partial: bool = False
) -> dict[str, Any]:
    """Return the inputs in `words`, `partial` or all. Raises Refused for one that is unknown,
    repeated, mistyped or missing.
    """
    found: dict[str, Any] = {}
    for name, text in pairs(words, "--input").items():
        if not declared:
            raise Refused(f"--input {name[:60]}: this run takes no inputs")
        if name not in declared:
            hint = f"{did_you_mean(name, declared)} (inputs: {', '.join(declared)})"
            raise Refused(f"--input {name[:60]}: there is no such input{hint}")
        found[name] = read_value(name, text, declared[name].type)
    missing = [name for name, spec in declared.items() if spec.is_required and name not in found]
    if missing and not partial:
        which = f"the input `{missing[0]}` is"
        if len(missing) > 1:
            which = f"the inputs {format_names(missing)} are"
        words = [f"--input {name}={_EXAMPLES[declared[name].type]}" for name in missing]
        raise Refused(f"{which} missing: add {' '.join(words)}")
    return found


def pairs(words: Iterable[str], option: str) -> dict[str, str]:
    """Return the texts in `name=value` words by their names; raises Refused."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals):
            raise Refused(f"{option} {word[:60]}: write it as name=value")
        if name in found:
            raise Refused(f"{option} {name[:60]}: given twice")
        found[name] = text
    return found


def read_value(name: str, text: str, kind: str) -> Any:
    """Return `text` as a value of the JSON type `kind`; raises Refused."""
    if kind == "string":
        return text
    value = typed_value(text, frozenset([kind]))
    if isinstance(value, str):
        raise Refused(f"--input {name}: {text[:60]!r} is not {_KINDS[kind]}")
    return value
