"""The names that the script of a program gives its calls, and the units behind them."""

from sennit.workflows.plan.scheduling.state import RunState


def unit_called(state: RunState, program: int, name: str) -> int:
    """Return the unit that the script of a program calls so; -1 if there is none."""
    session = state.sessions.get(program)
    if session is not None and name in session.units:
        return session.units[name]
    return state.graph.by_id.get(name, -1)


def name_of(state: RunState, program: int, call: int) -> str:
    """Return what the script of a program calls a unit: its id, unless the script
    has taken the unit over.
    """
    return state.sessions[program].names.get(call, state.graph.specs[call].id)
