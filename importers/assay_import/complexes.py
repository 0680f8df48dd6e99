"""Complex tensors: two real values each. Views and sums go part by part; Fourier transforms are sums with
cos and sin of exact fractions of a turn, whose bound is that of a sum: n terms of the input's size."""

import sympy

from . import index
from .graph import Node, Refused
from .table import VIEWS
from .values import Choice, Complex, Literal, Pointwise, Reduction, View, broadcast

# Operators that treat both parts alike.
PARTWISE = {"add", "sub", "neg", "sum", "mean"}


class Complexes:
    """Mixed into Lowering."""

    def lower_complex(self, node, row):
        short = node.target.split(".")[1]
        if row.lower in ("view_as_real", "fft"):
            return getattr(self, "lower_" + row.lower)(node, row)
        given = [a for a in node.args if isinstance(a, Node)]
        pairs = [a for a in given if isinstance(self.env[a], Complex)]
        if short in ("mul",) and len(pairs) == 2:
            a, b = self.env[pairs[0]], self.env[pairs[1]]
            parts = [a.re, a.im, b.re, b.im]
            return Complex(
                self.point(node, parts, lambda p, q, r, s: f"{p} * {r} - {q} * {s}", kind="real", weight=3, name=node.name + "_re"),
                self.point(node, parts, lambda p, q, r, s: f"{p} * {s} + {q} * {r}", kind="real", weight=3, name=node.name + "_im"),
            )
        if short == "abs":
            z = self.env[pairs[0]]
            return self.point(node, [z.re, z.im], lambda p, q: f"sqrt({p} * {p} + {q} * {q})", kind="real", weight=6)
        if short == "_conj":
            z = self.env[pairs[0]]
            return Complex(z.re, self.point(node, [z.im], lambda q: f"-{q}", kind="real", exact=True, weight=0))
        scales = short in ("mul", "div") and len(pairs) == 1 and pairs[0] is node.args[0]
        if not (row in VIEWS or short in PARTWISE or scales):
            raise Refused(f"{node.target} is not lowered for complex numbers", "work on torch.view_as_real", node)
        kept = {a: self.env[a] for a in pairs}
        results = []
        for part in ("re", "im"):
            for a, z in kept.items():
                self.env[a] = getattr(z, part)
            try:
                results.append(self.lower(node))
            finally:
                self.env.update(kept)
        return Complex(*results)

    def lower_view_as_real(self, node, row):
        z = self.env[node.args[0]]
        zero = sympy.Integer(0)
        drop = lambda i: i[:-1]  # noqa: E731
        return Choice(
            node.name,
            [*z.shape, 2],
            "real",
            [(lambda i: [(i[-1], zero + 1)], z.re, drop), (lambda i: [], z.im, drop)],
            node,
        )

    def lower_view_as_complex(self, node, row):
        x = self.value(node.args[0])
        shape = x.shape[:-1]
        return Complex(
            View(x, shape, lambda i: [*i, sympy.Integer(0)], node.name), View(x, shape, lambda i: [*i, sympy.Integer(1)], node.name)
        )

    def lower_complex_of(self, node, row):
        a, b = (self.value(x) for x in node.args[:2])
        spread = lambda v: View(v, node.shape, lambda i: broadcast(v, i, node.shape), node.name)  # noqa: E731
        return Complex(spread(a), spread(b))

    def lower_polar(self, node, row):
        parts = [self.value(x) for x in node.args[:2]]
        return Complex(
            self.point(node, parts, lambda r, t: f"{r} * cos({t})", kind="real", weight=9, name=node.name + "_re"),
            self.point(node, parts, lambda r, t: f"{r} * sin({t})", kind="real", weight=9, name=node.name + "_im"),
        )

    # --- Fourier transforms
    def lower_fft(self, node, row):
        dims = [int(d) for d in node.args[1]]
        mode = int(node.args[2])
        kind = node.target.split("_fft_")[1][:3]
        z = self.env[node.args[0]]
        shape = list(z.shape)
        dims = [d % len(shape) for d in dims]
        sizes = {d: shape[d] for d in dims}
        if kind == "c2r":
            sizes[dims[-1]] = sympy.sympify(node.args[3])
        total = index.product(list(sizes.values()))
        if kind == "r2c":
            if not bool(node.args[3]):
                raise Refused("a real Fourier transform with both sides", "use torch.fft.rfft, or fft of a complex tensor", node)
            first = dims[-1]
            z = self.transform(node, Complex(z, None), first, sizes[first], index.floordiv(sizes[first], 2) + 1, -1)
            rest = dims[:-1]
            sign = -1
        elif kind == "c2c":
            rest, sign = dims, -1 if bool(node.args[3]) else 1
        else:
            rest, sign = dims[:-1], 1
        for d in rest:
            z = self.transform(node, z, d, sizes[d], sizes[d], sign)
        if kind == "c2r":
            return self.normalised_by(node, self.to_real(node, z, dims[-1], sizes[dims[-1]]), mode, total)
        return Complex(self.normalised_by(node, z.re, mode, total), self.normalised_by(node, z.im, mode, total))

    def normalised_by(self, node, value, mode, total):
        if mode == 0:
            return value
        text = (lambda a, n: f"{a} * rsqrt({n})") if mode == 1 else (lambda a, n: f"{a} / {n}")
        return Pointwise(node.name, value.shape, "real", [value, Literal(total, "real")], text, node, weight=2)

    def transform(self, node, z, d, n, extent, sign):
        shape = list(z.re.shape)
        shape[d] = extent

        def part(which):
            def step(body, accumulator, indices, variables):
                at = [*indices[:d], variables[0], *indices[d + 1 :]]
                turn = f"({body.code(indices[d], 3)} * {body.code(variables[0], 3)}, {body.code(n)})"
                cosine, sine = "turn_cos" + turn, "turn_sin" + turn
                body.cheap(z.re)
                real = body.value(z.re, at)
                if z.im is None:
                    term = f"{real} * {cosine}" if which == 0 else f"{real} * {sine}"
                    word = "+=" if which == 0 or sign > 0 else "-="
                    body.line(f"{accumulator} {word} {term};")
                    return
                body.cheap(z.im)
                imaginary = body.value(z.im, at)
                if which == 0:
                    body.line(f"{accumulator} += {real} * {cosine};")
                    body.line(f"{accumulator} {'-=' if sign > 0 else '+='} {imaginary} * {sine};")
                else:
                    body.line(f"{accumulator} += {imaginary} * {cosine};")
                    body.line(f"{accumulator} {'+=' if sign > 0 else '-='} {real} * {sine};")

            parts = [z.re] if z.im is None else [z.re, z.im]
            return Reduction(node.name + ("_re", "_im")[which], shape, "real", [("j", z.re.shape[d])], "0", step, parts, node, heavy=True)

        return Complex(part(0), part(1))

    def to_real(self, node, z, d, n):
        """The inverse of a one-sided transform: inner frequencies count twice."""
        shape = list(z.re.shape)
        shape[d] = n

        def step(body, accumulator, indices, variables):
            k = variables[0]
            at = [*indices[:d], k, *indices[d + 1 :]]
            turn = f"({body.code(indices[d], 3)} * {body.code(k, 3)}, {body.code(n)})"
            body.cheap(z.re)
            body.cheap(z.im)
            once = f"({body.code(k)} == 0 || 2 * {body.code(k, 3)} == {body.code(n)})"
            term = f"{body.value(z.re, at)} * turn_cos{turn} - {body.value(z.im, at)} * turn_sin{turn}"
            body.line(f"{accumulator} += Real({once} ? 1 : 2) * ({term});")

        m = index.floordiv(n, 2) + 1
        return Reduction(node.name, shape, "real", [("k", m)], "0", step, [z.re, z.im], node, heavy=True)
