"""One call until its server takes it: what each refusal says of the call, and what the
next one does without.

Nothing is learned before a call has gone through: a refusal may be about something else than it
says. What no call has confirmed dies with this one.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sennit.activities.providers.capabilities import NEVER, Capabilities, Lesson, says_nothing
from sennit.activities.providers.errors import CallRefused, ContextTooLong, ServerFailed
from sennit.activities.providers.media import refused_media
from sennit.activities.providers.model import ModelRequest
from sennit.activities.providers.returned_fields import field_names
from sennit.activities.providers.wire_format import WireFormat, Without

LEAST_ROOM = 128
"""Tokens that a reply must have left in the context: a prompt that leaves less is too long."""
UNSAID = "it refused a call, and did not say why"

Body = Callable[[ModelRequest, Without], dict[str, Any]]


@dataclass(slots=True)
class Negotiation:
    """What the next call of a request does `without`, and how many tokens of `room` its
    reply has, 0 for the usual.

    `body` builds a call: a refusal counts only if the call changes by what it asks for.
    """

    request: ModelRequest
    known: Capabilities
    wire: WireFormat
    body: Body
    without: Without = frozenset()
    room: int = 0
    _lessons: list[Lesson] = field(default_factory=list)
    _trials: Iterator[Without] | None = None

    def __post_init__(self) -> None:
        self.without = self.known.without(self.request)

    def take(self, refused: CallRefused | ServerFailed | ContextTooLong) -> None:
        """Take a refusal, after which the call is made again. Raises the refusal if
        there is nothing to change.
        """
        if isinstance(refused, ContextTooLong):
            self._fit(refused)
            return

        # A parameter, by name.
        lesson = self._lesson(refused)
        if lesson is not None and lesson not in self._lessons:
            self._lessons.append(lesson)
            self.without = lesson.applied(self.without)
            return

        # The model takes no such media: nothing is left out of a call that people would miss.
        lacking = refused_media(self.request, str(refused), refused.text)
        if lacking is not None:
            raise lacking from None

        # Not a word on why: each parameter in turn.
        if self._trials is None and isinstance(refused, CallRefused) and says_nothing(refused.text):
            self._trials = iter(self._unnamed())
        trial: Without | None = None
        if self._trials is not None:
            trial = next(self._trials, None)
        if trial is None:
            raise refused
        self.without = trial

    def confirm(self) -> None:
        """The call went through as it is now: what was refused before is learned."""
        for lesson in self._lessons:
            self.known.learn(self.request, lesson)
        named: set[str] = set()
        for lesson in self._lessons:
            named |= lesson.refused
        found = self.without - self.known.without(self.request) - named
        if self._trials is not None and found:
            self.known.learn(self.request, Lesson(found, UNSAID, "unknown"))

    def _fit(self, error: ContextTooLong) -> None:
        """Leave the reply what a context has beside the prompt. Raises the error
        where that is too little.
        """
        if not error.context:
            raise error
        model = self.request.model
        self.known.learn_context(model, error.context)
        room = error.context // 4
        if error.prompt:
            room = error.context - error.prompt
        if room < LEAST_ROOM or (self.room and room >= self.room):
            raise error
        self.room = room

    def _lesson(self, refused: CallRefused | ServerFailed) -> Lesson | None:
        """Return what a refusal says of the call's parameters, None if it says nothing of them.

        A field of the refusal that names a parameter counts before its words. An error of the
        server's own must also say that it does not take them.
        """
        if isinstance(refused, ServerFailed) and not NEVER.search(refused.text):
            return None
        reason = str(refused).partition("): ")[2]
        fields = _parameters(refused)
        own: set[str] = set()
        in_words: set[str] = set()
        for name, words in self.wire.optional.items():
            if any(re.fullmatch(words, field) for field in fields):
                own.add(name)
            if re.search(words, refused.text):
                in_words.add(name)
        named = self._changing(fields | own) or self._changing(in_words)
        if named:
            return Lesson(frozenset(named), reason, refused.text)

        # A field of an earlier turn: one that was left out is wanted, and one that was sent is not.
        for inner, name in field_names(self.request.messages).items():
            if re.search(rf"\b{re.escape(inner)}\b", refused.text):
                lesson = Lesson(
                    frozenset({name}), reason, refused.text, wanted=name in self.without
                )
                if self._is_another(lesson.applied(self.without)):
                    return lesson
        return None

    def _changing(self, names: set[str]) -> set[str]:
        """Return the parameters without which the call is another one."""
        return {name for name in names if self._is_another(self.without | {name})}

    def _is_another(self, without: Without) -> bool:
        return self.body(self.request, without) != self.body(self.request, self.without)

    def _unnamed(self) -> list[Without]:
        """Return what to leave out where a refusal names nothing: each parameter in
        turn, then all of them.
        """
        changes: list[Without] = []
        for name in self.wire.optional:
            without = self.without | {name}
            if self._is_another(without):
                changes.append(without)
        if len(changes) > 1:
            changes.append(frozenset[str]().union(*changes))
        return changes


def _parameters(refused: CallRefused | ServerFailed) -> set[str]:
    """Return the parameters that a field of a refusal names: those of the body, and
    `system` for its role.
    """
    named = set[str]()
    if not isinstance(refused, CallRefused):
        return named
    for written in refused.parameters:
        name = re.split(r"[.\[]", written)[0]
        is_role = name == "messages" and "system" in refused.text
        named.add("system" if is_role else name)
    return named
