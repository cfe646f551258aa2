"""Kills its worker with SIGKILL where a program goes on: once, if there is a file `die` in SENNIT_STATE, `before` the
script runs or `after` its new calls are stored. Named as a module of tools.
"""

import os
import signal
from pathlib import Path
from typing import Any

from doubles.tools import nap

from sennit.activities.programs.advance import Programs

DIE = Path(os.environ.get("SENNIT_STATE", ".")) / "die"
TOOLS = (nap,)
_advance = Programs.advance


async def _dying(self: Programs, context: Any, *calls: Any) -> Any:
    moment = DIE.read_text() if DIE.exists() and context.call.session else ""
    output = await _advance(self, context, *calls) if moment != "before" else None
    if moment:
        DIE.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return output


setattr(Programs, "advance", _dying)  # noqa: B010
