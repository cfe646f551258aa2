"""What the user of a local stack allows runs."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sennit.activities.storage.grants import Chain, Grants
from sennit.starter.dev import grants as file
from sennit.starter.dev.grants import GrantFile
from sennit.workflows.messages.write_grants import Permission, WriteGrant


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "grants.json"


def test_the_folders_that_a_client_opens_are_those_that_a_worker_knows(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "MAX_GRANTED_FOLDERS", 2)
    assert Grants(path).docs == ()
    for folder in ("/a", "/b", "/a", "/c"):
        GrantFile(path).open_folder(folder)
    assert Grants(path).docs == (Path("/a"), Path("/c"))


def test_the_first_run_that_shows_a_secret_has_it_and_no_other(path: Path) -> None:
    secret = GrantFile(path).allow("w", "writes")
    assert secret not in path.read_text()
    first, second = Chain("w", "run-1"), Chain("w", "run-2")
    grants = Grants(path)
    assert not grants.may_write(Chain("other", "run-0"), secret), "it was made for another id"
    assert not grants.may_write(first, "guess")
    assert not grants.may_write(first), "it has not shown it yet"
    assert grants.may_write(first, secret)
    assert grants.may_write(first, secret), "its activity is made again"
    assert grants.may_write(first), "a sub-agent has no secret"
    assert not grants.may_write(second, secret)
    assert not grants.may_write(Chain("other", "run-1"))
    again = GrantFile(path).allow("w", "writes")
    assert (grants.may_write(second, again), grants.may_write(first)) == (True, True)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_secret_opens_what_it_was_made_for(path: Path) -> None:
    grants = Grants(path)
    for place, (trusts, writes) in enumerate(((True, False), (False, True), (True, True))):
        permissions: list[Permission] = []
        if trusts:
            permissions.append("programs")
        if writes:
            permissions.append("writes")
        secret, run = GrantFile(path).allow("w", *permissions), Chain("w", f"run-{place}")
        assert (grants.may_trust(run, secret), grants.may_write(run, secret)) == (trusts, writes)
        assert not grants.may_trust(Chain("w", "another"), secret)


def test_of_many_at_once_one_has_it(path: Path) -> None:
    secret = GrantFile(path).allow("w", "writes")
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda number: Grants(path).may_write(Chain("w", f"run-{number}"), secret), range(16)))
    assert sorted(found) == [False] * 15 + [True]


async def test_a_grant_goes_with_its_run_or_after_an_hour(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grants, over = Grants(path), list[str]()
    first, second, late = (GrantFile(path).allow("w", "writes") for _ in range(3))
    for run, secret in (("run-1", first), ("run-2", second)):
        assert grants.may_write(Chain("w", run), secret)

    async def is_over(grant: WriteGrant) -> bool:
        return grant.run in over

    await GrantFile(path).sweep(is_over)
    assert grants.may_write(Chain("w", "run-1"))
    over.append("run-1")
    await GrantFile(path).sweep(is_over)
    assert (grants.may_write(Chain("w", "run-1"), first), grants.may_write(Chain("w", "run-2"))) == (False, True)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3_601)
    assert not grants.may_write(Chain("w", "run-3"), late)
    await GrantFile(path).sweep(is_over)
    assert path.read_text().count("secret") == 1
    assert grants.may_write(Chain("w", "run-2"))


@pytest.mark.parametrize(("text", "mode"), [("{", 0o600), ('{"writes": 7}', 0o600), (None, 0o622)])
def test_a_file_that_is_damaged_or_open_to_others_grants_nothing(path: Path, text: str | None, mode: int) -> None:
    secret = GrantFile(path).allow("w", "writes")
    if text is not None:
        path.write_text(text)
    path.chmod(mode)
    assert not Grants(path).may_write(Chain("w", "run-1"), secret)
    assert not Grants(None).may_write(Chain("w", "run-1"), secret)
    if text is not None:
        assert Grants(path).may_write(Chain("w", "run-1"), GrantFile(path).allow("w", "writes"))
