"""Makes a version of the workflow workers the current one, moves the runs that wait to
it, and deletes old ones.
"""

import asyncio
import re
import uuid
from dataclasses import dataclass

from temporalio.api.batch.v1 import BatchOperationSignal
from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.enums.v1 import RoutingConfigUpdateState, WorkerDeploymentVersionStatus
from temporalio.api.workflowservice.v1 import (
    DeleteWorkerDeploymentVersionRequest,
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
    StartBatchOperationRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.errors import NoAnswer, Refused
from sennit.starter.client.runs import WORKFLOW_TYPE
from sennit.starter.client.server_errors import error_of
from sennit.workflows.messages.quota import QUOTA_TYPE

KNOWN_WITHIN = 30.0
"""Seconds that the server may take to let all its parts know which version is current."""


@dataclass(frozen=True, slots=True)
class Version:
    """A build of a worker deployment, as workers and web UI name it: `sennit:0.2.0`."""

    deployment: str
    build: str

    @classmethod
    def parse(cls, text: str) -> "Version":
        """Return the version in a text; raises Refused."""
        found = re.fullmatch(r'([^:\s"]+):([^:\s"]+)', text)
        if found is None:
            raise Refused(f"{text!r} is no version; give deployment and build, like sennit:0.2.0")
        return cls(*found.groups())

    def __str__(self) -> str:
        return f"{self.deployment}:{self.build}"


async def promote(client: Client, version: Version) -> int:
    """Make a version current, so that it gets new runs, and wake the runs that are on
    others. Returns their number.

    Each moves as soon as nothing of it runs: its workers must be there until then. Doing it again
    changes nothing and wakes the runs that are left. Raises SennitError.
    """
    try:
        if await _current(client, version.deployment) != version.build:
            await _set_current(client, version)
        await _known_everywhere(client, version)
        return await _wake(client, version)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            unknown = f"no worker of {version} has served runs in namespace {client.namespace} yet"
            raise Refused(f"{unknown}; start one, and wait until it is ready") from None
        if error.status == RPCStatusCode.FAILED_PRECONDITION:
            raise Refused(error.message) from None
        raise error_of(error) from None


async def prune(client: Client, deployment: str) -> dict[str, str]:
    """Delete the builds of a deployment that no run needs any more, as far as the server knows
    that. Returns why it has kept the others, by build, with nothing for those that are deleted.

    A server calls a build drained some minutes after its last run has ended, and deletes
    none whose workers have polled within five minutes. Doing it again deletes what is
    left. Raises SennitError.
    """
    request = DescribeWorkerDeploymentRequest(
        namespace=client.namespace, deployment_name=deployment
    )
    try:
        there = await client.workflow_service.describe_worker_deployment(request, retry=True)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise Refused(f"namespace {client.namespace} has no deployment {deployment}") from None
        raise error_of(error) from None
    kept = dict[str, str]()
    for version in there.worker_deployment_info.version_summaries:
        build = version.deployment_version.build_id
        if version.status == WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINED:
            kept[build] = await _delete(client, Version(deployment, build))
        else:
            state = WorkerDeploymentVersionStatus.Name(version.status)
            kept[build] = f"it is {state.removeprefix('WORKER_DEPLOYMENT_VERSION_STATUS_').lower()}"
    return kept


async def _delete(client: Client, version: Version) -> str:
    """Delete a version, and return why the server does not, or nothing. One that is gone
    by now is deleted, too.
    """
    request = DeleteWorkerDeploymentVersionRequest(
        namespace=client.namespace,
        deployment_version=WorkerDeploymentVersion(
            deployment_name=version.deployment, build_id=version.build
        ),
        identity=client.identity,
    )
    try:
        await client.workflow_service.delete_worker_deployment_version(request, retry=True)
    except RPCError as error:
        if error.status == RPCStatusCode.FAILED_PRECONDITION:
            return error.message
        if error.status != RPCStatusCode.NOT_FOUND:
            raise error_of(error) from None
    return ""


async def _current(client: Client, deployment: str) -> str | None:
    """Return the current build of a deployment, or None while parts of the
    server do not know it yet.
    """
    request = DescribeWorkerDeploymentRequest(
        namespace=client.namespace, deployment_name=deployment
    )
    info = (
        await client.workflow_service.describe_worker_deployment(request, retry=True)
    ).worker_deployment_info
    if (
        info.routing_config_update_state
        == RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS
    ):
        return None
    return str(info.routing_config.current_deployment_version.build_id)


async def _set_current(client: Client, version: Version) -> None:
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=client.namespace,
        deployment_name=version.deployment,
        build_id=version.build,
        identity=client.identity,
    )
    await client.workflow_service.set_worker_deployment_current_version(request, retry=True)


async def _known_everywhere(client: Client, version: Version) -> None:
    """Wait until a run that looks for another version sees this one."""
    end = asyncio.get_running_loop().time() + KNOWN_WITHIN
    while await _current(client, version.deployment) != version.build:
        if asyncio.get_running_loop().time() > end:
            raise NoAnswer(
                f"after {KNOWN_WITHIN:.0f} s the server does not know everywhere that {version} "
                "is current"
            )
        await asyncio.sleep(0.1)


async def _wake(client: Client, version: Version) -> int:
    """Have the server signal every open run that is on another version: a run that waits would not
    look by itself, and the quota of the namespace would stay for months.
    """
    query = (
        f'`WorkflowType` IN ("{WORKFLOW_TYPE}", "{QUOTA_TYPE}") AND `ExecutionStatus`="Running" '
        f'AND `TemporalWorkerDeploymentVersion`!="{version}"'
    )
    found = (await client.count_workflows(query)).count
    if found:
        request = StartBatchOperationRequest(
            namespace=client.namespace,
            visibility_query=query,
            job_id=f"sennit-upgrade-{uuid.uuid4()}",
            reason=f"{version} is current",
            signal_operation=BatchOperationSignal(signal="upgrade", identity=client.identity),
        )
        await client.workflow_service.start_batch_operation(request, retry=True)
    return found
