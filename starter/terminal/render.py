"""A run as text: its answer with sources, its nodes, what it waits for. Pure; all text is made safe to show."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len

from sennit.starter.limits import MAX_NODE_LINES, MAX_PROGRESS_CHARACTERS, MAX_SHOWN_LOG, MAX_SHOWN_WRITES
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
ORDER = ("succeeded", "running", "waiting", "pending", "failed", "handled", "skipped", "cancelled")
WRITE_SAYS = {
    "made": "made, though it was cut off",
    "not made": "not made",
    "unknown": "unknown: it may have been made",
    "in flight": "in flight; the run waits for it before it ends",
}
_BAR = 20


def counts_text(counts: Mapping[str, int]) -> str:
    """Return `3 of 7 nodes, 1 running, 1 failed` from the number of nodes in each status."""
    total = sum(counts.values())
    if not total:
        return "planning"
    done = ended_of(counts)
    rest = [f"{counts[status]} {status}" for status in ORDER[1:] if status != "pending" and counts.get(status)]
    return ", ".join([f"{done} of {total} node{'s' * (total != 1)}", *rest])


def status_text(view: RunView) -> str:
    """Return the status of a run; of one that goes on although it asks a person something, that it does both."""
    asks = view.status == "running" and view.blocked
    return "running, a question waits" if asks else view.status


def usage_text(usage: UsageReport) -> str:
    """Return what a run used, or nothing if it called no model."""
    if not usage.calls and not usage.input_tokens and not usage.output_tokens:
        return ""
    tokens = usage.input_tokens + usage.output_tokens
    cached = f" ({usage.cached_tokens:,} from a cache)" if usage.cached_tokens else ""
    cost = f", ${usage.cost_usd:.4f}" if usage.cost_usd else ""
    return f"{usage.calls} model call{'s' * (usage.calls != 1)}, {tokens:,} tokens{cached}{cost}"


def budget_text(ledger: Mapping[str, Mapping[str, float | None]]) -> str:
    """Return what was spent of each limit: `tokens 900 of 1,000 (200 reserved)`."""
    return ", ".join(
        f"{name} {row['spent']:,} of {row['limit']:,}" + (f" ({row['reserved']:,} reserved)" if row["reserved"] else "")
        for name, row in ledger.items()
        if row["limit"] is not None
    )


def label(node: NodeLine) -> str:
    """Return what a node does, without its id; why it failed, was skipped or needed its fallback; its progress first
    while it runs, or that a program took it over, or a person gave its result.
    """
    if node.status in ("failed", "handled", "succeeded", "skipped") and node.error:
        return one_line(node.error).removeprefix("Skipped: ")
    head, _, part = node.id.partition("[")
    does = one_line(node.summary).removeprefix(head + part.partition("]")[2]).strip()
    what = f"{one_line(node.call_site)} {does}".strip() or node.kind
    preview = node.preview if isinstance(node, NodeView) and node.status in ("running", "waiting") else ""
    progress = one_line(preview, MAX_PROGRESS_CHARACTERS)
    first = progress or ", ".join(["taken over"] * node.taken_over + ["answered"] * node.answered)
    return f"{first} · {what}" if first else what


def node_line(node: NodeLine, width: int, id_width: int = 8) -> str:
    """Return one node as a line of at most `width` columns."""
    time = duration_text(node.duration_ms) if node.status in ENDED_STATUSES else ""
    tries = f"x{node.attempts}" if node.attempts > 1 else ""
    head = f"{padded(one_line(node.id), id_width)} {node.status:<9} {time:>9} {tries:<3} "
    return (head + fit_label(label(node), max(width - cell_len(head), 8))).rstrip()


def node_sentence(node: NodeLine, width: int) -> str:
    """Return what has become of one node, as a sentence of at most `width` columns. What it waits for is not said."""
    took, again = duration_text(node.duration_ms), f", attempt {node.attempts}" if node.attempts > 1 else ""
    what = label(node)
    if node.status == "running":
        is_said = what.startswith(f"attempt {node.attempts} ")  # by its progress, which says why
        said = f"started again{'' if is_said else again}" if again else "started"
    elif node.status in ("succeeded", "failed"):
        said = f"{node.status} in {took}{again}" if took else f"{node.status}{again}"
    elif node.status == "handled":
        said = f"failed{f' in {took}' if took else ''}{again}, and its script has caught that"
    elif node.status == "cancelled":
        said = f"was cancelled after {took}" if took else "was cancelled"
    else:
        said = {"waiting": "waits for a person", "skipped": "was skipped"}.get(node.status, node.status)
    head = f"{one_line(node.id)} {said}"
    if node.status == "waiting" or what == node.kind:
        return fit(head, width)
    return f"{head}: {fit_label(what, max(width - cell_len(head) - 2, 8))}"


def fit_label(text: str, width: int) -> str:
    """Return a label in at most `width` columns; what the node does is cut before the arrow to what it needs."""
    what, arrow, needs = text.rpartition(" <- ")
    tail = arrow + fit(needs, width // 3) if arrow else ""
    return fit(what, width - cell_len(tail)) + tail if tail else fit(text, width)


def id_width(nodes: Iterable[NodeLine]) -> int:
    """Return the width of the id column: the longest id, at most 20."""
    return min(max((cell_len(node.id) for node in nodes), default=2), 20)


def blocked_lines(item: BlockedOn, flags: str = "") -> list[str]:
    """Return what a run waits for, the values that it shows, and the command that answers it."""
    why, question = one_line(item.why), one_line(item.question)
    parts = [one_line(item.node), why if why != question else "", question]
    also = f"  # or {', '.join(update.partition('_')[0] for update in item.also)}" if item.also else ""
    return [": ".join(filter(None, parts)), *shown_lines(item), f"    {one_line(item.command)}{flags}{also}"]


def shown_lines(item: BlockedOn) -> list[str]:
    """Return the values that a person decides about, each line behind a mark, so that none passes for ours."""
    return [f"  | {line}".rstrip() for line in clean(item.shown).splitlines()]


def answer_text(report: RunReport, width: int | None = None) -> str:
    """Return the answer with its sources below; JSON if the answer is not text. Wrapped only if `width` is given."""
    if report.answer is None:
        return ""
    answer = report.answer if isinstance(report.answer, str) else as_json(report.answer, indent=2)
    return "\n".join([clean(answer).strip("\n"), *_sources(report, width)])


def _sources(report: RunReport, width: int | None = None) -> list[str]:
    """Return one line for each piece of evidence: `[n] path: "quote"`."""
    if not report.evidence:
        return []
    lines = ["", "Sources"]
    for piece in sorted(report.evidence, key=lambda piece: piece.n):
        mark = f"[{piece.n}] "
        quote = f'"{one_line(piece.quote)}"' if piece.quote.strip() else ""
        text = ": ".join(part for part in (one_line(piece.source), quote or one_line(piece.claim)) if part)
        lines += _wrapped(mark, text, width)
    return lines


def _wrapped(mark: str, text: str, width: int | None) -> list[str]:
    if width is None or cell_len(mark + text) <= width:
        return [mark + text]
    return textwrap.wrap(
        text, max(width, 40), initial_indent=mark, subsequent_indent=" " * len(mark), break_on_hyphens=False
    )


def closing_lines(report: RunReport) -> list[str]:
    """Return how a run ended: why it failed or what is missing, and what it used."""
    counts = counts_text(report.counts) if report.counts else ""
    lines = [" · ".join(filter(None, (report.status, counts, usage_text(report.usage))))]
    if report.problem:
        lines += [f"  {line}" for line in clean(report.problem).splitlines()[:50]]
    lines += write_lines(report.writes)
    problem = report.problem or ""
    failed = [node for node in report.nodes if node.status == "failed" and not (node.error and node.error in problem)]
    lines += [f"  {one_line(node.id)} failed: {one_line(node.error or 'no reason given')}" for node in failed[:10]]
    if len(failed) > 10:
        lines.append(f"  and {len(failed) - 10} more failed")
    if report.nodes_left_out:
        lines.append(f"  {report.nodes_left_out:,} nodes are not in the report because it would be too long")
    return lines + log_lines(report.log) + [f"  warning: {one_line(warning)}" for warning in report.warnings]


def log_lines(log: Sequence[str]) -> list[str]:
    """Return the last lines that programs have logged."""
    more = [f"  log: … {len(log) - MAX_SHOWN_LOG:,} lines before these; --output json has them"]
    return [*more[: len(log) > MAX_SHOWN_LOG], *(f"  log: {one_line(line)}" for line in log[-MAX_SHOWN_LOG:])]


def write_lines(writes: Sequence[WriteLine]) -> list[str]:
    """Return a line for each of the first writes that were cut off, or of which nobody knows."""
    lines = [f"  write {one_line(line.node)}: {WRITE_SAYS[line.status]}" for line in writes[:MAX_SHOWN_WRITES]]
    return [
        *lines,
        *([f"  and {len(writes) - MAX_SHOWN_WRITES} more writes"] if len(writes) > MAX_SHOWN_WRITES else []),
    ]


def view_text(view: RunView, width: int, flags: str = "", *, failed: bool = False) -> str:
    """Return a run that goes on: state, goal, its nodes, or the `failed` alone, and what it waits for."""
    heads = (
        (
            f"{one_line(view.id)}  {status_text(view)}  ",
            " · ".join(filter(None, (counts_text(view.counts), usage_text(view.usage)))),
        ),
        ("goal  ", view.goal),
        (f"{view.phase}  ", view.progress),
        ("budget  ", budget_text(view.budget)),
        ("quote  ", view.quote),
        ("drains until these have ended, to continue as new  ", ", ".join(view.waits_for)),
    )
    lines = [(head + fit(tail, max(width - cell_len(head), 8))).rstrip() for head, tail in heads if tail]
    lines += _node_lines(view.nodes, width, failed=failed) + log_lines(view.log) + write_lines(view.writes)
    for item in view.blocked:
        lines += blocked_lines(item, flags)
    return "\n".join(lines + [f"warning: {one_line(warning)}" for warning in view.warnings])


def report_text(report: RunReport, width: int, *, failed: bool = False) -> str:
    """Return a run that is over: state, nodes, or the `failed` alone, what went wrong, and the answer."""
    quote = ["quote  " + fit(report.quote, width - 7)] if report.quote else []
    lines = [f"{one_line(report.id)}  {report.status}", *quote, *_node_lines(report.nodes, width, failed=failed)]
    lines += closing_lines(report)[1:]
    answer = answer_text(report, width)
    return "\n".join(lines + (["", answer] if answer else []))


def _node_lines(nodes: Sequence[NodeLine], width: int, *, failed: bool = False) -> list[str]:
    """Return a line for each node; of many calls of programs one for each group, and below those what needs a look."""
    maps = {node.id: node.summary for node in nodes if node.kind == "map"}
    nodes = [_as_item(node, maps) for node in nodes]
    shown = [node for node in nodes if node.status == "failed"] if failed else nodes
    if failed or len(shown) <= MAX_NODE_LINES or not any(node.call_site for node in shown):
        wide = id_width(shown)
        return [f"  {GLYPHS[node.status]} {node_line(node, width - 4, wide)}" for node in shown]
    views = [node if isinstance(node, NodeView) else NodeView(**node.model_dump()) for node in shown]
    bands = bands_of(views, MAX_NODE_LINES)
    gutter = max(cell_len(band.name) for band in bands)
    wide = id_width([node for band in bands for node in band.nodes])
    lines = []
    for band in bands:
        if band.folded:
            bar = "".join(signs for _, signs in bar_of(band.counts, _BAR))
            lines.append(fit(f"  {padded(band.name, gutter)}  {bar} {counts_text(band.counts)}", width).rstrip())
        lines += [f"  {GLYPHS[node.status]} {node_line(node, width - 4, wide)}" for node in band.nodes]
    return lines


def _as_item(node: NodeLine, maps: Mapping[str, str]) -> NodeLine:
    """Return an item of a map with the summary of the map, which a report says once."""
    summary = maps.get(node.id.partition("[")[0]) if node.id.endswith("]") and not node.summary else None
    return node.model_copy(update={"summary": summary}) if summary else node


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
    """Return the report with the nodes last seen if it has none, such as that of a cancelled run."""
    if report.nodes:
        return report
    return report.model_copy(update={"nodes": _nodes_of(view), "counts": view.counts, "usage": view.usage})


def _nodes_of(view: RunView) -> tuple[NodeLine, ...]:
    keep = set(NodeLine.model_fields)
    return tuple(NodeLine(**node.model_dump(include=keep)) for node in view.nodes)
