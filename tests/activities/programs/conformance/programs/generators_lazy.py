"""Generators: send, throw, close, return values, yield from, pipelines."""


def averager():
    total, count, average = 0, 0, None
    while True:
        try:
            value = yield average
        except ValueError:
            total, count = 0, 0
            continue
        if value is None:
            return [total, count]
        total += value
        count += 1
        average = total / count


def outer(results):
    result = yield from averager()
    results.append(result)
    yield "done"


def numbered(lines, log):
    try:
        for number, line in enumerate(lines, 1):
            log.append(number)
            yield f"{number}: {line}"
    finally:
        log.append("closed")


async def main():
    results, log = [], []
    work = outer(results)
    said = [next(work), work.send(10), work.send(20), work.throw(ValueError), work.send(4), work.send(None)]
    lines = numbered(["a", "b", "c"], log)
    first = next(lines)
    lines.close()
    total = sum(size for size in (len(word) for word in ["ab", "cde"]) if size > 2)
    try:
        next(lines)
    except StopIteration as stop:
        ended = stop.value
    return [said, results, first, log, total, ended]
