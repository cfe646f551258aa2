"""The examples of embedding, from the checkout, against workers in processes of their own."""

import sys
from pathlib import Path

import pytest
from doubles.embedded import run_cells, run_child, service, use_service
from doubles.example_user import ExampleUser

pytestmark = pytest.mark.timeout(300)


def test_a_web_service_starts_follows_approves_and_answers(user: ExampleUser, tmp_path: Path) -> None:
    with service(sys.executable, user.env, tmp_path / "log") as client:
        report = use_service(client, "embedded-service")
    assert (report["status"], report["answer"]["path"]) == ("done", "sum.txt")


def test_a_notebook_approves_what_it_was_shown(user: ExampleUser, tmp_path: Path) -> None:
    printed = run_cells(sys.executable, user.env, tmp_path)
    assert "asked page" in printed
    assert "The Nile leads by 250 km." in printed
    assert printed.splitlines()[-1] == "page.md 25"


def test_a_workflow_of_ones_own_has_a_run_as_its_child(user: ExampleUser, tmp_path: Path) -> None:
    assert run_child(sys.executable, user.env, tmp_path) == "done: 15\n"
