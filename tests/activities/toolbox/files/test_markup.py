import pytest

from sennit.activities.toolbox.files.markup import html_to_text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One<p>Two", "One\n\nTwo"),
        ("<h1>T</h1>a<br>b", "# T\n\na\n\nb"),
        ("a<b>b</b>c &lt;d&gt; &eacute; &#233;", "abc <d> é é"),
        ("<table><tr><td>a<td>b</tr><tr><td>c</table>", "a b\n\nc"),
        ("<ul><li>a<li>b</ul>", "a\n\nb"),
        ("a<script>if (x<!y) '</p>'</script>b<style>p{}</style>c", "abc"),
        ("a<SCRIPT src=x>b</SCRIPT >c", "ac"),
        ("a<!-- <p>no</p> -->b<!-->c<!doctype x>d<?php no ?>e<![CDATA[no]]>f", "abcdef"),
        ("a<noscript><b>x</noscript>b", "ab"),
        ("a<svg><svg>x</svg>y</svg>b", "ab"),
        ("a<svg/>b", "ab"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("a<!-- never closed <p>b", "a"),
        ("a<script>never closed", "a"),
        ("a & b &", "a & b &"),
        ("", ""),
        ("no tags at all", "no tags at all"),
    ],
)
def test_a_page_becomes_its_visible_text(html: str, text: str) -> None:
    assert html_to_text(html)[1] == text


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title>The\n Nile</title><h1>Other</h1>", "The Nile"),
        ("<h1>The <i>Nile</i></h1>", "The Nile"),
        ("<p>x", ""),
        ("<title>A &amp; B</title>", "A & B"),
    ],
)
def test_the_title_is_the_pages_or_its_first_heading(html: str, title: str) -> None:
    assert html_to_text(html)[0] == title


@pytest.mark.timeout(20)  # a quarter of a second when linear, minutes when quadratic
@pytest.mark.parametrize(
    "piece",
    [
        "<!--x>", "<!", "<![", "<", "</", "<a ", "<a a='", "<a a=\"x\" ", "&", "&#", "<script>", "</script", "<?",
        "<script", "<svg>", "<div>", "</svg>", "<svg></iframe>", "<![CDATA[", "<!-->", "<a b=c/", "<title>", "<h1>",
    ],
)  # fmt: skip
@pytest.mark.parametrize("lead", ["", "<a b='", "<script>", "<svg>"])
def test_a_hostile_page_takes_linear_time(piece: str, lead: str) -> None:
    page = lead + piece * (200_000 // len(piece))
    html_to_text(page)
    html_to_text(page + ">")
