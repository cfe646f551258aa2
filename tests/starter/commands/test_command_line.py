"""The command line."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sennit.starter.commands.command_line import COMMANDS, EXIT_CODES, HEADINGS, parse
from sennit.workflows.messages.updates import UPDATES


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ask goal", {"module": "ask", "goal": "goal", "output": "text", "timeout": None, "wait": False}),
        ("ask -", {"goal": "-"}),
        ("--address a:1 ask g", {"address": "a:1"}),
        ("status --address a:1 r", {"address": "a:1", "run": "r"}),
        ("--address a:1 ask g --address b:2", {"address": "b:2"}),
        ("--quiet --output json status r", {"quiet": True, "output": "json", "module": "status"}),
        ("ask g --timeout 5m --window 7 --approval never --on-failure fail", {"timeout": 300.0, "window": 7}),
        (
            "demo --budget tokens=1000,cost_usd=0.5,time=10m",
            {"budget": {"tokens": 1000, "cost_usd": 0.5, "time": "10m"}, "max_replans": None},
        ),
        ("ask g --max-replans 0", {"max_replans": 0, "budget": None}),
        ("ask g --model openai:small", {"model": "openai:small"}),
        ("ask g --set temperature=0 --set stop=END", {"settings": {"temperature": 0, "stop": ["END"]}}),
        ("ask g --set system=7 --set effort=none", {"settings": {"system": "7", "effort": "none"}}),
        ('run p --set stop=["a","b"]', {"settings": {"stop": ["a", "b"]}}),
        ("run p --input a=1 --input b=2", {"input": ["a=1", "b=2"]}),
        ("retry r n7 --repeat-effect", {"module": "update", "name": "retry_node", "repeat_effect": True}),
        ("skip r n7", {"name": "skip_node", "node": "n7"}),
        ("answer r n7 -5", {"name": "answer", "value": "-5"}),
        ("reject r n7", {"name": "reject", "reason": None}),
        ("finish r", {"name": "finish", "run": "r"}),
        ("update r answer node=n7 value=x", {"name": "answer", "fields": ["node=n7", "value=x"]}),
        ("plan check p", {"action": "check", "plan": "p"}),
        ("plan draw p --format mermaid --output json", {"action": "draw", "format": "mermaid", "output": "json"}),
        ("cancel r --wait", {"module": "cancel", "wait": True}),
        ("dev --stop", {"module": "dev", "stop": True}),
        ("worker tools", {"module": "worker", "role": "tools"}),
    ],
)
def test_a_line_is_read(line: str, expected: dict[str, object]) -> None:
    args = vars(parse(line.split()))
    assert {name: args[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "answer a sample question"),
        ("nope", "there is no sennit nope; sennit --help lists the commands"),
        ("stauts r", "there is no sennit stauts; did you mean `status`?"),
        ("plan chekc p", "there is no sennit plan chekc; did you mean `check`?"),
        (
            "ask g --dosc",
            "usage: sennit ask GOAL [flags]\nsennit ask: error: unrecognized arguments: --dosc; did you mean `--docs`?",
        ),
        ("dev extra", "usage: sennit dev [flags]\nsennit dev: error: unrecognized arguments: extra"),
        (
            "ask g --model foo:bar",
            "argument --model: 'foo:bar': is no model; give offline, openai:NAME, anthropic:NAME",
        ),
        ("ask", "required: GOAL"),
        ("ask g --timeout 3", "'3' is not a duration; write one such as 500ms, 30s, 5m, 24h"),
        ("ask g --window 501", "'501' is not a whole number from 1 to 500"),
        ("ask g --max-replans 21", "'21' is not a whole number from 0 to 20"),
        ("ask g --approve-replans-above 1", "unrecognized arguments: --approve-replans-above"),
        ("run p --max-replans 1", "unrecognized arguments: --max-replans"),
        ("ask g --budget 1000", "'1000' is not a limit; write for example tokens=20000,cost_usd=0.5"),
        ("ask g --budget token=5", "unknown field `token`; did you mean `tokens`?"),
        ("run p --budget tokens=many", '`tokens`: must be a whole number, not "many"'),
        ("run p --budget calls=0", "`calls`: must be at least 1, not 0"),
        ("run p --budget tokens=1,tokens=2", "the limit `tokens` is given twice"),
        ("run p --budget time=10", "`time`: 10 is not a duration; write one such as 500ms"),
        ("ask g --budget tokens=007", '`tokens`: must be a whole number, not "007"; write for example'),
        ("ask g --set 0.2", "'0.2' is not a setting; write for example temperature=0.2"),
        ("ask g --set temprature=0", "unknown field `temprature`; did you mean `temperature`?"),
        ("ask g --set temperature=3", "`temperature`: must be at most 2, not 3"),
        ("ask g --set max_tokens=many", '`max_tokens`: must be a whole number, not "many"'),
        ("ask g --set max_tokens=007", '`max_tokens`: must be a whole number, not "007"\n'),
        ("ask g --set temperature=.5", '`temperature`: must be a number, not ".5"\n'),
        ("ask g --set seed=\u0663", '`seed`: must be a whole number, not "\u0663"\n'),
        ("ask g --set max_tokens=0", "`max_tokens`: must be at least 1, not 0"),
        ("ask g --set effort=huge", "`effort`: must be one of none, low, medium, high, not"),
        ("ask g --set seed=1.5", "`seed`: must be a whole number, not 1.5"),
        ("ask g --set system=", "`system`: is empty; it needs a text"),
        ("ask g --set seed=1 --set seed=2", "the setting `seed` is given twice"),
        ("ask g --on-failure panic", "invalid choice: 'panic'"),
        ("ask g --outp json", "unrecognized arguments"),
        ("plan", "required: check|draw"),
    ],
)
def test_a_wrong_line_exits_2_and_says_why(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(line.split())
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("name", ["sennit", *COMMANDS])
def test_every_command_has_help_with_two_examples_that_parse(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--help"] if name == "sennit" else [name, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    assert EXIT_CODES in text
    assert ("--address HOST" in text) == ("--quiet" in text) == (name == "sennit")
    if name == "update":
        assert all(f"  {model.name:<12} " in text and model.example in text for model in UPDATES)
        return
    examples = text.partition("examples:\n")[2].partition("\n\n")[0].splitlines()
    assert len(examples) == 2
    for line in examples:
        parse(shlex.split(line[line.index("sennit ") :])[1:])


def test_the_list_of_commands_has_each_once_in_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    groups = re.findall(r"^([a-z ]+):\n((?:  [a-z]+ +.+\n)+)", capsys.readouterr().out, re.MULTILINE)
    listed = {title: [line.split()[0] for line in body.splitlines()] for title, body in groups if title != "examples"}
    assert list(listed) == list(HEADINGS.values())
    assert [name for names in listed.values() for name in names] == list(COMMANDS)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sennit sta", {"status"}),
        ("sennit ask x --approv", {"--approval", "--approve-plan"}),
        ("sennit ask x --approval ", {"writes", "never"}),
        ("sennit schedule re", {"resume", "remove"}),
        ("sennit list --status bl", {"blocked"}),
        ("sennit --outp", {"--output"}),
    ],
)
def test_bash_completes_commands_flags_and_choices(line: str, words: set[str]) -> None:
    """The code that is printed, in a real shell, with the program as it is installed."""
    script = f"""
eval "$(sennit --completion bash)"
COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)} COMP_TYPE=9
_python_argcomplete sennit
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60
    )
    assert set(done.stdout.split()) == words, done.stderr
