"""The limits of the client and the command line, each with its reason."""

from typing import Final

from sennit.workflows.plan.limits import MAX_PAYLOAD_BYTES

LEAST_TOKEN_CHARACTERS: Final = 24  # of a bearer token that `serve` takes: fewer can be guessed
# Of an answer that `serve` gives in one piece; `output` gives more in parts.
MAX_ANSWER_CHARACTERS: Final = 1_000_000
MAX_CASES: Final = 2_000  # of one file: each is a run, and all of them are on the screen
# It is a part of a run's id, beside those of the set and the model.
MAX_CASE_NAME_CHARACTERS: Final = 60
MAX_CASES_AT_ONCE: Final = 100  # Each is watched by queries
MAX_CHECKS_AT_ONCE: Final = 2  # of plans by `serve`: each starts a process that lists the tools
MAX_CONTEXT_ID_CHARACTERS: Final = 255  # of a context of A2A: each kept task has it many times
MAX_DAYS: Final = 3650  # Ten years: more is a mistake in the command
MAX_FATE_LINES: Final = 20  # of reads that a fork or an edit takes over: a person reads the others
MAX_GOAL_SUMMARY_CHARACTERS: Final = 200  # of a goal in a list of runs
# Folders of documents that the local stack has granted to runs at once.
MAX_GRANTED_FOLDERS: Final = 1_000
MAX_HISTORY_BYTES: Final = 64 * 1024  # of the messages of a task of A2A, which are kept in memory
MAX_IDLE_POLL_SECONDS: Final = 15.0  # between two looks whether the local stack is in use
MAX_ID_BYTES: Final = 255  # of a workflow id: what Temporal's databases keep
MAX_INPUTS_BYTES: Final = MAX_PAYLOAD_BYTES // 4  # of a run's inputs: they travel with the plan
MAX_LISTED_RUNS: Final = 5_000
"""Runs that one listing reads, since the store sorts them by their end and not by their start."""
MAX_LOCAL_WORKERS: Final = 64  # processes of `sennit dev`: each uses about one core
# Of a log of the local stack; a larger one is renamed at the next start.
MAX_LOG_BYTES: Final = 10_000_000
# Of a run of a program that `status` writes one by one, as the board draws them.
MAX_NODE_LINES: Final = 60
MAX_OUTPUT_CHANGES: Final = 10
"""How often an output is read from its beginning again because another
worker gives it otherwise.
"""
# Of A2A, in the memory of `serve`, with their answers; others are asked of their runs.
MAX_KEPT_TASKS: Final = 500
# Of a plan file: readers of YAML take many times that in memory.
MAX_PLAN_FILE_BYTES: Final = 5 * 1024 * 1024
MAX_PROGRESS_CHARACTERS: Final = 200  # of a node's progress on the screen
# Of an answer in a reply to an agent, whose model reads all of it.
MAX_REPLY_CHARACTERS: Final = 20_000
MAX_REPLY_NODES: Final = 20  # that have failed, in such a reply
MAX_REPLY_RUNS: Final = 100  # in a list for an agent
# For a run, in one call of an agent: clients give calls up that take longer.
MAX_REPLY_WAIT_SECONDS: Final = 60
MAX_REPORTS_AT_ONCE: Final = 16  # that one command reads from the server side by side
MAX_RESTART_PAUSE_SECONDS: Final = 30.0  # between two starts of a child that ends at once
MAX_SCHEDULE_NAME_CHARACTERS: Final = 200  # The server puts the time behind it for the id of a run
# That a process waits for threads of others which run Python; some never leave it.
MAX_SECONDS_AT_EXIT: Final = 1.0
# Of a request to `serve`: more than a plan and its inputs may have.
MAX_SERVE_BODY_BYTES: Final = 4 * 1024 * 1024
MAX_SERVE_IDLE_SECONDS: Final = 600.0  # after which a session of `serve` ends that nobody uses
# To `serve` at once: a session waits for news, and in some for a run beside that.
MAX_SERVE_REQUESTS: Final = 500
MAX_SERVE_SESSIONS: Final = 200  # of `serve` at once
# Of a plan as text: its reader takes ten seconds for a mebibyte.
MAX_SERVE_YAML_BYTES: Final = 512 * 1024
MAX_SHOWN_BYTES: Final = 64 * 1024  # of an output that a terminal is given at once
MAX_SHOWN_LOG: Final = 20  # lines of a run's log on the screen
MAX_SHOWN_WRITES: Final = 20  # of a run on the screen; its report, as JSON, has 500
MAX_SLUG_CHARACTERS: Final = 40  # of a goal in a workflow id
MAX_VIEW_SECONDS: Final = 15.0  # for a worker to show the plan of a run that an evaluation measures
MAX_WORKFLOW_NAME_CHARACTERS: Final = 200  # of a workflow id before what a fork adds to it
MAX_YAML_LEVELS: Final = 100  # of a plan file: the reader is recursive
