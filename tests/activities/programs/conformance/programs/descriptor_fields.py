"""Descriptors, __set_name__, __init_subclass__ and __getattr__."""


class Positive:
    def __set_name__(self, owner, name):
        self.name = f"_{name}"

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name, 0)

    def __set__(self, instance, value):
        if value <= 0:
            raise ValueError(f"{self.name[1:]} must be positive")
        setattr(instance, self.name, value)


class Model:
    kinds = {}

    def __init_subclass__(cls, kind="", **options):
        super().__init_subclass__(**options)
        Model.kinds[kind] = cls.__name__

    def __getattr__(self, name):
        return f"no {name}"


class Order(Model, kind="order"):
    amount = Positive()


class Refund(Order, kind="refund"):
    pass


async def main():
    order = Refund()
    order.amount = 3
    try:
        order.amount = -1
    except ValueError as error:
        said = str(error)
    return [order.amount, said, order.note, Model.kinds, vars(order)]
