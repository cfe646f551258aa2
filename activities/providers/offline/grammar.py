"""The pieces that question patterns are made of. Patterns match one sentence as `clean` leaves it: single spaces."""

import re

from activities.providers.offline.names import names_in
from activities.providers.offline.questions import Term
from activities.providers.offline.units import PATTERN, unit_of
from activities.providers.offline.words import COMPARISONS, EVENTS, POSITIVES


def _any(words: list[str]) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


# Verbs that ask for an attribute: "weighs more", "how much does it weigh".
VERBS = {
    "weighs": "mass",
    "weigh": "mass",
    "lives": "life span",
    "live": "life span",
    "costs": "price",
    "cost": "price",
}
DEGREES = {"melts": "melting point", "melt": "melting point", "boils": "boiling point", "boil": "boiling point"}
RANKS = {"second": 2, "third": 3, "fourth": 4, "fifth": 5, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5}
COUNTS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
FEW = ("fewer", "fewest", "less", "least", "lower", "lowest", "smaller", "smallest", "shorter", "shortest")
EARLY = ("first", "earlier", "earliest")

BE = "(?:is|are|was|were)"
THE = "(?:the |an? )?"
WHICH = "(?:which|what|who)(?: one| [a-z]+)?"
SEP = r"(?: ?[,:;\u2013\u2014-]+ ?| )"
COMPARED = _any(list(COMPARISONS))
ADJ = f"(?P<adj>{COMPARED})"
MOST = f"(?P<adj>{_any([word for word, item in COMPARISONS.items() if item.superlative])})"
LONG = f"(?P<adj>{_any(list(POSITIVES))})"
AIM = r"(?: (?:to|from|away from) (?P<target>(?:the )?\w+))?"
MORE = (
    "(?P<more>more|most|fewer|fewest|less|least|higher|highest|larger|largest|greater|greatest|bigger|biggest|"
    "longer|longest|lower|lowest|smaller|smallest|shorter|shortest)"
)
VERB = f"(?P<verb>{_any(list(VERBS))})"
DEGREE = f"(?P<verb>{_any(list(DEGREES))})"
HAPPENED = _any(list(EVENTS))
EVENT = f"(?P<event>{HAPPENED})"
WHEN = "(?P<when>first|earlier|earliest|last|later|latest|(?:most|more) recently)"
NOUN = "(?P<noun>(?:number of )?[a-z ]+?)"
NAMES = "(?P<names>.+?)"
FIRST, SECOND = "(?P<first>.+?)", "(?P<second>.+?)"
TOGETHER = "(?:together|combined|in total|in all|altogether|taken together|put together|added up)"
UNIT = f"(?P<unit>{PATTERN})"
FAMILY = "(?P<family>[a-z][a-z -]*?)"
RANK = rf"(?P<rank>{_any(list(RANKS))}|(?:top )?(?:{_any(list(COUNTS))}|\d{{1,2}}))?[ -]?"
HERE = (
    "(?: (?:(?:in|on|of|from|among) (?:all )?(?:the |this |these |your |my )?(?:whole )?(?:world|earth|planet|"
    "solar system|documents?|notes?|folder|corpus|collection|files|them all|all|texts?)|(?:are )?(?:there|described|"
    "mentioned|covered|listed|here)(?: in the (?:documents?|notes?|folder|corpus|files))?))?"
)

_POLITE = re.compile(
    r"(?:(?:hi|hello|hey)\b[,!]?|please|kindly|(?:can|could|would|will) you|tell (?:me|us)(?! about)|do you know|"
    r"(?:i|we)(?:'d| would)? (?:want|like|need) to know|i wonder|find out|find|work out|calculate|compute|"
    r"determine|look up|say|answer|give (?:me|us)|so|now|then|also|question:) ",
    re.IGNORECASE,
)
_SHORT = re.compile(r"^(what|who|how|where|which)'s ", re.IGNORECASE)
_UNIT_TAIL = re.compile(rf",? (?:expressed |measured )?in {UNIT}(?=$|,? and\b)")


def clean(text: str) -> str:
    """Return a sentence without politeness, contractions, doubled spaces and end marks."""
    words = re.sub(r"[?.!\s]+$", "", re.sub(r"\s+", " ", text.replace("\u2019", "'")).strip())
    for _ in range(4):
        words = _POLITE.sub("", words, count=1) if _POLITE.match(words) else words
    return _SHORT.sub(r"\1 is ", words)


def unit_in(text: str) -> tuple[str, str]:
    """Split `... in miles` into the text without it and the unit's symbol, empty when there is none."""
    found = _UNIT_TAIL.search(text)
    unit = unit_of(found["unit"]) if found else None
    return (text[: found.start()] + text[found.end() :], unit.symbol) if found and unit else (text, "")


def terms_of(text: str) -> tuple[Term, ...]:
    """Return the names listed in a text, one term each; none when a part cannot be a name."""
    return tuple((name,) for name in names_in(text) or ())
