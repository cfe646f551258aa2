"""Generator expressions are lazy, and used up once."""


async def main() -> list:
    lines = (line.strip() for line in "title\n---\nbody\nmore".split("\n"))
    head = []
    for line in lines:
        if line == "---":
            break
        head.append(line)
    body = list(lines)
    over = any((hit := n) > 10 for n in [5, 12, 30]) and hit
    return [head, body, over]
