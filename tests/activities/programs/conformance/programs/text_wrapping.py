"""Textwrap, string methods, templates, difflib and translation."""
import difflib
import string
import textwrap


async def main():
    text = "The quick brown fox jumps over the lazy dog and runs away."
    return [
        textwrap.wrap(text, 20),
        textwrap.shorten(text, 30, placeholder=" ..."),
        textwrap.dedent("""
            one
              two
        """),
        textwrap.indent("a\nb", "> "),
        string.Template("$who owes ${what}").safe_substitute(who="Ann"),
        "hello world".title().swapcase().center(20, "*"),
        "a-b_c".translate(str.maketrans("-_", "  ", "b")),
        [*"a,b,,c".split(","), *"  x  y ".split(), *"a\nb\r\nc".splitlines()],
        ["Straße".casefold(), "ß".upper(), "ﬁ".isalpha(), "x".zfill(3), "+4".zfill(4), "tab\tx".expandtabs(4)],
        "a.b.c".rsplit(".", 1) + list("key=v=w".partition("=")),
        difflib.get_close_matches("aple", ["apple", "ape", "maple"]),
        list(difflib.unified_diff(["a", "b"], ["a", "c"], lineterm=""))[2:],
    ]
