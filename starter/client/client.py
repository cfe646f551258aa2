"""Sennit for programs: start runs, find them again, wait for them. The `sennit` command uses nothing else."""

import shlex
from datetime import timedelta
from importlib.metadata import version
from typing import Any, Unpack

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from starter.client.connection import TemporalServer, configured_server, connect_client
from starter.client.errors import Refused
from starter.client.local import Grant, grant, is_granted, join_local_stack
from starter.client.origin import Origin, read_origin
from starter.client.request import (
    RunOptions,
    build_request,
    checked_id,
    checked_new_id,
    docs_folder,
    markdown_summary,
    new_id,
    plan_of,
    summary,
)
from starter.client.run import Run
from starter.client.server_errors import cli_error
from workflows.messages.queues import WORKFLOW
from workflows.plan.programs.program_plan import title_of

WORKFLOW_TYPE = "AgentRun"
RPC_TIMEOUT = timedelta(seconds=30)


class Sennit:
    """A connection to one Temporal server and namespace."""

    def __init__(self, client: Client, server: TemporalServer) -> None:
        self.client = client
        self.server = server

    @classmethod
    async def connect(cls, address: str | None = None, *, namespace: str | None = None) -> "Sennit":
        """Connect as the `temporal` command would; without any address set, to the local stack, started if needed.

        Raises Unreachable, or Refused if the settings are wrong.
        """
        server = configured_server(address, namespace) or await join_local_stack(namespace)
        return cls(await connect_client(server), server)

    async def start(
        self,
        *,
        goal: str = "",
        plan: dict[str, Any] | None = None,
        program: str = "",
        docs: str | None = None,
        id: str | None = None,  # noqa: A002  # the name it has as `--id`
        again: bool = False,
        title: str = "",
        **options: Unpack[RunOptions],
    ) -> Run:
        """Start a run of `goal`, of `plan` (plain JSON data) or of `program` (the text of a script), and return it.

        `inputs` are those that a plan declares, or the arguments of a program's `main`. `title` names a run without a
        goal.

        With `id` at most one run is started, however often this is called: a run of that id that goes on is joined,
        and one that is over is returned as it ended, unless `again` starts a new one. Raises Refused for a request that
        the run would refuse by its form, another CliError if the server does not take it.
        """
        folder = docs_folder(docs, must_exist=self.server.is_local) if docs else None
        if program:
            plan, title = plan_of(program, options.get("inputs") or {}), title or title_of(program)
        request = build_request(goal=goal, plan=plan, docs=folder, **options)
        name = goal or str((plan or {}).get("goal") or "") or title
        grants = Grant(folder, options.get("approval") == "never")
        return await self._begin(
            request, id if id is not None else new_id(name), name, title, plan, grants, again=again
        )

    async def fork(
        self,
        origin: Origin,
        *,
        docs: str | None = None,
        id: str | None = None,  # noqa: A002  # the name it has as `--id`
        again: bool = False,
        title: str = "",
        **options: Unpack[RunOptions],
    ) -> Run:
        """Start a run that does again what a run did that is over, and return it: what it calls as that did is taken
        over, and not called.

        `origin` comes from `origin`. What is None is as it was in that run. But its folder is not opened again, and its
        writes need no approval only if the user of this machine started it so: anybody may have written its input. For
        `id`, `again` and what is raised see `start`.
        """
        folder = docs_folder(docs, must_exist=self.server.is_local) if docs else origin.request.get("docs")
        given = {name: value for name, value in options.items() if value is not None}
        inputs = {**origin.inputs, **(options.get("inputs") or {})}
        fields = {**origin.request, **given, "inputs": inputs, "docs": folder, "origins": list(origin.homes)}
        request = build_request(plan=origin.plan, **fields)
        title = title or fields.get("title") or ""
        name = str(fields.get("goal") or (origin.plan or {}).get("goal") or "") or title or origin.name
        lifts = given.get("approval", "never" if is_granted(self.server, origin.name) else None) == "never"
        grants = Grant(folder if docs else None, lifts and fields.get("approval") == "never")
        return await self._begin(request, id or origin.fork_id, name, title, origin.plan, grants, again=again)

    async def origin(self, name: str) -> Origin:
        """Return the run with this id as a fork of it begins. Raises Refused if it goes on, or cannot be forked."""
        _, goes_on = await self.look_up(name)
        if goes_on:
            raise Refused(f"{name} still runs; change its program with: {shlex.join(['sennit', 'edit', name])} FILE.py")
        return await read_origin(self.client, name)

    async def _begin(
        self,
        request: dict[str, Any],
        chosen: str,
        name: str,
        title: str,
        plan: dict[str, Any] | None,
        grants: Grant,
        *,
        again: bool,
    ) -> Run:
        workflow_id = checked_new_id(chosen)
        grant(self.server, docs=grants.docs, run=workflow_id if grants.writes else None)
        title = summary(title or name)
        if title and not request.get("goal"):
            request = {**request, "title": title}
        memo: dict[str, Any] = {"sennit": version("sennit")}  # a packed plan cannot be read in the web UI
        if plan:
            memo |= {"title": title, "nodes": len(plan.get("nodes") or ())}
        reuse = WorkflowIDReusePolicy.ALLOW_DUPLICATE if again else WorkflowIDReusePolicy.REJECT_DUPLICATE
        try:  # the server decides whether the id is free, so two starters cannot both win
            handle = await self.client.start_workflow(
                WORKFLOW_TYPE,
                request,
                id=workflow_id,
                task_queue=WORKFLOW,
                id_reuse_policy=reuse,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                priority=Priority(fairness_key=request.get("tenant")),  # what a run starts inherits it
                static_summary=markdown_summary(name) or None,
                memo=memo,
                rpc_timeout=RPC_TIMEOUT,
            )
        except WorkflowAlreadyStartedError:
            return await self.find(workflow_id)
        except RPCError as error:
            raise cli_error(error) from None
        return self._run(workflow_id, handle.result_run_id or "")

    async def find(self, name: str) -> Run:
        """Return the latest run with this id. Raises Refused if there is none."""
        return (await self.look_up(name))[0]

    async def look_up(self, name: str) -> tuple[Run, bool]:
        """Return the latest run with this id, and whether it still goes on; needs no worker. Raises Refused."""
        try:
            found = await self.client.get_workflow_handle(checked_id(name)).describe(rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND and "namespace" not in error.message.lower():
                where = f"in namespace {self.server.namespace} at {self.server.address}"
                raise Refused(f"there is no run {name} {where}") from None
            raise cli_error(error) from None
        if found.workflow_type != WORKFLOW_TYPE:
            raise Refused(f"{name} is a workflow of type {found.workflow_type}, not a run of Sennit")
        run = self._run(name, found.run_id, joined=True)
        run.began = found.start_time.timestamp()
        run.closed = found.close_time.timestamp() if found.close_time else 0.0
        return run, found.status is WorkflowExecutionStatus.RUNNING

    def _run(self, name: str, run_id: str, *, joined: bool = False) -> Run:
        link = self.server.link(name, run_id)
        return Run(self.client, name, run_id, ui_url=link, joined=joined, stopped=self.server.stopped)
