"""The prompt of a planner that writes a program."""

from collections.abc import Sequence
from typing import Any

from sennit.activities.limits import MAX_PROGRAM_PROMPT_BYTES
from sennit.activities.prompts.planner import SYSTEM, Example
from sennit.activities.prompts.tools import shape
from sennit.workflows.plan.language import json_schema
from sennit.workflows.plan.language.text import one_line, text_bytes
from sennit.workflows.plan.programs.stubs import tool_stub

FORMS = """\
Write a plan as one Python script with an `async def main(goal: str)`, and return the answer from it. Calls of tools and
models are kept: what has a result is not called again.

- `hits = await search(query="length of the Nile", k=3)` calls a tool, with its arguments by name. Results are JSON
  values.
- `await llm("Find the length in km.", hits)` asks a model, which knows only the prompt and the values after it. It
  gives text, or JSON with `schema={"km": float, "sources": list[str]}`. With `role="critic"` or `role="judge"` it
  weighs; with `tools=["NAME"], max_turns=5` it calls tools itself.
- `ticket = task(look, name="Nile")` starts a tool, or an `async def` at the top of the script, at once, with its
  arguments by name; tickets run at the same time. Then `await parallel(tickets)` gives the list of all values,
  `await settled(tickets)` how each ended, as `{"status": "succeeded", "value": ...}` or with an `error`,
  `await first(tickets)` the first value, `await quorum(2, tickets)` the first two; the others are cancelled.
- `await pipeline(items, look, check)` sends each item through functions of one argument; none waits for another.
- `await agent("...", tools=["NAME"])` gives a part that needs a plan of its own to a sub-agent, and
  `await ask("Which one?", found)` asks a person. Use them only where nothing else does.
- `phase("check")` names what is called from here on, and `log("found", 3)` tells people how far it is. `await
  budget_left()` gives what is left of `tokens`, `calls` and `cost_usd`, None where there is no limit.
- `await width(per_agent_calls=5, per_agent_tokens=20_000)` gives how many agents that take so much may run at once:
  `await parallel([task(agent, goal) for goal in goals], limit=await width(per_agent_calls=5))`.
- `await load("worker")` gives the calls of that role's model that run and that wait, `{"running": 3, "backlog": 10}`;
  the backlog is None where nobody knows it.
- A result of type `Ref` is too large for a script: give it to `llm`, tools and tasks as it is, or read some of its
  `found.size` characters or items with `await part(found, 0, 4000)`.
- Each call, and `task`, takes `timeout=60` in seconds and raises TimeoutError then; calls of tools and models take
  `retry=3` attempts. `task(look, name="Nile", budget={"tokens": 20_000})` bounds what the calls of a task spend; then
  they raise BudgetExceeded. `parallel(tickets, limit=5)` and `pipeline(items, look, limit=5)` run five at once, and
  `ticket, value = await next_of(tickets)` gives the next that ends.
- `await sleep(seconds)` and `await sleep_until("2026-01-31T09:00")` wait, `now()` gives the time in UTC, and
  `cancel(ticket)` gives up a task. `asyncio.gather`, `TaskGroup`, `Semaphore`, `wait_for` and the like work over
  functions of the script, too.
- A call that fails raises an exception; catch it only where you have another way.
- Everything else is Python: loops, conditions, functions, dataclasses, own exceptions, f-strings, `json`, `re`, `math`,
  `statistics`, generators that end. There are no files, no network, no `@property`, no class bases, and globals never
  change.
"""  # noqa: E501
_RULES = """\
- Call only the tools above, and only if the goal needs it.
- Start what needs no result of another as tasks, so that as much as possible runs at the same time.
- Compute in Python, never with a model. Give every loop a bound.
- Do not guess facts, addresses or paths: find them with a call, and hand its result on.
- Return the answer to the goal as text with its sources: mostly what a last `llm` makes of `goal` and the results.
- Write nothing beside the script, in one code fence."""  # noqa: E501

EXAMPLES: tuple[Example, ...] = (
    (
        ("search",),
        "How much higher is Mont Blanc than Kilimanjaro?",
        """\
async def height(name: str) -> dict:
    hits = await search(query=f"height of {name}", k=3)
    return await llm(f"Give the height of {name} in metres, and the path.", hits, schema={"metres": float, "path": str})

async def main(goal: str):
    names = ["Mont Blanc", "Kilimanjaro"]
    found = await parallel([task(height, name=name) for name in names])
    return await llm("Answer the goal.", goal, found, found[0]["metres"] - found[1]["metres"])""",  # noqa: E501
    ),
    (
        (),
        "Write a limerick about rain, and improve it until it is good.",
        """\
async def main(goal: str):
    draft = await llm("Write a limerick about rain.")
    for _ in range(3):
        review = await llm("What is weak in it?", draft, schema={"good": bool, "faults": list[str]}, role="critic")
        if review["good"]:
            break
        draft = await llm("Improve the limerick.", draft, review["faults"])
    return draft""",  # noqa: E501
    ),
    (
        (),
        "Prove that there is no largest prime, the quickest way.",
        """\
async def attempt(goal: str, way: str) -> str:
    proof = await llm(f"Do what is asked. {way}", goal)
    if not await llm("Does this hold in every step?", goal, proof, schema=bool, role="judge"):
        raise ValueError("a step does not hold")
    return proof

async def main(goal: str):
    ways = ["Argue by contradiction.", "Construct the next one."]
    return await first([task(attempt, goal=goal, way=way) for way in ways])""",
    ),
)
_SIZES = ((300, 6), (100, 3), (40, 1), (40, 0))
"""How much is said of each tool: characters of a description, levels of a type. The
first that fits is taken.
"""


def system(catalogue: Sequence[dict[str, Any]]) -> str:
    """Return what every goal with these tools has in common; as much of the
    tools as fits into 32 KB.
    """
    allowed = {str(entry["name"]) for entry in catalogue}
    examples = ""
    for tools_used, goal, script in EXAMPLES:
        if allowed.issuperset(tools_used):
            examples += f"\nExample. Goal: {goal}\n```python\n{script}\n```\n"
    for characters, levels in _SIZES:
        stubs = [_stub(entry, characters, levels) for entry in catalogue]
        tools = "\n".join(filter(None, stubs)) or "There are no tools in this run."
        text = SYSTEM.format(forms=FORMS, tools=tools, rules=_RULES, examples=examples)
        if text_bytes(text) <= MAX_PROGRAM_PROMPT_BYTES:
            break
    return text


def _stub(entry: dict[str, Any], characters: int, levels: int) -> str:
    """Return a tool's stub, with the fields of its result, which Python's types do not say."""
    stub = tool_stub(entry, characters, levels)
    output = entry.get("output_schema")
    if not stub or not levels or not isinstance(output, dict) or entry.get("large"):
        return stub
    fields = shape(output, json_schema.definitions(output))
    return f"{stub}    # gives {one_line(fields, 4 * characters)}\n"
