"""Programs whose modules stand beside them, as clients read them."""

import json
from pathlib import Path
from typing import Any

import pytest

from sennit.starter.client.errors import InvalidRequest
from sennit.starter.client.request import script_of, with_modules
from sennit.starter.plans.catalogue import Catalogue
from sennit.starter.plans.plan_file import BadPlan, plan_of, program_of, read_plan, read_script
from sennit.testing import run
from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.programs.files import without_name
from sennit.workflows.plan.programs.program_plan import program_problems

CATALOGUE = Catalogue(tools=[{"name": "search", "effect": "read", "schema": {"properties": {"query": {}}}}])
MODULE = "async def look(name: str):\n    return await serch(query=name)\n"
MAIN = "import helpers\n\n\nasync def main(name: str):\n    return await helpers.look(name)\n"
PLAN = "nodes:\n- id: a\n  kind: program\n  arguments: {name: x}\n  script: |\n    import helpers\n" + "".join(
    f"    {line}\n" for line in MAIN.splitlines()[1:]
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "team").mkdir()
    monkeypatch.setenv("SENNIT_PROGRAMS", str(tmp_path / "team"))
    return tmp_path


def problems(path: str) -> str:
    with pytest.raises(BadPlan) as bad:
        read_plan(path).check(CATALOGUE)
    return str(bad.value)


@pytest.mark.parametrize(("name", "text"), [("own/prog.py", MAIN), ("own/plan.yaml", PLAN)])
def test_a_problem_in_a_module_has_its_file_and_line(folder: Path, name: str, text: str) -> None:
    (folder / "own").mkdir()
    (folder / name).write_text(text)
    assert "there is no module `helpers`" in problems(name)
    (folder / "own" / "helpers.py").write_text(MODULE)
    assert problems(name) == "own/helpers.py:2: there is no `serch`; did you mean `search`?"
    (folder / "own" / "helpers.py").write_text(MODULE.replace("serch", "search"))
    read_plan(name).check(CATALOGUE)
    (folder / "own" / "helpers.py").write_text(MODULE + "from . import other\n")
    assert problems(name).startswith("own/helpers.py:3: this file is in no package: write `import other`")


def test_every_way_in_puts_the_modules_into_the_script(folder: Path) -> None:
    (folder / "prog.py").write_text(MAIN)
    (folder / "team" / "helpers.py").write_text(MODULE.replace("serch", "search"))
    whole = read_script("prog.py")
    assert "# ==== file: helpers.py ====" in whole
    assert whole == read_plan("prog.py").script == script_of(Path("prog.py")) == script_of(whole)
    whole = without_name(whole)
    assert whole == script_of(MAIN)
    plan: dict[str, Any] = {"nodes": [{"id": "a", "kind": "program", "script": MAIN}, {"id": "b", "kind": "llm"}]}
    assert with_modules(plan)["nodes"] == [{"id": "a", "kind": "program", "script": whole}, {"id": "b", "kind": "llm"}]
    (folder / "team" / "helpers.py").write_text(MODULE + "x = (\n")
    for ask in (lambda: script_of(MAIN), lambda: with_modules(plan)):
        with pytest.raises(InvalidRequest, match=r"helpers\.py:3: this is not Python"):
            ask()


def test_workers_name_the_file_of_a_program_without_its_path(folder: Path) -> None:
    (folder / "own").mkdir()
    (folder / "own" / "prog.py").write_text(f"{MAIN}    foo(1)\n")
    (folder / "own" / "helpers.py").write_text(MODULE)
    plan = parse_plan(read_plan("own/prog.py").data)
    places = [str(problem).partition(": ")[0] for problem in program_problems(plan, {"search": {}})]
    assert sorted(places) == ["helpers.py:2", "prog.py:6"]


def test_a_text_that_an_agent_has_written_reads_no_module_of_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside.py").write_text("KEY = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SENNIT_PROGRAMS", raising=False)
    script = "import beside\n\n\nasync def main():\n    return beside.KEY\n"
    plan = {"nodes": [{"id": "a", "kind": "program", "script": script}]}
    with pytest.raises(BadPlan, match=r"^program:1: .*beside"):
        program_of(script).check(None)
    with pytest.raises(BadPlan, match=r"^plan: nodes\[0\].script.*beside"):
        plan_of(json.dumps(plan)).check(None)
    monkeypatch.setenv("SENNIT_PROGRAMS", str(tmp_path))
    assert "KEY = 1" in program_of(script).script


def test_a_program_may_be_a_folder(folder: Path) -> None:
    (folder / "report" / "parts").mkdir(parents=True)
    (folder / "report" / "main.py").write_text("from parts import dates\n\n\nasync def main():\n    return dates.DAY\n")
    (folder / "report" / "parts" / "__init__.py").write_text("")
    (folder / "report" / "parts" / "dates.py").write_text("DAY = 'Monday'\n")
    whole = read_script("report")
    assert whole == read_plan("report").script == script_of(Path("report"))
    assert "# ==== file: parts/dates.py ====" in whole
    assert run(Path("report"), {}) == "Monday"
    (folder / "report" / "parts" / "dates.py").write_text("\nDAY = day()\n")
    assert problems("report") == "report/parts/dates.py:2: there is no `day`; did you mean `any`?"
