"""In which order a script makes its writes to one resource, compared with the order in which they were made.

An edited script, or that of a fork, may take over two writes to one file in another order than they were made: then the
file holds what the script takes for the earlier text. A person decides about that.

Only an order counts that the script has fixed: it was told how one write ended before it called the next. So calls of a
`gather`, and tasks that run side by side, never ask because of how they happened to be timed. A task begins with what
the session that starts it was told, and leaves what it was told itself to the session that awaits it.
"""

from dataclasses import dataclass
from typing import Any

from sennit.activities.programs.made_writes import Caution, Claimant, WriteClaims
from sennit.activities.programs.session import Heard, Session, Writing
from sennit.workflows.plan.compile.execution_plan import EXCLUSIVE
from sennit.workflows.plan.compile.resource_locks import locks_of
from sennit.workflows.plan.language.nodes import ToolNode

_OF_ALL = ("all", "settled")
"""The policies of joins whose end tells the script that all of their inputs have ended."""


@dataclass(slots=True)
class WriteOrder:
    """Follows the writes of one session, and of the tasks that it starts, if an earlier script may have written.
    `claims` is None where a script only runs again over what is recorded elsewhere.
    """

    session: Session
    claims: WriteClaims | None
    tools: dict[str, dict[str, Any]]

    @property
    def _is_followed(self) -> bool:
        session = self.session
        may_be_old = session.again or bool(session.runs)
        return self.claims is not None and may_be_old and not session.repeat_writes

    def call(self, node: ToolNode, clock: int) -> None:
        """Note that the script calls a write, at the time that its clock shows, if its tool writes to a resource."""
        if not self._is_followed or self.claims is None:
            return
        resource = _resource_of(node, self.tools, self.claims.context.checked.docs)
        if not resource:
            return
        self._pass_on(clock)
        wrote = self.session.wrote
        last = max((at for other, at in wrote.items() if _overlap(other, resource)), default=0.0)
        self.session.writing[node.id] = Writing(resource, last=last)

    def start(self, clock: int) -> dict[str, float]:
        """Return what a task begins with that the script starts."""
        self._pass_on(clock)
        return self.session.wrote

    def started(self, task: str, key: str) -> None:
        """Note that the script has started a task, in which it may write."""
        if self._is_followed and any(_may_write(tool) for tool in self.tools.values()):
            self.session.writing[task] = Writing(key=key)

    def join(self, policy: Any, nodes: list[str], key: str) -> None:
        """Note that the script waits for tasks and writes by a join, which is known by its `key`."""
        if policy not in _OF_ALL:
            return
        for name in nodes:
            if name in self.session.writing:
                self.session.writing[name] = self.session.writing[name]._replace(told_by=key)

    def claim(self, name: str, key: str) -> None:
        """Note by which key a write is known that was claimed."""
        writing = self.session.writing.get(name)
        if writing is not None:
            self.session.writing[name] = writing._replace(key=key, told_by=writing.told_by or key)

    async def hear(self) -> None:
        """Read when the writes were made of whose ends the script is about to be told. Raises StoreUnavailable."""
        session, claims = self.session, self.claims
        if not session.writing or claims is None:
            return
        ends = {end.key: end for end in session.fed}
        for name, writing in list(session.writing.items()):
            end = ends.get(writing.told_by)
            # A join that failed ended with the first failure: other writes of it may still run.
            if end is None or (end.status != "succeeded" and writing.told_by != writing.key):
                continue
            del session.writing[name]
            if writing.resource:
                times = {writing.resource: (writing.last, await claims.made_at(writing.key))}
            else:
                times = await claims.left_by_task(session.script, writing.key)
            session.heard += [Heard(end.at, resource, at, last) for resource, (last, at) in times.items() if at]

    def _pass_on(self, clock: int) -> None:
        """Take in the ends of which the script was told by then. They are told in the order of their times."""
        session, later, wrote = self.session, list[Heard](), dict(self.session.wrote)
        for heard in sorted(session.heard, key=lambda each: each.told):
            if heard.told > clock:
                later.append(heard)
                continue
            known = wrote.get(heard.resource, 0.0)
            # One that was called after the latest is the latest now, also if it was made earlier: a person was asked.
            wrote[heard.resource] = heard.at if known == heard.last else max(known, heard.at)
        session.heard, session.wrote = later, wrote

    async def leave(self, clock: int) -> None:
        """Leave to the session that awaits this task what the task was told of, and what it has inherited.
        Safe to repeat. Raises StoreUnavailable.
        """
        session = self.session
        self._pass_on(clock)
        times = {resource: (session.inherited.get(resource, 0.0), at) for resource, at in session.wrote.items()}
        if session.depth and times and self.claims is not None:
            await self.claims.leave_by_task(session.script, session.key, times)

    async def caution(self, name: str, claimant: Claimant, key: str) -> Caution | None:
        """Return what a person has to know of a write that was made before one that the script made first, None if its
        order is that in which it was made. Raises StoreUnavailable.
        """
        writing = self.session.writing.get(name)
        if writing is None or self.claims is None or not writing.last:
            return None
        return await self.claims.out_of_order(claimant, key, writing.resource, writing.last)


def _resource_of(node: ToolNode, tools: dict[str, dict[str, Any]], docs: str | None) -> str:
    """Return which resource a write has for itself: `file:notes.txt`, or the whole kind, as `calendar`."""
    return next((name for name, mode in locks_of(node, tools, docs) if mode == EXCLUSIVE), "")


def _may_write(tool: dict[str, Any]) -> bool:
    return tool.get("effect") == "write" and bool(tool.get("resource"))


def _overlap(one: str, other: str) -> bool:
    """Whether two resources are the same one, or one of them is the whole kind of the other."""
    return one == other or one.startswith(f"{other}:") or other.startswith(f"{one}:")
