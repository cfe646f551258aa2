"""Iterators, containers and callables of our own."""


class Countdown:
    def __init__(self, start):
        self.start = start

    def __iter__(self):
        return CountdownIterator(self.start)

    def __contains__(self, item):
        return 0 < item <= self.start

    def __getitem__(self, place):
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(self.start))]
        if place >= self.start:
            raise IndexError(place)
        return self.start - place

    def __len__(self):
        return self.start

    def __call__(self, x):
        return x * self.start


class CountdownIterator:
    def __init__(self, left):
        self.left = left

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left + 1


async def main():
    down = Countdown(4)
    three = iter([1, 2, 3])
    return [
        list(down),
        [2 in down, 9 in down],
        down[1:3],
        list(reversed(down)),
        down(10),
        list(map(down, [1, 2])),
        list(zip(three, three)),
        list(iter(lambda it=iter("abXc"): next(it), "X")),
        [callable(down), callable(3)],
        dict(zip("ab", down)),
    ]
