"""What a model call is, whichever provider serves it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from sennit.activities.toolbox.redaction import redact
from sennit.workflows.plan.language.call_settings import NO_SETTINGS, CallSettings
from sennit.workflows.plan.language.limits import CALL_SECONDS, NO_USAGE, Usage, tokens_in
from sennit.workflows.plan.language.media import MediaKind, MediaType, kind_of
from sennit.workflows.plan.language.nodes import Role
from sennit.workflows.plan.language.text import text_bytes

REPLY_ROOM = 4096
"""Tokens that a prompt leaves to a reply of unknown length: fits the context of
small local models too.
"""

OPEN_REPLY_TOKENS = 12_288
"""What a call without a limit is booked with while it is open, and what it is granted under a
budget. Nobody knows the worst case; few replies are longer, with what the model thinks.
"""

THINKING_TOKENS = 8192
"""Room beside `max_output_tokens` before a reply is cut here: some servers do not
count the model's thinking.
"""

CALL_MARGIN_SECONDS = 1.0
"""By how much a call ends before the activity that makes it, so that it
fails with its own error.
"""

Stop = Literal["end", "tools", "length", "pause"]
"""Why a reply ended: it is complete, it asks for tools, it was cut at its limit, or it goes on in
another call, which no provider returns.
"""


class ProviderError(Exception):
    """A model call that failed. `retryable` says whether the same call may succeed later,
    `retry_after` in how many seconds at the earliest, where that is known.

    The class name is the error type that people see; the message is at most 500
    characters, useful words first, without this worker's secrets. `usage` is what the call
    used before it failed. `is_attempt` says that it has used up an attempt of its node; a
    call that was only put off has not.
    """

    pressure: ClassVar[float] = 0.0
    """How much such an error slows the provider's other calls; see `limiter`."""

    def __init__(
        self, message: str, *, retryable: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(redact(message[:4000])[:500])
        self.retryable = retryable
        self.retry_after = retry_after
        self.usage = NO_USAGE
        self.is_attempt = True


@dataclass(frozen=True, slots=True)
class MediaPart:
    """An image, a PDF or a recording beside a prompt or a result. `data` is its bytes in base64,
    `tokens` about what a model reads of it, `reference` the value that names it in the run.
    """

    content_type: MediaType
    data: str
    tokens: int
    name: str = ""
    reference: dict[str, Any] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """How many bytes it has, at the most."""
        return len(self.data) // 4 * 3

    @property
    def kind(self) -> MediaKind:
        """What people call it."""
        return kind_of(self.content_type)


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A model asks for one call of a tool. `arguments` is an object as a rule; text that is no JSON
    object comes as the model wrote it, for validation to refuse. `fields` are what else its server
    has sent with the call.
    """

    id: str
    name: str
    arguments: Any
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn after the prompt. `calls` are those of an assistant, `call_id` is the
    call that a tool answers.

    `thinking` is that of the assistant's reply, as blocks or as fields of its message, given back
    as it came: some models refuse a turn without it. `origin` is the model that gave it, and no
    other gets it. `media` is shown with the words of a person, or with the result of a tool.
    """

    role: Literal["assistant", "tool", "user"]
    text: str = ""
    calls: tuple[ToolRequest, ...] = ()
    call_id: str = ""
    thinking: tuple[dict[str, Any], ...] = ()
    origin: str = ""
    media: tuple[MediaPart, ...] = ()


class Account(Protocol):
    """Where the calls of one activity are booked."""

    @property
    def put_offs(self) -> int:
        """How often the activity gave way to other calls of the provider, or
        was refused for the rate.
        """
        ...

    async def begin(self, sent: Usage, most: Usage) -> None:
        """A call that sends `sent` and uses `most` at the most is about to go out.
        Raises when it may not.
        """
        ...

    def room(self, sent: Usage, wanted: int) -> int | None:
        """Return how many tokens the reply to a call that sends `sent` may have, where it asks for
        `wanted`; None where nothing limits that. Raises when the prompt alone is too much.
        """
        ...

    def end(self, used: Usage) -> None:
        """The call that was begun last has ended, and used so much."""
        ...


class NoAccount:
    """Books nothing."""

    put_offs = 0

    async def begin(self, sent: Usage, most: Usage) -> None:
        """Do nothing."""

    def room(self, sent: Usage, wanted: int) -> int | None:
        """Limit nothing."""
        del sent, wanted
        return None

    def end(self, used: Usage) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The schema that a server holds a reply to. `system` then stands in the
    place of the request's.

    Where the server takes none, the call goes out without the form.
    """

    schema: dict[str, Any]
    system: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call. `prompt` is the bound text; `template` is the same before references to
    outputs were replaced.

    `inputs` maps each referenced node id to its whole output, in the order of the references.
    `history` are the turns before the prompt, and `messages` those after it; `media` is shown
    with the prompt. `tools` are catalogue entries `{name, description, parameters}` (the
    `schema` of a catalogue is read as `parameters`): what a planner may plan with, for every
    other role what the model may call in its reply. `settings` are what is asked of the model
    beside that; `max_output_tokens` is the longest reply that may be asked for, and None
    leaves that to the server.

    `seconds` is the longest the whole call may take: long, unless the plan says otherwise.
    `first_token_timeout` and `idle_timeout` are the longest silences before the first event and
    between two, in the place of the worker's own. `progress` is told in words how far the call is;
    `on_text` is given each piece of `ModelReply.text` as it arrives, and `on_call` each call of a
    tool as soon as it is whole, if somebody wants to know. `on_restart`, with the reason, is told
    that the pieces so far are no part of it, as the model is asked again. They must not block.
    `account` is told before anything goes out that is paid for, and when it has ended.
    """

    role: Role
    model: str
    goal: str
    prompt: str
    template: str
    inputs: dict[str, Any] = field(default_factory=dict)
    output_schema: dict[str, Any] | None = None
    form: ReplyForm | None = None
    tools: tuple[dict[str, Any], ...] = ()
    progress: Callable[[str], None] = lambda _: None
    history: tuple[Message, ...] = ()
    messages: tuple[Message, ...] = ()
    media: tuple[MediaPart, ...] = ()
    system: str = ""
    settings: CallSettings = NO_SETTINGS
    max_output_tokens: int | None = None
    seconds: float = CALL_SECONDS
    first_token_timeout: float | None = None
    idle_timeout: float | None = None
    on_text: Callable[[str], None] = lambda _: None
    on_call: Callable[[ToolRequest], None] | None = None
    on_restart: Callable[[str], None] = lambda _: None
    account: Account = field(default_factory=NoAccount)

    @property
    def shown(self) -> tuple[MediaPart, ...]:
        """All media of the call: those of its prompt, and what tools have returned."""
        shown = list(self.media)
        for message in self.messages:
            shown += message.media
        return tuple(shown)

    @property
    def callable(self) -> tuple[dict[str, Any], ...]:
        """What the model may call: a planner calls nothing."""
        return self.tools if self.role != "planner" else ()

    @property
    def is_timed(self) -> bool:
        """Whether the plan says how long the call may take: then silence is no
        reason to end it sooner.
        """
        return self.seconds < CALL_SECONDS - CALL_MARGIN_SECONDS


def call_id_of(number: int) -> str:
    """Return the id of a call to which no server has given one that can be kept. Mistral takes no
    others than nine letters and digits.
    """
    return f"call{number:05}"


def tokens_of(*texts: str) -> int:
    """Return about how many tokens texts have."""
    return tokens_in(sum(map(text_bytes, texts)))


def parameters_of(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments in its catalogue entry."""
    found: dict[str, Any] = (
        entry.get("parameters") or entry.get("schema") or {"type": "object", "properties": {}}
    )
    return found


def function_of(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's catalogue entry as OpenAI's servers, and many models, know functions."""
    about = entry.get("description", "")
    return {"name": entry["name"], "description": about, "parameters": parameters_of(entry)}


@dataclass(frozen=True, slots=True)
class ModelReply:
    """`output` is the JSON value the node gets: text, or an object when the role or
    a schema asks for one.

    `text` is what the model wrote, without its thoughts unless it plans, `calls` the tools it asks
    for, `thinking` what `Message` must give back with them, `origin` is the model that was asked,
    `model` what the server says that it has asked. `first_token_ms` is the time from sending the
    request to the first piece of the reply. `warnings` tell people what was done otherwise than
    they asked, what was mended in the reply, and what may be wrong with it.
    """

    output: Any
    usage: Usage = NO_USAGE
    text: str = ""
    calls: tuple[ToolRequest, ...] = ()
    thinking: tuple[dict[str, Any], ...] = ()
    stop: Stop = "end"
    origin: str = ""
    model: str = ""
    first_token_ms: int = 0
    warnings: tuple[str, ...] = ()


class Provider(Protocol):
    """Serves model calls. Never retries by itself: Temporal owns retries."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one call. Raises ProviderError."""
        ...

    async def default_model(self) -> str:
        """Return the model, `provider:name`, that the provider's bare name
        means. Raises ProviderError.
        """
        ...
