"""What an edit or a fork would do, as text: writes first, each by its name,
and then the other calls.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from sennit.starter.limits import MAX_FATE_LINES
from sennit.starter.terminal.text import padded
from sennit.workflows.messages.dry_run import CallFate, DryRunReport, Fate
from sennit.workflows.plan.language.text import one_line

_SAYS: dict[Fate, str] = {
    "taken over": "taken over",
    "in flight": "taken over as it runs",
    "waits": "taken over, waits for you",
    "unknown": "taken over, outcome unknown",
    "made again": "made again",
    "new": "new",
    "cancelled": "cancelled",
    "not called": "not called",
}
"""What becomes of a call, in the order in which people read of it."""
_DAY = 86_400.0
_REST = (
    "the run then waits for calls whose ends are not recorded: the rest is known when it happens"
)


def dry_run_text(report: DryRunReport) -> str:
    """Return a dry run as a person reads it. A call that is not made any more is only
    named if it has written.
    """
    if report.problems:
        return "\n".join(["dry run: it would be refused", *report.problems])
    lines = ["dry run, nothing has been changed:"]
    says = dict(_SAYS)
    if not report.is_whole:
        says["not called"] = "not called yet"
    writes: list[CallFate] = []
    reads: list[CallFate] = []
    for call in report.calls:
        if call.writes:
            writes.append(call)
        elif call.fate != "not called":
            reads.append(call)
    for heading, calls in (("writes", writes), ("other calls", reads)):
        if calls:
            lines += [heading, *_lines(calls, says)]
    if not report.calls:
        lines.append("no call is recorded")
    return "\n".join([*lines, f"in all: {counts_text(report)}", _ending(report)])


def counts_text(report: DryRunReport) -> str:
    """Return how many calls there are of each fate, with `yet` for those that the
    script may still make.
    """
    parts: list[str] = []
    for fate, words in _SAYS.items():
        count = report.counts.get(fate)
        if count:
            parts.append(f"{count} {words}")
    text = ", ".join(parts) or "no calls"
    if report.is_whole:
        return text
    return text.replace("not called", "not called yet")


def _lines(calls: Sequence[CallFate], says: Mapping[Fate, str]) -> Iterator[str]:
    """Yield a line for each call, in columns; of many that are taken over only the first ones."""
    width = max(len(says[call.fate]) for call in calls)
    usual = 0
    for call in calls:
        is_usual = call.fate == "taken over" and not (call.writes or call.asks)
        if is_usual:
            usual += 1
        if not is_usual or usual <= MAX_FATE_LINES:
            fate = padded(says[call.fate], width)
            yield f"  {fate}  {call.node}  {one_line(call.what)}{_details(call)}"
    if usual > MAX_FATE_LINES:
        yield f"  ... and {usual - MAX_FATE_LINES} more that are taken over"


def _details(call: CallFate) -> str:
    """Return when a call ended, whether it asks first, and why."""
    parts: list[str] = []
    if call.at:
        verb = "written" if call.writes else "ended"
        parts.append(f"{verb} {_clock(call.at)}")
    if call.asks:
        parts.append("asks you first")
    if call.why:
        parts.append(one_line(call.why))
    if not parts:
        return ""
    return f"  ({'; '.join(parts)})"


def _ending(report: DryRunReport) -> str:
    if report.stopped:
        return f"the dry run stopped: {one_line(report.stopped)}; the rest is known when it happens"
    if not report.is_whole:
        return _REST
    if report.error:
        return f"the run then fails: {one_line(report.error)}"
    return "the run then ends: nothing else is called"


def _clock(millis: int) -> str:
    """Return a time of day, with the date if it is long ago."""
    at = datetime.fromtimestamp(millis / 1000, UTC)
    is_long_ago = time.time() - millis / 1000 > _DAY
    if is_long_ago:
        return f"{at:%Y-%m-%d %H:%M UTC}"
    return f"{at:%H:%M:%S UTC}"
