"""`python -m sennit.workers gc`: delete what is stored of runs that the Temporal
server no longer knows.
"""

import argparse
import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError

from sennit.activities.storage.artifacts import ArtifactStore, StoreUnavailable
from sennit.activities.storage.garbage import KnownRuns, StoredRun, delete, is_garbage, stored_runs
from sennit.activities.storage.learned import Compaction, LearnedStore
from sennit.activities.storage.location import open_store
from sennit.workers.connection import server_address
from sennit.workers.settings import read_settings, store_setting
from sennit.workflows.messages.converter import cause_of, connect
from sennit.workflows.plan.language.text import one_line

NICENESS = 10


@dataclass(slots=True)
class Collection:
    """What was deleted, or would be, and how many runs stay. `problem` says why it ended early."""

    dry_run: bool
    older_than: float = 0.0
    deleted: list[StoredRun] = field(default_factory=list)
    kept: int = 0
    learned: Compaction = field(default_factory=Compaction)
    problem: str = ""

    async def run(self, store: ArtifactStore, client: Client) -> None:
        """Go through the store. Others may do so at the same time. Raises
        RPCError, StoreUnavailable.
        """
        known = await KnownRuns.of(client)
        self.older_than = self.older_than or known.retention
        before = time.time() - self.older_than
        async for stored in stored_runs(store, client.namespace):
            if stored.changed > before or not await is_garbage(store, stored, known):
                self.kept += 1
                continue
            if not self.dry_run:
                await delete(store, stored)
            self.deleted.append(stored)
        if not self.dry_run:
            self.learned = await LearnedStore(store).compact(client.namespace)

    def json(self) -> dict[str, Any]:
        """Return all of it as data."""
        runs: list[dict[str, Any]] = []
        totals = {"objects": 0, "bytes": 0}
        for stored in self.deleted:
            changed = datetime.fromtimestamp(stored.changed, UTC).isoformat()
            sizes = {"objects": len(stored.objects), "bytes": stored.size}
            runs.append({"id": stored.workflow, "run": stored.run, **sizes, "changed": changed})
            totals["objects"] += len(stored.objects)
            totals["bytes"] += stored.size
        about: dict[str, Any] = {
            "dry_run": self.dry_run,
            "older_than_seconds": self.older_than,
            "kept": self.kept,
        }
        about["learned"] = asdict(self.learned)
        return {
            **about,
            "runs": len(runs),
            **totals,
            "found": runs,
            "problem": self.problem or None,
        }

    def text(self) -> str:
        """Return a line for each run, and the sums."""
        found = self.json()
        lines = [
            f"{one_line(each['id'], 200)}  {_amount(each)}, last changed {each['changed'][:10]}"
            for each in found["found"]
        ]
        verb = "to delete" if self.dry_run else "deleted"
        sums = (
            f"{verb}: {_counted(len(lines), 'run')}, {_amount(found)}; kept: "
            f"{_counted(self.kept, 'run')}"
        )
        if self.learned.runs:
            lines.append(
                f"learned: {_counted(self.learned.runs, 'run')} added to what is known of earlier "
                "ones"
            )
        if self.learned.ignored:
            lines.append(f"learned: {_counted(self.learned.ignored, 'object')} was of no use")
        return "\n".join([*lines, sums])


def main(arguments: Sequence[str]) -> int:
    """Collect garbage as the arguments say, and write what went. No store is
    made. Raises WrongSetting.

    Returns 0, 1 if the store fails, or 5 if the server does not answer.
    """
    parser = argparse.ArgumentParser(prog="python -m sennit.workers gc")
    parser.add_argument("--older-than", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--output", default="text")
    options = parser.parse_args(arguments)
    os.nice(NICENESS)
    place, collection = read_settings().artifacts, Collection(options.dry_run, options.older_than)
    with store_setting(place):
        store = open_store(place)
    code = asyncio.run(_collect(collection, store))
    if options.output != "none":
        json_wanted = options.output in ("json", "jsonl")
        sys.stdout.write(
            (json.dumps(collection.json()) if json_wanted else collection.text()) + "\n"
        )
    if collection.problem:
        sys.stderr.write(f"sennit: {collection.problem}\n")
    return code


async def _collect(collection: Collection, store: ArtifactStore) -> int:
    address = server_address()
    try:
        await store.identify()
        client = await connect(identity=f"gc@{socket.gethostname()}:{os.getpid()}")
        await collection.run(store, client)
    except (RuntimeError, TimeoutError) as error:
        collection.problem = f"no Temporal server at {address}: {cause_of(error)}"
    except RPCError as error:
        collection.problem = (
            f"the Temporal server at {address} does not say which runs it knows: "
            f"{error.message[:200]}"
        )
    except StoreUnavailable as error:
        collection.problem = str(error)
        return 1
    else:
        return 0
    return 5


def _amount(found: dict[str, Any]) -> str:
    size, units = float(found["bytes"]), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{_counted(found['objects'], 'object')}, {size:,.0f} {units[0]}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
