"""Regular expressions: groups, look-around, replacement functions, split, flags."""
import re

PRICE = re.compile(r"(?P<currency>[$€])\s*(?P<amount>\d+(?:[.,]\d{2})?)")


async def main():
    text = "Pen $3.50, ink € 12, pad $7,25.\nEnd"
    doubled = PRICE.sub(lambda match: f"{match['currency']}{float(match['amount'].replace(',', '.')) * 2:.2f}", text)
    return [
        [match.groupdict() for match in PRICE.finditer(text)],
        doubled,
        re.split(r"[,.]\s*", text, maxsplit=2),
        re.findall(r"(?<=\$)\d+(?!\d)", text),
        re.sub(r"(\w+) (\w+)", r"\2 \1", "one two three four", count=1),
        bool(re.search(r"^end$", text, re.I | re.M)),
        bool(re.search(r"Pen$", "Pen\n")),
        re.fullmatch(r"\d{2,4}", "12345") is None,
        re.escape("a.b*c"),
        re.match(r"(a)|(b)", "b").groups(),
    ]
