"""docs/guide.md as its reader follows it: its files, its commands with the output pasted there, its Python."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from doubles.distribution import ROOT

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TIME = re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|m)\b")
OF_THIS_MACHINE = ("starting", "Temporal at", "ui ")
WRONG = "raed"


def follow(folder: Path, shell: Callable[[str], str], python: Callable[[str], str]) -> None:
    """Do all that the page says in a folder; `shell` returns both outputs of a line, `python` what a script prints."""
    blocks = BLOCK.findall((ROOT / "docs" / "guide.md").read_text())
    _write_notes(folder, blocks[0][1])
    plan = next(text for language, text in blocks if language == "yaml")
    for language, text in blocks[1:]:
        if language == "python":
            assert "texts[1]" in python(_script(text))
        for command, pasted in _commands(text) if not language else ():
            (folder / "digest.yaml").write_text(
                plan.replace("tool: read,", f"tool: {WRONG},") if WRONG in pasted else plan
            )
            found = _same(shell(command))
            missing = [line for line in _lines(pasted) if line not in found]
            assert not missing, f"{command}\n{missing}\n{found}"


def _write_notes(folder: Path, block: str) -> None:
    """Write the files of the first block: a path, then what stands in the file, below each other."""
    files: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("notes/"):
            path, _, title = line.partition("#")
            files.append((path.strip(), [f"# {title.strip()}\n"]))
        else:
            files[-1][1].append(line.strip())
    for path, lines in files:
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("\n".join(lines) + "\n")


def _commands(block: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, pasted = part.partition("\n")
        yield command, pasted


def _lines(pasted: str) -> list[str]:
    """Return what must be among the output: nothing that depends on the machine, and the beginning of a cut line."""
    lines = [line.partition("...")[0] for line in pasted.splitlines() if " started" not in line]
    return [_same(line).strip() for line in lines if line.strip() and not line.startswith(OF_THIS_MACHINE)]


def _same(text: str) -> str:
    """Return a text without times, and with single spaces."""
    return re.sub(r"[ \t]+", " ", TIME.sub("T", text))


def _script(text: str) -> str:
    """Return the page's Python, which awaits, as a script that prints the names of the outputs."""
    imports, _, rest = text.partition("\n\n")
    lines = [*rest.splitlines(), "print(list(await run.outputs()))"]
    body = "\n".join(f"    {line}" for line in lines)
    return f"import asyncio\n{imports}\n\nasync def main():\n{body}\n\nasyncio.run(main())\n"
