"""A tool that writes to a resource: two entries in one book have an order."""

from pydantic import BaseModel, ConfigDict

from sennit.activities.toolbox import ToolContext, tool


class Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    book: str
    text: str


class Entered(BaseModel):
    text: str


@tool(effect="write", resource="book:{book}")
async def enter(args: Entry, context: ToolContext) -> Entered:
    """Enter a line in a book, which is a file in the cache."""
    with (context.cache / f"{args.book}.txt").open("a") as book:
        book.write(f"{args.text}\n")
    return Entered(text=args.text)
