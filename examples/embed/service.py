"""A web service around Sennit: start a run, follow its events, approve what it writes, fetch its answer.

pip install fastapi uvicorn
TEMPORAL_ADDRESS=127.0.0.1:7233 uvicorn service:app
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Header, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, JsonValue

from sennit import (
    NotAllowed,
    Refused,
    RunEvent,
    RunIsOver,
    RunNotFound,
    RunReport,
    Sennit,
    SennitError,
    ServerUnreachable,
)

CODES = {RunNotFound: 404, NotAllowed: 409, RunIsOver: 410, Refused: 422, ServerUnreachable: 503}
"""The status of each error; the first class that fits counts."""


class Job(BaseModel):
    plan: dict[str, JsonValue]
    inputs: dict[str, JsonValue] = {}


class Approval(BaseModel):
    digest: str


class Started(BaseModel):
    id: str


@asynccontextmanager
async def connected(app: FastAPI) -> AsyncIterator[None]:
    app.state.sennit = await Sennit.connect()
    yield


app = FastAPI(lifespan=connected)


def sennit_of(request: Request) -> Sennit:
    found = request.app.state.sennit
    assert isinstance(found, Sennit)
    return found


@app.exception_handler(SennitError)
async def refuse(_: Request, error: Exception) -> JSONResponse:
    code = next((code for kind, code in CODES.items() if isinstance(error, kind)), 500)
    return JSONResponse({"problem": str(error)}, code)


@app.post("/runs/{id}", status_code=202)
async def start(request: Request, id: str, job: Job) -> Started:  # noqa: A002
    """Start a run. A client that sends this twice has started it once."""
    run = await sennit_of(request).start(id=id, plan=job.plan, inputs=job.inputs, title=id)
    return Started(id=run.id)


def sent(event: RunEvent, position: int) -> str:
    """Write an event as a browser reads it. Its id is where it goes on: after an event, and a position in the texts."""
    body = event.model_dump_json(exclude_defaults=True)
    return f"id: {event.number}.{position}\nevent: {event.kind}\ndata: {body}\n\n"


@app.get("/runs/{id}/events")
async def events(request: Request, id: str, last_event_id: str = Header("0")) -> Response:  # noqa: A002
    """Send events as they come, and what models write while they write. A browser that connects again names the last
    one that it has had. It would connect again for ever; 204 says that the run is over and nothing follows.
    """
    number, _, place = last_event_id.partition(".")
    if not (number.isdecimal() and (place or "0").isdecimal()):
        return JSONResponse({"problem": "Last-Event-ID is none of this run's"}, 422)
    run, goes_on = await sennit_of(request).look_up(id)
    found = run.events(after=int(number), position=int(place or 0))
    first = None if goes_on else await anext(found, None)
    if first is None and not goes_on:
        return Response(status_code=204)

    async def lines() -> AsyncIterator[str]:
        position = int(place or 0)
        if first is not None:
            yield sent(first, position)
        async for event in found:
            position = event.position or position
            yield sent(event, position)

    return StreamingResponse(lines(), media_type="text/event-stream")


@app.post("/runs/{id}/approvals/{node}")
async def approve(request: Request, id: str, node: str, approval: Approval) -> str:  # noqa: A002
    """Let a write run: the one whose digest the event `asked` has shown, and no other."""
    run = await sennit_of(request).find(id)
    return await run.approve(node, digest=approval.digest)


@app.get("/runs/{id}/output")
async def output(request: Request, id: str) -> RunReport:  # noqa: A002
    """Wait for the end of a run and return its report with the answer."""
    run = await sennit_of(request).find(id)
    return await run.result()
