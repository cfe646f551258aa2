"""A whole page: one file with its styles and its script, under a policy that lets
nothing else run or load.

The policy names the digests of the one style and the one script. So whatever a model has written,
it cannot run, even if it became markup; and the page asks no network for anything.
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from sennit.starter.report import sections
from sennit.starter.report.content import Content
from sennit.starter.report.markup import Markup, element
from sennit.workflows.plan.language.text import one_line

_FOLDER = Path(__file__).parent
_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">
"""


def report_page(content: Content) -> str:
    """Return the report of a run as one page of HTML."""
    report = content.report
    title = one_line(content.goal, 80) or report.id
    parts = [sections.header(content)]
    parts.append(sections.answer(report))
    parts.append(sections.figures_section(content.figures))
    parts += sections.pictures(content)
    parts.append(sections.nodes_section(content))
    parts.append(sections.log_section(report))
    return document(title, parts)


def document(title: str, parts: Sequence[Markup]) -> str:
    """Return a page with these parts."""
    style = asset("page.css")
    script = asset("page.js")
    rules = ["default-src 'none'", "base-uri 'none'", "form-action 'none'"]
    rules.append(f"style-src 'sha256-{digest(style)}'")
    rules.append(f"script-src 'sha256-{digest(script)}'")
    head = _HEAD.format(policy="; ".join(rules))
    name = element("title", title)
    foot = element("footer", "Sennit")
    body = element("main", *parts, foot)
    head = f"{head}{name}<style>{style}</style></head>"
    return f"{head}<body>{body}<script>{script}</script></body></html>\n"


def asset(name: str) -> str:
    """Return a file of this package, as it stands in the page."""
    file = _FOLDER / name
    return file.read_text("utf-8")


def digest(text: str) -> str:
    """Return the digest by which a policy names a style or a script."""
    found = sha256(text.encode())
    return b64encode(found.digest()).decode()
