"""The process that reads scripts: takes requests as lines of JSON and answers each with one.

It has all of its code in memory before it confines itself, so it reads no file afterwards.
"""

import encodings.idna  # noqa: F401 - here, because no module can be imported later
import gc
import json
import math
import resource
import sys
import time
import unicodedata  # noqa: F401 - the parser wants it for names that are not ASCII

from sennit.activities.programs.reading import Unreadable, read
from sennit.activities.sandbox.restrict import restrict
from sennit.workflows.plan.programs.syntax import problems_in

READY = b"ready\n"


def main() -> None:
    """Confine this process to the policy of the first argument, unless it is null; answer until stdin ends. A request
    that takes more than the seconds of processor time of the second argument ends the process.
    """
    policy, seconds = json.loads(sys.argv[1]), float(sys.argv[2])
    problems_in("async def main(x: é, *, y=f'{1}'):\n    serch(x.__é__)\n", {})  # what the first script would import
    gc.freeze()
    try:
        if policy is not None:
            restrict(policy)
    except (OSError, ValueError) as error:
        _write(str(error).encode() + b"\n")
        return
    _write(READY)
    for line in sys.stdin.buffer:
        most = math.ceil(time.process_time() + seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        try:
            name, arguments = json.loads(line)
            answer = {"value": read(name, *arguments)}
        except Unreadable as error:
            answer = {"unreadable": str(error)}
        _write(json.dumps(answer).encode() + b"\n")


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
