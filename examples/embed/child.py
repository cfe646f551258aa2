"""A run of Sennit as a step of a workflow of your own, on your own worker: `python child.py 127.0.0.1:7233`."""

# ruff: noqa: T201  # an example prints

import asyncio
import sys
import uuid
from dataclasses import dataclass

from pydantic import JsonValue
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from sennit import RunInput, run_child

QUEUE = "orders"


@dataclass
class Order:
    prices: list[int]


@workflow.defn
class Bill:
    """Adds up an order. The sum is the answer of a run, which you see below this workflow in the web UI."""

    @workflow.run
    async def run(self, order: Order) -> str:
        total: dict[str, JsonValue] = {
            "id": "total",
            "kind": "tool",
            "tool": "calculate",
            "args": {"expression": "$input.sum"},
        }
        report = await run_child(
            RunInput(
                title="bill",
                plan={"inputs": {"sum": {"type": "string"}}, "nodes": [total], "answer": "$total.value"},
                inputs={"sum": " + ".join(map(str, order.prices))},
                on_failure="fail",
            )
        )
        return f"{report.status}: {report.answer}"


async def main(address: str) -> None:
    client = await Client.connect(address)
    async with Worker(client, task_queue=QUEUE, workflows=[Bill]):
        name = f"bill-{uuid.uuid4().hex[:8]}"
        print(await client.execute_workflow(Bill.run, Order([7, 8]), id=name, task_queue=QUEUE))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
