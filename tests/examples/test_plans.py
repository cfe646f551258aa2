"""Every example plan runs as its page says, on real workers and files; other inputs give other, correct, answers."""

import json
import re
import uuid
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from doubles.example_user import EXAMPLES, ExampleUser
from doubles.examples_page import PAGE, PICTURE, PROGRAMS, SESSION, drawn, replayed, sections

pytestmark = pytest.mark.server

TEXT = PAGE.read_text()
SESSIONS = SESSION.findall(TEXT + PROGRAMS.read_text())
SECTIONS = sections(TEXT)


def answer(done: CompletedProcess[str]) -> str:
    """The output of a command that gave an answer."""
    assert done.returncode == 0, done.stdout
    return done.stdout


def report(done: CompletedProcess[str]) -> dict[str, Any]:
    """The report of a run that gave an answer, without the lines printed before it."""
    found: dict[str, Any] = json.loads(answer(done).splitlines()[-1])
    return found


def written(path: str, pattern: str) -> str:
    """What the example corpus says, found without any of Sennit."""
    found = re.search(pattern, (EXAMPLES / "corpus" / path).read_text())
    assert found
    return found[1]


def session_name(session: str) -> str:
    return re.sub(r"\W+", "-", session.splitlines()[0].removeprefix("$ sennit run examples/plans/"))[:60]


@pytest.mark.parametrize("session", SESSIONS, ids=map(session_name, SESSIONS))
def test_the_pages_show_what_the_commands_print(user: ExampleUser, session: str) -> None:
    assert replayed(session, user) == session


@pytest.mark.parametrize("name", SECTIONS)
def test_the_page_shows_the_plan_as_it_is_drawn(user: ExampleUser, name: str) -> None:
    assert PICTURE.findall(SECTIONS[name]) == [drawn(name, user)]


def test_every_plan_has_a_section_that_runs_it() -> None:
    assert sorted(SECTIONS) == sorted(path.stem for path in (EXAMPLES / "plans").iterdir())
    for name, section in SECTIONS.items():
        assert f"$ sennit run examples/plans/{name}.yaml" in "".join(SESSION.findall(section))


def test_a_comparison_takes_its_figures_from_the_documents_and_says_what_none_knows(user: ExampleUser) -> None:
    given = '--input property=depth --input unit=m --input \'names=["Lake Superior", "Lake Baikal", "Atlantis"]\''
    ended = user.run(f"sennit run examples/plans/comparison.yaml {given} --quiet --output json")
    assert ended.returncode == 3
    done = json.loads(ended.stdout.splitlines()[-1])
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in done["answer"].splitlines()[2:4]]
    depth = r"maximum depth of ([\d,]+) metres"
    deepest, other = (written(f"lakes/lake-{name}.md", depth).replace(",", "") for name in ("baikal", "superior"))
    assert rows == [["Lake Baikal", deepest], ["Lake Superior", other]]
    assert "I cannot tell the depth of Atlantis." in done["answer"]
    assert {piece["source"] for piece in done["evidence"]} == {"lakes/lake-baikal.md", "lakes/lake-superior.md"}
    for piece in done["evidence"]:
        assert piece["quote"] in (EXAMPLES / "corpus" / piece["source"]).read_text()


def test_an_audit_counts_what_is_there(user: ExampleUser, tmp_path: Path) -> None:
    branches = "".join(f"    if x == {n}:\n        return {n}\n" for n in range(9))
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "busy.py").write_text(f"import os\nimport re\n\n\ndef busy(x):\n{branches}")
    (tmp_path / "calm.py").write_text("def calm():\n    return 1\n" + "\n" * 40)
    (tmp_path / "broken.py").write_text("def (:\n")
    (tmp_path / "notes.txt").write_text("no Python\n")
    text = answer(user.run(f"sennit run examples/plans/repository-audit.yaml --docs {tmp_path} --input top=1 --quiet"))
    assert text.startswith(f"2 of 3 files measured: {23 + 42} lines, 2 functions, 0 open notes.")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if ".py" in line]
    assert rows == [["calm.py", "42", "1", "0", "0"], ["pkg/busy.py", "busy", "10"], ["pkg/busy.py", "busy", "19"]]


def test_an_audit_of_nothing_says_so(user: ExampleUser) -> None:
    text = answer(user.run("sennit run examples/plans/repository-audit.yaml --quiet"))
    assert text.startswith("0 of 0 files measured: 0 lines")


def test_a_digest_of_a_page_that_is_not_there_or_not_allowed_names_the_reason(user: ExampleUser) -> None:
    plan = "examples/plans/web-digest.yaml --on-failure fail --quiet"
    missing = user.run(f"sennit run {plan} --input url=http://{user.site}/none.html")
    assert (missing.returncode, "404" in missing.stdout) == (1, True)
    private = user.run(f"sennit run {plan} --input url=http://127.0.0.1:1/")
    assert (private.returncode, "SENNIT_HTTP_ALLOW" in private.stdout) == (1, True)


def test_a_digest_quotes_whole_sentences_and_no_menu(user: ExampleUser) -> None:
    url = f"http://{user.site}/tides.html"
    text = answer(user.run(f"sennit run examples/plans/web-digest.yaml --input url={url} --input sentences=2 --quiet"))
    page = " ".join(re.sub(r"<[^>]+>", " ", (EXAMPLES / "pages" / "tides.html").read_text()).split())
    sentences = re.split(r"(?<=\.) ", text.split("\n\n")[1].strip())
    assert len(sentences) == 2
    assert all(sentence in page for sentence in sentences)
    assert "Contact" not in text


def test_a_folder_is_summarised_from_each_of_its_files(user: ExampleUser, tmp_path: Path) -> None:
    for name, thing in (("a.md", "kettle"), ("b.txt", "lantern"), ("c.md", "anvil")):
        (tmp_path / name).write_text(f"The {thing} is made of iron and stands in the yard.\nIt rains on some days.\n")
    (tmp_path / "d.md").write_bytes(b"\0binary")
    command = f"sennit run examples/plans/folder-summary.yaml --docs {tmp_path} --input glob='*' --input sentences=3"
    done = report(user.run(f"{command} --quiet --output json"))
    assert [piece["source"] for piece in done["evidence"]] == ["a.md", "b.txt", "c.md"]
    for piece in done["evidence"]:
        assert piece["quote"] in (tmp_path / piece["source"]).read_text()
        assert f"{piece['quote']} [{piece['n']}]" in done["answer"]


def test_two_of_three_sources_suffice_when_one_is_missing_and_one_is_not_enough(
    user: ExampleUser, tmp_path: Path
) -> None:
    for name, height in (("one.md", "4,810"), ("two.md", "4,808")):
        (tmp_path / name).write_text(f"# Mont Blanc\n\nMont Blanc is {height} metres high.\n")
    plan = f"sennit run examples/plans/quorum.yaml --docs {tmp_path} --on-failure fail --quiet --output json"
    done = report(user.run(f"""{plan} --input 'sources=["gone.md", "one.md", "two.md"]'"""))
    assert [piece["source"] for piece in done["evidence"]] == ["one.md", "two.md"]
    single = user.run(f"""{plan} --input 'sources=["gone.md", "one.md", "lost.md"]'""")
    assert single.returncode == 1
    assert "needs a value from 2 inputs of 3" in single.stdout


def test_a_gate_refuses_what_is_no_choice_and_goes_on_with_one(user: ExampleUser) -> None:
    name = f"choice-{uuid.uuid4().hex[:8]}"
    blocked = user.run(f"sennit run examples/plans/gate.yaml --id {name} --quiet")
    assert blocked.returncode == 4
    assert f"sennit answer {name} choice" in blocked.stdout
    refused = user.run(f"sennit answer {name} choice Volga")
    assert (refused.returncode, "Thames" in refused.stdout) == (2, True)
    answer(user.run(f"sennit answer {name} choice Rhine"))
    watched = report(user.run(f"sennit watch {name} --quiet --output json"))
    assert {piece["source"] for piece in watched["evidence"]} == {"rivers/rhine.md"}
    assert watched["status"] == "done"
