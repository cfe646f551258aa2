"""Files of cases: YAML to cases that can run. What is wrong is named by its line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, JsonValue, ValidationError

from sennit.starter.client.errors import Refused
from sennit.starter.client.request import checked_goal, docs_folder, slug
from sennit.starter.evaluation.expectations import Expectation
from sennit.starter.limits import MAX_CASE_NAME_CHARACTERS, MAX_CASES
from sennit.starter.plans.plan_file import PlanFile, read_data, read_plan
from sennit.workflows.plan.checking.schemas import unknown_keywords
from sennit.workflows.plan.language.nodes import InputSpec
from sennit.workflows.plan.language.problems import Problem, Where, no_such_input
from sennit.workflows.plan.language.text import (
    did_you_mean,
    format_name,
    format_names,
    nearest_or_known,
)
from sennit.workflows.plan.language.validation_messages import Frozen, describe_error

_Name = Annotated[
    str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=MAX_CASE_NAME_CHARACTERS)
]


class WrittenCase(Frozen):
    """A case as the file has it. Paths are seen from the folder of the file."""

    name: _Name
    goal: str = ""
    plan: str = ""
    program: str = ""
    inputs: dict[str, JsonValue] = Field(default_factory=dict)
    docs: str = ""
    expect: Expectation


class WrittenSet(Frozen):
    """A set of cases as the file has it. `docs` is the folder of every case that names none."""

    name: _Name = ""
    docs: str = ""
    cases: Annotated[tuple[WrittenCase, ...], Field(min_length=1, max_length=MAX_CASES)]


_FIELDS = {3: WrittenCase.model_fields, 1: WrittenSet.model_fields}
_EXPECTATIONS = ("equals", "contains", "number", "within", "schema", "judge")


@dataclass(frozen=True, slots=True)
class Case:
    """A case that can run: `what` starts its run, and `task` is what a
    judge is told that it was.
    """

    name: str
    task: str
    what: Mapping[str, Any]
    expect: Expectation


@dataclass(frozen=True, slots=True)
class CaseSet:
    """The cases of a file, and the name of the set, with which the ids of their runs begin."""

    name: str
    cases: tuple[Case, ...]

    def only(self, names: Sequence[str]) -> "CaseSet":
        """Return the set with these cases alone, all if none is named. Raises Refused for a
        name that no case has.
        """
        known = [case.name for case in self.cases]
        for name in names:
            if name not in known:
                raise Refused(
                    f"--case {name[:60]}: there is no such case{nearest_or_known(name, known)}"
                )
        if not names:
            return self
        return CaseSet(self.name, tuple(case for case in self.cases if case.name in names))


def read_cases(path: str) -> CaseSet:
    """Return the cases of a file. Raises BadPlan with a line for each thing that is wrong, also in
    the plans and programs that the cases name.
    """
    file = read_data(path)
    data: Any = file.data
    if not isinstance(data, dict):
        file.refuse([Problem("shape", (), "a file of cases is an object with `cases`")])
    file.check_bounds()
    try:
        written = WrittenSet.model_validate(data)
    except ValidationError as error:
        file.refuse(_problems(error))
        raise

    # Names come first: a case whose name stands twice would join the run of the other.
    problems = list(_repeated_names(written))
    cases: list[Case] = []
    for number, case in enumerate(written.cases):
        reader = _CaseReader(file, Path(path).parent, written.docs, ("cases", number))
        cases.append(reader.read(case))
        problems += reader.problems
    file.refuse(problems)
    return CaseSet(written.name or slug(Path(path).stem), tuple(cases))


class _CaseReader:
    """Reads one case. What is wrong is in `problems`, and then the case that
    it returns must not run.
    """

    def __init__(self, file: PlanFile, folder: Path, docs: str, where: Where) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._folder = folder
        self._docs = docs
        self._where = where

    def read(self, case: WrittenCase) -> Case:
        """Return the case. Raises BadPlan for a plan or a program with problems of its own,
        which has its own lines.
        """
        ways = [name for name in ("goal", "plan", "program") if getattr(case, name)]
        what: dict[str, Any] = {}
        task = case.goal
        if len(ways) != 1:
            many = "it has none"
            if ways:
                many = f"it has {format_names(ways)}"
            self._report("way", f"a case has one of goal, plan and program; {many}")
        elif case.goal:
            what = self._goal(case)
        else:
            what, task = self._plan(case, ways[0])

        if docs := case.docs or self._docs:
            what["docs"] = self._folder_of(docs, "docs" if case.docs else "")
        if "answer_schema" in case.expect.model_fields_set:
            place = (*self._where, "expect", "schema")
            for where, sentence in unknown_keywords(case.expect.answer_schema, place):
                self.problems.append(Problem("schema", where, sentence))
        return Case(case.name, task, what, case.expect)

    def _goal(self, case: WrittenCase) -> dict[str, Any]:
        if case.inputs:
            self._report("inputs", "only a plan or a program has inputs, not a goal", "inputs")
        try:
            return {"goal": checked_goal(case.goal)}
        except Refused as refused:
            self._report("goal", str(refused), "goal")
            return {}

    def _plan(self, case: WrittenCase, way: str) -> tuple[dict[str, Any], str]:
        """Return what starts the plan or program of a case, and the task as a judge is told."""
        path = self._folder / getattr(case, way)
        if (path.suffix == ".py") is not (way == "program"):
            wanted = "a program, NAME.py" if way == "program" else "a plan, NAME.yaml or NAME.json"
            self._report("path", f"`{way}` names {wanted}, not {format_name(path.name)}", way)
            return {}, ""
        if not path.is_file():
            self._report("path", f"there is no file {format_name(str(path))}", way)
            return {}, ""
        file = read_plan(str(path))
        plan = file.check(None)
        self._check_inputs(case.inputs, plan.inputs)
        title = plan.goal or file.title or path.stem
        what: dict[str, Any] = {"inputs": case.inputs, "title": title}
        if file.script:
            what["program"] = file.script
        else:
            what["plan"] = file.data
        task = title
        if case.inputs:
            task += f"\nIts inputs: {case.inputs}"
        return what, task

    def _check_inputs(self, given: Mapping[str, Any], declared: Mapping[str, InputSpec]) -> None:
        for name in given:
            if name not in declared:
                self._report("inputs", no_such_input(name, declared), "inputs", name)
        missing = [
            name for name, spec in declared.items() if spec.is_required and name not in given
        ]
        if missing:
            self._report("inputs", f"these inputs are missing: {format_names(missing)}", "inputs")

    def _folder_of(self, docs: str, field: str) -> str:
        """Return the folder as an absolute path. One that is written so may be on the
        machine of the workers.
        """
        path = Path(docs).expanduser()
        folder = self._folder / path
        if not path.is_absolute() and not folder.is_dir():
            where: Where = ("docs",)
            if field:
                where = (*self._where, field)
            self.problems.append(
                Problem("docs", where, f"there is no folder {format_name(str(folder))}")
            )
        return docs_folder(str(folder), must_exist=False)

    def _report(self, code: str, message: str, *place: str) -> None:
        self.problems.append(Problem(code, (*self._where, *place), message))


def _repeated_names(written: WrittenSet) -> Iterator[Problem]:
    """Yield a problem for each case whose name another one before it has."""
    seen: dict[str, int] = {}
    for number, case in enumerate(written.cases):
        if case.name in seen:
            message = (
                f"the case {format_name(case.name)} is already there, as number "
                f"{seen[case.name] + 1}"
            )
            yield Problem("name", ("cases", number, "name"), message)
        seen.setdefault(case.name, number)


def _problems(error: ValidationError) -> Iterator[Problem]:
    """Yield pydantic's errors as problems at their places in the file."""
    for item in error.errors(include_url=False):
        where = item["loc"]
        if item["type"] == "too_short" and item["input"]:
            continue  # A list is also too short when only its items are wrong.
        if item["type"] == "missing":
            yield Problem("missing_field", where[:-1], f"`{where[-1]}` is missing")
        elif item["type"] == "extra_forbidden":
            known: Sequence[str] = _EXPECTATIONS
            if where[-2:-1] != ("expect",):
                known = list(_FIELDS.get(len(where), ()))
            hint = did_you_mean(str(where[-1]), known) or f"; there are {format_names(known)}"
            yield Problem("unknown_field", where, f"there is no such field{hint}")
        elif item["type"] == "string_pattern_mismatch":
            yield Problem(
                "name",
                where,
                "a name is words of a-z and 0-9 with dashes between, such as mont-blanc",
            )
        else:
            code, sentence = describe_error(item)
            yield Problem(code, where, sentence)
