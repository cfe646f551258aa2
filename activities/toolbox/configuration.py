"""Files in which an operator declares tools, and the secrets that they name."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from activities.toolbox.errors import ToolSetupError
from workflows.plan.language.validation_messages import first_error

MASK: Final = "[redacted]"
_NAMED: Final = re.compile(r"\$(?:\$|\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_SHORTEST_SECRET: Final = 6

Resource = Annotated[str, Field(pattern=r"^[a-z]+(:.+)?$", max_length=500)]
"""What a tool uses: `kind:key` with arguments as `{name}`, or a kind. The kind of files is `file`, by absolute path."""

Declared = TypeVar("Declared", bound=BaseModel)


class Strict(BaseModel):
    """A part of such a file: frozen, without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def read_declared(path: Path, model: type[Declared]) -> Declared:
    """Return the content of a file. Raises ToolSetupError, one line with the file, the place and the problem."""
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ToolSetupError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise ToolSetupError(": ".join(part for part in (str(path), *first_error(error)) if part)) from None


class Secrets:
    """Variables of this process, filled in where a text names them as `$NAME` or `${NAME}`."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._used: dict[str, None] = {}

    def filled(self, texts: Mapping[str, str], where: str) -> dict[str, str]:
        """Return the texts with every name replaced; `$$` is a dollar sign. Raises ToolSetupError naming the place
        and the variable that is not set."""
        return {name: _NAMED.sub(partial(self._value, f"{where}.{name}"), text) for name, text in texts.items()}

    def _value(self, where: str, found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name is None:
            return "$"
        value = self._env.get(name, "")
        if not value:
            raise ToolSetupError(f"the variable {name} is not set on this worker; it is needed at {where}")
        self._used[value] = None
        return value

    def hidden(self, text: str) -> str:
        """Return `text` without the values put in anywhere; what another side says may repeat them."""
        for value in self._used:
            if len(value) >= _SHORTEST_SECRET:
                text = text.replace(value, MASK)
        return text
