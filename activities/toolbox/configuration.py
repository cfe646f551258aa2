"""Files in which an operator declares tools, and the secrets that they name."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sennit.activities.limits import MAX_RESULT_LEVELS
from sennit.activities.toolbox.errors import ToolSetupError
from sennit.activities.toolbox.redaction import is_secret_name, remember
from sennit.workflows.plan.language.json_schema import definitions, resolve, types_of
from sennit.workflows.plan.language.text import printable
from sennit.workflows.plan.language.validation_messages import first_error

_NAMED: Final = re.compile(r"\$(?:\$|\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")

Resource = Annotated[str, Field(pattern=r"^[a-z]+(:.+)?$", max_length=500)]
"""What a tool uses: `kind:key` with arguments as `{name}`, or a kind. The kind of files is
`file`, by absolute path.
"""


def without_credentials(url: str) -> str:
    """Return a URL. Raises ValueError if it has a user name or password, which libraries
    repeat in errors and logs.
    """
    rest = url.partition("://")[2]
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        raise ValueError("the URL has a user name or password in it; leave them out")
    return url


def flaw_of(schema: Any) -> str:
    """Return why no call can fit a schema of arguments that somebody else
    wrote; nothing if one may.
    """
    if is_deep(schema):
        return f"its schema is nested more than {MAX_RESULT_LEVELS} deep"
    defs = definitions(schema)
    found = resolve(schema, defs)
    types = types_of(found, defs)
    if schema is False or (types and "object" not in types):
        return "its arguments are no object"
    required, properties = found.get("required"), found.get("properties")
    known: dict[str, Any] = properties if isinstance(properties, dict) else {}
    for name in required if isinstance(required, list) else ():
        closed = found.get("additionalProperties") is False and not found.get("patternProperties")
        value = known.get(name, not closed)
        if value is False or (isinstance(value, dict) and value.get("enum") == []):
            return (
                f"it needs the argument {printable(str(name), 40)!r}, for which its schema allows "
                "no value"
            )
    return ""


def is_deep(value: Any) -> bool:
    """Whether a JSON value is nested deeper than what is stored may be."""
    level = [value]
    for _ in range(MAX_RESULT_LEVELS):
        inner: list[Any] = []
        for part in level:
            if isinstance(part, dict):
                inner += part.values()
            elif isinstance(part, list):
                inner += part
        level = inner
    return bool(level)


Declared = TypeVar("Declared", bound=BaseModel)


class Strict(BaseModel):
    """A part of such a file: frozen, without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def read_declared(path: Path, model: type[Declared]) -> Declared:
    """Return the content of a file. Raises ToolSetupError, one line with the file, the
    place and the problem.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ToolSetupError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        parts = [part for part in (str(path), *first_error(error)) if part]
        raise ToolSetupError(": ".join(parts)) from None


class Secrets:
    """Variables of this process, filled in where a text names them as `$NAME` or `${NAME}`.
    The redactor is told what was filled in, and what a declaration holds itself under a name
    such as `Authorization`.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def filled(self, texts: Mapping[str, str], where: str) -> dict[str, str]:
        """Return the texts with every name replaced; `$$` is a dollar sign. Raises ToolSetupError
        naming the place and the variable that is not set.
        """
        filled: dict[str, str] = {}
        for name, text in texts.items():
            value = partial(self._value, f"{where}.{name}")
            filled[name] = _NAMED.sub(value, text)
            if is_secret_name(name):
                remember(filled[name])
                remember(filled[name].rpartition(" ")[2])  # behind a scheme such as Bearer
        return filled

    def _value(self, where: str, found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name is None:
            return "$"
        value = self._env.get(name, "")
        if not value:
            raise ToolSetupError(
                f"the variable {name} is not set on this worker; it is needed at {where}"
            )
        remember(value)
        return value
