"""Makes a question of what a pattern matched, if its parts fit together."""

import re

from activities.providers.offline.grammar import COUNTS, DEGREES, EARLY, FEW, RANKS, TOGETHER, VERBS, terms_of
from activities.providers.offline.questions import Question, Shape, Term
from activities.providers.offline.units import unit_of
from activities.providers.offline.words import (
    ATTRIBUTES,
    COMPARISONS,
    POSITIVES,
    Attribute,
    counted,
    dated,
    distance,
    is_known,
    named,
    singular,
)

Groups = dict[str, str | None]

_FIXED = {
    "day": "length of a day",
    "orbit": "orbital period",
    "lives": "life span",
    "speed": "speed",
    "people": "population",
    "speak": "number of speakers",
}
_OPENS = {"open": "opened", "finish": "finished", "launch": "launched"}
_UPWARD = re.compile(
    r"from (?:the )?(?:short|small|low|least|light|young|slow|cold)|ascending|smallest|shortest|lowest"
)
_NOT_A_KIND = re.compile(
    r"\b(?:in|of|on|from|that|with|and|or|to|at|by|for|than|is|are|it|things?|ones?|names?|documents?|notes?|files?|"
    r"there|which|whose|who|between|has|have|the|their)\b"
)
_TERMS: dict[Shape, tuple[int, int]] = {"check": (2, 2), "difference": (2, 2), "ratio": (2, 2), "compare": (2, 24)}


def read(shape: Shape, groups: Groups) -> Question | None:
    """Return the question that the groups of a match make; None when a name, kind or attribute is none."""
    attribute, sign, word = _property(shape, groups)
    if shape == "members":
        family = kind_of(groups["family"] or "", plural=True)
        return Question("members", "", family=family) if family else None
    if attribute is None:
        return None
    if "family" in groups:
        return _ranging(shape, groups, attribute, sign, word)
    terms = _terms(shape, groups)
    if not terms:
        return None
    if shape in ("sum", "average"):
        names = tuple(name for term in terms for name in term)
        if len(names) == 1 and (mean := groups.get("mean")):
            alone = named(f"{mean} {groups['noun']}")
            return Question("lookup", "", alone, terms) if alone else None
        return Question(shape, "", attribute, (names,)) if len(names) > 1 and _adds_up(shape, attribute) else None
    if shape == "lookup":
        if not is_known(attribute) and not groups.get("listed"):
            return None
        return Question("lookup" if len(terms) == 1 else "list", "", attribute, terms)
    least, most = _TERMS[shape]
    unit = unit_of(groups.get("unit") or "")
    if not least <= len(terms) <= most or not _adds_up(shape, attribute):
        return None
    return Question(shape, "", attribute, terms, sign, word, unit=unit.symbol if unit else "")


def _adds_up(shape: Shape, attribute: Attribute) -> bool:
    return attribute.scale or shape not in ("sum", "ratio")


def attribute_of(word: str, target: str | None) -> tuple[Attribute | None, int]:
    """Return (attribute, sign) of "longer", "shortest", "long"; "closer" needs the thing it is close to."""
    key = re.sub(r"\s+", " ", word.lower())
    found = COMPARISONS.get(key)
    name = found.attribute if found else POSITIVES.get(key)
    sign = found.sign if found else 1
    if name == "distance":
        return (distance(target), sign) if target else (None, sign)
    return (None if name is None or target else ATTRIBUTES[name]), sign


def _property(shape: Shape, groups: Groups) -> tuple[Attribute | None, int, str]:
    """The attribute asked for, whether more or less of it wins, and the word that said so."""
    for key, name in _FIXED.items():
        if groups.get(key) is not None:
            return ATTRIBUTES[name], 1, ""
    adjective, noun, more = (
        groups.get("adj") or groups.get("long"),
        groups.get("noun"),
        (groups.get("more") or "").lower(),
    )
    if adjective:
        attribute, sign = attribute_of(adjective, groups.get("target"))
        return (named(noun) if noun else attribute), sign, adjective.lower()
    if target := groups.get("target"):
        return distance(target), 1, ""
    if verb := groups.get("verb"):
        return ATTRIBUTES[(VERBS | DEGREES)[verb.lower()]], -1 if more in FEW else 1, more
    if things := groups.get("things"):
        return counted(things), 1, ""
    if event := groups.get("event") or _OPENS.get((groups.get("opens") or "").lower()):
        when = (groups.get("when") or "").lower()
        return dated(event), -1 if when in EARLY else 1, when
    down = more in FEW or bool(_UPWARD.search((groups.get("order") or "").lower()))
    return _noun(shape, noun or "", more), -1 if down else 1, "ranked" if groups.get("sorted") else more


def _noun(shape: Shape, noun: str, more: str) -> Attribute | None:
    """`the higher melting point`, `more moons`: an unknown plural that is counted is a number of things."""
    found = named(noun)
    if found is not None and (found.name in ATTRIBUTES or found.name.startswith("number of ")):
        return found
    things = more in ("more", "most", "fewer", "fewest") or (shape == "sum" and noun.endswith("s"))
    return counted(noun) if things else found


def _terms(shape: Shape, groups: Groups) -> tuple[Term, ...]:
    if names := groups.get("names"):
        return terms_of(re.sub(f" {TOGETHER}$", "", names, flags=re.IGNORECASE) if shape == "sum" else names)
    first, second = groups.get("first") or "", groups.get("second") or ""
    together = re.search(rf" {TOGETHER}\b", f"{first} {second}", re.IGNORECASE)
    sides = [terms_of(re.sub(rf" {TOGETHER}\b", "", part, flags=re.IGNORECASE)) for part in (first, second)]
    if not all(sides) or (max(map(len, sides)) > 1 and not together):
        return ()
    return tuple(tuple(name for term in side for name in term) for side in sides)


def _ranging(shape: Shape, groups: Groups, attribute: Attribute, sign: int, word: str) -> Question | None:
    """A question over all documents of a kind."""
    family = kind_of(groups["family"] or "", plural=shape == "list" or bool(groups.get("sorted")))
    asked = groups.get("long")
    if family is None or (asked and groups.get("adj") and attribute_of(asked, None)[0] != attribute):
        return None
    rank = (groups.get("rank") or "").lower()
    count = rank.removeprefix("top ").strip()
    top = COUNTS.get(count) or (int(count) if count.isdigit() else 1)
    top = 50 if groups.get("sorted") else max(1, min(top, 50))
    return Question(shape, "", attribute, (), sign, word, family=family, rank=RANKS.get(rank, 1), top=top)


def kind_of(text: str, *, plural: bool = False) -> str | None:
    """Return the kind of thing in the singular: lower-case words, none of them a preposition or verb."""
    words = text.strip()
    if words != words.lower() or not 0 < len(words.split()) <= 3 or _NOT_A_KIND.search(words):
        return None
    one = singular(words)
    return None if plural and one == words else one
