"""What a fork takes over from the runs that it forks, and what it makes again."""

import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from doubles.plan.samples import stored, tool
from doubles.stores import new_store
from pydantic import BaseModel

from sennit.activities.nodes import effect_ledger
from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.effect_ledger import Intent, Write
from sennit.activities.nodes.origins import told_at
from sennit.activities.nodes.runner import NodeRunner
from sennit.activities.storage.artifacts import decode
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.garbage import OriginMissing, Owner, claim, claim_origin, stored_runs
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.toolbox import Registry, ToolContext, ToolError
from sennit.activities.toolbox import tool as register
from sennit.activities.toolbox.errors import AlreadyWritten, UnknownOutcome
from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.messages.node_calls import GateNodeCall, WriteNodeCall
from sennit.workflows.plan.digests import digest_in
from sennit.workflows.plan.scheduling.events import Approval

OLD, FORK, FORK_OF_FORK = "old", "fork", "third"


class Text(BaseModel):
    query: str


@dataclass
class Runs:
    """Runs with one store that make one call, each in a home of its own. `called` are the idempotency keys of what
    was called, and `fails` makes the next call fail.
    """

    path: Path
    effect: Any = "read"
    idempotent: bool = False
    keyed: bool = True
    called: list[str] = field(default_factory=list)
    fails: bool = False
    version: str = "1"

    @property
    def store(self) -> DirectoryStore:
        return new_store(self.path)

    async def make(
        self, run: str, *origins: str, generation: int = 1, approved: Any = None, answer: Any = None, **fields: Any
    ) -> NodeReply:
        """Make the call in a run, with `args` of its own; `fields` are those of the plan."""
        registry, unused, docs = Registry(), cast("Any", None), cast("Any", SimpleNamespace(folder=Path))

        async def search(args: Text, context: ToolContext) -> str:
            self.called.append(context.idempotency_key)
            if self.fails:
                raise ToolError("no")
            return f"{args.query} {len(self.called)}"

        register(effect=self.effect, idempotent=self.idempotent, version=self.version, registry=registry)(search)
        library = ArtifactReader(self.store)
        runner = NodeRunner(self.store, library, registry, unused, unused, self.path, docs)
        await claim(self.store, f"space/{run}", Owner(namespace="n", workflow=run, run=run))
        plan = stored(tool("a", args=fields.pop("args", {"query": "x"})))
        plan = plan.model_copy(update={"keys": {"a": "K"} if self.keyed else {}, **fields})
        digest = await library.keep(f"space/{run}", plan)
        about: Any = {"run": run, "plan": digest, "nodes": ("a",), "origins": origins}
        is_given = answer is not None
        call = GateNodeCall(**about, answer=answer) if is_given else WriteNodeCall(**about, approved=approved)
        name = "a" if generation == 1 else f"a~{generation}"
        return await runner.run(call, name, {}, run_prefix=f"space/{run}", attempts=Attempts(1, 0))

    def lose(self, run: str, *, owners: bool = False) -> None:
        """Delete the bodies of a run, those in its markers too, or its owners."""
        for file in (self.path / "space" / run).rglob("*"):
            if file.is_file() and (file.name.endswith(".owner") if owners else file.parent.name == run):
                file.unlink()
            elif file.is_file() and not owners:
                file.write_bytes(file.read_bytes().partition(b"\n")[0])


def digest(reply: NodeReply) -> str:
    return digest_in(reply.ref or "")


@pytest.fixture(params=["read", "write"])
def runs(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.setattr(effect_ledger, "_POLL_SECONDS", 0.01)
    return Runs(tmp_path, request.param)


@pytest.fixture
def writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.setattr(effect_ledger, "_POLL_SECONDS", 0.01)
    return Runs(tmp_path, "write")


async def test_a_finished_call_is_taken_over_for_nothing_also_by_a_fork_of_the_fork(runs: Runs) -> None:
    first = await runs.make(OLD)
    for run, origins in [(FORK, (OLD,)), ("other", (OLD,)), (FORK_OF_FORK, (FORK, OLD))]:
        reply = await runs.make(run, *origins)
        assert (digest(reply), reply.taken_over, reply.attempt) == (digest(first), True, 0)
        assert await runs.store.has(f"space/{run}", reply.ref or "")
    runs.lose(OLD)
    runs.lose(OLD, owners=True)
    assert digest(await runs.make(FORK)) == digest(first), "it is the fork's own by now"
    assert len(runs.called) == 1


async def test_a_fork_goes_by_when_the_script_was_told(runs: Runs) -> None:
    """By the clock of its worker it may have ended before another call that the script was told before."""
    at, library = (await runs.make(OLD)).at, ArtifactReader(runs.store)
    assert (await runs.make("other", OLD)).at == at
    await library.note(f"space/{OLD}", told_at("K"), at + 9)
    await library.note(f"space/{OLD}", told_at("K"), at + 3, again=True)
    for run, origins in [(FORK, (OLD,)), (FORK_OF_FORK, (FORK, OLD))]:
        assert (await runs.make(run, *origins)).at == at + 3


async def test_what_a_fork_never_came_to_is_found_in_the_run_before_it(runs: Runs) -> None:
    await runs.make(OLD)
    await claim(runs.store, f"space/{FORK}", Owner(namespace="n", workflow=FORK, run=FORK))
    assert (await runs.make(FORK_OF_FORK, FORK, OLD)).taken_over


@pytest.mark.parametrize("generations", [(False,), (True, False), (False, True), (True, True), (False, False, True)])
async def test_the_latest_generation_of_a_call_decides(tmp_path: Path, generations: tuple[bool, ...]) -> None:
    """A person has run it again; whatever it was before, it is made again if that failed."""
    runs = Runs(tmp_path)
    for generation, succeeds in enumerate(generations, 1):
        runs.fails = not succeeds
        with suppress(ToolError):
            await runs.make(OLD, generation=generation)
    runs.fails, count = False, len(runs.called)
    forked = await runs.make(FORK, OLD)
    assert forked.taken_over == generations[-1]
    assert len(runs.called) == count + (not generations[-1])
    assert decode(await runs.store.get("space/fork", forked.ref or "")) == f"x {len(runs.called)}"


@pytest.mark.parametrize("generations", [(True, False), (False, True), (True, True)])
async def test_a_write_that_succeeded_in_any_generation_is_not_repeated(
    writes: Runs, generations: tuple[bool, ...]
) -> None:
    for generation, succeeds in enumerate(generations, 1):
        writes.fails = not succeeds
        with suppress(ToolError):
            await writes.make(OLD, generation=generation)
    writes.fails, count = False, len(writes.called)
    assert (await writes.make(FORK, OLD)).taken_over
    assert len(writes.called) == count


@pytest.mark.parametrize(
    "changes", [{"docs": "/elsewhere"}, {"version": "2"}, {"keys": {"a": "other"}}, {"generation": 2}]
)
async def test_a_read_of_something_else_is_made_again(tmp_path: Path, changes: dict[str, Any]) -> None:
    runs = Runs(tmp_path)
    await runs.make(OLD)
    runs.version = changes.pop("version", "1")
    assert not (await runs.make(FORK, OLD, **changes)).taken_over
    assert len(runs.called) == 2


async def test_without_its_output_a_read_is_made_again_and_a_write_is_in_doubt(runs: Runs) -> None:
    await runs.make(OLD)
    runs.lose(OLD)
    if runs.effect == "write":
        expire(runs, OLD)
        with pytest.raises(UnknownOutcome):
            await runs.make(FORK, OLD)
        assert len(runs.called) == 1
    else:
        assert not (await runs.make(FORK, OLD)).taken_over


@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_write_that_was_cut_off_is_in_doubt_or_repeated_under_its_own_key(
    writes: Runs, idempotent: bool
) -> None:
    writes.idempotent = idempotent
    await writes.make(OLD)
    (writes.path / "space" / OLD / "done" / marker(OLD)).unlink()
    expire(writes, OLD)
    if idempotent:
        assert (await writes.make(FORK, OLD)).ref
        assert writes.called == ["old/K/1"] * 2
    else:
        with pytest.raises(UnknownOutcome):
            await writes.make(FORK, OLD)
        assert (await writes.make(FORK, OLD, generation=2)).ref, "a person says so"


async def test_nothing_is_written_if_nobody_knows_any_more_what_the_forked_run_wrote(writes: Runs) -> None:
    await claim(writes.store, f"space/{OLD}", Owner(namespace="n", workflow=OLD, run=OLD))
    writes.lose(OLD, owners=True)
    with pytest.raises(UnknownOutcome, match="what run old has written is not known any more"):
        await writes.make(FORK, OLD)
    assert writes.called == []


async def test_a_write_with_what_a_person_has_changed_is_taken_over(writes: Runs) -> None:
    changed = Approval("d", "", args={"query": "y"})
    await writes.make(OLD, approved=changed)
    assert (await writes.make(FORK, OLD)).taken_over


@pytest.mark.parametrize("failures", [1, 2])
async def test_the_result_that_a_person_gave_to_a_failed_call_is_taken_over(runs: Runs, failures: int) -> None:
    """An answer begins another generation, as a retry does."""
    runs.fails = True
    for generation in range(1, failures + 1):
        with pytest.raises(ToolError):
            await runs.make(OLD, generation=generation)
    given = await runs.make(OLD, generation=failures + 1, answer="found by hand")
    assert (await runs.make(FORK, OLD)).ref == given.ref
    assert len(runs.called) == failures


async def test_a_call_that_was_made_after_it_was_answered_counts_with_what_it_made(runs: Runs) -> None:
    runs.fails = True
    with pytest.raises(ToolError):
        await runs.make(OLD)
    await runs.make(OLD, generation=2, answer="found by hand")
    runs.fails = False
    made = await runs.make(OLD, generation=3)
    assert digest(await runs.make(FORK, OLD)) == digest(made)
    assert len(runs.called) == 2


async def test_the_node_of_a_plan_that_has_written_something_else_is_refused(writes: Runs) -> None:
    writes.keyed = False
    await writes.make(OLD)
    assert (await writes.make(FORK, OLD)).taken_over
    with pytest.raises(AlreadyWritten):
        await writes.make("other", OLD, args={"query": "z"})


async def test_what_is_forked_is_kept_as_long_as_the_fork_and_must_be_there(tmp_path: Path) -> None:
    runs, owner = Runs(tmp_path), Owner(namespace="n", workflow=FORK, run=FORK)
    await runs.make(OLD)
    await claim_origin(runs.store, f"space/{OLD}", owner)
    [stored_run] = [found async for found in stored_runs(runs.store, "space")]
    assert len(list(stored_run.owners())) == 2
    with pytest.raises(OriginMissing, match="what run gone has stored is gone"):
        await claim_origin(runs.store, "space/gone", owner)


def marker(run: str) -> str:
    return Write(f"{run}/K/1", "", "", "", 0, idempotent=False).marker


def expire(runs: Runs, run: str) -> None:
    """Have the time of a run's write be over."""
    file = runs.path / "space" / run / "done" / f"{marker(run)}.intent"
    intent = Intent.model_validate_json(file.read_text())
    file.write_text(intent.model_copy(update={"until": time.time() - 1}).model_dump_json())
