"""What of a run can be a turn before another one."""

import pytest

from sennit.activities.nodes.error_mapping import ConversationGone
from sennit.activities.runs.conversation import _turn


def test_an_answer_that_no_model_could_read_once_more_is_refused_in_words() -> None:
    assert _turn("agent-a", "assistant", "x" * 400_000)["role"] == "assistant"
    with pytest.raises(ConversationGone, match="the answer of agent-a is empty; start a new conversation"):
        _turn("agent-a", "assistant", "")
    with pytest.raises(ConversationGone, match="the answer of agent-a has 400,001 characters; at most 400,000"):
        _turn("agent-a", "assistant", "x" * 400_001)
