"""What a person reads of a file before it is written."""

import pytest

from sennit.activities.toolbox.files.difference import difference

NO_NEWLINE = "\\ no newline at the end\n"


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (None, "a\n", "new file f, 2 bytes\na\n"),
        (b"a\n", "a\n", "f is this already, 2 bytes\na\n"),
        (b"", "a\n", "--- f (now)\n+++ f (then)\n@@ -0,0 +1 @@\n+a\n"),
        (b"b", "c", f"--- f (now)\n+++ f (then)\n@@ -1 +1 @@\n-b\n{NO_NEWLINE}+c\n{NO_NEWLINE}"),
        (b"\xff\x00", "a", "f, 2 bytes, would be replaced by 1 bytes\na"),
        (b"x\n" * 9_000, "a", "f, 18,000 bytes, would be replaced by 1 bytes\na"),
    ],
)  # fmt: skip
def test_a_difference_says_what_is_there_and_what_would_be(old: bytes | None, new: str, text: str) -> None:
    assert difference("f", old, new) == text
