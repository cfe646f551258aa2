"""Questions that a sentence of the documents answers: who, where, what, why."""

import re

from activities.providers.offline.questions import Question
from activities.providers.offline.words import COMPARISONS

_ASKS = re.compile(
    r"(?:(?:in|at|on|by|to|from|for|with) (?!how ))?(?:who|whom|whose|what|where|when|why|which|how)\b|"
    r"(?:tell me about|describe) ",
    re.IGNORECASE,
)
_RECKONS = re.compile(
    r"\b(?:than|together|combined|altogether|in total|difference|ratio|average|times (?:as|more)|sum|total|"
    r"compared?|plus|minus|percentage|per cent|percent|both|each|every|all the|it|they|its|their|them|or|would|"
    r"should|if|no|not|never|without|none)\b",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r"(?:which|what) (?!does|is|was|has)[a-z]+[a-rt-z]s (?:have|are|do|were|can|could|lie|flow|run|stand|live)\b",
    re.IGNORECASE,
)
_COMPARATIVE = re.compile(
    rf"\b(?:{'|'.join(word for word, item in COMPARISONS.items() if not item.superlative)}|more|less|fewer)\b",
    re.IGNORECASE,
)


def passage_question(text: str) -> Question | None:
    """Read a question that one sentence may answer; None when it asks to compare, count together or judge."""
    if not _ASKS.match(text) or _RECKONS.search(text) or _COMPARATIVE.search(text) or len(text) > 300:
        return None
    if _SEVERAL.match(text):
        return None
    if len(re.findall(r"\w+", text)) < 3:
        return None
    return Question("passage", text)
