"""Questions over notes of two small companies, written before any was tried: most are answered, none is wrong."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

Ask = Callable[..., Awaitable[dict[str, Any]]]
NOTES = Path(__file__).parent
COMPANY = {
    "Who is responsible for invoices?": "Priya Nair is responsible for invoices.",
    "Who owns the booking system?": "Tomas Weil owns the booking system",
    "How much does a big service cost?": "A big service costs €95.",
    "What is the deposit for a cargo bike?": "The deposit for a cargo bike is €150.",
    "When does the lease of the workshop end?": "30 September 2027",
    "When does the new website go live?": "5 October 2026",
    "What did the board decide about Sundays?": "close the shop on Sundays from September",
    "Why did we leave Heroku?": "because Heroku had become too expensive",
    "Which is cheaper, a small service or a big service?": "A small service is cheaper",
    "How much more expensive is a big service than a small service?": "The difference is 50 €",
    "Who is the contact at Vandamme?": "The contact at Vandamme is Els Peeters.",
    "How many days of leave does everybody have?": "Everybody has 26 days of leave.",
}
PRACTICE = {
    "Who handles insurance claims?": "Sunita Rao",
    "Who is our account manager at Corriedale?": "Fiona Bell",
    "How much does it cost to neuter a female cat?": "130",
    "How much is a consultation?": "52",
    "When does the lease run out?": "31 March 2029",
    "When does Amira Khan start?": "1 September 2026",
    "Why did we stop selling raw food?": "two dogs fell ill",
    "What did we agree about reminders?": "text message",
    "How long is Amira's trial period?": "three months",
    "Which is more expensive, neutering a male cat or neutering a female cat?": "female cat is more expensive",
    "How much did the X-ray machine cost?": "28,400",
    "Where is the spare key?": "Helen's office",
}
"""Each with what its answer must say."""
UNKNOWN = {
    "company": (
        "Who is responsible for marketing?",
        "When does the loan end?",
        "How much does a tandem cost?",
        "What did the board decide about Antwerp?",
        "Are stolen bicycles covered?",
    ),
    "practice": (
        "Who is responsible for training?",
        "How much does a rabbit vaccination cost?",
        "When does the alarm contract end?",
        "What did we agree about the mobile clinic?",
        "How much does Milo earn?",
    ),
}


@pytest.mark.parametrize(("notes", "questions"), [("company", COMPANY), ("practice", PRACTICE)])
async def test_at_least_eight_of_twelve_questions_are_answered_and_none_wrong(
    ask: Ask, notes: str, questions: dict[str, str]
) -> None:
    answers = {goal: await ask(goal, NOTES / notes) for goal in questions}
    whole = {goal: found["answer"] for goal, found in answers.items() if not found.get("partial")}
    wrong = {goal: text for goal, text in whole.items() if questions[goal] not in text}
    assert not wrong
    assert len(whole) >= 8, sorted(questions.keys() - whole.keys())


@pytest.mark.parametrize(("notes", "goal"), [(notes, goal) for notes, goals in UNKNOWN.items() for goal in goals])
async def test_what_the_notes_do_not_say_is_not_answered(ask: Ask, notes: str, goal: str) -> None:
    assert (await ask(goal, NOTES / notes))["partial"] is True
