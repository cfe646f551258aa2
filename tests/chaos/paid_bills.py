"""What runs that pay bills have returned, and what was paid: never more than one of their scripts pays, however each
was edited, ended and forked.
"""

from collections import Counter
from collections.abc import Iterator

from chaos.bills import Bills, Version, most_payments
from chaos.ledger import Ledger
from chaos.person import Watch


def wrong_bills(watches: list[Watch], ledger: Ledger) -> Iterator[str]:
    """Yield what is wrong with runs that pay the same bills: one run, and the forks of it in order."""
    bills = watches[0].case.bills
    assert bills is not None
    begun = list[Version]()
    for seen in watches:
        begun += _begun(seen)
        yield from _wrong_end(seen)
    # Only what a person has repeated after a look at the ledger may be there once more.
    repeats = sum((seen.repeats for seen in watches), Counter[str]())
    allowed = most_payments(begun, bills.reminder) + repeats
    needed = _needed(bills, watches)
    for text in sorted({*allowed, *most_payments(bills.versions, bills.reminder)}):
        paid = ledger.paid(text)
        if not needed[text] <= paid <= allowed[text]:
            names = ", ".join(f"{version.number} ({version.change}; {version.way})" for version in begun)
            bounds = f"at least {needed[text]} and at most {allowed[text]} allowed"
            yield f"{text} was paid {paid} times, {bounds}, by versions {names} of {watches[0].case.name}"


def _begun(seen: Watch) -> tuple[Version, ...]:
    """Return the versions that a run may have had, also those of edits that the person had no answer to."""
    bills = seen.case.bills
    assert bills is not None
    return bills.stretches[seen.case.stretch].versions[: 1 + seen.edits_sent]


def _wrong_end(seen: Watch) -> Iterator[str]:
    name, status = seen.case.name, seen.report.get("status")
    if seen.is_stopped and (status in ("done", "partial") or seen.problem.startswith("CANCELED")):
        return
    # A write may be cut off, so that nobody knows whether it was made. If the edited script does not make it, the run
    # has its answer all the same, but must not count as done.
    is_in_doubt = any(write["status"] == "unknown" for write in seen.report.get("writes", ()))
    expected_status = "partial" if is_in_doubt else "done"
    if seen.problem or status != expected_status:
        yield f"{name} ended as {seen.problem or status}, last blocked on: {seen.blocked or 'nothing'}"
        return
    if is_in_doubt and "nobody knows whether" not in (seen.report["problem"] or ""):
        yield f"{name} does not say why it is partial: {seen.report['problem']}"
    answer = seen.report["answer"]
    number = answer.get("version") if isinstance(answer, dict) else None
    versions = {version.number: version for version in _begun(seen)[seen.edited :]}
    if number not in versions:
        yield f"{name} answered {answer!r}, which is of none of the versions {list(versions)}"
        return
    expected = {"version": number, "paid": sorted(versions[number].payments.elements()), "slept": True}
    if {**answer, "reminded": None} != {**expected, "reminded": None}:
        yield f"{name} answered {answer!r}, not {expected!r}"


def _needed(bills: Bills, watches: list[Watch]) -> Counter[str]:
    """Return how often each payment must be there, since the last run has ended."""
    last = watches[-1]
    if last.report.get("status") != "done" or not isinstance(last.report["answer"], dict):
        return Counter()
    version = bills.versions[last.report["answer"]["version"]]
    # A run before was refused, and its script has caught that: nothing was made, so that its fork must make it.
    answers = [seen.report.get("answer") or {} for seen in watches]
    reminder = Counter({bills.reminder: 1}) if any(answer.get("reminded") for answer in answers) else Counter[str]()
    was_refused = any(answer.get("reminded") is False for answer in answers[:-1])
    return version.payments + (Counter({bills.reminder: 1}) if was_refused else reminder)
