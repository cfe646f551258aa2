"""A bucket behind a network that delays, fails and loses answers, and behind settings that are wrong."""

import asyncio
import random
import re
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import obstore
import pytest
from doubles.local_workers import Start
from doubles.runs import call
from doubles.s3_server import BUCKET, KEY, SECRET, Fault, S3Proxy, refusal
from doubles.tools import calls
from obstore.store import S3Store as Bucket

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.storage import s3 as s3_store
from sennit.activities.storage.artifacts import StoreUnavailable
from sennit.activities.storage.learned import LearnedStore
from sennit.activities.storage.s3 import S3Store
from sennit.activities.toolbox import load_tools
from sennit.workflows.plan.learning.trajectory import NotedCall, Trajectory

RUN = "default/run"


@pytest.fixture
def host(cache: Path, url: str) -> Activities:
    """The activities of a worker with a bucket."""
    opened(url)
    places = WorkerPaths(url, cache, None, ())
    return Activities(places, load_tools(["doubles.tools"]), identity="tests", approval="never")


def opened(url: str, seconds: float = 60.0) -> S3Store:
    """Create a store at a place, and return it."""
    store = S3Store(url, seconds)
    assert store.create()
    return store


def unreliable(proxy: S3Proxy) -> Fault:
    """Return what does something to every seventh request on the average."""
    chance, proxy.late = random.Random(7), 0.2
    return lambda _: chance.choice([*[None] * 18, "late", "lose", refusal(503, "SlowDown")])


def first(kind: str, fault: str | bytes) -> Fault:
    """Return what does that to the first request of a kind."""
    left = [fault]

    def choose(request: BaseHTTPRequestHandler) -> str | bytes | None:
        return left.pop() if left and request.command == kind else None

    return choose


@pytest.mark.parametrize("fault", ["lose", "late", refusal(500, "InternalError"), refusal(409, "ConditionalConflict")])
async def test_who_marks_first_is_told_so_also_if_the_first_answer_is_lost(
    s3: S3Proxy, url: str, fault: str | bytes
) -> None:
    store, s3.late = opened(url, seconds=6.0 if fault == "late" else 60.0), 2.5
    s3.fault = first("PUT", fault)
    assert await store.mark(RUN, "k", b"mine") == b"mine"
    s3.fault = first("PUT", fault)
    assert await store.mark(RUN, "k", b"other") == b"mine"
    assert await store.marked(RUN, "k") == b"mine"


async def test_a_body_damaged_on_its_way_is_read_again(s3: S3Proxy, url: str) -> None:
    store = opened(url)
    digest = await store.put(RUN, b"body")
    damaged = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nETag: x\r\n\r\nb0dy"
    )
    s3.fault = first("GET", damaged)
    assert await store.get(RUN, digest) == b"body"


async def test_nothing_is_lost_on_a_network_that_fails_often(s3: S3Proxy, url: str) -> None:
    store = opened(url)
    s3.fault = unreliable(s3)

    async def work(number: int) -> bytes:
        body = str(number).encode()
        digest = await store.put(RUN, body)
        assert await store.has(RUN, digest)
        assert await store.get(RUN, digest) == body
        first, second = await asyncio.gather(*(store.mark(RUN, f"k{number}", body + who) for who in (b"a", b"b")))
        assert first == second == await store.marked(RUN, f"k{number}")
        await store.unmark(RUN, f"k{number}")
        assert await store.marked(RUN, f"k{number}") is None
        return first[:-1]

    assert await asyncio.gather(*map(work, range(20))) == [str(number).encode() for number in range(20)]


async def test_a_list_that_is_late_does_no_harm(s3: S3Proxy, url: str) -> None:
    store, marker = opened(url), "done/k"
    names = [await store.put(RUN, str(number).encode()) for number in range(20)]
    await store.mark(RUN, "k", b"marker")
    first = [each.name async for each in store.list_objects("default")]
    assert sorted(first) == sorted([*names, marker])
    s3.fault = lambda request: "repeat" if request.command == "GET" and "list-type" in request.path else None
    await store.delete(RUN, names)
    assert [each.name async for each in store.list_objects("default")] == first
    await store.delete(RUN, first)
    s3.fault = unreliable(s3)
    assert [each async for each in store.list_objects("default")] == []


async def test_a_run_whose_bucket_fails_often_does_everything_once_and_tells_no_secret(
    s3: S3Proxy, url: str, start: Start, cache: Path
) -> None:
    s3.fault = unreliable(s3)
    item = {"kind": "tool", "tool": "nap", "args": {"value": "$item.n"}}
    nodes = [
        call("list", "count", args={"count": 8}),
        {"id": "all", "kind": "map", "over": "$list.items", "do": item},
        call("written", "note", args={"text": "done"}, needs=["all"]),
    ]
    run = await start(plan={"nodes": nodes, "answer": {"all": "$all", "written": "$written"}}, approval="never")
    report = await run.result()
    assert report["status"] == "done", report
    assert report["answer"] == {"all": [{"value": n} for n in range(8)], "written": {"value": 4}}
    made = calls(cache, run.first_execution_run_id or "")
    assert sorted(made) == [*(f"all[{n}]~1" for n in range(8)), "written~1"]
    assert len([each for each in s3.requests if each.startswith("PUT")]) > 12
    history = (await run.fetch_history()).to_json()
    assert (SECRET in history, KEY in history) == (False, False)


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        (refusal(404, "NoSuchBucket"), "there is no such bucket; create it, or correct SENNIT_ARTIFACTS"),
        (refusal(403, "AccessDenied"), "needs s3:GetObject, PutObject"),
        (refusal(403, "InvalidAccessKeyId"), "refuses the key"),
        (refusal(403, "SignatureDoesNotMatch"), "refuses the key"),
        (refusal(400, "ExpiredToken"), "refuses the key"),
        (refusal(301, "PermanentRedirect"), "set AWS_REGION"),
        (refusal(400, "AuthorizationHeaderMalformed"), "set AWS_REGION"),
        (refusal(503, "SlowDown"), "takes no more requests"),
        (refusal(500, "InternalError"), "it answered 500"),
        (refusal(418, "Teapot"), "it answered 418"),
        ("late", "(does not answer in time|no answer within)"),
        ("lose", "the connection was cut off"),
    ],
)
async def test_what_the_server_refuses_is_one_line_that_says_what_to_do(
    s3: S3Proxy, url: str, fault: str | bytes, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has as long as it takes; only who is late is not waited for."""

    def impatient(*args: Any, retry_config: Any, **options: Any) -> Bucket:
        return Bucket(*args, retry_config=retry_config | {"max_retries": 1}, **options)

    monkeypatch.setattr(s3_store, "Bucket", impatient)
    store, s3.late = opened(url, seconds=3.0 if fault == "late" else 60.0), 1.5
    s3.fault = lambda request: fault
    calls = (store.put(RUN, b"body"), store.mark(RUN, "k", b"body"), store.get(RUN, "0" * 40))
    for error in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(error, StoreUnavailable)
        assert re.fullmatch(f"artifact store {url}: .*{remedy}.*", str(error))
        assert not [word for word in (KEY, SECRET) if word in str(error)]
        assert (error.__cause__, error.__suppress_context__) == (None, True)


@pytest.mark.parametrize(
    ("env", "remedy"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "cannot be reached; check AWS_ENDPOINT_URL"),
        ({"AWS_ENDPOINT_URL": "127.0.0.1:9"}, "AWS_ENDPOINT_URL is no URL; give one like https://HOST:PORT"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "no credentials were found; set AWS_ACCESS_KEY_ID"),
    ],
)
async def test_wrong_variables_are_named_when_the_store_is_asked(
    s3: S3Proxy, url: str, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], remedy: str
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    with pytest.raises(StoreUnavailable, match=remedy):
        await S3Store(url, seconds=0.6).identify()


async def test_no_store_is_created_where_there_is_no_bucket_or_no_markers_are_kept(s3: S3Proxy, url: str) -> None:
    with pytest.raises(StoreUnavailable, match="there is no such bucket"):
        S3Store("s3://another-bucket").create()
    s3.fault = lambda request: "forget"
    with pytest.raises(StoreUnavailable, match=f"{BUCKET}/.*: it ignores If-None-Match"):
        S3Store(url).create()
    with pytest.raises(StoreUnavailable, match=r"there is no \.store-id"):
        await S3Store(url).identify()


async def test_what_is_missing_at_the_same_time_is_believed_by_few_requests(s3: S3Proxy, url: str) -> None:
    store = opened(url)
    s3.requests.clear()
    assert await asyncio.gather(*(store.marked(RUN, f"k{number}") for number in range(40))) == [None] * 40
    asked = [each for each in s3.requests if each.endswith("/.store-id")]
    assert (len(asked) < 20, len(s3.requests) - len(asked)) == (True, 40)
    s3.requests.clear()
    await store.mark(RUN, "k", b"body")
    assert await store.marked(RUN, "k") == b"body"
    await store.put(RUN, b"body")
    assert [each.partition(" ")[0] for each in s3.requests] == ["PUT", "GET", "GET", "PUT"]


async def test_an_id_that_was_asked_for_before_a_look_says_nothing_about_it(s3: S3Proxy, url: str) -> None:
    """The bucket goes away while a request for the id is on its way back."""
    store, s3.late = opened(url), 0.5
    await store.identify()
    s3.fault = first("GET", "late")
    early = asyncio.create_task(store.identify())
    await asyncio.sleep(0.2)
    obstore.delete(Bucket(BUCKET, prefix=url.rpartition("/")[2], client_options={"allow_http": True}), ".store-id")
    with pytest.raises(StoreUnavailable, match=r"there is no \.store-id"):
        await store.marked(RUN, "k")
    await asyncio.gather(early, return_exceptions=True)


async def test_what_runs_teach_lies_in_a_bucket_as_in_a_folder(url: str) -> None:
    known = LearnedStore(opened(url))
    calls = (NotedCall(name="search", kind="tool", began=0, millis=5),)
    for name in ("r1", "r2"):
        await known.note("ns", "acme", Trajectory(run=name, status="done", ended=1, calls=calls), b"{}")
    before = await known.read("ns", "acme")
    assert (before.fresh, before.with_values, before.table.tools["search"].calls) == (2, 2, 2)
    assert (await known.compact("ns")).runs == 2
    after = await LearnedStore(S3Store(url)).read("ns", "acme")
    assert (after.fresh, after.table.tools) == (0, before.table.tools)
    assert [body async for body in known.conversations("ns", "acme")] == [b"{}", b"{}"]
    assert await known.forget("ns", "acme") == 3
    assert (await known.read("ns", "acme")).table.runs == 0
