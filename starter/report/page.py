"""A whole page: one file with its styles and its script, under a policy that lets nothing else run or load.

The policy names the digests of the one style and the one script. So whatever a model has written, it cannot run, even
if it became markup; and the page asks no network for anything.
"""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path

from sennit.starter.report import sections
from sennit.starter.report.content import Content
from sennit.starter.report.markup import Markup, element
from sennit.workflows.plan.language.text import one_line


def report_page(content: Content) -> str:
    """Return the report of a run as one page of HTML."""
    parts = [
        sections.header(content),
        sections.answer(content.report),
        sections.figures_section(content.figures),
        *sections.pictures(content),
        sections.nodes_section(content),
        sections.log_section(content.report),
    ]
    return document(one_line(content.goal, 80) or content.report.id, parts)


def document(title: str, parts: list[Markup]) -> str:
    """Return a page with these parts."""
    style, script = asset("page.css"), asset("page.js")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src 'sha256-{digest(style)}'",
            f"script-src 'sha256-{digest(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    head = [
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        element("title", title),
        Markup(f"<style>{style}</style>"),
    ]
    foot = element("footer", element("span", "Sennit"), element("span", "", id="hint"))
    body = element("main", *parts, foot)
    page = f'<!doctype html>\n<html lang="en"><head>{"".join(head)}</head>'
    return f"{page}<body>{body}<script>{script}</script></body></html>\n"


@cache
def asset(name: str) -> str:
    """Return a file of this package, as it stands in the page."""
    return (Path(__file__).parent / name).read_text("utf-8")


def digest(text: str) -> str:
    """Return the digest by which a policy names a style or a script."""
    return b64encode(sha256(text.encode()).digest()).decode()
