"""The settings of a model call: on the call itself, on a run, or on a role. Only what is set
travels, and only that is part of what a call is known by.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer

from sennit.workflows.plan.language.validation_messages import Frozen

Effort = Literal["none", "low", "medium", "high"]
"""How much a model thinks before it replies."""


def _as_list(value: Any) -> Any:
    if isinstance(value, str):
        return (value,)
    return value


class CallSettings(Frozen):
    """What is asked of a model beside the prompt. Names and meanings are those of most providers;
    None leaves a setting to the model's server.

    `max_tokens` is the longest reply, with the thinking where a server counts that as output.
    `stop` are texts before which a reply ends. `system` takes the place of the sentence that says
    what the model's role is.
    """

    max_tokens: int | None = Field(default=None, strict=True, ge=1, le=1_000_000)
    temperature: float | None = Field(default=None, strict=True, ge=0, le=2)
    top_p: float | None = Field(default=None, strict=True, gt=0, le=1)
    stop: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] | None,
        Field(min_length=1, max_length=16),
        BeforeValidator(_as_list),
    ] = None
    seed: int | None = Field(default=None, strict=True, ge=-(2**63), le=2**63 - 1)
    effort: Effort | None = None
    system: str | None = Field(default=None, min_length=1, max_length=32_000)

    @model_serializer(mode="wrap")
    def _set_only(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written = write(self)
        return {name: value for name, value in written.items() if value is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """The settings that are set."""
        return tuple(self.model_dump())

    def under(self, closer: "CallSettings | None") -> "CallSettings":
        """Return these settings with those of `closer` in the place of the same ones here."""
        if closer is None:
            return self
        return CallSettings(**{**self.model_dump(), **closer.model_dump()})


NO_SETTINGS = CallSettings()
