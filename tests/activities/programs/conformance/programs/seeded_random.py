"""Random numbers with a seed are those of Python."""
import random


async def main():
    dice = random.Random(7)
    random.seed("again")
    return [
        [dice.randint(1, 6) for _ in range(5)],
        dice.sample(range(100), 3),
        dice.choice("abc"),
        random.random(),
        random.choices("xyz", weights=[1, 2, 3], k=4),
        sorted(random.sample(range(10), 4)),
        round(random.gauss(0, 1), 6),
    ]
