"""Lowering of what moves elements: views, parts, gathers and scatters."""

import sympy

from . import index
from .graph import Node, Refused
from .values import Choice, Gather, Literal, Pointwise, Ramp, Reduction, View, broadcast, cast_text, is_exact


def integer(x, default=None):
    if x is None:
        return default
    if isinstance(x, sympy.Expr) and x.is_Integer:
        return int(x)
    return x


# What an index passes through without being another one: torch.where(target != ignored, target, 0).
TRANSPARENT = ("aten.where.self", "aten._to_copy.default")


class Moves:
    """Mixed into Lowering."""

    def view(self, node, base, function, shape=None):
        return View(base, node.shape if shape is None else shape, function, node.name)

    def lower_itself(self, node, row):
        return self.view(node, self.value(node.args[0]), lambda i: i)

    def lower_permute(self, node, row):
        x = self.value(node.args[0])
        order = [int(d) % len(x.shape) for d in node.args[1]]
        return self.view(node, x, lambda i: [i[order.index(d)] for d in range(len(order))])

    def lower_transpose(self, node, row):
        x = self.value(node.args[0])
        rank = len(x.shape)
        if rank < 2:
            return self.view(node, x, lambda i: i)
        a, b = (0, 1) if ".t." in node.target else (int(node.args[1]) % rank, int(node.args[2]) % rank)

        def swapped(indices):
            out = list(indices)
            out[a], out[b] = out[b], out[a]
            return out

        return self.view(node, x, swapped)

    def lower_view(self, node, row):
        x = self.value(node.args[0])
        old, new = x.shape, [sympy.sympify(s) for s in node.shape]
        return self.view(node, x, lambda i: index.regroup(i, old, new))

    def lower_unsqueeze(self, node, row):
        x = self.value(node.args[0])
        at = int(node.args[1]) % (len(x.shape) + 1)
        return self.view(node, x, lambda i: [v for d, v in enumerate(i) if d != at])

    def lower_expand(self, node, row):
        x = self.value(node.args[0])
        return self.view(node, x, lambda i: broadcast(x, i, node.shape))

    def lower_copy(self, node, row):
        x = self.value(node.args[1])
        if node.args[0].dtype != node.args[1].dtype:
            raise Refused("a copy into a tensor of another dtype", "cast it before", node)
        return self.view(node, x, lambda i: broadcast(x, i, node.shape))

    def span(self, node, shape, first):
        """dim, start, step of a slice, with negative and open ends resolved."""
        dim = int(_get(node.args, first, 0)) % len(shape)
        extent = shape[dim]
        start = integer(_get(node.args, first + 1, None), 0)
        step = integer(_get(node.args, first + 3, None), 1)
        if isinstance(start, int) and start < 0:
            start = extent + start
        return dim, sympy.sympify(start), sympy.sympify(step)

    def within(self, last, extent):
        """The last index that is read lies below the extent: a constraint, where that is not known."""
        if not index.nonnegative(extent - 1 - last):
            text = f"{index.code(last, 1)} < {index.code(extent, 1)}"
            if text not in self.constraints:
                self.constraints.append(text)

    def lower_slice_(self, node, row):
        x = self.value(node.args[0])
        dim, start, step = self.span(node, x.shape, 1)
        self.within(start + (node.shape[dim] - 1) * step, x.shape[dim])
        return self.view(node, x, lambda i: [v * step + start if d == dim else v for d, v in enumerate(i)])

    def lower_select(self, node, row):
        x = self.value(node.args[0])
        dim = int(node.args[1]) % len(x.shape)
        at = integer(node.args[2])
        if isinstance(at, int) and at < 0:
            self.within(sympy.Integer(-at - 1), x.shape[dim])
            at = x.shape[dim] + at
        at = sympy.sympify(at)
        self.within(at, x.shape[dim])
        return self.view(node, x, lambda i: [*i[:dim], at, *i[dim:]])

    def lower_split(self, node, row):
        x = self.value(node.args[0])
        dim = int(_get(node.args, 2, node.kwargs.get("dim", 0))) % len(x.shape)
        parts, start = [], sympy.Integer(0)
        for size, meta in zip(node.args[1], node.meta):
            offset = start
            parts.append(
                View(x, meta.shape, lambda i, o=offset: [v + o if d == dim else v for d, v in enumerate(i)], node.name)
            )
            start = start + sympy.sympify(size)
        return parts

    def lower_unfold(self, node, row):
        x = self.value(node.args[0])
        dim = int(node.args[1]) % len(x.shape)
        step = sympy.sympify(node.args[3])
        self.within((node.shape[dim] - 1) * step + node.shape[-1] - 1, x.shape[dim])
        return self.view(node, x, lambda i: [v * step + i[-1] if d == dim else v for d, v in enumerate(i[:-1])])

    def lower_flip(self, node, row):
        x = self.value(node.args[0])
        dims = {int(d) % len(x.shape) for d in node.args[1]}
        return self.view(node, x, lambda i: [x.shape[d] - 1 - v if d in dims else v for d, v in enumerate(i)])

    def lower_repeat(self, node, row):
        x = self.value(node.args[0])
        skip = len(node.shape) - len(x.shape)
        return self.view(node, x, lambda i: [index.mod(v, e) for v, e in zip(i[skip:], x.shape)])

    def lower_diagonal(self, node, row):
        x = self.value(node.args[0])
        rank = len(x.shape)
        offset = integer(_get(node.args, 1, 0), 0)
        a, b = int(_get(node.args, 2, 0)) % rank, int(_get(node.args, 3, 1)) % rank
        rest = [d for d in range(rank) if d not in (a, b)]

        def spread(indices):
            out = [None] * rank
            for d, v in zip(rest, indices):
                out[d] = v
            out[a] = indices[-1] + max(0, -offset)
            out[b] = indices[-1] + max(0, offset)
            return out

        return self.view(node, x, spread)

    def by_index(self, node, kind, parts):
        value = Choice(node.name, node.shape, kind, parts, node)
        value.exact = all(is_exact(v) for _, v, _ in parts)
        return value

    def lower_cat(self, node, row):
        values = [self.value(a) for a in node.args[0]]
        values = [v for v in values if not (len(v.shape) == 1 and v.shape[0] == 0)]
        dim = int(_get(node.args, 1, node.kwargs.get("dim", 0))) % len(node.shape)
        kind = "real" if any(v.kind == "real" for v in values) else values[0].kind
        parts, start = [], sympy.Integer(0)
        for number, v in enumerate(values):
            end = start + v.shape[dim]
            last = number + 1 == len(values)
            parts.append(
                (
                    (lambda i: []) if last else (lambda i, e=end: [(i[dim], e)]),
                    self.as_kind(v, kind),
                    lambda i, o=start: [x - o if d == dim else x for d, x in enumerate(i)],
                )
            )
            start = end
        return self.by_index(node, kind, parts)

    def as_kind(self, value, kind):
        if value.kind == kind:
            return value
        source = value.kind
        return Pointwise(value.name, value.shape, kind, [value], lambda a: cast_text(a, source, kind), weight=0)

    def lower_pad(self, node, row):
        x = self.value(node.args[0])
        pads = [sympy.sympify(p) for p in node.args[1]]
        rank = len(x.shape)
        before = [sympy.Integer(0)] * rank
        touched = []
        for number in range(len(pads) // 2):
            d = rank - 1 - number
            before[d] = pads[2 * number]
            if pads[2 * number] != 0 or pads[2 * number + 1] != 0:
                touched.append(d)

        def inside(indices):
            tests = []
            for d in sorted(touched):
                at = indices[d] - before[d]
                tests += [(sympy.Integer(-1), at), (at, x.shape[d])]
            return tests

        fill = Literal(_get(node.args, 2, 0), x.kind)
        return self.by_index(
            node,
            x.kind,
            [
                (inside, x, lambda i: [v - b for v, b in zip(i, before)]),
                (lambda i: [], fill, lambda i: []),
            ],
        )

    def lower_slice_scatter(self, node, row):
        x, source = self.value(node.args[0]), self.value(node.args[1])
        if "select" in node.target:
            dim = int(node.args[2]) % len(x.shape)
            start, step = integer(node.args[3]), sympy.Integer(1)
            start = x.shape[dim] + start if isinstance(start, int) and start < 0 else sympy.sympify(start)
            count = sympy.Integer(1)
            place = lambda i: [v for d, v in enumerate(i) if d != dim]  # noqa: E731
        else:
            dim, start, step = self.span(node, x.shape, 2)
            count = source.shape[dim]
            place = lambda i: [  # noqa: E731
                index.floordiv(v - start, step) if d == dim else v for d, v in enumerate(i)
            ]
        if step != 1:
            raise Refused("a slice with a step is written to", "write to all elements and choose with torch.where", node)

        def inside(indices):
            at = indices[dim] - start
            return [(sympy.Integer(-1), at), (at, count)]

        kind = "real" if "real" in (x.kind, source.kind) else x.kind
        parts = [(inside, self.as_kind(source, kind), place), (lambda i: [], self.as_kind(x, kind), lambda i: i)]
        return self.by_index(node, kind, parts)

    # --- by index
    def indexes(self, value, extent):
        """Notes that what `value` holds is an index below `extent`, where it is an input's own."""
        seen = value
        while isinstance(seen, View):
            seen = seen.base
        if seen.kind == "int":
            self.uses.append((seen.name, "index", sympy.sympify(extent)))
        if isinstance(seen, Pointwise) and seen.node is not None and seen.node.target in TRANSPARENT:
            for part in seen.parts:
                if part.kind == "int":
                    self.indexes(part, extent)

    def gathered(self, node, base, parts, extents, function):
        for (part, _), extent in zip(parts, extents):
            self.indexes(part, extent)
        value = Gather(node.name, node.shape, base, parts, extents, function, node)
        value.exact = is_exact(base)
        return value

    def lower_index_select(self, node, row):
        x, at = self.value(node.args[0]), self.value(node.args[2])
        dim = int(node.args[1]) % len(x.shape)
        return self.gathered(
            node,
            x,
            [(at, lambda i: [i[dim]] if at.shape else [])],
            [x.shape[dim]],
            lambda i, s: [s[0] if d == dim else v for d, v in enumerate(i)],
        )

    def lower_embedding(self, node, row):
        weight, at = self.value(node.args[0]), self.value(node.args[1])
        rank = len(at.shape)
        return self.gathered(
            node, weight, [(at, lambda i: i[:rank])], [weight.shape[0]], lambda i, s: [s[0], *i[rank:]]
        )

    def lower_gather(self, node, row):
        x, at = self.value(node.args[0]), self.value(node.args[2])
        if not x.shape:
            return x
        dim = int(node.args[1]) % len(x.shape)
        return self.gathered(
            node,
            x,
            [(at, lambda i: i)],
            [x.shape[dim]],
            lambda i, s: [s[0] if d == dim else v for d, v in enumerate(i)],
        )

    def advanced(self, node, x, given):
        """Where the axes of an index expression x[given] come from: (parts, extents, map)."""
        given = [None if g is None else self.value(g) for g in given]
        given += [None] * (len(x.shape) - len(given))
        if any(g is not None and node_dtype(a) == "bool" for g, a in zip(given, node.args[1])):
            raise Refused("a mask is used as an index: its result's size depends on values", "use torch.where", node)
        used = [d for d, g in enumerate(given) if g is not None]
        rank = max(len(given[d].shape) for d in used)
        shape = [sympy.Integer(1)] * rank
        for d in used:
            g = given[d]
            for at, extent in enumerate(g.shape):
                if extent != 1:
                    shape[rank - len(g.shape) + at] = extent
        adjacent = used == list(range(used[0], used[-1] + 1))
        first = used[0] if adjacent else 0
        return given, used, rank, shape, first

    def lower_index(self, node, row):
        x = self.value(node.args[0])
        given, used, rank, shape, first = self.advanced(node, x, node.args[1])

        def function(indices, symbols):
            rest = list(indices[:first]) + list(indices[first + rank :])
            out, at, number = [], 0, 0
            for d in range(len(x.shape)):
                if d in used:
                    out.append(symbols[number])
                    number += 1
                else:
                    out.append(rest[at])
                    at += 1
            return out

        parts = [
            (given[d], lambda i, g=given[d]: broadcast(g, list(i[first : first + rank]), shape)) for d in used
        ]
        return self.gathered(node, x, parts, [x.shape[d] for d in used], function)

    def scattered(self, node, name, x, loops, parts, extents, place, source, where, accumulate):
        """x, with elements of a source put where indices point: one loop over the source an element.

        `parts` are index values with the map from loop variables; `place` lists, for each, the axis of x it
        points along. `source(variables, indices)` are the indices into the source.
        """
        for (part, _), extent in zip(parts, extents):
            self.indexes(part, extent)
        if accumulate:
            self.atomics = True  # honest kernels add by atomics, in any order
        if not accumulate:
            for part, _ in parts:
                seen = part
                while isinstance(seen, View):
                    seen = seen.base
                self.uses.append((seen.name, "distinct", None))

        def step(body, accumulator, indices, variables):
            tests = []
            for (part, at), axis, extent in zip(parts, place, extents):
                text = body.value(part, at(variables, indices))
                text = f"whole({text})" if part.kind == "real" else text
                tests.append(f"wrapped({text}, {body.code(extent)}) == {body.code(indices[axis], 2)}")
            more = [body.test(a, b) for a, b in where(variables, indices)]
            with body.branch() as scope:
                text = body.value(source[0], source[1](variables, indices))
                body.line(f"{accumulator} {'+=' if accumulate else '='} {text};")
            body.line(f"if ({' && '.join(tests + more)}) {{")
            body.lines(scope.lines)
            body.line("}")

        value = Reduction(name, x.shape, x.kind, loops, "0", step, [x], node)
        plain = value.emit

        def emit(body, indices):
            value.start = body.value(x, indices)
            return plain(body, indices)

        value.emit = emit
        value.exact = not accumulate
        return self.finished(node, value) if accumulate else value

    def lower_scatter(self, node, row):
        x = self.value(node.args[0])
        if not x.shape:
            raise Refused("a scatter into a number", "give it an axis of one", node)
        dim = int(node.args[1]) % len(x.shape)
        at = self.value(node.args[2])
        accumulate = "scatter_add" in node.target
        if "value" in node.target.split(".")[-1]:
            source = Literal(node.args[3], x.kind)
            elements = lambda v, i: []  # noqa: E731
            distinct = False
        else:
            source = self.as_kind(self.value(node.args[3]), x.kind)
            elements = lambda v, i: full(v, i)  # noqa: E731
            distinct = True

        def full(variables, indices):
            return [variables[0] if d == dim else i for d, i in enumerate(indices)]

        def smaller(variables, indices):
            # The index may be smaller than x along the other axes.
            return [
                (indices[d], at.shape[d]) for d in range(len(x.shape)) if d != dim and not index.same(at.shape[d], x.shape[d])
            ]

        before = len(self.uses)
        value = self.scattered(
            node, node.name, x, [("k", at.shape[dim])], [(at, full)], [x.shape[dim]], [dim], (source, elements), smaller, accumulate
        )
        if not distinct:
            self.uses[before:] = [u for u in self.uses[before:] if u[1] != "distinct"]
        return value

    def lower_index_add(self, node, row):
        x, at = self.value(node.args[0]), self.value(node.args[2])
        dim = int(node.args[1]) % len(x.shape)
        source = self.as_kind(self.value(node.args[3]), x.kind)
        alpha = node.kwargs.get("alpha", 1)
        if alpha != 1:
            factor = self.value(alpha, "real")
            source = Pointwise(node.name + "_term", source.shape, x.kind, [source, factor], lambda a, f: f"{f} * {a}", node)
        return self.scattered(
            node,
            node.name,
            x,
            [("k", at.shape[0])],
            [(at, lambda v, i: [v[0]])],
            [x.shape[dim]],
            [dim],
            (source, lambda v, i: [v[0] if d == dim else e for d, e in enumerate(i)]),
            lambda v, i: [],
            True,
        )

    def lower_index_put(self, node, row):
        x = self.value(node.args[0])
        given, used, rank, shape, first = self.advanced(node, x, node.args[1])
        source = self.as_kind(self.value(node.args[2]), x.kind)
        accumulate = bool(_get(node.args, 3, node.kwargs.get("accumulate", False)))
        rest = [d for d in range(len(x.shape)) if d not in used]
        result = [x.shape[d] for d in rest[: first if first <= len(rest) else len(rest)]]
        result = [x.shape[d] for d in rest[:first]] + shape + [x.shape[d] for d in rest[first:]]

        def elements(variables, indices):
            others = [indices[d] for d in rest]
            return broadcast(source, others[:first] + list(variables) + others[first:], result)

        parts = [(given[d], lambda v, i, g=given[d]: broadcast(g, list(v), shape)) for d in used]
        return self.scattered(
            node,
            node.name,
            x,
            [("klmnpq"[n], e) for n, e in enumerate(shape)],
            parts,
            [x.shape[d] for d in used],
            used,
            (source, elements),
            lambda v, i: [],
            accumulate,
        )

    def lower_bincount(self, node, row):
        raise Refused(
            "aten.bincount.default: its result's size depends on values",
            "torch.nn.functional.one_hot(x, classes).sum(0) has a fixed size",
            node,
        )

    def lower_one_hot(self, node, row):
        x = self.value(node.args[0])
        classes = node.shape[-1]
        self.indexes(x, classes)
        ramp = Ramp([classes], "int", lambda i: i[0])
        kept = View(x, [*x.shape, 1], lambda i: i[:-1])
        return self.point(node, [kept, ramp], lambda a, c: f"int64({a} == {c})", exact=True)


def node_dtype(argument):
    return argument.dtype if isinstance(argument, Node) else None


def _get(items, position, default):
    return items[position] if len(items) > position else default
