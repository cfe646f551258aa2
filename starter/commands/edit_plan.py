"""`sennit approve RUN --edit-plan`: puts another plan in the place of the one that waits,
from an editor or a file.
"""

import asyncio
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from sennit.starter.client.errors import Exit, Refused, SennitError
from sennit.starter.client.run import Run
from sennit.starter.plans.plan_file import read_plan
from sennit.starter.plans.plan_text import plan_text
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.prompt import Typist, decision, question
from sennit.starter.terminal.render import blocked_lines
from sennit.workflows.messages.result import BlockedOn

_EDITOR = "vi"


async def edit_plan(run: Run[Any], path: str, digest: str, terminal: Terminal) -> Exit:
    """Send the plan of a file, or without one that of the run as a person has edited it. The run
    checks it and asks about it again, and so does this at a terminal. It replaces the plan with
    this digest, in an editor the plan that was shown there, and no other.

    Raises Refused, BadPlan with every problem and its line, or another SennitError; the
    person's text is kept then.
    """
    is_typed = not path
    if is_typed:
        digest = digest or await _digest_of_plan(run)
        path = await _in_editor(run, terminal)
    try:
        file = read_plan(path)
        file.check(None)
        message = await run.edit_plan(file.data, digest=digest)
    except SennitError as error:
        if is_typed:
            words = ["sennit", "approve", run.id, "--edit-plan", path]
            if digest:  # sent again, it replaces no other plan either
                words += ["--digest", digest]
            again = shlex.join(words)
            way = (
                "mend it, and send it"
                if isinstance(error, Refused)
                else "look at the run, and send it again"
            )
            terminal.notice(f"your text is kept; {way} with: {again}{terminal.flags}")
        raise
    if is_typed:
        os.unlink(path)  # noqa: PTH108  a loop may not wait for the methods of a path
    terminal.notice(message)
    view = await run.view()
    decided = ""
    for item in view.blocked:
        if item.why == "plan":
            decided = await _asked(run, item, terminal)
            break
    terminal.result(decided, {"run": run.id, "update": "edit_plan", "message": message})
    return Exit.ANSWER


async def _asked(run: Run[Any], item: BlockedOn, terminal: Terminal) -> str:
    """Show the question about the plan, and take a person's word on it; return what the
    run says, "" without one.
    """
    for line in blocked_lines(item, terminal.flags):
        terminal.notice(line)
    if not terminal.has_person:
        return ""
    typed = await Typist(terminal).ask(question(item))
    if typed is None:
        return ""
    name, fields = decision(item, typed)
    return await run.update(name, **fields)


async def _digest_of_plan(run: Run[Any]) -> str:
    """Return the digest of the plan that waits, "" if none does: the run then says so."""
    for item in (await run.view()).blocked:
        if item.why == "plan":
            return str(item.example["digest"])
    return ""


async def _in_editor(run: Run[Any], terminal: Terminal) -> str:
    """Return the file with the plan of a run once a person has edited it. Raises
    Refused if they have not.
    """
    if not terminal.has_person:
        raise Refused("nobody is at a terminal to edit the plan; give a file: --edit-plan FILE")
    masked: list[bool] = []
    text = plan_text(await run.plan(on_mask=lambda: masked.append(True)))
    if masked:
        raise Refused(
            "the worker that has read the plan has masked a secret in it; give a file: "
            "--edit-plan FILE"
        )
    return await asyncio.to_thread(_edited, text)


def _edited(text: str) -> str:
    """Return the file in which a person has edited a text. Raises Refused if it is as it was."""
    descriptor, name = tempfile.mkstemp(prefix="plan-", suffix=".yaml")
    path = Path(name)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or _EDITOR)
    why = ""
    try:
        subprocess.run([*editor, name], check=True)  # noqa: S603 - what the person has chosen
    except OSError as error:
        why = f"the editor {editor[0]} cannot be started: {error.strerror}; set EDITOR"
    except subprocess.CalledProcessError as error:
        why = f"the editor has ended with status {error.returncode}"
    if not why and path.read_text(encoding="utf-8") == text:
        why = "the plan is as it was"
    if why:
        path.unlink()
        raise Refused(f"{why}: nothing was changed")
    return name
