"""`read_output`: pieces of bounded size that say where they stand, and a place in no catalogue."""

from typing import Any

import pytest

from sennit.activities.toolbox import ToolArgumentError, ToolContext, load_tools
from sennit.activities.toolbox.read_output import offered

OUTPUT = {"text": "One. " * 5_000 + "The NEEDLE. " + "Two. " * 5_000}


@pytest.fixture
def read(context: ToolContext) -> Any:
    async def call(**arguments: Any) -> Any:
        return await load_tools().get("read_output").call({"node": "a", "output": OUTPUT, **arguments}, context)

    return call


async def test_a_piece_says_where_it_stands_and_how_to_go_on(read: Any) -> None:
    head, piece = (await read(**{"from": 9, "characters": 10})).split("\n")
    assert head == "[characters 9 to 19 of 50,023 of a; from=19 reads on]"
    assert piece == "One. One. "
    assert (await read(**{"from": 50_020})).startswith("[characters 50,020 to 50,023 of 50,023 of a]\n")
    assert (await read(**{"from": 60_000})).startswith("[characters 60,000 to 60,000 of 50,023 of a]\n")


async def test_pieces_put_together_are_the_whole(read: Any) -> None:
    whole = ""
    while "reads on" in (piece := await read(**{"from": len(whole), "characters": 16_000})):
        whole += piece.split("\n", 1)[1]
    whole += piece.split("\n", 1)[1]
    assert whole == '{"text":"' + OUTPUT["text"] + '"}'


async def test_words_are_found_whatever_their_case(read: Any) -> None:
    piece = await read(find="the needle", characters=300)
    assert "The NEEDLE." in piece
    assert "does not hold these words from character 30,000 on" in await read(**{"find": "needle", "from": 30_000})


@pytest.mark.parametrize("wrong", [{"characters": 16_001}, {"from": -1}, {"find": "x" * 201}, {"nodes": "b"}])
async def test_arguments_are_bounded(read: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(ToolArgumentError):
        await read(**wrong)


def test_only_the_engine_offers_it_and_only_for_what_a_model_may_read() -> None:
    assert "read_output" not in [entry["name"] for entry in load_tools().catalogue()]
    schema = offered(["a", "b.text"])["schema"]
    assert list(schema["properties"]) == ["node", "from", "characters", "find"]
    assert schema["properties"]["node"]["enum"] == ["a", "b.text"]
    assert schema["required"] == ["node"]
