"""What a worker's environment says of models: which serve each role, where their servers are, and the keys.

Keys stay in here and in the requests' headers: no repr, error or log shows one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Literal, Self, get_args
from urllib.parse import urlsplit

from activities.toolbox.configuration import without_credentials
from activities.toolbox.redaction import remember
from workflows.messages.queues import rates_in
from workflows.plan.language.nodes import Role

PlanFormat = Literal["auto", "lines", "json", "program"]
"""How planners write: in lines, in JSON that the model's server holds to a schema of the run's tools, or a script."""

PROVIDERS = ("offline", "openai", "anthropic")
OFFICIAL = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}

_NAME = re.compile(r"[^\s,]{1,110}")
_KEY = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Server:
    """Where a provider's API is. `key` is empty for servers that need none."""

    provider: str
    url: str = field(repr=False)
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        remember(self.key)

    @property
    def key_variable(self) -> str:
        return f"{self.provider.upper()}_API_KEY"

    @property
    def url_variable(self) -> str:
        return f"{self.provider.upper()}_BASE_URL"

    @property
    def official(self) -> bool:
        return self.url == OFFICIAL[self.provider]

    @property
    def lacks_key(self) -> bool:
        """Whether it would refuse every call."""
        return self.official and not self.key

    @property
    def local(self) -> bool:
        """Whether the server is on this machine, where no proxy belongs in between."""
        host = urlsplit(self.url).hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")

    @property
    def shown(self) -> str:
        """The address without anything in it that may be secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """`roles` maps each role to its models in order of preference; a bare provider name is one too. `rates` are the
    calls a minute that a provider takes, `plan_format` is how planners write.
    """

    roles: Mapping[Role, tuple[str, ...]] = field(default_factory=dict)
    servers: Mapping[str, Server] = field(default_factory=dict)
    rates: Mapping[str, int] = field(default_factory=dict)
    plan_format: PlanFormat = "auto"

    @classmethod
    def read(cls, env: Mapping[str, str]) -> Self:
        """Return the settings in `env`. Raises ValueError naming variable and remedy, and the value unless secret."""
        servers = {provider: _server(provider, env) for provider in OFFICIAL}
        usual = _models("SENNIT_MODEL", env) or (_usual(env),)
        roles = {role: _models(f"SENNIT_MODEL_{role.upper()}", env) or usual for role in get_args(Role)}
        return cls(roles, servers, _rates(env), _plan_format(env))

    def keyless(self) -> dict[str, str]:
        """Return the models that need a key and have none, each with the variable of its key."""
        named = {name: self.servers.get(name.partition(":")[0]) for names in self.roles.values() for name in names}
        return {name: server.key_variable for name, server in named.items() if server and server.lacks_key}

    def for_run(self, model: str) -> Self:
        """Return the settings for a run that names its model, or its models. Raises ValueError for what is none."""
        names = _names_in(model, "model")
        return replace(self, roles=dict.fromkeys(get_args(Role), names)) if names else self

    def models(self, role: Role) -> tuple[str, ...]:
        """Return a role's models, the offline rules where nothing is set."""
        return self.roles.get(role, ("offline",))


def _plan_format(env: Mapping[str, str]) -> PlanFormat:
    written = env.get("SENNIT_PLAN_FORMAT", "").strip() or "auto"
    formats: tuple[PlanFormat, ...] = get_args(PlanFormat)
    for known in formats:
        if known == written:
            return known
    raise ValueError(f"SENNIT_PLAN_FORMAT={written!r}: is no format of plans; give auto, lines, json or program")


def _usual(env: Mapping[str, str]) -> str:
    if env.get("OPENAI_BASE_URL", "").strip() or env.get("OPENAI_API_KEY", "").strip():
        return "openai"
    return "anthropic" if env.get("ANTHROPIC_API_KEY", "").strip() else "offline"


def _models(variable: str, env: Mapping[str, str]) -> tuple[str, ...]:
    return _names_in(env.get(variable, ""), variable)


def _names_in(text: str, variable: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        provider, colon, model = name.partition(":")
        if provider not in PROVIDERS or (colon and not _NAME.fullmatch(model)):
            forms = "offline, openai:NAME, anthropic:NAME"
            raise ValueError(f"{variable}={name!r}: is no model; give {forms}, several with commas between")
    return names


def _rates(env: Mapping[str, str]) -> dict[str, int]:
    try:
        return rates_in(env.get("SENNIT_RATES", ""), providers=PROVIDERS, least=1)
    except ValueError as error:
        raise ValueError(f"SENNIT_RATES={error}") from None


def _server(provider: str, env: Mapping[str, str]) -> Server:
    key = env.get(f"{provider.upper()}_API_KEY", "").strip()
    if key and not _KEY.fullmatch(key):
        raise ValueError(f"{provider.upper()}_API_KEY: has a space or another character that no key has")
    variable = f"{provider.upper()}_BASE_URL"
    url = env.get(variable, "").strip().rstrip("/") or OFFICIAL[provider]
    url = url.removesuffix("/v1") if provider == "anthropic" else url
    server = Server(provider, url, key)
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        raise ValueError(f"{variable}: is no URL; give one like http://127.0.0.1:8000/v1") from None
    if not good:
        raise ValueError(f"{variable}={server.shown!r}: must be like http://127.0.0.1:8000/v1")
    try:
        without_credentials(url)
    except ValueError as problem:
        raise ValueError(f"{variable}: {problem}; set {server.key_variable}") from None
    remember(parts.query)
    return server
