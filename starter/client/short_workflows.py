"""Short workflows by which a client has a worker read what the client does not reach itself."""

import secrets
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar

from pydantic import BaseModel
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError

from sennit.starter.client.activity_details import why_silent
from sennit.starter.client.errors import NoAnswer
from sennit.starter.client.server_errors import error_of
from sennit.workflows.messages.queues import WORKFLOW

T = TypeVar("T", bound=BaseModel)


async def ask_worker(
    client: Client,
    kind: str,
    call: BaseModel,
    gives: type[T],
    *,
    name: str,
    limit: timedelta,
    task: str,
) -> T:
    """Return what a workflow of this type gives. It is deleted then, since its
    history has what it has read.

    Its id begins with `name`, which no run has. Raises NoAnswer, which says that no worker could do
    the `task`, or what `error_of` gives.
    """
    workflow_id = f"{name}-{secrets.token_hex(4)}"
    try:
        reader = await client.start_workflow(
            kind,
            call,
            id=workflow_id,
            task_queue=WORKFLOW,
            result_type=gives,
            execution_timeout=limit,
        )
        try:
            found: T = await reader.result()
            return found
        finally:
            # Some may start workflows and not delete them: retention does it.
            with suppress(RPCError):
                await _delete(client, workflow_id, reader.result_run_id or "")
    except WorkflowFailureError as failure:
        why = await why_silent(client, workflow_id)
        cause = getattr(failure.cause, "cause", None) or failure.cause
        raise NoAnswer(why or f"no worker of the role `tools` could {task}: {cause}") from None
    except RPCError as error:
        raise error_of(error) from None


async def _delete(client: Client, name: str, run_id: str) -> None:
    execution = WorkflowExecution(workflow_id=name, run_id=run_id)
    request = DeleteWorkflowExecutionRequest(
        namespace=client.namespace, workflow_execution=execution
    )
    await client.workflow_service.delete_workflow_execution(request)
