"""Sennit for programs: start runs, find them again, wait for them. The `sennit`
command uses nothing else.
"""

import shlex
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar, Unpack, overload

from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.connection import (
    TemporalServer,
    configured_server,
    connect_client,
    server_of,
    speaking_sennit,
)
from sennit.starter.client.dry_run import dry_run
from sennit.starter.client.errors import InvalidRequest, NotAllowed, RunNotFound, ServerUnreachable
from sennit.starter.client.local import allow, join_local_stack, open_folder
from sennit.starter.client.origin import Origin, read_origin
from sennit.starter.client.request import (
    ForkOptions,
    RunOptions,
    StartOptions,
    attached_files,
    build_request,
    check_same,
    checked_id,
    checked_new_id,
    current_trace,
    docs_folder,
    markdown_summary,
    new_id,
    script_of,
    summary,
    with_memo,
    with_modules,
)
from sennit.starter.client.run import Run
from sennit.starter.client.runs import CALLER, WORKFLOW_TYPE, RunSummary, read_runs
from sennit.starter.client.server_errors import error_of
from sennit.starter.dev.messages import Say, to_stderr
from sennit.starter.dev.stack import Renew
from sennit.workflows.messages.dry_run import DryRunCall, DryRunReport
from sennit.workflows.messages.queues import WORKFLOW
from sennit.workflows.messages.result import RunReport, RunStatus
from sennit.workflows.messages.write_grants import Permission
from sennit.workflows.plan.programs.program_plan import program_plan, title_of

RPC_TIMEOUT = timedelta(seconds=30)
T = TypeVar("T")


class Sennit:
    """A connection to one Temporal server and namespace. None of its calls starts or
    stops a server but `local`.

    `client` may be any client of Temporal: its connection, codec and interceptors are used, and
    payloads are written as Sennit's workers read them. `server` is known to those who connect
    by `connect` or `local`.
    """

    def __init__(self, client: Client, server: TemporalServer | None = None) -> None:
        self.client = speaking_sennit(client)
        self.server = server or server_of(client)

    @classmethod
    async def connect(cls, address: str | None = None, *, namespace: str | None = None) -> "Sennit":
        """Connect as the `temporal` command would: to `address`, or as TEMPORAL_*
        variables or the profile say.

        Raises ServerUnreachable, also if nothing names a server; Refused if the settings are wrong.
        """
        server = configured_server(address, namespace)
        if server is None:
            raise ServerUnreachable(
                "nothing names a Temporal server; set TEMPORAL_ADDRESS, or use Sennit.local()"
            )
        return cls(await connect_client(server), server)

    @classmethod
    async def local(
        cls, *, namespace: str | None = None, say: Say = to_stderr, renew: Renew = "always"
    ) -> "Sennit":
        """Connect to the local stack of this user, which is started in the background if it does
        not run. One that runs with other code or settings is restarted once it is idle; with
        `renew="code"` only if code differs, as before a retry, and with `"never"` not at all. `say`
        gets a line about what is done.

        Raises ServerUnreachable if it does not start, or Refused if its workers refuse a setting.
        """
        server = await join_local_stack(namespace, say, renew)
        return cls(await connect_client(server), server)

    @overload
    async def start(
        self, *, result: None = None, **options: Unpack[StartOptions]
    ) -> Run[RunReport]: ...

    @overload
    async def start(self, *, result: type[T], **options: Unpack[StartOptions]) -> Run[T]: ...

    async def start(
        self, *, result: type[Any] | None = None, **options: Unpack[StartOptions]
    ) -> Run[Any]:
        """Start a run of `goal`, of `plan` (plain JSON data) or of `program` (the text of a script,
        or its Path), and return it.

        `inputs` are those that a plan declares, or the arguments of a program's `main`.
        `title` names a run without a goal. `attachments` are shown to models that are given
        the goal, or are inputs of the plan. `result` is the type of the answer, such as a
        pydantic model: see `Run.result`.

        With `id` at most one run is started, however often this is called: a run of that id
        that goes on is joined, and one that is over is returned as it ended, unless `again`
        starts a new one. Raises InvalidRequest for a request that the run would refuse by its
        form, and if the run of that id was started by another request; another SennitError if
        the server does not take it.
        """
        # What the request does not take as it was given; all other options are fields of it.
        goal = options.pop("goal", "")
        plan = options.pop("plan", None)
        title = options.pop("title", "")
        program = options.pop("program", "")
        docs = options.pop("docs", None)
        attachments = options.pop("attachments", None) or {}
        chosen_id = options.pop("id", None)
        again = options.pop("again", False)
        caller = options.pop("caller", "")

        # Paths become absolute ones before the plan is built: files are inputs of it.
        folder = None
        if docs:
            folder = docs_folder(docs, must_exist=self.server.is_local)
        files = attached_files(attachments, must_exist=self.server.is_local)
        if program:
            script = script_of(program)
            inputs = options.get("inputs") or {}
            plan = program_plan(script, {**inputs, **files})
            title = title or title_of(script)
        elif plan is not None:
            plan = with_modules(plan)
        request = build_request(goal=goal, plan=plan, docs=folder, attachments=files, **options)

        name = goal or _goal_of(plan) or title
        workflow_id = chosen_id
        if workflow_id is None:
            workflow_id = new_id(name)
        return await self._begin(
            request,
            workflow_id,
            name,
            title,
            plan,
            request,
            again=again,
            result=result,
            caller=caller,
        )

    async def fork(
        self,
        origin: Origin,
        *,
        docs: str | None = None,
        id: str | None = None,  # noqa: A002  # the name it has as `--id`
        again: bool = False,
        title: str = "",
        repeat_writes: bool = False,
        **options: Unpack[RunOptions],
    ) -> Run[RunReport]:
        """Start a run that does again what a run did that is over, and return it: what it calls as
        that did is taken over, and not called.

        `origin` comes from `origin`, and may have another script; `Run.fork` does both. What is
        None is as it was in that run. But on the local stack its folder is not opened again, and
        its writes need approval unless `approval` is given: anybody may have written its input. A
        write that the run may have made with another text asks a person, whatever `approval` is,
        unless `repeat_writes` is True. For `id`, `again` and what is raised see `start`.
        """
        request, chosen = self._forking(origin, docs, options, repeat_writes=repeat_writes)
        title = title or request.get("title") or ""
        goal = str(request.get("goal") or "") or _goal_of(origin.plan)
        name = goal or title or origin.name
        return await self._begin(
            request, id or origin.fork_id, name, title, origin.plan, chosen, again=again
        )

    async def dry_run(
        self,
        origin: Origin,
        *,
        docs: str | None = None,
        repeat_writes: bool = False,
        **options: Unpack[RunOptions],
    ) -> DryRunReport:
        """Return what a `fork` of a run with these options would do, as far as the recorded ends of
        its calls reach: what is taken over, what is made again, and what is new. Nothing is
        started, called or claimed.

        Raises InvalidRequest for a request that the fork would refuse by its form, NoAnswer if no
        worker plays it, or another SennitError.
        """
        request, chosen = self._forking(origin, docs, options, repeat_writes=repeat_writes)
        if chosen.get("docs"):
            open_folder(self.server, chosen["docs"])
        call = DryRunCall(
            workflow=origin.name, request=request, is_granted=chosen.get("approval") == "never"
        )
        return await dry_run(self.client, call)

    def _forking(
        self, origin: Origin, docs: str | None, options: RunOptions, *, repeat_writes: bool
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the request of a fork, and what of it its user has chosen for it."""
        chosen = {name: value for name, value in options.items() if value is not None}
        if docs:
            chosen["docs"] = docs_folder(docs, must_exist=self.server.is_local)
        fields = {**origin.request, **chosen}
        fields["inputs"] = {**origin.inputs, **(options.get("inputs") or {})}
        fields["origins"] = list(origin.homes)
        if repeat_writes:
            fields["repeat_writes"] = True
        return build_request(plan=origin.plan, **fields), chosen

    async def origin(self, name: str) -> Origin:
        """Return the run with this id as a fork of it begins. Raises NotAllowed if it goes on,
        Refused if it cannot be forked.
        """
        _, goes_on = await self.look_up(name)
        if goes_on:
            way = shlex.join(["sennit", "edit", name])
            raise NotAllowed(f"{name} still runs; change its program with: {way} FILE.py")
        return await read_origin(self.client, name)

    async def _begin(
        self,
        request: dict[str, Any],
        workflow_id: str,
        name: str,
        title: str,
        plan: dict[str, Any] | None,
        chosen: Mapping[str, Any],
        *,
        again: bool,
        result: type[Any] | None = None,
        caller: str = "",
    ) -> Run[Any]:
        """Start the run. Its user allows it what they have `chosen` themselves: to read a
        folder or a file, to write without asking, and to run its programs where the
        kernel cannot confine them.
        """
        checked_new_id(workflow_id)

        # The workers of the local stack read and write only what its user has opened for them.
        if chosen.get("docs"):
            open_folder(self.server, chosen["docs"])
        for file in chosen.get("attachments", {}).values():
            open_folder(self.server, file)
        secret = self._grant(workflow_id, chosen)
        if secret:
            request = {**request, "grant": secret}

        request, memo = with_memo(request, summary(title or name), plan)
        trace = current_trace()
        if trace:
            memo["traceparent"] = trace
        if caller:
            memo[CALLER] = caller

        # The server decides whether the id is free, so two starters cannot both win.
        reuse = WorkflowIDReusePolicy.REJECT_DUPLICATE
        if again:
            reuse = WorkflowIDReusePolicy.ALLOW_DUPLICATE
        try:
            handle = await self.client.start_workflow(
                WORKFLOW_TYPE,
                request,
                id=workflow_id,
                task_queue=WORKFLOW,
                id_reuse_policy=reuse,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                # What a run starts inherits it.
                priority=Priority(fairness_key=request.get("tenant")),
                static_summary=markdown_summary(name) or None,
                memo=memo,
                rpc_timeout=RPC_TIMEOUT,
            )
        except WorkflowAlreadyStartedError:
            run, found = await self._described(workflow_id, result=result)
            known = await found.memo()
            if caller and known.get(CALLER) != caller:
                raise InvalidRequest(f"the id {workflow_id} is taken; choose another one") from None
            check_same(workflow_id, memo["title"], request, known)
            return run
        except RPCError as error:
            raise error_of(error) from None
        return self._run(workflow_id, handle.result_run_id or "", result=result)

    def _grant(self, workflow_id: str, chosen: Mapping[str, Any]) -> str:
        """Return the secret of what the user of a local stack allows this run,
        "" if that is nothing.
        """
        permissions: list[Permission] = []
        if chosen.get("approval") == "never":
            permissions.append("writes")
        if chosen.get("trust_program"):
            permissions.append("programs")
        if not permissions:
            return ""
        return allow(self.server, workflow_id, *permissions)

    @overload
    async def find(self, name: str, *, result: None = None) -> Run[RunReport]: ...

    @overload
    async def find(self, name: str, *, result: type[T]) -> Run[T]: ...

    async def find(self, name: str, *, result: type[Any] | None = None) -> Run[Any]:
        """Return the latest run with this id. Raises RunNotFound if there is none."""
        return (await self.look_up(name, result=result))[0]

    async def runs(
        self,
        *,
        status: RunStatus | None = None,
        tenant: str | None = None,
        since: datetime | None = None,
        failed: bool = False,
        on_more: Callable[[], None] = lambda: None,
    ) -> list[RunSummary]:
        """Return the runs that fit, the newest first: the latest of each id, without sub-agents.

        `since` is when they began at the earliest; `failed` means that the run or a node of
        it failed. At most 5,000 are read; if there are more, `on_more` is called, and some of
        the newest may be missing. The list lags behind by what the server's visibility store
        does, usually less than a second. Raises Refused if the namespace lacks the search
        attributes that a filter needs.
        """
        return await read_runs(
            self.client, status=status, tenant=tenant, since=since, failed=failed, on_more=on_more
        )

    async def look_up(
        self, name: str, *, result: type[Any] | None = None, caller: str | None = None
    ) -> tuple[Run[Any], bool]:
        """Return the latest run with this id, and whether it still goes on; needs no
        worker. Raises RunNotFound: with `caller` also if that run was not started for this
        caller, in the same words.
        """
        run, found = await self._described(name, result=result)
        if caller is not None and (await found.memo()).get(CALLER) != caller:
            raise self._not_found(name)
        return run, found.status is WorkflowExecutionStatus.RUNNING

    async def _described(
        self, name: str, *, result: type[Any] | None
    ) -> tuple[Run[Any], WorkflowExecutionDescription]:
        """Return the latest run with this id, and what the server knows of
        it. Raises RunNotFound.
        """
        try:
            found = await self.client.get_workflow_handle(checked_id(name)).describe(
                rpc_timeout=RPC_TIMEOUT
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND and "namespace" not in error.message.lower():
                raise self._not_found(name) from None
            raise error_of(error) from None
        if found.workflow_type != WORKFLOW_TYPE:
            raise RunNotFound(
                f"{name} is a workflow of type {found.workflow_type}, not a run of Sennit"
            )
        run = self._run(name, found.run_id, joined=True, result=result)
        run.began = found.start_time.timestamp()
        run.closed = 0.0
        if found.close_time:
            run.closed = found.close_time.timestamp()
        return run, found

    def _not_found(self, name: str) -> RunNotFound:
        return RunNotFound(
            f"there is no run {name} in namespace {self.server.namespace} at {self.server.address}"
        )

    def _run(
        self, name: str, run_id: str, *, joined: bool = False, result: type[Any] | None
    ) -> Run[Any]:
        link = self.server.link(name, run_id)
        stopped = self.server.stopped
        return Run(
            self.client,
            name,
            run_id,
            self._fork,
            ui_url=link,
            joined=joined,
            stopped=stopped,
            result=result,
        )

    async def _fork(
        self, name: str, script: str, node: str, options: ForkOptions
    ) -> Run[RunReport]:
        origin = await self.origin(name)
        if script:
            script = script_of(script)
            origin = origin.with_script(script, node, options.get("inputs"))
        options.setdefault("title", title_of(script))
        return await self.fork(origin, **options)


def _goal_of(plan: Mapping[str, Any] | None) -> str:
    """Return the goal that a plan names, "" without one."""
    if plan is None:
        return ""
    return str(plan.get("goal") or "")
