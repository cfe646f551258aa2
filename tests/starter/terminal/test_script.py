"""A script on a terminal: each line of it stands as it was written, behind what it has called."""

from rich.cells import cell_len

from sennit.starter.terminal.script import script_text
from sennit.workflows.messages.result import UsageReport
from sennit.workflows.messages.views import ScriptLine, ScriptView

SCRIPT = """async def look(q):
\treturn await search(query=q)


async def main():
    return "\u202e\x1b[31m長い長い長い長い長い長い"
"""
USED = UsageReport(input_tokens=1_000, output_tokens=230, calls=3, cost_usd=0.0042)


def test_each_line_has_its_calls_beside_it() -> None:
    lines = (
        ScriptLine(line=2, calls={"failed": 2, "running": 1, "succeeded": 31}, duration_ms=12_100),
        ScriptLine(line=5, tasks={"succeeded": 34}, calls={"waiting": 1}, taken_over=1, usage=USED),
        ScriptLine(line=9, calls={"succeeded": 1}),
    )
    text = script_text(ScriptView(node="main", script=SCRIPT, lines=lines)).splitlines()
    assert text[0] == f"1{'':73}async def look(q):"
    assert text[1] == f"2  34 calls, 2 failed, 1 running           12.1 s{'':29}return await search(query=q)"
    assert text[2:4] == ["3", "4"]
    assert text[4] == "5  34 tasks, 1 call waiting, 1 taken over          1,230 tokens  $0.0042  async def main():"
    assert text[6] == f"   1 call{'':65}(in lines that are not known)"


def test_lines_are_safe_and_fit_the_terminal() -> None:
    view = ScriptView(node="main", script=SCRIPT)
    text = script_text(view)
    assert not {"\x1b", "\u202e", "\t"} & set(text)
    assert text.splitlines()[0] == "1  async def look(q):"
    assert max(map(cell_len, script_text(view, 20).splitlines())) <= 20
    assert script_text(ScriptView(node="main", script="")) == ""
