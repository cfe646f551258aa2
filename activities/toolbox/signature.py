"""How a function takes the arguments of a call: by name, as its signature says, or all
together in a pydantic model.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticUndefinedAnnotation,
    PydanticUserError,
    create_model,
)

from sennit.activities.toolbox.errors import ToolDefinitionError
from sennit.workflows.plan.language.workspaces import Workspace

_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Signature:
    """`model` checks the arguments. The function takes it as it is if `fields` is None, else each
    of its fields by the name of a parameter. `context` is the parameter for the surroundings of a
    call, if it wants them.
    """

    function: Callable[..., Any]
    model: type[BaseModel]
    fields: Mapping[str, str] | None
    context: str | None
    context_type: type

    def passed(self, checked: Any, context: Any = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the function is called with; without a context, what other
        functions of its arguments are.
        """
        arguments: tuple[Any, ...] = ()
        named: dict[str, Any] = {}
        if self.fields is None:
            arguments = (checked,)
        else:
            named = {name: getattr(checked, field) for name, field in self.fields.items()}
        if self.context and context is not None:
            named[self.context] = context
        return arguments, named

    def __reduce__(self) -> tuple[Any, ...]:
        """Have another process read the signature anew: it cannot import a model
        that was made from one.
        """
        return read_signature, (self.function, self.context_type)


def misuse(function: Callable[..., Any], problem: str) -> ToolDefinitionError:
    return ToolDefinitionError(f"{function.__module__}.{function.__qualname__}: {problem}")


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function that can be a tool; raises ToolDefinitionError."""
    if not inspect.isfunction(function):
        raise ToolDefinitionError(
            f"@tool takes a function, not {type(function).__name__} {function!r}"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise misuse(function, "a tool returns one value; this function yields")
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise misuse(function, f"its annotations cannot be read: {error}") from None


def read_signature(function: Callable[..., Any], context_type: type) -> Signature:
    """Return how a function takes its arguments; the parameter of `context_type` is none.
    Raises ToolDefinitionError.

    A single parameter that is a pydantic model is the model of the arguments, but a workspace is an
    argument by itself. Every other signature becomes a model.
    """
    hints = hints_of(function)
    every = list(inspect.signature(function).parameters.values())

    # The parameter for the surroundings of a call is no argument.
    context: str | None = None
    parameters: list[Parameter] = []
    for parameter in every:
        if hints.get(parameter.name) is not context_type:
            parameters.append(parameter)
        elif context is None and parameter.kind in _NAMED:
            context = parameter.name
        else:
            raise misuse(function, f"one parameter takes the {context_type.__name__}, by its name")

    # A model is passed by position, so only the first parameter can take it.
    if len(parameters) == 1 and parameters[0] is every[0]:
        model = _model_for(parameters[0], hints)
        if model is not None:
            return Signature(function, model, None, context, context_type)
    made, fields = _model_of(function, parameters, hints)
    return Signature(function, made, fields, context, context_type)


def _model_for(parameter: Parameter, hints: Mapping[str, Any]) -> type[BaseModel] | None:
    """Return the model that the only parameter takes, None if the parameter is
    an argument by itself.
    """
    if parameter.kind is Parameter.KEYWORD_ONLY or parameter.default is not Parameter.empty:
        return None
    model = hints.get(parameter.name)
    if model is Workspace or not isinstance(model, type) or not issubclass(model, BaseModel):
        return None
    return model


def _model_of(
    function: Callable[..., Any], parameters: Sequence[Parameter], hints: Mapping[str, Any]
) -> tuple[type[BaseModel], dict[str, str]]:
    """Return a model with a field for each parameter, and the field's name by that of the
    parameter: names such as `schema` and `_x` are not for fields, and are aliases of others.
    """
    fields: dict[str, str] = {}
    made: dict[str, Any] = {}
    for position, parameter in enumerate(parameters):
        name = parameter.name
        if parameter.kind not in _NAMED:
            problem = (
                f"a call names its arguments; {parameter} in the signature has no name that it "
                "could use"
            )
            raise misuse(function, problem)
        if name not in hints:
            raise misuse(function, f"annotate {name!r} with its type, such as `str`")
        default = ... if parameter.default is Parameter.empty else parameter.default
        if name.startswith("_") or hasattr(BaseModel, name):
            field = f"argument_{position}"
            default = Field(default, alias=name)
        else:
            field = name
        fields[name] = field
        made[field] = (hints[name], default)

    config = ConfigDict(extra="forbid", protected_namespaces=())
    try:
        model = create_model(
            function.__name__, __config__=config, __module__=function.__module__, **made
        )
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        problem = error.message.splitlines()[0]
        raise misuse(function, f"its arguments have no JSON schema: {problem}") from None
    return model, fields
