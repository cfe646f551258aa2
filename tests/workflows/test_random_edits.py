"""Random programs that pay bills, edited into other ways to pay, ended and forked: each bill is paid once."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from chaos.bills import RATES, bills_of
from chaos.calls import CallLog
from chaos.cases import bills_case
from chaos.ledger import Ledger, ledger_service
from chaos.paid_bills import wrong_bills
from chaos.person import Watch, watch
from doubles.activations import check_joins, recorded_from
from temporalio.client import Client

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.starter.client.client import Sennit
from sennit.workers.roles import ROLES
from sennit.workers.settings import read_settings
from sennit.workers.wiring import load_registry
from sennit.workflows.messages import queues

SEEDS = range(int(os.environ.get("SENNIT_SEEDS", "4")))
PAUSE = 0.2


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """The service that the tools pay at."""
    with ledger_service() as service:
        monkeypatch.setenv("PAYMENTS_URL", service.url)
        yield service


@pytest.fixture
def host(cache: Path, artifacts: Path, tmp_path: Path) -> Activities:
    """The activities of a worker with a tool that pays at a service outside, and a folder that it reads and writes."""
    (tmp_path / RATES).write_text("one for one\n")
    settings = {"SENNIT_TOOLS": "doubles.tools,doubles.bank", "SENNIT_WRITE_ROOT": str(tmp_path)}
    registry = load_registry(read_settings(settings), ROLES["tools"], print)
    return Activities(WorkerPaths(artifacts, cache, tmp_path, ()), registry, identity="tests", approval="never")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
async def test_random_edits_and_forks_pay_each_bill_once(
    client: Client, workers: None, cache: Path, ledger: Ledger, seed: int
) -> None:
    """`SENNIT_SEEDS=300` tries more of them. Their histories replay, in whatever tasks."""
    bills, prefix = bills_of(seed), f"bills-{uuid.uuid4().hex[:8]}"
    log, sennit = CallLog(cache / "calls.log"), Sennit(client)
    watches = list[Watch]()
    for stretch in range(len(bills.stretches)):
        case = bills_case(bills, stretch)
        case.prefix = prefix
        if not watches:
            await client.start_workflow("AgentRun", case.request, id=case.name, task_queue=queues.WORKFLOW)
        else:
            first = bills.stretches[stretch].versions[0]
            origin = (await sennit.origin(watches[-1].case.name)).with_script(first.script)
            await sennit.fork(origin, id=case.name, approval="never", repeat_writes=first.repeat_writes)
        description = await client.get_workflow_handle(case.name).describe()
        watches.append(Watch(case, description.raw_description.workflow_execution_info.first_run_id))
        await watch(client, watches[-1], log, ledger, pause=PAUSE)
    assert list(wrong_bills(watches, ledger)) == []
    assert sum(seen.unknown for seen in watches) == 0, "no worker died"
    for seen in watches:
        history = await client.get_workflow_handle(seen.case.name).fetch_history()
        await check_joins(await recorded_from(history), Random(history.run_id))
