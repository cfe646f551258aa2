"""The texts of a run as its stream keeps them."""

from sennit.workflows.limits import MAX_LOG_CHARACTERS
from sennit.workflows.messages.text_stream import StreamState, TextPiece
from sennit.workflows.views.text_log import TextLog


def log_of(*pieces: TextPiece) -> TextLog:
    log = TextLog(StreamState(position=1_000))
    for piece in pieces:
        log.take(piece)
    return log


def read(log: TextLog, after: int = 0) -> list[tuple[int, int, str]]:
    return [(item.attempt, item.offset, item.text or item.discarded) for item in log.after(after).items]


def piece(offset: int, text: str, attempt: int = 1, generation: int = 1) -> TextPiece:
    return TextPiece(node="n1", generation=generation, attempt=attempt, offset=offset, text=text)


def test_a_piece_that_is_sent_twice_comes_once() -> None:
    log = log_of(piece(0, "The "), piece(0, "The "), piece(0, "The Nile"), piece(4, "Nile is"))
    assert read(log) == [(1, 0, "The "), (1, 4, "Nile"), (1, 8, " is")]


def test_a_later_attempt_discards_the_text_before_and_a_lost_worker_is_not_heard() -> None:
    log = log_of(piece(0, "old"), piece(0, "", attempt=2), piece(3, "er", attempt=1), piece(0, "new", attempt=2))
    assert read(log) == [(1, 0, "old"), (1, 0, "attempt 2 begins anew"), (2, 0, "new")]
    log.take(piece(0, "again", generation=2))
    assert read(log)[3:] == [(2, 0, "the node was started again"), (1, 0, "again")]


def test_what_is_discarded_begins_anew_at_the_same_attempt() -> None:
    discarded = TextPiece(node="n1", discarded="refused")
    log = log_of(discarded, piece(0, "one"), discarded, discarded, piece(0, "two"))
    assert read(log) == [(1, 0, "one"), (1, 0, "refused"), (1, 0, "two")]


def test_pages_go_on_at_a_position_also_after_the_stream_was_continued() -> None:
    log = log_of(*(piece(1_000 * number, "x" * 1_000) for number in range(200)))
    again = TextLog(log.state())
    again.take(piece(200_000, "end"))
    found, position = "", log.after(0).items[0].position - 1
    while page := again.after(position).items:
        found += "".join(item.text for item in page)
        position = page[-1].position
    assert found.endswith("xend")
    assert 0.8 * MAX_LOG_CHARACTERS < len(found) < MAX_LOG_CHARACTERS, "the oldest pieces are forgotten"
    assert again.after(position).position == position
