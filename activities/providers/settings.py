"""What a worker's environment says of models: which serve each role, where their
servers are, and the keys.

Keys stay in here and in the requests' headers: no repr, error or log shows one.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from sennit.activities.limits import MAX_PRICE
from sennit.activities.toolbox.configuration import without_credentials
from sennit.activities.toolbox.redaction import remember
from sennit.workflows.messages.queues import PROVIDERS, PYDANTIC_AI, models_in, rates_in
from sennit.workflows.plan.language.call_settings import NO_SETTINGS, CallSettings
from sennit.workflows.plan.language.limits import Duration
from sennit.workflows.plan.language.nodes import Role
from sennit.workflows.plan.language.validation_messages import describe_errors

PlanFormat = Literal["auto", "lines", "program"]
"""How planners write: in lines, or a script."""

OwnPrice = Sequence[int] | Mapping[str, int]
"""A price as in `prices.toml`, or by the names `input`, `output`, `cached` and `cache_write`."""

Prices = Mapping[str, Mapping[str, OwnPrice]]
"""Of models by provider and name."""

OFFICIAL = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}

LEAST_CONTEXT = 1_000
"""Tokens: prompts of this package have no room in less."""

_DURATION: TypeAdapter[float] = TypeAdapter(Duration)
_KEY = re.compile(r"[\x21-\x7e]+")
_SETTINGS = "SENNIT_MODEL_SETTINGS"
_PRICED = {"input", "output", "cached", "cache_write"}
_NO_PRICE = (
    'is no price; write openai."NAME" = [0, 0], or {input = 0, output = 0, cached = 0, '
    "cache_write = 0}"
)


@dataclass(frozen=True, slots=True)
class Server:
    """Where a provider's API is. `key` is empty for servers that need none. `context` is how many
    tokens its models' contexts have at least; 0 says nothing of that. `first_token_timeout` and
    `idle_timeout` are the longest silences, in seconds, before a reply and within it, where the
    operator has set them.
    """

    provider: str
    url: str = field(repr=False)
    key: str = field(default="", repr=False)
    context: int = 0
    first_token_timeout: float | None = None
    idle_timeout: float | None = None

    def __post_init__(self) -> None:
        remember(self.key)

    @property
    def key_variable(self) -> str:
        return f"{self.provider.upper()}_API_KEY"

    @property
    def url_variable(self) -> str:
        return f"{self.provider.upper()}_BASE_URL"

    def address_of(self, path: str) -> str:
        """Return where a path of the API is. What the URL asks for behind a question mark, such as
        a version, stays at the end.
        """
        base, mark, query = self.url.partition("?")
        return f"{base.rstrip('/')}{path}{mark}{query}"

    @property
    def official(self) -> bool:
        return self.url == OFFICIAL.get(self.provider)

    @property
    def needs_key(self) -> bool:
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
    """`roles` maps each role to its models in order of preference; a bare provider name is one too.
    `rates` are the calls a minute that a provider takes, `plan_format` is how planners write,
    `prices` are the operator's own, `calls` are the settings of each role's calls, if some are set.
    """

    roles: Mapping[Role, tuple[str, ...]] = field(default_factory=dict)
    servers: Mapping[str, Server] = field(default_factory=dict)
    rates: Mapping[str, int] = field(default_factory=dict)
    plan_format: PlanFormat = "auto"
    prices: Prices = field(default_factory=dict)
    calls: Mapping[Role, CallSettings] = field(default_factory=dict)

    @classmethod
    def read(cls, env: Mapping[str, str]) -> Self:
        """Return the settings in `env`. Raises ValueError naming variable and remedy, and
        the value unless secret.
        """
        _context(env)
        servers = {provider: _server(provider, env) for provider in OFFICIAL}
        servers[PYDANTIC_AI] = Server(PYDANTIC_AI, "", "", 0, *_silences(env))
        usual = _models("SENNIT_MODEL", env) or (_usual(env),)
        roles: dict[Role, tuple[str, ...]] = {}
        for role in get_args(Role):
            roles[role] = _models(f"SENNIT_MODEL_{role.upper()}", env) or usual
        return cls(
            roles, servers, _rates(env), _plan_format(env), _prices(env), _call_settings(env)
        )

    def keyless(self) -> dict[str, str]:
        """Return the models that need a key and have none, each with the variable of its key."""
        keyless: dict[str, str] = {}
        for names in self.roles.values():
            for name in names:
                server = self.servers.get(name.partition(":")[0])
                if server and server.needs_key:
                    keyless[name] = server.key_variable
        return keyless

    def for_run(self, model: str) -> Self:
        """Return the settings for a run that names its model, or its models. Raises
        ValueError for what is none.
        """
        names = models_in(model, "model=")
        if not names:
            return self
        return replace(self, roles=dict.fromkeys(get_args(Role), names))

    def models(self, role: Role) -> tuple[str, ...]:
        """Return a role's models, the offline rules where nothing is set."""
        return self.roles.get(role, ("offline",))


def _plan_format(env: Mapping[str, str]) -> PlanFormat:
    written = env.get("SENNIT_PLAN_FORMAT", "").strip() or "auto"
    formats: tuple[PlanFormat, ...] = get_args(PlanFormat)
    for known in formats:
        if known == written:
            return known
    raise ValueError(
        f"SENNIT_PLAN_FORMAT={written!r}: is no format of plans; give auto, lines or program"
    )


def _prices(env: Mapping[str, str]) -> Prices:
    written = env.get("SENNIT_PRICES", "").strip()
    if not written:
        return {}
    try:
        found = tomllib.loads(Path(written).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ValueError(f"SENNIT_PRICES={written!r}: cannot be read: {problem}") from None
    for provider, models in found.items():
        if provider not in (*OFFICIAL, PYDANTIC_AI) or not isinstance(models, dict):
            raise ValueError(f"SENNIT_PRICES={written!r}: {provider} {_NO_PRICE}")
        for name, price in models.items():
            wrong = _wrong_price(price)
            if wrong:
                raise ValueError(f'SENNIT_PRICES={written!r}: {provider}."{name}" {wrong}')
    return found


def _wrong_price(price: object) -> str:
    """Return what is wrong with a price of the operator's own; nothing if it is one."""
    amounts: list[object] = []
    if isinstance(price, dict) and {"input", "output"} <= price.keys() <= _PRICED:
        amounts += price.values()
    elif isinstance(price, list) and len(price) in (2, 5):
        amounts += price
    if not amounts:
        return _NO_PRICE
    for amount in amounts:
        if type(amount) is not int or amount < 0:
            return _NO_PRICE
    if any(isinstance(amount, int) and amount > MAX_PRICE for amount in amounts):
        return (
            f"is more than {MAX_PRICE:,} millionths of a dollar for a million tokens, which no "
            "model costs"
        )
    if isinstance(price, dict) and price.get("cached", 0) > price["input"]:
        return "costs more from the cache than without it"
    return ""


def _call_settings(env: Mapping[str, str]) -> dict[Role, CallSettings]:
    """Return the settings of each role's calls: those at the top are every role's, a table
    has those of one role.
    """
    written = env.get(_SETTINGS, "").strip()
    if not written:
        return {}
    try:
        text = written
        if "=" not in written:
            text = Path(written).read_text(encoding="utf-8")
        found = tomllib.loads(text)
    except (OSError, ValueError) as problem:
        raise ValueError(f"{_SETTINGS}={written[:80]!r}: cannot be read: {problem}") from None

    # What stands outside of a table holds for every role.
    roles: tuple[Role, ...] = get_args(Role)
    outside = {name: value for name, value in found.items() if not isinstance(value, dict)}
    every = _settings_in(outside, "")
    for name, value in found.items():
        if isinstance(value, dict) and name not in roles:
            raise ValueError(f"{_SETTINGS}: [{name}] is no role; the roles are {', '.join(roles)}")
    settings: dict[Role, CallSettings] = {}
    for role in roles:
        of_role = every.under(_settings_in(found.get(role, {}), role))
        if of_role != NO_SETTINGS:
            settings[role] = of_role
    return settings


def _settings_in(table: Mapping[str, object], role: str) -> CallSettings:
    try:
        return CallSettings.model_validate(table)
    except ValidationError as error:
        where = f" in [{role}]" if role else ""
        raise ValueError(
            f"{_SETTINGS}{where}: {describe_errors(error, CallSettings.model_fields)}"
        ) from None


def _usual(env: Mapping[str, str]) -> str:
    if env.get("OPENAI_BASE_URL", "").strip() or env.get("OPENAI_API_KEY", "").strip():
        return "openai"
    if env.get("ANTHROPIC_API_KEY", "").strip():
        return "anthropic"
    return "offline"


def _models(variable: str, env: Mapping[str, str]) -> tuple[str, ...]:
    return models_in(env.get(variable, ""), f"{variable}=")


def _rates(env: Mapping[str, str]) -> dict[str, int]:
    try:
        return rates_in(env.get("SENNIT_RATES", ""), providers=PROVIDERS, least=1)
    except ValueError as error:
        raise ValueError(f"SENNIT_RATES={error}") from None


def _context(env: Mapping[str, str]) -> int:
    written = env.get("SENNIT_CONTEXT", "").strip()
    if written and not (
        written.isascii() and written.isdecimal() and int(written) >= LEAST_CONTEXT
    ):
        raise ValueError(
            f"SENNIT_CONTEXT={written!r}: give a number of tokens, at least {LEAST_CONTEXT:,}"
        )
    return int(written or 0)


def _seconds(variable: str, env: Mapping[str, str]) -> float | None:
    """Return the seconds that a variable has as a duration, None where it is not set."""
    written = env.get(variable, "").strip()
    if not written:
        return None
    try:
        return _DURATION.validate_python(written)
    except ValidationError:
        raise ValueError(
            f"{variable}={written!r}: is not a duration; write one such as 30s, 5m or 1h"
        ) from None


def _silences(env: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Return the longest silences before a reply and within it, where they are set."""
    return _seconds("SENNIT_FIRST_TOKEN_TIMEOUT", env), _seconds("SENNIT_IDLE_TIMEOUT", env)


def _server(provider: str, env: Mapping[str, str]) -> Server:
    key = env.get(f"{provider.upper()}_API_KEY", "").strip()
    if key and not _KEY.fullmatch(key):
        raise ValueError(
            f"{provider.upper()}_API_KEY: has a space or another character that no key has"
        )
    variable = f"{provider.upper()}_BASE_URL"
    url = env.get(variable, "").strip().rstrip("/") or OFFICIAL[provider]
    if provider == "anthropic":
        base, mark, query = url.partition("?")
        url = f"{base.rstrip('/').removesuffix('/v1')}{mark}{query}"
    context = 0
    if url != OFFICIAL[provider]:
        context = _context(env)
    server = Server(provider, url, key, context, *_silences(env))
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        raise ValueError(f"{variable}: is no URL; give one like http://127.0.0.1:8000/v1") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_port:
        raise ValueError(f"{variable}={server.shown!r}: must be like http://127.0.0.1:8000/v1")
    try:
        without_credentials(url)
    except ValueError as problem:
        raise ValueError(f"{variable}: {problem}; set {server.key_variable}") from None
    remember(parts.query)
    return server
