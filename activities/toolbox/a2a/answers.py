"""What the answers of agents are to plans: an output, or the error of a call."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from a2a.types.a2a_pb2 import Artifact, Message, Part, Task, TaskArtifactUpdateEvent, TaskState
from google.protobuf.json_format import MessageToDict
from pydantic import BaseModel, JsonValue

from sennit.activities.limits import (
    MAX_AGENT_PARTS,
    MAX_MEDIA_BYTES,
    MAX_RESULT_CHARACTERS,
    MAX_SAID_CHARACTERS,
    MAX_SERVER_MESSAGE_BYTES,
    MAX_URL_CHARACTERS,
)
from sennit.activities.toolbox.configuration import is_deep
from sennit.activities.toolbox.errors import A2aFailed, A2aNeedsInput
from sennit.activities.toolbox.media import BadMedia, MediaFile
from sennit.workflows.plan.language.text import printable
from sennit.workflows.plan.limits import MAX_CALL_MEDIA

SETTLED: Final = (
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
    TaskState.TASK_STATE_INPUT_REQUIRED,
    TaskState.TASK_STATE_AUTH_REQUIRED,
)
"""States in which an agent does nothing more before somebody else does something."""
WAITING: Final = (TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED)
"""States in which a task takes another message."""


class AgentAnswer(BaseModel):
    """What an agent has answered: its artifacts, or its message where it has none.

    `text` has the texts, one artifact after the other; `data` its structured parts; `links` where files of it are;
    `media` its images, PDFs and sounds, which a model call takes as `media`. `left_out` names other bytes. `truncated`
    when there was more. `task` is the id by which a later call continues the conversation. `waits` is true if the task
    waits for that: then `text` is what the agent asks.
    """  # noqa: E501 - models read it

    text: str
    data: list[JsonValue] = []
    links: list[str] = []
    media: list[MediaFile] = []
    left_out: list[str] = []
    truncated: bool = False
    task: str = ""
    waits: bool = False


def answer_of_message(message: Message) -> AgentAnswer:
    """Return the output of a call that an agent has answered at once, without a task."""
    return _answer([message.parts], message.task_id)


def answer_of_task(task: Task, *, may_ask: bool) -> AgentAnswer:
    """Return the output of a task that is completed, or that asks something if it may.
    Raises A2aNeedsInput for one that may not, or that waits for a login, and A2aFailed for
    one that has ended otherwise.
    """
    state = task.status.state
    words = task.status.message.parts
    said = text_of(words)[:MAX_SAID_CHARACTERS]
    name = printable(task.id, 200)
    if state == TaskState.TASK_STATE_INPUT_REQUIRED and may_ask:
        return _answer([words], task.id).model_copy(update={"waits": True})
    if state == TaskState.TASK_STATE_INPUT_REQUIRED:
        raise A2aNeedsInput(
            f"its task {name} asks: {said or 'it does not say what'}; a call with `may_ask` "
            "returns the question, and one with `continues` answers it"
        )
    if state == TaskState.TASK_STATE_AUTH_REQUIRED:
        raise A2aNeedsInput(f"its task {name} waits for a login: {said or 'it does not say where'}")
    if state != TaskState.TASK_STATE_COMPLETED:
        ended = TaskState.Name(state).removeprefix("TASK_STATE_").lower()
        raise A2aFailed(f"its task {name} is {ended}: {said or 'it does not say why'}")
    parts = [artifact.parts for artifact in task.artifacts]
    answer = _answer(parts, task.id)
    if not task.artifacts and said:
        answer = _answer([words], task.id)
    return answer


def text_of(parts: Iterable[Part]) -> str:
    """Return the text in the parts of one message or artifact: pieces of a stream follow
    each other without a gap.
    """
    return "".join(part.text for part in parts)


class Artifacts:
    """The artifacts of a task, as the events of its stream bring them, of 16 MiB in all."""

    def __init__(self) -> None:
        self._by_id: dict[str, Artifact] = {}
        self._room = MAX_SERVER_MESSAGE_BYTES
        self._is_full = False

    def begin(self, artifacts: Iterable[Artifact]) -> None:
        """Take what a whole task has in the place of what was known."""
        self._by_id = {artifact.artifact_id: artifact for artifact in artifacts}

    def take(self, event: TaskArtifactUpdateEvent) -> None:
        """Add a piece to its artifact, or put a new artifact in the place of one of this id."""
        new = event.artifact
        self._room -= new.ByteSize()
        self._is_full = self._is_full or self._room < 0
        if self._is_full:
            return
        known = self._by_id.get(new.artifact_id)
        if known is None or not event.append:
            self._by_id[new.artifact_id] = new
        else:
            known.parts.extend(new.parts)

    def answer(self, task: Task, *, may_ask: bool) -> AgentAnswer:
        """Return the output of the task, with these artifacts. Raises as `answer_of_task` does."""
        whole = Task()
        whole.CopyFrom(task)
        del whole.artifacts[:]
        whole.artifacts.extend(self._by_id.values())
        answer = answer_of_task(whole, may_ask=may_ask)
        return answer.model_copy(update={"truncated": answer.truncated or self._is_full})


def _answer(groups: Iterable[Iterable[Part]], task: str) -> AgentAnswer:
    texts, collected = list[str](), _Collected()
    for parts in groups:
        known = list(parts)
        collected.take(known)
        text = text_of(known)
        if text:
            texts.append(text)
    text = "\n\n".join(texts)
    return AgentAnswer(
        text=text[:MAX_RESULT_CHARACTERS],
        data=collected.data,
        links=collected.links,
        media=collected.media,
        left_out=collected.left_out,
        truncated=collected.is_cut or len(text) > MAX_RESULT_CHARACTERS,
        task=task[:MAX_URL_CHARACTERS],
    )


class _Collected:
    """What is no text in an answer, as far as a node may keep it."""

    def __init__(self) -> None:
        self.data: list[JsonValue] = []
        self.links: list[str] = []
        self.media: list[MediaFile] = []
        self.left_out: list[str] = []
        self.is_cut = False
        self._room = MAX_MEDIA_BYTES
        self._parts = 0

    def take(self, parts: Iterable[Part]) -> None:
        for part in self._counted(parts):
            kind = part.WhichOneof("content")
            if kind == "raw":
                self._take_bytes(part)
            elif kind == "url":
                self.links.append(part.url[:MAX_URL_CHARACTERS])
            elif kind == "data":
                self._take_data(part)

    def _counted(self, parts: Iterable[Part]) -> Iterator[Part]:
        for part in parts:
            if part.WhichOneof("content") in (None, "text"):
                continue
            self._parts += 1
            if self._parts > MAX_AGENT_PARTS:
                self.is_cut = True
                return
            yield part

    def _take_bytes(self, part: Part) -> None:
        """Take bytes; what they are, they say themselves."""
        size = len(part.raw)
        try:
            media: MediaFile | None = MediaFile.of(part.raw, part.filename)
        except BadMedia:
            media = None
        if media is None or size > self._room or len(self.media) == MAX_CALL_MEDIA:
            self.left_out.append(
                f"{printable(part.media_type, 80) or 'unknown type'}, {size} bytes"
            )
            return
        self._room -= size
        self.media.append(media)

    def _take_data(self, part: Part) -> None:
        try:
            value: Any = MessageToDict(part.data)
        except (ValueError, RecursionError):  # NaN and infinities are no JSON
            self.left_out.append("data that JSON cannot carry")
            return
        if is_deep(value):
            self.left_out.append("data that is nested too deep")
        else:
            self.data.append(value)
