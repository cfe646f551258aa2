"""What a model reads before it writes a plan or a program for `run_plan`."""

import json

from sennit.starter.plans.catalogue import Catalogue
from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.programs.stubs import stubs_of

_PLAN = """\
Write a Sennit plan that reaches this goal. Give it to the tool `check_plan`, mend what that finds, and start it with
`run_plan`.

Goal: {goal}

A plan is YAML: a graph of nodes, each of which starts as soon as the nodes that it refers to have ended.

```yaml
goal: Which is longer, the Nile or the Amazon?
inputs:
  k: {{type: integer, default: 3}}
nodes:
- {{id: nile, kind: tool, tool: search, args: {{query: "length of the Nile", k: $input.k}}}}
- {{id: amazon, kind: tool, tool: search, args: {{query: "length of the Amazon", k: $input.k}}}}
- {{id: report, kind: llm, role: joiner, prompt: "$goal $nile $amazon"}}
answer: $report
```

Kinds: `tool` (tool, args), `llm` (prompt, role, output_schema, tools), `agent` (goal), `map` (over, as, do: one node
for each item of a list), `join` (inputs, policy: all, settled, first or quorum), `program` (script, arguments) and
`gate` (question, schema: it waits for a person). Every node may have `needs`, `when`, `on_error` (fail, skip or a
fallback), `timeout` and `retry`. `$nile` is the output of a node, `${{nile.items[0].passage}}` a part of it, `$item`
the item of a map, `$$` a dollar sign. Nodes that do not refer to each other run side by side. A tool whose effect is
`write` waits for a person's approval.

{tools}
"""  # noqa: E501
_PROGRAM = """\
Write a Sennit program that reaches this goal. Give it to the tool `check_plan` as `program`, mend what that finds, and
start it with `run_plan`.

Goal: {goal}

A program is a script in plain Python with an `async def main(...)`, whose arguments are the inputs of the run and
whose result is the answer. It has no files and no network: it calls the functions below, and each call is a node of the
run, which is tried again when it fails and never made twice. `task(function, **arguments)` starts a call and returns a
ticket; `await parallel(tickets)` waits for all, `await settled(tickets)` also if some fail. `await ask(question)` waits
for a person. A call whose effect is `write` waits for a person's approval.

What a program can call:

```python
{stubs}
```
"""  # noqa: E501


_UNKNOWN = """\
The tools are those of this server's workers, which are not known here: ask the person which there are. A run whose plan
names another one is refused, and says so."""  # noqa: E501


def plan_prompt(goal: str, catalogue: Catalogue | None) -> str:
    """Return how to write a plan for a goal, with the tools that there are, if that is known."""
    lines = [_UNKNOWN]
    if catalogue is not None:
        lines = ["Tools, with their arguments as JSON Schema:", *map(_tool_line, catalogue.tools)]
    return _PLAN.format(goal=goal, tools="\n".join(lines))


def program_prompt(goal: str, catalogue: Catalogue | None) -> str:
    """Return how to write a program for a goal, with all that it can call,
    as far as that is known.
    """
    stubs = stubs_of(catalogue.tools if catalogue is not None else ()).rstrip()
    prompt = _PROGRAM.format(goal=goal, stubs=stubs)
    return prompt if catalogue is not None else f"{prompt}\n{_UNKNOWN}\n"


def _tool_line(tool: dict[str, object]) -> str:
    schema = json.dumps(tool.get("schema"), ensure_ascii=False)
    return f"- {tool['name']} ({tool['effect']}): {one_line(str(tool['description']))} {schema}"
