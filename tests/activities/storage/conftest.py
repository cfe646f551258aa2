"""Stores to test: in a folder, and in a bucket of a server that can be made to fail."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from doubles.s3_server import BUCKET, KEY, SECRET, S3Proxy, s3_server


@pytest.fixture(scope="session")
def server() -> Iterator[S3Proxy]:
    """An S3 server behind a proxy."""
    with s3_server() as proxy:
        yield proxy


@pytest.fixture
def s3(server: S3Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Proxy]:
    """The same with the variables that lead to it; what a test does to its requests ends with the test."""
    for name, value in {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    untouched = server.fault
    yield server
    server.fault = untouched
    server.requests.clear()


@pytest.fixture
def url(s3: S3Proxy) -> str:
    """A place in the bucket that nobody has used."""
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture(params=["folder", "bucket"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """A place for each kind of store."""
    return tmp_path / "store" if request.param == "folder" else str(request.getfixturevalue("url"))
