"""In which order a script makes its writes to one resource, compared with the order
in which they were made.

An edited script, or that of a fork, may take over two writes to one file in another order
than they were made: then the file holds what the script takes for the earlier text. A
person decides about that.

Only an order counts that the script has fixed: it was told how one write ended before it called the
next. So calls of a `gather`, and tasks that run side by side, never ask because of how they
happened to be timed. A task begins with what the one that starts it knows, and what it was told
itself is known to the one that awaits it.
"""

from dataclasses import dataclass
from typing import Any

from sennit.activities.programs.made_writes import Caution, Claimant, WriteClaims
from sennit.activities.programs.session import Heard, Session, Writing
from sennit.workflows.plan.compile.execution_plan import EXCLUSIVE
from sennit.workflows.plan.compile.resource_locks import locks_of
from sennit.workflows.plan.language.nodes import ToolNode


@dataclass(slots=True)
class WriteOrder:
    """Follows the writes of `main`, which is the task "", and of each task, if an
    earlier script may have written. `claims` is None where a script only runs again over
    what is recorded elsewhere.
    """

    session: Session
    claims: WriteClaims | None
    tools: dict[str, dict[str, Any]]

    @property
    def _is_followed(self) -> bool:
        session = self.session
        may_be_old = session.again or bool(session.runs)
        return self.claims is not None and may_be_old and not session.repeat_writes

    def call(self, node: ToolNode, task: str, clock: int) -> None:
        """Note that a task calls a write, at the time that its clock shows, if its
        tool writes to a resource.
        """
        if not self._is_followed or self.claims is None:
            return
        resource = _resource_of(node, self.tools, self.claims.context.checked.docs)
        if not resource:
            return
        self._pass_on(clock)
        wrote = self.session.wrote.get(task, {})
        last = 0.0
        for known, at in wrote.items():
            if _overlap(known, resource):
                last = max(last, at)
        self.session.writing[node.id] = Writing(resource, last=last, task=task)

    def begun(self, number: int, task: str, starter: str, clock: int) -> None:
        """Note that a task begins, with what the one knows that starts it."""
        if not self._is_followed:
            return
        self._pass_on(clock)
        session = self.session
        session.branches[number] = task
        known = session.wrote.get(starter)
        if known:
            session.wrote[task] = session.inherited[task] = known

    def joined(self, numbers: list[int], task: str, clock: int) -> None:
        """Note that a task knows how others have ended, and so what these know."""
        self._pass_on(clock)
        session = self.session
        for number in numbers:
            ended = session.branches.get(number)
            if ended is None:
                continue
            before = session.inherited.get(ended, {})
            for resource, at in session.wrote.get(ended, {}).items():
                if at != before.get(resource):
                    last = before.get(resource, 0.0)
                    self._take_in(Heard(clock, resource, at, last, task))

    def claim(self, name: str, key: str) -> None:
        """Note by which key a write is known that was claimed."""
        writing = self.session.writing.get(name)
        if writing is not None:
            self.session.writing[name] = writing._replace(key=key)

    async def hear(self) -> None:
        """Read when the writes were made of whose ends the script is about to be told.
        Raises StoreUnavailable.
        """
        session, claims = self.session, self.claims
        if not session.writing or claims is None:
            return
        ends = {end.key: end for end in session.fed}
        for name, writing in list(session.writing.items()):
            end = ends.get(writing.key)
            if end is None:
                continue
            del session.writing[name]
            at = await claims.made_at(writing.key)
            if at:
                session.heard.append(
                    Heard(end.at, writing.resource, at, writing.last, writing.task)
                )

    def _pass_on(self, clock: int) -> None:
        """Take in the ends of which the script was told by then. They are told in
        the order of their times.
        """
        later = list[Heard]()
        for end in sorted(self.session.heard, key=lambda end: end.told):
            if end.told <= clock:
                self._take_in(end)
            else:
                later.append(end)
        self.session.heard = later

    def _take_in(self, heard: Heard) -> None:
        """Have a task know of a write."""
        session = self.session
        wrote = session.wrote.get(heard.task, {})
        known = wrote.get(heard.resource, 0.0)
        # One that was called after the latest is the latest now, also if it was made
        # earlier: a person was asked.
        last = heard.at if known == heard.last else max(known, heard.at)
        session.wrote[heard.task] = {**wrote, heard.resource: last}

    async def caution(self, name: str, claimant: Claimant, key: str) -> Caution | None:
        """Return what a person has to know of a write that was made before one that the script made
        first, None if its order is that in which it was made. Raises StoreUnavailable.
        """
        writing = self.session.writing.get(name)
        if writing is None or self.claims is None or not writing.last:
            return None
        return await self.claims.out_of_order(claimant, key, writing.resource, writing.last)


def _resource_of(node: ToolNode, tools: dict[str, dict[str, Any]], docs: str | None) -> str:
    """Return which resource a write has for itself: `file:notes.txt`, or the
    whole kind, as `calendar`.
    """
    for name, mode in locks_of(node, tools, docs):
        if mode == EXCLUSIVE:
            return name
    return ""


def _overlap(one: str, other: str) -> bool:
    """Whether two resources are the same one, or one of them is the whole kind of the other."""
    if one == other:
        return True
    return one.startswith(f"{other}:") or other.startswith(f"{one}:")
