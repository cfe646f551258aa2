"""Ways to write a call that is none: denied, struck out, commented, conditional, only thought or only told of."""

import random

WORDS = [
    "Do not call {call}", "Never {call}", "No {call}", "Skip {call}", "Don't use {call}", "Instead of {call}",
    "{call} is not needed", "{call} would be wrong", "Call {call}", "I could use {call}.", "Perhaps {call}",
    "Then {call} may follow.", "Done: {call} was called.", "Rejected: {call}", "Option B: {call}", "e.g. {call}",
    "If the first is empty: {call}", "{call} if $1 is empty", "{call} unless $1", "if not $1: {call}",
    "{call} (only if needed)", "{call} - not now", "{call} or nothing", "{call}, but later", "not {call}", "!{call}",
    "await {call}", "maybe: {call}", "x = not {call}", "{call} → skipped", "{call} ✗", "[ ] {call}", "[x] {call}",
]  # fmt: skip
"""What a row may say behind its number."""

ROWS = [
    "~~{line}~~", "~~ {line} ~~", "<!-- {line} -->", "<!--{line}-->", "// {line}", "# {line}", "## {line}", "-- {line}",
    "; {line}", "% {line}", "> {line}", "| {line} |", "/* {line} */", "<del>{line}</del>", "<s>{line}</s>", "({line})",
    "\"{line}\"", "Thought: {line}", "Note: {line}", "Plan B: {line}", "NOT {line}", "x {line}", "~{line}~", "!{line}",
    "<!--\n{line}\n-->", "~~\n{line}\n~~", "/*\n{line}\n*/", "<del>\n{line}\n</del>", "<rejected>\n{line}\n</rejected>",
    "Only if the first is empty:\n{line}", "Do not do this:\n{line}", "```\n~~{line}~~\n```", "else:\n    {line}",
    "I do not call {json}", "~~{json}~~", "<!-- {json} -->", "// {json}", "Thought: {json}", "If it is empty: {json}",
]  # fmt: skip
"""What may stand around a whole line, or around the call in JSON."""

THOUGHTS = [
    "<think>{line}</think>", "<think>\n{line}\n</think>", "So. <think>{line}</think>",
    "<thinking>\n{line}\n</thinking>", "<mm:think>\n{line}</mm:think>", "[THINK]{line}[/THINK]",
    "<seed:think>{line}\n</seed:think>", "◁think▷{line}◁/think▷", "<|START_THINKING|>{line}<|END_THINKING|>",
    "<|begin_of_thought|>\n{line}\n<|end_of_thought|>",
    "<|channel|>analysis<|message|>{line}<|end|>", "<|channel|>analysis<|message|>\n{line}\n<|end|>",
    "<think>{json}</think>", "<think>\n{json}\n</think>", "<think>```\n{line}\n```</think>",
]  # fmt: skip

UNOPENED = [
    "{line}</think>",
    "{line}\n</think>",
    "so\n{line}\nso</think>",
    "{json}</thinking>",
    "{line}<|END_THINKING|>",
]
"""Thoughts whose opening tag the chat template has written: they stand before everything else."""


def denied(chance: random.Random, number: int, call: str, json: str, forms: list[str]) -> str:
    """Return one of the forms around a call. Words have a number before them, or none."""
    form = chance.choice(forms)
    if form in WORDS:
        return chance.choice([f"{number}. {form}", f"- {form}", form]).format(call=call)
    line = chance.choice([f"{number}. {call}", f"- {number}. {call}", f"**{number}.** {call}", call])
    return form.format(line=line, json=json)
