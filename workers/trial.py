"""`python -m sennit.workers try NAME`: call one tool once with this environment, and say
as JSON what came of it.
"""

import argparse
import asyncio
import json
import os
import secrets
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sennit.activities.toolbox import Tool, ToolArgumentError, ToolContext, UnknownTool
from sennit.activities.toolbox.redaction import redact
from sennit.activities.toolbox.stack import stack_of
from sennit.activities.toolbox.threads import tool_threads
from sennit.workers.settings import read_settings
from sennit.workers.wiring import load_registry
from sennit.workflows.plan.language.json_schema import definitions, typed_value, types_of
from sennit.workflows.plan.language.text import one_line

RETURNED, FAILED, REFUSED = 0, 1, 2


def main(arguments: Sequence[str]) -> int:
    """Write one object to stdout, with `result`, `error` or `refused`, and
    return the exit code for it.

    Whatever the tool itself prints goes to stderr. Raises WrongSetting.
    """
    parser = argparse.ArgumentParser(prog="python -m sennit.workers try")
    parser.add_argument("name")
    parser.add_argument("--arg", action="append", default=[])
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--yes", action="store_true")
    args = parser.parse_args(arguments)
    stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    settings = read_settings()
    registry = load_registry(settings)
    if reason := registry.left_out.get(args.name):
        return _say(stdout, REFUSED, refused=f"{args.name} is off here: {reason}")
    try:
        tool = registry.get(args.name)
        values = arguments_of(tool, args.arg)
        tool.check(values)
        if tool.effect == "write" and not args.yes:
            raise _Refused(asyncio.run(_what_it_writes(tool, values)))
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
            return _say(
                stdout,
                RETURNED,
                result=asyncio.run(_call(tool, values, args.docs or settings.docs, Path(cache))),
            )
    except (_Refused, UnknownTool, ToolArgumentError) as problem:
        return _say(stdout, REFUSED, refused=str(problem))
    except Exception as error:  # noqa: BLE001  whatever a tool raises is what came of it
        failure = {
            "type": type(error).__name__,
            "message": redact(str(error)),
            "stack": stack_of(error).text,
        }
        return _say(stdout, FAILED, error=failure)


class _Refused(Exception):
    """The tool was not called."""


def arguments_of(tool: Tool, words: Sequence[str]) -> dict[str, Any]:
    """Return arguments from `name=value` words, each read by its type in the tool's
    schema. Raises _Refused.
    """
    properties, defs = tool.schema.get("properties", {}), definitions(tool.schema)
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name in values:
            raise _Refused(
                f"--arg {word[:60]}: {'given twice' if equals else 'write it as name=value'}"
            )
        values[name] = typed_value(text, types_of(properties.get(name, {}), defs))
    return values


async def _call(tool: Tool, values: dict[str, Any], docs: Path | None, cache: Path) -> Any:
    context = ToolContext(
        docs=docs,
        cache=cache,
        run_id="try",
        node="try",
        generation=1,
        attempt=1,
        idempotency_key=secrets.token_hex(16),
        progress=partial(_note, "progress"),
        warn=partial(_note, "warning"),
    )
    try:
        async with asyncio.timeout(tool.timeout) as limit:
            return await tool.call(values, context, limit)
    except TimeoutError:
        if limit.expired():
            raise TimeoutError(f"no result within {tool.timeout:g} s") from None
        raise


async def _what_it_writes(tool: Tool, values: dict[str, Any]) -> str:
    shown = json.dumps(values, ensure_ascii=False)
    if tool.preview is not None:
        positional, named = tool.passed(tool.check(values))
        shown = (
            await tool_threads.run(partial(tool.preview, *positional, **named), tool.name)
        ).text
    return redact(
        f"{tool.name} writes, and was not called; --yes calls it. It would write:\n{shown}"
    )


def _note(kind: str, text: str) -> None:
    sys.stderr.write(f"{kind}: {one_line(redact(text))}\n")


def _say(stdout: Any, status: int, **found: Any) -> int:
    json.dump(found, stdout, ensure_ascii=False)
    stdout.write("\n")
    stdout.flush()
    return status
