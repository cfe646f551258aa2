"""What a script gives a model or a person to read, and how its arguments are shown."""

from collections.abc import Sequence
from typing import Any

from activities.programs.values import NotJson, Ref, mapped, packed
from activities.prompts.outputs import fair_shares
from workflows.plan.language.references import as_text, literal
from workflows.plan.language.summary import arguments_text

QUESTION_CHARACTERS = 2_000


def pieces(material: Sequence[Any]) -> list[Any]:
    """Return what is given, with the items of a list that has Refs one by one. Raises NotJson for other Refs."""
    found: list[Any] = []
    for value in material:
        found += value if isinstance(value, list) and any(isinstance(part, Ref) for part in value) else [value]
    if any(not isinstance(value, Ref) and has_refs(value) for value in found):
        raise NotJson("a Ref is material by itself, or an item of a list: write llm(prompt, ref)")
    return found


def has_refs(value: Any) -> bool:
    """Whether a value is a Ref, or has one in it."""
    return bool(packed(value) != value)


def shown(arguments: dict[str, Any]) -> str:
    """Return arguments as people read them."""
    return arguments_text(mapped(arguments, lambda ref: f"Ref({ref.size:,})"))


def question_text(question: str, material: Sequence[Any], names: Sequence[str]) -> str:
    """Return what a person is asked, as literal text with as much of the material as there is room for, and with the
    references `names` behind it.
    """
    most = QUESTION_CHARACTERS - sum(len(name) + 2 for name in names)
    texts = [as_text(value) for value in material]
    shares = fair_shares([len(text) for text in texts], max(0, most - len(question) - 4 * len(texts)))
    parts = [
        text if len(text) <= share else f"{text[: share - 1]}…"
        for text, share in zip(texts, shares, strict=True)
        if share > 1
    ]
    asked = "\n\n".join([question, *parts])
    while (excess := len(literal(asked)) - most) > 0:
        asked = asked[: -(excess // 2 + 2)] + "…"
    return "\n\n".join([str(literal(asked)), *names])
