"""Wrong lines that the tests must catch. Each mutant replaces one text, which stands once in its file, by another."""

from dataclasses import dataclass

SCHEDULING = "workflows/plan/scheduling"


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
        "if not state.runs(unit, event.generation):",
        "if not state.has_status(unit, RUNNING):",
        (
            "tests/workflows/plan/scheduling/test_retry.py::test_a_node_that_runs_is_cancelled_and_its_late_result_is_ignored",
        ),
    ),
    Mutant(
        "step: the window has room for one less",
        f"{SCHEDULING}/step.py",
        "(state.activities >= state.window and",
        "(state.activities + 1 >= state.window and",
        ("tests/workflows/plan/scheduling/test_ready.py::test_the_window_counts_units",),
    ),
    Mutant(
        "step: a draining run starts nodes",
        f"{SCHEDULING}/step.py",
        "            state.draining\n            or (state",
        "            (state",
        ("tests/workflows/plan/scheduling/test_ready.py::test_while_a_run_drains_nothing_starts",),
    ),
    Mutant(
        "speculation: a chain is as likely as its last step",
        "workflows/plan/speculation/speculator.py",
        "probability = first.probability * follower.probability",
        "probability = follower.probability",
        ("tests/workflows/plan/speculation/test_speculator.py::test_a_chain_is_as_probable_as_all_its_steps_together",),
    ),
    Mutant(
        "speculation: what was made behind an early call is made again behind the real one",
        "workflows/plan/speculation/speculator.py",
        "            if self._was_made_behind(self._taken_over.get(unit), follower):\n                continue\n",
        "",
        (
            "tests/workflows/plan/speculation/test_speculator.py::test_behind_the_real_call_no_follower_begins_that_began_behind_the_early_one",
        ),
    ),
    Mutant(
        "fusion: what feeds an early join shares an activity",
        "workflows/plan/fusion/rules.py",
        "if node in graph.early or graph",
        "if graph",
        (
            "tests/workflows/plan/fusion/test_sharing.py::test_nothing_below_a_join_that_may_close_early_shares_an_activity",
        ),
    ),
    Mutant(
        "fusion: a node that is read outside has others behind it",
        "workflows/plan/fusion/islands.py",
        "if node in members and not self._outside(node, members):",
        "if node in members:",
        (
            "tests/workflows/plan/fusion/test_sharing.py::test_a_chain_runs_in_one_activity_up_to_a_node_that_something_else_reads",
        ),
    ),
    Mutant(
        "admission: a false condition is true",
        f"{SCHEDULING}/admission.py",
        "        if not holds:",
        "        if holds is None:",
        (
            "tests/workflows/plan/scheduling/test_propagation.py::test_a_false_condition_skips",
            "tests/workflows/plan/scheduling/test_retry.py::test_a_condition_is_decided_anew_on_the_new_facts",
        ),
    ),
    Mutant(
        "admission: a write needs no approval",
        f"{SCHEDULING}/admission.py",
        "return spec.approval and state.units[unit].approved is None",
        "return spec.approval and state.units[unit].approved is not None",
        (
            "tests/workflows/plan/scheduling/test_admission.py::test_the_writes_of_a_map_are_approved_together_or_one_by_one",
            "tests/workflows/plan/scheduling/test_propagation.py::test_a_write_waits_for_approval_and_a_rejected_one_fails",
        ),
    ),
    Mutant(
        "admission: a failed item does not fail its map",
        f"{SCHEDULING}/admission.py",
        "if state.units[item].status in (FAILED, CANCELLED)]",
        "if state.units[item].status == CANCELLED]",
        (
            "tests/workflows/plan/scheduling/test_admission.py::test_an_item_that_fails_fails_the_map_when_the_others_have_ended",
            "tests/workflows/plan/scheduling/test_admission.py::test_to_retry_a_map_runs_only_the_items_that_failed",
        ),
    ),
    Mutant(
        "joins: a quorum closes one early",
        f"{SCHEDULING}/joins.py",
        "    if ok >= wanted:",
        "    if ok >= wanted - 1:",
        (
            "tests/workflows/plan/scheduling/test_joins.py::test_first_takes_the_first_value_and_cancels_the_others",
            "tests/workflows/plan/scheduling/test_joins.py::test_first_fails_when_no_input_has_a_value",
        ),
    ),
    Mutant(
        "joins: `all` goes on without a lost input",
        f"{SCHEDULING}/joins.py",
        "        if ok + open_inputs < total:",
        "        if ok + open_inputs < 0:",
        (
            "tests/workflows/plan/scheduling/test_joins.py::test_all_fails_as_soon_as_one_input_has_no_value_while_the_others_finish",
            "tests/workflows/plan/scheduling/test_joins.py::test_a_join_that_fails_does_what_its_on_error_says",
        ),
    ),
    Mutant(
        "joins: a manifest stands in the inputs of any number of consumers",
        f"{SCHEDULING}/joins.py",
        "if len(reference) * max(1, times) <= MAX_MANIFEST_BYTES:",
        "if len(reference) <= MAX_MANIFEST_BYTES:",
        ("tests/workflows/plan/scheduling/test_manifests.py::test_with_many_consumers_it_is_stored_once",),
    ),
    Mutant(
        "joins: inputs are taken in the order of their ends",
        f"{SCHEDULING}/joins.py",
        "    ok = [node for node in inputs_of(state, join) if state.units[node].status == SUCCEEDED]",
        "    ok = [node for node in reversed(inputs_of(state, join)) if state.units[node].status == SUCCEEDED]",
        (
            "tests/workflows/plan/scheduling/test_joins.py::test_all_waits_for_every_input_and_takes_their_values_in_inputs_order",
            "tests/workflows/plan/scheduling/test_joins.py::test_settled_closes_when_every_input_has_ended_however",
        ),
    ),
    Mutant(
        "budget: a start may overshoot what others hold",
        f"{SCHEDULING}/budget.py",
        "return used + held + wanted > limit and (held > 0 or used >= limit)",
        "return used + wanted > limit and (held > 0 or used >= limit)",
        (
            "tests/workflows/plan/scheduling/test_budget.py::test_as_many_start_as_the_budget_may_hold",
            "tests/workflows/plan/scheduling/test_budget.py::test_what_a_call_did_not_use_is_there_for_the_next",
        ),
    ),
    Mutant(
        "budget: what a killed attempt may have used is free",
        f"{SCHEDULING}/budget.py",
        "self.spent.add(used if used is not None else wanted)",
        "self.spent.add(used if used is not None else Amounts())",
        (
            "tests/workflows/plan/scheduling/test_budget.py::test_attempts_are_calls_and_what_nobody_knows_counts_in_full",
            "tests/workflows/plan/scheduling/test_budget.py::test_sub_agents_share_what_is_left_and_give_back_what_they_do_not_use",
        ),
    ),
    Mutant(
        "budget: a sub-agent's part is not set aside",
        f"{SCHEDULING}/budget.py",
        "        self.reserve(unit, part)",
        "        self.reserve(unit, reserved)",
        (
            "tests/workflows/plan/scheduling/test_budget.py::test_sub_agents_share_what_is_left_and_give_back_what_they_do_not_use",
        ),
    ),
    Mutant(
        "locks: an exclusive lock is shared",
        f"{SCHEDULING}/locks.py",
        "        return not self.holders or (mode == self.mode and mode != EXCLUSIVE)",
        "        return not self.holders or mode == self.mode",
        ("tests/workflows/plan/scheduling/test_ready.py::test_an_exclusive_lock_is_held_by_one_node_at_a_time",),
    ),
    Mutant(
        "locks: a lock is never given back",
        f"{SCHEDULING}/ready.py",
        "    del lock.holders[unit]",
        "    del unit",
        (
            "tests/workflows/plan/scheduling/test_ready.py::test_an_exclusive_lock_is_held_by_one_node_at_a_time",
            "tests/workflows/plan/scheduling/test_ready.py::test_a_shared_lock_is_held_by_many_but_not_beside_an_exclusive_one",
        ),
    ),
    Mutant(
        "ready: the longest path is started last",
        f"{SCHEDULING}/ready.py",
        "    return priority, rank, unit",
        "    return priority, -rank, unit",
        (
            "tests/workflows/plan/scheduling/test_ready.py::test_the_lowest_priority_number_then_the_longest_path_then_the_place_in_the_plan_decide",
        ),
    ),
    Mutant(
        "completion: a fallback value is not used",
        f"{SCHEDULING}/completion.py",
        "    if fallback is not None:",
        "    if fallback is not None and item:",
        (
            "tests/workflows/plan/scheduling/test_joins.py::test_a_join_that_fails_does_what_its_on_error_says",
            "tests/workflows/plan/scheduling/test_admission.py::test_a_map_that_falls_back_for_want_of_its_gathering_gathers_again_too",
        ),
    ),
    Mutant(
        "reset: readers of a changed output are kept",
        f"{SCHEDULING}/reset.py",
        "    return before == signature(state, unit)",
        "    return bool(before)",
        (
            "tests/workflows/plan/scheduling/test_retry.py::test_another_output_runs_those_who_read_it_again_wave_by_wave",
            "tests/workflows/plan/scheduling/test_retry.py::test_a_node_that_fails_when_run_again_blocks_those_who_read_it",
        ),
    ),
    Mutant(
        "snapshot: budgets are forgotten",
        f"{SCHEDULING}/snapshot.py",
        "    state.budget = ",
        "    _ = ",
        ("tests/workflows/plan/scheduling/test_budget.py::test_a_snapshot_keeps_limits_and_what_is_spent",),
    ),
    Mutant(
        "binding: substituted text is read for references again",
        "workflows/plan/language/references.py",
        'return new.replace("$", _DOLLAR)',
        "return new",
        (
            "tests/workflows/plan/language/test_references.py::test_a_text_is_rewritten_only_where_asked_and_what_is_put_in_stays_text",
        ),
    ),
    Mutant(
        "binding: an index past the end gives the last item",
        "workflows/plan/language/references.py",
        "isinstance(step, int) and step < len(here):",
        "isinstance(step, int) and here:",
        ("tests/workflows/plan/language/test_references.py::test_a_path_that_leads_nowhere_says_what_is_there",),
    ),
    Mutant(
        "parser: brackets of another kind close a call",
        "workflows/plan/planner_format/call_text.py",
        "            if sign != wanted:",
        "            if not wanted:",
        (
            "tests/workflows/plan/planner_format/test_lines.py::test_a_line_that_can_be_no_node_is_an_error_that_names_it",
            "tests/workflows/plan/planner_format/test_lines.py::test_only_the_broken_line_is_lost",
        ),
    ),
    Mutant(
        "parser: a backslash before a quote is dropped",
        "workflows/plan/planner_format/call_text.py",
        "    return _ESCAPED.get(sign, found[0])",
        '    return _ESCAPED.get(sign, "")',
        ("tests/workflows/plan/planner_format/test_lines.py::test_arguments_are_json_python_or_single_words",),
    ),
    Mutant(
        "guard: addresses inside IPv6 are not looked at",
        "activities/http/addresses.py",
        "    if any(map(is_blocked, _embedded(address))):",
        "    if any(map(is_blocked, ())):",
        (
            "tests/activities/http/test_addresses.py::test_no_address_that_is_not_public_is_let_through",
            "tests/security/test_ssrf.py::test_no_url_reaches_what_is_inside",
        ),
    ),
    Mutant(
        "guard: credentials in a URL are sent",
        "activities/http/addresses.py",
        '    if parsed.userinfo or "@" in authority:',
        "    if False:",
        ("tests/activities/http/test_addresses.py::test_a_url_with_credentials_is_refused",),
    ),
    Mutant(
        "guard: hidden files are shown",
        "activities/toolbox/paths.py",
        '    if any(part.startswith(".") for part in parts):',
        "    if not parts:",
        ("tests/security/test_path_escapes.py::test_no_path_reads_what_is_outside_hidden_or_no_file",),
    ),
    Mutant(
        "guard: links are followed out of the folder",
        "activities/toolbox/paths.py",
        "    if not real.is_relative_to(root):",
        "    if not real.is_absolute():",
        ("tests/security/test_path_escapes.py::test_no_path_reads_what_is_outside_hidden_or_no_file",),
    ),
    Mutant(
        "ledger: an earlier intent is not noticed",
        "activities/nodes/effect_ledger.py",
        "            if found == body:",
        "            if found:",
        (
            "tests/activities/nodes/test_effect_ledger.py::test_an_intent_without_outcome_bars_the_way",
            "tests/activities/nodes/test_effect_ledger.py::test_an_attempt_in_flight_is_waited_for",
        ),
    ),
    Mutant(
        "ledger: other arguments pass for what was written",
        "activities/nodes/effect_ledger.py",
        "            if reply is not None and known.is_of(write):",
        "            if reply is not None:",
        (
            "tests/activities/nodes/test_effect_ledger.py::test_what_was_written_is_returned_and_other_arguments_are_refused",
        ),
    ),
    Mutant(
        "in flight: a reset cuts writes off",
        "activities/nodes/in_flight.py",
        "                if worker_stops(again=cancelled):",
        "                if True:",
        ("tests/activities/nodes/test_in_flight.py::test_it_is_cut_off_only_when_its_worker_stops",),
    ),
    Mutant(
        "ledger: a failed write stays open",
        "activities/nodes/effect_ledger.py",
        "                await self.store.unmark(self.run_prefix, intent)",
        "                pass",
        (
            "tests/activities/nodes/test_effect_ledger.py::test_an_error_that_knows_nothing_was_done_leaves_the_way_free",
        ),
    ),
    Mutant(
        "made writes: only the call that has made a write takes it over",
        "activities/programs/made_writes.py",
        "free = taken_by_call + taken_by_others",
        "free = taken_by_call",
        ("tests/activities/programs/test_made_writes.py::test_another_script_takes_over_in_order_what_was_made",),
    ),
    Mutant(
        "replies: a marker without its output counts",
        "activities/nodes/replies.py",
        "    return await store.has(run_prefix, reference)",
        "    return True",
        ("tests/activities/nodes/test_runner.py::test_a_marker_counts_only_with_its_output",),
    ),
)
