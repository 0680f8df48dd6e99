"""Values: what an operator's result is at an index, as C++ that is written when somebody asks.

A value has a shape and a kind: "real" (a Real), "int" (an int64) or "bool" (a Decision, which knows
whether an honest kernel may decide otherwise). Views are index maps and cost nothing; pointwise
operators are a statement in whichever kernel uses them; reductions are loops there, or a kernel and
a workspace of their own where they would be computed more than once (kernels.py decides).
"""

import math

import sympy

from . import index

CTYPE = {"real": "Real", "int": "int64", "bool": "Decision"}
ZERO_OF = {"real": "0", "int": "0", "bool": "false"}


def kind_of(dtype):
    if dtype == "bool":
        return "bool"
    return "int" if dtype[0] in "iu" else "real"


class Value:
    cost = 0  # arithmetic that reading one element repeats
    always_stored = False  # has a kernel and a buffer of its own

    def __init__(self, name, shape, kind, node=None):
        self.name, self.kind, self.node = name, kind, node
        self.shape = [sympy.sympify(s) for s in shape]

    def emit(self, body, indices):
        """Writes what is needed into `body` and returns an expression."""
        raise NotImplementedError

    def operands(self):
        return []


class Input(Value):
    """A tensor argument, or a number that is passed by value."""

    def __init__(self, name, shape, kind, dtype, scalar=False):
        super().__init__(name, shape, kind)
        self.dtype, self.scalar = dtype, scalar

    def emit(self, body, indices):
        body.use_input(self, indices)
        if self.scalar:
            return f"Real({self.name})" if self.kind == "real" else f"int64({self.name})"
        flat = body.address(indices, self.shape)
        if self.kind == "real":
            return f"Real({self.name}[{flat}])"
        if self.kind == "bool":
            return f"Decision({self.name}[{flat}])"
        return f"int64({self.name}[{flat}])"


class Constant(Value):
    """The same C++ for every element; `text` may be a function of the body."""

    def __init__(self, shape, kind, text):
        super().__init__("constant", shape, kind)
        self.text = text

    def emit(self, body, indices):
        return self.text


class Ramp(Value):
    """An integer (or number) that is an expression of its own index."""

    def __init__(self, shape, kind, function):
        super().__init__("ramp", shape, kind)
        self.function = function

    def emit(self, body, indices):
        expression = self.function(indices)
        text = body.code(expression)
        return f"Real(int64({text}))" if self.kind == "real" else f"int64({text})"


class View(Value):
    """Another value at other indices."""

    def __init__(self, base, shape, function, name=None):
        super().__init__(name or base.name, shape, base.kind, base.node)
        self.base, self.function = base, function

    @property
    def cost(self):
        return self.base.cost

    def emit(self, body, indices):
        return body.value(self.base, self.function(indices))

    def operands(self):
        return [self.base]


def broadcast(value, indices, shape):
    """Indices into `value` for an element of `shape`, to which it is broadcast."""
    skip = len(shape) - len(value.shape)
    return [
        sympy.Integer(0) if extent == 1 else indices[skip + d] for d, extent in enumerate(value.shape)
    ]


class Pointwise(Value):
    """An expression of the operands' elements. `function` makes C++ of theirs."""

    def __init__(self, name, shape, kind, parts, function, node=None, weight=1, boundary=None):
        super().__init__(name, shape, kind, node)
        self.parts, self.function, self.boundary = parts, function, boundary
        self.cost = weight + sum(p.cost for p in parts)

    def emit(self, body, indices):
        texts = [body.value(p, broadcast(p, indices, self.shape)) for p in self.parts]
        text = self.function(*texts)
        boundary = None if body.unrounded is self else self.boundary
        if boundary:
            text = boundary(text)
        return text if text in texts else body.let(self, text)

    def operands(self):
        return self.parts


class Choice(Value):
    """By index: the first of `parts` whose conditions hold. Each part is (conditions, value, map);
    conditions are pairs a < b of index expressions. A part without conditions ends the list."""

    def __init__(self, name, shape, kind, parts, node=None):
        super().__init__(name, shape, kind, node)
        self.parts = parts
        self.cost = 1 + sum(v.cost for _, v, _ in parts)

    def emit(self, body, indices):
        name = body.declare(self, ZERO_OF[self.kind])
        chain = []
        for conditions, value, function in self.parts:
            pairs = [(a, b) for a, b in conditions(indices) if not index.below_or_less(a, b)]
            test = " && ".join(body.test(a, b) for a, b in pairs)
            with body.branch() as scope:
                body.line(f"{name} = {body.value(value, function(indices))};")
            chain.append((test, scope.lines))
            if not test:
                break
        # Only now: what the parts share was written before them.
        for position, (test, lines) in enumerate(chain):
            word = "if" if position == 0 else "} else if"
            if test:
                body.line(f"{word} ({test}) {{")
            elif position > 0:
                body.line("} else {")
            else:
                body.line("{")
            body.lines(lines)
        body.line("}")
        return name

    def operands(self):
        return [v for _, v, _ in self.parts]


class Gather(Value):
    """Elements of `base` at indices that other values hold. `function(indices, loaded)` maps; the
    loaded integers are symbols by then. `extents` bound them: negative ones count from the end."""

    def __init__(self, name, shape, base, parts, extents, function, node=None):
        super().__init__(name, shape, base.kind, node)
        self.base, self.parts, self.extents, self.function = base, parts, extents, function
        self.cost = 1 + base.cost + sum(p.cost for p, _ in parts)

    def emit(self, body, indices):
        symbols = []
        for (part, where), extent in zip(self.parts, self.extents):
            text = body.value(part, where(indices))
            symbols.append(body.let_index(part, text, extent))
        return body.value(self.base, self.function(indices, symbols))

    def operands(self):
        return [self.base] + [p for p, _ in self.parts]


class Reduction(Value):
    """A loop nest that ends in one number for each index.

    `loops` are (name, extent); `start` the accumulator's first value; `step(body, accumulator, indices,
    variables)` writes the innermost statement; `finish(accumulator)` is the result. `heavy` ones are
    never computed in two kernels.
    """

    def __init__(self, name, shape, kind, loops, start, step, parts, node=None, finish=None, heavy=False, boundary=None):
        super().__init__(name, shape, kind, node)
        self.loops, self.start, self.step, self.parts = loops, start, step, parts
        self.finish, self.heavy, self.boundary = finish, heavy, boundary
        self.cost = 100

    def emit(self, body, indices):
        body.claim(self, indices)
        accumulator = body.declare(self, self.start)
        body.nest(self.loops, lambda variables: self.step(body, accumulator, indices, variables))
        text = self.finish(body, accumulator, indices) if self.finish else accumulator
        if self.boundary and body.unrounded is not self:
            text = self.boundary(text)
        return text if text == accumulator else body.let(self, text)

    def operands(self):
        return self.parts


class Kernel(Value):
    """A value with a kernel of its own: scans, scatters, sorts. `write(body, indices, store)` writes the
    work of one thread, of which there is one for each index of `threads`; `store(indices, text)` is an
    element's result."""

    always_stored = True
    cost = 100

    def __init__(self, name, shape, kind, threads, write, parts, node=None, boundary=None):
        super().__init__(name, shape, kind, node)
        self.threads, self.write, self.parts, self.boundary = threads, write, parts, boundary

    def emit(self, body, indices):
        raise AssertionError("always stored")

    def operands(self):
        return self.parts


def real_text(number):
    """C++ for a Python number as a Real."""
    if isinstance(number, tuple):
        return scalar_text(number)
    if isinstance(number, sympy.Expr) and not number.is_number:
        return f"Real(int64({index.code(number)}))"
    number = float(number)
    if math.isnan(number):
        return "Real(assay::infinity() - assay::infinity())"
    if math.isinf(number):
        return "Real(assay::infinity())" if number > 0 else "Real(-assay::infinity())"
    if number == int(number) and abs(number) < 1e9:
        return f"Real({int(number)})"
    return f"Real({number!r})"


def scalar_text(tree):
    """C++ for a number that the function computes of extents: ("/", a, b), ("pow", a, b), ..."""
    if not isinstance(tree, tuple):
        return real_text(tree)
    operator, *operands = tree
    if operator == "axis":
        return f"Real(int64({index.code(operands[0])}))"
    if operator == "pow":
        base, power = operands
        if power == 0.5:
            return f"sqrt({scalar_text(base)})"
        if power == -0.5:
            return f"rsqrt({scalar_text(base)})"
        return f"pow({scalar_text(base)}, {scalar_text(power)})"
    if operator == "sqrt":
        return f"sqrt({scalar_text(operands[0])})"
    return "(" + f" {operator} ".join(scalar_text(o) for o in operands) + ")"


def tree_axes(tree):
    if isinstance(tree, tuple):
        found = set()
        for o in tree[1:]:
            found |= tree_axes(o)
        return found
    return {s for s in tree.free_symbols} if isinstance(tree, sympy.Expr) else set()


class Literal(Value):
    """A number of the function's text, as whichever kind it is used as."""

    def __init__(self, number, kind):
        super().__init__("literal", [], kind)
        self.number = number

    def emit(self, body, indices):
        for s in tree_axes(self.number):
            body.mention(s)
        if self.kind == "real":
            return real_text(self.number)
        if self.kind == "bool":
            return "Decision(true)" if self.number else "Decision(false)"
        if isinstance(self.number, sympy.Expr):
            return f"int64({index.code(self.number)})"
        return f"int64({int(self.number)})"


class Complex:
    """A complex tensor: two real values."""

    def __init__(self, re_part, im_part):
        self.re, self.im = re_part, im_part
        self.shape = re_part.shape


def cast_text(text, source, target):
    """C++ that takes a value of one kind for one of another."""
    if source == target:
        return text
    return {
        ("int", "real"): f"Real({text})",
        ("bool", "real"): f"select({text}, Real(1), Real(0))",
        ("bool", "int"): f"int64(holds({text}))",
        ("real", "int"): f"whole({text})",
        ("real", "bool"): f"!equal({text}, Real(0))",
        ("int", "bool"): f"Decision({text} != 0)",
    }[source, target]


def is_exact(value):
    """Does every honest kernel have the very same number here: an input, moved or chosen?"""
    if isinstance(value, (Input, Literal, Constant, Ramp, Table)):
        return True
    if isinstance(value, View):
        return is_exact(value.base)
    return getattr(value, "exact", False) or value.kind == "int"


def strip(value):
    while isinstance(value, View) or (isinstance(value, Pointwise) and getattr(value, "is_cast", False)):
        value = value.base if isinstance(value, View) else value.parts[0]
    return value


def unsqueezed(value, dims, rank):
    """A reduction's result with axes of one where it was reduced."""
    shape, at = [], 0
    for d in range(rank):
        if d in dims:
            shape.append(sympy.Integer(1))
        else:
            shape.append(value.shape[at])
            at += 1
    view = View(value, shape, lambda i: [i[d] for d in range(rank) if d not in dims], value.name)
    view.is_average = getattr(value, "is_average", False)
    return view


class Table(Value):
    """A constant tensor: an array in the reference's own text."""

    def __init__(self, name, shape, kind, numbers):
        super().__init__(name, shape, kind)
        self.numbers = numbers

    def emit(self, body, indices):
        flat = body.address(indices, self.shape)
        text = f"{body.planner.table(self)}[{flat}]"
        return {"real": f"Real({text})", "bool": f"Decision({text})", "int": text}[self.kind]
