"""What SENNIT_A2A names: the URL of one agent, or a file that declares agents."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from sennit.activities.toolbox.configuration import (
    Resource,
    Strict,
    read_declared,
    without_credentials,
)
from sennit.activities.toolbox.definition import Effect
from sennit.activities.toolbox.errors import ToolSetupError
from sennit.workflows.plan.language.limits import Duration
from sennit.workflows.plan.language.validation_messages import first_error

ONLY_AGENT = "agent"
"""What the tool is called for an agent of which only the URL is given."""


class AgentDeclaration(Strict):
    """One agent, whose card is below `url` at `/.well-known/agent-card.json`.

    What an agent does nobody here knows, so a message is a write unless `effect` says otherwise.
    `description` tells planners what the agent is for, in the place of its card. In `headers`
    `$NAME` stands for a variable of the worker; `headers_command` prints more headers, which
    expire. `timeout` is how long one answer may take, and how long a stream may be silent;
    `longest` is how long the whole task may take.
    """

    url: Annotated[
        str, Field(pattern=r"^https?://[^/?#]+[^?#]*$"), AfterValidator(without_credentials)
    ]
    description: Annotated[str, Field(max_length=2_000)] = ""
    effect: Effect = "write"
    resource: Resource | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    headers_command: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    env: dict[str, str] = Field(default_factory=dict)
    timeout: Duration = 60.0
    longest: Duration = 600.0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.env and self.headers_command is None:
            raise ValueError("env is for headers_command, which is not given")
        return self


class Declarations(BaseModel):
    """The whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agents: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")], AgentDeclaration]


def declared_agents(place: Path | str) -> dict[str, AgentDeclaration]:
    """Return the agents by the names of their tools. Raises ToolSetupError
    naming what to correct.
    """
    if isinstance(place, Path):
        return read_declared(place, Declarations).agents
    try:
        return {ONLY_AGENT: AgentDeclaration(url=place)}
    except ValidationError as error:
        raise ToolSetupError(first_error(error)[1]) from None
