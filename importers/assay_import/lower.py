"""Graph -> values: each node by its row of the table.

Lowered so far are values, not kernels; kernels.py says what is stored. A result of a 16-bit dtype inside
of the function is a permitted rounding, `may_round_to<T>`, and a prescribed one with --strict.
"""

import math
import re

import sympy

from . import index
from .graph import Node, Refused, Tensor, Untold
from .table import OPERATORS
from .complexes import Complexes
from .moves import Moves
from .products import Products
from .values import (
    HEAVY,
    Choice,
    Complex,
    Constant,
    Input,
    Literal,
    Pointwise,
    Ramp,
    Reduction,
    Table,
    View,
    ZERO_OF,
    cast_text,
    highest,
    is_exact,
    kind_of,
    real_text,
    strip,
    unsqueezed,
)

SIZES_CURE = "keep it a tensor: torch.where instead of if, masks instead of sizes"
WRAPPED = {"i8": "signed char", "u8": "unsigned char", "i16": "short", "u16": "unsigned short", "i32": "int", "u32": "unsigned"}
COMPARISONS = re.compile(r"aten\.(eq|ne|lt|le|gt|ge|logical_\w+|isnan|isinf)\.")


def below_largest(x, settled=False):
    """x - m, where m is the largest of the x. A sum is done before it is known which is the largest: m is not another of its terms."""
    return (lambda a, m: f"{a} - {m}") if settled or is_exact(strip(x)) else (lambda a, m: f"{a}.settled() - {m}")


def is_extreme_of(m, x):
    """Is m the largest or smallest of (some of) the x?"""
    return getattr(strip(m), "extreme_of", None) is strip(x)


class Lowering(Complexes, Moves, Products):
    def __init__(self, graph, options):
        self.graph = graph
        self.env = {}
        self.bound = options.get("bound")  # the dtype that T stands for, or None
        self.strict = options.get("strict", False)
        self.variable = options.get("variable", False)  # T has several choices
        self.products = False
        self.atomics = False
        self.constraints = []  # what operators need that torch's guards do not say
        self.inputs = []
        self.choices = {node: name for name, node in graph.choices.items()}
        self.chosen = {}  # output name -> (Input that stands for the choice, hidden output, what is best)
        self.uses = []  # (input name, what is known of it)
        self.notes = []  # for review
        self.bounded = set()  # axes that computed indices run along: only the example's extent is known to hold them

    # --- dtypes
    def format(self, dtype):
        """The prelude's type of a float dtype."""
        return "T" if dtype == self.bound else f"assay::{dtype}"

    def boundary(self, dtype):
        if dtype in ("f8e4m3", "f8e5m2"):
            return lambda text: f"round_to<{self.format(dtype)}>({text})"
        if dtype not in ("bf16", "f16"):
            return None
        word = "round_to" if self.strict else "may_round_to"
        return lambda text: f"{word}<{self.format(dtype)}>({text})"

    # --- operands
    def value(self, x, kind=None):
        if isinstance(x, Node):
            found = self.env[x]
            if isinstance(found, (tuple, list)):
                raise Refused(f"'{x.name}' is several tensors here", node=x)
            return found
        if isinstance(x, bool):
            return Literal(x, kind or "bool")
        if isinstance(x, tuple) or isinstance(x, float):
            return Literal(x, kind if kind in ("real",) else "real")
        if isinstance(x, (int, sympy.Expr)):
            return Literal(x, kind or "int")
        if isinstance(x, Untold):
            raise Refused("a number that values decide is used as a size, or computed in a way that is not lowered", SIZES_CURE)
        raise Refused(f"an argument of the kind {type(x).__name__} is not understood")

    def point(self, node, parts, text, kind=None, exact=False, weight=1, shape=None, name=None, dtype=None):
        dtype = dtype or node.dtype
        value = Pointwise(
            name or node.name,
            node.shape if shape is None else shape,
            kind or kind_of(dtype),
            parts,
            text,
            node,
            weight=weight,
            boundary=None if exact or kind_of(dtype) != "real" else self.boundary(dtype),
        )
        value.exact = exact and all(is_exact(p) for p in parts)
        return value

    def template(self, node, row, operands):
        """A pointwise row: the operands as the kind in which they meet, the result as its dtype says."""
        kinds = [o.kind for o in operands]
        result = kind_of(node.dtype)
        compares = COMPARISONS.match(node.target) is not None
        if compares or result == "int":
            meet = "real" if "real" in kinds else "int" if "int" in kinds else "bool"
            if result == "int" and meet == "bool" and not compares:
                meet = "int"
        else:
            meet = result
        if meet == "real" and not row.code:
            meet = "int"
        if meet == "bool" and not row.truth:
            meet = "int"
        if meet == "int" and not row.whole:
            meet = "real"
        form = {"real": row.code, "int": row.whole, "bool": row.truth}[meet]
        if not form:
            raise Refused(f"{node.target} is not lowered for {node.dtype}", node=node)
        made = "bool" if compares else meet
        if compares and meet == "int":
            form = f"Decision({form})"
        if meet == "int" and not compares and not row.exact and node.dtype in WRAPPED:
            form = f"int64(static_cast<{WRAPPED[node.dtype]}>({form}))"

        def text(*texts):
            cast = [cast_text(t, k, meet) for t, k in zip(texts, kinds)]
            out = form.format(*cast)
            return cast_text(out, made, result) if made != result and not (made == "real" and result == "int") else out

        kind = "real" if made == "real" and result == "int" else result
        return self.point(node, operands, text, kind=kind, exact=row.exact, weight=row.cost)

    # --- the graph
    def run(self):
        for spec, node in zip(self.graph.inputs, self.graph.placeholders):
            value = Input(spec.name, spec.tensor.shape, kind_of(spec.tensor.dtype), spec.tensor.dtype, spec.origin == "scalar")
            self.inputs.append(value)
            self.env[node] = value
        for node in self.graph.nodes:
            self.env[node] = self.lower(node)
        made = [(name, self.env[node], node.dtype) for name, node in self.graph.outputs if name not in self.chosen]
        return made + [(hidden, scores, "hidden") for _, hidden, scores, _ in self.chosen.values()]

    def lower(self, node):
        if node.target == "constant":
            kind = kind_of(node.dtype)
            numbers = node.args[0]
            if len(numbers) == 1:
                value = Literal(numbers[0], kind)
                return View(value, node.shape, lambda i: [], node.name) if node.shape else value
            return Table(node.name, node.shape, kind, numbers)
        if node.target == "getitem":
            found = self.env[node.args[0]]
            item = found[int(node.args[1])]
            if callable(item):
                item = item()
                found[int(node.args[1])] = item
            return item
        row = OPERATORS.get(node.target)
        if row is None:
            raise Refused(
                f"{node.target} has no row in the table of operators",
                "write it with other operators (docs/torch-ops.md lists them)",
                node,
            )
        if row.refused:
            raise Refused(f"{node.target} {row.refused}", row.cure, node)
        if any(isinstance(self.env.get(a), Complex) for a in node.args if isinstance(a, Node)):
            return self.lower_complex(node, row)
        if row.lower == "pointwise":
            special = getattr(self, "point_" + node.target.split(".")[1], None)
            if special:
                return special(node, row)
            operands = [self.value(a) for a in node.args if a is not None]
            return self.template(node, row, self.literals(node, operands))
        return getattr(self, "lower_" + row.lower)(node, row)

    def literals(self, node, operands):
        """Numbers take the kind of the tensors that they meet."""
        tensors = [o.kind for o in operands if not isinstance(o, Literal)]
        real = "real" in tensors or (node.meta is not None and kind_of(node.dtype) == "real")
        for o in operands:
            if isinstance(o, Literal) and real:
                o.kind = "real"
        return operands

    # --- pointwise operators with arguments
    def linear(self, node, x, y, alpha, sign):
        row = OPERATORS["aten.mul.Tensor"]
        x, y = self.literals(node, [self.value(x), self.value(y)])
        kinds = [x.kind, y.kind]
        kind = kind_of(node.dtype)
        if kind == "int" and "real" in kinds:
            kind = "real"
        if isinstance(alpha, Node):
            factor, times = self.value(alpha), y
            y = Pointwise(
                node.name + "_scaled",
                node.shape,
                kind,
                [factor, times],
                lambda a, b: f"{cast_text(a, factor.kind, kind)} * {cast_text(b, times.kind, kind)}",
                node,
            )
            alpha, kinds[1] = 1, kind
        one = alpha in (1, 1.0)
        if kind == "bool":
            return self.point(node, [x, y], lambda a, b: f"{a} || {b}", kind="bool", exact=True)

        apart = below_largest(x) if one and sign == "-" and kind == kinds[0] == kinds[1] == "real" and is_extreme_of(y, x) else None

        def text(a, b):
            if apart:
                return apart(a, b)
            a, b = cast_text(a, kinds[0], kind), cast_text(b, kinds[1], kind)
            if not one:
                b = f"{real_text(alpha) if kind == 'real' else int(alpha)} * {b}"
            out = f"{a} {sign} {b}"
            if kind == "int" and node.dtype in WRAPPED:
                out = f"int64(static_cast<{WRAPPED[node.dtype]}>({out}))"
            return out

        value = self.point(node, [x, y], text, kind=kind)
        if kind == "int" and one and sign == "+" and None not in (highest(x), highest(y)):
            value.highest = highest(x) + highest(y)
        if kind == "int" and one and sign == "-" and isinstance(y, Literal) and highest(x) is not None:
            value.highest = highest(x) - highest(y)
        if sign == "-" and one:
            value.difference = (x, y)
        return value

    def point_add(self, node, row):
        recognised = self.as_affine(node)
        if recognised is not None:
            return recognised
        return self.linear(node, node.args[0], node.args[1], node.kwargs.get("alpha", _get(node.args, 2, 1)), "+")

    def point_sub(self, node, row):
        return self.linear(node, node.args[0], node.args[1], node.kwargs.get("alpha", _get(node.args, 2, 1)), "-")

    def point_rsub(self, node, row):
        return self.linear(node, node.args[1], node.args[0], node.kwargs.get("alpha", _get(node.args, 2, 1)), "-")

    def as_affine(self, node):
        """(x - mean) * factor + shift where mean is an average: affine(...), which may be multiplied out."""
        if kind_of(node.dtype) != "real" or node.kwargs.get("alpha", 1) != 1 or len(node.args) > 2:
            return None
        if self.boundary(node.dtype):
            return None  # each step may be rounded: that is more than multiplying out
        for product, shift in (node.args[:2], node.args[1::-1]):
            factors, seen = [], product
            while isinstance(seen, Node) and seen.target in ("aten.mul.Tensor", "aten._to_copy.default"):
                if len(seen.users) != 1:
                    break
                if seen.target == "aten._to_copy.default":
                    seen = seen.args[0]
                    continue
                left, right = seen.args
                if self.centred(right):
                    left, right = right, left
                factors.append(right)
                seen = left
            if factors and self.centred(seen):
                x, mean = self.env[seen].difference
                parts = [x, mean] + self.literals(node, [self.value(f) for f in factors]) + self.literals(node, [self.value(shift)])
                kinds = [p.kind for p in parts]

                def text(a, m, *rest):
                    rest = [cast_text(t, k, "real") for t, k in zip(rest, kinds[2:])]
                    return f"affine({a}, {m}, {' * '.join(rest[:-1])}, {rest[-1]})"

                return self.point(node, parts, text, weight=5)
        return None

    def centred(self, x):
        if not isinstance(x, Node) or not isinstance(self.env.get(x), Pointwise):
            return False
        difference = getattr(self.env[x], "difference", None)
        if difference is None or any(p.kind != "real" for p in difference):
            return False
        return getattr(strip(difference[1]), "is_average", False)

    def point_div(self, node, row):
        operands = self.literals(node, [self.value(a) for a in node.args[:2]])
        mode = node.kwargs.get("rounding_mode", _get(node.args, 2, None))
        kinds = [o.kind for o in operands]
        if mode is None:
            # A sum divided by the number of its terms is a mean.
            count = node.args[1]
            base = strip(operands[0])
            average = isinstance(base, Reduction) and getattr(base, "is_sum", False) and _is_count(count, base.loops)

            def text(a, b):
                a, b = cast_text(a, kinds[0], "real"), cast_text(b, kinds[1], "real")
                return f"average({a}, {b})" if average else f"{a} / {b}"

            value = self.point(node, operands, text, weight=2)
            value.is_average = average
            return value
        if kind_of(node.dtype) == "int" and "real" not in kinds:
            function = "floor_div" if mode == "floor" else ""
            return self.point(
                node,
                operands,
                lambda a, b: f"floor_div({cast_text(a, kinds[0], 'int')}, {cast_text(b, kinds[1], 'int')})"
                if function
                else f"{cast_text(a, kinds[0], 'int')} / {cast_text(b, kinds[1], 'int')}",
            )
        return self.point(
            node,
            operands,
            lambda a, b: f"{mode}({cast_text(a, kinds[0], 'real')} / {cast_text(b, kinds[1], 'real')})",
            kind="real",
            weight=4,
        )

    def bounds(self, node, low, high):
        x = self.value(node.args[0])
        parts = [x]
        kind = "real" if kind_of(node.dtype) == "real" or x.kind == "real" else "int"
        for limit in (low, high):
            if limit is not None:
                parts.append(self.value(limit, kind))
        kinds = [p.kind for p in parts]

        def text(*texts):
            texts = [cast_text(t, k, kind) for t, k in zip(texts, kinds)]
            out, rest = texts[0], texts[1:]
            if low is not None:
                limit = rest.pop(0)
                out = f"max({out}, {limit})" if kind == "real" else f"larger_of({out}, {limit})"
            if high is not None:
                limit = rest.pop(0)
                out = f"min({out}, {limit})" if kind == "real" else f"smaller_of({out}, {limit})"
            return out

        value = self.point(node, parts, text, kind=kind, exact=True)
        if high is not None and kind == "int":
            value.highest = highest(parts[-1])
        return value

    def point_clamp(self, node, row):
        return self.bounds(node, _get(node.args, 1, node.kwargs.get("min")), _get(node.args, 2, node.kwargs.get("max")))

    def point_hardtanh(self, node, row):
        return self.bounds(node, _get(node.args, 1, -1.0), _get(node.args, 2, 1.0))

    def point_pow(self, node, row):
        base, power = node.args[:2]
        if isinstance(power, sympy.Expr) and power.is_Integer:
            power = int(power)
        if isinstance(power, (int, float)) and isinstance(base, Node):
            x = self.value(base)
            kind = x.kind
            if kind_of(node.dtype) == "real":
                kind = "real"
            if power == int(power) and 1 <= abs(power) <= 4:
                n = int(abs(power))

                def text(a):
                    a = cast_text(a, x.kind, kind)
                    product = " * ".join([a] * n)
                    return product if power > 0 else f"Real(1) / ({product})"

                return self.point(node, [x], text, kind=kind, weight=n)
            if power == 0:
                return Constant(node.shape, kind, "Real(1)" if kind == "real" else "int64(1)")
            named = {0.5: "sqrt({})", -0.5: "rsqrt({})", 1.5: "{0} * sqrt({0})"}.get(power)
            if named:
                return self.point(node, [x], lambda a: named.format(cast_text(a, x.kind, "real")), kind="real", weight=4)
        operands = self.literals(node, [self.value(base, "real"), self.value(power, "real")])
        return self.template(node, OPERATORS["aten.pow.Tensor_Tensor"], operands)

    def point_gelu(self, node, row):
        x = self.value(node.args[0])
        form = node.kwargs.get("approximate", _get(node.args, 1, "none"))
        if form == "tanh":
            text = lambda a: (  # noqa: E731
                f"Real(0.5) * {a} * (Real(1) + tanh(Real({math.sqrt(2 / math.pi)!r}) * ({a} + Real(0.044715) * {a} * {a} * {a})))"
            )
        else:
            text = lambda a: f"Real(0.5) * {a} * (Real(1) + erf({a} * Real({math.sqrt(0.5)!r})))"  # noqa: E731
        return self.point(node, [x], text, weight=10)

    def point_softplus(self, node, row):
        x = self.value(node.args[0])
        beta = _get(node.args, 1, node.kwargs.get("beta", 1.0))
        limit = _get(node.args, 2, node.kwargs.get("threshold", 20.0))
        if beta == 1:
            text = lambda a: f"select(less({real_text(limit)}, {a}), {a}, softplus({a}))"  # noqa: E731
        else:
            b = real_text(beta)
            text = lambda a: f"select(less({real_text(limit)}, {a} * {b}), {a}, softplus({a} * {b}) / {b})"  # noqa: E731
        return self.point(node, [x], text, weight=16)

    def point_elu(self, node, row):
        x = self.value(node.args[0])
        alpha, scale, inner = (_get(node.args, i, 1) for i in (1, 2, 3))
        times = lambda t, f: t if f == 1 else f"{t} * {real_text(f)}"  # noqa: E731
        text = lambda a: (  # noqa: E731
            f"select(less(Real(0), {a}), {times(a, scale)}, {times(times(f'expm1({times(a, inner)})', alpha), scale)})"
        )
        return self.point(node, [x], text, weight=10)

    def point_leaky_relu(self, node, row):
        x = self.value(node.args[0])
        slope = real_text(_get(node.args, 1, 0.01))
        return self.point(node, [x], lambda a: f"select(less(Real(0), {a}), {a}, {a} * {slope})", weight=2)

    def point_where(self, node, row):
        condition, x, y = node.args
        c = self.value(condition)
        x, y = self.literals(node, [self.value(x), self.value(y)])
        kind = "real" if "real" in (x.kind, y.kind) else kind_of(node.dtype)

        def text(d, a, b):
            d, a, b = cast_text(d, c.kind, "bool"), cast_text(a, x.kind, kind), cast_text(b, y.kind, kind)
            return f"select({d}, {a}, {b})"

        return self.point(node, [c, x, y], text, kind=kind, exact=True)

    def point_addcmul(self, node, row, sign="*"):
        parts = [self.value(a) for a in node.args[:3]]
        factor = node.kwargs.get("value", _get(node.args, 3, 1))
        front = "" if factor == 1 else real_text(factor) + " * "
        return self.point(node, parts, lambda a, b, c: f"{a} + {front}{b} {sign} {c}", weight=3)

    def point_addcdiv(self, node, row):
        return self.point_addcmul(node, row, "/")

    def point__to_copy(self, node, row):
        x = self.value(node.args[0])
        source, target = x.kind, kind_of(node.dtype)
        if source == target:
            if source != "real":
                if node.dtype in WRAPPED and source == "int":
                    value = self.point(
                        node, [x], lambda a: f"int64(static_cast<{WRAPPED[node.dtype]}>({a}))", exact=True, weight=0
                    )
                    value.highest = highest(x)
                    return value
                return renamed(x, node)
            before = node.args[0].dtype
            if kind_of(before) == "real" and not narrows(before, node.dtype) or not self.boundary(node.dtype):
                return renamed(x, node)
            value = self.point(node, [x], lambda a: a, weight=0)
            value.is_cast = True
            return value
        if source == "real" and target == "int":
            before = node.args[0].dtype
            inside = (lambda a: a) if kind_of(before) == "int" else (lambda a: f"trunc({a})")
            return self.point(node, [x], inside, kind="real", exact=True)
        exact = source == "bool"
        return self.point(node, [x], lambda a: cast_text(a, source, target), kind=target, exact=exact, weight=0)

    # --- constants
    def lower_full(self, node, row):
        name = node.target.split(".")[1]
        number = {"full": 1, "full_like": 1, "scalar_tensor": 0}.get(name)
        number = node.args[number] if number is not None else {"ones_like": 1}.get(name, 0)
        if isinstance(number, Node):
            wanted = kind_of(node.dtype)
            return View(self.as_kind(self.value(number), wanted), node.shape, lambda indices: [], node.name)
        value = Literal(number, kind_of(node.dtype))
        if value.kind == "real" and isinstance(number, bool):
            value.number = int(number)
        return View(value, node.shape, lambda indices: [], node.name) if node.shape else value

    def lower_arange(self, node, row):
        start, end, step = 0, None, 1
        args = list(node.args)
        if len(args) == 1:
            end = args[0]
        elif len(args) >= 2:
            start, end = args[:2]
            step = _get(args, 2, 1)
        del end
        if isinstance(start, float) and start != int(start) or isinstance(step, float) and step != int(step):
            parts = [Ramp(node.shape, "real", lambda i: i[0])]
            return self.point(node, parts, lambda a: f"{real_text(start)} + {real_text(step)} * {a}")
        return Ramp(node.shape, kind_of(node.dtype), lambda i: sympy.sympify(start) + i[0] * sympy.sympify(step))

    def lower_tril(self, node, row):
        x = self.value(node.args[0])
        diagonal = sympy.sympify(_get(node.args, 1, 0))
        lower = ".tril." in node.target
        zero = Literal(0, x.kind)

        def inside(indices):
            i, j = indices[-2], indices[-1]
            # j <= i + diagonal, or j >= i + diagonal
            return [(j, i + diagonal + 1)] if lower else [(i + diagonal - 1, j)]

        value = Choice(
            node.name,
            node.shape,
            x.kind,
            [(inside, x, lambda i: i), (lambda i: [], zero, lambda i: [])],
            node,
        )
        value.exact = is_exact(x)
        return value

    def lower_item(self, node, row):
        x = self.value(node.args[0])
        rank = len(x.shape)
        return View(x, [], lambda i: [sympy.Integer(0)] * rank, node.name)

    def lower_nothing(self, node, row):
        return None

    # --- recognised in several places
    def reduce(self, node, x, dims, start, step, name=None, kind=None, finish=None, keep=False, parts=(), **more):
        """A loop nest over `dims` of x. `step(accumulator, text)` is the statement."""
        rank = len(x.shape)
        dims = sorted(d % rank for d in dims) if rank else []
        kept = [d for d in range(rank) if d not in dims]
        shape = [x.shape[d] for d in kept]

        def inner(body, accumulator, indices, variables):
            full = [None] * rank
            for d, i in zip(kept, indices):
                full[d] = i
            for d, v in zip(dims, variables):
                full[d] = v
            body.line(step(accumulator, body.value(x, full)))

        value = Reduction(
            name or node.name,
            shape,
            kind or x.kind,
            [("klmnpq"[i % 6], x.shape[d]) for i, d in enumerate(dims)],
            start,
            inner,
            [x, *parts],
            node,
            finish,
            **more,
        )
        if keep:
            return unsqueezed(value, dims, rank)
        return value

    def sum_of(self, node, x, dims, name, **more):
        """A sum; over several axes into few elements, the last axis first, so that threads share the work."""
        rank = len(x.shape)
        dims = sorted(d % rank for d in dims) if rank else []
        if len(dims) > 1 and len(dims) == rank and not more:
            inner = self.reduce(node, x, dims[-1:], ZERO_OF[x.kind], lambda s, t: f"{s} += {t};", name=name + "_part")
            return self.reduce(node, inner, dims[:-1], ZERO_OF[x.kind], lambda s, t: f"{s} += {t};", name=name)
        return self.reduce(node, x, dims, ZERO_OF[x.kind], lambda s, t: f"{s} += {t};", name=name, **more)

    def dims_of(self, node, position, rank):
        dims = _get(node.args, position, node.kwargs.get("dim"))
        if dims is None or dims == []:
            return list(range(rank))
        if not isinstance(dims, (list, tuple)):
            dims = [dims]
        return sorted(int(d) % rank for d in dims) if rank else []

    def finished(self, node, value, text=None, weight=1, name=None, dtype=None, kind=None):
        """A result of an operator: rounded where its dtype is narrow."""
        boundary = self.boundary(dtype or node.dtype) if value.kind == "real" else None
        if text is None and not boundary:
            return value
        return self.point(node, [value], text or (lambda a: a), weight=weight if text else 0, name=name, dtype=dtype, kind=kind)

    def lower_sum(self, node, row):
        x = self.value(node.args[0])
        source = x.kind
        if x.kind != "real" and kind_of(node.dtype) == "real" or x.kind == "bool":
            target = kind_of(node.dtype)
            x = Pointwise(node.name + "_term", x.shape, target, [x], lambda a: cast_text(a, source, target), node, weight=0)
        dims = self.dims_of(node, 1, len(x.shape))
        keep = bool(_get(node.args, 2, node.kwargs.get("keepdim", False)))
        value = self.sum_of(node, x, dims, node.name)
        value.is_sum = True
        if source == "bool":
            value.highest = index.product([x.shape[d] for d in dims])  # how many there are
        value = unsqueezed(value, dims, len(x.shape)) if keep else value
        return self.finished(node, value)

    def lower_mean(self, node, row):
        x = self.value(node.args[0])
        dims = self.dims_of(node, 1, len(x.shape))
        keep = bool(_get(node.args, 2, node.kwargs.get("keepdim", False)))
        value = self.mean_of(node, x, dims, node.name)
        value = unsqueezed(value, dims, len(x.shape)) if keep else value
        return self.finished(node, value) if self.boundary(node.dtype) else value

    def mean_of(self, node, x, dims, name):
        total = self.sum_of(node, x, dims, name + "_sum")
        count = Literal(index.product([x.shape[d] for d in dims]), "real")
        value = Pointwise(name, total.shape, "real", [total, count], lambda s, n: f"average({s}, {n})", node, weight=2)
        value.is_average = True
        return value

    def squares_of(self, node, x, mean, dims, name):
        rank = len(x.shape)
        kept = unsqueezed(mean, dims, rank)
        deviation = Pointwise(name + "_deviation", x.shape, "real", [x, kept], lambda a, m: f"{a} - {m}", node)
        return self.reduce(node, deviation, dims, "0", lambda s, t: f"{s} += {t} * {t};", name=name + "_squares")

    def lower_variance(self, node, row):
        x = self.value(node.args[0])
        dims = self.dims_of(node, 1, len(x.shape))
        correction = node.kwargs.get("correction", 1)
        keep = bool(node.kwargs.get("keepdim", False))
        if node.target == "aten.var.dim":
            correction, keep = int(bool(_get(node.args, 2, True))), bool(_get(node.args, 3, keep))
        correction = 1 if correction is None else correction
        mean = self.mean_of(node, x, dims, node.name + "_mean")
        squares = self.squares_of(node, x, mean, dims, node.name)
        count = index.product([x.shape[d] for d in dims]) - sympy.nsimplify(correction)
        dtype = node.dtype if isinstance(node.meta, Tensor) else node.meta[0].dtype
        value = self.point(
            node, [squares, Literal(count, "real")], lambda s, n: f"{s} / {n}", shape=squares.shape, weight=2, dtype=dtype
        )
        shaped = lambda v: unsqueezed(v, dims, len(x.shape)) if keep else v  # noqa: E731
        if "var_mean" in node.target:
            return [shaped(value), shaped(mean)]
        return shaped(value)

    def lower_prod(self, node, row):
        x = self.value(node.args[0])
        dims = self.dims_of(node, 1, len(x.shape)) if node.target.endswith("dim_int") else list(range(len(x.shape)))
        keep = bool(_get(node.args, 2, False)) if node.target.endswith("dim_int") else False
        value = self.reduce(node, x, dims, "1", lambda s, t: f"{s} = {s} * {t};")
        value = unsqueezed(value, dims, len(x.shape)) if keep else value
        return self.finished(node, value)

    def extreme(self, node, x, dims, largest, name, keep=False):
        word = "max" if largest else "min"
        if x.kind == "real":
            start = "Real(-assay::infinity())" if largest else "Real(assay::infinity())"
            step = lambda s, t: f"{s} = {word}({s}, {t});"  # noqa: E731
        else:
            start = "-0x7fffffffffffffffll - 1" if largest else "0x7fffffffffffffffll"
            step = lambda s, t: f"{s} = {'larger_of' if largest else 'smaller_of'}({s}, {t});"  # noqa: E731
        value = self.reduce(node, x, dims, start, step, name=name)
        value.exact = is_exact(x)
        value.extreme_of = strip(x)
        return unsqueezed(value, dims, len(x.shape)) if keep else value

    def lower_amax(self, node, row):
        x = self.value(node.args[0])
        word = node.target.split(".")[1]
        dims = self.dims_of(node, 1, len(x.shape)) if word.startswith("am") else list(range(len(x.shape)))
        keep = bool(_get(node.args, 2, node.kwargs.get("keepdim", False))) if word.startswith("am") else False
        return self.extreme(node, x, dims, word.endswith("max"), node.name, keep)

    def arg_extreme(self, node, x, dim, largest, name, keep, last=False):
        """The first index of the extreme, as a reduction that keeps two accumulators."""
        self.must_be_exact(node, x)
        rank = len(x.shape)
        dims = [dim % rank]
        state = {}

        def step(body, accumulator, indices, variables):
            full = list(indices)
            full.insert(dims[0], variables[0])
            text = body.value(x, full)
            best = state["best", id(body)]
            better = ("greater" if largest else "lesser") + ("_or_equal" if last else "")
            with body.block(f"if ({body.code(variables[0])} == 0 || {better}({text}, {best})) {{", guard=True):
                body.line(f"{best} = {text};")
                body.line(f"{accumulator} = {body.code(variables[0])};")

        value = Reduction(name, [e for d, e in enumerate(x.shape) if d not in dims], "int", [("k", x.shape[dims[0]])], "0", step, [x], node)
        plain = value.emit

        def emit(body, indices):
            state["best", id(body)] = body.fresh(name + "_best")
            body.claim(value, indices)
            body.line(f"{'Real' if x.kind == 'real' else 'int64'} {state['best', id(body)]} = 0;")
            return plain(body, indices)

        value.emit = emit
        value.exact = True
        value.highest = x.shape[dims[0]] - 1
        return unsqueezed(value, dims, rank) if keep else value

    def choice(self, node, x, dim, shape, largest, ordered=True, keep=False, first=False):
        """The index of an extreme (or of several) as an output that is a choice: the reference reads it, and puts
        out the scores by which the judge holds it right. None where it is no output, or not along the last axis. `first`: of equal
        ones torch promises the first."""
        if node not in self.choices or dim % len(x.shape) != len(x.shape) - 1 or x.kind != "real" or keep:
            return None
        name = self.choices[node]
        if name not in self.chosen:
            dtype = next(n.dtype for output, n in self.graph.outputs if output == name)
            made = Input(name, shape, "int", dtype)
            relation = {"kind": "choice", "scores": name + "_scores", "best": "largest" if largest else "smallest"}
            if not ordered:
                relation["order"] = "any"
            if first:
                relation["ties"] = "first"
            scores = View(x, x.shape, lambda i: i, node.name + "_scores")
            self.chosen[name] = (made, name + "_scores", scores, relation)
        return self.chosen[name][0]

    def must_be_exact(self, node, x):
        if not is_exact(x):
            raise Refused(
                f"{node.target} chooses by computed numbers: where two are closer than their errors, honest kernels differ",
                "return the numbers themselves, or choose by numbers that are inputs",
                node,
            )

    def lower_argmax(self, node, row):
        x = self.value(node.args[0])
        dim = _get(node.args, 1, node.kwargs.get("dim"))
        keep = bool(_get(node.args, 2, node.kwargs.get("keepdim", False)))
        largest = "argmax" in node.target
        if dim is not None:
            shape = [e for d, e in enumerate(x.shape) if d != int(dim) % len(x.shape)]
            choice = self.choice(node, x, int(dim), shape, largest, keep=keep, first=True)
            if choice is not None:
                return choice
        if dim is None:
            flat = View(x, [index.product(x.shape)], lambda i: index.unflatten(i[0], x.shape))
            return self.arg_extreme(node, flat, 0, largest, node.name, False)
        return self.arg_extreme(node, x, int(dim), largest, node.name, keep)

    def lower_max_dim(self, node, row):
        x = self.value(node.args[0])
        dim = int(node.args[1])
        keep = bool(_get(node.args, 2, node.kwargs.get("keepdim", False)))
        largest = ".max." in node.target
        shape = [e for d, e in enumerate(x.shape) if d != dim % len(x.shape)]
        choice = self.choice(node, x, dim, shape, largest, keep=keep, first=True)
        if choice is not None:
            return [self.extreme(node, x, [dim], largest, node.name, keep), choice]
        return [
            self.extreme(node, x, [dim], largest, node.name, keep),
            lambda: self.arg_extreme(node, x, dim, largest, node.name + "_index", keep),
        ]

    def lower_any(self, node, row):
        x = self.value(node.args[0])
        dims = self.dims_of(node, 1, len(x.shape))
        keep = bool(_get(node.args, 2, node.kwargs.get("keepdim", False)))
        every = ".all." in node.target
        sign = "&&" if every else "||"
        kind = x.kind
        value = self.reduce(
            node, x, dims, "true" if every else "false", lambda s, t: f"{s} = {s} {sign} {cast_text(t, kind, 'bool')};", kind="bool"
        )
        return unsqueezed(value, dims, len(x.shape)) if keep else value

    # --- softmax and its relatives
    def softmax_parts(self, node, x, dim, kept=False):
        """Largest, shifted, exponentials, sums. Attention's scores may be `kept` multiplied by log2(e), for powers of two: their scale
        is multiplied in anyway. Without one, an fma takes the powers and rounds nothing more (docs/precision.md, "Casts")."""
        rank = len(x.shape)
        dim = dim % rank
        rescaled = kept and x.cost >= HEAVY
        if rescaled:
            x = Pointwise(node.name + "_score", x.shape, "real", [x], lambda a: f"may_rescale({a})", node)
        largest = self.extreme(node, x, [dim], True, node.name + "_max")
        kept = unsqueezed(largest, [dim], rank)
        shifted = Pointwise(node.name + "_shifted", x.shape, "real", [x, kept], below_largest(x, rescaled), node)
        weights = Pointwise(node.name + "_exp", x.shape, "real", [shifted], lambda a: f"exp({a})", node, weight=8)
        total = self.reduce(node, weights, [dim], "0", lambda s, t: f"{s} += {t};", name=node.name + "_sum")
        return largest, shifted, weights, total

    def lower_softmax(self, node, row):
        x = self.value(node.args[0])
        dim = int(node.args[1]) % len(x.shape)
        _, _, weights, total = self.softmax_parts(node, x, dim, kept=feeds_product(node))
        kept = unsqueezed(total, [dim], len(x.shape))
        value = self.point(node, [weights, kept], lambda e, s: f"{e} / {s}", weight=2)
        value.softmax = (weights, total, dim)
        return value

    def lower_log_softmax(self, node, row):
        x = self.value(node.args[0])
        dim = int(node.args[1]) % len(x.shape)
        _, shifted, _, total = self.softmax_parts(node, x, dim)
        logged = Pointwise(node.name + "_log", total.shape, "real", [total], lambda s: f"log({s})", node, weight=8)
        kept = unsqueezed(logged, [dim], len(x.shape))
        return self.point(node, [shifted, kept], lambda a, s: f"{a} - {s}")

    def lower_logsumexp(self, node, row):
        x = self.value(node.args[0])
        rank = len(x.shape)
        dims = self.dims_of(node, 1, rank)
        keep = bool(_get(node.args, 2, node.kwargs.get("keepdim", False)))
        largest = self.extreme(node, x, dims, True, node.name + "_max")
        kept = unsqueezed(largest, dims, rank)
        shift = below_largest(x)
        weights = Pointwise(node.name + "_exp", x.shape, "real", [x, kept], lambda a, m: f"exp({shift(a, m)})", node, weight=8)
        total = self.reduce(node, weights, dims, "0", lambda s, t: f"{s} += {t};", name=node.name + "_sum")
        value = self.point(node, [total, largest], lambda s, m: f"log({s}) + {m}", weight=9, shape=total.shape)
        return unsqueezed(value, dims, rank) if keep else value

    def lower_vector_norm(self, node, row):
        x = self.value(node.args[0])
        order = _get(node.args, 1, 2)
        dims = self.dims_of(node, 2, len(x.shape))
        keep = bool(_get(node.args, 3, node.kwargs.get("keepdim", False)))
        order = float(order)
        if order == 2:
            squares = self.reduce(node, x, dims, "0", lambda s, t: f"{s} += {t} * {t};", name=node.name + "_squares")
            value = self.point(node, [squares], lambda s: f"sqrt({s})", shape=squares.shape, weight=4)
        elif order == 1:
            value = self.reduce(node, x, dims, "0", lambda s, t: f"{s} += abs({t});")
        elif math.isinf(order):
            size = Pointwise(node.name + "_abs", x.shape, "real", [x], lambda a: f"abs({a})", node)
            value = self.extreme(node, size, dims, order > 0, node.name)
        else:
            powers = Pointwise(node.name + "_power", x.shape, "real", [x], lambda a: f"pow(abs({a}), {real_text(order)})", node, weight=12)
            total = self.reduce(node, powers, dims, "0", lambda s, t: f"{s} += {t};", name=node.name + "_sum")
            value = self.point(node, [total], lambda s: f"pow({s}, {real_text(1 / order)})", shape=total.shape, weight=12)
        return unsqueezed(value, dims, len(x.shape)) if keep else value

    # --- norms
    def normalised(self, node, x, dims, eps, name, dtype):
        """mean and 1 / deviation over dims."""
        mean = self.mean_of(node, x, dims, name + "_mean")
        squares = self.squares_of(node, x, mean, dims, name)
        count = index.product([x.shape[d] for d in dims])
        scale = Pointwise(
            name + "_rstd",
            squares.shape,
            "real",
            [squares, Literal(count, "real")],
            lambda s, n: f"rsqrt({s} / {n} + {real_text(eps)})",
            node,
            weight=6,
        )
        return mean, scale

    def affine(self, node, x, mean, scale, weight, bias, dtype, shape=None):
        parts = [x, mean, scale] + [p for p in (weight, bias) if p is not None]

        def text(a, m, s, *rest):
            rest = list(rest)
            factor = f"{s} * {rest.pop(0)}" if weight is not None else s
            shift = rest.pop(0) if bias is not None else "Real(0)"
            return f"affine({a}, {m}, {factor}, {shift})"

        return self.point(node, parts, text, shape=shape or x.shape, weight=4, dtype=dtype)

    def lower_layer_norm(self, node, row):
        x = self.value(node.args[0])
        rank = len(x.shape)
        dims = list(range(rank - len(node.args[1]), rank))
        weight, bias = (self.value(a) if a is not None else None for a in (_get(node.args, 2, None), _get(node.args, 3, None)))
        eps = node.args[4]
        dtype = node.meta[0].dtype
        mean, scale = self.normalised(node, x, dims, eps, node.name, dtype)
        m, s = unsqueezed(mean, dims, rank), unsqueezed(scale, dims, rank)
        return [self.affine(node, x, m, s, weight, bias, dtype), m, s]

    def lower_rms_norm(self, node, row):
        x = self.value(node.args[0])
        rank = len(x.shape)
        dims = list(range(rank - len(node.args[1]), rank))
        weight = _get(node.args, 2, None)
        eps = _get(node.args, 3, None)
        dtype = node.meta[0].dtype if isinstance(node.meta, list) else node.dtype
        eps = eps if eps is not None else {"bf16": 2.0**-7, "f16": 2.0**-10, "f32": 2.0**-23}.get(dtype, 2.0**-52)
        squares = self.reduce(node, x, dims, "0", lambda s, t: f"{s} += {t} * {t};", name=node.name + "_squares")
        count = index.product([x.shape[d] for d in dims])
        scale = Pointwise(
            node.name + "_rstd",
            squares.shape,
            "real",
            [squares, Literal(count, "real")],
            lambda s, n: f"rsqrt({s} / {n} + {real_text(eps)})",
            node,
            weight=6,
        )
        s = unsqueezed(scale, dims, rank)
        parts = [x, s] + ([self.value(weight)] if weight is not None else [])
        value = self.point(node, parts, lambda a, r, *w: " * ".join([a, r, *w]), weight=3, dtype=dtype, shape=x.shape)
        return [value, s] if isinstance(node.meta, list) else value

    def lower_group_norm(self, node, row):
        x = self.value(node.args[0])
        weight, bias = (self.value(a) if a is not None else None for a in node.args[1:3])
        groups, eps = sympy.sympify(node.args[6]), node.args[7]
        n, channels = x.shape[:2]
        each = index.floordiv(channels, groups)
        grouped = [n, groups, each, *x.shape[2:]]
        split = View(x, grouped, lambda i: [i[0], i[1] * each + i[2], *i[3:]])
        dims = list(range(2, len(grouped)))
        dtype = node.meta[0].dtype
        mean, scale = self.normalised(node, split, dims, eps, node.name, dtype)
        rank = len(x.shape)
        of = lambda v: View(v, [n, channels] + [1] * (rank - 2), lambda i: [i[0], index.floordiv(i[1], each)])  # noqa: E731
        along = lambda v: None if v is None else View(v, [channels] + [1] * (rank - 2), lambda i: [i[0]])  # noqa: E731
        return [self.affine(node, x, of(mean), of(scale), along(weight), along(bias), dtype), mean, scale]

    def lower_batch_norm(self, node, row):
        x = self.value(node.args[0])
        rank = len(x.shape)
        weight, bias = (self.value(a) if a is not None else None for a in node.args[1:3])
        dtype = node.meta[0].dtype
        channels = x.shape[1]
        along = lambda v: None if v is None else View(v, [channels] + [1] * (rank - 2), lambda i: [i[0]])  # noqa: E731
        if "no_training" in node.target:
            running_mean, running_var, eps = self.value(node.args[3]), self.value(node.args[4]), node.args[6]
            scale = Pointwise(
                node.name + "_rstd", running_var.shape, "real", [running_var], lambda v: f"rsqrt({v} + {real_text(eps)})", node, weight=6
            )
            out = self.affine(node, x, along(running_mean), along(scale), along(weight), along(bias), dtype)
            return [out, None, None]
        no_stats = "no_stats" in node.target
        eps = node.args[5] if no_stats else node.args[7]
        dims = [0, *range(2, rank)]
        mean, scale = self.normalised(node, x, dims, eps, node.name, dtype)
        out = [self.affine(node, x, along(mean), along(scale), along(weight), along(bias), dtype), mean, scale]
        if not no_stats:
            momentum = node.args[6]
            count = index.product([x.shape[d] for d in dims])
            squares = self.squares_of(node, x, mean, dims, node.name + "_running")
            old_mean, old_var = self.value(node.args[3]), self.value(node.args[4])
            keep, take = real_text(1 - momentum), real_text(momentum)
            out.append(
                Pointwise(node.name + "_mean", mean.shape, "real", [old_mean, mean], lambda a, b: f"{keep} * {a} + {take} * {b}", node)
            )
            out.append(
                Pointwise(
                    node.name + "_var",
                    mean.shape,
                    "real",
                    [old_var, squares, Literal(count - 1, "real")],
                    lambda a, s, n: f"{keep} * {a} + {take} * ({s} / {n})",
                    node,
                )
            )
        return out


PASSES = ("aten._to_copy.default", "aten.view.default", "aten.expand.default", "aten.permute.default", "aten.clone.default", "aten.unsqueeze.default")


def feeds_product(node):
    """Is a softmax the left operand of a product, as attention's is?"""
    waiting, seen = [node], set()
    while waiting:
        at = waiting.pop()
        for user in at.users:
            if user is None or user in seen:
                continue
            seen.add(user)
            if user.target in ("aten.bmm.default", "aten.mm.default") and user.args[0] is at:
                return True
            if user.target in PASSES:
                waiting.append(user)
    return False


def _get(items, position, default):
    return items[position] if len(items) > position else default


def _is_count(number, loops):
    count = index.product([e for _, e in loops])
    if isinstance(number, (int, float, sympy.Expr)):
        try:
            return index.same(sympy.nsimplify(number), count)
        except (TypeError, ValueError):
            return False
    if isinstance(number, tuple) and number[0] == "axis":
        return index.same(number[1], count)
    return False


WIDTH = {"f8e4m3": 1, "f8e5m2": 1, "bf16": 2, "f16": 2, "f32": 4, "f64": 8}


def narrows(source, target):
    """Does a cast lose anything?"""
    if source == target:
        return False
    return WIDTH[target] <= WIDTH[source]


def renamed(value, node):
    return View(value, value.shape, lambda i: i, node.name)
