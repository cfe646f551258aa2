"""What a worker asks of its Temporal server before it takes tasks, and again every minute."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    DescribeTaskQueueRequest,
    DescribeWorkerDeploymentRequest,
    DescribeWorkerDeploymentVersionRequest,
    GetSystemInfoRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from sennit.activities.runs.namespace import attributes_in
from sennit.workers.roles import ROLES
from sennit.workflows.run.search_attributes import KEYS

LEAST_SERVER = (1, 31)
"""The oldest Temporal server that Sennit is tested with."""

_LIMIT = timedelta(seconds=5)
_POLLED = timedelta(seconds=90)  # a poll lasts a minute; who began none for longer is gone
_LOST = frozenset(
    {RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}
)
_REFUSED = frozenset({RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED})
_STORE = " store "
_STORED_QUEUES = tuple(each.queue for each in ROLES["all"].bindings if each.kind != "workflows")


def with_store(identity: str, store: str | None) -> str:
    """Return the identity by which other workers learn which artifact store this one has."""
    return f"{identity}{_STORE}{store}" if store else identity


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """Asks the server of `client`. `address` is for messages; `store` is the id of this worker's
    artifact store, and `version` its (deployment, build) if it serves the runs of one.
    """

    client: Client
    address: str
    store: str | None
    version: tuple[str, str] | None = None

    async def lost(self) -> str | None:
        """Return a sentence if the server does not answer; a cheap question."""
        try:
            await self.client.service_client.check_health(timeout=timedelta(seconds=3))
        except RPCError as problem:
            return self._lost(problem)
        return None

    async def obstacle(self) -> str | None:
        """Return why this worker cannot serve, and what to do about it, or None."""
        try:
            return (
                await self._old_server() or await self._no_namespace() or await self._other_store()
            )
        except RPCError as problem:
            if problem.status in _REFUSED:
                remedy = "check TEMPORAL_API_KEY and the certificates of TEMPORAL_TLS_*"
                return (
                    f"Temporal at {self.address} refuses this worker: {problem.message}; {remedy}"
                )
            return self._lost(problem)  # of other errors nothing follows

    async def unlisted(self) -> str | None:
        """Return why the server gives this worker no runs although it polls: it does not list its
        build. None if it does, or if the worker serves no version.

        A server that has as many builds as it takes refuses the polls of another one, and the
        SDK repeats them quietly.
        """
        if self.version is None:
            return None
        deployment, build = self.version
        request = DescribeWorkerDeploymentVersionRequest(
            namespace=self.client.namespace,
            deployment_version=WorkerDeploymentVersion(deployment_name=deployment, build_id=build),
        )
        try:
            await self.client.workflow_service.describe_worker_deployment_version(
                request, timeout=_LIMIT
            )
        except RPCError as problem:
            if problem.status != RPCStatusCode.NOT_FOUND:
                return None
            known = await self._known_builds(deployment)
            remedy = (
                "if that is the most it takes, delete old ones with `sennit setup --prune "
                f"{deployment}`"
            )
            return (
                f"the server does not list {deployment}:{build}, and gives it no runs; it lists "
                f"{known}: {remedy}"
            )
        return None

    async def _known_builds(self, deployment: str) -> str:
        request = DescribeWorkerDeploymentRequest(
            namespace=self.client.namespace, deployment_name=deployment
        )
        try:
            there = await self.client.workflow_service.describe_worker_deployment(
                request, timeout=_LIMIT
            )
        except RPCError:
            return "no build"
        count = len(there.worker_deployment_info.version_summaries)
        return f"{count} other build{'s' * (count != 1)}"

    async def note(self) -> str:
        """Return what is missing that workers can do without; empty for nothing."""
        return "; ".join(filter(None, [await self._not_current(), await self._no_attributes()]))

    async def _not_current(self) -> str:
        if self.version is None:
            return ""
        deployment, build = self.version
        request = DescribeWorkerDeploymentRequest(
            namespace=self.client.namespace, deployment_name=deployment
        )
        try:
            there = await self.client.workflow_service.describe_worker_deployment(
                request, timeout=_LIMIT
            )
            current = (
                there.worker_deployment_info.routing_config.current_deployment_version.build_id
            )
        except RPCError as problem:
            # It is as long as no worker of it has polled.
            if problem.status != RPCStatusCode.NOT_FOUND:
                return ""
            current = ""
        if current == build:
            return ""
        remedy = f"`sennit setup --promote {deployment}:{build}` gives it new runs"
        return f"{deployment}:{build} is not current, {current or 'no version'} is: {remedy}"

    async def _no_attributes(self) -> str:
        try:
            present = await attributes_in(self.client)
        except RPCError:
            return ""
        missing = ", ".join(name for name in KEYS if name not in present)
        remedy = "until you run `sennit setup`, lists of runs cannot filter by them"
        return (
            missing
            and f"namespace {self.client.namespace!r} lacks the search attributes {missing}: "
            f"{remedy}"
        )

    def _lost(self, problem: RPCError) -> str | None:
        return f"Temporal at {self.address} does not answer" if problem.status in _LOST else None

    async def _old_server(self) -> str | None:
        info = await self.client.workflow_service.get_system_info(
            GetSystemInfoRequest(), timeout=_LIMIT
        )
        found = re.match(r"v?(\d+)\.(\d+)", info.server_version)
        if found is None or (int(found[1]), int(found[2])) >= LEAST_SERVER:
            return None
        least = ".".join(map(str, LEAST_SERVER))
        return (
            f"Temporal at {self.address} is version {info.server_version}: upgrade it to {least} "
            "or newer"
        )

    async def _no_namespace(self) -> str | None:
        name = self.client.namespace
        try:
            await self.client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=name), timeout=_LIMIT
            )
        except RPCError as problem:
            if problem.status != RPCStatusCode.NOT_FOUND:
                raise
            remedy = f"create it with `sennit setup --namespace {name}`, or set TEMPORAL_NAMESPACE"
            return f"Temporal at {self.address} has no namespace {name!r}: {remedy}"
        return None

    async def _other_store(self) -> str | None:
        for queue in _STORED_QUEUES if self.store else ():
            request = DescribeTaskQueueRequest(
                namespace=self.client.namespace,
                task_queue=TaskQueue(name=queue),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            )
            queue_now = await self.client.workflow_service.describe_task_queue(
                request, timeout=_LIMIT
            )
            for poller in queue_now.pollers:
                who, _, store = poller.identity.partition(_STORE)
                polled = poller.last_access_time.ToDatetime(UTC)
                if store not in ("", self.store) and datetime.now(UTC) - polled < _POLLED:
                    remedy = (
                        "SENNIT_ARTIFACTS of all must name one shared folder or bucket; to move "
                        "it, stop them all first"
                    )
                    return (
                        f"{who} has the artifact store {store}, this worker has {self.store}: "
                        f"{remedy}"
                    )
        return None
