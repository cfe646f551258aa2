"""Tools beside the catalogue: they read a piece of an output, for a model whose prompt has only its
beginning and for programs, and end the sleep of a program.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from sennit.activities.toolbox.registry import default_registry, tool
from sennit.workflows.plan.edits.item_plan import GIVEN
from sennit.workflows.plan.edits.tool_loop import READER
from sennit.workflows.plan.language.references import as_text

_LEAD: Final = 200
"""Characters that are shown before the words that were found."""


class ReadOutputArguments(BaseModel):
    """Which piece of which output. The model names it by `node`; the engine adds the output itself."""  # noqa: E501 - models read it

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: Annotated[
        str,
        Field(min_length=1, max_length=400, description="The output, by its name in the prompt"),
    ]
    start: Annotated[int, Field(alias="from", ge=0, description="The character to begin at")] = 0
    characters: Annotated[int, Field(ge=1, le=16_000, description="How many to read")] = 8_000
    find: Annotated[
        str, Field(max_length=200, description="Begin where these words stand next instead")
    ] = ""
    output: Any


@tool(name=READER, effect="pure", in_catalogue=False)
def read_output(args: ReadOutputArguments) -> str:
    """Read a piece of an output that the prompt only begins. It says which piece it is, and
    how long the whole is.
    """
    text, start = as_text(args.output), args.start
    if args.find:
        found = re.compile(re.escape(args.find), re.IGNORECASE).search(text, start)
        if found is None:
            return (
                f"[{args.node} does not hold these words from character {start:,} on; it has "
                f"{len(text):,}]"
            )
        start = max(start, found.start() - _LEAD)
    piece = text[start : start + args.characters]
    end = start + len(piece)
    more = ""
    if end < len(text):
        more = f"; from={end} reads on"
    return f"[characters {start:,} to {end:,} of {len(text):,} of {args.node}{more}]\n{piece}"


class PartArguments(BaseModel):
    """Which piece of an output a program reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    output: Any
    start: Annotated[int | None, Field(alias="from")] = 0
    end: Annotated[int | None, Field(alias="to")] = None


@tool(name="read_part", effect="pure", typical="5ms", in_catalogue=False)
def read_part(args: PartArguments) -> Any:
    """Read a piece of an output, as a slice: characters of a text, items of a list, of
    anything else JSON text.
    """
    return whole_of(args.output)[args.start : args.end]


class SleepArguments(BaseModel):
    """Until when a program sleeps. The run starts the tool when that is over."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    until: str


@tool(name="end_sleep", effect="pure", in_catalogue=False)
def end_sleep(_: SleepArguments) -> None:
    """End the sleep of a program."""


class GivenArguments(BaseModel):
    """What an item of a map is given from outside its own run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    output: Any


@tool(name=GIVEN, effect="pure", typical="1ms", in_catalogue=False)
def given(args: GivenArguments) -> Any:
    """Give what was written into the plan of an item."""
    return args.output


def whole_of(output: Any) -> str | list[Any]:
    """Return an output as programs read it in parts."""
    if isinstance(output, list):
        return output
    return as_text(output)


ENTRY: Final = default_registry.get(READER).describe()
PART: Final = default_registry.get("read_part").describe()
SLEEP: Final = default_registry.get("end_sleep").describe()
GIVE: Final = default_registry.get(GIVEN).describe()
"""The catalogue entries of the tools."""


def offered(names: Iterable[str]) -> dict[str, Any]:
    """Return the entry of the tool for a model that may read the outputs of these names."""
    schema = ENTRY["schema"]
    properties = {name: part for name, part in schema["properties"].items() if name != "output"}
    properties["node"] = {**properties["node"], "enum": list(names)}
    return {**ENTRY, "schema": {**schema, "properties": properties, "required": ["node"]}}
