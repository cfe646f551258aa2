"""A process that reads scripts and has been taken over: it answers with the JSON that stands in the script itself."""

import json

from sennit.activities.sandbox.computing_parent import Answer


def prepare() -> None:
    """Nothing has to be loaded."""


def answer(request: bytes) -> Answer:
    """Return what the script says."""
    _, [script, *_] = json.loads(request)
    return Answer(script.encode())
