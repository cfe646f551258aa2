"""What a client sends to start a run, checked before it is sent: sizes, encoding, documents, the plan's weight."""

import json
import os
from pathlib import Path
from typing import Any

from starter.client.errors import Refused
from workflows.messages.request import PACK_ABOVE_BYTES, InvalidRequest, RunRequest, parse_request
from workflows.plan.language.nodes import MAX_GOAL_BYTES
from workflows.plan.language.packing import pack_plan

MAX_INPUTS_BYTES = 512 * 1024


def checked_goal(goal: str) -> str:
    """Return the goal; raises Refused when it is empty, over 32 KiB or not UTF-8."""
    try:
        size = len(goal.encode())
    except UnicodeEncodeError:
        raise Refused("the goal is not UTF-8 text") from None
    if not goal.strip():
        raise Refused("the goal is empty; say what you want to know, or `-` to read it from standard input")
    if size > MAX_GOAL_BYTES:
        raise Refused(f"the goal is {size:,} bytes; at most {MAX_GOAL_BYTES:,}. Put long text in a document (--docs)")
    return goal


def docs_folder(docs: str, *, near: bool) -> str:
    """Return the folder as an absolute path; raises Refused when the workers' machine is this one and lacks it."""
    path = Path(os.path.abspath(Path(docs).expanduser()))  # noqa: PTH100  # a link stays a link: roots may name it
    if near and not path.is_dir():
        raise Refused(f"--docs {docs}: {'is not a folder' if path.exists() else 'there is no such folder'}")
    return str(path)


def build_request(**fields: Any) -> dict[str, Any]:
    """Return the run's input from the fields of RunRequest that are not None; a big plan is packed.

    Raises Refused for anything the run would refuse by its form.
    """
    request = {name: value for name, value in fields.items() if value not in (None, "", {})}
    try:
        _weigh(request)
        parsed = parse_request(request)
    except InvalidRequest as invalid:
        raise Refused(str(invalid)) from None
    except ValueError as error:
        raise Refused(str(error)) from None
    return _json_form(parsed)


def _weigh(request: dict[str, Any]) -> None:
    """Replace a heavy plan by its packed form. Raises ValueError."""
    size = _size(request.get("inputs", {}))
    if size > MAX_INPUTS_BYTES:
        raise ValueError(f"the inputs are {size:,} bytes; at most {MAX_INPUTS_BYTES:,}. Put long text in a document")
    plan = request.get("plan")
    if plan is not None and _size(plan) > PACK_ABOVE_BYTES:
        request["plan_packed"] = pack_plan(request.pop("plan"))


def _size(value: Any) -> int:
    try:
        return len(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())
    except (UnicodeEncodeError, TypeError) as error:
        raise ValueError(f"plan and inputs must be JSON in UTF-8: {error}") from None


def _json_form(parsed: RunRequest) -> dict[str, Any]:
    return parsed.model_dump(mode="json", exclude_unset=True)
