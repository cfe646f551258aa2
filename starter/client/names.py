"""What a run is called in Temporal: its workflow id and its one-line summary."""

import re
import secrets
import unicodedata

from starter.client.errors import Refused
from workflows.plan.language.summary import clipped
from workflows.plan.language.text import one_line

SLUG = 40
SUMMARY = 200
LONGEST_ID = 255
_MARKUP = re.compile(r"[<\[]|^[#>]")


def slug(text: str) -> str:
    """Return at most 40 characters of `text` as words of a-z and 0-9 joined by dashes; `run` if none is left."""
    plain = unicodedata.normalize("NFKD", text[:1000]).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)
    kept = ""
    for word in words:
        longer = f"{kept}-{word}" if kept else word[:SLUG]
        if len(longer) > SLUG:
            break
        kept = longer
    return kept or "run"


def new_id(goal: str) -> str:
    """Return a fresh workflow id, `agent-<slug of the goal>-<8 hex>`."""
    return f"agent-{slug(goal)}-{secrets.token_hex(4)}"


def checked_id(given: str) -> str:
    """Return an id a person chose; raises Refused when Temporal or a terminal could not take it."""
    if not given or len(given.encode("utf-8", "replace")) > LONGEST_ID or not given.isprintable():
        raise Refused(f"a run's id is 1 to {LONGEST_ID} bytes of printable text, not {given[:40]!r}")
    return given


def summary(goal: str) -> str:
    """Return the goal as one line of at most 200 characters."""
    return clipped(one_line(goal), SUMMARY)


def markdown_summary(goal: str) -> str:
    """Return the summary for the web UI, which renders it as Markdown: HTML, pictures and links in it stay text."""
    return clipped(_MARKUP.sub(r"\\\g<0>", one_line(goal)), SUMMARY)
