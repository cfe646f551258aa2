"""Makes a run's answer from stored outputs."""

from dataclasses import dataclass
from typing import Any

from sennit.activities.limits import MAX_ANSWER_BYTES_IN_REPORT, MAX_EVIDENCE
from sennit.activities.nodes.replies import encode_output
from sennit.activities.storage.artifacts import ArtifactStore, encode
from sennit.activities.storage.run_context import ArtifactReader
from sennit.workflows.messages.contracts import ConcludeCall, Conclusion, conclusion_of
from sennit.workflows.plan.language.references import BindError, bind
from sennit.workflows.plan.language.text import text_bytes


@dataclass(frozen=True, slots=True)
class RunConcluder:
    """Binds answers on this worker."""

    store: ArtifactStore
    library: ArtifactReader

    async def conclude(self, run_prefix: str, call: ConcludeCall) -> Conclusion:
        """Return the answer; an output that is not there reads as null. Raises BodyMissing, and
        OutputRefused for an answer that the store does not take.

        The answer is partial if one of the outputs in it is.
        """
        checked = await self.library.plan(run_prefix, call.plan)
        values: dict[str, Any] = {}
        partial = False
        for name, digest in call.refs.items():
            values[name] = await self.library.value(run_prefix, digest)
            partial = partial or conclusion_of(values[name]).partial
        named = {**values, "input": checked.inputs, "goal": checked.goal}
        whole = _bound(checked.answer, named)
        conclusion = conclusion_of(whole)
        conclusion = conclusion.model_copy(update={"partial": conclusion.partial or partial})

        # A long answer stays in the store, and the report has its beginning.
        answer = conclusion.answer
        evidence = conclusion.evidence
        if isinstance(answer, str):
            body = answer.encode()
        else:
            body = encode(answer)
        quoted = sum(text_bytes(piece.quote) for piece in evidence)
        if len(body) + quoted <= MAX_ANSWER_BYTES_IN_REPORT:
            return conclusion
        ref = await self.store.put(run_prefix, encode_output(whole))
        if len(body) > MAX_ANSWER_BYTES_IN_REPORT:
            cut = body[:MAX_ANSWER_BYTES_IN_REPORT].decode(errors="ignore")
            answer = (
                f"{cut}\n[cut: the whole answer has {len(body):,} bytes; `sennit output` reads it]"
            )
        cut_short = {"answer": answer, "evidence": evidence[:MAX_EVIDENCE], "ref": ref}
        return conclusion.model_copy(update=cut_short)


def _bound(expression: Any, values: dict[str, Any]) -> Any:
    """Bind an answer part by part, so that one missing output leaves a null and not nothing."""
    if isinstance(expression, dict):
        return {name: _bound(part, values) for name, part in expression.items()}
    if isinstance(expression, list):
        return [_bound(part, values) for part in expression]
    try:
        return bind(expression, values.__getitem__)
    except (BindError, KeyError):
        return None
