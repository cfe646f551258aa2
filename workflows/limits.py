"""The limits of runs outside the core, each with its reason. Those of the core
stand in `plan/limits.py`.
"""

from typing import Final

from sennit.workflows.plan.limits import MAX_PAYLOAD_BYTES

COMMAND_BYTES: Final = 600
"""Roughly what the command to start an activity takes beside its input."""
MAX_FACT_REFERENCES_BYTES: Final = MAX_PAYLOAD_BYTES // 2
"""Of the outputs whose facts a replan asks for: they travel in one payload."""
# Of the id of the workflow that notes a run: what Temporal's databases keep.
MAX_NOTED_ID_BYTES: Final = 255
# Of one question that a person is shown: the history keeps it.
MAX_QUESTION_CHARACTERS: Final = 4_000
MAX_SHOWN_CHARACTERS: Final = 64_000
"""Of all questions that wait together: the more there are, the less room each has."""
# Activities that one workflow task starts: its commands travel in one transaction.
MAX_STARTS: Final = 500
MIN_QUESTION_CHARACTERS: Final = 200  # of a question, however many there are
# Of a board as sent that every proxy lets through; about 6 KB of text.
MAX_USUAL_BOARD_BYTES: Final = 7_900
MAX_BOARD_BYTES: Final = 24 * 1024  # of any board: it travels in the address of a request
MAX_CODE_CHARACTERS: Final = 400  # of a command on the board
MAX_ROWS_CHARACTERS: Final = 1_500  # of the table of nodes on the board
MAX_BOARD_WRITES: Final = 5  # that the board names
MAX_SHOWN_REFERENCE_CHARACTERS: Final = 120
"""Of a reference in a view: one to an output is shorter, and a manifest may have 128 KB."""
MAX_PREVIEW_CHARACTERS: Final = 160  # of the beginning of a join's value
MAX_NAMED_MEMBERS: Final = 5  # of a group that its bar in the timeline names: a longer label is cut
MAX_NAMED_ITEMS: Final = 5  # of a map that wait for a person, by their paths
MAX_QUOTED_PROGRAMS: Final = 3  # whose quotes are shown
# Of the nodes of a report, which travels with the answer.
MAX_REPORT_BYTES: Final = MAX_PAYLOAD_BYTES // 3
MAX_ERROR_CHARACTERS: Final = 300  # of an error in the report
MAX_ASKED_CHARACTERS: Final = 300  # of what a run waits for, in the report
MAX_LINE_CHARACTERS: Final = 120  # of a line about one node
MAX_SUMMARIES_CHARACTERS: Final = 16_000
"""Of all summaries of a report, which the history keeps: 100 nodes have theirs whole, 500
have 32 characters each.
"""
MIN_SUMMARY_CHARACTERS: Final = 16  # Where there is less room for each, a report has no summaries
MAX_PLACE_CHARACTERS: Final = 64
"""Of the summary of a program's call, however many there are: with its call site,
by which people know it.
"""
MAX_BLOCKED: Final = 20  # Nodes that a report names as blocking
MAX_EXPLAINED: Final = 500  # Nodes of which it is said why they share an activity
MAX_WRITES: Final = 500  # of a run that its report has
MAX_NAMED_WRITES: Final = 3  # in a sentence
MAX_NAMED_CALLS: Final = 8  # in a sentence
# Outputs that one call asks for: the manifests of so many joins are one payload.
MAX_OUTPUTS: Final = 250
MAX_PART_BYTES: Final = 1024 * 1024  # of an output in one reply, before it is packed
# Of the id of a workflow: the server takes no longer one.
MAX_CONTINUED_ID_CHARACTERS: Final = 1_000
MAX_CONTINUED_TURNS: Final = 1_000  # of a conversation: each of its runs reads all of them
MAX_REQUEST_BYTES: Final = MAX_PAYLOAD_BYTES * 3 // 4
"""Of a request: with what a continued run carries besides, it stays below one payload."""
# Runs that one run forks, one the other: each is looked through for each call.
MAX_ORIGINS: Final = 50
MAX_PLAIN_PLAN_BYTES: Final = 64 * 1024  # of a plan that travels as it is; a longer one is packed
MAX_TENANT_BYTES: Final = 64
"""Of a tenant: it is also the fairness key of its runs, for which the server has so much room."""
MAX_PAGE_NODES: Final = 500  # of one page of the query `plan`
MAX_SHOWN_GOAL_CHARACTERS: Final = 2_000  # of the goal in the query `plan`
MAX_PASSED_ON: Final = 20  # things that a sub-agent waits for and its parent shows
MAX_KEPT_REPLIES: Final = 2_000  # that a run remembers for its queries
# Writes that a run is told of after a reset, of about 150 bytes each.
MAX_LEDGER_LINES: Final = 4_000
MAX_RUN_WARNINGS: Final = 20  # of one run
MAX_OUTAGE_CHARACTERS: Final = 400  # of the cause of an outage
# Of the error that has frozen a run, which its board and lists show.
MAX_BROKEN_CHARACTERS: Final = 120
MAX_DRAFTS: Final = 100  # Parts in which a planner sends its plan
MAX_DRAFT_UNPACKED_BYTES: Final = 256 * 1024  # of one part of a plan, unpacked: anybody may send it
MAX_HEARD_CALLS: Final = 200
"""Calls of a program before another one that are looked at for its critical path, the
latest: there the path leads.
"""
MAX_FLOW_EDGES: Final = 10_000  # of one page of figures: six bytes each in its answer
MAX_QUERY_BYTES: Final = 200_000  # of the answer to a query
# Of the packed state of a run in one answer to a query.
MAX_STATE_PART_BYTES: Final = MAX_QUERY_BYTES * 3 // 4
# Of the packed state of a run that a worker reads for a dry run.
MAX_STATE_BYTES: Final = 8 * 1024 * 1024
# That a dry run names: a person reads them, and they travel in one payload.
MAX_DRY_RUN_CALLS: Final = 500
MAX_FATE_CHARACTERS: Final = 300  # of what a dry run says of one call
MAX_REJECTED_PLANS: Final = 10
"""Plans of one run that people reject: a planner that has not understood them by then does not."""
MAX_REPAIRS: Final = 2  # How often a planner is shown what is wrong with its plan
MAX_ITEM_LINES: Final = 100
"""Nodes of the run of an item of which its parent learns how they ended: those of `do`,
and what they are given.
"""
# Agents that have asked each other, by A2A, before a run: more are a circle.
MAX_AGENTS_ABOVE: Final = 5
MAX_SUBAGENT_LEVELS: Final = 3  # of sub-agents below a run; one further down is refused
MAX_SHARING: Final = 32
"""Sub-agents that one activity prepares, or whose answers it stores: the first of them start
while it prepares more.
"""
# Of one run at once: while some sub-agents start, the next are prepared.
MAX_PREPARE_ACTIVITIES: Final = 2
# Of one run at once: who ends meanwhile shares the next, so its history stays short.
MAX_ANSWER_ACTIVITIES: Final = 1
MAX_SHARED_BYTES: Final = MAX_PAYLOAD_BYTES // 8
"""Of the calls of those who share an activity, and of the requests that come back: each starts
a run in the same task.
"""
MAX_STATUS_ITEM_BYTES: Final = 2_000  # of one thing that a sub-agent waits for
MAX_STATUS_CHARACTERS: Final = 500  # of a text about what a sub-agent waits for
# Of all that a sub-agent tells its parent.
MAX_STATUS_BYTES: Final = MAX_STATUS_ITEM_BYTES * (MAX_PASSED_ON + 1)
MAX_SUBAGENT_VIEWS: Final = 500  # Sub-agents whose state a run keeps
# Of a sub-agent that was cancelled; those come first of which nobody knows.
MAX_SUBAGENT_WRITES: Final = 300
MAX_EDIT_WARNINGS: Final = 10  # about an edit
MAX_GATE_ANSWER_CHARACTERS: Final = 64 * 1024  # of a person's answer: the history keeps it
# Nodes of a board that is drawn at each change: to draw takes time for each node.
MAX_DRAWN_AT_ONCE: Final = 200
MAX_UPDATE_BYTES: Final = MAX_PAYLOAD_BYTES // 2
"""Of an update that a worker takes: what it answers a query with may have it
again, beside other things.
"""
# Of the text of models that a worker sends at once, or a client reads.
MAX_BATCH_CHARACTERS: Final = 32 * 1024
# Of the text of models that the stream of a run keeps for who comes late.
MAX_LOG_CHARACTERS: Final = 128 * 1024
MAX_STREAMED_TEXTS: Final = 500  # whose length the stream of a run knows
# Of one run of a stream, before it continues as new: the server takes 2,000 updates.
MAX_POLLS: Final = 1_500
MAX_QUOTA_ASKS: Final = 1_500  # of one run of the quota's workflow, for the same reason
