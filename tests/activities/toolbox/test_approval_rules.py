"""The operator's rules about writes: what each matches, and that doubt never lets a write through."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from sennit.activities.toolbox import Registry, ToolSetupError, tool
from sennit.activities.toolbox.approval_rules import ApprovalRules, origin_of, read_rules


class Letter(BaseModel):
    path: str = "drafts/new.md"
    url: str = "https://api.example.com/"
    count: int = 1
    loud: bool = False
    more: dict[str, Any] = {}
    paths: list[str] = []


def tools() -> Registry:
    registry = Registry()

    @tool(effect="write", registry=registry)
    def send(args: Letter) -> str:
        """Send a letter."""
        return args.path

    @tool(effect="read", registry=registry)
    def look(path: str) -> str:
        """Look."""
        return path

    return registry


def rules(folder: Path, text: str, *, knows_all: bool = True, always_asks: bool = False) -> ApprovalRules:
    path = folder / "rules.toml"
    path.write_text(text)
    return read_rules(path, tools(), knows_all=knows_all, always_asks=always_asks)


def decided(folder: Path, test: str, **arguments: Any) -> dict[str, bool]:
    """Return for a rule with this test whether it decides about a call, by what it would decide."""
    found: dict[str, bool] = {}
    for decision in ("allow", "ask", "refuse"):
        text = f'[[rule]]\nname = "it"\ntool = "send"\ndecision = "{decision}"\n{test}\n'
        found[decision] = rules(folder, text).first(tools().get("send"), arguments) is not None
    return found


MATCHES = {"allow": True, "ask": True, "refuse": True}
DOES_NOT = {"allow": False, "ask": False, "refuse": False}
DOUBTS = {"allow": False, "ask": True, "refuse": True}


@pytest.mark.parametrize(
    ("test", "arguments", "outcome"),
    [
        ("equal = {count = 1}", {"count": 1}, MATCHES),
        ("equal = {count = 1}", {}, MATCHES),  # its default is what the tool takes
        ("equal = {count = 1}", {"count": 2}, DOES_NOT),
        ("equal = {count = 1}", {"count": 1.0}, MATCHES),
        ("equal = {count = 1}", {"count": "1"}, DOUBTS),  # written as a text, and taken as a number
        ("equal = {count = 1}", {"count": True}, DOUBTS),
        ("equal = {loud = true}", {"loud": True}, MATCHES),
        ("equal = {loud = true}", {"loud": 1}, DOUBTS),
        ("equal = {more = {a = [1, 2]}}", {"more": {"a": [1, 2]}}, MATCHES),
        ("equal = {more = {a = [1, 2]}}", {"more": {"a": [1, 2], "b": 3}}, DOES_NOT),
        ('below = {path = "drafts"}', {"path": "drafts/a/b.md"}, MATCHES),
        ('below = {path = "drafts"}', {"path": "./drafts//a.md"}, MATCHES),
        ('below = {path = "drafts"}', {"path": "drafts"}, DOUBTS),  # a call about the folder is about all in it
        ('below = {path = "drafts/old"}', {"path": "drafts/"}, DOUBTS),
        ('below = {path = "/no/such"}', {"path": "/no"}, DOUBTS),
        ('below = {path = "drafts"}', {"path": "."}, DOUBTS),
        ('below = {path = "drafts"}', {"path": "Drafts/a.md"}, DOUBTS),  # the same folder on macOS
        ('below = {path = "/no/nö"}', {"path": "/no/no\u0308/a.md"}, DOUBTS),
        ('below = {path = "drafts"}', {"path": "drafts2"}, DOES_NOT),
        ('below = {more = "drafts"}', {"more": {"drafts/a.md": "text"}}, DOUBTS),
        ('below = {path = "drafts"}', {"path": "drafts2/a.md"}, DOES_NOT),
        ('below = {path = "drafts"}', {"path": "drafts/../secret.md"}, DOUBTS),
        ('below = {path = "drafts"}', {"path": "secret/../drafts/a.md"}, DOUBTS),
        ('below = {path = "drafts"}', {"path": "/srv/drafts/a.md"}, DOUBTS),
        ('below = {path = "drafts"}', {"path": "~/drafts/a.md"}, DOUBTS),
        ('below = {path = "drafts"}', {"path": "drafts\\..\\a.md"}, DOUBTS),
        ('below = {path = "."}', {"path": "any/where.md"}, MATCHES),
        ('below = {path = "/no/such"}', {"path": "/no/such/a.md"}, MATCHES),
        ('below = {path = "/no/such"}', {"path": "/no/such/../a.md"}, DOES_NOT),
        ('below = {path = "/no/such"}', {"path": "/no/other/../such/a.md"}, MATCHES),
        ('below = {paths = "drafts"}', {"paths": ["drafts/a", "drafts/b"]}, MATCHES),
        ('below = {paths = "drafts"}', {"paths": ["drafts/a", "b"]}, DOUBTS),
        ('below = {paths = "drafts"}', {"paths": []}, DOES_NOT),
        ('origin = {url = "https://api.example.com"}', {"url": "https://api.example.com/a?b#c"}, MATCHES),
        ('origin = {url = "https://api.example.com"}', {"url": "HTTPS://API.Example.com:443/a"}, MATCHES),
        ('origin = {url = "https://api.example.com"}', {"url": "http://api.example.com/a"}, DOES_NOT),
        ('origin = {url = "https://api.example.com"}', {"url": "https://api.example.com:8443/a"}, DOES_NOT),
        ('origin = {url = "https://api.example.com"}', {"url": "https://api.example.com.evil.org/"}, DOES_NOT),
        ('origin = {url = "https://api.example.com"}', {"url": "https://api.example.com@evil.org/"}, DOUBTS),
        ('origin = {url = "https://api.example.com"}', {"url": "https://evil.org\\@api.example.com/"}, DOUBTS),
        ('origin = {url = "https://api.example.com"}', {"url": " https://api.example.com/"}, DOUBTS),
        ('origin = {more = "https://api.example.com"}', {"more": {"url": "https://api.example.com"}}, DOUBTS),
        ('origin = {url = "http://127.0.0.1"}', {"url": "http://127.0.0.1:80/"}, MATCHES),
        ('origin = {url = "http://127.0.0.1"}', {"url": "http://2130706433/"}, DOUBTS),
        ('origin = {url = "http://127.0.0.1"}', {"url": "http://0x7f.1/"}, DOUBTS),
        ('origin = {url = "http://[::1]"}', {"url": "http://[0:0:0:0:0:0:0:1]/"}, MATCHES),
        ('origin = {url = "https://api.example.com"}', {"url": "//api.example.com/"}, DOUBTS),
    ],
)
def test_a_test_matches_by_value_path_or_origin(
    tmp_path: Path, test: str, arguments: dict[str, Any], outcome: dict[str, bool]
) -> None:
    assert decided(tmp_path, test, **arguments) == outcome


def test_a_link_out_of_the_folder_is_in_doubt(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    test = f'below = {{path = "{inside}"}}'
    assert decided(tmp_path, test, path=f"{inside}/a.md") == MATCHES
    assert decided(tmp_path, test, path=f"{inside}/link/a.md") == DOUBTS


def test_the_first_rule_that_matches_decides(tmp_path: Path) -> None:
    found = rules(
        tmp_path,
        """
[[rule]]
name = "loud"
tool = "send"
decision = "refuse"
equal = {loud = true}
[[rule]]
name = "drafts"
tool = "send"
decision = "allow"
[rule.below]
path = "drafts"
[[rule]]
name = "rest"
tool = "*"
decision = "refuse"
""",
    )
    send = tools().get("send")
    names = [getattr(found.first(send, arguments), "name", None) for arguments in ({"loud": True}, {}, {"path": "x"})]
    assert names == ["loud", "drafts", "rest"]
    assert [rule.described() for rule in found.rules] == [
        "loud: refuse send where loud = True",
        "drafts: allow send where path below drafts",
        "rest: refuse *",
    ]


RULE = '[[rule]]\nname = "a"\ntool = "send"\ndecision = "allow"\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", r"rules.toml: it has no rule"),
        ("[[rules]]\n", r"line 1: there is no `rules` here; did you mean `rule`\?"),
        ("x = \n", r"rules.toml: .*line 1"),
        (RULE.replace("tool", "tol"), r"line 3: a rule has no `tol`; did you mean `tool`\?"),
        (RULE.replace("send", "sennd"), r"line 3: there is no tool `sennd`; did you mean `send`\?"),
        (RULE.replace("allow", "alow"), r"line 4: decision: must be one of .*did you mean `allow`\?"),
        (RULE.replace("send", "look"), r"line 3: look does not write"),
        (RULE.replace("send", "*"), r"line 3: a rule for all tools can ask or refuse"),
        (RULE + "equal = {cuont = 1}\n", r"line 5: send has no argument `cuont`; did you mean `count`\?"),
        (RULE + "[rule.below]\npaht = 'x'\n", r"line 6: send has no argument `paht`; did you mean `path`\?"),
        (RULE + 'below = {path = "a/../b"}\n', r"line 5: below: .*write 'b'"),
        (RULE + 'below = {path = "../b"}\n', r"line 5: below: .*absolute, or relative without"),
        (RULE + 'origin = {url = "api.example.com"}\n', r"line 5: origin: .*is no origin"),
        (RULE + 'origin = {url = "https://api.example.com/v1"}\n', r"line 5: origin: .*is no origin"),
        (RULE + 'tenant = "ann"\n', r"line 5: tenant: a caller says that itself"),
        (RULE + "\n" + RULE, r"line 7: there are two rules with the name 'a'"),
        (RULE + "equal = {count = 2026-11-29}\n", r"line 5: equal.count"),
        (RULE.replace('name = "a"\n', ""), r"line 1: name: is missing"),
        ('rule = [{name = "a", tool = "send", decision = "ask"}]\n', r"write each rule below a line \[\[rule\]\]"),
    ],
)
def test_a_rule_that_could_not_do_its_work_is_refused_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ToolSetupError, match=problem):
        rules(tmp_path, text)


def test_no_rule_allows_where_every_write_waits_for_a_person(tmp_path: Path) -> None:
    with pytest.raises(ToolSetupError, match=r"line 4: SENNIT_APPROVAL=writes says that every write waits"):
        rules(tmp_path, RULE, always_asks=True)
    assert rules(tmp_path, RULE.replace("allow", "refuse"), always_asks=True).rules


def test_a_worker_of_fewer_tools_takes_rules_for_others(tmp_path: Path) -> None:
    assert rules(tmp_path, RULE.replace("send", "deploy"), knows_all=False).rules


@pytest.mark.parametrize("text", ["", "https://", "https://a b", "https://ä.org", "https://a.org.", "http://a:port"])
def test_what_libraries_may_read_differently_has_no_origin(text: str) -> None:
    assert origin_of(text) is None
