"""Which sandbox is taken, and what it says of its limits."""

from pathlib import Path

import pytest
from doubles.sandboxes import found

from sennit.activities.sandbox import SandboxChoice, memory_group, runner
from sennit.activities.sandbox.runner import NoSandbox, Sandbox, find_sandbox
from sennit.activities.sandbox.tools import code_tools

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
    assert [tool.describe()["hint"] for tool in code_tools(sandbox)] == [said, said]


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
