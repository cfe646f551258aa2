"""The bearer tokens of callers, from a file of the operator: each token is
the word of one caller.
"""

import hmac
import re
import tomllib
from hashlib import sha256
from pathlib import Path
from stat import S_IRWXO

from mcp.server.auth.provider import AccessToken, TokenVerifier

from sennit.starter.client.errors import Refused
from sennit.starter.limits import LEAST_TOKEN_CHARACTERS

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


class Tokens(TokenVerifier):
    """Knows callers by their tokens. It keeps digests only, and compares them in constant time."""

    def __init__(self, digests: dict[str, bytes]) -> None:
        self._digests = digests

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose token this is, None if it is nobody's."""
        digest = _digest(token)
        caller: str | None = None
        # All of them: an early end would tell how far a guess has come.
        for name, known in self._digests.items():
            if hmac.compare_digest(known, digest):
                caller = name
        if caller is None:
            return None
        return AccessToken(token=token, client_id=caller, scopes=[])


def read_tokens(path: Path) -> Tokens:
    """Return the tokens of a TOML file with lines `caller = "token"`. Raises Refused for a file
    that others may read, and for a name or a token that is none.
    """
    try:
        mode = path.stat().st_mode
        found = tomllib.loads(path.read_text())
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise Refused(f"--tokens {path}: {error}") from None
    if mode & S_IRWXO:
        raise Refused(
            f"--tokens {path}: every user of this machine may read it; change that with: chmod "
            f"600 {path}"
        )

    digests: dict[str, bytes] = {}
    for name, token in found.items():
        if not _NAME.fullmatch(name):
            raise Refused(
                f"--tokens {path}: a caller has 1 to 32 of a-z, 0-9, - and _, not {name[:40]!r}"
            )
        if not isinstance(token, str) or len(token) < LEAST_TOKEN_CHARACTERS or not token.isascii():
            wanted = f"a text of at least {LEAST_TOKEN_CHARACTERS} ASCII characters"
            raise Refused(
                f"--tokens {path}: the token of {name} is not {wanted}; make one with: openssl "
                "rand -hex 24"
            )
        digest = _digest(token)
        if digest in digests.values():
            raise Refused(f"--tokens {path}: two callers have the token of {name}")
        digests[name] = digest
    if not digests:
        raise Refused(
            f'--tokens {path}: it has no token; write a line for each caller: ann = "TOKEN"'
        )
    return Tokens(digests)


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="replace")).digest()
