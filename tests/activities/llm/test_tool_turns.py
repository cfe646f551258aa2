"""A turn of a tool loop comes out of the store as it went in: calls, thoughts, and whose they are."""

import json

from sennit.activities.llm.tool_turns import ToolTurns, message_of, transcript
from sennit.activities.providers.model import Message, ModelReply, ToolRequest


def test_what_a_server_wants_back_is_stored_with_the_turn() -> None:
    signed = ToolRequest("1", "search", {"query": "a"}, {"extra_content": {"google": {"thought_signature": "c2ln"}}})
    reply = ModelReply("", calls=(signed,), thinking=({"reasoning_content": "hm"},), origin="openai:gemini-3-pro")
    stored = json.loads(json.dumps(transcript(ToolTurns(), reply)))
    turn = message_of(stored["messages"][0])
    assert turn == Message("assistant", "", (signed,), thinking=reply.thinking, origin="openai:gemini-3-pro")


def test_a_turn_that_was_stored_before_fields_were_kept_is_read() -> None:
    call = {"id": "1", "name": "search", "arguments": {}}
    old = {"role": "assistant", "text": "", "calls": [call], "call_id": ""}
    assert message_of(old) == Message("assistant", "", (ToolRequest("1", "search", {}),))
