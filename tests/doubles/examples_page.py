"""The page of examples: its commands run again, its pictures drawn again."""

import re
from pathlib import Path

from doubles.example_user import ROOT, ExampleUser

PAGE = ROOT / "docs" / "examples.md"
PROGRAMS = ROOT / "docs" / "programs.md"
SITE_ON_PAGE = "127.0.0.1:8765"
SESSION = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^```mermaid\n.*?^```$", re.MULTILINE | re.DOTALL)


def replayed(session: str, user: ExampleUser) -> str:
    """Return what a user sees now who types the commands of a session."""
    commands = re.findall(r"^\$ (.*)$", session, re.MULTILINE)
    seen = [f"$ {each}\n{user.run(each.replace(SITE_ON_PAGE, user.site)).stdout}" for each in commands]
    return "".join(seen).replace(user.site, SITE_ON_PAGE)


def drawn(name: str, user: ExampleUser) -> str:
    """Return the picture of an example plan, as it stands on the page."""
    return f"```mermaid\n{user.run(f'sennit plan draw examples/plans/{name}.yaml --format mermaid').stdout}```"


def sections(text: str) -> dict[str, str]:
    """Return the text of each example plan's section. The heading of another section has several words."""
    _, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    found = dict(zip(parts[::2], parts[1::2], strict=True))
    return {heading: section for heading, section in found.items() if " " not in heading}


def pasted(path: Path, user: ExampleUser) -> str:
    """Return the page with every output and picture as it is now."""
    text = SESSION.sub(lambda found: f"```console\n{replayed(found[1], user)}```", path.read_text())
    if path == PROGRAMS:  # its pictures are drawn by hand
        return text
    for name, section in sections(text).items():
        for picture in PICTURE.findall(section):
            text = text.replace(picture, drawn(name, user))
    return text
