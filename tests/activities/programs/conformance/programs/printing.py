"""What is printed, with separators, ends and streams."""
import pprint


async def main():
    print("a", 1, None, sep="-", end=";\n")
    print()
    for name in ("x", "y"):
        print(name, end=" ", flush=True)
    print("\ttab", "é", {"k": [1]})
    pprint.pprint({"b": list(range(30)), "a": "text " * 12}, width=60)
    return "printed"
