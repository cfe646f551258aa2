"""A notebook with an approval, as cells that Jupyter, VS Code and PyCharm run one by one. Needs a Temporal server with
workers of Sennit that may write: see `sennit dev` and SENNIT_WRITE_ROOT.
"""

# mypy: disable-error-code="top-level-await"
# ruff: noqa: F704, T201  # a notebook awaits in its cells, and prints

# %% Connect: to the server that TEMPORAL_ADDRESS names, or with Sennit.local() to your own local stack
from pydantic import BaseModel

from sennit import RunEvent, Sennit

sennit = await Sennit.connect()


# %% Start a run. Its answer is to be of this type
class Written(BaseModel):
    path: str
    bytes: int


TEXT = "The Nile leads by ${sum.value} km."
plan = {
    "nodes": [
        {"id": "sum", "kind": "tool", "tool": "calculate", "args": {"expression": "6650 - 6400"}},
        {"id": "page", "kind": "tool", "tool": "write", "args": {"path": "page.md", "text": TEXT}},
    ],
    "answer": "$page",
}
run = await sennit.start(plan=plan, title="page", result=Written)


# %% Follow it until it asks
async def first_question() -> RunEvent:
    async for event in run.events():
        print(event.number, event.kind, event.node, event.text)
        if event.kind == "asked":
            return event
    raise RuntimeError("the run has ended without a question")


asked = await first_question()

# %% Read what it would write
assert asked.asks is not None
print(asked.asks.shown)

# %% Approve exactly that
print(await run.approve(asked.node, digest=str(asked.asks.example["digest"])))

# %% The answer
written = await run.result()
print(written.path, written.bytes)
