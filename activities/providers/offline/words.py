"""What can be asked of a thing, as data: attributes with the words that name them, and how they are compared."""

import re
from dataclasses import dataclass
from functools import lru_cache

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One property.

    `nouns` name it in questions and stand before a figure ("a length of 5 km"); `before` are further words before a
    figure ("stretches 5 km"); `after` stand right behind one ("5 km long"). `dimensions` are those a value may have
    (empty: any) and `unit` the one all values are converted to (empty: the dimension's usual one). `avoid` marks other
    kinds of the property; `accepts` names attributes whose figure answers too, best first. `dated` is a year, and
    without `scale` a sum or ratio has no meaning.
    """

    name: str
    dimensions: Words = ()
    unit: str = ""
    nouns: Words = ()
    before: Words = ()
    after: Words = ()
    avoid: Words = ()
    accepts: Words = ()
    dated: bool = False
    scale: bool = True

    @property
    def event(self) -> str:
        """What happened, of a dated attribute: `completed`."""
        return self.name.removeprefix("year ")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparative and its superlative: which attribute, and whether more (1) or less (-1) of it is meant."""

    attribute: str
    sign: int
    more: str
    most: str


def _words(text: str) -> Words:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _one(
    name: str, dimensions: str, unit: str = "", nouns: str = "", before: str = "", after: str = "", avoid: str = "",
    accepts: str = "", *, dated: bool = False, scale: bool = True, own: bool = True,
) -> Attribute:  # fmt: skip
    named = ((name,) if own else ()) + _words(nouns)
    lists = (_words(before), _words(after), _words(avoid), _words(accepts))
    return Attribute(name, _words(dimensions), unit, named, *lists, dated, scale)


_METRO = "metropolitan, metro, urban, agglomeration, greater, conurbation, suburbs"
_PASSING = "day, year, killed, died, worked, visitors, passengers"
_STRETCHES = "stretches, stretch, extends, flows, runs, measures, lasts, lasted"
_ORBITS = "to orbit, to circle, to go around, to go round, to complete an orbit"
_SINCE = "completed, opened, founded, built, established, born"
ATTRIBUTES = {
    item.name: item
    for item in (
        _one("length", "length, time", "km", "", _STRETCHES, "long, in length"),
        _one("height", "length", "m", "", "rises, rising, stands, soars", "high, tall, in height", accepts="elevation"),
        _one("elevation", "length", "m", "altitude", "", "above sea level, above the sea", accepts="height"),
        _one("depth", "length", "m", "", "", "deep, in depth", "average, mean, averages"),
        _one("width", "length", "m", "breadth", "", "wide, broad, in width"),
        _one("diameter", "length", "km", "", "", "across, in diameter"),
        _one("drainage basin", "area", "km²", "basin, catchment, drainage area, watershed", "drains"),
        _one("area", "area", "km²", "surface area, surface, land area, total area", "covers, occupies, spans",
             "in area", _METRO),
        _one("volume", "volume", "km³", "", "holds, contains", "of water"),
        _one("discharge", "flow", "m³/s", "flow rate, flow", "discharges, carries"),
        _one("mass", "mass", "kg", "weight, body weight", "weigh, weighs, weighing", "heavy, in weight, in mass"),
        _one("speed", "speed", "km/h", "top speed, velocity", "reach, reaches, run at, runs at, fly at", "fast",
             "average, mean, averages, wind, winds"),
        _one("temperature", "temperature", "°C", "", "", "hot, cold, warm", scale=False),
        _one("melting point", "temperature", "°C", "melting temperature", "melts, melt, melted", scale=False),
        _one("boiling point", "temperature", "°C", "boiling temperature", "boils, boil", scale=False),
        _one("density", "density", "g/cm³", "", "", "dense"),
        _one("population density", "people by area, count"),
        _one("population", "count", "", "number of inhabitants, number of people", "home to, inhabited by",
             "people, inhabitants, residents, citizens", f"{_METRO}, {_PASSING}"),
        _one("number of native speakers", "count", "", "native speakers", "", "native speakers"),
        _one("number of speakers", "count", "", "speakers, total speakers", "", "speakers, people speak",
             "native, second, mother"),
        _one("number of floors", "count", "", "floors, storeys, stories", "", "floors, storeys, stories"),
        _one("life span", "time", "years", "lifespan, life expectancy", "live, lives, living"),
        _one("orbital period", "time", "days", "orbit", "orbits", _ORBITS),
        _one("length of a day", "time", "hours", "length of day, a day, day", "day lasts, rotates, rotation"),
        _one("price", "US dollars, euros, British pounds", "", "cost, costs, budget", "costs, sells"),
        _one("size", "length, area", "", "", "", "", "", "area, diameter", own=False),
        _one("year of origin", "date", "", "age", _SINCE, dated=True, scale=False, own=False),
    )
}  # fmt: skip

# The word for much of an attribute; more and most of it, then less and least.
_COMPARED = """
length: long; longer longest, shorter shortest
height: tall high; taller tallest higher highest, lower lowest
depth: deep; deeper deepest, shallower shallowest
width: wide broad; wider widest broader broadest, narrower narrowest
size: big large small; bigger biggest larger largest, smaller smallest
mass: heavy; heavier heaviest, lighter lightest
speed: fast; faster fastest quicker quickest, slower slowest
temperature: hot cold warm; hotter hottest warmer warmest, colder coldest cooler coolest
density: dense; denser densest, sparser sparsest
population: populous; more_populous most_populous, less_populous least_populous
price: expensive; more_expensive most_expensive, cheaper cheapest
year of origin: old; younger youngest newer newest, older oldest
distance: ; farther farthest further furthest, closer closest nearer nearest
"""
COMPARISONS: dict[str, Comparison] = {}
POSITIVES: dict[str, str] = {}
for _line in _COMPARED.strip().splitlines():
    _attribute, _much, _ends = re.split(r": |; ", _line)
    POSITIVES |= dict.fromkeys(_much.split(), _attribute)
    for _sign, _end in zip((1, -1), _ends.split(", "), strict=True):
        _spelled = [word.replace("_", " ") for word in _end.split()]
        for _more, _most in zip(_spelled[::2], _spelled[1::2], strict=True):
            COMPARISONS |= dict.fromkeys((_more, _most), Comparison(_attribute, _sign, _more, _most))
EVENTS = {
    "completed": ("completed", "finished", "built"),
    "built": ("built", "constructed", "completed", "erected"),
    "opened": ("opened", "inaugurated"),
    "founded": ("founded", "established"),
}
"""The words that may tell of an event; of any other, only its own."""
_NEUTRAL = ("total", "overall", "full", "maximum", "top", "exact", "official", "current", "approximate", "typical")
_PHRASE = re.compile(r"[a-z][a-z' -]*[a-z]$")
_NO_ATTRIBUTE = re.compile(
    r"\b(?:is|are|was|were|do|does|did|has|have|which|what|who|how|when|where|why|and|or|than|it|that|this|of|there|"
    r"between|names?|meaning|capital|reason|history|difference|ratio|sum)\b"
)
_SYNONYMS = {noun: item.name for item in reversed(ATTRIBUTES.values()) for noun in (item.name, *item.nouns)} | {
    "inhabitants": "population",
    "people": "population",
    "residents": "population",
}


def named(phrase: str) -> Attribute | None:
    """Return the attribute that a noun phrase names; an unknown phrase of up to five words names its own."""
    text = re.sub(r"\s+", " ", phrase.strip().lower())
    text = re.sub(r"^(?:the|its|their) ", "", text)
    first, _, rest = text.partition(" ")
    found = _known(text) or (_known(rest) if first in _NEUTRAL else None)
    if found:
        return found
    if target := re.fullmatch(r"(?:average |mean )?distance (?:from|to) (.+)", text):
        return distance(target[1])
    if text.startswith("year "):
        return dated(text.removeprefix("year "))
    if text.startswith("number of "):
        return counted(text.removeprefix("number of "))
    if not _PHRASE.match(text) or len(text.split()) > 5 or _NO_ATTRIBUTE.search(text) or text == "number":
        return None
    return Attribute(text, nouns=(text,))


def _known(text: str) -> Attribute | None:
    return ATTRIBUTES.get(_SYNONYMS.get(text) or _SYNONYMS.get(singular(text), ""))


def singular(noun: str) -> str:
    """Return a noun phrase with its last word in the singular."""
    if noun.endswith("ies") and len(noun) > 4:
        return f"{noun[:-3]}y"
    if noun.endswith(("sses", "shes", "ches", "xes")):
        return noun[:-2]
    return noun[:-1] if noun.endswith("s") and not noun.endswith(("ss", "us", "is")) else noun


def plural(noun: str) -> str:
    """Return the plural of a common noun."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def counted(noun: str) -> Attribute | None:
    """Return the attribute of how many `noun` something has."""
    text = re.sub(r"\s+", " ", noun.strip().lower())
    known = ATTRIBUTES.get(_SYNONYMS.get(text, ""))
    if known is not None and known.dimensions == ("count",):
        return known
    if not _PHRASE.match(text) or len(text.split()) > 4 or _NO_ATTRIBUTE.search(text):
        return None
    return Attribute(f"number of {text}", ("count",), "", (f"number of {text}",), (), (text, singular(text)))


def dated(event: str) -> Attribute | None:
    """Return the attribute of the year in which something was `event`, such as "completed"."""
    text = re.sub(r"\s+", " ", event.strip().lower())
    if text == "of origin":
        return ATTRIBUTES["year of origin"]
    if not _PHRASE.match(text) or len(text.split()) > 4:
        return None
    return Attribute(f"year {text}", ("date",), before=EVENTS.get(text, (text,)), dated=True, scale=False)


def distance(target: str) -> Attribute:
    """Return the attribute of how far something is from `target`."""
    aim = re.sub(r"\s+", " ", target.strip().lower()).removeprefix("the ")
    aims = tuple(f"{word} {the}{aim}" for word in ("from", "to") for the in ("the ", ""))
    the = "the " if target.strip().lower() != aim else ""
    name = f"distance from {the}{aim.title() if aim in ('sun', 'moon', 'earth') else aim}"
    return Attribute(name, ("length",), "km", after=aims)


@lru_cache(maxsize=512)
def any_of(words: Words) -> str:
    """Return a pattern for any of the words, the longest first; it matches nothing where there are none."""
    spaced = (r"[\s-]+".join(re.escape(part) for part in re.split(r"[\s-]+", word.lower())) for word in words)
    return f"(?:{'|'.join(sorted(spaced, key=lambda word: (-len(word), word)))})" if words else "(?!)"


def of(attribute: str, name: str) -> str:
    """Return `length of the Nile`, `distance of Mars from the Sun`, `length of a day on Mars`."""
    if attribute.startswith("distance from "):
        return f"distance of {name} {attribute.removeprefix('distance ')}"
    return f"{attribute} {'on' if attribute.endswith('a day') else 'of'} {name}"
