"""Copies, weak references, identity and instances as keys."""
import copy
import weakref


class Node:
    def __init__(self, name):
        self.name = name
        self.children = []

    def add(self, *names):
        self.children += [Node(name) for name in names]
        return self


async def main():
    root = Node("r").add("a", "b")
    shallow, deep = copy.copy(root), copy.deepcopy(root)
    root.children[0].name = "changed"
    seen = {root: 1}
    gone = weakref.ref(Node("x"))
    kept = weakref.WeakValueDictionary(root=root)
    return [
        shallow.children[0].name,
        deep.children[0].name,
        seen.get(root),
        seen.get(deep),
        root == deep,
        shallow.children is root.children,
        gone() is None,
        list(kept),
        id(root) == id(root),
        len({id(each) for each in (root, shallow, deep)}),
    ]
