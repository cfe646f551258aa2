"""Seeded runs with the answer that each has when nothing disturbs it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from chaos import answers
from chaos.bills import NODE, Bills, bills_of, most_payments
from doubles.runs import call

from sennit.testing.model_rules import Asked, Call, Reply
from sennit.testing.models import ModelServer
from sennit.workflows.plan.programs.program_plan import program_plan

AT_ONCE, WITH_BILLS = 5, 2
"""How many runs go on at once, and how many of these pay bills."""


@dataclass
class Case:
    """One run: what starts it, its answer, the texts of the payments that it makes, and the edits of its program.

    Edits change nothing of the answer, but in a run that pays `bills`: that has the versions of one stretch, and a
    person may end it, by `stop`. Another one of the same bills forks it.
    """

    seed: int
    request: dict[str, Any]
    answer: Any
    payments: list[str] = field(default_factory=list)
    program: str = ""
    edits: list[dict[str, Any]] = field(default_factory=list)
    stop: str = ""
    bills: Bills | None = None
    stretch: int = 0
    prefix: str = "chaos"

    @property
    def name(self) -> str:
        """The run's workflow id."""
        name = f"{self.prefix}-{self.seed}"
        return f"{name}-fork-{self.stretch}" if self.stretch else name


def case_of(seed: int, model: ModelServer) -> Case:
    """Return the run of a seed; the model server learns what to reply to it. Two in five pay bills."""
    if seed % AT_ONCE < WITH_BILLS:
        return bills_case(bills_of(seed), 0)
    chance = Random(seed)
    return _goal(seed, model) if chance.random() < 0.2 else _plan(seed, chance, model)


def bills_case(bills: Bills, stretch: int) -> Case:
    """Return the run that pays bills, or one of its forks, which is started with its first version."""
    first, *later = bills.stretches[stretch].versions
    request = {"plan": program_plan(first.script), "approval": "never"}
    case = Case(bills.seed, request, None, program=NODE, bills=bills, stretch=stretch)
    case.stop = bills.stretches[stretch].stop
    case.payments = list(most_payments(bills.versions, bills.reminder))
    for version in later:
        edit = {"node": NODE, "script": version.script, "repeat_writes": version.repeat_writes}
        case.edits.append(edit)
    return case


def _goal(seed: int, model: ModelServer) -> Case:
    """A goal: its plan is streamed, and its joiner asks for one more round of work."""
    mark, late = f"Goal {seed}!", f"late-{seed}"
    more = f'{{"replan": {{"why": "more", "nodes": "4. nap(value=\\"{late}\\", seconds=1)\\n5. answer($2, $4)"}}}}'

    def joined(asked: Asked) -> Reply:
        return Reply(f"answer of {seed}" if late in asked.text else more, first_token=0.3)

    lines = '1. nap(value="a", seconds=2)\n2. nap(value="$1.value", seconds=1)\n3. answer($2)'
    model.on(f"You plan work.*{mark}", Reply(lines, rate=30))
    model.on(f"You put results together.*{mark}", joined)
    return Case(seed, {"goal": mark}, f"answer of {seed}")


def _plan(seed: int, chance: Random, model: ModelServer) -> Case:
    """A plan of some of the pieces below, side by side, after one node that all of them need."""
    case = Case(seed, {}, {})
    nodes: list[dict[str, Any]] = [call("start", args={"value": seed, "seconds": chance.random()})]
    plan: dict[str, Any] = {"nodes": nodes, "answer": {}}
    pieces: list[Callable[[Case, dict[str, Any], Random, ModelServer], None]]
    pieces = [_layers, _map, _group, _loop, _subagent, _gate, _payments, _code, _program, _first, _quorum]
    pieces += [_idle_answer, _warned, _team]
    for piece in chance.sample(pieces, 6):
        piece(case, plan, chance, model)
    case.request = {"plan": plan, "approval": "never", "budget": {"tokens": 10_000_000}}
    return case


def _add(case: Case, plan: dict[str, Any], node: dict[str, Any], shown: str, value: Any) -> None:
    plan["nodes"].append({"needs": ["start"], **node})
    plan["answer"][node["id"]] = shown
    case.answer[node["id"]] = value


def _layers(case: Case, plan: dict[str, Any], chance: Random, _: ModelServer) -> None:
    values = {"start": str(case.seed)}
    before = ["start"]
    for layer in range(3):
        names = [f"l{layer}{index}" for index in range(3)]
        for name in names:
            inputs = chance.sample(before, min(2, len(before)))
            values[name] = "<" + ",".join(values[each] for each in inputs) + ">"
            text = "<" + ",".join(f"${each}.value" for each in inputs) + ">"
            _add(
                case,
                plan,
                call(name, args={"value": text, "seconds": 2 * chance.random()}),
                f"${name}.value",
                values[name],
            )
        before = names


def _map(case: Case, plan: dict[str, Any], chance: Random, _: ModelServer) -> None:
    count = chance.randint(2, 6)
    plan["nodes"].append(call("list", "count", args={"count": count}))
    copy = {"tool": "nap", "args": {"value": "$item.n", "seconds": 1.5}}
    node = {"id": "map", "kind": "map", "over": "$list.items", "do": {"kind": "tool", **copy}}
    _add(case, plan, node, "$map", [{"value": index} for index in range(count)])


def _group(case: Case, plan: dict[str, Any], chance: Random, _: ModelServer) -> None:
    plan["fuse"] = chance.choice(("on", "off"))
    plan["nodes"] += [
        call("g0", args={"value": "g", "seconds": chance.random()}),
        call("g1", args={"value": "$g0.value$g0.value", "seconds": chance.random()}),
    ]
    _add(case, plan, call("g2", args={"value": "$g1.value."}), "$g2.value", "gg.")


def _loop(case: Case, plan: dict[str, Any], _: Random, model: ModelServer) -> None:
    prompt = f"Loop {case.seed}!"
    model.on(prompt, Reply(calls=(Call("nap", {"value": "turn", "seconds": 1}),), first_token=0.5), results=0)
    model.on(prompt, Reply(f"looped {case.seed}", first_token=0.5), results=1)
    _add(case, plan, {"id": "loop", "kind": "llm", "prompt": prompt, "tools": ["nap"]}, "$loop", f"looped {case.seed}")


def _subagent(case: Case, plan: dict[str, Any], _: Random, model: ModelServer) -> None:
    goal = f"Sub {case.seed}!"
    lines = '1. nap(value="s", seconds=1)\n2. nap(value="$1.value", seconds=1)\n3. answer($2)'
    model.on(f"You plan work.*{goal}", Reply(lines, rate=30))
    model.on(f"You put results together.*{goal}", Reply(f"sub {case.seed}", first_token=0.3))
    _add(case, plan, {"id": "sub", "kind": "agent", "goal": goal, "tools": ["nap"]}, "$sub", f"sub {case.seed}")


def _team(case: Case, plan: dict[str, Any], _: Random, model: ModelServer) -> None:
    """A sub-agent for each item of a list."""
    goal = f"Team {case.seed}!"
    lines = '1. nap(value="t", seconds=1)\n2. nap(value="$1.value", seconds=1)\n3. answer($2)'
    model.on(f"You plan work.*{goal}", Reply(lines, rate=30))
    model.on(f"You put results together.*{goal}", Reply(f"team {case.seed}", first_token=0.3))
    plan["nodes"].append(call("members", "count", args={"count": 3}))
    do = {"kind": "agent", "goal": f"{goal} $item.n", "tools": ["nap"]}
    _add(
        case,
        plan,
        {"id": "team", "kind": "map", "over": "$members.items", "do": do},
        "$team",
        [f"team {case.seed}"] * 3,
    )


def _gate(case: Case, plan: dict[str, Any], _: Random, __: ModelServer) -> None:
    _add(case, plan, {"id": "gate", "kind": "gate", "question": f"Go on with {case.seed}?"}, "$gate", "yes")


def _payments(case: Case, plan: dict[str, Any], chance: Random, _: ModelServer) -> None:
    for index in range(2):
        text = f"payment {index} of {case.seed}"
        case.payments.append(text)
        node = call(f"pay{index}", "transfer", args={"text": text, "seconds": 2 * chance.random()})
        _add(case, plan, node, f"$pay{index}.value", text)


def _code(case: Case, plan: dict[str, Any], _: Random, __: ModelServer) -> None:
    code = f"import time; time.sleep(1); print({case.seed})"
    _add(case, plan, call("code", "python", args={"code": code}), "$code.stdout", f"{case.seed}\n")


SCRIPT = """
async def look(number: int):
    return (await nap(value=number, seconds=1.5))["value"]

async def main():
    found = await parallel([task(look, number=number) for number in range(3)])
    last = await nap(value=len(found), seconds=SECONDS)
    return [*found, last["value"]]
"""


def _program(case: Case, plan: dict[str, Any], chance: Random, _: ModelServer) -> None:
    """A person edits it while it runs: some calls stay as they were, and one is another."""
    case.program = "program"
    for __ in range(2):
        script = SCRIPT.replace("SECONDS", f"{chance.uniform(1, 3):.2f}")
        case.edits.append({"node": "program", "script": script})
    first = SCRIPT.replace("SECONDS", "2")
    _add(case, plan, {"id": "program", "kind": "program", "script": first}, "$program", [0, 1, 2, 3])


def _first(case: Case, plan: dict[str, Any], chance: Random, _: ModelServer) -> None:
    """A join that cancels a call, which ends when nobody waits for it any more; what follows takes its time."""
    plan["nodes"] += [
        {"needs": ["start"], **call("fast", args={"value": "first", "seconds": 0.2})},
        {"needs": ["start"], **call("late", args={"value": "late", "seconds": 600})},
        {"id": "race", "kind": "join", "inputs": ["fast", "late"], "policy": "first"},
    ]
    _follow(case, plan, "race", "$race.value", "first", chance)


def _quorum(case: Case, plan: dict[str, Any], chance: Random, _: ModelServer) -> None:
    """A join that cancels a call, in the same way."""
    names = [f"vote{index}" for index in range(3)]
    for name, seconds in zip(names, (0.2, chance.random(), 600), strict=True):
        plan["nodes"].append({"needs": ["start"], **call(name, args={"value": name, "seconds": seconds})})
    plan["nodes"].append({"id": "votes", "kind": "join", "inputs": names, "policy": {"quorum": 2}})
    _follow(case, plan, "votes", f"votes of {case.seed}", f"votes of {case.seed}", chance)


def _idle_answer(case: Case, plan: dict[str, Any], chance: Random, _: ModelServer) -> None:
    _take(case, plan, answers.idle_answer(case.seed, chance))


def _warned(case: Case, plan: dict[str, Any], _: Random, __: ModelServer) -> None:
    _take(case, plan, answers.warned())


def _take(case: Case, plan: dict[str, Any], piece: answers.Piece) -> None:
    plan["nodes"] += [{"needs": ["start"], **node} for node in piece.nodes]
    for name, (reference, value) in piece.answers.items():
        plan["answer"][name] = reference
        case.answer[name] = value


def _follow(case: Case, plan: dict[str, Any], join: str, given: str, value: str, chance: Random) -> None:
    """Behind a join, a long call and a few short ones."""
    before = join
    for index, seconds in enumerate((chance.uniform(2, 12), 0.5, 0.5)):
        name = f"{join}{index}"
        node = call(name, args={"value": given, "seconds": seconds}, needs=[before])
        _add(case, plan, node, f"${name}.value", value)
        before, given = name, f"${name}.value"
