"""Pastes fresh outputs and pictures into docs/examples.md and docs/programs.md. By hand, when they are meant to change:

PYTHONPATH=.:tests .venv/bin/python tests/examples/paste.py
"""

import asyncio
import tempfile
from pathlib import Path

from doubles.example_user import example_user
from doubles.examples_page import PAGE, PROGRAMS, pasted

from sennit.starter.dev.binary import obtain
from sennit.starter.dev.server import DevServer


async def main() -> None:
    """Run everything on a server of its own and write the pages."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        binary = await obtain(pinned_only=True)
        server = DevServer(binary, place / "t.db", place / "server.log", port=0, headless=True)
        await server.start()
        try:
            with example_user(server.address, place) as user:
                for page in (PAGE, PROGRAMS):
                    page.write_text(await asyncio.to_thread(pasted, page, user))
        finally:
            await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
