"""What a group replies for a member that took its worker with it."""

from doubles.plan.samples import stored, tool

from sennit.activities.nodes.group import GroupRun
from sennit.activities.toolbox.errors import WorkerLost
from sennit.workflows.messages.contracts import NodeReply


async def test_a_member_that_kills_its_process_fails_and_does_not_start_again() -> None:
    async def run_one(path: str, _: dict[str, str]) -> NodeReply:
        if path == "a":
            raise WorkerLost("it ended its process, with exit code 9")
        return NodeReply(ref="digest")

    async def load(_: str) -> None:
        """There is nothing to load."""

    group = GroupRun(stored(tool("a"), tool("b")), ("a", "b"), {}, run_one)
    await group.run(load, {})
    lost, fine = group.replies()
    assert lost.error is not None
    assert (lost.error.type, lost.error.again, fine.ref) == ("WorkerLost", False, "digest")
