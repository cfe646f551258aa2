"""A crawl, level by level, with a limit and a set of pages seen."""
import asyncio
import re
from collections import deque
from urllib.parse import urldefrag, urljoin


async def main(start: str = "https://site.example/", most: int = 10):
    guard, seen, edges = asyncio.Semaphore(2), {start}, []
    waiting = deque([start])

    async def visit(url):
        async with guard:
            try:
                page = await http_get(url=url)
            except HttpError as error:
                edges.append([url, str(error)])
                return []
        return [urldefrag(urljoin(url, link))[0] for link in re.findall(r'href="([^"]+)"', page["text"])]

    while waiting and len(seen) < most:
        level = list(waiting)
        waiting.clear()
        for url, links in zip(level, await asyncio.gather(*map(visit, level))):
            for link in links:
                edges.append([url, link])
                if link not in seen and link.startswith(start):
                    seen.add(link)
                    waiting.append(link)
    return {"seen": sorted(seen), "edges": edges}
