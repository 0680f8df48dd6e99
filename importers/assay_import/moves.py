"""Lowering of what moves elements: views, parts, gathers and scatters."""

import sympy

from . import index
from .graph import Node, Refused
from .values import Choice, Gather, Input, Literal, Pointwise, Ramp, Reduction, Table, View, broadcast, cast_text, is_exact, kind_of


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
        spread = self.view(node, x, lambda i: broadcast(x, i, node.shape))
        source, target = node.args[1].dtype, node.args[0].dtype
        if source == target:
            return spread
        kind, wanted = spread.kind, kind_of(target)
        if kind == "real" and wanted != "real":
            raise Refused("a copy of numbers into a tensor of integers", "cast it before", node)
        value = self.point(node, [spread], lambda a: cast_text(a, kind, wanted), kind=wanted, weight=0, exact=source == "bool")
        value.is_cast = kind == "real"
        return value

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
            if computed_of_inputs(part) and sympy.sympify(extent).is_Symbol:
                self.bounded.add(str(extent))
            if part.kind == "real" and not is_exact(part):
                note = "an index is made of computed numbers: near a step an honest kernel may read the element beside it"
                if note not in self.notes:
                    self.notes.append(note)
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

    def scattered(self, node, name, x, loops, parts, extents, place, source, where, accumulate, update=None, start=None):
        """x, with elements of a source put where indices point: one loop over the source an element.

        `parts` are index values with the map from loop variables; `place` lists, for each, the axis of x it
        points along. `source(variables, indices)` are the indices into the source. `update` is the statement that
        takes an element in, `start` what there is without any (else x).
        """
        update = update or (lambda s, t: f"{s} {'+=' if accumulate else '='} {t};")
        for (part, _), extent in zip(parts, extents):
            self.indexes(part, extent)
        if accumulate:
            self.atomics = True  # honest kernels add by atomics, in any order
        if not accumulate and not self.counts_places(parts, loops):
            self.distinct(node, parts, extents)

        def step(body, accumulator, indices, variables):
            tests = []
            for (part, at), axis, extent in zip(parts, place, extents):
                text = body.value(part, at(variables, indices))
                text = f"whole({text})" if part.kind == "real" else text
                tests.append(f"wrapped({text}, {body.code(extent)}) == {body.code(indices[axis], 2)}")
            more = [body.test(a, b) for a, b in where(variables, indices)]
            with body.branch() as scope:
                text = body.value(source[0], source[1](variables, indices))
                body.line(update(accumulator, text))
            body.line(f"if ({' && '.join(tests + more)}) {{")
            body.lines(scope.lines)
            body.line("}")

        value = Reduction(name, x.shape, x.kind, loops, "0", step, [x], node)
        plain = value.emit

        def emit(body, indices):
            value.start = body.value(x, indices) if start is None else start
            return plain(body, indices)

        value.emit = emit
        value.exact = not accumulate
        return self.finished(node, value) if accumulate else value

    def counts_places(self, parts, loops):
        """Does some index, a ramp, tell all loop variables apart by itself, so that no two elements meet?"""
        places = [index.variable(f"place{n}", e) for n, (_, e) in enumerate(loops)]
        apart = set()
        for part, at in parts:
            indices = at(places, [])
            seen, maps = part, []
            while isinstance(seen, View):
                maps.append(seen.function)
                seen = seen.base
            if not isinstance(seen, Ramp):
                continue
            for function in maps:
                indices = function(indices)
            number = sympy.expand(seen.function(indices))
            apart |= {p for p in places if number.coeff(p) != 0 and number.free_symbols & set(places) == {p}}
        return apart == {p for p, (_, e) in zip(places, loops) if e != 1}

    def distinct(self, node, parts, extents):
        """Notes that no two elements of the index point to one place: which of them won would be chance."""
        if any(isinstance(b, Table) and len(set(b.numbers)) == len(b.numbers) for b in (base_of(p) for p, _ in parts)):
            return
        for (part, _), extent in zip(parts, extents):
            self.uses.append((base_of(part).name, "distinct", sympy.sympify(extent)))

    def lower_scatter_reduce(self, node, row):
        x = self.value(node.args[0])
        dim = int(node.args[1]) % len(x.shape)
        at = self.value(node.args[2])
        source = self.as_kind(self.value(node.args[3]), x.kind)
        how = node.args[4]
        own = bool(_get(node.args, 5, node.kwargs.get("include_self", True)))
        real = x.kind == "real"
        low, high = ("Real(-assay::infinity())", "Real(assay::infinity())") if real else ("-0x7fffffffffffffffll - 1", "0x7fffffffffffffffll")
        words = ("max", "min") if real else ("larger_of", "smaller_of")
        update, neutral = {
            "sum": (lambda s, t: f"{s} += {t};", "0"),
            "mean": (lambda s, t: f"{s} += {t};", "0"),
            "prod": (lambda s, t: f"{s} = {s} * {t};", "1"),
            "amax": (lambda s, t: f"{s} = {words[0]}({s}, {t});", low),
            "amin": (lambda s, t: f"{s} = {words[1]}({s}, {t});", high),
        }[how]

        def full(variables, indices):
            return [variables[0] if d == dim else i for d, i in enumerate(indices)]

        def smaller(variables, indices):
            return [(indices[d], at.shape[d]) for d in range(len(x.shape)) if d != dim and not index.same(at.shape[d], x.shape[d])]

        def over(name, element, statement, start):
            return self.scattered(
                node, name, x, [("k", at.shape[dim])], [(at, full)], [x.shape[dim]], [dim], element, smaller, True, statement, start
            )

        value = over(node.name + "_all", (source, full), update, None if own else neutral)
        if how != "mean" and own:
            return value
        one = Literal(1, x.kind)
        count = over(node.name + "_count", (one, lambda v, i: []), lambda s, t: f"{s} += {t};", "1" if own and how == "mean" else "0")
        if how == "mean":
            divided = (lambda s, n: f"{s} / max({n}, Real(1))") if real else (lambda s, n: f"floor_div({s}, larger_of({n}, 1))")
            value = self.point(node, [value, count], divided, weight=2, shape=x.shape)
        if own:
            return value
        none = (lambda n: f"equal({n}, Real(0))") if real else (lambda n: f"Decision({n} == 0)")
        return self.point(node, [value, count, x], lambda v, n, a: f"select({none(n)}, {a}, {v})", weight=2, shape=x.shape)

    def lower_search(self, node, row):
        """How many sorted numbers are smaller: what a binary search finds."""
        bucketize = "bucketize" in node.target
        sequence, x = (self.value(node.args[i]) for i in ((1, 0) if bucketize else (0, 1)))
        if node.kwargs.get("sorter") is not None:
            raise Refused("a search through a sorter", "sort the sequence before", node)
        right = bool(node.kwargs.get("right", False)) or node.kwargs.get("side") == "right"
        real = "real" in (sequence.kind, x.kind)
        kind = "real" if real else "int"
        name, kinds = node.name, (sequence.kind, x.kind)
        if not isinstance(base_of(sequence), (Table, Ramp)):
            self.uses.append((base_of(sequence).name, "ascending", None))

        def step(body, accumulator, indices, variables):
            mine = cast_text(body.value(x, indices), kinds[1], kind)
            lead = [] if len(sequence.shape) == 1 else indices[:-1]
            other = cast_text(body.value(sequence, [*lead, variables[0]]), kinds[0], kind)
            if real:
                test = f"{'less_equal' if right else 'less'}({other}, {mine})"
                body.line(f"{accumulator} += select({test}, Real(1), Real(0));")
            else:
                body.line(f"{accumulator} += int64({other} {'<=' if right else '<'} {mine});")

        exact = is_exact(sequence) and is_exact(x)
        value = Reduction(name, x.shape, kind, [("k", sequence.shape[-1])], "0", step, [sequence, x], node)
        if not real or not exact:
            return value
        counted = Pointwise(name, x.shape, "int", [value], lambda a: f"whole({a})", node)
        counted.exact = True
        return counted

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
        source = self.as_kind(self.value(node.args[2]), x.kind)
        accumulate = bool(_get(node.args, 3, node.kwargs.get("accumulate", False)))
        masks = [(d, a) for d, a in enumerate(node.args[1]) if a is not None]
        if len(masks) == 1 and node_dtype(masks[0][1]) == "bool" and all(e == 1 for e in source.shape):
            return self.masked(node, x, masks[0][0], self.value(masks[0][1]), source, accumulate)
        given, used, rank, shape, first = self.advanced(node, x, node.args[1])
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

    def masked(self, node, x, at, mask, source, accumulate):
        """x[..., mask] = one value: where the mask holds."""
        rank = len(mask.shape)
        placed = View(mask, x.shape, lambda i: i[at : at + rank])
        one = View(source, x.shape, lambda i: [sympy.Integer(0)] * len(source.shape))
        other = "{0} + {1}" if accumulate else "{1}"
        return self.point(
            node, [placed, x, one], lambda m, a, b: f"select({m}, {other.format(a, b)}, {a})", kind=x.kind, exact=not accumulate
        )

    def lower_bincount(self, node, row):
        """How many elements have each value below `minlength`, or the sum of their weights."""
        x = self.value(node.args[0])
        weights = _get(node.args, 1, node.kwargs.get("weights"))
        bins = node.shape[0]
        self.indexes(x, bins)
        if weights is not None:
            self.atomics = True
            source = self.as_kind(self.value(weights), "real")
        kind = "int" if weights is None else "real"

        def step(body, accumulator, indices, variables):
            test = f"{body.value(x, variables)} == {body.code(indices[0], 2)}"
            with body.branch() as scope:
                body.line(f"{accumulator} += {'1' if weights is None else body.value(source, variables)};")
            body.line(f"if ({test}) {{")
            body.lines(scope.lines)
            body.line("}")

        parts = [x] if weights is None else [x, source]
        return Reduction(node.name, [bins], kind, [("k", x.shape[0])], "0", step, parts, node)

    def lower_one_hot(self, node, row):
        x = self.value(node.args[0])
        classes = node.shape[-1]
        self.indexes(x, classes)
        ramp = Ramp([classes], "int", lambda i: i[0])
        kept = View(x, [*x.shape, 1], lambda i: i[:-1])
        return self.point(node, [kept, ramp], lambda a, c: f"int64({a} == {c})", exact=True)


def computed_of_inputs(value):
    """Is an index made of what inputs hold, and not held by one? How far it reaches is then the function's to know."""
    base = base_of(value)
    if isinstance(base, Input) or base.node is not None and base.node.target in TRANSPARENT:
        return False
    waiting, seen = [base], set()
    while waiting:
        at = waiting.pop()
        if isinstance(at, Input):
            return True
        if id(at) not in seen:
            seen.add(id(at))
            waiting += at.operands()
    return False


def base_of(value):
    while isinstance(value, View):
        value = value.base
    return value


def node_dtype(argument):
    return argument.dtype if isinstance(argument, Node) else None


def _get(items, position, default):
    return items[position] if len(items) > position else default
