"""Names that the process of a script and the worker agree on."""

from typing import Final

FILE: Final = "script"
"""The file name that a script is compiled with."""
MODULE: Final = "__program__"
"""The module that a script is."""
WHOLE_NAME: Final = "__whole_name__"
"""The field of a class of a script's own module with the name that it has in the whole script."""
