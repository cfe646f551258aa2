"""Where outputs lie, as the query `outputs` says it: quick whatever is asked, because it stops the run meanwhile."""

from collections.abc import Collection, Sequence

import pytest
from doubles.plan.play import Play, each, node

from sennit.workflows.limits import MAX_OUTPUTS, MAX_SHOWN_REFERENCE_CHARACTERS
from sennit.workflows.messages.outputs import NO_SUCH_NODE, OutputPlace
from sennit.workflows.plan.language.text import nearest_or_known
from sennit.workflows.views import outputs
from sennit.workflows.views.nodes import view_of
from sennit.workflows.views.outputs import output_places


def played() -> Play:
    play = Play(node("list"), each("notes", "list"))
    play.begin()
    play.ok("list", length=2)
    return play


def test_a_view_has_the_beginning_of_a_long_manifest_and_a_reference_to_an_output_whole() -> None:
    play = Play(node("out"), each("notes", "out"))
    play.begin()
    play.ok("out", length=100)
    for item in range(100):
        play.ok(f"notes[{item}]", digest=f"{item:040}")
    manifest = play.state.units[play.state.graph.by_id["notes"]].digest or ""
    out, notes = (view_of(play.state, play.state.graph.by_id[name], None) for name in ("out", "notes"))
    assert len(manifest) > 4_000
    assert notes.ref == f"{manifest[: MAX_SHOWN_REFERENCE_CHARACTERS - 1]}…"
    assert out.ref == play.state.units[play.state.graph.by_id["out"]].digest


def problems(places: Sequence[OutputPlace]) -> list[str]:
    return [place.error.message if place.error is not None else "" for place in places]


def test_only_the_first_unknown_name_costs_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def search(name: str, names: Collection[str]) -> str:
        searched.append(name)
        return nearest_or_known(name, names)

    monkeypatch.setattr(outputs, "nearest_or_known", search)
    names = [f"note{number}" for number in range(MAX_OUTPUTS)]
    found = output_places(played().state, names, "", "")
    assert searched == ["note0"]
    assert problems(found)[:2] == ["there is no node `note0`; did you mean `notes`?", "there is no node `note1`"]
    assert [place.error.type for place in found if place.error is not None] == [NO_SUCH_NODE] * len(names)


@pytest.mark.parametrize(
    "name", ["notes[" + "9" * 5_000 + "]", "notes[7]", "notes[01]", "notes[1]]", "notes[1", "list[0]"]
)
def test_what_is_no_path_names_no_unit(name: str) -> None:
    state = played().state
    assert state.find(name) is None
    assert [place.error.type for place in output_places(state, [name], "", "") if place.error] == [NO_SUCH_NODE]
    assert state.path(state.find("notes[1]") or 0) == "notes[1]"
