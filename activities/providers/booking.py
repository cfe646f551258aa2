"""What the account of an activity is told of one model call, whoever makes it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sennit.activities.providers.errors import BadReply, ModelTimeout, ReplyCut, ReplyTooLarge
from sennit.activities.providers.model import OPEN_REPLY_TOKENS, ProviderError
from sennit.activities.providers.prices import with_cost
from sennit.activities.providers.reply_builder import ReplyBuilder
from sennit.workflows.plan.language.limits import NO_USAGE, Usage

_CHARGED = (BadReply, ModelTimeout, ReplyCut, ReplyTooLarge)
"""Failures of calls that a server has begun to answer, or may have."""


@asynccontextmanager
async def booked(builder: ReplyBuilder, sent: Usage, limit: int | None) -> AsyncIterator[None]:
    """Tell the account of a request that a call begins, and when it has ended, what it used. The
    call sends `sent`, and its reply has `limit` tokens at most, or nobody knows how many.

    A call that is cancelled or breaks off is charged with what came of it. Raises what the account
    says, before anything is sent.
    """
    request = builder.request
    most = sent._replace(output_tokens=limit if limit is not None else OPEN_REPLY_TOKENS)
    await request.account.begin(with_cost(sent, request.model), with_cost(most, request.model))
    builder.resume(sent.input_tokens)
    used = NO_USAGE
    try:
        yield
        used = builder.usage()
        builder.learn()
    except asyncio.CancelledError:  # the server has the prompt, and may have written something
        builder.is_charged = True
        used = builder.usage()
        raise
    except ProviderError as error:
        builder.is_charged |= isinstance(error, _CHARGED)
        used = builder.usage()
        # A refusal for good was no call.
        error.usage = used = used if used.tokens or error.retryable else NO_USAGE
        raise
    except Exception:  # nobody knows what it is, but what has come was written
        used = builder.usage()
        raise
    finally:
        request.account.end(used)
