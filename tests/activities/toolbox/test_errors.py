import pickle

from activities.toolbox.errors import HttpStatusError, ToolArgumentError, ToolError, ToolModuleError


def test_a_message_is_one_printable_line() -> None:
    assert str(ToolError("first\nsecond\t\x1b[31mred\x00")) == "first second red"


def test_a_message_has_at_most_500_characters() -> None:
    assert len(str(ToolError("word " * 1000))) <= 500
    assert str(ToolError("word " * 1000)).endswith("…")


def test_a_failure_is_not_retryable_unless_it_says_so() -> None:
    assert not ToolError("no").retryable
    assert ToolError("later", retryable=True).retryable
    assert not ToolArgumentError("too large", field="k").retryable


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(HttpStatusError("429 from x", status=429, retryable=True)))
    assert (str(error), error.status, error.retryable) == ("429 from x", 429, True)


def test_errors_of_set_up_are_no_errors_of_a_call() -> None:
    assert not isinstance(ToolModuleError("mytools"), ToolError)
