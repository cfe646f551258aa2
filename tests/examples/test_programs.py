"""Every program of the library does what it is for, with scripted fakes in the place of models, tools and people."""

import asyncio
import itertools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.sandbox.runner import Sandbox
from sennit.activities.sandbox.tools import code_tools
from sennit.activities.toolbox.loader import load_tools
from sennit.starter.client.request import script_of
from sennit.testing import run
from sennit.workflows.plan.programs.stubs import stubs_of

PROGRAMS = Path(__file__).parents[2] / "examples" / "programs"
EVERY = sorted(path.stem for path in PROGRAMS.iterdir())
PASSAGES = {"query": "q", "count": 1, "items": [{"path": "a.md", "title": "A", "passage": "It is so.", "score": 1.0}]}


TOOLS = ("search", "read", "list_files", "calculate", "table")


def unused(**_: Any) -> None:
    pytest.fail("only sub-agents may use it")


def played(name: str, fakes: dict[str, Any], **inputs: Any) -> Any:
    """What a program of the library answers."""
    return run(PROGRAMS / f"{name}.py", fakes, **inputs)


async def test_the_types_of_every_program_are_right() -> None:
    stubs = stubs_of(
        load_tools(
            offered=code_tools(Sandbox("landlock", "python3", PROGRAMS, namespaces=False, groups=None))
        ).catalogue()
    )
    async with Interpreter() as interpreter:
        found = {name: await interpreter.type_problems(script_of(PROGRAMS / f"{name}.py"), stubs) for name in EVERY}
    assert {name: problems for name, problems in found.items() if problems} == {}


@pytest.mark.parametrize("name", EVERY)
def test_a_program_is_short_and_says_what_it_is(name: str) -> None:
    lines = (PROGRAMS / f"{name}.py").read_text().splitlines()
    assert len(lines) <= 40
    parts = ("Source: ", "Shape: ", "Guarantees: ", "Cost: ")
    assert [line.split()[0] + " " for line in lines if line.startswith(parts)] == list(parts)


def test_the_page_draws_every_program() -> None:
    library = (PROGRAMS.parents[1] / "docs" / "examples.md").read_text()
    drawn = re.findall(r"^### \[(\w+)\].*?```mermaid", library, re.MULTILINE | re.DOTALL)
    assert sorted(drawn) == EVERY


def test_a_race_takes_the_first_good_one_and_cancels_the_rest() -> None:
    cancelled: list[str] = []

    async def llm(prompt: str, *material: Any, schema: Any = None, role: str = "") -> Any:
        if role == "judge":
            return {"good": material[1] != "quick", "why": "it is wrong"}
        if "step by step" in prompt:
            return "quick"
        if "simpler" in prompt:
            await asyncio.sleep(0.01)
            return "sound"
        try:
            return await asyncio.Event().wait()
        finally:
            cancelled.append(prompt)

    assert played("race", {"llm": llm}, goal="x") == "sound"
    assert len(cancelled) == 2


def test_the_first_branch_whose_tests_pass_is_the_patch_and_the_others_are_cancelled() -> None:
    cancelled: list[str] = []
    given = {"workspace": "0" * 40, "files": 1, "bytes": 1}

    async def agent(order: str, *, tools: list[str], workspace: dict[str, Any]) -> Any:
        assert workspace == given, "each branch begins with the folder as it was given"
        way = order.splitlines()[1]
        try:
            if "smallest" not in way and "tests first" not in way:
                await asyncio.Event().wait()
            await asyncio.sleep(0.01 * ("tests first" in way))
        except asyncio.CancelledError:
            cancelled.append(way)
            raise
        return {"answer": "Done.", "workspace": {**given, "files": 1 + ("tests first" in way)}}

    async def shell(command: str, workspace: dict[str, Any], timeout_s: int) -> Any:
        return {"exit_code": int(workspace["files"] == 1), "stdout": "", "stderr": "1 failed"}

    def diff(workspace: dict[str, Any], base: dict[str, Any]) -> Any:
        assert base == given
        return {"diff": f"a patch of {workspace['files']} files", "files": []}

    fakes = {"agent": agent, "python": unused, "shell": shell, "diff": diff}
    assert played("branches", fakes, repo=given, goal="Mend it") == "a patch of 2 files"
    assert len(cancelled) == 6


def test_a_race_that_nobody_wins_ends_with_why() -> None:
    with pytest.raises(ValueError, match="it is wrong"):
        played(
            "race",
            {"llm": lambda *_, schema=None, role="": {"good": False, "why": "it is wrong"} if schema else ""},
            goal="x",
        )


@pytest.mark.parametrize(
    ("passing", "answer", "judged"), [((2,), "code 2.2", 0), ((1, 3), "code 3.2", 1), ((), "mine", 0)]
)
def test_the_best_of_several_has_passed_the_tests(passing: tuple[int, ...], answer: str, judged: int) -> None:
    calls: Counter[str] = Counter()

    def llm(prompt: str, problem: str, *rest: Any, schema: Any = None, role: str = "") -> Any:
        calls[role] += 1
        if role == "judge":
            return 2
        number = prompt.partition(":")[0].removeprefix("Attempt ")
        before = rest[0]
        return f"code {number}.{int(before[-1]) + 1 if before else 1}"

    def python(code: str, files: dict[str, str]) -> dict[str, Any]:
        number, _, turn = files["solution.py"].removeprefix("code ").partition(".")
        return {"exit_code": 0 if int(number) in passing and turn == "2" else 1, "stderr": "E", "stdout": ""}

    fakes = {"llm": llm, "python": python, "ask": lambda question, *material: "mine"}
    assert played("best_of", fakes, problem="p", tests="t") == answer
    assert calls["judge"] == judged
    assert calls[""] == 12 - len(passing), "a third turn only where the second failed"


def test_each_layer_of_a_mixture_sees_the_layer_before_without_what_failed() -> None:
    seen: list[list[str]] = []

    def llm(prompt: str, goal: str, others: list[str] | None = None) -> str:
        seen.append(others or [])
        if others is None and "Proposal 2" in prompt:
            raise ValueError("no idea")
        return f"{prompt[:10]}{len(seen)}"

    assert played("mixture", {"llm": llm}, goal="x", width=3).startswith("Unite")
    assert [len(others) for others in seen] == [0, 0, 0, 2, 2, 2, 3]


@pytest.mark.parametrize(
    ("rulings", "winner", "rounds"), [(["open", "against"], "against", 2), (["open"] * 3, "open", 3)]
)
def test_a_debate_ends_when_a_side_convinces_or_with_a_person(rulings: list[str], winner: str, rounds: int) -> None:
    left = iter(rulings)
    records: list[int] = []

    def llm(prompt: str, question: str, record: list[Any], *, role: str, schema: Any = None) -> Any:
        records.append(len(record))
        return {"winner": next(left), "why": "so"} if role == "judge" else prompt[:13]

    fakes = {"llm": llm, "ask": lambda question, *material: "I cannot tell"}
    done = played("debate", fakes, question="x?")
    assert (done["winner"], done["rounds"]) == (winner, rounds)
    assert records[:6] == [0, 0, 2, 2, 2, 4], "both sides of a round read the same record"


def test_a_team_goes_on_after_a_member_fails_until_the_lead_is_done() -> None:
    ledgers: list[list[dict[str, str]]] = []
    plan = {
        "done": False,
        "answer": "",
        "orders": [{"member": name, "goal": name} for name in ("reader", "analyst", "nobody")],
    }

    def llm(prompt: str, goal: str, ledger: list[dict[str, str]], *, schema: Any) -> Any:
        ledgers.append(ledger)
        return {"done": True, "answer": "42", "orders": []} if ledger else plan

    def agent(goal: str, tools: list[str], budget: dict[str, int]) -> str:
        if goal == "analyst":
            raise ValueError("no figures")
        return f"{goal} has {', '.join(tools)}"

    assert played("team", {"llm": llm, "agent": agent, **dict.fromkeys(TOOLS, unused)}, goal="x") == "42"
    assert ledgers[1][0]["brought"] == "reader has search, read, list_files"
    assert ledgers[1][1]["brought"] == "ValueError: no figures"


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["Four."] * 15, {"answer": "four", "votes": 9, "of": 9}),
        (["4", "5", "4"] * 5, {"answer": "4", "votes": 8, "of": 12}),
        (["4"] * 7 + ["5"] * 8, {"answer": "5", "votes": 8, "of": 15}),
    ],
)
def test_a_vote_stops_as_soon_as_no_other_answer_can_win(answers: list[str], expected: dict[str, Any]) -> None:
    asked: list[str] = []

    def llm(prompt: str, question: str, schema: Any) -> dict[str, str]:
        asked.append(prompt)
        return {"answer": answers[int(prompt.split()[1].rstrip(".")) - 1]}

    assert played("vote", {"llm": llm}, question="2 + 2?") == expected
    assert len(asked) == expected["of"]


def test_only_unsure_documents_are_read_twice_and_notes_are_merged_in_a_tree() -> None:
    calls: Counter[str] = Counter()

    def llm(prompt: str, *material: Any, schema: Any = None, role: str = "worker") -> Any:
        calls[prompt[:7] + role] += 1
        if schema is None:
            return f"{len(material[1])} merged"
        return {
            "answer": "so",
            "confidence": 0.1 if role == "worker" and material[1] in ("3.md", "7.md") else 0.9,
        }

    files = [{"path": f"{number}.md", "bytes": 1} for number in range(17)]
    fakes = {"llm": llm, "list_files": lambda **_: {"items": files}, "read": lambda path: {"text": path}}
    assert played("map_reduce", fakes, question="x?") == "3 merged"
    assert calls == {"Answer worker": 17, "Anotherjudge": 2, "Merge tworker": 4}


def test_a_document_does_not_wait_for_the_others_between_the_stages() -> None:
    noted = asyncio.Event()

    async def read(path: str) -> dict[str, str]:
        if path == "slow.md":
            await noted.wait()
        return {"text": path}

    def llm(prompt: str, *material: Any, schema: Any = None) -> Any:
        noted.set()
        return {"answer": "so", "confidence": 1} if schema else "merged"

    files = {"items": [{"path": "slow.md"}, {"path": "quick.md"}]}
    assert played("map_reduce", {"llm": llm, "list_files": lambda **_: files, "read": read}, question="x?") == "merged"


@pytest.mark.parametrize(("calls", "widths"), [(None, [8, 8, 8]), (10, [3, 1]), (5, [])])
def test_research_is_as_wide_as_the_budget_allows(calls: int | None, widths: list[int]) -> None:
    left = [calls]
    asked: list[int] = []

    def llm(prompt: str, *material: Any, schema: Any = None) -> Any:
        left[0] = None if left[0] is None else left[0] - 1
        if schema:
            return {"enough": False, "questions": [f"question {number}" for number in range(20)]}
        if prompt.startswith("Write"):
            asked.append(len(material[1]))
        return "so"

    def search(query: str, k: int) -> Any:
        return PASSAGES

    budget = lambda: {"calls": left[0], "tokens": None, "cost_usd": None}  # noqa: E731
    assert played("research", {"llm": llm, "search": search, "budget_left": budget}, topic="x") == "so"
    assert asked == [sum(widths)]
    assert left[0] is None or left[0] >= 0


def test_research_ends_when_the_planner_has_enough() -> None:
    plans = iter([{"enough": False, "questions": ["a", "b"]}, {"enough": True, "questions": []}])
    fakes = {
        "llm": lambda *_, schema=None: next(plans) if schema else "so",
        "search": lambda query, k: {"a": PASSAGES}[query],
    }
    assert played("research", fakes, topic="x") == "so", "a look-up that fails is left out"


def test_all_read_the_same_board_and_who_has_nothing_to_add_leaves() -> None:
    boards: dict[str, list[int]] = {}

    def llm(prompt: str, goal: str, board: list[str], schema: Any = None) -> Any:
        if schema is None:
            return " | ".join(board)
        worker = prompt.split()[3].rstrip(".")
        boards.setdefault(worker, []).append(len(board))
        return None if len(boards[worker]) > int(worker) else "line"

    assert played("blackboard", {"llm": llm}, goal="x").startswith("1: line | 2: line | 3: line | 2: line")
    assert boards == {"1": [0, 3], "2": [0, 3, 5], "3": [0, 3, 5, 6]}


def test_a_right_guess_is_used_and_a_wrong_one_is_dropped() -> None:
    searched: list[str] = []
    planned = iter(["tides", "power", "cost"])

    def llm(prompt: str, *_: Any, schema: Any = None) -> Any:
        if schema is None:
            return "so"
        if "enough" not in schema:
            return {"query": "tides"}
        query = next(planned, "")
        return {"enough": not query, "query": query}

    def search(query: str, k: int) -> Any:
        searched.append(query)
        return PASSAGES

    assert played("overlap", {"llm": llm, "search": search}, topic="x") == {"answer": "so", "guessed": 1, "of": 3}
    assert Counter(searched) == {"tides": 4, "power": 1, "cost": 1}


def test_the_guess_is_carried_out_while_the_planner_thinks() -> None:
    searched = asyncio.Event()

    async def llm(prompt: str, *_: Any, schema: Any = None) -> Any:
        if schema and "enough" in schema:
            await searched.wait()
            return {"query": "tides", "enough": False}
        return {"query": "tides"} if schema else "so"

    def search(query: str, k: int) -> Any:
        searched.set()
        return PASSAGES

    assert played("overlap", {"llm": llm, "search": search}, topic="x", steps=1)["guessed"] == 1


def test_sub_agents_split_as_deep_as_they_may_and_name_what_failed() -> None:
    goals: list[str] = []

    def llm(prompt: str, goal: str, *material: Any, schema: Any = None) -> Any:
        if schema is not None:
            return {"split": goal != "x1", "parts": [f"{goal}{number}" for number in range(1, 6)]}
        return f"{goal}({' '.join(part['brought'] for part in material[0])})"

    def agent(goal: str, tools: list[str], budget: dict[str, int]) -> str:
        goals.append(goal)
        if goal == "x22":
            raise ValueError("lost")
        return goal

    whole = played("subagents", {"llm": llm, "agent": agent, **dict.fromkeys(TOOLS, unused)}, goal="x")
    assert whole == "x(x1 x2(x21 ValueError: lost x23 x24) x3(x31 x32 x33 x34) x4(x41 x42 x43 x44))"
    assert len(goals) == 13


@pytest.mark.parametrize(("reviews", "answer"), [([True], "page"), ([False, True], "page!"), ([False] * 3, "publish")])
def test_a_page_is_mended_until_it_is_good_or_a_person_decides(reviews: list[bool], answer: str) -> None:
    verdicts = iter(reviews)

    def llm(prompt: str, *material: Any, schema: Any = None, role: str = "worker") -> Any:
        if role == "critic":
            return {"good": next(verdicts), "faults": ["dull"]}
        answers = {"Five": [f"question {number}" for number in range(5)], "Answ": "so", "Writ": "page"}
        return answers.get(prompt[:4]) or f"{material[0]}!"

    fakes = {"llm": llm, "search": lambda query, k: PASSAGES, "ask": lambda question, draft: "publish"}
    assert played("topic", fakes, topic="tides") == answer


def test_figures_are_looked_for_further_where_the_first_passage_lacks_them() -> None:
    widths: Counter[int] = Counter()

    def search(query: str, k: int) -> Any:
        widths[k] += 1
        return {**PASSAGES, "query": query, "count": k}

    def llm(prompt: str, hits: dict[str, Any], schema: Any) -> Any:
        found = "Nile" in prompt or ("Rhine" in prompt and hits["count"] > 1)
        return {"found": found, **({"value": len(prompt), "unit": "km", "source": "a.md"} if found else {})}

    def table(rows: list[dict[str, Any]], **_: Any) -> dict[str, str]:
        return {"text": ", ".join(row["name"] for row in rows)}

    fakes = {"llm": llm, "search": search, "table": table}
    assert played("figures", fakes, names=["Nile", "Rhine", "Styx"]) == "Nile, Rhine"
    assert widths == {1: 3, 10: 2}
    assert played("figures", fakes, names=["Styx"]) == "No document gives the length of any of them."


def test_programs_answer_the_same_whatever_ends_first() -> None:
    """The order in which equal tasks end does not change what a program answers."""
    answers = set()
    for order in itertools.permutations(range(3)):

        async def llm(prompt: str, *_: Any, schema: Any = None, order: tuple[int, ...] = order) -> Any:
            if schema is None:
                return "merged"
            await asyncio.sleep(0.005 * order[int(prompt.split()[3].rstrip(".")) - 1])
            return prompt.split()[3]

        def answer(prompt: str, goal: str, board: list[str], schema: Any = None) -> Any:
            return llm(prompt, schema=schema) if schema else "|".join(board)

        answers.add(played("blackboard", {"llm": answer}, goal="x", turns=2))
    assert len(answers) == 1


def test_a_swarm_counts_only_votes_for_an_option() -> None:
    """300 votes, of which ten fail and twenty are for something else."""

    def llm(prompt: str, *material: Any, **_: Any) -> Any:
        number = int(re.findall(r"\d+", prompt)[0])
        if number <= 10:
            raise RuntimeError("the model is away")
        if number <= 30:
            return {"vote": "the moon"}
        return {"vote": "Nile." if number % 3 else "the amazon"}

    found = played("swarm", {"llm": llm}, question="Longest?", options=["Nile", "The Amazon"])
    assert found == {"answer": "Nile", "share": 0.667, "lost": 30}
    with pytest.raises(ValueError, match="no vote could be counted"):
        played("swarm", {"llm": lambda *_, **__: {"vote": "x"}}, question="?", options=["a"], votes=5)


@pytest.mark.parametrize(
    ("doubts", "by", "judges"), [([0.1], "judge", 1), ([0.9, 0.2], "critic", 2), ([0.9, 1.5], "person", 2)]
)
def test_a_judge_in_doubt_asks_another_one_and_then_a_person(doubts: list[float], by: str, judges: int) -> None:
    roles: list[str] = []

    def llm(_: str, *material: Any, role: str, **__: Any) -> Any:
        roles.append(role)
        return {"verdict": "Wrong", "doubt": doubts[len(roles) - 1], "why": "so"}

    found = played("judge", {"llm": llm, "ask": lambda *_, **__: "right"}, question="?", answer="!")
    assert (found["by"], found["judges"], found["verdict"]) == (by, judges, "right" if by == "person" else "wrong")
    assert roles == ["judge", "critic"][:judges]


@pytest.mark.parametrize(
    ("sure", "backlog", "by"),
    [(0.9, 0, "quick"), (0.5, 7, "careful"), (0.5, None, "careful"), (0.5, 90, "quick, twice")],
)
def test_a_route_goes_by_confidence_and_by_workload(sure: float, backlog: int | None, by: str) -> None:
    def llm(_: str, *material: Any, role: str = "worker", **__: Any) -> Any:
        return {"answer": role, "sure": sure}

    asked: list[str] = []

    def load(role: str) -> dict[str, int | None]:
        asked.append(role)
        return {"running": 3, "backlog": backlog}

    found = played("route", {"llm": llm, "load": load}, question="?")
    assert (found["by"], asked) == (by, [] if by == "quick" else ["critic"])


def test_a_relay_passes_its_token_to_members_only() -> None:
    turns = iter([("writer", "editor"), ("editor", "writer"), ("writer", "Done.")])

    def llm(prompt: str, *_: Any, **__: Any) -> Any:
        holder, following = next(turns)
        assert f"You are the {holder}." in prompt
        return {"did": f"the {holder}'s part", "next": following}

    found = played("relay", {"llm": llm}, goal="A page.", members=["writer", "editor"])
    assert found == {"answer": "the writer's part", "turns": 3, "last": "writer"}
    endless = {"llm": lambda *_, **__: {"did": "more", "next": "editor"}, "ask": lambda *_, **__: "enough"}
    found = played("relay", endless, goal="A page.", members=["writer", "editor"], rounds=2)
    assert found == {"answer": "enough", "turns": 2, "last": "person"}
    with pytest.raises(ValueError, match="none of"):
        played("relay", {"llm": lambda *_, **__: {"did": "", "next": "boss"}}, goal="A page.", members=["writer"])
