"""How runs and their nodes go, on /metrics of the workers that serve workflows."""

from collections import Counter

from temporalio import workflow

from sennit.workflows.messages.result import RunStatus
from sennit.workflows.plan.figures.figures import Figures
from sennit.workflows.plan.figures.speculated import Speculated
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import STATUS_NAMES
from sennit.workflows.views.shown_run import ShownRun


class RunMetrics:
    """Counts a run each time it comes to another status, and its nodes when it ends.

    A replay counts nothing. What a worker has counted is gone with it, as for every counter.
    `status` is what the run has been counted with before it continued as new.
    """

    def __init__(self, status: RunStatus | None) -> None:
        self._status = status

    def publish(self, status: RunStatus, shown: ShownRun | None) -> None:
        """Count the run, if this status is new."""
        if status == self._status:
            return
        self._status = status
        meter = workflow.metric_meter()
        run_kind = "run" if workflow.info().parent is None else "subagent"
        runs = meter.create_counter("sennit_runs", "Runs by each status they came to")
        runs.add(1, {"status": status, "kind": run_kind})
        if shown is None or status in ("running", "blocked"):
            return
        nodes = meter.create_counter(
            "sennit_nodes", "Nodes of runs that have ended, by their last status"
        )
        state = shown.state
        ends: Counter[tuple[str, str]] = Counter()
        for unit in shown.units:
            last = STATUS_NAMES[state.units[unit].status]
            ends[_kind_of(state, unit), last] += 1
        for (kind, last), count in ends.items():
            nodes.add(count, {"kind": kind, "status": last})

    def publish_figures(self, figures: Figures) -> None:
        """Count the figures of a run that has ended. Rates are made from the sums: histograms of
        seconds and ratios, and counters of waiting, retries and failures. See docs/figures.md.
        """
        if not figures.calls and not figures.subagents:
            return
        meter = workflow.metric_meter()
        durations = {
            "makespan": figures.makespan_ms,
            "critical_path": figures.critical_path_ms,
            "sequential": figures.sequential_ms,
        }
        for name, millis in durations.items():
            about = f"Seconds of the {name.replace('_', ' ')} time of runs that have ended"
            histogram = meter.create_histogram_float(f"sennit_run_{name}_seconds", about)
            histogram.record(millis / 1000)
        ratios = {
            "speed_up": figures.speed_up,
            "parallel_ratio": figures.parallel_ratio,
            "mean_width": figures.mean_width,
            "utilisation": figures.utilisation,
        }
        for name, ratio in ratios.items():
            if ratio is not None:
                about = f"The {name.replace('_', ' ')} of runs that have ended"
                meter.create_histogram_float(f"sennit_run_{name}", about).record(ratio)
        waited = meter.create_counter(
            "sennit_waited_milliseconds", "Milliseconds that calls have waited, by cause"
        )
        for cause, millis in figures.waited_ms.items():
            waited.add(millis, {"cause": cause})
        meter.create_counter("sennit_retries", "Attempts after the first one").add(figures.retries)
        failures = meter.create_counter("sennit_failures", "Failures of calls, by class")
        for kind, count in figures.failures.items():
            failures.add(count, {"class": kind})
        if figures.speculation is not None:
            self._publish_speculation(figures.speculation)

    def _publish_speculation(self, early: Speculated) -> None:
        meter = workflow.metric_meter()
        calls = meter.create_counter(
            "sennit_early_calls", "Calls made early, by what became of them"
        )
        calls.add(early.hits, {"outcome": "hit"})
        calls.add(early.wasted, {"outcome": "waste"})
        missed = meter.create_counter(
            "sennit_early_missed", "Calls that could have used an early one and were another"
        )
        missed.add(early.missed)
        saved = meter.create_counter(
            "sennit_early_saved_milliseconds", "Milliseconds that early calls have saved"
        )
        saved.add(early.saved_ms)


def _kind_of(state: RunState, unit: int) -> str:
    if state.is_item(unit):
        return "item"
    return state.spec_of(unit).kind
