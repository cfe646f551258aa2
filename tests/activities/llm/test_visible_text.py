"""What of a reply may be read while it comes."""

import random

import pytest

from sennit.activities.llm.visible_text import VisibleText
from sennit.activities.toolbox.redaction import Redactor

SECRETS = ("abc/defghijklmno", "hunter2222", "hunter2222-and-more", "words with spaces 12")


def shown_of(text: str, cut: random.Random, *, answer_only: bool = False) -> list[str]:
    visible, at, found = VisibleText(answer_only=answer_only), 0, list[str]()
    while at < len(text):
        size = cut.randint(1, 9)
        found.append(visible.take(text[at : at + size], is_whole=False))
        at += size
    return [*found, visible.take("", is_whole=True)]


@pytest.mark.parametrize("seed", range(30))
def test_no_part_of_a_secret_is_shown_however_it_is_cut(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    for number, secret in enumerate(SECRETS):
        monkeypatch.setenv(f"S{number}_TOKEN", secret)
    spelled = [
        *SECRETS,
        "abc%2Fdefghijklmno",
        "abc\\/defghijklmno",
        "abc/de",
        "hunter",
        "abc%2",
        "plain words",
        "a",
        "h",
    ]
    text = " ".join(chance.choice(spelled) for _ in range(20))
    shown = shown_of(text, chance)
    whole = Redactor({f"S{number}_TOKEN": secret for number, secret in enumerate(SECRETS)}).mask(text)
    assert shown[-1] == whole
    for earlier in shown:
        assert whole.startswith(earlier), "what is shown is never taken back"
    assert len(shown[-2]) >= len(whole) - 40, "only an end that may be a secret is held back"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ('{"answer": "The \\"Nile\\" \\u00fc\\ud83c\\udf0d\\n", "evidence": []}', 'The "Nile" ü🌍\n'),
        ('{"evidence": [{"node": "n1", "quote": "]"}], "answer": "Nile."}', "Nile."),
        ('```json\n{"thought": "no {answer}", "n": 1, "answer": "Nile."}\n```', "Nile."),
        ('{"replan": {"why": "answer", "nodes": "1. answer($1)"}}', ""),
        ("The Nile.", "The Nile."),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_of_a_joiners_json_the_answer_is_shown(reply: str, answer: str, seed: int) -> None:
    shown = shown_of(reply, random.Random(seed), answer_only=True)
    assert shown[-1] == answer
    assert all(answer.startswith(earlier) for earlier in shown)


def test_halves_of_an_emoji_are_joined() -> None:
    visible = VisibleText(answer_only=False)
    assert visible.take("a\ud83c", is_whole=False) == "a"
    assert visible.take("\udf0db\udf0d", is_whole=False) == "a\U0001f30db"
    assert visible.take("", is_whole=True) == "a\U0001f30db\ufffd"


def test_thoughts_are_not_shown() -> None:
    text = "<think>so\nmany </think>The `<think>` tag\nis 1 < 2."
    shown = shown_of(text, random.Random(1))
    assert shown[-1] == "The `<think>` tag\nis 1 < 2."
    assert not [earlier for earlier in shown if "many" in earlier]
