"""The file named by SENNIT_MCP: servers in the form that other clients read, with what
plans may use of them.
"""

import shutil
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, model_validator

from sennit.activities.toolbox.configuration import Resource, without_credentials
from sennit.activities.toolbox.definition import Effect
from sennit.workflows.plan.language.limits import Duration


class _Lenient(BaseModel):
    """A part of the file, which other clients read too: fields that are theirs are left alone."""

    model_config = ConfigDict(frozen=True, extra="allow")


class ServerDeclaration(_Lenient):
    """One server: a command that speaks on stdin and stdout, or a URL of streamable HTTP.

    `tools` are patterns of the names to offer, all by default. `effects` gives the effect of tools
    by name or pattern; without an entry a tool writes, whatever the server says. `resources` says
    by name what a tool uses. In `env` and `headers` `$NAME` stands for a variable of the worker; of
    the rest of its environment the server gets only PATH, HOME and the like. `headers_command`
    prints more headers, which expire. `timeout` is how long a call may be silent: as long as its
    server reports progress it goes on, up to `longest`. `start_timeout` is the time until the
    server has listed its tools.
    """

    type: Annotated[
        Literal["stdio", "http", "streamable-http", "streamable_http", "streamableHttp", "sse"]
        | None,
        Field(validation_alias=AliasChoices("type", "transport", "transportType")),
    ] = None
    command: Annotated[str, Field(min_length=1)] | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: (
        Annotated[str, Field(pattern=r"^https?://"), AfterValidator(without_credentials)] | None
    ) = None
    headers: dict[str, str] = Field(default_factory=dict)
    headers_command: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    disabled: bool = False
    tools: tuple[str, ...] = ("*",)
    effects: dict[str, Effect] = Field(default_factory=dict)
    resources: dict[str, Resource] = Field(default_factory=dict)
    timeout: Duration = 60.0
    longest: Duration = 600.0
    start_timeout: Duration = 20.0

    @model_validator(mode="after")
    def _one_transport(self) -> Self:
        if not self.disabled and self.type == "sse":
            raise ValueError(
                "the transport `sse` is not supported; give the server's URL of streamable HTTP"
            )
        if not self.disabled and (self.command is None) == (self.url is None):
            raise ValueError("a server has either a command or a url")
        if self.headers_command is not None and self.url is None:
            raise ValueError("headers_command is for a server with a url")
        return self

    @property
    def longest_call(self) -> float:
        """Seconds that a call may take, however much progress its server reports."""
        return max(self.timeout, self.longest)

    def offers(self, tool: str) -> bool:
        """Whether to offer the tool of that name."""
        return any(fnmatchcase(tool, pattern) for pattern in self.tools)

    def effect_of(self, tool: str) -> Effect | None:
        """Return the effect of a tool, None if no entry gives it one."""
        if tool in self.effects:
            return self.effects[tool]
        for pattern, effect in self.effects.items():
            if fnmatchcase(tool, pattern):
                return effect
        return None

    def has_command(self, env: Mapping[str, str]) -> bool:
        """Whether its command is there, as the server's environment finds it; true of a URL."""
        if self.command is None:
            return True
        if "/" in self.command:
            return Path(self.cwd or ".", self.command).exists()
        return shutil.which(self.command, path=env.get("PATH")) is not None


class Declarations(_Lenient):
    """The whole file."""

    servers: Annotated[
        dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")], ServerDeclaration],
        Field(validation_alias=AliasChoices("mcpServers", "servers")),
    ]

    @property
    def enabled(self) -> dict[str, ServerDeclaration]:
        return {name: each for name, each in self.servers.items() if not each.disabled}

    def foreign(self) -> list[str]:
        """Return where the file has a field that means nothing here."""
        places = list(self.model_extra or ())
        for name, server in self.enabled.items():
            for field in server.model_extra or ():
                places.append(f"mcpServers.{name}.{field}")
        return places
