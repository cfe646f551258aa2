"""Plain functions as tools: their signature is the schema of their arguments."""

import pickle
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from doubles.stores import new_store
from pydantic import BaseModel, Field

from sennit.activities.nodes.questions import _preview
from sennit.activities.storage.workspaces import RunWorkspaces
from sennit.activities.toolbox import Preview, Registry, Tool, ToolContext, load_tools, tool


class Place(BaseModel):
    city: str


def made(function: Any, **options: Any) -> Tool:
    registry = Registry()
    tool(**{"effect": "pure", **options}, registry=registry)(function)
    return next(iter(registry))


def shout(text: str, times: Annotated[int, Field(ge=1, description="How often")] = 1) -> str:
    """Say it loudly."""
    return text.upper() * times


def visit(place: Place, day: date, *, context: ToolContext, notes: list[str] = []) -> str:  # noqa: B006
    assert isinstance(place, Place)
    assert isinstance(day, date)
    notes.append(context.run_id)
    return f"{place.city} {day:%A} {len(notes)}"


def odd(schema: str, _hidden: int, copy: bool = False, model_name: str = "") -> list[Any]:
    return [schema, _hidden, copy, model_name]


def test_names_types_defaults_and_notes_are_the_schema() -> None:
    assert made(shout).describe()["schema"] == {
        "type": "object",
        "title": "shout",
        "properties": {
            "text": {"type": "string", "title": "Text"},
            "times": {"type": "integer", "title": "Times", "minimum": 1, "default": 1, "description": "How often"},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    assert made(lambda: 1, name="now").schema["properties"] == {}


async def test_a_call_has_the_values_of_the_declared_types_and_the_context(context: ToolContext) -> None:
    assert await made(shout).call({"text": "ho", "times": 2}, context) == "HOHO"
    visits = made(visit)
    assert "context" not in visits.schema["properties"]
    for _ in range(2):  # a default is not shared between calls
        assert await visits.call({"place": {"city": "Rome"}, "day": "2026-11-23"}, context) == "Rome Monday 1"


async def test_any_name_can_be_an_argument(context: ToolContext) -> None:
    tools = made(odd)
    assert list(tools.schema["properties"]) == ["schema", "_hidden", "copy", "model_name"]
    given = {"schema": "s", "_hidden": 3, "copy": True, "model_name": "m"}
    assert await tools.call(given, context) == ["s", 3, True, "m"]


async def test_a_preview_takes_the_same_arguments_without_the_context() -> None:
    def preview(place: Place, day: date, notes: list[str]) -> Preview:
        return Preview(f"{place.city} on {day}, {notes}")

    found = await _preview(
        made(visit, effect="write", preview=preview), {"place": {"city": "Rome"}, "day": "2026-11-23"}
    )
    assert found.text == "Rome on 2026-11-23, []"


FOLDERS = """
from pathlib import Path
from tempfile import TemporaryDirectory

from sennit import ToolContext, Workspace, tool


@tool(effect='read')
def begin(text: str, context: ToolContext) -> Workspace:
    with TemporaryDirectory() as folder:
        Path(folder, 'text').write_text(text)
        return context.workspaces.keep_from(Path(folder))


@tool(effect='read')
def join(folders: list[Workspace], context: ToolContext) -> str:
    texts = ''
    for each in folders:
        with TemporaryDirectory() as folder:
            context.workspaces.write_to(Path(folder), each)
            texts += Path(folder, 'text').read_text()
    return texts
"""


async def test_a_tool_of_folders_stays_where_the_store_is(context: ToolContext, modules: Path, tmp_path: Path) -> None:
    """Also one that is given none, or several in a list, after a worker was lost in the middle of its call."""
    (modules / "folders_of_mine.py").write_text(FOLDERS)
    registry = load_tools(["folders_of_mine"], [modules])
    here = replace(context, workspaces=RunWorkspaces(new_store(tmp_path / "store"), "default/run"))
    made = [await registry.get("begin").call({"text": text}, here, isolated=True) for text in "ab"]
    assert await registry.get("join").call({"folders": made}, here, isolated=True) == "ab"


async def test_another_process_reads_the_signature_anew(context: ToolContext, modules: Path) -> None:
    (modules / "loud.py").write_text(
        "import os\nfrom sennit import tool\n\n\n@tool(effect='read')\n"
        "def whisper(schema: str, times: int = 1) -> str:\n    return f'{os.getpid()} {schema * times}'\n"
    )
    whisper = load_tools(["loud"], [modules]).get("whisper")
    assert pickle.loads(pickle.dumps(whisper)).describe() == whisper.describe()
    here = await whisper.call({"schema": "ha", "times": 2}, context)
    there = await whisper.call({"schema": "ha", "times": 2}, context, isolated=True)
    assert here.split()[1] == there.split()[1] == "haha"
    assert here != there
    assert "loud" in sys.modules
