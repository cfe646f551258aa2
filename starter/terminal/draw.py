"""A plan as a picture: text in layers for a terminal, an SVG file or a
Mermaid flowchart for a page.
"""

from rich.cells import cell_len

from sennit.starter.terminal.text import as_json, fit
from sennit.workflows.drawing import layout
from sennit.workflows.drawing.diagram import Diagram, Mark
from sennit.workflows.drawing.diagram import Node as DrawnNode
from sennit.workflows.drawing.picture import picture
from sennit.workflows.drawing.text import plain
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import Node, Plan, ProgramNode, ToolNode
from sennit.workflows.plan.language.summary import DRAWINGS, what_of
from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.programs.program_plan import title_of

_ESCAPES = {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "`": "#96;"}


def _what(node: Node) -> str:
    """Return what a node does, in a few words; a program says it at its top."""
    title = ""
    if isinstance(node, ProgramNode):
        title = title_of(node.script)
    return title or what_of(node)


def sources_of(plan: Plan) -> list[list[int]]:
    """Return for each node the nodes it comes after; a fallback node comes
    after the node it replaces.
    """
    index = plan.places
    sources: list[list[int]] = []
    for node in plan.nodes:
        links = dependencies.links_of(node)
        names = dict.fromkeys((*links.needs, *links.watches, *links.inputs))
        sources.append([index[name] for name in names])
    for number, node in enumerate(plan.nodes):
        fallback = dependencies.fallback_of(node)
        if fallback is not None:
            sources[index[fallback]].insert(0, number)
    return sources


def svg(plan: Plan) -> str:
    """Return the plan as an SVG file: the drawing that the board shows, before anything has run."""
    index = plan.places
    nodes: list[DrawnNode] = []
    marks: list[Mark] = []
    for node in plan.nodes:
        what = _what(node)
        if not isinstance(node, ToolNode):
            what = f"{node.kind} {what}"
        fallbacks: tuple[int, ...] = ()
        fallback = dependencies.fallback_of(node)
        if fallback:
            fallbacks = (index[fallback],)
        nodes.append(DrawnNode(node.id, plain(what, 60), fallbacks))
        title = plain(f"{node.id} {what}", 200)
        marks.append(Mark("planned", title=title))
    diagram = Diagram(layout.arrange(sources_of(plan)), nodes, with_badges=False)
    return picture(diagram, marks, standalone=True)


def text_picture(plan: Plan, width: int) -> str:
    """Return the plan in layers, top to bottom; nodes of a layer can run in parallel.
    At most `width` columns.
    """
    sources = sources_of(plan)
    id_width = min(max(len(node.id) for node in plan.nodes), 20)
    lines: list[str] = []
    if plan.goal:
        lines += ["goal    " + fit(plan.goal, width - 8), ""]
    for number, layer in enumerate(layout.layered(layout.levels(sources))):
        if number:
            lines += ["  │", "  ▼"]
        for index in layer:
            node = plan.nodes[index]
            head = f"  {node.id:<{id_width}}  {node.kind:<4}  "
            names = [plan.nodes[source].id for source in sources[index]]
            arrows = ""
            if names:
                arrows = f"  <- {_some(names, max(width // 3, 12))}"
            room = width - cell_len(head) - cell_len(arrows)
            what = fit(_what(node), max(room, 8))
            lines.append((head + what + arrows).rstrip())
    answer = dependencies.answer_of(plan)
    text = answer
    if not isinstance(answer, str):
        text = as_json(answer)
    return "\n".join([*lines, "  │", "  ▼", "answer  " + fit(text, width - 8)])


def _some(names: list[str], room: int) -> str:
    """Return as many names as fit, and how many are left out."""
    text = ""
    for count, name in enumerate(names):
        longer = name
        if text:
            longer = f"{text}, {name}"
        if len(longer) > room and text:
            return f"{text} +{len(names) - count}"
        text = longer
    return text


def mermaid(plan: Plan) -> str:
    """Return the plan as a Mermaid flowchart; a dotted arrow leads to a fallback node."""
    lines = ["flowchart TD"]
    for node in plan.nodes:
        opening, closing, _ = DRAWINGS[node.kind]
        text = one_line(f"{node.id}: {fit(_what(node), 60)}")
        quoted = "".join(_ESCAPES.get(character, character) for character in text)
        lines.append(f'  n_{node.id}{opening}"{quoted}"{closing}')
    for node, sources in zip(plan.nodes, sources_of(plan), strict=True):
        for number in sources:
            source = plan.nodes[number]
            is_fallback = dependencies.fallback_of(source) == node.id
            arrow = "-. instead .->" if is_fallback else "-->"
            lines.append(f"  n_{source.id} {arrow} n_{node.id}")
    return "\n".join(lines)
