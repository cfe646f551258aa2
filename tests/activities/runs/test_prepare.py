"""How a run opens whose plan lies in the store: that of an item."""

from pathlib import Path

import pytest
from doubles.stores import new_store

from sennit.activities.llm.models import Models
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.reading import read
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.runs.check import PlanChecker
from sennit.activities.runs.prepare import RunPreparer
from sennit.activities.storage.artifacts import digest_of
from sennit.activities.storage.documents import DocumentRule
from sennit.activities.storage.grants import Grants
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.toolbox import load_tools
from sennit.workflows.messages.contracts import PrepareCall
from sennit.workflows.messages.request import RunRequest

RUN = "4f2a0000-0000-0000-0000-000000000000"
HOME = f"space/{RUN}"


@pytest.mark.parametrize(("tool", "problem"), [("calculate", ""), ("gone", "gone")])
async def test_an_item_needs_only_the_tools_of_its_plan(tmp_path: Path, tool: str, problem: str) -> None:
    """It is given all tools that the run above it had when that began, and one of them may be away by now."""
    store = new_store(tmp_path)
    library = ArtifactReader(store)
    node = {"id": "a", "kind": "tool", "tool": tool, "args": {"expression": "1"}}
    draft = f"{RUN}/{await library.put(HOME, {'nodes': [node]})}"
    request = RunRequest(title="m[0]", draft=draft, tools=["calculate", "gone"], on_failure="partial")
    call = PrepareCall(run=RUN, first_run=RUN, request=request)
    models = Models.of(ModelSettings())
    documents = DocumentRule(None, (), Grants(None), "tests")
    async with Interpreter() as interpreter:
        checker = PlanChecker(store, library, models, interpreter, read)
        preparer = RunPreparer(library, load_tools([]), documents, models, checker)
        prepared = await preparer.prepare(HOME, call, "never")
    assert prepared.checked is not None
    assert bool(prepared.checked.problems) == bool(problem)
    assert problem in "".join(prepared.checked.problems)


SCRIPT = "async def main():\n    return 1\n"


@pytest.mark.parametrize(("asks", "may_trust", "count"), [(True, True, 1), (True, False, 0), (False, True, 0)])
async def test_a_script_is_trusted_where_a_person_says_so_on_a_stack_of_their_own(
    tmp_path: Path, asks: bool, may_trust: bool, count: int
) -> None:
    """It is that script which is trusted: one that a model writes into the same run is another one."""
    store = new_store(tmp_path)
    library = ArtifactReader(store)
    plan = {"nodes": [{"id": "main", "kind": "program", "script": SCRIPT}], "answer": "$main"}
    request = RunRequest(title="main", plan=plan, trust_program=asks)
    models = Models.of(ModelSettings())
    documents = DocumentRule(None, (), Grants(None), "tests")
    async with Interpreter() as interpreter:
        checker = PlanChecker(store, library, models, interpreter, read)
        preparer = RunPreparer(library, load_tools([]), documents, models, checker)
        call = PrepareCall(run=RUN, first_run=RUN, request=request)
        prepared = await preparer.prepare(HOME, call, "never", may_trust=may_trust)
    context = await library.run_context(HOME, prepared.run_context)
    assert context.trusted_scripts == (digest_of(SCRIPT.encode()),) * count
