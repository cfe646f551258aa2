"""The published form of a run."""

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from sennit.workflows.messages.result import RunReport

PUBLISHED = Path(__file__).parents[2] / "docs" / "run.schema.json"


def test_the_published_schema_is_that_of_the_report() -> None:
    assert json.loads(PUBLISHED.read_text()) == RunReport.model_json_schema(mode="serialization")


def test_a_report_fits_the_published_schema() -> None:
    report = RunReport(id="a", run_id="b", status="done", answer={"x": [1, None]})
    schema = json.loads(PUBLISHED.read_text())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(report.model_dump(mode="json"))
