"""Wrong lines that the tests must catch. Each mutant replaces one text, which stands once in its file, by another."""

from dataclasses import dataclass

SCHEDULING = "workflows/plan/scheduling"
TESTS = "tests/workflows/plan/scheduling"


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old` becomes `new` in `file`; at least one of `tests` must fail then."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied_to(self, source: str) -> str:
        """Return the source with the wrong line. Raises ValueError when the right one does not stand there once."""
        if source.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.old!r} stands {source.count(self.old)} times in {self.file}")
        return source.replace(self.old, self.new)


MUTANTS = (
    Mutant(
        "step: the end of an old generation counts",
        f"{SCHEDULING}/step.py",
        "if state.status[unit] != RUNNING or state.generation[unit] != event.generation:",
        "if state.status[unit] != RUNNING:",
        (f"{TESTS}/test_step.py", f"{TESTS}/test_retry.py"),
    ),
    Mutant(
        "step: the window has room for one less",
        f"{SCHEDULING}/step.py",
        "state.running + len(units) > state.window:",
        "state.running + len(units) >= state.window:",
        (f"{TESTS}/test_ready.py",),
    ),
    Mutant(
        "step: a draining run starts nodes",
        f"{SCHEDULING}/step.py",
        "if state.draining or state.running",
        "if state.running",
        (f"{TESTS}",),
    ),
    Mutant(
        "admission: a false condition is true",
        f"{SCHEDULING}/admission.py",
        "        if not holds:",
        "        if holds is None:",
        (f"{TESTS}",),
    ),
    Mutant(
        "admission: a write needs no approval",
        f"{SCHEDULING}/admission.py",
        "(spec.approval and node not in state.approved)",
        "(spec.approval and node in state.approved)",
        (f"{TESTS}",),
    ),
    Mutant(
        "admission: a failed item does not fail its map",
        f"{SCHEDULING}/admission.py",
        "if state.status[item] in (FAILED, CANCELLED)]",
        "if state.status[item] == CANCELLED]",
        (f"{TESTS}",),
    ),
    Mutant(
        "joins: a quorum closes one early",
        f"{SCHEDULING}/joins.py",
        "    if good >= wanted:",
        "    if good >= wanted - 1:",
        (f"{TESTS}/test_joins.py",),
    ),
    Mutant(
        "joins: `all` goes on without a lost input",
        f"{SCHEDULING}/joins.py",
        "        if good + open_inputs < total:",
        "        if good + open_inputs < 0:",
        (f"{TESTS}/test_joins.py",),
    ),
    Mutant(
        "joins: inputs are taken in the order of their ends",
        f"{SCHEDULING}/joins.py",
        "    good = [node for node in spec.inputs if state.status[node] == SUCCEEDED]",
        "    good = [node for node in reversed(spec.inputs) if state.status[node] == SUCCEEDED]",
        (f"{TESTS}/test_joins.py",),
    ),
    Mutant(
        "budget: a start may overshoot what others hold",
        f"{SCHEDULING}/budget.py",
        "return used + held + wanted > limit and (held > 0 or used >= limit)",
        "return used + wanted > limit and (held > 0 or used >= limit)",
        (f"{TESTS}/test_budget.py",),
    ),
    Mutant(
        "budget: what a killed attempt may have used is free",
        f"{SCHEDULING}/budget.py",
        "self.spent.add(used if used is not None else wanted)",
        "self.spent.add(used if used is not None else Amounts())",
        (f"{TESTS}/test_budget.py",),
    ),
    Mutant(
        "budget: a sub-agent's part is not set aside",
        f"{SCHEDULING}/budget.py",
        "        self.reserve(unit, replace(own, **limits))",
        "        self.reserve(unit, own)",
        (f"{TESTS}/test_budget.py",),
    ),
    Mutant(
        "locks: an exclusive lock is shared",
        f"{SCHEDULING}/ready.py",
        "        if holders < 0 or (exclusive and holders):",
        "        if holders < 0:",
        (f"{TESTS}/test_ready.py",),
    ),
    Mutant(
        "locks: a lock is never given back",
        f"{SCHEDULING}/ready.py",
        "        state.held[name] -= -1 if exclusive else 1",
        "        state.held[name] -= 0",
        (f"{TESTS}/test_ready.py",),
    ),
    Mutant(
        "ready: the longest path is started last",
        f"{SCHEDULING}/ready.py",
        "    heappush(state.heap, (priority, rank, unit))",
        "    heappush(state.heap, (priority, -rank, unit))",
        (f"{TESTS}/test_ready.py",),
    ),
    Mutant(
        "completion: a fallback value is not used",
        f"{SCHEDULING}/completion.py",
        "    if fallback is not None:",
        "    if fallback is not None and item:",
        (f"{TESTS}",),
    ),
    Mutant(
        "retry: readers of a changed output are kept",
        f"{SCHEDULING}/retry.py",
        "    same = state.previous_result.pop(node) == reset.signature(state, node)",
        "    same = bool(state.previous_result.pop(node))",
        (f"{TESTS}/test_retry.py",),
    ),
    Mutant(
        "snapshot: budgets are forgotten",
        f"{SCHEDULING}/snapshot.py",
        "    state.budget = ",
        "    _ = ",
        (f"{TESTS}/test_snapshot.py",),
    ),
    Mutant(
        "binding: substituted text is read for references again",
        "workflows/plan/language/references.py",
        'return found[0] if new is None else new.replace("$", "$$")',
        "return found[0] if new is None else new",
        ("tests/workflows/plan/language/test_references.py", "tests/activities/nodes/test_binding.py"),
    ),
    Mutant(
        "binding: an index past the end gives the last item",
        "workflows/plan/language/references.py",
        "isinstance(step, int) and step < len(here):",
        "isinstance(step, int) and here:",
        ("tests/workflows/plan/language/test_references.py",),
    ),
    Mutant(
        "parser: brackets of another kind close a call",
        "workflows/plan/planner_format/tokens.py",
        "        if sign != wanted:",
        "        if sign != wanted and not self._closers:",
        ("tests/workflows/plan/planner_format/test_lines.py",),
    ),
    Mutant(
        "parser: a backslash before a quote is dropped",
        "workflows/plan/planner_format/tokens.py",
        "    return _ESCAPED.get(sign, found[0])",
        '    return _ESCAPED.get(sign, "")',
        ("tests/workflows/plan/planner_format/test_lines.py",),
    ),
    Mutant(
        "guard: addresses inside IPv6 are not looked at",
        "activities/http/addresses.py",
        "    if any(is_blocked(inner) for inner in _embedded(address)):",
        "    if any(is_blocked(inner) for inner in ()):",
        ("tests/activities/http/test_addresses.py", "tests/security/test_ssrf.py"),
    ),
    Mutant(
        "guard: credentials in a URL are sent",
        "activities/http/addresses.py",
        '    if parsed.userinfo or "@" in authority:',
        "    if False:",
        ("tests/activities/http/test_addresses.py",),
    ),
    Mutant(
        "guard: `..` is a folder like others",
        "activities/toolbox/paths.py",
        '    if parts[0].startswith("/") or ".." in parts:',
        '    if parts[0].startswith("/"):',
        ("tests/security/test_path_escapes.py", "tests/activities/toolbox"),
    ),
    Mutant(
        "guard: links are followed out of the folder",
        "activities/toolbox/paths.py",
        "    if not real.is_relative_to(root):",
        "    if not real.is_absolute():",
        ("tests/security/test_path_escapes.py",),
    ),
    Mutant(
        "ledger: an earlier intent is not noticed",
        "activities/nodes/effect_ledger.py",
        "        if await self.store.mark(run_prefix, intent, own) != own:",
        "        if not await self.store.mark(run_prefix, intent, own):",
        ("tests/activities/nodes/test_effect_ledger.py",),
    ),
    Mutant(
        "ledger: a failed write stays open",
        "activities/nodes/effect_ledger.py",
        "            await self.store.unmark(run_prefix, intent)",
        "            pass",
        ("tests/activities/nodes/test_effect_ledger.py",),
    ),
    Mutant(
        "runner: a marker without its output counts",
        "activities/nodes/runner.py",
        "        if reply.ref is None or not await self.store.has(prefix, reply.ref):",
        "        if reply.ref is None:",
        ("tests/activities/nodes",),
    ),
)
