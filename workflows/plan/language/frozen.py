"""What plans are made of: values that cannot change, and ids."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

ID_PATTERN = r"^[A-Za-z][A-Za-z0-9_]{0,39}$"

NodeId = Annotated[str, Field(pattern=ID_PATTERN)]


class Frozen(BaseModel):
    """A value that cannot change and refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
