"""The limits of the activities: what may be large, long or many without end is bounded
here, each with its reason.

Those of code that runs in the sandbox stand in `sandbox/`: it sees that folder alone.
"""

from typing import Final

from sennit.workflows.plan.limits import MAX_PAYLOAD_BYTES

MAX_ADDRESSES: Final = 4  # of one host: they are tried one after the other
# Of an agent's answer that are no text: files, links and structured data.
MAX_AGENT_PARTS: Final = 100
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
"""Of the answer to an HTTP request, after decompression, unless the request
allows another number.
"""
MAX_ANSWER_BYTES_IN_REPORT: Final = 64 * 1024
"""Of an answer in the report of a run; the whole one lies in the artifact store."""
MAX_RUN_LOOKS: Final = 10  # Runs of a quota about which a worker asks the server at once
# Of an operator's file, each of which a write may be compared with.
MAX_APPROVAL_RULES: Final = 1_000
MAX_APPROVAL_RULES_BYTES: Final = 1 << 20
# Of a reply that cannot be read: so much of it stands in the error.
MAX_BEGINNING_CHARACTERS: Final = 200
MAX_BLANKS: Final = 4 * 1024
"""Characters without a form, one behind the other, in a model's reply. Models that have lost their
end write blank lines for ever; deep tables and code have some hundreds.
"""
MAX_BODY_BYTES: Final = 16 * 1024 * 1024  # of one artifact: workers hold several in memory at once
# Of what a call gives that was made early: nobody has asked for it yet.
MAX_EARLY_BYTES: Final = 2**20
MAX_EARLY_WAIT_MILLIS: Final = 600_000
"""Of a real call for an early one: with all of its own time behind that, it stays within what its
activity may take.
"""
MAX_BYTES_BEFORE_REPLY: Final = 256 * 1024
"""Of blanks and comments before the first event of a model's reply. Servers send a few
bytes a second to show that they live; each byte may be a chunk of its own, and takes
some 30 microseconds then.
"""
# Of the answer of the process that calculates: a number of 1,000 digits.
MAX_CALCULATION_BYTES: Final = 4_000
MAX_CALCULATOR_BYTES: Final = 128 << 20  # Address space of one process that calculates
MAX_CELL_COLUMNS: Final = 200  # of one cell, before the table is fitted to its width
MAX_CARD_SECONDS: Final = 5.0  # for which a worker that starts waits for the cards of its agents
MAX_CHANGED_PATHS: Final = 100  # of a workspace that the result of a call names: a model reads them
# Of a file that a write is compared with before a person approves it.
MAX_COMPARED_BYTES: Final = 16 * 1024 * 1024
# That one reference to a map or a join is traced to, in what is noted of a run.
MAX_CALLS_BEHIND: Final = 8
# Of all media of one model call: providers take 20 to 50 MB a request.
MAX_CALL_MEDIA_BYTES: Final = 20 * 1024 * 1024
# Of values of tools that look like media: a call shows ten times fewer.
MAX_CALL_MEDIA_READS: Final = 200
# Of one process to one provider: beyond that nothing is paced.
MAX_CALLS_PER_SECOND: Final = 10_000.0
# Of one call; what a server counts beyond is none of its counts.
MAX_CALL_TOKENS: Final = 1_000_000_000
# Of one output, which later arguments of the run are compared with.
MAX_COMPARED_LEAVES: Final = 2_000
# Of a program, whose calls a dry run compares with those of another script.
MAX_COMPARED_PAGES: Final = 200
MAX_CONVERSATION_BYTES: Final = 1024 * 1024  # of what one run has said, where values are kept
MAX_COST_USD: Final = 10_000  # of one call: whatever is more is no price
MAX_CUT_ERROR_CHARACTERS: Final = 60
"""Of a failure among so many calls of one activity that their replies hardly fit in a payload."""
# Of a tool in a planner's prompt, where all tools share the context.
MAX_DESCRIPTION_CHARACTERS: Final = 500
MAX_DIFFERENCE_BYTES: Final = 200_000  # of each text that is compared with another
# Of texts that are compared: that takes time in the square of the lines.
MAX_DIFFERENCE_LINES: Final = 2_000
MAX_DOCUMENTS: Final = 20_000  # in a folder of documents: all are looked at when it is searched
# Of the path of a document, well within what file systems take.
MAX_DOCUMENT_PATH_CHARACTERS: Final = 1_000
MAX_DRY_RUN_SECONDS: Final = 15.0  # for which one plays; then it says what it knows
MAX_DRY_RUNS: Final = 2  # that one worker plays at once: each may keep so much in memory
MAX_ERROR_BYTES: Final = 64 * 1024  # of an error's body, of which one sentence is shown
# Of how the calls of one advance have ended: they travel with it.
MAX_ENDS_BYTES: Final = MAX_PAYLOAD_BYTES // 4
MAX_EVIDENCE: Final = 50  # Pieces of one answer, so that a report fits in a payload
MAX_EXECUTION_PLAN_BYTES: Final = MAX_PAYLOAD_BYTES * 7 // 10
"""Of a compiled plan, packed: it travels with what else is known of the plan."""
# Of parentheses and signs in a calculation: more than anybody writes.
MAX_EXPRESSION_LEVELS: Final = 60
# Of a failure's message: Temporal keeps 4 KiB with everything around it.
MAX_FAILURE_CHARACTERS: Final = 500
MAX_FILE_BYTES: Final = 4 * 1024 * 1024  # of a file that `read` takes into memory
MAX_GZIP_MEMBERS: Final = 1_000  # of one answer: more are an attack on who unpacks them
# Of what a planner is told of earlier runs: its prompt is read anew for each goal.
MAX_HINT_TOKENS: Final = 800
MAX_HISTORY_TOKENS: Final = 100_000
"""Of the turns before a prompt, for a model whose context nobody knows: half of
what usual models have.
"""
# Of each file that is searched; of a longer one the beginning is, and that is said.
MAX_INDEXED_BYTES: Final = 16 << 20
MAX_INDEXED_FOLDER_BYTES: Final = 512 << 20
"""Of a folder of documents: a search must be ready within a minute. Files after that are
named and not searched.
"""
# Of an output that travels in the reply; what is larger lies in the artifact store.
MAX_INLINE_BYTES: Final = 32 * 1024
MAX_ISOLATED_CALLS: Final = 4  # at once in a worker: each has a process of its own
# Of a sub-agent that works in a folder: it looks, changes and tests, again and again.
MAX_FOLDER_TURNS: Final = 40
MAX_FRESH_RUNS: Final = 100
"""Runs beside the table of patterns that a planner reads: `gc` folds them into it."""
MAX_KEPT_CAPABILITIES_BYTES: Final = 1 << 20
"""Of each kind of what a worker has learned of the models of one server: parameters,
schemas, lengths of contexts.
"""
MAX_KEPT_CHECKS_BYTES: Final = 4 << 20  # of what a worker has found in the types of scripts
# Of claims on writes, in the memory of a worker: about 10,000.
MAX_KEPT_CLAIMS_BYTES: Final = 8 << 20
# Of the fields of the classes of scripts, in the memory of a worker.
MAX_KEPT_CLASSES_BYTES: Final = 4 << 20
# Of the names of files that are in search indexes: 20,000 in each.
MAX_KEPT_INDEXES_BYTES: Final = 32 << 20
MAX_KEPT_PLANS_BYTES: Final = 96 << 20
"""Of checked plans, decoded, in the memory of a worker: one of 10,000 nodes takes up to 60 MiB."""
MAX_KEPT_PRICES_BYTES: Final = 1 << 20  # of the prices that the extra knows, one for each model
MAX_KEPT_READINGS_BYTES: Final = 16 << 20  # of what a worker has read in scripts
MAX_KEPT_SIGNATURES_BYTES: Final = 1 << 20  # of the parameters of the words that programs know
MAX_KEPT_SNAPSHOTS_BYTES: Final = 32 << 20  # of where sessions wait, in the memory of a worker
MAX_KEPT_SPELLINGS_BYTES: Final = 1 << 20  # of how characters of secrets may be written
MAX_KEPT_TYPES_BYTES: Final = 32 << 20  # of the types of what tools return: 1,000 of them
MAX_KEPT_UNITS_BYTES: Final = 4 << 20  # of the paths of nodes, taken apart
MAX_KEPT_VALUES_BYTES: Final = 96 << 20
"""Of outputs that many calls read a part of, decoded, in the memory of a worker. A longer
output is read for each.
"""
MAX_LINE_CHARACTERS: Final = 120  # of a planner's line in a warning
# Of what one session of a script logs: the workflow keeps so much of all.
MAX_LOG_CHARACTERS: Final = 64 << 10
MAX_LOG_LINE_CHARACTERS: Final = 10_000  # of what an MCP server says on its standard error
MAX_LOGGED_CHARACTERS: Final = 2_000  # of one line of a script's log
MAX_LIVE_PROGRAMS_BYTES: Final = 512 << 20
"""Of the processes in which the scripts of a worker wait: those end first that
have waited for longest.
"""
# For which a dry run looks for the end of one call: a write may be in flight.
MAX_LOOK_UP_SECONDS: Final = 2.0
MAX_LOST_THREADS: Final = 50
"""Threads that calls may hold after they were given up; with more, the
process should be replaced.
"""
# Of an output that lies in the marker of its node: one file and not two.
MAX_MARKED_BYTES: Final = 4 * 1024
# Of one image, PDF or recording; an artifact may have 16 MiB.
MAX_MEDIA_BYTES: Final = 10 * 1024 * 1024
MAX_MEMORY_BYTES: Final = 64 << 20  # of the values of one script
MAX_MESSAGE_CHARACTERS: Final = 500  # of a tool's error: what a person or a model reads
MAX_MODEL_CHARACTERS: Final = 200  # of the name of a model, as a server says it
MAX_NAMED_FILES: Final = 5  # Files that one warning names
# Of the arguments of a task, and of its error, as the process of a script tells them.
MAX_NEWS_CHARACTERS: Final = 400
MAX_NODE_WARNINGS: Final = 5  # that a run shows about one node
MAX_OPENAPI_BYTES: Final = 20_000_000  # of the description of an API, which is parsed whole
# Of one API that become tools: each is a tool that a planner reads of.
MAX_OPENAPI_OPERATIONS: Final = 500
MAX_OPEN_CALLS: Final = 1_000
"""Each advance reads how some calls have ended, and stores which are still open: with n
at once, n * n in all.
"""
MAX_NOTED_CHARACTERS: Final = 4_000  # of one output, where it is kept what runs said
MAX_NOTED_CONVERSATIONS: Final = 10_000  # of one tenant, where values are kept: the latest
MAX_NOTED_OUTPUT_BYTES: Final = 32 << 20  # of all outputs of one run that are read to note it
MAX_NOTED_OUTPUTS: Final = 200  # of one run that are read to note where later arguments came from
MAX_OUTPUT_LEVELS: Final = 120  # of a stored value: encoders and checkers are recursive
MAX_PAGE_BYTES: Final = MAX_PAYLOAD_BYTES // 2  # of the nodes that one reply adds
MAX_PAIRS: Final = 200
"""Models and tenants with metrics of their own; every further pair is counted as
`other`. A run may name both.
"""
# Of a passage that a search finds; a longer paragraph is divided at sentence ends.
MAX_PASSAGE_CHARACTERS: Final = 700
MAX_PATH_CHARACTERS: Final = 60
"""Of a call's path in a summary. With the longest id before it and the line behind it, it
fits in the shortest one.
"""
MAX_PAUSE_SECONDS: Final = 2.0
"""Between two looks at an event loop's clock: after more, its process was stopped, and
the clock stands still.
"""
MAX_KEPT_INDEX_FILES_BYTES: Final = 8 << 30  # of the search indexes on a worker's disk
MAX_KEPT_PDF_TEXTS_BYTES: Final = 1 << 30  # of the texts of PDFs on a worker's disk
# A longer PDF is not read: its table of contents is at its end.
MAX_PDF_BYTES: Final = 32 * 1024 * 1024
MAX_PDF_CHARACTERS: Final = 4_000_000  # of the text of one PDF
MAX_PDF_PAGES: Final = 2_000  # of one PDF
MAX_PLANNED_NODES: Final = 60  # of a plan that a model writes; one `map` stands for many alike
# Of one pool: a container sees all cores of its machine, whatever its share of them.
MAX_POOL_PROCESSES: Final = 16
# Of what tells a model the words and the tools of programs.
MAX_PROGRAM_PROMPT_BYTES: Final = 32 * 1024
MAX_PLAN_HINT_TOKENS: Final = 500  # of these, for plans: the others are for pairs of tools
MAX_PLAN_WARNINGS: Final = 5  # that a run shows about one plan
# Of an answer that is handed on at once: others have their turn between two pieces.
MAX_PIECE_BYTES: Final = 16 * 1024
# Of one pool of connections at once: httpx looks at all connections of a pool for each request.
MAX_POOL_REQUESTS: Final = 8
MAX_PRESSURE: Final = 10.0  # of a limiter: it bounds the waits, whatever has happened
MAX_PRICE: Final = 10_000_000_000
"""Millionths of a dollar for a million tokens, in a file of the operator's own: what is more
is a slip of the unit.
"""
MAX_PREVIEW_CHARACTERS: Final = 160  # of an output in a table of nodes
# After which one call more is tried beside those that a provider takes at once.
MAX_PROBE_SECONDS: Final = 60.0
MAX_PROGRAM_CALLS: Final = 10_000  # of one program: its session is stored after every advance
MAX_PROGRAM_LEVELS: Final = 20  # of tasks that programs start in tasks
# Of a line of a script's process: values of 1 MB, with escapes.
MAX_PROGRAM_MESSAGE_BYTES: Final = 16 << 20
# Of what a program raises, in the error of its node: its line follows.
MAX_PROGRAM_MESSAGE_CHARACTERS: Final = 360
# Of a draft that its planner reads; later ones often follow from these.
MAX_PROMPT_PROBLEMS: Final = 20
# That one script names: the price of each is looked up before the run.
MAX_QUOTED_MODELS: Final = 50
MAX_REPLY_TOKENS: Final = 131_072
"""Of a reply without a limit of its own: the longest that models give. A server that
writes on has lost its end.
"""
# Of what a script was told, in its session: older ones are in the store.
MAX_RECORD_ENTRIES: Final = 64
MAX_RECORD_BYTES: Final = 16 * 1024  # of these
MAX_RECORD_PART_BYTES: Final = 512 * 1024  # of older ones that are stored together
# Of a value that is written where it was told; a longer one is in the store.
MAX_RECORD_VALUE_BYTES: Final = 1024
MAX_REPLIES_BYTES: Final = MAX_PAYLOAD_BYTES // 4 * 3  # of how the calls of one activity have ended
MAX_PUT_OFFS: Final = 50  # of a call; after so many, a refusal for the rate is an attempt of it
# For which a limiter puts a call off, unless the provider's own wait is longer.
MAX_PUT_OFF_SECONDS: Final = 10.0
MAX_QUERY_WORDS: Final = 32  # of a search: each is looked up alone
MAX_QUESTION_CHARACTERS: Final = 2_000  # of what a program asks a person: as in a gate of a plan
MAX_PROGRESS_BYTES: Final = MAX_PAYLOAD_BYTES // 8
"""Of one signal about calls that have ended in an activity with others: the history keeps
it beside their result.
"""
MAX_QUOTED_LEVELS: Final = 12  # of a result in which the quote of a piece of evidence is looked for
MAX_READABLE_LEVELS: Final = 200
"""Payloads nested deeper cannot be read, by the workflow least of all. An answer wraps
outputs in 60 levels at most.
"""
MAX_READER_BYTES: Final = 256 << 20  # Address space of one process that reads scripts
MAX_READING_BYTES: Final = 32 << 20
"""Of what a process that reads scripts answers: a script, rewritten, with its
characters as escapes of JSON.
"""
MAX_READ_BYTES: Final = 16 * 1024 * 1024  # of large results, which a program may read in parts
MAX_REDIRECTS: Final = 5  # of one download: more are a circle
MAX_RESULT_CHARACTERS: Final = 1_000_000  # of the result of an MCP tool
MAX_RESULT_LEVELS: Final = 50  # of the result of an MCP tool: encoders and checkers are recursive
# Of a question that the offline rules read: some of them take time in its square.
MAX_RULED_CHARACTERS: Final = 400
MAX_SAID_CHARACTERS: Final = 2_048
"""Characters of the body of an error, from a server that says what is wrong with a request."""
MAX_SANDBOX_CHARACTERS: Final = 1_000_000  # of the data and the files that code is given
MAX_SANDBOX_SECONDS: Final = 120  # for which code in the sandbox may run
MAX_SCRIPT_MEMORY_BYTES: Final = 96 << 20  # of a process of scripts, beside Python itself
MAX_SCRIPT_PROCESSES: Final = 100  # of one worker: each takes three of its open files
MAX_SCHEMA_PARTS: Final = 2_000
"""Of a type that a script writes: types, with those of the classes that they name, and
parts of a JSON schema.
"""
MAX_SCRATCH_BYTES: Final = 64 * 1024 * 1024  # of what one dry run keeps in memory
MAX_SENT_NAME: Final = 64  # characters that OpenAI's server and Bedrock take of the name of a call
MAX_SERVER_MESSAGE_BYTES: Final = 16 * 1024 * 1024  # of one message of an MCP server
MAX_SERVER_PAUSE_SECONDS: Final = 60.0  # between two attempts at an MCP server that does not start
MAX_SHAPE_FIELDS: Final = 50  # of one object, in the shape of a schema that a planner reads
MAX_SHAPE_LEVELS: Final = 4  # of such a shape: a schema may refer to itself
MAX_SHAPE_PARTS: Final = 200  # of such a shape in all
MAX_SHOWN_CHARACTERS: Final = 4_000  # of the text that a person reads before an approval
MAX_SHOWN_PROBLEMS: Final = 40  # of a plan that is refused: who mends it reads the first ones
MAX_SLEEP_SECONDS: Final = 366 * 86_400
MAX_SOURCE_CHARACTERS: Final = 80  # of the line of a script that an error shows
MAX_STACK_CHARACTERS: Final = 10_000  # of the stack of a tool's error in the log
# For which a worker waits for its MCP servers: whoever starts it waits for it.
MAX_START_SECONDS: Final = 45.0
MAX_STEM_CHARACTERS: Final = 28
"""Of what the ids of a program's nodes begin with. With the number of a
call they have 36 at most.
"""
MAX_STORE_PAUSE_SECONDS: Final = 5.0  # before the next attempt at a store that does not answer
# Tool calls at once in a worker: each holds a thread, and an event loop three of 1,024 files.
MAX_THREADS: Final = 250
MAX_TITLE_CHARACTERS: Final = 120  # of a document in a list of hits
MAX_TOKEN_BYTES: Final = 8  # of a token, on average, in what is written with the longest
MAX_TOOL_PAGES: Final = 100  # on which an MCP server lists its tools: more have no end
MAX_TURN_SECONDS: Final = 0.01  # for which the reader of an answer holds an event loop
MAX_TURNS: Final = 8  # Calls in which a server may pause and go on with one reply
MAX_URL_CHARACTERS: Final = 2048  # of an address: as much as servers and proxies commonly take
# Of a value that enters or leaves a script: larger ones are references.
MAX_VALUE_BYTES: Final = 1024 * 1024
MAX_WAIT_SECONDS: Final = 60.0  # for which a server makes anybody wait before the next attempt
MAX_WARNING_CHARACTERS: Final = 500  # of a warning about a node
MAX_WORKSPACE_PACKS: Final = 16
"""Artifacts in which the files of one workspace lie: whoever opens it reads all of them."""
# Of a run's own value that the offline rules read as words of the prompt.
MAX_WORDING_CHARACTERS: Final = 400
MAX_WRITTEN_CHARACTERS: Final = 2_000_000  # of one write of a file
