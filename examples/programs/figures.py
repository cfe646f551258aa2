"""Compare a figure of several things, each looked up in its own document.

Source: none; it is the example to begin with, and runs without a model of yours.
Shape: a task a thing; each searches, reads, and searches wider where the passages do not say it.
Guarantees: a thing that no document knows is left out of the table, and fails nothing else.
Cost: one or two searches and calls a thing.
"""

from dataclasses import dataclass


@dataclass
class Fact:
    found: bool
    value: float | None = None
    unit: str = ""
    source: str = ""


async def look(name: str, figure: str, unit: str) -> dict:
    for k in (1, 10):
        hits = await search(query=f"{figure} of {name}", k=k)
        fact = await llm(f"Find the {figure} of {name} in the passages, in {unit}.", hits, schema=Fact)
        if fact.found:
            break
    return {"name": name, **fact}


async def main(names: list, figure: str = "length", unit: str = "km") -> str:
    facts = await parallel([task(look, name=name, figure=figure, unit=unit) for name in names])
    known = [fact for fact in facts if fact["found"]]
    if not known:
        return f"No document gives the {figure} of any of them."
    columns = ["name", "value", "unit", "source"]
    rows = await table(rows=known, columns=columns, sort_by="value", descending=True)
    return rows["text"]
