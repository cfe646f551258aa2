"""`python -m sennit.workers learn`: show what earlier runs teach, forget it, or
export what they said.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sennit.activities.storage.artifacts import ArtifactStore, StoreUnavailable
from sennit.activities.storage.learned import LearnedStore, Learning
from sennit.activities.storage.location import open_store
from sennit.activities.toolbox.redaction import mask
from sennit.workers.settings import WrongSetting, read_settings, store_setting
from sennit.workflows.messages.converter import connection_settings
from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.learning.trajectory import name_in

DEFAULT_NAMESPACE = "default"
SHOWN_PAIRS = 100
"""Pairs that people are shown; JSON has all."""


def main(arguments: Sequence[str]) -> int:
    """Do as the arguments say, and write what came of it. Needs the artifact store, and no
    server. Raises WrongSetting.

    Returns 0, 1 if the store fails or nothing can be exported, or 2 for a file
    that cannot be written.
    """
    parser = argparse.ArgumentParser(prog="python -m sennit.workers learn")
    parser.add_argument("--tenant", default="")
    parser.add_argument("--forget", action="store_true")
    parser.add_argument("--export", type=Path)
    parser.add_argument("--output", default="text")
    options = parser.parse_args(arguments)
    place = read_settings().artifacts
    with store_setting(place):
        store = open_store(place)
    try:
        return asyncio.run(_done(options, store))
    except StoreUnavailable as error:
        sys.stderr.write(f"sennit: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"sennit: {options.export} cannot be written: {error.strerror}\n")
        return 2


def _namespace() -> str:
    try:
        return connection_settings().get("namespace") or DEFAULT_NAMESPACE
    except ValueError as problem:
        raise WrongSetting(str(problem)) from None


async def _done(options: argparse.Namespace, store: ArtifactStore) -> int:
    learned, namespace = LearnedStore(store), _namespace()
    if options.forget:
        count = await learned.forget(namespace, options.tenant)
        _write(options, f"forgotten: {_counted(count, 'object')}", {"forgotten": count})
        return 0
    if options.export is not None:
        return await _export(options, learned, namespace)
    found = await learned.read(namespace, options.tenant, most=sys.maxsize)
    _write(options, text_of(found), data_of(found))
    return 0


async def _export(options: argparse.Namespace, learned: LearnedStore, namespace: str) -> int:
    """Write one conversation a line. What this process knows to be secret is masked once more: it
    may know more than the worker that has kept it.
    """
    count, file = 0, None
    try:
        async for body in learned.conversations(namespace, options.tenant):
            try:
                line = json.dumps(mask(json.loads(body)), ensure_ascii=False)
            except ValueError:  # cut off
                continue
            if file is None:  # half a surrogate pair is written as JSON writes it
                file = options.export.open("w", encoding="utf-8", errors="backslashreplace")
            file.write(f"{line}\n")
            count += 1
    finally:
        if file is not None:
            file.close()
    if not count:
        sys.stderr.write(
            "sennit: no run was kept with what it said; start the workers with SENNIT_LEARN=full\n"
        )
        return 1
    _write(
        options, f"{options.export}: {_counted(count, 'conversation')}", {"conversations": count}
    )
    return 0


def data_of(found: Learning) -> dict[str, Any]:
    """Return what is known as data: the pairs of calls, those first that were seen most."""
    pairs = []
    for first, second, row in found.table.rows():
        calls = found.table.tools[first].calls if first in found.table.tools else 0
        share = min(1.0, row.followed / calls) if calls else 0.0
        pairs.append(
            {
                "first": name_in(first),
                "second": name_in(second),
                "keys": [first, second],
                "probability": round(share, 3),
                "together": row.together,
                "used": row.used,
                "needed": row.needed,
                "mappings": dict(sorted(row.mappings.items(), key=lambda entry: -entry[1])),
            }
        )
    pairs.sort(
        key=lambda pair: (-int(str(pair["used"])), -int(str(pair["together"])), str(pair["first"]))
    )
    return {
        "runs": found.table.runs,
        "runs_beside_the_table": found.fresh,
        "ignored": found.ignored,
        "with_values": found.with_values,
        "plans": len(found.table.plans),
        "pairs": pairs,
    }


def text_of(found: Learning) -> str:
    """Return the same for people: a line for each pair, and below it how arguments came about."""
    data = data_of(found)
    if not data["runs"]:
        return (
            "nothing is known yet: no run of this tenant has ended on workers with SENNIT_LEARN=on"
        )
    plans, kept = _counted(data["plans"], "shape"), _counted(data["with_values"], "run")
    lines = [f"{_counted(data['runs'], 'run')}, {plans} of plans, {kept} with values"]
    for pair in data["pairs"][:SHOWN_PAIRS]:
        name = one_line(f"{pair['first']} -> {pair['second']}", 100)
        used = f"used in {pair['used']:,} of {_counted(pair['together'], 'run')}"
        lines.append(f"{name}  {used}, after {pair['probability']:.0%} of the calls")
        for mapping, count in list(pair["mappings"].items())[:3]:
            lines.append(f"    {count:,} x {one_line(mapping, 200)}")
    if len(data["pairs"]) > SHOWN_PAIRS:
        lines.append(f"... and {len(data['pairs']) - SHOWN_PAIRS:,} more pairs: --output json")
    if found.ignored:
        lines.append(
            f"{_counted(found.ignored, 'object')} could not be read and taught nothing; sennit gc "
            "deletes such"
        )
    return "\n".join(lines)


def _write(options: argparse.Namespace, text: str, data: dict[str, Any]) -> None:
    if options.output != "none":
        sys.stdout.write((json.dumps(data) if options.output in ("json", "jsonl") else text) + "\n")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
