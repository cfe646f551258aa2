"""Makes a run's answer from stored outputs."""

from dataclasses import dataclass
from typing import Any

from activities.artifacts import ArtifactStore, encode
from activities.charter import Library
from workflows.contracts import ConcludeCall, Conclusion
from workflows.evidence import split_evidence
from workflows.plan.references import bind, parse_reference

ANSWER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Concluding:
    """Binds answers on this worker."""

    store: ArtifactStore
    library: Library

    async def conclude(self, home: str, call: ConcludeCall) -> Conclusion:
        """Return the answer; an output that is not there reads as null. Raises BindError, BodyMissing."""
        checked = await self.library.plan(home, call.plan)
        values = {name: await self.library.value(home, digest) for name, digest in call.refs.items()}
        values |= {"input": checked.inputs, "goal": checked.goal}
        answer = _bound(checked.answer, values)
        body = encode(answer)
        if len(body) > ANSWER_BYTES:
            ref = await self.store.put(home, body)
            cut = body[:ANSWER_BYTES].decode(errors="ignore")
            return Conclusion(answer=f"{cut}\n[cut: the whole answer has {len(body):,} bytes]", ref=ref)
        text, evidence = split_evidence(answer)
        return Conclusion(answer=text, evidence=evidence)


def _bound(expression: Any, values: dict[str, Any]) -> Any:
    """Bind an answer part by part, so that one missing output leaves a null and not nothing."""
    if isinstance(expression, dict):
        return {name: _bound(part, values) for name, part in expression.items()}
    if isinstance(expression, list):
        return [_bound(part, values) for part in expression]
    whole = parse_reference(expression) if isinstance(expression, str) else None
    if whole is not None and whole.node not in values:
        return None
    return bind(expression, lambda name: values.get(name))
