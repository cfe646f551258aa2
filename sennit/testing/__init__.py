"""Tests of your own plans and programs, with fakes for tools, models and people.

    from sennit.testing import run, run_plan

    def test_it_stops_at_the_first_good_draft() -> None:
        drafts = iter(["bad", "good"])
        fakes = {"llm": lambda prompt, *material, **options: next(drafts)}
        assert run(Path("draft.py"), fakes, topic="tides") == "good"

A fake stands for a tool, or for `llm`, `agent`, `ask` or `budget_left`, by its name. It is called
as the script calls it and may be an `async def`. What it raises is raised in the script. A fake of
a large tool returns `Large(value)`, and the script has a `Ref` of it; other fakes are given the
value itself. One of a model or an agent may return `Spent(value, tokens=900)`, which the budgets of
tasks count. Everything else is as in a run: tasks run side by side, each in a session of its own,
and only JSON passes between them.

In a plan, a tool's fake is called with the bound arguments by name; `llm(prompt, role=, node=)` and
`agent(goal, node=)` return an output; `ask(question, node=)` answers a gate; `approve(shown,
node=)` returns True, a reason to refuse, or changed arguments; `repair(node, error)` returns
`retry`, `skip`, `finish` or None for what blocks the run.
"""

from sennit.testing.model_rules import rule
from sennit.testing.models import ModelServer, model_server
from sennit.testing.plan import run_plan
from sennit.testing.program import Fake, Large, Spent, WrongFake, run, run_async

__all__ = [
    "Fake",
    "Large",
    "ModelServer",
    "Spent",
    "WrongFake",
    "model_server",
    "rule",
    "run",
    "run_async",
    "run_plan",
]
