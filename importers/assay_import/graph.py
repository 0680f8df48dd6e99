"""An exported graph as plain data: what torch knew of it that lowering needs, and no torch."""

import builtins
import keyword
from dataclasses import dataclass, field


class Refused(Exception):
    """The problem cannot be imported: what is in the way, and what to do."""

    def __init__(self, what, cure="", node=None):
        super().__init__(what)
        self.what, self.cure, self.node = what, cure, node


@dataclass
class Tensor:
    """Shape (sympy expressions over axes) and dtype (a name of base/dtype.h) of a value."""

    shape: list
    dtype: str


@dataclass
class Node:
    """One operator. `args` and `kwargs` hold Nodes, sympy expressions, numbers, dtype names, lists."""

    name: str
    target: str  # "aten.mul.Tensor", "getitem"
    args: list
    kwargs: dict
    meta: object  # Tensor, a list of Tensors, or None
    source: str = ""  # the line of Python that it came from
    line: int = 0
    users: list = field(default_factory=list)

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other

    @property
    def shape(self):
        return self.meta.shape

    @property
    def dtype(self):
        return self.meta.dtype


class Untold:
    """A number that values decide in a way that has no row: the end of a slice, say, which nobody reads where its length is known."""


@dataclass
class InputSpec:
    """An argument of the function, or a parameter or buffer of its module."""

    name: str
    tensor: Tensor
    origin: str  # "argument", "scalar" (a number by value), "parameter", "buffer"
    statistics: dict  # of the example: min, max, mean, std, distinct (if few)
    said: dict = field(default_factory=dict)  # by an annotation, or by what the example holds (recipes.py)


@dataclass
class Graph:
    inputs: list  # InputSpec
    placeholders: list  # Node, one an input
    nodes: list  # Node, in order
    outputs: list  # (name, Node)
    axes: dict  # name -> {"min", "max", "example"}
    constraints: list  # expressions as text
    notes: list = field(default_factory=list)
    choices: dict = field(default_factory=dict)  # output -> the Node whose index it is
    updates: dict = field(default_factory=dict)  # output -> the input whose place it takes


def walk(args):
    """All Nodes in nested arguments."""
    for item in args:
        if isinstance(item, Node):
            yield item
        elif isinstance(item, (list, tuple)):
            yield from walk(item)
        elif isinstance(item, dict):
            yield from walk(item.values())


def renumber(nodes, results):
    """Names the nodes that the results come from by operator and place: the second addition is add_1. What torch calls them hangs
    on its version, which counts what it has thrown away since as well. What nobody needs is no user of them."""
    needed, waiting = set(), list(results)
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += walk([node.args, node.kwargs])
    counts = {}
    for node in nodes:
        if node not in needed:
            continue
        node.users = [user for user in node.users if user is None or user in needed]
        base = (node.target.split(".") + [""])[1] or node.target
        base = base.strip("_")
        # A word of Python's is no name by itself.
        first = 1 if hasattr(builtins, base) or keyword.iskeyword(base) else 0
        count = counts.get(base, first)
        counts[base] = count + 1
        node.name = f"{base}_{count}" if count else base
