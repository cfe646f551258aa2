"""Plan files: YAML, JSON or a program to plain data. What is wrong is named by its
line, in JSON by its path.

Size, depth and the number of values are bounded, so that a file which expands to gigabytes is
refused in a sentence.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from sennit.folders import ScriptFolders, program_in
from sennit.starter.client.errors import Refused
from sennit.starter.limits import MAX_PLAN_FILE_BYTES
from sennit.starter.plans.catalogue import Catalogue
from sennit.starter.plans.yaml_text import BadSyntax, YamlText
from sennit.workflows.plan.bundles.bundle import BadBundle, bundled
from sennit.workflows.plan.checking.soundness import sound_part, unused_nodes
from sennit.workflows.plan.checking.validation import parse_plan, problems_of
from sennit.workflows.plan.language.nodes import Plan, Role
from sennit.workflows.plan.language.parser import malformed
from sennit.workflows.plan.language.problems import InvalidPlan, Problem
from sennit.workflows.plan.language.text import format_name, format_names, one_line, text_bytes
from sennit.workflows.plan.limits import MAX_JSON_LEVELS
from sennit.workflows.plan.programs.program_plan import (
    program_plan,
    program_problems,
    script_problems,
    title_of,
)
from sennit.workflows.plan.quotes.estimate import Quote
from sennit.workflows.plan.quotes.quote import quote_of

PROGRAM = ".py"
_CALLED = re.compile(r"there is no (?:tool )?`(\w+)`")


class BadPlan(Refused):
    """A plan file with problems. The message has one line for each, `file:line: what is wrong`."""

    prefixed = True


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan as read: `data` is plain JSON, `yaml` knows the lines of a YAML file. A
    program's has its `script`.

    `paths` are those of the modules in its scripts.
    """

    name: str
    data: dict[str, Any]
    yaml: YamlText | None = None
    script: str = ""
    paths: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return title_of(self.script)

    def check(self, catalogue: Catalogue | None) -> Plan:
        """Return the plan if nothing is wrong with it; raises BadPlan. Without a catalogue
        tools are not checked.
        """
        self.refuse(self.problems(catalogue))
        return parse_plan(self.data)

    def problems(self, catalogue: Catalogue | None) -> list[Problem]:
        """Return all that is wrong with the plan: its form, its references and calls as far as the
        form is right, and its scripts.
        """
        known_tools = None
        known_models = None
        tools = None
        if catalogue:
            known_tools = catalogue.tools
            known_models = catalogue.models
            tools = {tool["name"]: tool for tool in known_tools}

        # The plan around a script is not of the person's making, so the problems of
        # the script come alone.
        if self.script:
            in_script = list(script_problems(self.script, tools))
            if in_script:
                return self._explained(in_script, catalogue)

        # A plan whose form is wrong is checked as far as it can be read.
        problems: list[Problem] = []
        part = None
        try:
            plan = parse_plan(self.data)
        except InvalidPlan as invalid:
            problems += invalid.problems
            part = sound_part(self.data, invalid.problems)
            if part is None:
                return problems
            plan = part.plan

        in_plan = problems_of(plan, known_tools, models=known_models)
        in_plan += program_problems(plan, tools)
        for problem in in_plan:
            if part is None or part.is_about(problem.where):
                problems.append(problem)
        return self._explained(problems, catalogue)

    def warnings(self, plan: Plan | None, catalogue: Catalogue | None) -> list[str]:
        """Return what the file may not mean as it is written, a line each as those of BadPlan.
        Which nodes nobody uses is known of a plan without problems.
        """
        found: list[Problem] = []
        if plan is not None and catalogue is not None:
            tools = {tool["name"]: tool for tool in catalogue.tools}
            found += unused_nodes(plan, tools)
        if self.yaml:
            for where, words in self.yaml.boolean_choices():
                message = (
                    f"YAML reads {words} here as true and false; if you mean the words, quote them"
                )
                found.append(Problem("boolean", where, message))
        return self.lines(sorted(found, key=self._position))

    @staticmethod
    def _explained(problems: Iterable[Problem], catalogue: Catalogue | None) -> list[Problem]:
        """Return the problems; one of an unknown tool gives the reason why the tool is off
        here, if there is one.
        """
        explained: list[Problem] = []
        for problem in problems:
            if catalogue is not None and problem.code in ("unknown_tool", "name"):
                named = _CALLED.match(problem.message)
                if named:
                    tool = named[1]
                    why = catalogue.why_off(tool)
                    if why:
                        problem = Problem(
                            problem.code, problem.where, f"the tool `{tool}` is off here: {why}"
                        )
            explained.append(problem)
        return explained

    def quote(
        self, catalogue: Catalogue, inputs: Mapping[str, Any] | None = None, model: str = ""
    ) -> Quote:
        """Return what a program without problems can cost; `model` serves every role."""
        prices = dict(catalogue.prices)
        if model:
            # A model without a known price has none in any role either.
            first_model = model.partition(",")[0].strip()
            price = prices.get(first_model)
            for role in get_args(Role):
                prices.pop(role, None)
                if price:
                    prices[role] = price
        tools = {tool["name"]: tool for tool in catalogue.tools}
        return quote_of(self.script, tools, prices.get, inputs)

    def refuse(self, problems: Iterable[Problem]) -> None:
        """Raise BadPlan with these problems in the order of the file, if there are any."""
        in_order = sorted(problems, key=self._position)
        if in_order:
            lines = dict.fromkeys(map(self._line, in_order))
            raise BadPlan("\n".join(lines))

    def check_bounds(self) -> None:
        """Raise BadPlan if the plan is deeper or bigger than any plan, or holds what JSON cannot
        carry. Each alias of a YAML file counts as often as it is used.
        """
        wrong = malformed(self.data)
        if wrong is not None:
            self.refuse([wrong])

    def _position(self, problem: Problem) -> tuple[int, ...]:
        """Return where in the file a problem is: at every level how many come before, and
        then the line of a script.
        """
        position: list[int] = []
        value: Any = self.data
        for step in problem.where:
            if isinstance(value, dict) and step in value:
                position.append(list(value).index(str(step)))
                value = value[step]
            elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
                position.append(step)
                value = value[step]
            else:
                # The rest of the path leads into a script, or to what is missing: only
                # a line can be compared.
                if isinstance(step, int):
                    position.append(step)
                value = None
        return tuple(position)

    def lines(self, problems: Iterable[Problem]) -> list[str]:
        """Return problems as people read them, each with its place."""
        return [self._line(problem) for problem in problems]

    def _line(self, problem: Problem) -> str:
        """Return a problem as a person reads it: `file:line: what is wrong`, without a
        line where none is known.
        """
        if problem.where[-2:-1] == ("line",):
            *script_path, _, line = problem.where
            message = one_line(problem.message)
            # A line of a module is named with the module's file, as `module.py:7`.
            if isinstance(line, str):
                path, _, number = line.rpartition(":")
                file = self.paths.get(path, path)
                return f"{file}:{number}: {message}"
            # A script in a YAML file begins below its key.
            if self.yaml is not None:
                first = self.yaml.line(tuple(script_path))
                return f"{self.name}:{first + int(line)}: {message}"
            if self.script:
                return f"{self.name}:{line}: {message}"

        text = one_line(str(problem))
        if self.yaml is None:
            return f"{self.name}: {text}"
        return f"{self.name}:{self.yaml.line(problem.where)}: {text}{self.yaml.hint(problem.where)}"


def read_plan(path: str) -> PlanFile:
    """Return the plan file at `path`, `-` for standard input; a folder is the program in its
    `main.py`. Raises BadPlan if it cannot be read.
    """
    path = program_in(path)
    if path.endswith(PROGRAM):
        return _program(path, _decode(path, _read(path)) or "\n", Path(path))
    file = read_data(path)
    file.check_bounds()
    _put_together(file, Path(path).parent)
    return file


def plan_of(text: str, name: str = "plan") -> PlanFile:
    """Return the plan that a text holds, as YAML or JSON. Modules of its programs come from the
    library and from SENNIT_PROGRAMS, never from a folder: nobody has named one. Raises BadPlan.
    """
    _check_size(name, text_bytes(text))
    file = _data(name, text, is_json=_looks_like_json(text))
    file.check_bounds()
    _put_together(file, None)
    return file


def program_of(text: str, name: str = "program") -> PlanFile:
    """Return the program that a text holds, with modules as `plan_of`
    finds them. Raises BadPlan.
    """
    _check_size(name, text_bytes(text))
    return _program(name, text or "\n", None)


def read_data(path: str) -> PlanFile:
    """Return the file at `path` as plain data that knows its lines, whatever it holds; raises
    BadPlan if it cannot be read.
    """
    name = "stdin" if path == "-" else path
    text = _decode(name, _read(path))
    is_json = path.endswith(".json")
    if not path.endswith((".json", ".yaml", ".yml")):
        is_json = _looks_like_json(text)
    return _data(name, text, is_json=is_json)


def _looks_like_json(text: str) -> bool:
    return text.lstrip()[:1] == "{"


def _data(name: str, text: str, *, is_json: bool) -> PlanFile:
    try:
        if is_json:
            return PlanFile(name, _read_json(text))
        yaml = YamlText(text)
        return PlanFile(name, yaml.data, yaml)
    except BadSyntax as wrong:
        place = name
        if wrong.line:
            place = f"{name}:{wrong.line}"
        raise BadPlan(f"{place}: {one_line(str(wrong))}") from None


def read_script(path: str) -> str:
    """Return the script at `path`, `-` for standard input; raises BadPlan if it cannot be read, or
    is no program. Any name that it calls may be a tool.
    """
    path = program_in(path)
    name = "stdin" if path == "-" else path
    text = _decode(name, _read(path))
    file = _program(name, text, None if path == "-" else Path(path))
    file.refuse(script_problems(file.script, None))
    return file.script


def _program(name: str, text: str, path: Path | None) -> PlanFile:
    """Return a program with its modules, which are beside it if it has a path. Raises BadPlan."""
    folder = None
    if path:
        folder = path.parent
    try:
        bundle = bundled(text, ScriptFolders(folder), str(path or ""))
    except BadBundle as bad:
        lines = [f"{file or name}:{line}: {one_line(why)}" for file, line, why in bad.problems]
        raise BadPlan("\n".join(lines)) from None
    paths = {name.rpartition("/")[2]: name, **bundle.paths}
    return PlanFile(name, program_plan(bundle.script), script=bundle.script, paths=paths)


def _put_together(file: PlanFile, folder: Path | None) -> None:
    """Give each program of a plan the modules that it imports, which are in the folder of the plan,
    if it has one. Raises BadPlan.
    """
    nodes = file.data.get("nodes")
    if not isinstance(nodes, list):
        return
    for number, node in enumerate(nodes):
        # Nothing has checked the form of the nodes yet.
        if not isinstance(node, dict) or node.get("kind") != "program":
            continue
        script = node.get("script")
        if not isinstance(script, str):
            continue
        try:
            bundle = bundled(script, ScriptFolders(folder))
        except BadBundle as bad:
            problems: list[Problem] = []
            for path, line, why in bad.problems:
                place: str | int = line
                if path:
                    place = f"{path}:{line}"
                problems.append(Problem("import", ("nodes", number, "script", "line", place), why))
            file.refuse(problems)
            continue
        node["script"] = bundle.script
        file.paths.update(bundle.paths)


def _read(path: str) -> bytes:
    if path == "-":
        body = sys.stdin.buffer.read(MAX_PLAN_FILE_BYTES + 1)
    else:
        try:
            with Path(path).open("rb") as file:
                body = file.read(MAX_PLAN_FILE_BYTES + 1)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise BadPlan(f"{path}: {why}") from None
    _check_size(path, len(body))
    return body


def _check_size(name: str, size: int) -> None:
    if size > MAX_PLAN_FILE_BYTES:
        raise BadPlan(
            f"{name}: over {MAX_PLAN_FILE_BYTES // 1024 // 1024} MiB; use `map` for many alike "
            "nodes"
        )


def _decode(name: str, body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise BadPlan(f"{name}:{line}: not UTF-8 text") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises BadSyntax for a key that stands in it twice."""
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            names = format_names(dict(pairs))
            raise BadSyntax(
                0, f"the key {format_name(key)} stands twice in one object, that of {names}"
            )
        made[key] = value
    return made


def _read_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise BadSyntax(error.lineno, f"not JSON: {error.msg[0].lower()}{error.msg[1:]}") from None
    except RecursionError:
        raise BadSyntax(0, f"nested more than {MAX_JSON_LEVELS} levels deep") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise BadSyntax(0, str(error).partition(";")[0]) from None
