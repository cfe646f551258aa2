"""Keeps credentials out of what a worker says and stores: its log, errors, and what
tools and models give back.

One redactor knows the secrets of this process: the values of variables that are named like keys or
that SENNIT_SECRETS names, the passwords of those that are URLs, and what `remember` was told.
"""

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from html.entities import codepoint2name
from typing import Any, Final, NamedTuple

from sennit.activities.limits import MAX_KEPT_SPELLINGS_BYTES
from sennit.workflows.plan.bounded_cache import BoundedCache

MASK: Final = "[redacted]"

NAMES_VARIABLE: Final = "SENNIT_SECRETS"
"""Names of variables that hold secrets, with commas between them; `*` in a
name stands for anything.
"""

_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORDS = frozenset(
    (
        "APIKEY", "AUTH", "AUTHORIZATION", "BEARER", "COOKIE", "COOKIES", "CRED", "CREDENTIAL",
        "CREDENTIALS", "CREDS", "DSN", "HMAC", "JWT", "KEY", "KEYS", "OAUTH", "OTP", "PASS",
        "PASSCODE", "PASSPHRASE", "PASSWD", "PASSWORD", "PAT", "PIN", "PSK", "PWD", "SALT",
        "SECRET", "SECRETS", "SIGNATURE", "TOKEN", "TOKENS", "WEBHOOK",
    )
)  # fmt: skip
_SECRET_ENDS = (
    "APIKEY",
    "ACCESSKEY",
    "PASSPHRASE",
    "PASSWORD",
    "PASSWD",
    "PRIVATEKEY",
    "SECRET",
    "SECRETKEY",
    "TOKEN",
)
"""Of words that were written together, such as PGPASSWORD."""
_ABOUT_SECRETS = frozenset(
    (
        "COUNT", "DIR", "DIRECTORY", "EXPIRY", "FILE", "FOLDER", "LENGTH", "LIMIT", "MAX", "MIN",
        "NUM", "PATH", "PER", "SIZE", "SOCK", "TIMEOUT", "TTL", "TYPE", "USED",
    )
)  # fmt: skip
"""Words of names whose value says something about secrets: how many tokens, or where a key lies."""
_NO_SECRETS = ("PWD", "OLDPWD", NAMES_VARIABLE)
# Shorter values are words like "true" or "test", and masking those would spoil every line.
_LEAST = 6
_LEAST_WORD = 8  # of letters alone, because people give local servers keys like "ollama"
_LEAST_PIECE = 3
_LEAST_LINE = 16  # of a secret of several lines: shorter ones may be any words
_COLOUR = r"(?:\x1b\[[0-9;]*+m)*+"
_HEADER = re.compile(
    # Behind OPENAI_API_KEY may stand what is wrong with it.
    r"(?P<name>authorization|(?<!(?-i:[A-Z0-9])_)api[-_]key)"
    rf"(?P<between>{_COLOUR}[\\\"'\s]*+{_COLOUR}[:=,]\s*+{_COLOUR}(?:b"
    rf"(?=[\\\"']))?[\\\"']*+{_COLOUR})"
    r"(?P<scheme>(?:bearer|basic|digest|token)\s+)?"
    r"[^\s\\\"',;)\]}\x1b]+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<scheme>\bbearer\s+)[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)
# As model servers quote them.
_KEY = re.compile(r"\b(?:sk|pk|key)-(?=[\w*.-]{0,99}[\d*])[\w*.-]{8,}")
_URL = re.compile(
    r"(?P<before>\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@?#]{0,200}:)(?P<password>[^\s/@]{1,500})(?=@)",
    re.IGNORECASE,
)
_SPELLING_CHARACTERS = 24
"""Characters of one character, however it is spelled."""
_HALF_SPELLING = rf"[\\%&][\\%&#;\w]{{0,{_SPELLING_CHARACTERS}}}\Z"
_ONE_HALF_SPELLING = re.compile(_HALF_SPELLING)
_ESCAPES = {"\n": "n", "\r": "r", "\t": "t"}
_ALPHABETS = str.maketrans(
    {"+": r"(?:[+-]|%2[bB])", "/": r"(?:\\{0,7}/|_|%2[fF])", ".": r"(?:[A-Za-z0-9+/_-]|%2[bBfF])?"}
)
_PIECE = re.compile(r"[A-Za-z0-9]+")

_remembered: dict[str, None] = {}
_changes = 0


def is_secret_name(name: str) -> bool:
    """Whether a variable or header of that name holds a secret: one of its words says
    so, wherever it stands.
    """
    words = {word.upper() for word in _NAME_WORD.findall(name)}
    if name in _NO_SECRETS or words & _ABOUT_SECRETS:
        return False
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDS) for word in words)


def remember(secret: str) -> None:
    """Mask this value from now on, wherever it comes back."""
    global _changes
    if secret.strip() not in _remembered:
        _remembered[secret.strip()] = None
        _changes += 1


def forget(secret: str) -> None:
    """Mask this value no longer: it has expired, and another one has its place."""
    global _changes
    _remembered.pop(secret.strip(), None)
    _changes += 1


def redact(text: str, env: Mapping[str, str] = os.environ) -> str:
    """Return a message without the secrets of this process, and without what
    looks like a credential.
    """
    redactor = _current_redactor() if env is os.environ else Redactor(env, tuple(_remembered))
    return redactor.clean(text)


def mask(value: Any, written: str | None = None) -> Any:
    """Return a JSON value, which is data, without the secrets of this process;
    nothing else in it changes.

    `written` is the value as JSON, if the caller has it: a large value without a
    secret is not walked then.
    """
    redactor = _current_redactor()
    if written is not None and not redactor.may_hold(written):
        return value
    return redactor.mask(value)


def safe_length(text: str) -> int:
    """Return how many characters of a text that goes on can be masked for good: behind
    them a secret may begin.
    """
    return _current_redactor().safe_length(text)


class _Current(NamedTuple):
    """The redactor of this process, with the variables and the count of
    changes that it was made for.
    """

    variables: dict[bytes, bytes]
    changes: int
    redactor: "Redactor"


_current: _Current | None = None


def _current_redactor() -> "Redactor":
    """Return the redactor of this process, made anew when a variable has
    changed or a secret was told.
    """
    global _current
    # Encoded: to decode them all would take longer than to mask a usual result.
    variables = vars(os.environ)["_data"]
    if _current is None or _current.variables != variables or _current.changes != _changes:
        # In one step: another thread may set a variable while these are read.
        seen = dict(variables)
        env = {os.fsdecode(name): os.fsdecode(value) for name, value in seen.items()}
        _current = _Current(seen, _changes, Redactor(env, tuple(_remembered)))
    return _current.redactor


class Redactor:
    """Masks the secrets of `env` and those that are `known`.

    A secret is found as it is and as libraries write it: quoted by JSON or Python, percent-encoded,
    escaped for HTML, in base64, also inside a longer text that was encoded. One of several lines,
    such as a key in PEM, is found by each line of 16 characters too. Values under 6 characters are
    left alone, and words under 8.
    """

    __slots__ = ("_beginnings", "_pieces", "_secrets", "_values")

    def __init__(self, env: Mapping[str, str], known: Iterable[str] = ()) -> None:
        # The secrets and their lines, the longest first: a secret may begin with another one.
        secrets: set[str] = set()
        for secret in (*_secrets_of(env), *known):
            secrets.update(filter(_is_long, (secret, *_secret_lines(secret))))
        longest_first = sorted(secrets, key=lambda secret: (-len(secret), secret))
        encoded: list[str] = []
        for secret in longest_first:
            encoded += _base64_cores(secret)
        self._secrets = longest_first, encoded

        forms = [*map(_any_spelling, longest_first), *map(_any_alphabet, encoded)]
        self._values: re.Pattern[str] | None = None
        if forms:
            self._values = re.compile("|".join(forms))
        # Made when a text that goes on is masked for the first time.
        self._beginnings: list[_Beginning] | None = None

        # A part of each that no spelling changes. Where one has no such part, every
        # text has to be searched.
        pieces: set[str] = set()
        for text in (*longest_first, *encoded):
            pieces.add(max(_PIECE.findall(text), key=len, default=""))
        self._pieces: tuple[str, ...] = ()
        if all(len(piece) >= _LEAST_PIECE for piece in pieces):
            self._pieces = tuple(sorted(pieces))

    def clean(self, text: str) -> str:
        """Return a message with every secret, and all that looks like a
        credential, replaced by a mask.
        """
        text = _URL.sub(rf"\g<before>{MASK}", self._without_values(text))
        text = _HEADER.sub(rf"\g<name>\g<between>{MASK}", text)
        return _KEY.sub(MASK, _BEARER.sub(rf"\g<scheme>{MASK}", text))

    def mask(self, value: Any) -> Any:
        """Return a JSON value with every secret in its texts replaced by a mask."""
        if isinstance(value, str):
            return self._without_values(value)
        if isinstance(value, list | tuple):
            return type(value)(self.mask(item) for item in value)
        if isinstance(value, dict):
            return {self.mask(key): self.mask(item) for key, item in value.items()}
        return value

    def safe_length(self, text: str) -> int:
        """Return how many characters of a text that goes on can be masked for good: behind
        them a secret may begin.
        """
        if self._values is None:
            return len(text)
        if self._beginnings is None:
            self._beginnings = list(self._all_beginnings())
        safe = min(beginning.place_in(text) for beginning in self._beginnings)

        # A whole secret that ends behind this place is not cut in two.
        longest = max(beginning.longest for beginning in self._beginnings)
        for found in self._values.finditer(text, max(0, safe - longest)):
            if found.start() < safe < found.end():
                return found.start()
        return safe

    def _all_beginnings(self) -> Iterator["_Beginning"]:
        secrets, encoded = self._secrets
        for secret in secrets:
            yield _Beginning(list(map(_one_spelling, secret)))
        for core in encoded:
            letters = [_any_alphabet(letter, padded=False) for letter in core]
            yield _Beginning(letters)

    def _without_values(self, text: str) -> str:
        if self._values is None or not self.may_hold(text):
            return text
        return self._values.sub(MASK, text)

    def may_hold(self, text: str) -> bool:
        """Look for a part of each secret that no spelling changes: ten times as fast as
        looking for the spellings.
        """
        if not self._pieces:
            return True
        return any(piece in text for piece in self._pieces)


class _Beginning:
    """Finds the beginning of one secret, however it is spelled, at the end of a text."""

    def __init__(self, letters: Sequence[str]) -> None:
        self.longest = _SPELLING_CHARACTERS * len(letters)
        self._letters = [re.compile(letter) for letter in letters]
        self._first = re.compile(rf"{letters[0]}|{_HALF_SPELLING}")

    def place_in(self, text: str) -> int:
        """Return where the secret may begin that the end of the text is a part of; the
        text's length if nowhere.
        """
        for found in self._first.finditer(text, max(0, len(text) - self.longest)):
            if self._may_go_on(text, found.start()):
                return found.start()
        return len(text)

    def _may_go_on(self, text: str, at: int) -> bool:
        for letter in self._letters:
            if at == len(text):
                return True
            found = letter.match(text, at)
            if found is None:
                return _ONE_HALF_SPELLING.match(text, at) is not None
            at = found.end()
        return False  # it is whole


def _secrets_of(env: Mapping[str, str]) -> Iterator[str]:
    patterns = [pattern.strip() for pattern in env.get(NAMES_VARIABLE, "").split(",")]
    named = list(filter(None, patterns))
    for name, value in env.items():
        if is_secret_name(name) or any(fnmatchcase(name, pattern) for pattern in named):
            yield value.strip()
        for url in _URL.finditer(value):
            yield url["password"]


def _secret_lines(secret: str) -> list[str]:
    """Return the lines of a secret that has several, as a key in PEM: it is printed, and read, line
    by line. What it begins and ends with is the same in all.
    """
    lines = [line.strip() for line in secret.splitlines()]
    if len(lines) < 2:
        return []
    return [line for line in lines if len(line) >= _LEAST_LINE and not line.startswith("-----")]


def _is_long(secret: str) -> bool:
    least = _LEAST_WORD if secret.isalpha() else _LEAST
    return len(secret) >= least


def _any_spelling(secret: str) -> str:
    return "".join(map(_one_spelling, secret))


def _one_spelling(letter: str) -> str:
    return _SPELLINGS.get_or_make(letter, partial(_spellings, letter))


_SPELLINGS = BoundedCache[str, str](MAX_KEPT_SPELLINGS_BYTES)


def _spellings(letter: str) -> str:
    """Return a pattern for one character however it may be written; ASCII letters and
    digits are never escaped.

    Every repetition has a bound, so that no text is slow to search.
    """
    if letter.isascii() and letter.isalnum():
        return letter
    code = ord(letter)
    plain = rf"\\{{0,7}}{re.escape(letter)}"
    percent = "".join(rf"%(?:25){{0,3}}{byte:02x}" for byte in letter.encode("utf-8", "replace"))

    # HTML: by a number, or by a name if it has one.
    entities = rf"#0{{0,4}}{code}|#x0{{0,4}}{code:x}"
    name = codepoint2name.get(code, "")
    if letter == "'":
        name = "apos"
    if name:
        entities += f"|{name}"
    entity = rf"&(?:amp;){{0,3}}(?:{entities});"

    # Escapes of JSON and of Python; behind the first 65,536 characters a letter has two of them.
    units = re.findall("....", letter.encode("utf-16-be").hex())
    escaped = "".join(rf"\\{{1,8}}u{unit}" for unit in units)
    forms = [plain, percent, entity, escaped]
    if code < 256:
        forms.append(rf"\\{{1,8}}x{code:02x}")
    if letter in _ESCAPES:
        forms.append(rf"\\{{1,8}}{_ESCAPES[letter]}")
    if letter == " ":
        forms.append(r"\+")
    return f"(?i:{'|'.join(forms)})"


def _base64_cores(secret: str) -> Iterator[str]:
    """Yield what any base64 of a text that holds the secret has in it: one of three, by where
    in the text it stands.
    """
    body = secret.encode("utf-8", "replace")
    for before in range(3):
        code = b64encode(b"\0" * before + body + b"\0\0").decode()
        # A character of base64 has six bits: only those in which the secret has all six are known.
        end = 8 * (before + len(body))
        core = code[-(-8 * before // 6) : end // 6]
        if end % 6:
            core += "."
        yield core


def _any_alphabet(core: str, *, padded: bool = True) -> str:
    """Return a pattern for base64 in the usual and the URL-safe alphabet, also percent-encoded; a
    final `.` stands for a character that holds only the last bits.
    """
    pattern = core.translate(_ALPHABETS)
    if not padded:
        return pattern
    return f"{pattern}(?:=|%3[dD]){{0,2}}"
