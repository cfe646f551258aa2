"""The page of a report: one file, under a policy that lets nothing of a run become markup, and below 3 MB."""

import re
from html.parser import HTMLParser

import pytest
from doubles.reported import HOSTILE, layered

from sennit.starter.report.comparison import comparison_page
from sennit.starter.report.content import NO_WORKER, Content
from sennit.starter.report.page import asset, digest, report_page
from sennit.workflows.messages.result import RunReport

ALLOWED = [
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "header",
    "h1",
    "h2",
    "h3",
    "p",
    "section",
    "div",
    "span",
    "small",
    "b",
    "i",
    "a",
    "sup",
    "ol",
    "ul",
    "li",
    "cite",
    "q",
    "code",
    "pre",
    "dl",
    "dt",
    "dd",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "em",
    "button",
    "input",
    "svg",
    "g",
    "rect",
    "path",
    "line",
    "text",
    "footer",
    "script",
    "ins",
    "del",
]
VOID = ("meta", "input")


class Elements(HTMLParser):
    """The elements of a page with their attributes, all closed as they should be."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("count", [9, 130])
def test_nothing_that_a_run_says_becomes_markup(count: int) -> None:
    page = report_page(layered(count, 5, text=HOSTILE))
    elements = Elements(page)
    assert [name for name, _ in elements.found if name not in ALLOWED] == []
    assert sum(name == "script" for name, _ in elements.found) == 1
    assert sum(name == "style" for name, _ in elements.found) == 1
    for name, attributes in elements.found:
        assert not [each for each in attributes if each.startswith("on") or each in ("style", "src", "srcdoc")], name
        assert re.fullmatch(r"#e\d+", attributes.get("href") or "#e1"), "links lead to the page's own evidence"
    assert "document.title='broken'" in "".join(elements.texts), "people see it, as text"
    assert "\u202e" not in page
    assert "\x1b" not in page
    page.encode("utf-8", "replace")


def test_the_policy_of_the_page_names_its_own_style_and_script_and_forbids_all_else() -> None:
    elements = Elements(report_page(layered(9, 3)))
    [policy] = [each["content"] for name, each in elements.found if "http-equiv" in each]
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["style-src"] == f"'sha256-{digest(asset('page.css'))}'"
    assert rules["script-src"] == f"'sha256-{digest(asset('page.js'))}'"
    assert "</" not in asset("page.css") + asset("page.js").replace("</s+/", "")
    assert "://" not in report_page(layered(9, 3)), "nothing is loaded from anywhere"


def test_two_thousand_nodes_fit_three_megabytes() -> None:
    content = layered(2_000, 100, text="word " * 200)
    page = report_page(content)
    assert len(page.encode()) < 3_000_000
    elements = Elements(page)
    for kind in ("rect", "tr"):
        nodes = {each.get("data-node") for name, each in elements.found if name == kind}
        assert len(nodes - {None}) == 2_000, f"each node has a {kind}"


def test_the_critical_path_has_a_lane_of_its_own_and_is_marked_in_all_pictures() -> None:
    content = layered(12, 3)
    critical = [call.node for call in content.page.calls if call.critical]
    assert len(critical) > 2
    elements = Elements(report_page(content))
    marked = [
        each["data-node"]
        for _, each in elements.found
        if "data-node" in each and "critical" in str(each.get("class", "")).split()
    ]
    for node in critical:
        assert marked.count(node) == 4, "its box, its bar on the path, its bar in its lane, its row"
    assert set(marked) == set(critical)


def test_without_a_worker_the_report_says_what_it_lacks() -> None:
    content = layered(9, 3)
    bare = Content(content.report, nodes=content.nodes, lacks=NO_WORKER)
    page = report_page(bare)
    assert NO_WORKER in page
    assert 'id="timeline"' not in page
    assert 'id="nodes"' in page
    assert report_page(Content(RunReport(id="x", run_id="y", status="failed", problem="it broke")))


def test_a_comparison_marks_what_differs_and_escapes_it_too() -> None:
    old, new = layered(9, 3, text=HOSTILE), layered(9, 3, text=HOSTILE + " more", seed=8)
    elements = Elements(comparison_page(old, new))
    assert [name for name, _ in elements.found if name not in ALLOWED] == []
    assert {"ins"} <= {name for name, _ in elements.found}
    same = comparison_page(old, old)
    assert "Both runs have the same answer." in same
    assert "0 differ" in same
