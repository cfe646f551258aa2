"""A plan as a picture: text in layers for a terminal, an SVG file or a Mermaid flowchart for a page."""

from rich.cells import cell_len

from starter.client.text import as_json, fit
from workflows.drawing import layout
from workflows.drawing.diagram import Mark, Sketch
from workflows.drawing.diagram import Node as Drawn
from workflows.drawing.picture import picture as drawing
from workflows.drawing.text import plain
from workflows.plan.language import dependencies
from workflows.plan.language.nodes import AgentCall, GateNode, JoinNode, MapNode, Node, Plan, Quorum, ToolCall, ToolNode
from workflows.plan.language.text import one_line

_ESCAPES = {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "`": "#96;"}
_SHAPES = {
    "tool": ("[", "]"),
    "llm": ("(", ")"),
    "agent": ("[/", "/]"),
    "map": ("[[", "]]"),
    "join": ("{{", "}}"),
    "gate": ("{", "}"),
}


def what(node: Node) -> str:
    """Return in a few words what a node does."""
    if isinstance(node, JoinNode):
        policy = node.policy.quorum if isinstance(node.policy, Quorum) else node.policy
        return f"quorum {policy}" if isinstance(node.policy, Quorum) else str(policy)
    if isinstance(node, GateNode):
        return node.question
    work = dependencies.work_of(node)
    if work is None:
        return node.kind
    if isinstance(work, AgentCall):
        return f'"{work.goal}"'
    call = f"{work.tool} {_arguments(work)}" if isinstance(work, ToolCall) else f'{work.role} "{work.prompt}"'
    return f"{node.over} as {node.as_}: {call}" if isinstance(node, MapNode) else call


def _arguments(call: ToolCall) -> str:
    values = [value if isinstance(value, str) else as_json(value) for value in call.args.values()]
    if len(values) == 1:
        return f'"{values[0]}"' if isinstance(next(iter(call.args.values())), str) else values[0]
    return " ".join(f"{name}={as_json(value)}" for name, value in call.args.items())


def before(plan: Plan) -> dict[str, list[str]]:
    """Return for each node the nodes it comes after; a stand-in comes after the one it stands in for."""
    found = {
        node.id: list(
            dict.fromkeys([*dependencies.needs_of(node), *dependencies.watches_of(node), *dependencies.inputs_of(node)])
        )
        for node in plan.nodes
    }
    for node in plan.nodes:
        standin = dependencies.fallback_of(node)
        if standin is not None:
            found[standin] = [node.id, *found[standin]]
    return found


def _indices(after: dict[str, list[str]]) -> list[list[int]]:
    place = {name: index for index, name in enumerate(after)}
    return [[place[other] for other in others] for others in after.values()]


def layers(after: dict[str, list[str]]) -> list[list[str]]:
    """Return the nodes in layers: each as early as what it comes after allows, in the plan's order."""
    names = list(after)
    return [[names[node] for node in layer] for layer in layout.layered(layout.levels(_indices(after)))]


def _told(node: Node) -> str:
    return what(node) if isinstance(node, ToolNode) else f"{node.kind} {what(node)}"


def svg(plan: Plan) -> str:
    """Return the plan as an SVG file: the drawing that the board shows, before anything has run."""
    after = before(plan)
    place = {name: index for index, name in enumerate(after)}
    standins = {node.id: dependencies.fallback_of(node) for node in plan.nodes}
    nodes = [
        Drawn(node.id, plain(_told(node), 60), tuple(place[name] for name in (standins[node.id],) if name))
        for node in plan.nodes
    ]
    sketch = Sketch(layout.arrange(_indices(after)), nodes, badged=False)
    marks = [Mark("planned", title=plain(f"{node.id} {_told(node)}", 200)) for node in plan.nodes]
    return drawing(sketch, marks, alone=True)


def picture(plan: Plan, width: int) -> str:
    """Return the plan in layers, top to bottom; nodes of a layer can run side by side. At most `width` columns."""
    after = before(plan)
    nodes = {node.id: node for node in plan.nodes}
    wide = min(max(map(len, nodes)), 20)
    lines = ["goal    " + fit(plan.goal, width - 8), ""] if plan.goal else []
    for number, layer in enumerate(layers(after)):
        lines += ["  │", "  ▼"] if number else []
        lines += [_row(nodes[name], after[name], wide, width) for name in layer]
    answer = dependencies.answer_of(plan)
    shown = answer if isinstance(answer, str) else as_json(answer)
    return "\n".join([*lines, "  │", "  ▼", "answer  " + fit(shown, width - 8)])


def _row(node: Node, after: list[str], wide: int, width: int) -> str:
    head = f"  {node.id:<{wide}}  {node.kind:<4}  "
    arrows = f"  <- {_some(after, max(width // 3, 12))}" if after else ""
    told = fit(what(node), max(width - cell_len(head) - cell_len(arrows), 8))
    return (head + told + arrows).rstrip()


def _some(names: list[str], room: int) -> str:
    """Return as many names as fit, and how many are left out."""
    shown = ""
    for count, name in enumerate(names):
        longer = f"{shown}, {name}" if shown else name
        if len(longer) > room and shown:
            return f"{shown} +{len(names) - count}"
        shown = longer
    return shown


def mermaid(plan: Plan) -> str:
    """Return the plan as a Mermaid flowchart; a dotted arrow leads to a stand-in."""
    after = before(plan)
    standins = {(node.id, dependencies.fallback_of(node)) for node in plan.nodes}
    lines = ["flowchart TD"]
    for node in plan.nodes:
        opening, closing = _SHAPES[node.kind]
        lines.append(f'  n_{node.id}{opening}"{_quoted(f"{node.id}: {fit(what(node), 60)}")}"{closing}')
    for name, others in after.items():
        for other in others:
            arrow = "-. instead .->" if (other, name) in standins else "-->"
            lines.append(f"  n_{other} {arrow} n_{name}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in one_line(text))
