"""`sennit ask` and `sennit demo` without a model, as a newcomer meets them: an answer, or an honest exit code."""

import pytest
from doubles.example_user import ExampleUser


@pytest.mark.parametrize(
    ("command", "code", "expected"),
    [
        ("demo --quiet", 0, "the Nile: 6,650 km [1]"),
        ('ask "How high is Mont Blanc?" --quiet', 0, "Mont Blanc is 4,805.59 metres high, measured in 2023. [1]"),
        ('ask "Who designed the Burj Khalifa?" --quiet', 3, "designed it at the firm of Skidmore"),
        ('ask "Write a poem about rivers." --quiet', 3, "For more, set SENNIT_MODEL and its key"),
        ('ask "Write a poem about rivers."', 3, "partial · 2 of 2 nodes"),
    ],
)
def test_an_answer_exits_0_and_one_that_cannot_tell_exits_3(
    user: ExampleUser, command: str, code: int, expected: str
) -> None:
    done = user.run(f"sennit {command}")
    assert expected in done.stdout
    assert done.returncode == code
