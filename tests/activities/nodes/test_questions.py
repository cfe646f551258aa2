"""What a person is shown of a write."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sennit.activities.nodes import questions
from sennit.workflows.plan.language.nodes import ProgramNode


class Store:
    def __init__(self) -> None:
        self.bodies: list[str] = []

    def place(self, run_prefix: str, digest: str) -> str:
        return f"{run_prefix}/{digest}"

    async def put(self, run_prefix: str, body: bytes) -> str:
        self.bodies.append(body.decode())
        return f"{run_prefix}{len(self.bodies)}"


async def shown(arguments: dict[str, Any], room: int = 0) -> tuple[str, list[str]]:
    store, context = Store(), SimpleNamespace(room=room, run_prefix="run")
    return await questions._arguments(arguments, cast("Any", store), cast("Any", context)), store.bodies


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"to": "ann", "n": 3, "all": None}, 'to: "ann"\nn: 3\nall: null'),
        ({"text": "one\ntwo\n"}, "text:\n  one\n  two\n  "),
        ({"text": "a\nto: eve"}, "text:\n  a\n  to: eve"),
        ({"a\nb": "\x1b[2Jx"}, 'a\\nb: "\\u001b[2Jx"'),
        ({"text": "a\n\x1b]0;\nrm -rf ~\n\x07"}, "text:\n  a\n  \\x1b]0;\n  rm -rf ~\n  \\x07"),
        ({"text": "\x9d0;rm\x9c\u202eb\u200b\U000e0041"}, r'text: "\x9d0;rm\x9c\u202eb\u200b\U000e0041"'),
        ({"o": {"b": [1, "é"]}}, 'o: {"b": [1, "é"]}'),
        ({}, ""),
    ],
)
async def test_values_are_shown_by_name_and_none_passes_for_another(arguments: dict[str, Any], text: str) -> None:
    assert await shown(arguments) == (text, [])


async def test_only_secrets_of_the_worker_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_API_KEY", "geheim-4711")
    text = "Bearer cm0rcmYK http://a:$(rm${IFS}f)@b geheim-4711"
    assert await shown({"text": text}) == ('text: "Bearer cm0rcmYK http://a:$(rm${IFS}f)@b [redacted]"', [])


async def test_a_long_value_crowds_no_other_out_and_says_where_the_whole_is() -> None:
    text, bodies = await shown({"text": "x" * 90_000, "more": "y\n" * 9_000, "to": "eve"})
    assert 'to: "eve"' in text
    assert "\n  … the beginning of 90,002 characters" in text
    assert text.endswith("… the whole: run/run1")
    assert len(text) < 4_400
    assert bodies[0].startswith(f'text: "{"x" * 90_000}"')


async def test_of_many_questions_each_takes_less_room() -> None:
    text, _ = await shown({"text": "x" * 9_000}, room=300)
    assert len(text) < 400


async def test_of_many_arguments_the_first_are_shown() -> None:
    text, bodies = await shown({f"a{number}": number for number in range(500)})
    assert text.splitlines()[18:] == ["a18: 18", "a19: 19", "… the whole: run/run1"]
    assert bodies[0].endswith("a499: 499")


@pytest.mark.parametrize("arguments", [{"text": "x" * 900}, {f"a{number}": number for number in range(30)}])
async def test_no_argument_of_a_program_is_approved_unseen(arguments: dict[str, Any]) -> None:
    """What is not shown of the arguments is where the question says."""
    script = "async def main():\n    return 1\n"
    store, node = Store(), ProgramNode(id="main", kind="program", script=script, arguments=arguments)

    async def load(*_: object) -> None:
        pass

    context = SimpleNamespace(
        node=node,
        unit=None,
        spec=SimpleNamespace(quote=None),
        binder=SimpleNamespace(load=load, bound=dict),
        room=0,
        approved=None,
        run_prefix="run",
    )
    asked = await questions.unapproved_program(cast("Any", context), cast("Any", store))
    assert asked is not None
    assert asked.text.endswith(f"\n… the whole: run/run1\n\n{script.strip()}")
    assert all(f"{name}: " in store.bodies[0] for name in arguments)
    assert len(store.bodies[0]) > len("".join(map(str, arguments.values())))
