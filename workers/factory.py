"""Builds the Temporal worker of one seat."""

import importlib.metadata
from datetime import timedelta

from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import PollerBehaviorAutoscaling, PollerBehaviorSimpleMaximum, Worker, WorkerDeploymentConfig

from workers.roles import QueueBinding
from workers.settings import WorkerSettings
from workers.wiring import Work
from workers.workflow_sandbox import runner_for

_BEAT = timedelta(seconds=1)  # a cancellation reaches an activity only with a heartbeat


def build_worker(client: Client, seat: QueueBinding, work: Work, settings: WorkerSettings) -> Worker:
    """Return a worker, not yet running, that serves `work` on the seat's queue."""
    runs = seat.serves == "runs"
    activities = () if seat.serves == "runs" else work.activities(seat.serves)
    return Worker(
        client,
        task_queue=seat.queue,
        workflows=work.runs if runs else (),
        activities=activities,
        workflow_runner=runner_for(settings.sandboxed),
        max_cached_workflows=settings.cached_workflows,
        max_concurrent_workflow_tasks=seat.slots if runs else None,
        max_concurrent_activities=None if runs else settings.slots or seat.slots,
        workflow_task_poller_behavior=PollerBehaviorSimpleMaximum(5),
        activity_task_poller_behavior=PollerBehaviorAutoscaling(minimum=5, initial=5, maximum=20),
        max_heartbeat_throttle_interval=_BEAT,
        default_heartbeat_throttle_interval=_BEAT,
        graceful_shutdown_timeout=timedelta(seconds=settings.drain),
        deployment_config=_deployment(settings),
    )


def build_of(settings: WorkerSettings) -> str:
    """Return the build a worker says it is: the deployment's, else the installed version of Sennit."""
    return settings.build_id or importlib.metadata.version("sennit")


def _deployment(settings: WorkerSettings) -> WorkerDeploymentConfig:
    """Versioned only as a named deployment. Runs then move to the current build at their next task, which patches
    make safe: pinned ones would keep an old build alive for as long as a person lets a gate wait."""
    versioned = settings.deployment is not None
    behaviour = VersioningBehavior.AUTO_UPGRADE if versioned else VersioningBehavior.UNSPECIFIED
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(settings.deployment or "sennit", build_of(settings)),
        use_worker_versioning=versioned,
        default_versioning_behavior=behaviour,
    )
