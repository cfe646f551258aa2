"""Time as a script sees it: it passes while calls run."""
import time
from datetime import datetime, timedelta


async def main():
    began, at = time.monotonic(), datetime.now()
    first = time.perf_counter()
    await search(query="Nile")
    took = time.monotonic() - began
    passed = datetime.now() - at
    return [0.1 <= took < 2, abs(passed.total_seconds() - took) < 0.01, time.perf_counter() > first, passed < timedelta(seconds=2)]
