"""Format specifications, f-strings, percent formats and reprs."""


class Money:
    def __init__(self, cents):
        self.cents = cents

    def __format__(self, spec):
        return f"{self.cents / 100:,.2f}{spec or ' EUR'}"


async def main():
    name, value, width = "Nile", 6650.456, 12
    return [
        f"{name:>{width}}|{name:^8}|{name:*<7}|{value:{width}.1f}|{value:,.0f}",
        f"{name!r} {name=} {value = :.2f} {{literal}}",
        f"{Money(123456)} {Money(5):$}",
        "%s has %05.1f%% of %-6s|%x" % ("a", 12.345, "b", 255),
        "{0} {1[k]} {2.real} {0!r:>5}".format("x", {"k": 1}, 3),
        "{:+d} {:e} {:g} {:%} {:b}".format(5, 12345.678, 1e-10, 0.256, 9),
        f"{'nested ' + f'{1 + 1}'} {[f'{n:02}' for n in range(3)]}",
        repr("it's \"q\" \n \x00 \u00e9"),
        str({"a": [1, (2,), {3}, None, 1.0, "x"]}),
        f"{1_000_000:_} {True:d} {None} {3 + 4j}",
    ]
