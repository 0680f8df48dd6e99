"""An exported graph as plain data: what torch knew of it that lowering needs, and no torch."""

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
