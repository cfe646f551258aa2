"""A small world for programs: documents, pages, tools and a model, the same ones under Sennit and in plain Python.

Every call is noted in order, and takes a time of its own, so that no two end at once. It needs nothing of Sennit.
"""

import asyncio
import fnmatch
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

DOCUMENTS = {
    "rivers/nile.md": "# Nile\n\nThe Nile is 6,650 km long.\nIt flows through Egypt.\n",
    "rivers/danube.md": "# Danube\n\nThe Danube is 2,850 km long.\nIt flows through ten countries.\n",
    "rivers/rhine.md": "# Rhine\n\nThe Rhine is 1,230 km long.\nIt flows through Cologne.\n",
    "rivers/short.md": "Stub.\n",
    "cities/lima.md": "# Lima\n\nIn 2000 it had 7,000,000 people. In 2020 it had 10,700,000 people.\n",
    "cities/oslo.md": "# Oslo\n\nIn 2000 it had 500,000 people. In 2020 it had 700,000 people.\n",
    "cities/rome.md": "# Rome\n\nOld.\n",
    "data/sales.csv": "date,region,product,amount\n2026-01-05,North,pen,10.5\n2026-02-11,South,pen,20\n"
    "2026-04-01,North,ink,1200.25\n2026-05-xx,South,ink,3\n2026-07-09,East,pen,abc\n2026-06-30,South,pad,7.75\n",
    "data/invoices.json": '[{"number":"R1","lines":[{"sku":"x","qty":3,"price":9.99,"discount":0.1},'
    '{"sku":"y","qty":1,"price":100}]},{"number":"R2","lines":[{"sku":"z","qty":7,"price":0.335}]}]',
    "data/survey.csv": 'id,answer\n1,Agree\n2,strongly agree\n3,"well, mostly"\n4,Neutral\n5,no way\n',
    "data/access.log": '1.1.1.1 - - [10/Oct/2026:13:55:36 +0200] "GET /a?x=1 HTTP/1.1" 200 100\n'
    '1.1.1.2 - - [10/Oct/2026:13:57:36 +0200] "POST /b HTTP/1.1" 503 -\nbroken\n'
    '1.1.1.3 - - [10/Oct/2026:14:55:36 +0200] "GET /a HTTP/1.1" 404 50\n',
    "data/readings.csv": "sensor,value\na,1.0\na,1.2\na,0.9\na,9.5\na,\nb,10\nb,11\nb,9\nb,10.5\nb,10.1\n",
}
PAGES = {
    "https://site.example/": '<a href="/a">a</a> <a href="/b#x">b</a> <a href="https://other.example/">o</a>',
    "https://site.example/a": '<a href="/b">b</a><a href="c">c</a>',
    "https://site.example/b": '<a href="/dead">x</a>',
    "https://site.example/c": "end",
}


class HttpError(Exception):
    """A page that is not there."""


class DocumentNotFound(Exception):
    """A document that is not there."""


class CalculationFailed(Exception):
    """A calculation that cannot be made."""


FAILURES = (HttpError, DocumentNotFound, CalculationFailed)


class World:
    """The tools of one run. `answers` are what the model says to prompts or material with a text in them: one after
    the other, and the last again and again.
    """

    def __init__(self, answers: list[list[Any]]) -> None:
        self.effects: list[list[Any]] = []
        self._answers = [(key, list(replies)) for key, replies in answers]
        self._fetched = Counter[str]()

    def tools(self) -> dict[str, Callable[..., Coroutine[Any, Any, Any]]]:
        """Return all of it as async functions."""
        plain = (self.search, self.read, self.list_files, self.calculate, self.write, self.http_get, self.llm)
        return {function.__name__: function for function in plain}

    async def _call(self, tool: str, **arguments: Any) -> None:
        written = json.dumps(arguments, sort_keys=True)
        self.effects.append([tool, written])
        await asyncio.sleep((100 + zlib.crc32(f"{tool} {written} {len(self.effects)}".encode()) % 1_009) / 1000)

    async def search(self, query: str, k: int = 3) -> dict[str, Any]:
        await self._call("search", query=query, k=k)
        words = set(re.findall(r"\w+", query.lower()))
        items = []
        for path, text in DOCUMENTS.items():
            score = len(words & set(re.findall(r"\w+", text.lower()))) / (len(words) or 1)
            if score and path.endswith(".md"):
                title, *passages = text.strip("# \n").split("\n")
                items.append({"path": path, "title": title, "passage": passages[-1], "score": round(score, 4)})
        items.sort(key=lambda item: (-float(str(item["score"])), item["path"]))
        return {"query": query, "count": len(items[:k]), "items": items[:k]}

    async def read(self, path: str, max_chars: int = 20_000) -> dict[str, Any]:
        await self._call("read", path=path)
        if path not in DOCUMENTS:
            raise DocumentNotFound(f"no document {path!r}")
        text = DOCUMENTS[path][:max_chars]
        return {"path": path, "title": text.split("\n")[0].strip("# "), "text": text, "truncated": False}

    async def list_files(self, glob: str = "**/*", max_items: int = 200) -> dict[str, Any]:
        await self._call("list_files", glob=glob)
        paths = [path for path in sorted(DOCUMENTS) if fnmatch.fnmatch(path, glob)]
        items = [{"path": path, "bytes": len(DOCUMENTS[path])} for path in paths[:max_items]]
        return {"count": len(items), "items": items, "truncated": False}

    async def calculate(self, expression: str) -> dict[str, Any]:
        await self._call("calculate", expression=expression)
        try:
            return {"expression": expression, "value": eval(expression, {"__builtins__": {}}, {})}
        except Exception:  # noqa: BLE001 - as a calculation fails
            raise CalculationFailed(f"cannot calculate {expression}") from None

    async def write(self, path: str, text: str, mode: str = "replace") -> dict[str, Any]:
        await self._call("write", path=path, text=text, mode=mode)
        return {"path": path, "bytes": len(text.encode()), "changed": True}

    async def http_get(self, url: str, max_bytes: int = 1_000_000) -> dict[str, Any]:
        await self._call("http_get", url=url)
        before = self._fetched[url]
        self._fetched[url] += 1
        if url in PAGES:
            text = PAGES[url]
        elif "flaky" in url and before >= 2:
            text = "flaky but here"
        elif "ok" in url:
            text = "fine"
        else:
            raise HttpError(f"503 for {url}")
        return {"status": 200, "url": url, "text": text}

    async def llm(self, prompt: str, *material: Any, schema: Any = None, role: str = "worker") -> Any:
        await self._call("llm", prompt=prompt, material=material)
        asked = prompt + json.dumps(material)
        for key, replies in self._answers:
            if key in asked:
                return replies.pop(0) if len(replies) > 1 else replies[0]
        return f"text#{zlib.crc32(asked.encode()) & 0xFFFF:04x}"
