"""The limit that Temporal sets to all that travels: every other limit of that kind is a
share of it, or follows.
"""

from typing import Final

MAX_PAYLOAD_BYTES: Final = 2 * 1024 * 1024
"""Of one payload. A server refuses a larger one, and the task that sends it
begins again for ever.
"""
MAX_CARRIED_BYTES: Final = MAX_PAYLOAD_BYTES * 3 // 4
"""Of what a run hands on when it continues as new, with its request: without a plan that
lies in the store, beyond.
"""
# Of all parts of a plan, packed, that come while it is written.
MAX_DRAFT_BYTES: Final = MAX_PAYLOAD_BYTES // 2
MAX_TASK_BYTES: Final = MAX_PAYLOAD_BYTES // 2
"""Of the calls that one workflow task starts: its commands travel together, in at most 4 MiB."""
# Activities that are under way at once unless a run says another number.
DEFAULT_WINDOW: Final = 100
DEFAULT_IN_FLIGHT: Final = 1_024
"""Units that are under way at once unless a run says another number; they
share fewer activities.
"""
MAX_UNITS: Final = 16_000
"""Nodes and items of maps that one run has at once. What it hands on when it continues as new grows
by 90 bytes with each, and has to stay below MAX_CARRIED_BYTES.
"""
MAX_MAPPED_AGENTS: Final = 1_000
"""Sub-agents that the maps of one run start. Each is a run of its own: it has a history, a plan and
a part of the budget, and its parent's history grows with it by five to ten events.
"""
FEWER_AGENTS_BELOW: Final = 10
"""A sub-agent's own maps start so many times fewer, so that agents which start agents come to an
end also without a budget.
"""
MAX_READ_NODES: Final = 64
"""Nodes that a consumer may read for a join to stand in its input, whole: so many
manifests still fit a payload.
"""
MAX_MANIFEST_BYTES: Final = MAX_READ_NODES * 144
"""What a join's manifest may take in all inputs of its consumers together: 64 references, each with
the name of its node. A larger one is stored once, so that the history of a run grows with its edges
to and from joins, and not with their product.
"""
MAX_ONLY_MANIFEST_BYTES: Final = MAX_PAYLOAD_BYTES // 16
"""What the manifest of a join or a map may take that only one node reads: to store it, an activity
would have it in its input too.
"""
MAX_ONLY_READ_NODES: Final = 8
"""Nodes that this one may read: so many such manifests still fit a payload."""
MAX_MANIFEST_LEVELS: Final = 8
"""Joins of joins in one manifest: what reads it goes down as many levels."""
MAX_CONDITION_LEVELS: Final = 250
"""Of parts within parts, in a compiled condition: no check lets a deeper one pass, and
reading it is recursive.
"""
MAX_CAUSE_CHARACTERS: Final = 200  # of the error of an input in that of its join
MAX_LOSS_CHARACTERS: Final = 2_600  # of the error of one lost input that a model or a join gets
# Of the errors of all lost inputs together: they travel in one payload.
MAX_LOSSES_CHARACTERS: Final = 100_000
# Errors that a run keeps whole: one that continues as new takes them along.
MAX_WHOLE_NOTES: Final = 200
MAX_NOTE_CHARACTERS: Final = 500  # of each further error
MAX_SNAPSHOT_BYTES: Final = 64 * 1024 * 1024  # of what a run hands on, unpacked
MAX_UNPACKED_PLAN_BYTES: Final = 64 * 1024 * 1024  # of an execution plan, unpacked
# Of how the calls of one advance have ended, unpacked.
MAX_UNPACKED_ENDS_BYTES: Final = 16 * MAX_PAYLOAD_BYTES
# Of calls of one program, for its next script and for runs that fork it.
MAX_NOTED_FAILURES: Final = 1_000
MAX_SHOWN_SCRIPT_CHARACTERS: Final = 64 * 1024
"""Of a script that people may see: a run hands it on when it continues as new."""
MAX_SCRIPT_BYTES: Final = 1 << 20  # of a script with its modules: to parse it takes memory
MAX_TREE_NODES: Final = 50_000  # of the tree of a script: what walks it takes time by its nodes
MAX_TREE_LEVELS: Final = 120
"""Of the tree of a script: what walks it may call itself. Python's own parser
takes a few levels more.
"""
MAX_EXPRESSION_CHARACTERS: Final = 10_000  # of an expression that a planner writes as an argument
MAX_BRACES: Final = 20_000  # in a script: Python 3.11 parses an f-string in quadratic time
# That one advance of a program makes itself: they are repeated together.
MAX_ADVANCE_CALLS: Final = 1_000
MAX_SCRIPT_FILES: Final = 50  # of one script: the program and its modules
MAX_SCRIPT_PROBLEMS: Final = 50  # of one script that people are shown
MAX_QUOTED_CALLS: Final = 10_000  # of a program: what makes more is not quoted
MAX_CHECKED_PATTERN_CHARACTERS: Final = 200  # of a schema's pattern that a plan is checked against
MAX_PLAN_PROBLEMS: Final = 100  # of one plan that people are shown
MAX_EDGES: Final = 100_000  # of one plan: the scheduler's memory and a plan's text grow with them
MAX_MEMBERS: Final = 1_024
"""Calls of one activity: its replies travel together, and what a lost worker had
begun is called again.
"""
MAX_WAVE_MEMBERS: Final = MAX_MEMBERS // 4
"""The same while further calls wait until some have ended, which begin with the end of an activity
beside others; and of what runs behind others where several workers could run it.
"""
MAX_ISLAND_MILLIS: Final = 2_000  # of the longest path through one activity
MAX_MEMBER_MANIFESTS_BYTES: Final = MAX_PAYLOAD_BYTES // 2 // MAX_MEMBERS
"""Of the manifests for one call of a shared activity: those of all travel in one input."""
MAX_SHORT_MILLIS: Final = 1_000
"""What takes longer is an activity of its own, so that people see it: what a hop costs
beside that does not matter.
"""
# That one turn may make; the others are refused, and the model reads that they were.
MAX_TURN_CALLS: Final = 32
# That a model's next turn waits for more calls by `turn: {after: ..}`.
MAX_TURN_SECONDS: Final = 86_400.0
MAX_RESULT_CHARACTERS: Final = 20_000  # of a tool's result that a model reads
# Of an id: with the number of a turn and of a call behind it, it is still one.
MAX_STEM_CHARACTERS: Final = 31
MAX_BRACKET_LEVELS: Final = 60  # in a planner's line
MAX_LINE_NUMBER: Final = 99  # The highest number that can be meant as a line which is not there
MAX_NODES: Final = 10_000  # of one plan: a checked one travels packed in one payload
MAX_GOAL_BYTES: Final = 32 * 1024  # of a goal: it is part of many prompts
MAX_STAGES: Final = 20  # Nodes of a map's `do`: each item has a unit for each of them
MAX_ATTEMPTS: Final = 20  # of one node
MAX_SCRIPT_CHARACTERS: Final = 1_048_576  # of a script in a plan, before it is read
MAX_PARSE_PROBLEMS: Final = 50  # of the form of a plan that people are shown
MAX_VALUE_CHARACTERS: Final = 60  # of a value in a sentence
MAX_NAMES_CHARACTERS: Final = 300  # of a list of names in a sentence
MAX_SENTENCE_CHARACTERS: Final = 700  # of one problem
MAX_FACT_BYTES: Final = 256  # of one fact: the history keeps it, and the run hands it on
MAX_NODE_FACTS: Final = 16  # of one node: the history keeps each
MAX_SUMMARY_CHARACTERS: Final = 120  # of what a node does, in the web UI
MAX_SUMMARY_BYTES: Final = 340
"""Of a summary: Temporal takes 400 with the payload around it, and Chinese fills them sooner."""
MAX_BAR_CHARACTERS: Final = 64
"""What the web UI's timeline can show of a bar that begins in the middle of a laptop's window."""
MAX_SHOWN_ERRORS: Final = 5  # of one object that is not of its form
MAX_JSON_LEVELS: Final = 60  # of a value: what reads it calls itself
MAX_JSON_VALUES: Final = 1_000_000  # in one value: each takes memory, however short it is written
MAX_NUMBER_BITS: Final = 1024  # of a whole number: to write it takes quadratic time
MAX_PATTERN_CHARACTERS: Final = 500  # of a pattern in a schema
MAX_PATTERN_SIZE_CHARACTERS: Final = 1_000  # of a pattern with its counted repeats written out
MAX_SCHEMA_STEPS: Final = 200_000  # of comparing one value with a schema
MAX_SCHEMA_LEVELS: Final = 100  # of a schema in itself
MAX_PACKED_BYTES: Final = MAX_PAYLOAD_BYTES // 2  # of a plan in a request
MAX_UNPACKED_BYTES: Final = 16 * 1024 * 1024  # of a plan in a request, unpacked
MAX_KEPT_TREES_BYTES: Final = 32 << 20
"""Of the trees of scripts that a process has parsed last: one of the largest always fits."""
MAX_KEPT_MODULES_BYTES: Final = 8 << 20  # of scripts, with where the modules of each begin
MAX_KEPT_PATTERNS_BYTES: Final = 32 << 20  # of compiled patterns of schemas: one may take 4 MiB
# In a plan in a request: each takes memory, however well it is packed.
MAX_PACKED_VALUES: Final = 500_000
# Images, PDFs and recordings that one model call is shown: as many as most servers take.
MAX_CALL_MEDIA: Final = 20
# Of one turn of a conversation: an answer that a model reads once more.
MAX_TURN_CHARACTERS: Final = 400_000
# Of the runs that the quota of a namespace knows: they travel in one payload.
MAX_QUOTA_BYTES: Final = 1 << 20
# Runs of a quota of which one activity asks the server whether they go on.
MAX_QUOTA_LOOKED_AT: Final = 500
MAX_FIGURE_BRANCHES: Final = 20
"""Branches whose usage the figures of a run list: they are in its report, and
on no screen are more.
"""
