"""The file named by SENNIT_MCP: servers in the usual `mcpServers` form, with what plans may use of them."""

from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from activities.toolbox.configuration import Resource, Strict, without_credentials
from activities.toolbox.definition import Effect
from workflows.plan.language.limits import Duration


class ServerDeclaration(Strict):
    """One server: a command that speaks on stdin and stdout, or a URL of streamable HTTP.

    `tools` are patterns of the names to offer, all by default. `effects` gives the effect of tools by name or pattern;
    without an entry a tool writes, whatever the server says. `resources` says by name what a tool uses.
    In `env` and `headers` `$NAME` stands for a variable of the worker; of the rest of its environment the server gets
    only PATH, HOME and the like.
    """

    type: Literal["stdio", "http", "streamable-http"] | None = None
    command: Annotated[str, Field(min_length=1)] | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: Annotated[str, Field(pattern=r"^https?://"), AfterValidator(without_credentials)] | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    tools: tuple[str, ...] = ("*",)
    effects: dict[str, Effect] = Field(default_factory=dict)
    resources: dict[str, Resource] = Field(default_factory=dict)
    timeout: Duration = 60.0

    @model_validator(mode="after")
    def _one_transport(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("a server has either a command or a url")
        return self

    def offers(self, tool: str) -> bool:
        """Whether to offer the tool of that name."""
        return any(fnmatchcase(tool, pattern) for pattern in self.tools)

    def effect_of(self, tool: str) -> Effect | None:
        """Return the effect of a tool, None if no entry gives it one."""
        if tool in self.effects:
            return self.effects[tool]
        return next((effect for pattern, effect in self.effects.items() if fnmatchcase(tool, pattern)), None)


class Declarations(Strict):
    """The whole file."""

    mcp_servers: Annotated[
        dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")], ServerDeclaration],
        Field(alias="mcpServers"),
    ]
