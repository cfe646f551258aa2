"""How a map opens: the length of its list is a fact of the node it reads."""

from workflows.plan.scheduling.state import PENDING, RunState

MAX_UNITS = 20_000


def length(state: RunState, node: int) -> int | str:
    """Return how many items the map has, or the sentence why it cannot open."""
    spec = state.graph.specs[node]
    if spec.over is None:
        count = spec.length
    else:
        source, name = spec.over[0], spec.over[1]
        fact = state.facts.get(source, {}).get(name)
        if not isinstance(fact, int) or isinstance(fact, bool) or fact < 0:
            return f"the output of {state.graph.specs[source].id} has no list at `{name}`"
        count = fact
    if count < 0:
        return "what it goes over is not a list"
    if count > spec.cap:
        return f"its list has {count} items; max_items is {spec.cap}"
    if len(state.status) + count > MAX_UNITS:
        return f"{count} more items would make over {MAX_UNITS} units in one run"
    return count


def append(state: RunState, node: int, count: int) -> range:
    """Append one unit an item, in the map's generation, and return them."""
    first = len(state.status)
    state.status += [PENDING] * count
    state.generation += [state.generation[node]] * count
    state.digest += [None] * count
    for column in (state.size, state.attempts, state.millis, state.started):
        column += [0] * count
    state.queued += [False] * count
    state.owner += [(node, item) for item in range(count)]
    state.items[node] = range(first, first + count)
    state.open_inputs[node] = count
    return state.items[node]
