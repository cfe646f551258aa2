"""A tool that writes, of which tests need the schema and the effect."""

from pydantic import BaseModel

from sennit.activities.toolbox import tool


class Page(BaseModel):
    path: str
    text: str


@tool(effect="write", idempotent=True)
def keep(args: Page) -> dict[str, object]:
    """Keep a page."""
    raise AssertionError(f"the tool itself must not run: {args.path}")
