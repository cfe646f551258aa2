"""The list of tools, the description of one, and a call of one."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from sennit.starter.client.errors import Exit, Refused, SennitError
from sennit.starter.commands import tools as module
from sennit.starter.commands.command_line import parse
from sennit.starter.commands.tools import run, tool_text, tools_text
from sennit.starter.plans.catalogue import Catalogue
from sennit.starter.terminal.console import Terminal

MINE = '''
import os

from sennit import Preview, ToolContext, tool


@tool(effect="pure")
def shout(text: str, times: int = 1, parts: list[int] | None = None) -> list[str]:
    """Say it loudly."""
    print("printed by the tool")
    os.system("echo printed by a child of it")
    return [text.upper()] * times + [str(parts)]


@tool(effect="write", preview=lambda text: Preview(f"a note that says {text}"))
def note(text: str, context: ToolContext) -> str:
    context.progress("half way")
    (context.docs / "notes.txt").write_text(text)
    return "noted"


@tool(effect="read")
def broken(secret: str) -> float:
    return 1 / len(secret[:0])


@tool(effect="read", timeout="500ms")
async def slow() -> None:
    import asyncio
    await asyncio.sleep(60)


@tool(effect="read")
def dies() -> None:
    os._exit(7)
'''


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    for name, value in {"TOOLS": "mine", "TOOLS_PATH": str(tmp_path), "SANDBOX": "off", "STATE": str(tmp_path)}.items():
        monkeypatch.setenv(f"SENNIT_{name}", value)
    return tmp_path


Made = Callable[..., Terminal]


async def tried(terminal: Terminal, *words: str) -> tuple[Exit, Any]:
    code = await run(parse(["tools", *words]), terminal)
    return code, json.loads(terminal.out.getvalue())  # type: ignore[attr-defined]


def test_each_tool_has_its_arguments_effect_and_what_it_does() -> None:
    schema = {"properties": {"k": {}, "query": {}}, "required": ["query"]}
    tool = {"name": "search", "effect": "read", "description": "Finds\npassages. " * 20, "schema": schema}
    lines = tools_text(Catalogue(tools=[tool]), 80).splitlines()
    assert lines[0] == "search(query, k?)  read"
    assert lines[1].startswith("    Finds passages.")
    assert cell_len(lines[1]) <= 80
    assert tools_text(Catalogue(tools=[{**tool, "hint": "a \x1b[31mhint"}]), 80).splitlines()[2:] == ["    a hint"]
    assert len(tools_text(Catalogue(tools=[tool]), None).splitlines()[1]) == 4 + 16 * 20 - 1


def test_one_tool_has_its_schemas_its_effect_and_a_call_that_its_schema_allows() -> None:
    schema = {
        "type": "object",
        "properties": {"to": {"type": "string", "examples": ["ann's"]}, "copies": {"type": "integer", "minimum": 2}},
        "required": ["to", "copies"],
    }
    tool = {"name": "send", "effect": "write", "description": "Sends.", "timeout": 5.0, "queue": "q", "schema": schema}
    assert tool_text(tool, 80).splitlines() == [
        "send",
        "    Sends.",
        "effect    write (asks for approval; is not repeated)",
        "timeout   5 s",
        "queue     q",
        "arguments",
        "    {",
        '      "type": "object",',
        '      "properties": {',
        '        "to": {"type": "string", "examples": ["ann\'s"]},',
        '        "copies": {"type": "integer", "minimum": 2}',
        "      },",
        '      "required": ["to", "copies"]',
        "    }",
        "example",
        '    - {id: a, kind: tool, tool: send, args: {"to": "ann\'s", "copies": 2}}',
        "    sennit tools try send '--arg=to=ann'\"'\"'s' --arg=copies=2 --yes",
    ]


async def test_a_tool_is_described_or_the_nearest_is_named(tools: Path, make_terminal: Made) -> None:
    code, found = await tried(make_terminal(output="json"), "shout")
    assert (code, found["name"], found["effect"], found["example"]) == (Exit.ANSWER, "shout", "pure", {"text": "yes"})
    with pytest.raises(Refused, match="there is no tool `shot`; did you mean `shout`"):
        await run(parse(["tools", "shot"]), make_terminal())
    with pytest.raises(Refused, match="one NAME at a time"):
        await run(parse(["tools", "shout", "note"]), make_terminal())


async def test_a_call_has_typed_arguments_and_its_output_is_all_that_stdout_has(
    tools: Path, make_terminal: Made, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["--arg", "text=7", "--arg", "times=2", "--arg", "parts=[1, 2]"]
    assert await tried(make_terminal(output="json"), "try", "shout", *words) == (Exit.ANSWER, ["7", "7", "[1, 2]"])
    out, err = capfd.readouterr()
    assert out == ""
    assert "printed by the tool" in err
    assert "printed by a child of it" in err


async def test_a_write_is_made_only_if_you_say_yes(
    tools: Path, make_terminal: Made, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("try", "note", "--arg", "text=hello", "--docs", str(tools))
    with pytest.raises(Refused, match="note writes, and was not called; --yes calls it") as refused:
        await run(parse(["tools", *words]), make_terminal())
    assert "a note that says hello" in str(refused.value)
    assert not (tools / "notes.txt").exists()
    assert await tried(make_terminal(output="json"), *words, "--yes") == (Exit.ANSWER, "noted")
    assert (tools / "notes.txt").read_text() == "hello"
    assert "progress: half way" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["shout"], "shout: text: is missing"),
        (["shout", "--arg", "text"], "--arg text: write it as name=value"),
        (["shout", "--arg", "text=a", "--arg", "text=b"], "--arg text=b: given twice"),
        (["shout", "--arg", "text=a", "--arg", "times=x"], "shout: times: "),
        (["shot"], "there is no tool `shot`; did you mean `shout`?"),
        ([], "name one tool: sennit tools try NAME"),
    ],
)
async def test_what_is_not_called_is_said(tools: Path, make_terminal: Made, words: list[str], problem: str) -> None:
    with pytest.raises(Refused) as refused:
        await run(parse(["tools", "try", *words]), make_terminal())
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["broken", "--arg", "secret=s3cret"], "broken failed: ZeroDivisionError: division by zero"),
        (["slow"], "slow failed: TimeoutError: no result within 0.5 s"),
        (["dies"], "dies failed: WorkerLost: it ended its process, with exit code 7"),
    ],
)
async def test_a_call_that_fails_shows_the_lines_of_the_tool_and_no_values(
    tools: Path, make_terminal: Made, words: list[str], problem: str
) -> None:
    terminal = make_terminal()
    with pytest.raises(SennitError) as failed:
        await run(parse(["tools", "try", *words]), terminal)
    assert failed.value.code == Exit.FAILED
    assert str(failed.value) == problem
    shown = terminal.err.getvalue()  # type: ignore[attr-defined]
    assert ("return 1 / len(secret[:0])" in shown) == (words[0] == "broken")
    assert "s3cret" not in shown


async def test_a_tool_that_is_left_out_says_why(tools: Path, make_terminal: Made, monkeypatch: Any) -> None:
    operation = {"operationId": "do", "parameters": [{"in": "cookie", "name": "a", "required": True}]}
    (tools / "api.json").write_text(json.dumps({"openapi": "3.1", "paths": {"/a": {"get": operation}}}))
    (tools / "http.json").write_text(
        json.dumps({"openapi": [{"name": "t", "document": "api.json", "url": "http://a"}]})
    )
    monkeypatch.setenv("SENNIT_HTTP_TOOLS", str(tools / "http.json"))
    terminal = make_terminal()
    assert await run(parse(["tools"]), terminal) == Exit.ANSWER
    why = "it needs the cookie 'a'; give that under `headers`"
    assert f"off: t_do: {why}" in terminal.err.getvalue()  # type: ignore[attr-defined]
    for words in (["t_do"], ["try", "t_do"]):
        with pytest.raises(Refused, match=f"t_do is off here: {why}"):
            await run(parse(["tools", *words]), make_terminal())


async def test_what_programs_go_without_here_is_said(make_terminal: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = "programs and calculations run without seccomp: this kernel has none"

    async def catalogue() -> Catalogue:
        return Catalogue(tools=[], note=lacking)

    monkeypatch.setattr(module, "read_catalogue", catalogue)
    terminal = make_terminal()
    assert await run(parse(["tools"]), terminal) == Exit.ANSWER
    assert f"note: {lacking}" in terminal.err.getvalue()  # type: ignore[attr-defined]


async def test_wrong_settings_are_named(
    tools: Path, make_terminal: Made, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_TOOLS", "absent")
    with pytest.raises(Refused, match="the tool was not called"):
        await run(argparse.Namespace(words=["try", "shout"], arg=[], docs=None, yes=False), make_terminal())
    assert "tool module 'absent' does not import" in capfd.readouterr().err
