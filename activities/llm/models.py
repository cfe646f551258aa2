"""The models of a worker: which serves a call, when the next of a list takes over, and what
every call is held to.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Self, get_args

from sennit.activities.limits import MAX_CALLS_PER_SECOND, MAX_KEPT_CAPABILITIES_BYTES
from sennit.activities.llm.metrics import CallMeter
from sennit.activities.nodes.tracing import model_call
from sennit.activities.providers import prices
from sennit.activities.providers.anthropic import Anthropic
from sennit.activities.providers.capabilities import FORGOTTEN_AFTER
from sennit.activities.providers.errors import (
    ExtraMissing,
    KeyRefused,
    MediaRefused,
    QuotaUsedUp,
    RateLimited,
    SchemaMismatch,
    UnknownModel,
)
from sennit.activities.providers.http_provider import HttpProvider
from sennit.activities.providers.limiter import Limiter
from sennit.activities.providers.media import check_taken, lacks
from sennit.activities.providers.model import ModelReply, ModelRequest, Provider, ProviderError
from sennit.activities.providers.offline import Offline
from sennit.activities.providers.openai import OpenAI
from sennit.activities.providers.pydantic_ai.provider import PydanticAI
from sennit.activities.providers.settings import ModelSettings, PlanFormat, Server
from sennit.activities.providers.throttle import Throttle
from sennit.activities.providers.wire_format import WireFormat
from sennit.activities.toolbox.redaction import mask
from sennit.workflows.messages.queues import PYDANTIC_AI, llm_queue
from sennit.workflows.plan.bounded_cache import BoundedCache
from sennit.workflows.plan.language.call_settings import NO_SETTINGS, CallSettings
from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.limits import NO_USAGE
from sennit.workflows.plan.language.media import MediaKind
from sennit.workflows.plan.language.nodes import Role
from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.text import format_names

OFFLINE = ("offline",)
"""What serves a role for which a run has no models."""
TRIES = 2
"""Attempts that a model gets before the next of its list."""

_TAKEN_OVER_AT_ONCE = (ExtraMissing, KeyRefused, MediaRefused, QuotaUsedUp, UnknownModel)
_WIRES: Mapping[str, type[WireFormat]] = {"openai": OpenAI, "anthropic": Anthropic}
_LIMITER_BYTES = 4_000
_Remote = HttpProvider | PydanticAI


class Models:
    """Serves every model call of a worker process."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        settings: ModelSettings | None = None,
        meter: CallMeter | None = None,
    ) -> None:
        self._providers = providers
        self._settings = settings or ModelSettings()
        self._meter = meter
        self._refused: BoundedCache[str, dict[str, float]] = BoundedCache(
            MAX_KEPT_CAPABILITIES_BYTES
        )
        """The kinds of media that a model's server has refused, where tools had
        returned them, and since when.
        """
        self._limiters: BoundedCache[str, Limiter] = BoundedCache(
            MAX_KEPT_CAPABILITIES_BYTES, lambda _: _LIMITER_BYTES
        )

    @classmethod
    def of(cls, settings: ModelSettings, meter: CallMeter | None = None) -> Self:
        prices.use(settings.prices)
        remote = {name: _remote(name, server) for name, server in settings.servers.items()}
        return cls({"offline": Offline(), **remote}, settings, meter)

    @property
    def providers(self) -> tuple[str, ...]:
        """The providers there are; each has a queue."""
        return tuple(self._providers)

    @property
    def has_servers(self) -> bool:
        """Whether some role is served by a model, and not by the rules alone."""
        names: list[str] = []
        for role in get_args(Role):
            names += self._settings.models(role)
        return any(name not in OFFLINE for name in names)

    @property
    def rates(self) -> dict[str, int]:
        """The calls a minute of each provider's queue, where it is configured."""
        return {llm_queue(name): calls for name, calls in self._settings.rates.items()}

    @property
    def plan_format(self) -> PlanFormat:
        """How planners write."""
        return self._settings.plan_format

    async def chosen(self, model: str = "") -> dict[Role, list[str]]:
        """Return every role's models by their full names; `model`, where a run names one, in the
        place of the settings.

        Raises UnknownModel, KeyRefused or what a server says, and ValueError for
        a `model` that is none.
        """
        full: dict[str, str] = {}
        chosen: dict[Role, list[str]] = {}
        for role, names in self.wanted(model).items():
            chosen[role] = []
            for name in names:
                # A provider alone stands for its usual model, which its server is asked for once.
                if name not in full:
                    full[name] = name
                    if ":" not in name:
                        full[name] = await self._provider(name).default_model()
                chosen[role].append(full[name])
        return chosen

    def wanted(self, model: str = "") -> dict[Role, list[str]]:
        """Return the same without asking a server. Raises ValueError for a `model` that is none."""
        settings = self._settings.for_run(model)
        return {role: list(settings.models(role)) for role in get_args(Role)}

    def settings(self, closer: CallSettings | None = None) -> dict[Role, CallSettings]:
        """Return the settings of each role's calls where some are set, those of a run in
        the place of the role's.
        """
        merged: dict[Role, CallSettings] = {}
        for role in get_args(Role):
            settings = self._settings.calls.get(role, NO_SETTINGS).under(closer)
            if settings != NO_SETTINGS:
                merged[role] = settings
        return merged

    async def complete(
        self, request: ModelRequest, names: Sequence[str], attempt: int = 1
    ) -> ModelReply:
        """Answer a call by one of `names`: each in turn has two attempts, and the last
        one all that are left.

        A model that is unknown, that takes no such media, or whose key or quota is refused, gives
        way to the next at once. The reply has its cost and fits the schema. Raises ProviderError.
        """
        first = min((attempt - 1) // TRIES, len(names) - 1)
        for name in names[first:-1]:
            try:
                return await self._answer(replace(request, model=name))
            except _TAKEN_OVER_AT_ONCE as error:
                request.on_restart(f"another model is asked: {error}")
            except RateLimited as error:
                error.is_attempt = True  # the next model of the list takes over
                raise
        return await self._answer(replace(request, model=names[-1]))

    def context(self, names: Sequence[str]) -> int:
        """Return the tokens that prompt and reply may have together, whichever of the models serves
        a call; 0 where no server or setting has said so.
        """
        known = [remote.known.context(name) for name, remote in self._remotes(names)]
        return min(filter(None, known), default=0)

    def lacking(self, names: Iterable[str], settings: CallSettings) -> tuple[str, ...]:
        """Return a sentence on each setting that one of these models is known to take none of."""
        sentences: list[str] = []
        for name in names:
            if name in OFFLINE:
                sentences += _unsent(name, settings.names, "the rules read no settings")
        for name, remote in self._remotes(names):
            lacking = [setting for setting in settings.names if setting in remote.lacks]
            sentences += _unsent(name, lacking, "its API has none")
        return tuple(sentences)

    def notes(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return what this worker has learned of these models from calls that were
        refused, a sentence each.
        """
        notes: list[str] = []
        for name, remote in self._remotes(names):
            notes += remote.known.notes(name)
        return tuple(notes)

    def _remotes(self, names: Iterable[str]) -> Iterator[tuple[str, _Remote]]:
        """Yield the models that servers have, each with its server."""
        for name in names:
            provider = self._providers.get(name.partition(":")[0])
            if isinstance(provider, _Remote):
                yield name, provider

    async def close(self) -> None:
        """Close what connections there are."""
        for provider in self._providers.values():
            if isinstance(provider, _Remote):
                await provider.close()

    def _provider(self, model: str) -> Provider:
        name = model.partition(":")[0]
        if name not in self._providers:
            raise UnknownModel(f"{model!r} is no model; there are {', '.join(self._providers)}")
        return self._providers[name]

    def _limiter(self, model: str) -> Limiter:
        """Return what slows the calls of a model's server. Behind pydantic-ai,
        each maker has its own.
        """
        name, _, rest = model.partition(":")
        if name == PYDANTIC_AI and ":" in rest:
            name = f"{name}:{rest.partition(':')[0]}"
        return self._limiters.get_or_make(name, lambda: Limiter(name, self._throttle(name)))

    def _throttle(self, provider: str) -> Throttle:
        """Return the pace of a provider's calls. The rules of this worker have none."""
        if provider in OFFLINE:
            return Throttle(MAX_CALLS_PER_SECOND)
        calls_a_minute = self._settings.rates.get(provider.partition(":")[0])
        if not calls_a_minute:
            return Throttle(None)
        return Throttle(calls_a_minute / 60)

    def _with_results_named(self, request: ModelRequest) -> tuple[ModelRequest, tuple[str, ...]]:
        """Return a request without the media that tools have returned and that its model is known
        not to take, and what people should know of that. The words of the results name them.
        """
        model = request.model
        refused = self._refused_kinds(model)
        lacking: list[str] = []
        for kind in _kinds_of_results(request):
            if kind in refused or lacks(model, kind):
                lacking.append(kind)
        if not lacking:
            return request, ()
        return _without_media(request, lacking), (_takes_none(request.model, lacking),)

    def _without_results(
        self, request: ModelRequest, refused: MediaRefused
    ) -> tuple[ModelRequest, tuple[str, ...]]:
        """Return the same for a call that was refused for its media, without all that tools
        have returned. Raises the refusal, if no tool has returned any: nothing that a person
        wants shown is left out.

        Only what the server says of the model is remembered, and only for an hour: one broken image
        takes no images from the calls after it.
        """
        kinds = _kinds_of_results(request)
        if not kinds:
            raise refused
        learned: dict[str, float] = {}
        for kind in kinds:
            if kind in refused.kinds:
                learned[kind] = time.monotonic()
        if learned:
            known = self._refused_kinds(request.model)
            self._refused.put(request.model, known | learned)
        request.on_restart(f"the model is asked again: {refused}")
        note = (
            f"what tools have returned is named to {request.model} and not shown in one call: "
            f"{refused}"
        )
        if len(learned) == len(kinds):
            note = _takes_none(request.model, kinds)
        return _without_media(request, kinds), (note,)

    def _refused_kinds(self, model: str) -> dict[str, float]:
        """Return the kinds of media that a model's server has refused within
        the last hour, and when.
        """
        known = self._refused.get(model) or {}
        oldest = time.monotonic() - FORGOTTEN_AFTER
        return {kind: since for kind, since in known.items() if since > oldest}

    async def _answer(self, request: ModelRequest) -> ModelReply:
        provider = self._provider(request.model)
        limiter = self._limiter(request.model)
        outcome = "ok"
        reply = None
        try:
            async with limiter.admitted(put_offs=request.account.put_offs):
                if ":" not in request.model:
                    request = replace(request, model=await provider.default_model())
                check_taken(request)
                request, named = self._with_results_named(request)
                # What was cut off before is paid, whoever serves it now.
                await request.account.begin(NO_USAGE, NO_USAGE)
                with model_call(request) as record:
                    try:
                        reply = _masked(await provider.complete(request))
                    except MediaRefused as refused:
                        request, named = self._without_results(request, refused)
                        reply = _masked(await provider.complete(request))
                    reply = replace(reply, warnings=(*reply.warnings, *named))
                    record(reply)
                    if request.output_schema is not None and not reply.calls:
                        _fit(reply, request.output_schema)
        except ProviderError as error:
            outcome = type(error).__name__
            if reply is not None:
                error.usage = reply.usage
            if self._meter is not None:
                self._meter.pressed(limiter)
            raise
        finally:
            if self._meter is not None:
                self._meter.called(request.model, outcome, reply)
        return reply


def _remote(name: str, server: Server) -> _Remote:
    if name == PYDANTIC_AI:
        return PydanticAI(server)
    return HttpProvider(_WIRES[name](), server)


def _takes_none(model: str, kinds: Sequence[str]) -> str:
    """Return the sentence on a model that takes no media of these kinds."""
    return (
        f"{model} takes no {format_names(kinds)}: what tools have returned is named to it and not "
        "shown"
    )


def _unsent(model: str, settings: Iterable[str], why: str) -> list[str]:
    return [f"`{setting}` is not sent to {model}: {why}" for setting in settings]


def _kinds_of_results(request: ModelRequest) -> list[MediaKind]:
    """Return the kinds of media that tools have returned."""
    kinds: set[MediaKind] = set()
    for message in request.messages:
        for part in message.media:
            kinds.add(part.kind)
    return sorted(kinds)


def _without_media(request: ModelRequest, kinds: Collection[str]) -> ModelRequest:
    """Return a request without the media of these kinds that tools have returned."""
    messages = []
    for message in request.messages:
        seen = tuple(part for part in message.media if part.kind not in kinds)
        messages.append(replace(message, media=seen))
    return replace(request, messages=tuple(messages))


def _masked(reply: ModelReply) -> ModelReply:
    """Return a reply without this worker's secrets: a server may repeat
    the key that it was sent.
    """
    calls = []
    for call in reply.calls:
        arguments = mask(call.arguments)
        fields = mask(call.fields)
        calls.append(replace(call, arguments=arguments, fields=fields))
    return replace(
        reply,
        output=mask(reply.output),
        text=mask(reply.text),
        calls=tuple(calls),
        thinking=mask(reply.thinking),
    )


def _fit(reply: ModelReply, schema: dict[str, object]) -> None:
    for where, sentence in violations(reply.output, schema):
        raise SchemaMismatch(f"the model's output {place_of(where)}: {sentence}", retryable=True)
