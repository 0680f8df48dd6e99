"""Numbers that a function takes out of tensors, `.item()`, and computes with: nodes of the graph without axes.

torch.export carries such a number as a symbol that no extent stands behind. What Python computes of it
becomes the operators that would have computed it as a tensor, in f32 or i64, so that errors are charged
as everywhere. Used as a number, or as the place of a slice whose length is known, it stays one; as a
size, or for `if`, it decides what the graph is, and is refused.

Python's own float(), int(), max() and min() ask such a number for its value. `taught` replaces them, in
the problem's module alone, by those that torch has for symbols; only where torch.export failed without.
"""

import builtins
import contextlib
import inspect
import math
import operator

import torch

from .graph import Node, Tensor, Untold

# What Python computes -> (operator, further arguments).
COMPUTED = {
    operator.add: ("aten.add.Tensor", {}),
    operator.sub: ("aten.sub.Tensor", {}),
    operator.mul: ("aten.mul.Tensor", {}),
    operator.truediv: ("aten.div.Tensor", {}),
    operator.floordiv: ("aten.div.Tensor_mode", {"rounding_mode": "floor"}),
    operator.mod: ("aten.remainder.Tensor", {}),
    operator.pow: ("aten.pow.Tensor_Tensor", {}),
    operator.neg: ("aten.neg.default", {}),
    operator.abs: ("aten.abs.default", {}),
    torch.sym_max: ("aten.maximum.default", {}),
    torch.sym_min: ("aten.minimum.default", {}),
    torch.sym_float: ("aten._to_copy.default", {}),
    torch.sym_int: ("aten._to_copy.default", {}),
    math.trunc: ("aten._to_copy.default", {}),
    math.floor: ("aten.floor.default", {}),
    math.ceil: ("aten.ceil.default", {}),
    torch._sym_sqrt: ("aten.sqrt.default", {}),
}
ITEM = "aten._local_scalar_dense.default"


def of_values(value, names):
    """Does a number of torch's hang on what tensors hold, rather than on extents alone?"""
    if not isinstance(value, (torch.SymInt, torch.SymFloat)):
        return False
    return any(s not in names for s in value.node.expr.free_symbols)


def node_of(fx_node, names, converted):
    """The graph's node for a number that values decide; None for what is no such number, or is computed in another way."""
    value = fx_node.meta.get("val")
    if not of_values(value, names):
        return None
    target, more = (ITEM, {}) if str(fx_node.target) == ITEM else COMPUTED.get(fx_node.target, (None, {}))
    if target is None:
        return None
    args = [converted(a) for a in fx_node.args]
    if any(isinstance(a, Untold) for a in args):
        return None
    dtype = "f32" if isinstance(value, torch.SymFloat) else "i64"
    return Node(fx_node.name, target, args, dict(more), Tensor([], dtype))


class _Meta(type):
    def __instancecheck__(cls, thing):
        return isinstance(thing, cls.__mro__[1])


class _Float(float, metaclass=_Meta):
    def __new__(cls, x=0.0):
        if isinstance(x, torch.Tensor):
            x = x.item()
        return torch.sym_float(x) if isinstance(x, (torch.SymInt, torch.SymFloat)) else builtins.float(x)


class _Int(int, metaclass=_Meta):
    def __new__(cls, x=0, *more):
        if isinstance(x, torch.Tensor):
            x = x.item()
        return torch.sym_int(x) if isinstance(x, (torch.SymInt, torch.SymFloat)) else builtins.int(x, *more)


def _either(plain, of_symbols):
    def chosen(*items, **more):
        symbolic = len(items) > 1 and not more and any(isinstance(x, (torch.SymInt, torch.SymFloat)) for x in items)
        if not symbolic:
            return plain(*items, **more)
        found = items[0]
        for x in items[1:]:
            found = of_symbols(found, x)
        return found

    return chosen


TAUGHT = {"float": _Float, "int": _Int, "max": _either(max, torch.sym_max), "min": _either(min, torch.sym_min)}


@contextlib.contextmanager
def taught(function):
    """Within, the module in which a function is defined has words that do not ask for values."""
    target = inspect.unwrap(type(function).forward if isinstance(function, torch.nn.Module) else function)
    names = getattr(target, "__globals__", {})
    added = [word for word in TAUGHT if word not in names]
    names.update({word: TAUGHT[word] for word in added})
    try:
        yield
    finally:
        for word in added:
            names.pop(word, None)
