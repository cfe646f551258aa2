"""Runs whose models are shown images: attached to a goal, as inputs of a plan, and what is refused before anything is
spent.
"""

import base64
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from doubles import media_tools
from doubles.local_workers import Start, serving, starting
from doubles.model_bench import KEY
from doubles.pictures import MP3, PNG, SVG
from temporalio.client import Client, WorkflowFailureError

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.limits import MAX_MEDIA_BYTES
from sennit.activities.llm.models import Models
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.toolbox import load_tools
from sennit.testing.model_rules import Asked, Call, Reply
from sennit.testing.models import ModelServer, model_server

PLAN = {
    "inputs": {"photo": {"type": "object"}},
    "nodes": [{"id": "look", "kind": "llm", "prompt": "What is it?", "media": ["$input.photo"]}],
}
PROGRAM = """
async def main(photo):
    return await llm("What is it?", media=[photo])
"""


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with model_server(key=KEY, models=("first", "gpt-3.5-turbo")) as found:
        yield found


@pytest.fixture
async def run(
    request: pytest.FixtureRequest,
    client: Client,
    artifacts: Path,
    cache: Path,
    server: ModelServer,
    tmp_path: Path,
) -> AsyncIterator[Start]:
    """Serve all queues with a model, and give a way to start runs, which may read the test's folder."""
    model = getattr(request, "param", "openai:first")
    urls = {"OPENAI_BASE_URL": server.openai_url, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
    models = Models.of(ModelSettings.read({**urls, "OPENAI_API_KEY": KEY, "SENNIT_MODEL": model}))
    paths = WorkerPaths(artifacts, cache, None, (tmp_path,))
    host = Activities(
        paths, load_tools(["doubles.tools", "doubles.media_tools"]), models, identity="tests", approval="never"
    )
    async with serving(client, host), starting(client) as start:
        yield start
    await models.close()


@pytest.fixture
def photo(tmp_path: Path) -> str:
    path = tmp_path / "photo.png"
    path.write_bytes(PNG)
    return str(path)


def images(asked: Asked) -> list[bytes]:
    """Return the images of the last turn that a server was sent."""
    found = []
    content = asked.body["messages"][-1]["content"]
    for part in content if isinstance(content, list) else []:
        if part["type"] == "image_url":
            found.append(base64.b64decode(part["image_url"]["url"].partition(",")[2]))
        elif part["type"] == "image":
            found.append(base64.b64decode(part["source"]["data"]))
    return found


async def refused(run: Start, server: ModelServer, **fields: Any) -> str:
    """Return why a run is refused, which has asked no model."""
    with pytest.raises(WorkflowFailureError) as caught:
        await (await run(**fields)).result()
    assert not server.asked, "nothing is spent"
    return str(caught.value.cause)


both = pytest.mark.parametrize("run", ["openai:first", "anthropic:first"], indirect=True)


@both
async def test_what_is_attached_to_a_goal_is_shown_to_those_who_are_given_the_goal(
    run: Start, server: ModelServer, photo: str
) -> None:
    server.on("You plan work", '1. llm("Describe what $goal asks about")\n2. llm("Think of $1")\n3. answer($1, $2)')
    server.on("You do one step", "A dot.")
    server.on("You put results", "It is a dot.")
    handle = await run(goal="What is on the picture?", attachments={"file_01": photo})
    assert (await handle.result())["answer"] == "It is a dot."
    shown = {
        asked.turns[-1][1][:8] if asked.system.startswith("You do") else asked.system[:8]: images(asked)
        for asked in server.asked
    }
    assert shown == {"You plan": [], "Describe": [PNG], "Think of": [], "You put ": [PNG]}
    planner = next(asked for asked in server.asked if asked.system.startswith("You plan"))
    assert "Attached to the goal: photo.png (image)" in planner.text


@both
async def test_an_input_of_a_plan_is_a_file(run: Start, server: ModelServer, photo: str) -> None:
    server.on("What is it", "A dot.")
    handle = await run(plan=PLAN, attachments={"photo": photo})
    assert (await handle.result())["answer"] == "A dot."
    assert images(server.asked[0]) == [PNG]
    history = await handle.fetch_history()
    assert base64.b64encode(PNG).decode() not in history.to_json(), "bytes never travel through the run"


async def test_a_program_shows_a_model_its_argument(run: Start, server: ModelServer, photo: str) -> None:
    server.on("What is it", "A dot.")
    node = {"id": "main", "kind": "program", "script": PROGRAM, "arguments": {"photo": "$input.photo"}}
    plan = {"inputs": {"photo": {"type": "object"}}, "nodes": [node], "answer": "$main"}
    handle = await run(plan=plan, attachments={"photo": photo})
    assert (await handle.result())["answer"] == "A dot."
    assert images(server.asked[0]) == [PNG]


async def test_an_image_of_fifty_megabytes(run: Start, server: ModelServer, tmp_path: Path) -> None:
    big = tmp_path / "big.png"
    with big.open("wb") as file:
        file.write(PNG)
        file.truncate(50 * 1024 * 1024)
    why = await refused(run, server, plan=PLAN, attachments={"photo": str(big)})
    assert f"big.png has 52,428,800 bytes; an image, a PDF or a recording may have {MAX_MEDIA_BYTES:,}" in why


async def test_a_file_that_is_no_image(run: Start, server: ModelServer, tmp_path: Path) -> None:
    fake = tmp_path / "fake.png"
    fake.write_bytes(SVG)
    why = await refused(run, server, goal="What is it?", attachments={"file_01": str(fake)})
    assert "fake.png is no image, PDF or audio that models take; they take image/png" in why


async def test_files_that_are_not_there_or_not_allowed(run: Start, server: ModelServer, tmp_path: Path) -> None:
    why = await refused(run, server, goal="What?", attachments={"file_01": str(tmp_path / "none.png")})
    assert "none.png is not there on worker" in why
    why = await refused(run, server, goal="What?", attachments={"file_01": "/etc/passwd"})
    assert "attached file /etc/passwd is outside SENNIT_DOCS_ROOTS" in why
    link = tmp_path / "link.png"
    link.symlink_to("/etc/passwd")
    why = await refused(run, server, goal="What?", attachments={"file_01": str(link)})
    assert "is outside SENNIT_DOCS_ROOTS" in why


@pytest.mark.parametrize(
    ("run", "body", "said"),
    [
        ("openai:gpt-3.5-turbo", PNG, "attachments: openai:gpt-3.5-turbo takes no image (sound)"),
        ("anthropic:first", MP3, "attachments: anthropic:first takes no audio (sound)"),
    ],
    indirect=["run"],
)
async def test_models_that_take_none_are_named_before_the_run(
    run: Start, server: ModelServer, tmp_path: Path, body: bytes, said: str
) -> None:
    (tmp_path / "sound").write_bytes(body)
    assert said in await refused(run, server, goal="What is it?", attachments={"file_01": str(tmp_path / "sound")})


@pytest.mark.parametrize("run", ["openai:gpt-3.5-turbo"], indirect=True)
async def test_a_plan_for_such_a_model_is_refused(run: Start, server: ModelServer) -> None:
    look = {"id": "look", "kind": "llm", "prompt": "What?", "media": ["$find.image"]}
    plan = {"nodes": [{"id": "find", "kind": "tool", "tool": "echo", "args": {"text": "a"}}, look]}
    assert "openai:gpt-3.5-turbo takes no images, PDFs and audio" in await refused(run, server, plan=plan)


async def test_a_reference_to_no_media(run: Start, server: ModelServer) -> None:
    why = await refused(run, server, plan=PLAN, inputs={"photo": {"media": "image/png"}})
    assert "`$input.photo` is no image, PDF or audio; attach one with --attach photo=FILE" in why
    look = {"id": "look", "kind": "llm", "prompt": "What?", "media": ["$find"]}
    plan = {"nodes": [{"id": "find", "kind": "tool", "tool": "nap", "args": {"value": "a"}}, look]}
    report = await (await run(plan=plan, on_failure="partial")).result()
    assert "BadMedia" in str(report)
    assert not server.asked


async def test_a_made_up_reference_shows_no_output_of_the_run(run: Start, server: ModelServer) -> None:
    made_up = {"media": "image/png", "artifact": "0" * 40, "bytes": 5}
    plan = {"nodes": [{"id": "look", "kind": "llm", "prompt": "What?", "media": [made_up]}]}
    report = await (await run(plan=plan, on_failure="partial")).result()
    assert "BodyMissing" in str(report)
    assert not server.asked


@both
async def test_a_model_is_shown_what_a_tool_returns(run: Start, server: ModelServer) -> None:
    server.on("What is it", "A dot.")
    shot = {"id": "shot", "kind": "tool", "tool": "shoot", "args": {"page": "a"}}
    look = {"id": "look", "kind": "llm", "prompt": "What is it?", "media": ["$shot.images[0]", "$shot.images"]}
    handle = await run(plan={"nodes": [shot, look], "answer": {"said": "$look", "shot": "$shot"}})
    answer = (await handle.result())["answer"]
    assert answer["said"] == "A dot."
    assert images(server.asked[0]) == [PNG, PNG]
    (image,) = answer["shot"]["images"]
    assert (image["media"], image["bytes"], image["name"]) == ("image/png", len(PNG), "shot.png")
    assert "data" not in image, "the output names the artifact"


async def test_a_tool_that_returns_no_image(run: Start) -> None:
    shot = {"id": "shot", "kind": "tool", "tool": "shoot_badly", "args": {"page": "a page"}, "on_error": "skip"}
    plan = {"nodes": [shot, {"id": "after", "kind": "join", "policy": "settled", "inputs": ["shot"]}]}
    report = await (await run(plan=plan)).result()
    assert "BadMedia: what the tool returns is no image, PDF or audio" in str(report["answer"])


async def test_a_fork_has_the_images_of_the_run_that_it_forks(
    run: Start, server: ModelServer, artifacts: Path, photo: str
) -> None:
    server.on("What is it", "A dot.")
    server.on("Is it red", "No.")
    shot = {"id": "shot", "kind": "tool", "tool": "shoot", "args": {"page": "of the fork"}}
    look = {"id": "look", "kind": "llm", "prompt": "What is it?", "media": ["$shot.images"]}
    first = await run(plan={"nodes": [shot, look]})
    await first.result()
    asked = {**look, "prompt": "Is it red?"}
    second = await run(plan={"nodes": [shot, asked]}, origins=[first.result_run_id])
    assert (await second.result())["answer"] == "No."
    assert images(server.asked[-1]) == [PNG]
    assert media_tools.SHOTS.count("of the fork") == 1, "the fork has taken it over"


LOOK = {"id": "look", "kind": "llm", "prompt": "What is on the page?", "tools": ["shoot"], "max_turns": 4}


def pictures_in(body: dict[str, Any]) -> int:
    """Return how often a request has the picture."""
    return str(body).count(base64.b64encode(PNG).decode())


@both
async def test_a_tool_loop_shows_the_model_what_a_tool_returns(
    run: Start, server: ModelServer, artifacts: Path
) -> None:
    first = Reply(calls=(Call("shoot", {"page": "a"}), Call("shoot", {"page": "b"})))
    server.on("What is on the page", first, Reply(calls=(Call("shoot", {"page": "c"}),)), "Dots.")
    handle = await run(plan={"nodes": [LOOK]})
    assert (await handle.result())["answer"] == "Dots."
    assert [pictures_in(asked.body) for asked in server.asked] == [0, 2, 3]
    history = await handle.fetch_history()
    assert base64.b64encode(PNG).decode() not in history.to_json(), "bytes never travel through the run"
    kept = [path.read_bytes() for path in artifacts.rglob("*") if path.is_file()]
    assert not any(base64.b64encode(PNG) in body for body in kept), "transcripts name what they show"


async def test_made_up_references_take_no_place_of_a_file_that_is_there(run: Start, server: ModelServer) -> None:
    """Words from the web may have any number of them, and the last results are shown first."""
    made_up = [{"media": "image/png", "artifact": f"{number:040x}", "bytes": 5} for number in range(30)]
    server.on(
        "What is on the page",
        Reply(calls=(Call("shoot", {"page": "a"}),)),
        Reply(calls=(Call("nap", {"value": made_up}),)),
        "A dot.",
    )
    handle = await run(plan={"nodes": [{**LOOK, "tools": ["shoot", "nap"]}]})
    assert (await handle.result())["answer"] == "A dot."
    assert [pictures_in(asked.body) for asked in server.asked] == [0, 1, 1]


async def test_a_file_counts_as_what_it_has_and_not_as_what_its_value_says(
    run: Start, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sennit.activities.llm.tool_turns.MAX_CALL_MEDIA_BYTES", 2 * len(PNG) + 1)

    def ask_for_more(asked: Asked) -> Reply:
        """Return a call whose result names the picture of the first call three times, as if it had one byte."""
        digest = re.search(r"\b[0-9a-f]{40}\b", asked.text)
        assert digest is not None
        return Reply(calls=(Call("nap", {"value": [{"media": "image/png", "artifact": digest[0], "bytes": 1}] * 3}),))

    turns = iter((lambda _: Reply(calls=(Call("shoot", {"page": "a"}),)), ask_for_more, lambda _: Reply("A dot.")))
    server.on("What is on the page", lambda asked: next(turns)(asked))
    handle = await run(plan={"nodes": [{**LOOK, "tools": ["shoot", "nap"]}]})
    assert (await handle.result())["answer"] == "A dot."
    assert [pictures_in(asked.body) for asked in server.asked] == [0, 1, 2]
    assert "2 files that tools have returned are named to the model and not shown" in str(await handle.query("plan"))


async def test_a_model_that_reads_text_alone_is_told_of_what_a_tool_returns(run: Start, server: ModelServer) -> None:
    """Nothing of the call is refused for it: the words of the result name the image."""
    server.on("What is on the page", Reply(calls=(Call("shoot", {"page": "a"}),)), "I cannot tell.")
    handle = await run(plan={"nodes": [{**LOOK, "model": "openai:gpt-3.5-turbo"}]})
    report = await handle.result()
    assert report["answer"] == "I cannot tell."
    assert pictures_in(server.asked[-1].body) == 0
    assert "shot.png" in server.asked[-1].text
    assert "openai:gpt-3.5-turbo takes no image: what tools have returned is named to it" in str(
        await handle.query("plan")
    )


async def test_a_server_that_refuses_images_is_asked_again_without_those_of_tools(
    run: Start, server: ModelServer
) -> None:
    call = Reply(calls=(Call("shoot", {"page": "a"}),))
    refused = Reply(status=400, text="this model does not support image input")
    server.on("What is on the page", call, refused, call, "I cannot tell.")
    report = await (await run(plan={"nodes": [LOOK]})).result()
    assert report["answer"] == "I cannot tell."
    assert [pictures_in(asked.body) for asked in server.asked] == [0, 1, 0, 0], "and never again"


async def test_one_broken_image_takes_no_images_from_the_calls_after_it(run: Start, server: ModelServer) -> None:
    """Its own call is made again without those of tools: the words of the results name them."""
    call = Reply(calls=(Call("shoot", {"page": "a"}),))
    refused = Reply(
        status=400, text="You uploaded an unsupported image. Please use one of the supported image formats."
    )
    server.on("What is on the page", call, refused, call, "Dots.")
    handle = await run(plan={"nodes": [LOOK]})
    assert (await handle.result())["answer"] == "Dots."
    assert [pictures_in(asked.body) for asked in server.asked] == [0, 1, 0, 2]
    assert "named to openai:first and not shown in one call" in str(await handle.query("plan"))


async def test_what_a_model_is_said_not_to_take_is_forgotten(
    run: Start, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sennit.activities.llm.models.FORGOTTEN_AFTER", 0.0)
    call = Reply(calls=(Call("shoot", {"page": "a"}),))
    refused = Reply(status=400, text="this model does not support image input")
    server.on("What is on the page", call, refused, call, "Dots.")
    assert (await (await run(plan={"nodes": [LOOK]})).result())["answer"] == "Dots."
    assert [pictures_in(asked.body) for asked in server.asked] == [0, 1, 0, 2]
