"""Tells the run of an activity something while the activity goes on."""

from temporalio import activity

from sennit.workflows.messages.message import Message


async def signal_run(name: str, message: Message) -> None:
    """Send a signal to the run of this activity, and to none that goes on
    from it. Raises RPCError.
    """
    info = activity.info()
    run = activity.client().get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
    await run.signal(name, message)
