"""The map names all code of the core that a replay runs, so that whoever changes it knows."""

import re
from pathlib import Path

from test_architecture import ROOT, modules_imported

WORKFLOWS = ("agent_run", "child", "dry_run", "look_up", "read_outputs", "run_quota")
ONLY_SHOWN = ("programs.files",)
"""Modules that only queries use: how a script is shown."""
CORE = "sennit.workflows.plan."


def file_of(module: str) -> Path:
    return (ROOT / module.replace(".", "/")).with_suffix(".py")


def reached() -> dict[str, None]:
    """Return the modules of the core that the workflows import, directly or not."""
    found: dict[str, None] = {}
    waiting = [f"sennit.workflows.{name}" for name in WORKFLOWS]
    while waiting:
        module = waiting.pop()
        if module not in found and file_of(module).exists():
            found[module] = None
            waiting += [name for name in modules_imported(file_of(module)) if name.startswith("sennit.workflows")]
    return {module.removeprefix(CORE): None for module in found if module.startswith(CORE)}


def test_the_map_names_every_module_of_the_core_that_a_replay_runs() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    paragraph = text[text.index("**Replay-critical**") :].partition("\n\n")[0]
    named = re.findall(r"`([^`]+)`", paragraph)
    folders = [name.removeprefix("workflows/plan/").strip("/") for name in named if name.startswith("workflows/plan/")]
    files = [name.removesuffix(".py") for name in named if name.endswith(".py")]
    whole = [name for name in folders if name != "compile"]
    missing = [
        module
        for module in reached()
        if module.partition(".")[0] not in whole and module.rpartition(".")[2] not in files and module not in ONLY_SHOWN
    ]
    assert len(reached()) > 30
    assert missing == []
