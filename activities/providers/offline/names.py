"""Names of things: how a person writes them, and whether a title or a sentence means the same thing."""

import re
import unicodedata
from functools import lru_cache

from activities.providers.offline.words import COMPARISONS, any_of, singular

EXACT, CLOSE, NONE = 2, 1, 0

WORD = re.compile(r"[^\W_]+")
_ARTICLE = re.compile(r"(?:the|an?)\s+", re.IGNORECASE)
# Common nouns that come and go with a name: "Everest", "Mount Everest"; "the Nile", "the river Nile".
_DESIGNATORS = ("river", "mount", "mountain", "mt", "lake", "planet", "group", "city", "town", "element", "language")
_CLASSES = ("tower", "bridge", "building", "sea", "ocean", "state", "street", "system", "project", "city")
_PLAIN = {"ł": "l", "ø": "o", "đ": "d", "\u0131": "i", "ß": "s", "æ": "a"}
_MOST = any_of(tuple(item.most for item in COMPARISONS.values()))
_NOT_A_NAME = re.compile(
    r"(?<![\w-])(?:is|are|was|were|do|does|did|has|have|had|can|which|what|who|whom|how|when|where|why|than|"
    r"it|its|they|them|their|this|that|there|ones?|others?|these|those|between|by|together|combined|every|each|all|any|"
    rf"plus|minus|times|takes?|to|most|least|next|{_MOST})(?![\w-])"
)
_PROPERTY = re.compile(r"(?:the )?(?:[a-z]+ )?of ")


def fold(text: str) -> str:
    """Return the text in lower case without accents, of the same length."""
    return "".join(_folded(char) for char in text)


@lru_cache(maxsize=4096)
def _folded(char: str) -> str:
    base = unicodedata.normalize("NFKD", char)[:1].lower() or char
    return _PLAIN.get(base, base) if len(base) == 1 else char


def stem(word: str) -> str:
    """Return a word without its commonest endings, so that "designed" meets "designs"."""
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        word = f"{word[:-3]}y" if word.endswith("ies") else word[:-1]
    for ending in ("ing", "ed", "er", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def bare(name: str) -> str:
    """Return a name without its article."""
    return _ARTICLE.sub("", name, count=1) if _ARTICLE.match(name) else name


@lru_cache(maxsize=2048)
def core(name: str) -> tuple[str, ...]:
    """Return the words that make a name, without article and designators unless nothing else is left."""
    kept = WORD.findall(fold(bare(name)))
    if len(kept) > 1 and kept[0] in _DESIGNATORS:
        kept = kept[2:] if kept[1] == "of" and len(kept) > 2 else kept[1:]
    if len(kept) > 1 and kept[-1] in _DESIGNATORS:
        kept = kept[:-1]
    return tuple(word.removesuffix("s") if len(word) > 3 else word for word in kept)


def same_name(left: str, right: str) -> bool:
    """Whether two names mean the same thing: equal but for case, accents, article and designators."""
    return bool(core(left)) and core(left) == core(right)


def relation(asked: str, title: str) -> int:
    """Return how a document titled `title` relates to the thing asked about: EXACT, CLOSE or NONE.

    CLOSE is a title with a class word more ("Eiffel" and "Eiffel Tower") or, for a common noun, a kind of it
    ("ostrich" and "Common ostrich"); never another proper name that contains this one ("York" and "New York").
    """
    wanted, has = core(asked), core(title)
    if not wanted or not has:
        return NONE
    if wanted == has:
        return EXACT
    size = len(wanted)
    if has[:size] == wanted and all(word in _CLASSES for word in has[size:]):
        return CLOSE
    common = asked == asked.lower()
    return CLOSE if common and size < len(has) and has[-size:] == wanted else NONE


def mention(name: str) -> re.Pattern[str]:
    """Return a pattern that finds the name in folded text, with or without article and designators."""
    around = "|".join(_DESIGNATORS)
    inner = r"[\s-]+".join(re.escape(word) + ("s?" if len(word) > 2 else "") for word in core(name)) or r"(?!)"
    prefix = rf"(?:the\s+|an?\s+)?(?:(?:{around})\.?\s+(?:of\s+)?)?"
    return re.compile(rf"(?<!\w){prefix}{inner}(?:\s+(?:{around})\b)?(?!\w)")


def names_in(text: str, most: int = 24) -> tuple[str, ...]:
    """Return the names in "the Nile, the Amazon and the Rhine"; none when a part cannot be a name."""
    parts = re.split(r"\s*[,;]\s*(?:(?:and|or|&)\s+)?|\s+(?:and|or|&|vs\.?|versus)\s+", text.strip(" ,;:"))
    names = [re.sub(r"^(?:and|or|both|either)\s+", "", part.strip(" .:-")) for part in parts]
    good = 0 < len(names) <= most and all(is_name(name) for name in names)
    return tuple(dict.fromkeys(names)) if good else ()


def is_name(text: str) -> bool:
    """Whether a text can be the name of one thing: up to eight words, none of them a question word or verb.

    `The rivers` are several things, and `the height of K2` is none.
    """
    several = text.startswith("the ") and text == text.lower() and singular(text) != text
    short = 0 < len(text.split()) <= 8 and len(text) <= 100 and re.search(r"[^\W\d]", text)
    return bool(short and core(text)) and not (several or _PROPERTY.match(text) or _NOT_A_NAME.search(text.lower()))


def slug(name: str) -> str:
    """Return a name as the start of a node id: letters, digits and underscores, a letter first."""
    text = "_".join(word for part in core(name) if (word := re.sub(r"[^a-z0-9]", "", part)))[:24].strip("_")
    return text if text[:1].isalpha() else f"n{text}"
