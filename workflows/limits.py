"""The limits of runs outside the core, each with its reason. Those of the core stand in `plan/limits.py`."""

from typing import Final

from sennit.workflows.plan.limits import MAX_PAYLOAD_BYTES

COMMAND_BYTES: Final = 600
"""Roughly what the command to start an activity takes beside its input."""
MAX_FACT_REFERENCES_BYTES: Final = MAX_PAYLOAD_BYTES // 2
"""Of the outputs whose facts a replan asks for: they travel in one payload."""
MAX_QUESTION_CHARACTERS: Final = 4_000  # of one question that a person is shown: the history keeps it
MAX_SHOWN_CHARACTERS: Final = 64_000
"""Of all questions that wait together: the more there are, the less room each has."""
MAX_STARTS: Final = 500  # Activities that one workflow task starts: its commands travel in one transaction
MIN_QUESTION_CHARACTERS: Final = 200  # of a question, however many there are
