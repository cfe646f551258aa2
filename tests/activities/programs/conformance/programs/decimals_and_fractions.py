"""Decimal, Fraction, and rounding as shops do it."""
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, getcontext, localcontext
from fractions import Fraction


async def main():
    price = Decimal("19.99") * 3
    with localcontext() as context:
        context.prec = 5
        seventh = str(Decimal(1) / 7)
    try:
        Decimal("abc")
    except InvalidOperation:
        refused = True
    return [
        str(price),
        str((price * Decimal("0.19")).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)),
        seventh,
        getcontext().prec,
        str(Fraction(3, 4) + Fraction("0.125")),
        [round(2.5), round(3.5), round(2.675, 2), round(-1234, -2)],
        0.1 + 0.2,
        sum([0.1] * 10),
        refused,
        f"{Decimal('1234567.891'):,.2f}",
        str(Fraction(0.5).limit_denominator()),
    ]
