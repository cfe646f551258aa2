"""Workspaces: folders that outlive a call. What a call is given, what it leaves behind, and what is refused."""

import asyncio
import json
import os
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from doubles.sandboxes import sandbox_of
from doubles.stores import new_store

from sennit.activities.limits import MAX_WORKSPACE_PACKS
from sennit.activities.sandbox import SandboxChoice, folders
from sennit.activities.sandbox.folders import File, Folder
from sennit.activities.sandbox.tools import code_tools
from sennit.activities.storage.artifacts import ArtifactStore, BodyMissing, encode
from sennit.activities.storage.workspaces import RunWorkspaces, copy_workspaces, folder_at
from sennit.activities.toolbox import Tool, ToolContext
from sennit.activities.toolbox.errors import SandboxFailed, SandboxLimit, ToolResultError, WorkspaceRefused
from sennit.workflows.plan.language.workspaces import Workspace

RUN = "default/run"
Call = Callable[..., Any]


@pytest.fixture(scope="module", params=["bwrap", "landlock"])
def tools(request: pytest.FixtureRequest) -> Iterator[dict[str, Tool]]:
    choice: SandboxChoice = request.param
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield {each.name: each for each in code_tools(sandbox_of(choice, Path(folder)))}


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return new_store(tmp_path / "store")


@pytest.fixture
async def workspaces(store: ArtifactStore) -> RunWorkspaces:
    return RunWorkspaces(store, RUN)


@pytest.fixture
async def call(tools: dict[str, Tool], context: ToolContext, workspaces: RunWorkspaces) -> Call:
    async def made(name: str, **arguments: Any) -> Any:
        return await tools[name].call(arguments, replace(context, workspaces=workspaces))

    return made


@pytest.fixture
async def repo(tmp_path: Path, workspaces: RunWorkspaces) -> dict[str, Any]:
    """A workspace of two texts, a script and an empty folder."""
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "src" / "a.txt").write_text("one\n")
    (folder / "raw").write_bytes(b"\0\xff")
    (folder / "run.sh").write_text("#!/bin/sh\ncat src/a.txt\n")
    (folder / "run.sh").chmod(0o755)
    return (await workspaces.keep(folder_at(folder))).model_dump()


async def test_a_call_leaves_another_workspace_and_its_own_as_it_was(call: Call, repo: dict[str, Any]) -> None:
    command = "./run.sh; ls; echo two >> src/a.txt; rm raw; mkdir -p new/deep"
    first = await call("shell", command=command, workspace=repo)
    assert (first["stdout"], first["exit_code"]) == ("one\nempty\nraw\nrun.sh\nsrc\n", 0)
    assert (first["changed"], first["files"]) == (["raw", "src/a.txt"], {})
    assert (first["workspace"]["files"], first["workspace"]["bytes"]) == (2, 8 + 24)

    second = await call("shell", command="./run.sh; find . -type d | sort", workspace=first["workspace"])
    assert second["stdout"] == "one\ntwo\n.\n./empty\n./new\n./new/deep\n./src\n"
    assert (await call("shell", command="./run.sh; ls raw", workspace=repo))["stdout"] == "one\nraw\n"


async def test_a_call_that_changes_nothing_returns_its_own_workspace(call: Call, repo: dict[str, Any]) -> None:
    assert (await call("shell", command="cat raw", workspace=repo))["workspace"] == repo
    done = await call("python", code="result = open('src/a.txt').read() + data", data="!", workspace=repo)
    assert (done["workspace"], done["result"], "changed" in done) == (repo, "one\n!", False)


async def test_python_imports_what_lies_in_its_workspace(call: Call, repo: dict[str, Any]) -> None:
    files = {"lib/twice.py": "def twice(text): return text * 2", "main.py": "raise ValueError"}
    done = await call("python", code="import lib.twice\nresult = lib.twice.twice('ab')", files=files, workspace=repo)
    assert (done["exit_code"], done["result"], done["files"]) == (0, "abab", {})
    assert done["changed"] == ["lib/twice.py", "main.py"]


@pytest.mark.parametrize("name", ["raw/x", "src", "raw/x/y"])
async def test_files_that_do_not_fit_into_a_workspace_are_named(call: Call, repo: dict[str, Any], name: str) -> None:
    with pytest.raises(SandboxFailed, match=f"^files: {name}: it, or what it lies in, is of another kind"):
        await call("shell", command="true", files={name: "text"}, workspace=repo)


async def test_a_call_without_a_workspace_says_nothing_of_one(call: Call) -> None:
    assert set(await call("shell", command="true")) == {
        "exit_code", "stdout", "stderr", "files", "left_out", "truncated"
    }  # fmt: skip


def test_bytes_of_a_workspace_travel_as_bytes(tmp_path: Path) -> None:
    """Text of 32 MiB holds up the whole worker while it is written, and takes several times the memory."""
    body = b"x" * 1_000_000
    folder = Folder([File("a", False, 0, len(body), folders.digest_of(body), body)], [])
    job = sandbox_of("auto", tmp_path).job(["true"], {}, 5, None, folder)
    assert len(job) < 10_000
    travelled = folders.from_json(json.loads(job)["workspace"])
    assert travelled.with_bodies(body) == folder
    with pytest.raises(ValueError, match="have 1000000 bytes, and 3 have come"):
        travelled.with_bodies(b"abc")


async def test_a_call_that_is_stopped_leaves_nothing(call: Call, repo: dict[str, Any], store: ArtifactStore) -> None:
    before = await _names(store)
    with pytest.raises(SandboxLimit):
        await call("shell", command="echo x > src/a.txt; sleep 5", workspace=repo, timeout_s=1)
    assert await _names(store) == before


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("ln -s /etc/passwd src/passwd", "src/passwd is a link"),
        ("ln -s . loop", "loop is a link"),
        ("mkfifo pipe", "pipe is a pipe"),
        ("truncate -s 1M hole", "hole is a sparse file"),
        ("head -c 9000000 /dev/zero | tr '\\0' x > big", r"big has 9,000,000 bytes; a file may have 8 MiB"),
        ("for n in 1 2 3 4 5; do head -c 8000000 /dev/zero | tr '\\0' x > $n; done", "more than 32 MiB in all"),
        ("mkdir many; cd many; seq 5001 | xargs touch", "more than 5,000 files and folders"),
        ("touch \"$(printf 'a\\nb')\"", "is a name that cannot be printed"),
    ],
)
async def test_a_folder_is_refused_by_the_name_of_what_is_wrong(
    call: Call, repo: dict[str, Any], store: ArtifactStore, command: str, problem: str
) -> None:
    before = await _names(store)
    with pytest.raises(WorkspaceRefused, match=f"^the folder cannot be kept as a workspace: .*{problem}"):
        await call("shell", command=command, workspace=repo, timeout_s=60)
    assert await _names(store) == before


async def test_a_folder_of_a_person_is_refused_likewise(tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    for name, problem in (("s", "s is setuid"), ("huge", "huge has 2,147,483,648 bytes"), ("tty", "tty is a link")):
        place = folder / name
        if name == "tty":
            place.symlink_to("/dev/tty")
        else:
            place.write_text("x")
        if name == "s":
            place.chmod(0o755 | stat.S_ISUID)
        if name == "huge":
            os.truncate(place, 2 << 30)
        with pytest.raises(WorkspaceRefused, match=problem):
            folder_at(folder)
        place.unlink()
    assert folder_at(folder) == Folder([], [])


async def test_a_device_and_a_socket_are_no_files_of_a_workspace(tmp_path: Path) -> None:
    place = tmp_path / "given"
    place.mkdir()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(place / "s"))
        with pytest.raises(WorkspaceRefused, match="s is a socket"):
            folder_at(place)
    (place / "s").unlink()
    try:
        os.mknod(place / "zero", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")
    with pytest.raises(WorkspaceRefused, match="zero is a device"):
        folder_at(place)


@pytest.mark.parametrize("path", ["../out", "/etc/x", "a/../../x", "a//b", "", "./a", "a\nb"])
async def test_a_made_up_list_leads_nowhere(
    workspaces: RunWorkspaces, store: ArtifactStore, tmp_path: Path, path: str
) -> None:
    file = File(path, False, 0, 1, folders.digest_of(b"x"), b"x")
    made_up = await workspaces.keep(Folder([file], []))
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(WorkspaceRefused, match=r"no path inside it|cannot be printed"):
        await asyncio.to_thread(workspaces.write_to, place, made_up)
    assert not any(place.iterdir())

    other = Workspace(workspace=await store.put(RUN, b'{"secret": 1}'), files=0, bytes=0)
    with pytest.raises(WorkspaceRefused, match="is no workspace but another artifact"):
        await workspaces.load(other)


@pytest.mark.parametrize(
    ("count", "place", "problem"),
    [
        (5, {"size": 8 << 20}, "more than 32 MiB in all"),
        (5_001, {"size": 0}, "more than 5,000 files and folders"),
        (1, {"size": 9 << 20}, "f0 has 9,437,184 bytes"),
        (1, {"size": 2, "at": (8 << 20) - 1}, "f0 is not where it says"),
        (1, {"size": 1, "at": -1}, "is no workspace but another artifact"),
    ],
)
async def test_a_made_up_list_takes_no_more_memory_than_a_folder_may_have(
    workspaces: RunWorkspaces, store: ArtifactStore, count: int, place: dict[str, int], problem: str
) -> None:
    """One pack could be named as the bytes of any number of files."""
    pack = await store.put(RUN, bytes(8 << 20))
    file = {"executable": False, "changed": 0, "digest": "0" * 40, "pack": pack, "at": 0, **place}
    listed = {"workspace_files": [{"path": "f0", **file}] * count, "empty": []}
    made_up = Workspace(workspace=await store.put(RUN, encode(listed)), files=1, bytes=1)
    with pytest.raises(WorkspaceRefused, match=problem):
        await workspaces.load(made_up)


async def test_a_mask_that_makes_a_folder_too_large_is_refused_at_once(
    workspaces: RunWorkspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that is kept can always be opened again."""
    monkeypatch.setenv("SERVICE_TOKEN", "hush4711")
    body = (b"hush4711" * ((8 << 20) // 8))[: 8 << 20]
    with pytest.raises(WorkspaceRefused, match="cannot be kept as a workspace: keys has 10,485,760 bytes"):
        await workspaces.keep(Folder([File("keys", False, 0, len(body), folders.digest_of(body), body)], []))


async def test_only_what_is_new_is_stored_and_a_long_branch_stays_short(
    call: Call, repo: dict[str, Any], store: ArtifactStore, workspaces: RunWorkspaces
) -> None:
    latest, turns = repo, range(10, MAX_WORKSPACE_PACKS + 13)
    for turn in turns:
        before = await _names(store)
        latest = (await call("shell", command=f"echo {turn} > turn.{turn}", workspace=latest))["workspace"]
        assert len(await _names(store) - before) == 2, "a pack and a list"
    listing = await workspaces._listing(Workspace.model_validate(latest))
    assert len(listing.packs) <= MAX_WORKSPACE_PACKS
    done = await call("shell", command="cat turn.* src/a.txt | tr -d '\\n'", workspace=latest)
    assert done["stdout"] == "".join(map(str, turns)) + "one"


async def test_files_keep_the_order_of_their_times(call: Call, repo: dict[str, Any]) -> None:
    makefile = "built: src/a.txt\n\tcp src/a.txt built\n"
    files = {"Makefile": makefile}
    first = await call("shell", command="test src/a.txt -ot built || cp src/a.txt built", files=files, workspace=repo)
    second = await call("shell", command="sleep 0.1; echo new > src/a.txt", workspace=first["workspace"])
    third = await call("shell", command="test built -ot src/a.txt && echo stale", workspace=second["workspace"])
    assert third["stdout"] == "stale\n"


async def test_another_worker_goes_on_from_the_store_alone(
    call: Call, repo: dict[str, Any], tools: dict[str, Tool], context: ToolContext, tmp_path: Path
) -> None:
    done = await call("shell", command="echo more > more", workspace=repo)
    successor = RunWorkspaces(new_store(tmp_path / "store"), RUN)
    arguments = {"command": "cat more", "workspace": done["workspace"]}
    assert (await tools["shell"].call(arguments, replace(context, workspaces=successor)))["stdout"] == "more\n"


async def test_secrets_of_the_worker_are_masked_in_texts(
    call: Call, repo: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "hush-hush-4711")
    done = await call("shell", command="printf hush-hush- > key; echo 4711 >> key", workspace=repo)
    assert (await call("shell", command="cat key", workspace=done["workspace"]))["stdout"] == "[redacted]\n"


async def test_a_workspace_means_nothing_in_another_run(call: Call, repo: dict[str, Any], store: ArtifactStore) -> None:
    other = RunWorkspaces(store, "default/other")
    with pytest.raises(Exception, match="no body"):
        await other.load(Workspace.model_validate(repo))
    await RunWorkspaces(store, RUN).copy_to("default/other", Workspace.model_validate(repo))
    assert len((await other.load(Workspace.model_validate(repo))).files) == 3


async def test_git_says_what_has_changed_and_takes_it_over(call: Call, repo: dict[str, Any]) -> None:
    with pytest.raises(WorkspaceRefused, match="is no git repository; `git init`"):
        await call("diff", workspace=repo)
    begin = "git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm first"
    base = (await call("shell", command=begin, workspace=repo))["workspace"]
    assert await call("diff", workspace=base) == {"diff": "", "files": []}

    fixed = (await call("shell", command="echo two > src/a.txt; echo n > new.txt", workspace=base))["workspace"]
    found = await call("diff", workspace=fixed)
    assert found["files"] == ["new.txt", "src/a.txt"]
    assert "-one\n+two\n" in found["diff"]
    commit = "git add . && git -c user.name=a -c user.email=a@b commit -qm second"
    committed = (await call("shell", command=commit, workspace=fixed))["workspace"]
    assert (await call("diff", workspace=committed))["diff"] == ""
    assert await call("diff", workspace=committed, base=base) == found

    applied = await call("apply", workspace=base, patch=found["diff"])
    assert applied["changed"] == ["new.txt", "src/a.txt"]
    done = await call("shell", command="cat src/a.txt new.txt", workspace=applied["workspace"])
    assert done["stdout"] == "two\nn\n"
    with pytest.raises(WorkspaceRefused, match=r"the patch does not fit: .*src/a\.txt"):
        await call("apply", workspace=applied["workspace"], patch=found["diff"])


BEGIN = "git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm first"


async def test_a_made_up_workspace_keeps_no_other_one_from_another_run(
    repo: dict[str, Any], store: ArtifactStore
) -> None:
    """An answer of a sub-agent, or an item of a map, may have both."""
    made_up = {**repo, "workspace": "0" * 40}
    output = {"answer": [made_up], "workspace": repo}
    with pytest.raises(BodyMissing):
        await copy_workspaces(store, RUN, "default/other", output, encode(output))
    await copy_workspaces(store, RUN, "default/other", output, encode(output), is_strange=True)
    assert len((await RunWorkspaces(store, "default/other").load(Workspace.model_validate(repo))).files) == 3


async def test_a_diff_names_each_file_that_has_changed(call: Call, repo: dict[str, Any]) -> None:
    """Also those that git quotes in a patch, or shows as renamed; a setting of the repository changes no form."""
    base = (await call("shell", command=BEGIN, workspace=repo))["workspace"]
    settings = "git config diff.noprefix true; git config diff.renames true"
    command = f"{settings}; git mv src/a.txt src/b.txt; echo x > größe.txt; echo y > 'a b'; printf z > 'q\"u'"
    left = await call("shell", command=command, workspace=base)
    found = await call("diff", workspace=left["workspace"])
    assert sorted(found["files"]) == ["a b", "größe.txt", 'q"u', "src/a.txt", "src/b.txt"]
    applied = await call("apply", workspace=base, patch=found["diff"])
    assert applied["changed"] == ["a b", "größe.txt", 'q"u', "src/a.txt", "src/b.txt"]


async def test_a_diff_that_cannot_be_made_says_why(call: Call, repo: dict[str, Any]) -> None:
    base = (await call("shell", command=BEGIN, workspace=repo))["workspace"]
    other = (await call("shell", command=f"echo > other; {BEGIN}", workspace=repo))["workspace"]
    with pytest.raises(WorkspaceRefused, match=r"does not have the last commit of `base`, [0-9a-f]{40}"):
        await call("diff", workspace=base, base=other)
    unborn = (await call("shell", command="git init -q", workspace=repo))["workspace"]
    with pytest.raises(WorkspaceRefused, match="`base` has no commit yet"):
        await call("diff", workspace=base, base=unborn)
    assert (await call("diff", workspace=unborn))["files"] == ["raw", "run.sh", "src/a.txt"]
    latin = (await call("shell", command="printf 'caf\\351\\n' > latin.txt", workspace=base))["workspace"]
    with pytest.raises(ToolResultError, match="or a text in it is not UTF-8"):
        await call("diff", workspace=latin)


@pytest.mark.parametrize("patch", ["no patch", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n"])
async def test_a_patch_that_is_none_does_not_fit(call: Call, repo: dict[str, Any], patch: str) -> None:
    base = (await call("shell", command=BEGIN, workspace=repo))["workspace"]
    with pytest.raises(WorkspaceRefused, match=r"^the patch does not fit: error: "):
        await call("apply", workspace=base, patch=patch)


async def _names(store: ArtifactStore) -> set[str]:
    return {found.name async for found in store.list_objects("default", "run")}
