"""The pieces that question rules are made of: adjectives, units, lists of names."""

import re

from activities.providers.offline.names import names_in
from activities.providers.offline.questions import Term
from activities.providers.offline.units import PATTERN, unit_of
from activities.providers.offline.words import ATTRIBUTES, COMPARISONS, POSITIVES, Attribute, distance

BE = r"(?:is|are|was|were)"
WHICH = r"(?:which|what|who)(?:\s+(?:one|[a-z]+))?"
ADJECTIVE = "|".join(sorted((word.replace(" ", r"\s+") for word in COMPARISONS), key=len, reverse=True))
SUPERLATIVE = "|".join(
    sorted((word.replace(" ", r"\s+") for word, item in COMPARISONS.items() if item.superlative), key=len, reverse=True)
)
POSITIVE = "|".join(sorted(POSITIVES, key=len, reverse=True))
NAMES = r"(?P<names>.+)"
AIM = r"(?:\s+(?:to|from|away\s+from)\s+(?P<target>(?:the\s+)?\w+))?"
MORE = (
    r"(?P<more>more|most|fewer|fewest|less|least|higher|highest|larger|largest|greater|greatest|bigger|biggest|"
    r"longer|longest|lower|lowest|smaller|smallest|shorter|shortest)"
)
FEW = ("fewer", "fewest", "less", "least", "lower", "lowest", "smaller", "smallest", "shorter", "shortest")
VERBS = {
    "weighs": "mass",
    "weigh": "mass",
    "lives": "life span",
    "live": "life span",
    "costs": "price",
    "cost": "price",
}
VERB = "|".join(VERBS)
UNIT = PATTERN

_POLITE = re.compile(
    r"(?:(?:hi|hello|hey)\b[,!]?|please|kindly|(?:can|could|would|will)\s+you|tell\s+(?:me|us)(?!\s+about)|do\s+you\s+know|"
    r"(?:i|we)(?:'d|\s+would)?\s+(?:want|like|need)\s+to\s+know|i\s+wonder|find\s+out|find|work\s+out|calculate|compute|"
    r"determine|look\s+up|say|answer|give\s+(?:me|us)|so|now|then|also|question:)\s+",
    re.IGNORECASE,
)
_SHORT = {"what's": "what is", "who's": "who is", "how's": "how is", "where's": "where is", "which's": "which is"}


def clean(text: str) -> str:
    """Return a sentence without politeness, contractions and end marks."""
    words = re.sub(r"\s+", " ", text.replace("’", "'")).strip()
    words = re.sub(r"[?.!\s]+$", "", words)
    for _ in range(4):
        found = _POLITE.match(words)
        if not found:
            break
        words = words[found.end() :]
    head, _, rest = words.partition(" ")
    return f"{_SHORT[head.lower()]} {rest}" if head.lower() in _SHORT else words


_UNIT_TAIL = re.compile(rf",?\s+(?:expressed\s+|measured\s+)?in\s+(?P<unit>{PATTERN})(?=\s*$|,?\s+and\b)")


def unit_in(text: str) -> tuple[str, str]:
    """Split `... in miles` into the text before and the unit's symbol, empty when there is none."""
    found = _UNIT_TAIL.search(text)
    unit = unit_of(found["unit"]) if found else None
    if not found or unit is None:
        return text, ""
    return text[: found.start()] + text[found.end() :], unit.symbol


def terms_of(text: str) -> tuple[Term, ...] | None:
    """Return the names listed in a text, one term each; None when a part cannot be a name."""
    found = names_in(text)
    return tuple((name,) for name in found) if found else None


def attribute_of(word: str, target: str | None) -> tuple[Attribute | None, int]:
    """Return (attribute, sign) of "longer", "shortest", "long"; "closer" needs the thing it is close to."""
    key = re.sub(r"\s+", " ", word.lower())
    found = COMPARISONS.get(key)
    name = found.attribute if found else POSITIVES.get(key)
    sign = found.sign if found else 1
    if name == "distance":
        return (distance(target), sign) if target else (None, sign)
    if name is None or target:
        return None, sign
    return ATTRIBUTES[name], sign
