import pickle

from sennit.activities.toolbox.errors import HttpStatusError, ToolError, ToolModuleError


def test_a_message_is_one_printable_line_of_at_most_500_characters() -> None:
    assert str(ToolError("first\nsecond\t\x1b[31mred\x00")) == "first second red"
    long = str(ToolError("begins " + "word " * 1000 + "and ends"))
    assert len(long) <= 500
    assert long.startswith("begins word")
    assert long.endswith("word and ends")
    assert " [...] " in long


def test_a_failure_is_not_retryable_unless_it_says_so_and_survives_pickling() -> None:
    assert not ToolError("no").retryable
    error = pickle.loads(pickle.dumps(HttpStatusError("429 from x", status=429, retryable=True)))
    assert (str(error), error.status, error.retryable) == ("429 from x", 429, True)


def test_errors_of_set_up_are_no_errors_of_a_call() -> None:
    assert not isinstance(ToolModuleError("mytools"), ToolError)
