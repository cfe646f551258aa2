"""The ledger of effects: what stands between a write that can do harm twice and a second attempt.

Before a call that writes, and whose service honours no idempotency key, an intent is put beside the node's marker in
the artifact store; the marker is its outcome. An attempt that finds an intent without outcome follows one that was cut
off, perhaps after its effect. It fails before any effect of its own, and a person decides.
"""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from activities.nodes.error_mapping import kind_of, message_of
from activities.storage.artifacts import ArtifactStore, digest_of
from activities.toolbox import ToolError
from activities.toolbox.errors import ToolResultError, UnknownOutcome

UNSURE = "whether it took effect is not known"


@dataclass(frozen=True, slots=True)
class EffectLedger:
    """The intents of the runs whose artifacts are in `store`."""

    store: ArtifactStore

    async def enter(self, run_prefix: str, key: str, tool: str, call: Callable[[], Awaitable[Any]]) -> Any:
        """Await `call`, the one attempt at an effect that the idempotency key stands for, and return its result.

        Raises UnknownOutcome without having called anything if an earlier attempt left its intent, and in place of any
        error that leaves open whether there was an effect. A ToolError says that there was none: the intent is taken
        back, and another attempt may try. When this process dies or is stopped, the intent stays.
        """
        intent, own = f"{digest_of(key.encode())}.intent", secrets.token_hex(8).encode()
        if await self.store.mark(run_prefix, intent, own) != own:
            raise UnknownOutcome(f"{tool}: an earlier attempt was cut off; {UNSURE}")
        try:
            return await call()
        except UnknownOutcome:
            raise
        except ToolResultError as error:
            raise UnknownOutcome(f"{message_of(error)}; it has taken effect") from None
        except ToolError:
            await self.store.unmark(run_prefix, intent)
            raise
        except Exception as error:
            raise UnknownOutcome(f"{tool}: {kind_of(error)}: {message_of(error)}; {UNSURE}") from error
