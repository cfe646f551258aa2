"""What errors of pydantic-ai mean: which of Sennit's each is, whether the call may
be made again, and when.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UserError,
)

from sennit.activities.limits import MAX_WAIT_SECONDS
from sennit.activities.providers.errors import (
    BadReply,
    CallRefused,
    ContextTooLong,
    ExtraMissing,
    KeyRefused,
    ModelRefused,
    ModelTimeout,
    QuotaUsedUp,
    RateLimited,
    ReplyCut,
    ServerFailed,
    ServerUnreachable,
    UnknownModel,
    names_no_model,
    quoted,
    refusal_in,
    wait_in,
    without_own_words,
)
from sennit.activities.providers.model import ProviderError

_RETRIED = frozenset((408, 409, 425))
_SENT_LATER = ("pool", "connect")
"""Phases of a connection in which nothing was sent yet."""
_OF_CREDENTIALS = frozenset(
    (
        # of botocore
        "CredentialRetrievalError", "LoginRefreshRequired", "LoginTokenLoadError",
        "NoAuthTokenError", "NoCredentialsError", "PartialCredentialsError", "SSOTokenLoadError",
        "TokenRetrievalError",
        "UnauthorizedSSOTokenError", "UnknownCredentialError",
        # of google.auth
        "DefaultCredentialsError", "MalformedError", "OAuthError", "ReauthFailError",
        "RefreshError",
    )
)  # fmt: skip
"""Errors of the makers' SDKs, which the library passes on, by name: not every
worker has these SDKs.
"""


@contextmanager
def naming_errors(name: str) -> Iterator[None]:
    """Turn what goes wrong while a model is looked up into UnknownModel, KeyRefused, ExtraMissing,
    or BadReply for what nobody knows.
    """
    try:
        yield
    except UnicodeError as error:  # which is a ValueError
        raise _of_sdk(name, error) from None
    except ImportError as missing:
        raise ExtraMissing(f"{name}: {quoted(str(missing))} where the workers run") from None
    except ValueError as unknown:
        raise UnknownModel(
            f"pydantic-ai has no model {name!r}: {unknown}; change SENNIT_MODEL"
        ) from None
    except UserError as problem:
        words = str(problem).partition(" or pass it via ")[0]
        if words.startswith("Unknown"):
            raise UnknownModel(
                f"pydantic-ai has no model {name!r}: {words}; change SENNIT_MODEL"
            ) from None
        raise KeyRefused(f"{name} cannot be reached from this worker: {quoted(words)}") from None
    except Exception as error:  # noqa: BLE001 - makers' SDKs raise what they like
        raise _of_sdk(name, error) from None


@contextmanager
def mapped_errors(name: str, maker: str) -> Iterator[None]:
    """Turn what goes wrong in a call into a ProviderError."""
    try:
        yield
    except (AgentRunError, UserError) as error:
        raise error_of(name, maker, error) from None
    except NotImplementedError as error:  # so the library refuses what a maker does not take
        raise _refused(f"{name} refuses the call: {quoted(str(error))}", str(error)) from None
    except (ProviderError, TimeoutError):
        raise
    except Exception as error:  # noqa: BLE001 - makers' SDKs raise what they like
        raise _of_sdk(name, error) from None


def _of_sdk(name: str, error: Exception) -> ProviderError:
    """Return what an error means that the library does not know. Of a key, no character is told."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    # So headers are written.
    if isinstance(error, UnicodeEncodeError) and error.encoding == "ascii":
        return KeyRefused(
            f"{name}: the key has characters outside ASCII; check its variable where the workers "
            "run"
        )
    if kinds & _OF_CREDENTIALS and not getattr(error, "retryable", False):
        todo = "check the credentials where the workers run"
        return KeyRefused(
            f"{name} cannot be reached from this worker: {quoted(str(error))}; {todo}"
        )
    said = quoted(f"{type(error).__name__}: {error}")
    return BadReply(f"the call of {name} failed in the maker's SDK: {said}", retryable=True)


def error_of(name: str, maker: str, error: AgentRunError | UserError) -> ProviderError:
    """Return what an error of the library means: its type, one sentence with what to do,
    and whether to try again.
    """
    if isinstance(error, ModelAPIError):
        return _error_of_server(name, maker, error)
    said = quoted(str(error))
    if isinstance(error, ContentFilterError):
        return ModelRefused(f"{name} declined to answer: {said}")
    if isinstance(error, UserError):
        return _refused(f"{name} refuses the call: {said}", str(error))
    return BadReply(f"pydantic-ai cannot read the reply of {name}: {said}", retryable=True)


def _body_of(error: ModelAPIError) -> str:
    """Return the body of a server's answer as text."""
    if isinstance(error.body, str):
        return error.body
    return json.dumps(error.body, default=str)


def _wait_of(error: ModelAPIError, body: str) -> float | None:
    """Return the seconds for which a server asks, in a header or in words;
    None if it asks for none.
    """
    wait = error.retry_after
    if wait is None:
        wait = wait_in(body)
    if wait is None:
        return None
    return min(wait, MAX_WAIT_SECONDS)


def _error_of_server(name: str, maker: str, error: ModelAPIError) -> ProviderError:
    body = _body_of(error)
    words = error.message if error.body is None else refusal_in(body).message
    status = f" ({error.status_code})" if isinstance(error, ModelHTTPError) else ""
    said = f"{status}: {quoted(words)}"
    wait = _wait_of(error, body)

    # What is about the account or the model comes first: the call itself does not matter then.
    if isinstance(error, ModelQuotaExceededError):
        return QuotaUsedUp(f"{maker} has no quota left for this account{said}")
    if isinstance(error, ModelAuthenticationError):
        return KeyRefused(
            f"{maker} refuses the key; check its variables where the workers run{said}"
        )
    is_refusal = isinstance(error, ModelRequestRejectedError)
    if not is_refusal and isinstance(error, ModelHTTPError):
        is_refusal = error.status_code < 500 and error.status_code not in _RETRIED
    if isinstance(error, ModelNotFoundError) or (is_refusal and names_no_model(words.lower())):
        return UnknownModel(
            f"{maker} has no model {name!r}; change SENNIT_MODEL, or `model` in the plan{said}"
        )

    # What may pass.
    if isinstance(error, ModelRateLimitError):
        return RateLimited(f"{maker} limits the rate{said}", retryable=True, retry_after=wait)
    if isinstance(error, ModelTimeoutError | ModelRequestTimeout):
        return ModelTimeout(f"{name}: the reply took too long{said}", retryable=True)
    if isinstance(error, ModelConnectionError):
        if error.phase in _SENT_LATER:
            return ServerUnreachable(f"{maker} cannot be reached{said}", retryable=True)
        return ReplyCut(f"{maker} ended the reply early{said}", retryable=True)

    # What is about the call.
    if isinstance(error, ModelContextWindowExceededError):
        return ContextTooLong(f"the call is too long for {name}{said}")
    if is_refusal:
        return _refused(f"{maker} refuses the call{said}", words)
    return ServerFailed(f"{maker} failed{said}", retryable=True, retry_after=wait)


def _refused(message: str, words: str) -> CallRefused:
    refused = CallRefused(message)
    refused.text = without_own_words(words.lower())
    return refused
