"""An exception of our own with fields, from an except clause."""


class Rejected(Exception):
    def __init__(self, number, why):
        super().__init__(f"{number}: {why}")
        self.number = number


async def main():
    for number in range(3):
        try:
            await calculate(expression=f"1/{1 - number}")
        except CalculationFailed as error:
            raise Rejected(number, "no number") from error
