"""Which number a write has among equal ones: whoever asks, however often, and whatever was made before."""

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from doubles.stores import new_store

from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.effect_ledger import Intent
from sennit.activities.nodes.origins import Origins
from sennit.activities.programs.made_writes import Caution, Claimant, EqualWrites, SeenMarks, WriteClaims
from sennit.activities.storage.artifacts import ArtifactStore, digest_of, key_of

PAID = EqualWrites.of("main", "pay", {"bill": 1})
OTHER = EqualWrites.of("main", "pay", {"bill": 2})
AT = 1_800_000_000 + 6 * 3600 + 120  # 14:02


@dataclass
class _Call:
    run: str
    origins: tuple[str, ...] = ()


@dataclass
class _Checked:
    docs: str | None = None


@dataclass
class _Context:
    call: _Call
    run_prefix: str
    checked: _Checked = field(default_factory=_Checked)


@dataclass
class Run:
    """A run of which every claim is made by a worker of its own."""

    store: ArtifactStore
    name: str = "run"
    origins: tuple[str, ...] = ()

    known: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)

    async def claim(self, script: str, call: str, *, equal: EqualWrites = PAID) -> int:
        """Claim for a call of a script, which holds the numbers of the equal calls that it has made before."""
        context = cast("NodeContext", _Context(_Call(self.name, self.origins), f"space/{self.name}"))
        claims = WriteClaims(Origins(self.store), context, SeenMarks())
        numbers = self.known.setdefault((script, equal.digest), {})
        calls = list(numbers)
        before = calls[: calls.index(call)] if call in numbers else calls
        held = [numbers[each] for each in before]
        numbers[call] = await claims.claim(equal, Claimant("main", script, call), held)
        return numbers[call]

    async def caution(self, script: str, call: str, number: int, equal: EqualWrites = PAID) -> Caution | None:
        context = cast("NodeContext", _Context(_Call(self.name, self.origins), f"space/{self.name}"))
        claims = WriteClaims(Origins(self.store), context, SeenMarks())
        return await claims.caution(equal, Claimant("main", script, call), "pay", number)

    async def begin(self, number: int, equal: EqualWrites = PAID) -> None:
        key = equal.key(number)
        intent = Intent(owner="", digest="", text='{"bill": 1}', until=0, tool="pay", call=key, at=AT)
        name = f"{digest_of(f'{self.name}/{key}/1'.encode())}.intent"
        await self.store.mark(f"space/{self.name}", name, intent.model_dump_json().encode())

    async def answer(self, number: int) -> None:
        """A person gives the result of a write that has failed."""
        await self.store.mark(f"space/{self.name}", key_of([PAID.key(number), 1, None, "result"]), b"{}")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(new_store(tmp_path))


async def test_a_call_that_claims_again_has_the_same_number(run: Run) -> None:
    assert [await run.claim("one", call) for call in ("a", "b", "a", "b", "c")] == [1, 2, 1, 2, 3]


async def test_what_a_script_has_claimed_and_forgotten_is_free_for_its_other_calls(run: Run) -> None:
    """After a reset, coroutines that race make their calls in other places: whoever came first has made each."""
    assert [await run.claim("one", call) for call in ("a", "b")] == [1, 2]
    await run.begin(1)
    await run.begin(2)
    run.known.clear()
    assert [await run.claim("one", call) for call in ("b", "c", "d")] == [1, 2, 3]
    # The same holds for a script that takes over, and is given to the program once more.
    assert await run.claim("two", "a") == 1
    run.known.clear()
    assert [await run.claim("two", call) for call in ("x", "y")] == [1, 2]


async def test_another_script_takes_over_in_order_what_was_made(run: Run) -> None:
    for number, call in enumerate(("a", "b", "c", "d"), 1):
        assert await run.claim("one", call) == number
    await run.begin(2)  # the first has failed, with a ToolError: it was not made
    await run.answer(3)
    assert [await run.claim("two", call) for call in ("e", "f")] == [2, 3]
    assert [await run.claim("two", call) for call in ("g", "h", "i")] == [1, 4, 5], "what was not made, then a new one"


async def test_a_call_keeps_its_own_write_while_equal_ones_change_places(run: Run) -> None:
    for number, call in enumerate(("a", "b", "c"), 1):
        await run.claim("one", call)
        await run.begin(number)
    assert [await run.claim("two", call) for call in ("c", "a", "b")] == [3, 1, 2]
    assert [await run.claim("three", call) for call in ("x", "a", "b")] == [1, 2, 3]
    assert [await run.claim("one", call) for call in ("a", "b", "c")] == [1, 2, 3], "the first script again"


async def test_a_fork_takes_over_from_all_runs_that_it_forks(run: Run) -> None:
    for number, call in enumerate(("a", "b"), 1):
        await run.claim("one", call)
        await run.begin(number)
    second = Run(run.store, "second", ("run",))
    assert [await second.claim("two", call) for call in ("x", "y", "z")] == [1, 2, 3]
    await second.begin(3)
    third = Run(run.store, "third", ("second", "run"))
    assert [await third.claim("three", call) for call in ("u", "v", "w", "x")] == [1, 2, 3, 4]


@pytest.mark.parametrize("seed", range(20))
async def test_random_scripts_never_make_more_than_the_most_that_one_has_called(run: Run, seed: int) -> None:
    """Calls are added, dropped and renamed from script to script; some fail, and any claims again at any time."""
    chance = random.Random(seed)
    made: set[int] = set()
    for script in range(5):
        count = chance.randint(0, 8)
        calls = [chance.choice(["", f"{script} "]) + str(number) for number in range(count)]
        again = calls + chance.choices(calls, k=3) if calls else []
        chance.shuffle(again)
        found = {call: await run.claim(str(script), call) for call in again}
        numbers = Counter(found.values())
        assert set(numbers.values()) <= {1}, "no two calls of a script have the same write"
        taken_over = made.intersection(numbers)
        assert len(taken_over) == min(len(made), len(set(calls))), "what was made comes first"
        for number in numbers:
            if chance.random() < 0.7:
                await run.begin(number)
                made.add(number)


async def test_a_write_with_another_text_asks_while_one_of_the_script_before_waits(run: Run) -> None:
    assert await run.claim("one", "a") == 1
    assert await run.caution("one", "a", 1) is None, "there is no script before"
    await run.begin(1)
    for each in (Run(run.store, "fork", ("run",)), run):
        assert await each.claim("two", "a", equal=OTHER) == 1
        caution = await each.caution("two", "a", 1, OTHER)
        why = "the new one has not called that yet, so this may be the same write with another text"
        text = f'the old script wrote pay {{"bill": 1}} at 14:02 UTC; {why}. Write this as well?'
        assert caution == Caution(text, asks=True)
        assert await each.caution("two", "a", 1, OTHER) == caution, "a step that is made again asks it again"
        assert await each.claim("two", "b") == 1
        assert await each.caution("two", "b", 1) is None, "it is the one that was made"
        assert await each.caution("two", "a", 1, OTHER) is None, "and nothing waits any more"


async def test_one_more_equal_write_says_that_one_was_made(run: Run) -> None:
    assert await run.claim("one", "a") == 1
    await run.begin(1)
    assert [await run.claim("two", call) for call in ("b", "c")] == [1, 2]
    assert await run.caution("two", "b", 1) is None
    assert await run.caution("two", "c", 2) == Caution("already written at 14:02 UTC by the old script")


def test_equal_writes_are_told_from_others() -> None:
    other: list[Any] = [("other", "pay", {"bill": 1}), ("main", "note", {"bill": 1}), ("main", "pay", {"bill": 2})]
    assert len({PAID.digest, *(EqualWrites.of(*each).digest for each in other)}) == 4
    assert EqualWrites.of("main", "pay", {"a": 1, "b": 2}) == EqualWrites.of("main", "pay", {"b": 2, "a": 1})
    assert PAID.key(1) != PAID.key(2)
