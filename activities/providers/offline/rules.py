"""The wordings of questions, as patterns. The first that matches and makes sense as a whole decides."""

import re

from activities.providers.offline.grammar import (
    ADJ,
    AIM,
    BE,
    DEGREE,
    EVENT,
    FAMILY,
    FIRST,
    HAPPENED,
    HERE,
    LONG,
    MORE,
    MOST,
    NAMES,
    NOUN,
    RANK,
    SECOND,
    SEP,
    THE,
    TOGETHER,
    UNIT,
    VERB,
    WHEN,
    WHICH,
)
from activities.providers.offline.questions import Shape

_WHAT = f"(?:what {BE} )?{THE}"
_LIST = "(?:list|give|show|state|name) "
_ALL = f"(?:all (?:of )?)?{THE}"
_BEST = f"(?:(?:what|which|who) {BE} |name |list |show )?{THE}"
_THAT = "(?:that of |those of |the [a-z ]+? of )?"
_MUCH = f"how (?:much|far|many {UNIT})"
_HOLDS = "(?:does|do|did|has|have|are there in|live in|are in)"
_EACH = "(?:all (?:of )?(?:the )?|the |each of the |every |each )"
_EXIST = "(?:are (?:there|described|mentioned|covered|listed)|do (?:the )?(?:documents|notes|you) [a-z]+)"
_ORDER = "(?:,? (?P<order>from .+|.*ascending|.+ first))?"
_ORBIT = r"to (?P<orbit>orbit|circle|go a?round)\b.*"
_RUN = "(?:run|fly|go|move|swim|get|dive|travel|sprint)"
_YEAR = "(?:when|(?:in )?(?:what|which) year)"
_DID = f"(?P<event>{HAPPENED}|[a-z]+ed)"

_WORDINGS: tuple[tuple[Shape, tuple[str, ...]], ...] = (
    (
        "compare",
        (
            f"{WHICH} {BE} {THE}{ADJ}(?: [a-z]+)?{AIM} ?[,:;\u2013\u2014-]+ ?(?:is it )?{NAMES}",
            f"{WHICH} {BE} {THE}{ADJ}{AIM} {NAMES}",
            f"{WHICH} (?:of|out of|among) {NAMES},? {BE} {THE}{ADJ}{AIM}(?: [a-z]+)?",
            f"(?:of|between|among|out of) {NAMES},? {WHICH} {BE} {THE}{ADJ}{AIM}(?: one)?",
            f"{NAMES}{SEP}{WHICH} {BE} {THE}{ADJ}{AIM}(?: one)?",
            f"{BE} {NAMES} {ADJ}",
            f"{WHICH} (?:has|have|had) {THE}{MORE} {NOUN} ?[,:;\u2013\u2014-]+ ?{NAMES}",
            f"{WHICH} of {NAMES} (?:has|have|had) {THE}{MORE} {NOUN}",
            f"(?:of|between|among) {NAMES},? {WHICH} (?:has|have|had) {THE}{MORE} {NOUN}",
            f"{WHICH} (?:{BE} )?{EVENT} {WHEN}{SEP}{NAMES}",
            f"{WHICH} of {NAMES},? (?:{BE} )?{EVENT} {WHEN}",
            f"{WHICH} {VERB} {THE}{MORE}{SEP}{NAMES}",
            f"{WHICH} {DEGREE} at {THE}{MORE} temperature{SEP}{NAMES}",
            f"compare {THE}{NOUN} of {FIRST} (?:with|to|against|and) {_THAT}{SECOND}",
            f"compare {THE}{NOUN} of {NAMES}",
            f"compare {NAMES} (?:by|in terms of|with respect to) (?:their )?{NOUN}",
            f"(?:rank|sort|order) {NAMES} (?:by|in order of) (?:their )?{NOUN}",
        ),
    ),
    (
        "difference",
        (
            f"(?:by )?{_MUCH} {ADJ} {BE} {THE}{NOUN} of {FIRST} than {_THAT}{SECOND}",
            f"(?:by )?{_MUCH} {ADJ}{AIM} {BE} {FIRST} than {SECOND}",
            f"by {_MUCH} {BE} {FIRST} {ADJ}{AIM} than {SECOND}",
            f"how much {MORE} (?:do|does|can) {FIRST} {VERB} than {SECOND}",
            f"how many {MORE} {NOUN} {_HOLDS} {FIRST}(?: ha(?:ve|s))? than (?:in )?{SECOND}",
            f"{_WHAT}difference (?:in|of) {NOUN} between {FIRST} and {_THAT}{SECOND}",
            f"{_WHAT}difference between {THE}{NOUN} of {FIRST} and {_THAT}{SECOND}",
            f"{_WHAT}difference between {FIRST} and {SECOND} (?:in|by) {NOUN}",
        ),
    ),
    (
        "ratio",
        (
            f"how many times as (?P<adj>[a-z]+) as {SECOND} {BE} {FIRST}",
            f"how many times (?:as )?(?:{ADJ}|(?P<long>[a-z]+)) (?:{BE} |as )?{FIRST} (?:than|as) {SECOND}",
            f"how many times {THE}{NOUN} of {SECOND} is {_THAT}{FIRST}",
            f"{_WHAT}ratio (?:of|between) {THE}{NOUN} of {FIRST} (?:to|and) {_THAT}{SECOND}",
            f"{_WHAT}ratio of {FIRST} to {SECOND} (?:in|by) {NOUN}",
        ),
    ),
    (
        "check",
        (
            f"{BE} {THE}{NOUN} of {FIRST} {ADJ} than {_THAT}{SECOND}",
            f"{BE} {FIRST} {ADJ}{AIM} than {SECOND}",
        ),
    ),
    (
        "sum",
        (
            f"{_WHAT}(?:combined|total|joint|summed|added|overall) {NOUN} of {NAMES}",
            f"{_WHAT}(?:sum|total) of {THE}{NOUN} of {NAMES}",
            f"(?:add|sum) (?:up )?{THE}{NOUN} of {NAMES}",
            f"how {LONG} {BE} {NAMES} {TOGETHER}",
            f"how many {NOUN} (?:do|does|have|live in|are in) {NAMES}(?: have)? {TOGETHER}(?: have)?",
            f"how much do {NAMES} {VERB} {TOGETHER}",
            f"{_WHAT}{NOUN} of {NAMES} {TOGETHER}",
        ),
    ),
    ("average", (f"{_WHAT}(?P<mean>average|mean) {NOUN} of {NAMES}", f"how {LONG} are {NAMES} on average")),
    (
        "superlative",
        (
            f"{_BEST}{RANK}{MOST} {FAMILY}{HERE}(?: by {NOUN})?",
            f"{_BEST}{RANK}{MOST} {FAMILY}{AIM}",
            f"how {LONG.replace('adj', 'long')} {BE} {THE}{RANK}{MOST} {FAMILY}{HERE}",
            f"which {FAMILY}{HERE} {BE} {THE}{RANK}{MOST}{AIM}{HERE}(?: by {NOUN})?",
            f"which {FAMILY}{HERE} (?:has|have) the {RANK}{MORE} {NOUN}{HERE}",
            f"{_BEST}{FAMILY}{HERE} with the {RANK}{MORE} {NOUN}{HERE}",
            f"which {FAMILY}{HERE} (?:{BE} )?{THE}{EVENT} {WHEN}",
            f"(?P<sorted>rank|sort|order|list) {_ALL}{FAMILY}{HERE} (?:by|in order of) {NOUN}{_ORDER}",
        ),
    ),
    (
        "list",
        (
            f"(?:what are |{_LIST})?{THE}{NOUN} of {_EACH}{FAMILY}{HERE}",
            f"{_LIST}{_ALL}{FAMILY}{HERE} (?:and|with) (?:their|its) {NOUN}",
            f"how {LONG} are (?:all (?:of )?)?the {FAMILY}{HERE}",
        ),
    ),
    (
        "members",
        (
            f"(?:what are )?the names of {_EACH}{FAMILY}{HERE}",
            f"{_LIST}{_ALL}{FAMILY}{HERE}",
            f"(?:which|what|how many) {FAMILY} {_EXIST}{HERE}",
        ),
    ),
    (
        "lookup",
        (
            f"how long {BE} (?:a|one|the) (?P<day>day) (?:on|of) {NAMES}",
            f"how (?:long|many [a-z]+) (?:does|do|did) {NAMES} (?:take|need) {_ORBIT}",
            f"how (?:long|many [a-z]+) does it take (?:for )?{NAMES} {_ORBIT}",
            f"how (?:long|old) (?:does|do|can|may) {NAMES} (?P<lives>live|get|become)",
            f"how fast (?:does|do|can|did|may) {NAMES} (?P<speed>{_RUN})",
            f"(?:at )?what temperature (?:does|do) {NAMES} {DEGREE}(?: at)?",
            f"how many people live in (?P<people>){NAMES}",
            f"how many people speak (?P<speak>){NAMES}",
            f"how far (?:{BE}|away is) {NAMES} (?:away )?(?:from|to) (?P<target>.+)",
            f"{_WHAT}(?:average |mean )?distance (?:between|of|from) {NAMES} (?:from|to|and) (?P<target>.+)",
            f"how (?:[a-z]+) {BE} the {NOUN} of {NAMES}",
            f"how {LONG} {BE} {NAMES}",
            f"how {LONG} {NAMES} {BE}",
            f"how many [a-z]+ {LONG} {BE} {NAMES}",
            f"how much (?:does|do|did|can|may) {NAMES} {VERB}",
            f"how many (?P<things>[a-z ]+?) (?:does|do|did|has|have) {NAMES}(?: (?:have|got|contain))?",
            f"how many (?P<things>[a-z ]+?) are (?:there )?(?:in|on|of) {NAMES}",
            f"{_YEAR} (?:was|were) {NAMES} {_DID}",
            f"{_YEAR} did {NAMES} (?P<opens>open|finish|launch)",
            f"(?P<listed>{_LIST}){THE}{NOUN} of (?:each of )?{NAMES}",
            f"{_WHAT}{NOUN} of (?:each of )?{NAMES}",
            f"(?:what {BE} )?{NAMES}'s? {NOUN}",
            f"what {NOUN} (?:does|do|has|have) {NAMES}(?: have)?",
        ),
    ),
)

RULES: tuple[tuple[Shape, re.Pattern[str]], ...] = tuple(
    (shape, re.compile(wording, re.IGNORECASE)) for shape, wordings in _WORDINGS for wording in wordings
)
