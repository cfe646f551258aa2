"""Sennit for programs: start runs, find them again, wait for them. The `sennit` command uses nothing else."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from importlib.metadata import version
from typing import Any, Literal

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from starter.client.connection import TemporalServer, configured_place, reach
from starter.client.errors import Refused
from starter.client.local import join_local_stack
from starter.client.names import checked_id, markdown_summary, new_id, summary
from starter.client.request import build_request, docs_folder
from starter.client.run import Run
from starter.client.server_errors import meaning
from workflows.messages.queues import WORKFLOW
from workflows.plan.language.nodes import OnFailure

WORKFLOW_TYPE = "AgentRun"
START_TIMEOUT = timedelta(seconds=30)


class Sennit:
    """A connection to one Temporal server and namespace."""

    def __init__(self, client: Client, place: TemporalServer) -> None:
        self.client = client
        self.place = place

    @classmethod
    async def connect(cls, address: str | None = None, *, namespace: str | None = None) -> "Sennit":
        """Connect as the `temporal` command would; without any address set, to the local stack, started if needed.

        Raises Unreachable, or Refused when the settings are wrong.
        """
        place = configured_place(address, namespace) or await join_local_stack(namespace)
        return cls(await reach(place), place)

    async def start(
        self,
        *,
        goal: str = "",
        plan: Mapping[str, Any] | None = None,
        docs: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        tools: Sequence[str] | None = None,
        approval: Literal["writes", "never"] | None = None,
        on_failure: OnFailure | None = None,
        window: int | None = None,
        budget: Mapping[str, Any] | None = None,
        max_replans: int | None = None,
        approve_replans_above: int | None = None,
        tenant: str | None = None,
        id: str | None = None,  # noqa: A002  # the name it has as `--id`
        again: bool = False,
        title: str = "",
    ) -> Run:
        """Start a run of `goal`, or of `plan` (plain JSON data), and return it.

        With `id` at most one run is started, however often this is called: a run of that id that goes on is joined,
        and one that is over is returned as it ended, unless `again` starts it anew. `title` names a run without a
        goal; queues serve `tenant` in turn with others; `budget` has the fields of Limits. A replan of more nodes than
        `approve_replans_above` waits for a person. Raises Refused for what the run would refuse by its form, Stop when
        the server does not take it.
        """
        request = build_request(
            goal=goal,
            plan=dict(plan) if plan is not None else None,
            docs=docs_folder(docs, near=self.place.near) if docs else None,
            inputs=dict(inputs) if inputs else None,
            tools=list(tools) if tools is not None else None,
            approval=approval,
            on_failure=on_failure,
            window=window,
            budget=dict(budget) if budget else None,
            max_replans=max_replans,
            approve_replans_above=approve_replans_above,
            tenant=tenant,
        )
        name = goal or str((plan or {}).get("goal") or "") or title
        memo: dict[str, Any] = {"sennit": version("sennit")}  # a packed plan cannot be read in the web UI
        if plan:
            memo |= {"title": summary(title or name), "nodes": len(plan.get("nodes") or ())}
        told = {"static_summary": markdown_summary(name) or None, "memo": memo}
        return await self._start(checked_id(id) if id is not None else new_id(name), request, told, again=again)

    async def _start(self, name: str, request: dict[str, Any], told: dict[str, Any], *, again: bool) -> Run:
        """Let the server decide whether the id is free: nothing is asked first, so two starters cannot both win."""
        reuse = WorkflowIDReusePolicy.ALLOW_DUPLICATE if again else WorkflowIDReusePolicy.REJECT_DUPLICATE
        try:
            handle = await self.client.start_workflow(
                WORKFLOW_TYPE,
                request,
                id=name,
                task_queue=WORKFLOW,
                id_reuse_policy=reuse,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                priority=Priority(fairness_key=request.get("tenant")),  # what a run starts inherits it
                **told,
                rpc_timeout=START_TIMEOUT,
            )
        except WorkflowAlreadyStartedError:
            return await self.find(name)
        except RPCError as error:
            raise meaning(error) from None
        return self._run(name, handle.result_run_id or "")

    async def find(self, name: str) -> Run:
        """Return the latest run with this id. Raises Refused when there is none."""
        return (await self.look_up(name))[0]

    async def look_up(self, name: str) -> tuple[Run, bool]:
        """Return the latest run with this id, and whether it still goes on; needs no worker. Raises Refused."""
        try:
            found = await self.client.get_workflow_handle(checked_id(name)).describe(rpc_timeout=START_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND and "namespace" not in error.message.lower():
                place = f"in namespace {self.place.namespace} at {self.place.address}"
                raise Refused(f"there is no run {name} {place}") from None
            raise meaning(error) from None
        if found.workflow_type != WORKFLOW_TYPE:
            raise Refused(f"{name} is a workflow of type {found.workflow_type}, not a run of Sennit")
        run = self._run(name, found.run_id, joined=True)
        run.began = found.start_time.timestamp()
        run.closed = found.close_time.timestamp() if found.close_time else 0.0
        return run, found.status is WorkflowExecutionStatus.RUNNING

    def _run(self, name: str, run_id: str, *, joined: bool = False) -> Run:
        link = self.place.link(name, run_id)
        return Run(self.client, name, run_id, ui_url=link, joined=joined, gone=self.place.gone)
