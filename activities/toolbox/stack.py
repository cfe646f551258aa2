"""Where a tool of somebody's own went wrong: the frames of their code, without Sennit's,
Python's and any values.
"""

import os
import sysconfig
import traceback
from pathlib import Path
from typing import Final, NamedTuple

from sennit.activities.limits import MAX_STACK_CHARACTERS
from sennit.activities.toolbox.redaction import redact

_OURS: Final = str(Path(__file__).resolve().parents[1]) + os.sep
_PYTHON: Final = os.path.realpath(sysconfig.get_path("stdlib")) + os.sep
_LIBRARIES: Final = tuple(
    os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("purelib", "platlib")
)
_NOT_OF_TOOLS: Final = (_PYTHON, *_LIBRARIES, "<")
_KEPT: Final = "sennit_stack"


class Stack(NamedTuple):
    """`text` is the frames as Python prints them: files, lines, functions and source lines, never
    values of variables. `place` is the last one in the tool's own code, such as `prices.py:12, in
    price`. Both are empty without such code.
    """

    text: str = ""
    place: str = ""


def stack_of(error: BaseException) -> Stack:
    """Return the frames of an error from the tool's own code on; those that
    `keep_stack` noted, if it did.
    """
    kept = vars(error).get(_KEPT)
    if isinstance(kept, Stack):
        return kept

    # The call of the tool comes from Sennit's first frame; frames above that are the worker's.
    frames = list(traceback.extract_tb(error.__traceback__))
    for place, frame in enumerate(frames):
        if _below(frame.filename, _OURS):
            del frames[:place]
            break
    inside = [frame for frame in frames if not _below(frame.filename, _OURS)]

    # Libraries that the tool calls are shown between its own frames, and behind them.
    own = [
        place for place, frame in enumerate(inside) if not _below(frame.filename, *_NOT_OF_TOOLS)
    ]
    if not own:
        return Stack()
    text = "".join(traceback.format_list(inside[own[0] :]))
    last = inside[own[-1]]
    place_of_last = f"{Path(last.filename).name}:{last.lineno}, in {last.name}"
    return Stack(redact(text)[-MAX_STACK_CHARACTERS:], place_of_last)


def keep_stack(error: BaseException, stack: Stack) -> None:
    """Note the frames in an error that comes from another process, without them."""
    vars(error)[_KEPT] = stack


def _below(file: str, *folders: str) -> bool:
    return file.startswith(folders) or os.path.realpath(file).startswith(folders)
