"""Where a tool of somebody's own went wrong: the frames of their code, without Sennit's, Python's and any values."""

import os
import sysconfig
import traceback
from pathlib import Path
from typing import Final, NamedTuple

from sennit.activities.limits import MAX_STACK_CHARACTERS
from sennit.activities.toolbox.redaction import redact

_OURS: Final = str(Path(__file__).resolve().parents[1]) + os.sep
_PYTHON: Final = os.path.realpath(sysconfig.get_path("stdlib")) + os.sep
_LIBRARIES: Final = tuple(os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("purelib", "platlib"))
_KEPT: Final = "sennit_stack"


class Stack(NamedTuple):
    """`text` is the frames as Python prints them: files, lines, functions and source lines, never values of variables.
    `place` is the last one in the tool's own code, such as `prices.py:12, in price`. Both are empty without such code.
    """

    text: str = ""
    place: str = ""


def stack_of(error: BaseException) -> Stack:
    """Return the frames of an error from the tool's own code on; those that `keep_stack` noted, if it did."""
    kept = vars(error).get(_KEPT)
    if isinstance(kept, Stack):
        return kept
    frames = traceback.extract_tb(error.__traceback__)
    ours = next((at for at, frame in enumerate(frames) if _below(frame.filename, _OURS)), 0)
    found = [frame for frame in frames[ours:] if not _below(frame.filename, _OURS)]  # from the tool's call on
    tool_frames = [at for at, frame in enumerate(found) if not _below(frame.filename, _PYTHON, *_LIBRARIES, "<")]
    if not tool_frames:
        return Stack()
    last = found[tool_frames[-1]]
    text = "".join(traceback.format_list(found[tool_frames[0] :]))
    return Stack(redact(text)[-MAX_STACK_CHARACTERS:], f"{Path(last.filename).name}:{last.lineno}, in {last.name}")


def keep_stack(error: BaseException, stack: Stack) -> None:
    """Note the frames in an error that comes from another process, without them."""
    vars(error)[_KEPT] = stack


def _below(file: str, *folders: str) -> bool:
    return file.startswith(folders) or os.path.realpath(file).startswith(folders)
