"""A run as text: its answer with sources, its nodes, what it waits for. Pure; all
text is made safe to show.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from rich.cells import cell_len

from sennit.starter.limits import (
    MAX_NODE_LINES,
    MAX_PROGRESS_CHARACTERS,
    MAX_SHOWN_LOG,
    MAX_SHOWN_WRITES,
)
from sennit.starter.terminal.layers import bands_of, bar_of
from sennit.starter.terminal.text import as_json, fit, padded
from sennit.workflows.messages.result import BlockedOn, NodeLine, RunReport, UsageReport, WriteLine
from sennit.workflows.messages.views import ENDED_STATUSES, NodeView, RunView, ended_of
from sennit.workflows.plan.language.limits import duration_text
from sennit.workflows.plan.language.text import clean, one_line

GLYPHS = {
    "succeeded": "✓",
    "failed": "✗",
    "handled": "~",
    "running": "▸",
    "waiting": "?",
    "skipped": "-",
    "cancelled": "x",
    "pending": "·",
}
_SAID = ("running", "waiting", "failed", "handled", "skipped", "cancelled")
"""The statuses that counts name. The others follow from the number of nodes that have ended."""
WRITE_SAYS = {
    "made": "made, though it was cut off",
    "not made": "not made",
    "unknown": "unknown: it may have been made",
    "in flight": "in flight; the run waits for it before it ends",
}
_BAR = 20
_MOST_PROBLEM_LINES = 50
_MOST_FAILED = 10


def counts_text(counts: Mapping[str, int]) -> str:
    """Return `3 of 7 nodes, 1 running, 1 failed` from the number of nodes in each status."""
    total = sum(counts.values())
    if not total:
        return "no plan yet"
    nodes = "node" if total == 1 else "nodes"
    parts = [f"{ended_of(counts)} of {total} {nodes}"]
    for status in _SAID:
        count = counts.get(status)
        if count:
            parts.append(f"{count} {status}")
    return ", ".join(parts)


def status_text(view: RunView) -> str:
    """Return the status of a run; of one that goes on although it asks a person
    something, that it does both.
    """
    if view.status == "running" and view.blocked:
        return "running, a question waits"
    return view.status


def usage_text(usage: UsageReport) -> str:
    """Return what a run used, or nothing if it called no model."""
    if not usage.calls and not usage.input_tokens and not usage.output_tokens:
        return ""
    calls = "model call" if usage.calls == 1 else "model calls"
    tokens = usage.input_tokens + usage.output_tokens
    text = f"{usage.calls} {calls}, {tokens:,} tokens"
    if usage.cached_tokens:
        text += f" ({usage.cached_tokens:,} from a cache)"
    if usage.cost_usd:
        text += f", ${usage.cost_usd:.4f}"
    return text


def budget_text(ledger: Mapping[str, Mapping[str, float | None]]) -> str:
    """Return what was spent of each limit: `tokens 900 of 1,000 (200 reserved)`."""
    parts: list[str] = []
    for name, row in ledger.items():
        if row["limit"] is None:
            continue
        part = f"{name} {row['spent']:,} of {row['limit']:,}"
        if row["reserved"]:
            part += f" ({row['reserved']:,} reserved)"
        parts.append(part)
    return ", ".join(parts)


def label(node: NodeLine) -> str:
    """Return what a node does, without its id; why it failed, was skipped or needed its fallback;
    its progress first while it runs, or that a program took it over, or a person gave its result.
    """
    if node.status in ("failed", "handled", "succeeded", "skipped") and node.error:
        return one_line(node.error).removeprefix("Skipped: ")

    # The summary begins with the id, of an item with that of its map.
    head, _, rest = node.id.partition("[")
    map_id = head + rest.partition("]")[2]
    does = one_line(node.summary).removeprefix(map_id).strip()
    what = f"{one_line(node.call_site)} {does}".strip() or node.kind

    progress = ""
    if isinstance(node, NodeView) and node.status in ("running", "waiting"):
        progress = one_line(node.preview, MAX_PROGRESS_CHARACTERS)
    if progress:
        return f"{progress} · {what}"
    origins: list[str] = []
    if node.budget:
        origins.append(budget_text(node.budget))
    if node.taken_over:
        origins.append("taken over")
    if node.answered:
        origins.append("answered")
    if origins:
        return f"{', '.join(origins)} · {what}"
    return what


def node_line(node: NodeLine, width: int, id_width: int = 8) -> str:
    """Return one node as a line of at most `width` columns."""
    time, tries = "", ""
    if node.status in ENDED_STATUSES:
        time = duration_text(node.duration_ms)
    if node.attempts > 1:
        tries = f"x{node.attempts}"
    head = f"{padded(one_line(node.id), id_width)} {node.status:<9} {time:>9} {tries:<3} "
    figures = _figures_of(node)
    room = max(width - cell_len(head), 8)
    line = head + fit_label(f"{figures}{label(node)}", room)
    return line.rstrip()


def _figures_of(node: NodeLine) -> str:
    """Return since when a node runs, and what its models have used; "" where
    there is nothing to say.
    """
    parts: list[str] = []
    if node.status == "running" and node.started:
        parts.append(f"since {datetime.fromtimestamp(node.started, UTC):%H:%M:%S}")
    if node.tokens:
        parts.append(f"{node.tokens:,} tokens")
    if node.cost_usd:
        parts.append(f"${node.cost_usd:.4f}")
    if not parts:
        return ""
    return f"{', '.join(parts)} · "


def node_sentence(node: NodeLine, width: int) -> str:
    """Return what has become of one node, as a sentence of at most `width` columns. What it
    waits for is not said.
    """
    what = label(node)
    head = f"{one_line(node.id)} {_said_of(node, what)}"
    if node.status == "waiting" or what == node.kind:
        return fit(head, width)
    room = max(width - cell_len(head) - 2, 8)
    return f"{head}: {fit_label(what, room)}"


def _said_of(node: NodeLine, what: str) -> str:
    """Return the verb of a node's sentence, with its time and its attempt."""
    took = duration_text(node.duration_ms)
    in_time = ""
    if took:
        in_time = f" in {took}"
    again = ""
    if node.attempts > 1:
        again = f", attempt {node.attempts}"
    match node.status:
        case "running" if not again:
            return "started"
        case "running" if what.startswith(f"attempt {node.attempts} "):
            return "started again"  # its progress says which attempt, and why
        case "running":
            return f"started again{again}"
        case "succeeded" | "failed":
            return f"{node.status}{in_time}{again}"
        case "handled":
            return f"failed{in_time}{again}, and its script has caught that"
        case "cancelled" if took:
            return f"was cancelled after {took}"
        case "cancelled" | "skipped":
            return f"was {node.status}"
        case "waiting":
            return "waits for a person"
    return node.status


def fit_label(text: str, width: int) -> str:
    """Return a label in at most `width` columns; what the node does is cut before the
    arrow to what it needs.
    """
    what, arrow, needs = text.rpartition(" <- ")
    if not arrow:
        return fit(text, width)
    tail = arrow + fit(needs, width // 3)
    return fit(what, width - cell_len(tail)) + tail


def id_width(nodes: Iterable[NodeLine]) -> int:
    """Return the width of the id column: the longest id, at most 20."""
    widths = [cell_len(node.id) for node in nodes]
    return min(max(widths, default=2), 20)


def blocked_lines(item: BlockedOn, flags: str = "") -> list[str]:
    """Return what a run waits for, the values that it shows, and the command that answers it."""
    why, question = one_line(item.why), one_line(item.question)
    parts = [one_line(item.node), why, question]
    if why == question:
        parts.remove(why)
    command = f"    {one_line(item.command)}{flags}"
    if item.also:
        command += f"  # or {', '.join(map(_way, item.also))}"
    return [": ".join(filter(None, parts)), *shown_lines(item), command]


def _way(update: str) -> str:
    """Return how a person names another update that answers a question, beside the
    command that is shown.
    """
    if update == "edit_plan":
        return "--edit-plan"
    return update.partition("_")[0]


def shown_lines(item: BlockedOn) -> list[str]:
    """Return the values that a person decides about, each line behind a mark, so
    that none passes for ours.
    """
    return [f"  | {line}".rstrip() for line in clean(item.shown).splitlines()]


def answer_text(report: RunReport, width: int | None = None) -> str:
    """Return the answer with its sources below; JSON if the answer is not text. Wrapped
    only if `width` is given.
    """
    if report.answer is None:
        return ""
    answer = report.answer
    if not isinstance(answer, str):
        answer = as_json(answer, indent=2)
    return "\n".join([clean(answer).strip("\n"), *_sources(report, width)])


def _sources(report: RunReport, width: int | None = None) -> list[str]:
    """Return one line for each piece of evidence: `[n] path: "quote"`."""
    if not report.evidence:
        return []
    lines = ["", "Sources"]
    for piece in sorted(report.evidence, key=lambda piece: piece.n):
        said = one_line(piece.claim)
        if piece.quote.strip():
            said = f'"{one_line(piece.quote)}"'
        parts = [one_line(piece.source), said]
        lines += _wrapped(f"[{piece.n}] ", ": ".join(filter(None, parts)), width)
    return lines


def _wrapped(mark: str, text: str, width: int | None) -> list[str]:
    if width is None or cell_len(mark + text) <= width:
        return [mark + text]
    indent = " " * len(mark)
    return textwrap.wrap(
        text, max(width, 40), initial_indent=mark, subsequent_indent=indent, break_on_hyphens=False
    )


def closing_lines(report: RunReport) -> list[str]:
    """Return how a run ended: why it failed or what is missing, and what it used."""
    counts = ""
    if report.counts:
        counts = counts_text(report.counts)
    facts = [report.status, counts, usage_text(report.usage)]
    lines = [" · ".join(filter(None, facts))]
    problem = report.problem or ""
    for line in clean(problem).splitlines()[:_MOST_PROBLEM_LINES]:
        lines.append(f"  {line}")
    lines += write_lines(report.writes)

    # Why each node has failed, where the problem does not say so already.
    failed: list[NodeLine] = []
    for node in report.nodes:
        is_said = node.error is not None and node.error != "" and node.error in problem
        if node.status == "failed" and not is_said:
            failed.append(node)
    for node in failed[:_MOST_FAILED]:
        reason = one_line(node.error or "no reason given")
        lines.append(f"  {one_line(node.id)} failed: {reason}")
    if len(failed) > _MOST_FAILED:
        lines.append(f"  and {len(failed) - _MOST_FAILED} more failed")
    if report.nodes_left_out:
        lines.append(
            f"  {report.nodes_left_out:,} nodes are not in the report because it would be too long"
        )

    lines += log_lines(report.log)
    for warning in report.warnings:
        lines.append(f"  warning: {one_line(warning)}")
    return lines


def log_lines(log: Sequence[str]) -> list[str]:
    """Return the last lines that programs have logged."""
    lines = [f"  log: {one_line(line)}" for line in log[-MAX_SHOWN_LOG:]]
    left_out = len(log) - len(lines)
    if left_out:
        lines.insert(0, f"  log: … {left_out:,} lines before these; --output json has them")
    return lines


def write_lines(writes: Sequence[WriteLine]) -> list[str]:
    """Return a line for each of the first writes that were cut off, or of which nobody knows."""
    lines: list[str] = []
    for line in writes[:MAX_SHOWN_WRITES]:
        lines.append(f"  write {one_line(line.node)}: {WRITE_SAYS[line.status]}")
    left_out = len(writes) - len(lines)
    if left_out:
        lines.append(f"  and {left_out} more writes")
    return lines


def view_text(view: RunView, width: int, flags: str = "", *, failed: bool = False) -> str:
    """Return a run that goes on: state, goal, its nodes, or the `failed` alone,
    and what it waits for.
    """
    facts = [counts_text(view.counts), usage_text(view.usage)]
    figures = " · ".join(filter(None, facts))
    heads = [
        (f"{one_line(view.id)}  {status_text(view)}  ", figures),
        ("goal  ", view.goal),
        (f"{view.phase}  ", view.progress),
        ("budget  ", budget_text(view.budget)),
        ("quote  ", view.quote),
        ("drains until these have ended, to continue as new  ", ", ".join(view.waits_for)),
    ]
    lines: list[str] = []
    for head, tail in heads:
        if tail:
            room = max(width - cell_len(head), 8)
            lines.append((head + fit(tail, room)).rstrip())
    lines += _node_lines(view.nodes, width, failed=failed)
    lines += log_lines(view.log)
    lines += write_lines(view.writes)
    for item in view.blocked:
        lines += blocked_lines(item, flags)
    for warning in view.warnings:
        lines.append(f"warning: {one_line(warning)}")
    return "\n".join(lines)


def report_text(report: RunReport, width: int, *, failed: bool = False) -> str:
    """Return a run that is over: state, nodes, or the `failed` alone, what went
    wrong, and the answer.
    """
    lines = [f"{one_line(report.id)}  {report.status}"]
    if report.quote:
        lines.append("quote  " + fit(report.quote, width - 7))
    lines += _node_lines(report.nodes, width, failed=failed)
    lines += closing_lines(report)[1:]
    answer = answer_text(report, width)
    if answer:
        lines += ["", answer]
    return "\n".join(lines)


def _node_lines(nodes: Sequence[NodeLine], width: int, *, failed: bool = False) -> list[str]:
    """Return a line for each node; of many calls of programs one for each group, and below
    those what needs a look.
    """
    maps = {node.id: node.summary for node in nodes if node.kind == "map"}
    shown: list[NodeLine] = []
    for node in nodes:
        if node.status == "failed" or not failed:
            shown.append(_as_item(node, maps))
    in_groups = len(shown) > MAX_NODE_LINES and any(node.call_site for node in shown)
    if failed or not in_groups:
        return _listed(shown, width, id_width(shown))

    views = [_as_view(node) for node in shown]
    bands = bands_of(views, MAX_NODE_LINES)
    gutter = 0
    listed: list[NodeLine] = []
    for band in bands:
        gutter = max(gutter, cell_len(band.name))
        listed += band.nodes
    wide = id_width(listed)

    # Each group has its bar, and below it the nodes that need a look.
    lines: list[str] = []
    for band in bands:
        if band.folded:
            bar = ""
            for _, signs in bar_of(band.counts, _BAR):
                bar += signs
            line = f"  {padded(band.name, gutter)}  {bar} {counts_text(band.counts)}"
            lines.append(fit(line, width).rstrip())
        lines += _listed(band.nodes, width, wide)
    return lines


def _listed(nodes: Sequence[NodeLine], width: int, wide: int) -> list[str]:
    lines: list[str] = []
    for node in nodes:
        lines.append(f"  {GLYPHS[node.status]} {node_line(node, width - 4, wide)}")
    return lines


def _as_view(node: NodeLine) -> NodeView:
    if isinstance(node, NodeView):
        return node
    return NodeView(**node.model_dump())


def _as_item(node: NodeLine, maps: Mapping[str, str]) -> NodeLine:
    """Return an item of a map with the summary of the map, which a report says once."""
    is_item = node.id.endswith("]") and not node.summary
    summary = maps.get(node.id.partition("[")[0])
    if not (is_item and summary):
        return node
    return node.model_copy(update={"summary": summary})


def report_of(view: RunView, ui_url: str | None) -> RunReport:
    """Return an open run in the form of a report."""
    return RunReport(
        id=view.id,
        run_id=view.run_id,
        status=view.status,
        counts=view.counts,
        nodes=_nodes_of(view),
        usage=view.usage,
        blocked=view.blocked,
        writes=view.writes,
        warnings=view.warnings,
        log=view.log,
        ui_url=ui_url,
    )


def with_nodes(report: RunReport, view: RunView) -> RunReport:
    """Return the report with the nodes last seen if it has none, such as
    that of a cancelled run.
    """
    if report.nodes:
        return report
    return report.model_copy(
        update={"nodes": _nodes_of(view), "counts": view.counts, "usage": view.usage}
    )


def _nodes_of(view: RunView) -> tuple[NodeLine, ...]:
    keep = set(NodeLine.model_fields)
    lines: list[NodeLine] = []
    for node in view.nodes:
        lines.append(NodeLine(**node.model_dump(include=keep)))
    return tuple(lines)
