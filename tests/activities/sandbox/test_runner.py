"""Which sandbox is taken, and what it says of its limits."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from doubles.sandboxes import found

from sennit.activities.sandbox import SandboxChoice, memory_group, runner
from sennit.activities.sandbox.runner import NoSandbox, Sandbox, find_sandbox
from sennit.activities.sandbox.tools import code_tools
from sennit.activities.toolbox.errors import SandboxFailed

GROUP = Path("/sys/fs/cgroup/worker")


@pytest.mark.parametrize(
    ("sandbox", "said"),
    [
        (Sandbox("bwrap", "", GROUP, True, GROUP), "runs in bwrap; bounds: memory enforced, disk enforced"),
        (Sandbox("bwrap", "", GROUP, True, None), "runs in bwrap; bounds: memory approximate, disk enforced"),
        (Sandbox("landlock", "", GROUP, False, None), "runs in landlock; bounds: memory approximate, disk approximate"),
        (
            Sandbox("landlock", "", GROUP, False, None, False),
            "runs in landlock; bounds: memory absent, disk approximate",
        ),
    ],
)
def test_the_tools_say_how_their_limits_are_held(sandbox: Sandbox, said: str) -> None:
    assert [tool.describe()["hint"] for tool in code_tools(sandbox)] == [said] * 4


async def test_a_missing_folder_is_named_as_what_it_is(tmp_path: Path) -> None:
    here = await asyncio.to_thread(found, "landlock")
    gone = tmp_path / "gone"
    message = f"no private folder can be made in {gone}: No such file or directory"
    with pytest.raises(SandboxFailed, match=message) as failed:
        await replace(here, folder=gone).run(["true"], {}, 1)
    assert not failed.value.retryable
    with pytest.raises(NoSandbox, match=f"^landlock: {message}$"):
        await asyncio.to_thread(find_sandbox, "landlock", gone)


def test_what_is_said_was_tried() -> None:
    sandbox = found("strict")
    assert sandbox.bounds["memory"] == ("enforced" if memory_group.find_parent() else "approximate")
    assert sandbox.measured


@pytest.mark.parametrize(("choice", "refused"), [("auto", False), ("strict", True)])
def test_only_strict_refuses_a_sandbox_without_a_bound(
    choice: SandboxChoice, refused: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory_group, "find_parent", lambda: None)
    monkeypatch.setattr(runner, "_missing", lambda _: "")
    monkeypatch.setattr(runner, "_escape_problem", lambda _: ("", False))
    if refused:
        with pytest.raises(NoSandbox, match=r"^bwrap: runs in bwrap; bounds: memory absent, "):
            find_sandbox(choice, tmp_path)
    else:
        assert find_sandbox(choice, tmp_path).bounds["memory"] == "absent"
