"""CSV, HTML and XML, all in memory."""
import csv
import html
import io
import xml.etree.ElementTree as ET
from html.parser import HTMLParser


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.found.append(dict(attrs).get("href"))


async def main():
    text = (await read(path="data/sales.csv"))["text"]
    rows = list(csv.DictReader(io.StringIO(text)))
    total, skipped = 0, []
    for number, row in enumerate(rows, start=2):
        try:
            total += float(row["amount"])
        except ValueError as error:
            skipped.append([number, str(error)])
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";", lineterminator="\n")
    writer.writerows([["a", 'say "hi"'], ["x;y", None]])
    page = await http_get(url="https://site.example/")
    links = Links()
    links.feed(page["text"])
    tree = ET.fromstring('<list><item id="1">A</item><item id="2"/></list>')
    return [
        total,
        skipped,
        out.getvalue(),
        links.found,
        html.escape("<a & 'b'>"),
        html.unescape("&eacute;&#8364;"),
        [(item.get("id"), item.text) for item in tree.iter("item")],
        ET.tostring(tree, encoding="unicode"),
    ]
