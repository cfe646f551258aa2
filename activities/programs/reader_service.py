"""What the processes do that read scripts: they answer a request with a reading, or
with why there is none.
"""

import encodings.idna  # noqa: F401 - here, because no module can be imported later
import json
import unicodedata  # noqa: F401 - the parser wants it for names that are not ASCII

from sennit.activities.programs.reading import Unreadable, read
from sennit.activities.sandbox.computing_parent import Answer
from sennit.workflows.plan.programs.syntax import problems_in


def prepare() -> None:
    """Load what the first script would import."""
    problems_in("async def main(x: é, *, y=f'{1}'):\n    serch(x.__é__)\n", {})


def answer(request: bytes) -> Answer:
    """Return a reading as JSON. What a script that cannot be read has taken
    may not be given back.
    """
    name, arguments = json.loads(request)
    try:
        reading = read(name, *arguments)
    except Unreadable as error:
        return Answer(json.dumps({"unreadable": str(error)}).encode(), is_last=True)
    return Answer(json.dumps({"reading": reading}).encode())
