"""What can be asked of a thing, as data: attributes with the words that name them, and how they are compared."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attribute:
    """One measurable property.

    `nouns` name it in questions and stand before a figure ("a length of 5 km"); `before` are further words before a
    figure ("stretches 5 km"); `after` stand right behind one ("5 km long"). `dimensions` are those a value may have
    (empty: any) and `unit` the one all values are converted to (empty: the dimension's usual one). `accepts` names
    attributes whose figure answers too, best first.
    """

    name: str
    dimensions: tuple[str, ...] = ()
    unit: str = ""
    nouns: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    accepts: tuple[str, ...] = ()
    dated: bool = False
    scale: bool = True


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparative or superlative: which attribute, and whether more (1) or less (-1) of it is meant."""

    attribute: str
    sign: int
    superlative: bool


_METRO = ("metropolitan", "metro", "urban", "agglomeration", "greater", "conurbation", "suburbs")
_MEAN = ("average", "mean", "averages")

ATTRIBUTES: dict[str, Attribute] = {
    item.name: item
    for item in (
        Attribute(
            "length",
            ("length", "time"),
            "km",
            nouns=("length",),
            before=("stretches", "stretch", "extends", "flows", "runs", "measures", "lasts", "lasted"),
            after=("long", "in length", "in total length"),
        ),
        Attribute(
            "height",
            ("length",),
            "m",
            nouns=("height",),
            before=("rises", "rising", "stands", "soars", "tops out"),
            after=("high", "tall", "in height"),
            accepts=("elevation",),
        ),
        Attribute(
            "elevation",
            ("length",),
            "m",
            nouns=("elevation", "altitude"),
            after=("above sea level", "above mean sea level", "above the sea", "a.s.l", "amsl"),
            accepts=("height",),
        ),
        Attribute("depth", ("length",), "m", nouns=("depth",), after=("deep", "in depth"), avoid=_MEAN),
        Attribute("width", ("length",), "m", nouns=("width", "breadth"), after=("wide", "broad", "in width")),
        Attribute("diameter", ("length",), "km", nouns=("diameter",), after=("across", "in diameter")),
        Attribute(
            "distance", ("length",), "km", nouns=("distance",), before=("lies", "orbits"), after=("away", "from")
        ),
        Attribute(
            "drainage basin",
            ("area",),
            "km²",
            nouns=("drainage basin", "basin", "catchment", "catchment area", "drainage area", "watershed"),
            before=("drains",),
        ),
        Attribute(
            "area",
            ("area",),
            "km²",
            nouns=("area", "surface area", "surface", "land area", "total area"),
            before=("covers", "covering", "occupies", "spans"),
            after=("in area", "in size"),
            avoid=_METRO,
            accepts=("drainage basin",),
        ),
        Attribute("volume", ("volume",), "km³", nouns=("volume",), before=("holds", "contains"), after=("of water",)),
        Attribute(
            "discharge", ("flow",), "m³/s", nouns=("discharge", "flow rate", "flow"), before=("discharges", "carries")
        ),
        Attribute(
            "mass",
            ("mass", "tons"),
            "kg",
            nouns=("mass", "weight", "body mass", "body weight"),
            before=("weigh", "weighs", "weighed", "weighing"),
            after=("heavy", "in weight", "in mass"),
        ),
        Attribute(
            "speed",
            ("speed",),
            "km/h",
            nouns=("speed", "top speed", "velocity", "maximum speed"),
            before=("reach", "reaches", "run at", "runs at", "sprint", "sprints", "fly at"),
            after=("fast",),
            avoid=(*_MEAN, "wind", "winds"),
        ),
        Attribute(
            "temperature", ("temperature",), "°C", nouns=("temperature",), after=("hot", "cold", "warm"), scale=False
        ),
        Attribute(
            "melting point",
            ("temperature",),
            "°C",
            nouns=("melting point", "melting temperature"),
            before=("melts", "melt", "melted"),
            scale=False,
        ),
        Attribute(
            "boiling point",
            ("temperature",),
            "°C",
            nouns=("boiling point", "boiling temperature"),
            before=("boils", "boil"),
            scale=False,
        ),
        Attribute("density", ("density",), "g/cm³", nouns=("density",), after=("dense",)),
        Attribute("population density", ("people by area", "count"), nouns=("population density",)),
        Attribute(
            "population",
            ("count",),
            nouns=("population", "number of inhabitants", "number of people", "number of residents"),
            before=("home to", "populated by", "inhabited by"),
            after=("people", "inhabitants", "residents", "citizens"),
            avoid=(*_METRO, "a day", "per day", "killed", "died", "a year", "worked", "visitors", "passengers"),
        ),
        Attribute(
            "number of native speakers", ("count",), nouns=("number of native speakers",), after=("native speakers",)
        ),
        Attribute(
            "number of speakers",
            ("count",),
            nouns=("number of speakers", "total speakers"),
            after=("speakers", "people speak"),
            avoid=("native", "second", "mother"),
        ),
        Attribute("number of floors", ("count",), nouns=("number of floors",), after=("floors", "storeys", "stories")),
        Attribute(
            "life span",
            ("time",),
            "years",
            nouns=("life span", "lifespan", "life expectancy"),
            before=("live", "lives", "living"),
        ),
        Attribute(
            "orbital period",
            ("time",),
            "days",
            nouns=("orbital period", "orbit"),
            before=("orbits",),
            after=("to orbit", "to circle", "to go around", "to complete an orbit"),
        ),
        Attribute(
            "length of a day",
            ("time",),
            "hours",
            nouns=("length of a day", "length of day", "day length", "a day", "day"),
            before=("day lasts", "rotates", "rotation"),
        ),
        Attribute(
            "price",
            ("US dollars", "euros", "British pounds"),
            nouns=("price", "cost", "costs", "budget"),
            before=("cost", "costs", "sells"),
        ),
        Attribute("age", ("time",), "years", nouns=("age",), after=("old", "of age"), accepts=("origin",)),
        Attribute(
            "origin",
            ("date",),
            before=("completed", "opened", "inaugurated", "founded", "built", "established", "born"),
            dated=True,
            scale=False,
        ),
        Attribute(
            "size",
            nouns=("size",),
            before=("measures",),
            accepts=("area", "diameter", "population", "drainage basin", "volume", "mass", "height"),
        ),
    )
}

# One family of words: more, most, less, least of an attribute.
_COMPARED = """
length: longer longest, shorter shortest
height: taller tallest higher highest, lower lowest
depth: deeper deepest, shallower shallowest
width: wider widest broader broadest, narrower narrowest
size: bigger biggest larger largest greater greatest, smaller smallest tinier tiniest
mass: heavier heaviest, lighter lightest
speed: faster fastest quicker quickest, slower slowest
temperature: hotter hottest warmer warmest, colder coldest cooler coolest
density: denser densest
population: more_populous most_populous, less_populous least_populous
price: more_expensive most_expensive, cheaper cheapest
age: older oldest, younger youngest newer newest
distance: farther farthest further furthest, closer closest nearer nearest
"""


def _comparisons() -> dict[str, Comparison]:
    found = {}
    for line in _COMPARED.strip().splitlines():
        attribute, _, words = line.partition(": ")
        for sign, part in zip((1, -1), words.split(", "), strict=False):
            for index, word in enumerate(part.split()):
                found[word.replace("_", " ")] = Comparison(attribute, sign, index % 2 == 1)
    return found


COMPARISONS = _comparisons()
POSITIVES = {
    "long": "length",
    "tall": "height",
    "high": "height",
    "deep": "depth",
    "wide": "width",
    "broad": "width",
    "big": "size",
    "large": "size",
    "small": "size",
    "heavy": "mass",
    "fast": "speed",
    "hot": "temperature",
    "cold": "temperature",
    "warm": "temperature",
    "dense": "density",
    "old": "age",
    "populous": "population",
    "expensive": "price",
}
# Before a noun: "the higher melting point", "the most moons".
MORE = (
    "more",
    "most",
    "higher",
    "highest",
    "larger",
    "largest",
    "greater",
    "greatest",
    "bigger",
    "biggest",
    "longer",
    "longest",
)
LESS = ("fewer", "fewest", "less", "least", "lower", "lowest", "smaller", "smallest", "shorter", "shortest")

# What happened in a year: the word asked for, and the words that tell of it.
EVENTS: dict[str, tuple[str, ...]] = {
    "completed": ("completed", "finished", "built"),
    "finished": ("finished", "completed"),
    "built": ("built", "constructed", "completed", "erected"),
    "constructed": ("constructed", "built", "completed"),
    "opened": ("opened", "inaugurated"),
    "founded": ("founded", "established"),
    "established": ("established", "founded"),
    "discovered": ("discovered",),
    "first climbed": ("first climbed", "first ascended", "first ascent"),
    "climbed": ("first climbed", "climbed"),
    "born": ("born",),
    "invented": ("invented",),
    "published": ("published",),
    "released": ("released",),
    "launched": ("launched",),
}
EVENT_NOUNS = {
    "completion": "completed",
    "construction": "built",
    "opening": "opened",
    "founding": "founded",
    "foundation": "founded",
    "discovery": "discovered",
    "first ascent": "first climbed",
    "birth": "born",
    "invention": "invented",
    "publication": "published",
    "release": "released",
    "launch": "launched",
}
_NEUTRAL = (
    "total",
    "overall",
    "full",
    "maximum",
    "max",
    "top",
    "exact",
    "official",
    "current",
    "approximate",
    "typical",
)
_SYNONYMS = {noun: item.name for item in reversed(ATTRIBUTES.values()) for noun in (item.name, *item.nouns)} | {
    "inhabitants": "population",
    "people": "population",
    "residents": "population",
    "native speakers": "number of native speakers",
    "speakers": "number of speakers",
    "floors": "number of floors",
    "storeys": "number of floors",
    "stories": "number of floors",
}
_PHRASE = re.compile(r"[a-z][a-z' -]*[a-z]$")


def named(phrase: str) -> Attribute | None:
    """Return the attribute that a noun phrase names; an unknown phrase of up to five words names its own."""
    text = re.sub(r"\s+", " ", phrase.strip().lower())
    text = re.sub(r"^(?:the|its|their) ", "", text)
    if found := _known(text) or _known(_singular(text)):
        return found
    first, _, rest = text.partition(" ")
    if first in _NEUTRAL and rest and (found := _known(rest) or _known(_singular(rest))):
        return found
    target = re.fullmatch(r"(?:average |mean )?distance (?:from|to) (.+)", text)
    if target and _PHRASE.match(target[1]):
        return distance(target[1])
    if text.startswith("number of "):
        return counted(text.removeprefix("number of "))
    if text.startswith("year of ") and (event := EVENT_NOUNS.get(re.sub(r"^year of (?:its )?", "", text))):
        return dated(event)
    if event := EVENT_NOUNS.get(text):
        return dated(event)
    if not _PHRASE.match(text) or len(text.split()) > 5 or _COMMON.search(text):
        return None
    return Attribute(text, nouns=(text,), after=(text,) if text.endswith("s") else ())


_COMMON = re.compile(
    r"\b(?:is|are|was|were|do|does|did|has|have|which|what|who|how|when|where|why|and|or|than|it|that|this|of|there|between|name|names|meaning|"
    r"capital|reason|history|difference|ratio|sum)\b"
)


def _known(text: str) -> Attribute | None:
    return ATTRIBUTES.get(_SYNONYMS.get(text, ""))


def _singular(text: str) -> str:
    if text.endswith("ies"):
        return f"{text[:-3]}y"
    if text.endswith("sses"):
        return text[:-2]
    return text.removesuffix("s") if not text.endswith("ss") else text


def counted(noun: str) -> Attribute | None:
    """Return the attribute of how many `noun` something has."""
    text = re.sub(r"\s+", " ", noun.strip().lower())
    if not _PHRASE.match(text) or len(text.split()) > 4 or _COMMON.search(text):
        return None
    known = _SYNONYMS.get(text)
    if known and ATTRIBUTES[known].dimensions == ("count",):
        return ATTRIBUTES[known]
    name = f"number of {text}"
    return Attribute(name, ("count",), nouns=(name, text), after=(text, _singular(text)))


def dated(event: str) -> Attribute | None:
    """Return the attribute of the year in which something was `event`, such as "completed"."""
    text = re.sub(r"\s+", " ", event.strip().lower())
    if not _PHRASE.match(text) or len(text.split()) > 4:
        return None
    return Attribute(f"year {text}", ("date",), before=EVENTS.get(text, (text,)), dated=True, scale=False)


def distance(target: str) -> Attribute:
    """Return the attribute of how far something is from `target`."""
    bare = re.sub(r"^the ", "", target.strip(), flags=re.IGNORECASE).lower()
    article = "the " if target.strip().lower() != bare else ""
    aims = tuple(f"{word} {the}{bare}" for word in ("from", "to") for the in ("the ", ""))
    name = f"distance from {article}{bare.title() if bare in _HEAVENLY else bare}"
    return Attribute(name, ("length",), "km", ("distance",), before=("lies", "orbits"), after=aims, requires=(bare,))


_HEAVENLY = ("sun", "moon", "earth")


def is_known(attribute: Attribute) -> bool:
    """Whether the rules know the words for this attribute, so that a missing figure is really missing."""
    return (
        attribute.name in ATTRIBUTES or attribute.name.startswith(("number of ", "distance from ")) or attribute.dated
    )
