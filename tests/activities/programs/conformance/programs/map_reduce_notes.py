"""Notes of each document, then one summary, then a check."""
import asyncio
from dataclasses import dataclass


@dataclass
class Note:
    path: str
    text: str
    words: int = 0

    def __post_init__(self):
        self.words = len(self.text.split())


async def note(path):
    page = await read(path=path)
    lines = [line for line in page["text"].splitlines() if line and not line.startswith("#")]
    return Note(path, await llm(f"Sum up {page['title']}", lines))


async def main(glob: str = "rivers/*.md"):
    listed = await list_files(glob=glob)
    notes = await asyncio.gather(*(note(item["path"]) for item in listed["items"]))
    report = "\n".join(f"- {each.path}: {each.text}" for each in notes)
    await write(path="report.md", text=report)
    return {"notes": notes, "words": sum(each.words for each in notes)}
