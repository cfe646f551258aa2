"""What a node's error becomes: its own type and a sentence that every encoding can carry."""

import pytest

from sennit.activities.limits import MAX_FAILURE_CHARACTERS
from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.error_mapping import failure


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("half \ud800 a\tcharacter\n\x1b[31m", "half a character"),
        ("\udfff", "LookupError"),
        ("", "LookupError"),
        ("\ud800" * 9_000 + "x", "[...] x"),
        ("é" * 600 + "!", "é" * ((MAX_FAILURE_CHARACTERS - 7) * 2 // 3) + " [...] " + "é" * 164 + "!"),
    ],
)
def test_any_text_keeps_the_type_and_can_be_sent(said: str, message: str) -> None:
    found = failure(LookupError(said))
    assert (found.type, found.message) == ("LookupError", message)
    found.message.encode()


def test_progress_can_be_sent() -> None:
    attempts = Attempts(1, 0)
    attempts.progress("half \ud800 a character")
    assert attempts.beat()[0] == "half a character"
