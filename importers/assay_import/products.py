"""Lowering of products, windows, attention, scans and orders."""

import sympy

from . import index
from .graph import Refused
from .values import Choice, Gather, Kernel, Literal, Pointwise, Reduction, View, broadcast, cast_text, is_exact, real_text, unsqueezed


def _get(items, position, default):
    return items[position] if len(items) > position else default


def spread(value, count):
    values = [sympy.sympify(v) for v in value] if isinstance(value, (list, tuple)) else [sympy.sympify(value)]
    return values * count if len(values) == 1 else values


class Products:
    """Mixed into Lowering."""

    def inner_product(self, node, name, shape, extent, a, b, at_a, at_b, finish=None):
        """sum over k of a[at_a(i, k)] * b[at_b(i, k)]"""
        self.products = True
        kind = "int" if a.kind != "real" and b.kind != "real" else "real"
        weights = self.probabilities(a)

        def step(body, accumulator, indices, variables):
            body.cheap(a if weights is None else weights[0])
            body.cheap(b)
            left = at_a(indices, variables[0])
            if weights is not None:
                e, total, place, dtype = weights
                inside = place(left)
                text = body.value(e, inside[0])
                text = f"may_round_to<{self.format(dtype)}>({text}, {body.value(total, inside[1])})"
                if self.strict:
                    text = f"round_to<{self.format(dtype)}>({body.value(e, inside[0])} / {body.value(total, inside[1])})"
            else:
                text = self.operand(a, cast_text(body.value(a, left), a.kind, kind))
            other = self.operand(b, cast_text(body.value(b, at_b(indices, variables[0])), b.kind, kind))
            body.line(f"{accumulator} += {text} * {other};")

        def done(body, accumulator, indices):
            if weights is not None and not self.strict:
                inside = weights[2](at_a(indices, sympy.Integer(0)))
                accumulator = body.let(value, f"{accumulator} / {body.value(weights[1], inside[1])}")
            return finish(body, accumulator, indices) if finish else accumulator

        value = Reduction(name, shape, kind, [("k", extent)], "0", step, [a, b], node, done, heavy=True)
        return value

    def operand(self, value, text):
        """What tensor cores multiply is no wider than T: where an f32 function is asked for at 16 bits, computed
        operands may be rounded."""
        if self.bound == "f32" and self.variable and value.kind == "real" and not is_exact(value):
            return f"may_round_to<T>({text})"
        return text

    def probabilities(self, a):
        """(exponentials, sums, place, dtype) where `a` is a softmax that was cast to 16 bits: flash kernels
        round what they multiply before it is normalised."""
        maps, seen, dtype = [], a, None
        while True:
            if isinstance(seen, View):
                maps.append(seen.function)
                seen = seen.base
            elif getattr(seen, "is_cast", False):
                dtype = seen.node.dtype
                seen = seen.parts[0]
            else:
                break
        found = getattr(seen, "softmax", None)
        if found is None:
            return None
        if dtype is None:
            dtype = seen.node.dtype
        if dtype not in ("bf16", "f16") and not (dtype == self.bound and self.variable):
            return None
        e, total, dim = found

        def place(indices):
            for function in maps:
                indices = function(indices)
            return indices, [v for d, v in enumerate(indices) if d != dim]

        # The sum's place must not hang on what is summed over, which is the last axis of a.
        probe = [index.variable(f"probe{d}", e_) for d, e_ in enumerate(a.shape)]
        last = probe[-1]
        if any(last in sympy.sympify(i).free_symbols for i in place(probe)[1]):
            return None
        return e, total, place, dtype

    def lower_mm(self, node, row):
        return self.finished(node, self.product(node, self.value(node.args[0]), self.value(node.args[1])))

    def product(self, node, a, b, finish=None):
        name = node.name
        if len(a.shape) == 1:  # dot
            return self.inner_product(node, name, [], a.shape[0], a, b, lambda i, k: [k], lambda i, k: [k], finish)
        if len(b.shape) == 1:  # mv
            return self.inner_product(node, name, [a.shape[0]], a.shape[1], a, b, lambda i, k: [i[0], k], lambda i, k: [k], finish)
        shape = [*a.shape[:-1], b.shape[-1]]
        return self.inner_product(
            node, name, shape, a.shape[-1], a, b, lambda i, k: [*i[:-1], k], lambda i, k: [*i[:-2], k, i[-1]], finish
        )

    def lower_addmm(self, node, row):
        bias, a, b = (self.value(x) for x in node.args[:3])
        alpha, beta = node.kwargs.get("alpha", 1), node.kwargs.get("beta", 1)

        def finish(body, accumulator, indices):
            scaled = accumulator if alpha == 1 else f"{real_text(alpha)} * {accumulator}"
            if beta == 0:
                return scaled
            more = body.value(bias, broadcast(bias, indices, node.shape))
            return f"{scaled} + {more if beta == 1 else real_text(beta) + ' * ' + more}"

        return self.finished(node, self.product(node, a, b, finish))

    # --- windows
    def lower_convolution(self, node, row):
        x, weight = self.value(node.args[0]), self.value(node.args[1])
        bias = None if node.args[2] is None else self.value(node.args[2])
        spatial = len(x.shape) - 2
        stride, padding, dilation = (spread(node.args[i], spatial) for i in (3, 4, 5))
        transposed, groups = bool(node.args[6]), sympy.sympify(node.args[8])
        value = self.window_sum(node, node.name, node.shape, x, weight, bias, stride, padding, dilation, transposed, groups)
        return self.finished(node, value)

    def window_sum(self, node, name, shape, x, weight, bias, stride, padding, dilation, transposed, groups):
        self.products = True
        spatial = len(x.shape) - 2
        window = weight.shape[2:]
        inputs = index.floordiv(x.shape[1], groups)  # channels of a group
        outputs = index.floordiv(shape[1], groups)
        loops = [("c", inputs)] + list(zip("uvw", window))

        def step(body, accumulator, indices, variables):
            body.cheap(x)
            body.cheap(weight)
            n, channel, place = indices[0], indices[1], indices[2:]
            c, offsets = variables[0], variables[1:]
            group = index.floordiv(channel, outputs) if groups != 1 else sympy.Integer(0)
            tests, at = [], []
            for o, k, s, p, d, extent in zip(place, offsets, stride, padding, dilation, x.shape[2:]):
                if transposed:
                    spot = o + p - k * d
                    tests.append((sympy.Integer(-1), spot))
                    if s != 1:
                        tests.append((index.Mod(sympy.expand(spot), s), sympy.Integer(1)))
                        tests.append((spot, extent * s))
                        spot = index.FloorDiv(sympy.expand(spot), s)
                    else:
                        tests.append((spot, extent))
                else:
                    spot = o * s - p + k * d
                    tests += [(sympy.Integer(-1), spot), (spot, extent)]
                at.append(spot)
            tests = [t for t in tests if not index.below_or_less(*t)]
            channels = group * inputs + c
            with body.branch() as scope:
                left = body.value(x, [n, channels, *at])
                if transposed:
                    right = body.value(weight, [channels, index.mod(channel, outputs) if groups != 1 else channel, *offsets])
                else:
                    right = body.value(weight, [channel, c, *offsets])
                body.line(f"{accumulator} += {left} * {right};")
            guarded(body, tests, scope.lines)

        def finish(body, accumulator, indices):
            if bias is None:
                return accumulator
            return f"{accumulator} + {body.value(bias, [indices[1]])}"

        return Reduction(name, shape, "real", loops, "0", step, [x, weight], node, finish, heavy=True)

    def lower_convolution_backward(self, node, row):
        grad, x, weight = (self.value(a) for a in node.args[:3])
        spatial = len(x.shape) - 2
        stride, padding, dilation = (spread(node.args[i], spatial) for i in (4, 5, 6))
        if bool(node.args[7]) or sympy.sympify(node.args[9]) != 1:
            raise Refused("the gradient of a grouped or transposed convolution", "write the gradient that is needed", node)
        self.products = True
        window = weight.shape[2:]
        metas = node.meta

        def grad_input():
            swapped = View(weight, [weight.shape[0], weight.shape[1], *window], lambda i: i)
            return self.window_sum(
                node, node.name + "_input", x.shape, grad, swapped, None, stride, padding, dilation, True, sympy.Integer(1)
            )

        def grad_weight():
            loops = [("b", grad.shape[0])] + list(zip("pqr", grad.shape[2:]))

            def step(body, accumulator, indices, variables):
                body.cheap(x)
                body.cheap(grad)
                o, c, offsets = indices[0], indices[1], indices[2:]
                b, place = variables[0], variables[1:]
                at, tests = [], []
                for v, k, s, p, d, extent in zip(place, offsets, stride, padding, dilation, x.shape[2:]):
                    spot = v * s - p + k * d
                    tests += [(sympy.Integer(-1), spot), (spot, extent)]
                    at.append(spot)
                tests = [t for t in tests if not index.below_or_less(*t)]
                with body.branch() as scope:
                    body.line(f"{accumulator} += {body.value(grad, [b, o, *place])} * {body.value(x, [b, c, *at])};")
                guarded(body, tests, scope.lines)

            return Reduction(node.name + "_weight", weight.shape, "real", loops, "0", step, [grad, x], node, heavy=True)

        def grad_bias():
            dims = [0, *range(2, 2 + spatial)]
            return self.sum_of(node, grad, dims, node.name + "_bias")

        made = [grad_input, grad_weight, grad_bias]
        wanted = node.args[10]
        results = []
        for number, (make, want) in enumerate(zip(made, wanted)):
            if not want:
                results.append(None)
                continue
            value = make()
            results.append(self.finished(node, value, dtype=metas[number].dtype) if self.boundary(metas[number].dtype) else value)
        return results

    def pooled(self, node, x, window, stride, padding, dilation, start, update, name, kind="real", finish=None):
        spatial = len(window)
        lead = len(x.shape) - spatial

        def step(body, accumulator, indices, variables):
            body.cheap(x)
            at, tests = [], []
            for o, k, s, p, d, extent in zip(indices[lead:], variables, stride, padding, dilation, x.shape[lead:]):
                spot = o * s - p + k * d
                tests += [(sympy.Integer(-1), spot), (spot, extent)]
                at.append(spot)
            tests = [t for t in tests if not index.below_or_less(*t)]
            with body.branch() as scope:
                update(body, accumulator, body.value(x, [*indices[:lead], *at]), at)
            guarded(body, tests, scope.lines)

        shape = node.meta[0].shape if isinstance(node.meta, list) else node.shape
        return Reduction(name, shape, kind, list(zip("uvw", window)), start, step, [x], node, finish, heavy=True)

    def lower_max_pool(self, node, row):
        x = self.value(node.args[0])
        spatial = 2 if "2d" in node.target else 3
        window = spread(node.args[1], spatial)
        stride = spread(_get(node.args, 2, []) or node.args[1], spatial)
        padding = spread(_get(node.args, 3, 0), spatial)
        dilation = spread(_get(node.args, 4, 1), spatial)
        def update(body, accumulator, text, at):
            body.line(f"{accumulator} = max({accumulator}, {text});")

        value = self.pooled(node, x, window, stride, padding, dilation, "Real(-assay::infinity())", update, node.name)
        value.exact = is_exact(x)

        def indices():
            """Where the first largest element of each window lies, as a number within its channel."""
            self.must_be_exact(node, x)
            extents, best = x.shape[len(x.shape) - spatial :], {}

            def compare(body, accumulator, text, at):
                with body.block(f"if ({accumulator} < 0 || greater({text}, {best[id(body)]})) {{", guard=True):
                    body.line(f"{best[id(body)]} = {text};")
                    body.line(f"{accumulator} = {body.code(index.flatten(at, extents))};")

            found = self.pooled(node, x, window, stride, padding, dilation, "-1", compare, node.name + "_index", kind="int")
            plain = found.emit

            def emit(body, where):
                best[id(body)] = body.fresh(node.name + "_best")
                body.claim(found, where)
                body.line(f"Real {best[id(body)]} = 0;")
                return plain(body, where)

            found.emit = emit
            found.exact = True
            return found

        return [value, indices]

    def lower_max_pool_backward(self, node, row):
        grad, x, chosen = (self.value(node.args[i]) for i in (0, 1, 7))
        lead = len(x.shape) - 2
        window = spread(node.args[2], 2)
        stride = spread(node.args[3] or node.args[2], 2)
        padding, dilation = spread(node.args[4], 2), spread(node.args[5], 2)

        def step(body, accumulator, indices, variables):
            body.cheap(grad)
            tests, at = self.windows_of(indices[lead:], variables, stride, padding, dilation, grad.shape[lead:])
            with body.branch() as scope:
                where = [*indices[:lead], *at]
                mine = body.code(index.flatten(indices[lead:], x.shape[lead:]))
                text = body.value(chosen, where)
                body.line(f"if ({text} == {mine}) {accumulator} += {body.value(grad, where)};")
            guarded(body, tests, scope.lines)

        value = Reduction(node.name, x.shape, "real", list(zip("uv", window)), "0", step, [grad, chosen], node, heavy=True)
        return self.finished(node, value)

    def windows_of(self, places, offsets, stride, padding, dilation, extents):
        """The window in which an element lies at an offset: (what must hold, its place)."""
        tests, at = [], []
        for i, k, s, p, d, extent in zip(places, offsets, stride, padding, dilation, extents):
            spot = i + p - k * d
            tests.append((sympy.Integer(-1), spot))
            if s != 1:
                tests.append((index.Mod(sympy.expand(spot), s), sympy.Integer(1)))
                tests.append((spot, extent * s))
                spot = index.FloorDiv(sympy.expand(spot), s)
            else:
                tests.append((spot, extent))
            at.append(spot)
        return [t for t in tests if not index.below_or_less(*t)], at

    def lower_cdist(self, node, row):
        a, b = self.value(node.args[0]), self.value(node.args[1])
        order = float(node.args[2])
        shape = [*node.shape, a.shape[-1]]
        lead = len(shape) - 3
        left = View(a, shape, lambda i: [*lead_of(a, i, lead), i[-3], i[-1]])
        right = View(b, shape, lambda i: [*lead_of(b, i, lead), i[-2], i[-1]])
        name = node.name
        apart = Pointwise(name + "_apart", shape, "real", [left, right], lambda p, q: f"{p} - {q}", node)
        dims = [len(shape) - 1]
        if order == 2:
            total = self.reduce(node, apart, dims, "0", lambda s, t: f"{s} += {t} * {t};", name=name + "_squares", heavy=True)
            return self.point(node, [total], lambda s: f"sqrt({s})", weight=4)
        if order == 1:
            return self.finished(node, self.reduce(node, apart, dims, "0", lambda s, t: f"{s} += abs({t});", heavy=True))
        if order == float("inf"):
            return self.finished(node, self.reduce(node, apart, dims, "0", lambda s, t: f"{s} = max({s}, abs({t}));", heavy=True))
        if order == 0:
            count = lambda s, t: f"{s} += select(equal({t}, Real(0)), Real(0), Real(1));"  # noqa: E731
            return self.finished(node, self.reduce(node, apart, dims, "0", count, heavy=True))
        power = real_text(order)
        total = self.reduce(node, apart, dims, "0", lambda s, t: f"{s} += pow(abs({t}), {power});", name=name + "_powers", heavy=True)
        return self.point(node, [total], lambda s: f"pow({s}, {real_text(1 / order)})", weight=12)

    def lower_avg_pool(self, node, row):
        x = self.value(node.args[0])
        spatial = int(node.target.split("avg_pool")[1][0])
        window = spread(node.args[1], spatial)
        stride = spread(_get(node.args, 2, []) or node.args[1], spatial)
        padding = spread(_get(node.args, 3, 0), spatial)
        ceiling = bool(_get(node.args, 4, False))
        include, divisor = bool(_get(node.args, 5, True)), _get(node.args, 6, None)
        lead = len(x.shape) - spatial

        def update(body, accumulator, text, at):
            body.line(f"{accumulator} += {text};")

        def count(indices):
            if divisor is not None:
                return sympy.sympify(divisor)
            if not ceiling and (include or all(p == 0 for p in padding)):
                return index.product(window)
            return None

        def finish(body, accumulator, indices):
            known = count(indices)
            if known is not None:
                return f"{accumulator} / Real(int64({body.code(known)}))"
            texts = []
            for o, k, s, p, extent in zip(indices[lead:], window, stride, padding, x.shape[lead:]):
                low = body.code(o * s - p)
                end = f"smaller_of({low} + {body.code(k, 2)}, {body.code(extent + p)})"
                if include:
                    texts.append(f"({end} - ({low}))")
                else:
                    texts.append(f"(smaller_of({end}, {body.code(extent)}) - larger_of({low}, 0))")
            return f"{accumulator} / Real(int64({' * '.join(texts)}))"

        value = self.pooled(node, x, window, stride, padding, [sympy.Integer(1)] * spatial, "0", update, node.name, finish=finish)
        return self.finished(node, value)

    def lower_adaptive_pool(self, node, row):
        x = self.value(node.args[0])
        spatial = int(node.target.split("avg_pool")[1][0])
        lead = len(x.shape) - spatial
        shape = node.shape
        value = None

        def step(body, accumulator, indices, variables):
            at, tests = [], []
            for o, k, n, m in zip(indices[lead:], variables, x.shape[lead:], shape[lead:]):
                start = index.floordiv(o * n, m)
                end = index.floordiv((o + 1) * n + m - 1, m)
                at.append(start + k)
                tests.append((start + k, end))
            tests = [t for t in tests if not index.below_or_less(*t)]
            with body.branch() as scope:
                body.line(f"{accumulator} += {body.value(x, [*indices[:lead], *at])};")
            guarded(body, tests, scope.lines)

        def finish(body, accumulator, indices):
            texts = []
            for o, n, m in zip(indices[lead:], x.shape[lead:], shape[lead:]):
                texts.append(body.code(index.floordiv((o + 1) * n + m - 1, m) - index.floordiv(o * n, m), 3))
            return f"{accumulator} / Real(int64({' * '.join(texts)}))"

        # No window is longer than ceil(n / m) + 1.
        loops = [
            (h, index.floordiv(n + m - 1, m) + (0 if n == m or m == 1 else 1)) for h, n, m in zip("uvw", x.shape[lead:], shape[lead:])
        ]
        value = Reduction(node.name, shape, "real", loops, "0", step, [x], node, finish, heavy=True)
        return self.finished(node, value)

    def lower_adaptive_pool_backward(self, node, row):
        grad, x = self.value(node.args[0]), self.value(node.args[1])
        lead = len(x.shape) - 2
        outs, ins = grad.shape[lead:], x.shape[lead:]
        start = lambda o, n, m: index.floordiv(o * n, m)  # noqa: E731
        end = lambda o, n, m: index.floordiv((o + 1) * n + m - 1, m)  # noqa: E731

        def step(body, accumulator, indices, variables):
            tests, counts = [], []
            for i, o, n, m in zip(indices[lead:], variables, ins, outs):
                low, high = start(o, n, m), end(o, n, m)
                tests += [(low, i + 1), (i, high)]
                counts.append(body.code(high - low, 3))
            with body.branch() as scope:
                text = body.value(grad, [*indices[:lead], *variables])
                body.line(f"{accumulator} += {text} / Real(int64({' * '.join(counts)}));")
            guarded(body, [t for t in tests if not index.below_or_less(*t)], scope.lines)

        value = Reduction(node.name, x.shape, "real", list(zip("uv", outs)), "0", step, [grad], node, heavy=True)
        return self.finished(node, value)

    def lower_upsample(self, node, row):
        x = self.value(node.args[0])
        n, c, height, width = x.shape
        _, _, rows, columns = node.shape
        scales = None
        if "bilinear" in node.target:
            corners, scales = bool(node.args[2]), _get(node.args, 3, None)
        elif _get(node.args, 2, None) is not None:
            scales = node.args[2]

        def ratio(number, source, target):
            if scales is not None:
                return f"(Real(1) / {real_text(scales[number])})"
            return f"(Real(int64({index.code(source)})) / Real(int64({index.code(target)})))"

        def mentions(body):
            for e in (height, width, rows, columns):
                body.mention(e)

        name = node.name
        if "nearest" in node.target:
            value = View(
                x, node.shape, lambda i: [i[0], i[1], index.floordiv(i[2] * height, rows), index.floordiv(i[3] * width, columns)], name
            )
            return value

        class Bilinear(Pointwise):
            def emit(inner, body, indices):  # noqa: N805
                mentions(body)
                spots = []
                for d, source, target in ((0, height, rows), (1, width, columns)):
                    at = body.code(indices[2 + d])
                    if corners:
                        position = f"Real(int64({at})) * (Real(int64({body.code(source - 1)})) / Real(int64(larger_of({body.code(target - 1)}, 1))))"
                    else:
                        position = f"max((Real(int64({at})) + Real(0.5)) * {ratio(d, source, target)} - Real(0.5), Real(0))"
                    spot = body.fresh(f"{name}_{'yx'[d]}")
                    body.line(f"const Real {spot} = {position};")
                    low, high = body.fresh(spot + "_low"), body.fresh(spot + "_high")
                    body.line(f"const int64 {low} = smaller_of(whole(trunc({spot})), {body.code(source - 1)});")
                    body.line(f"const int64 {high} = smaller_of({low} + 1, {body.code(source - 1)});")
                    rest = body.fresh(spot + "_rest")
                    body.line(f"const Real {rest} = {spot} - Real({low});")
                    lows, highs = index.variable(low, source), index.variable(high, source)
                    body.scopes[-1].symbols.update((lows, highs))
                    spots.append((lows, highs, rest))
                (y0, y1, fy), (x0, x1, fx) = spots
                lead = indices[:2]
                at = [body.value(x, [*lead, p, q]) for p in (y0, y1) for q in (x0, x1)]
                one = "Real(1)"
                text = (
                    f"({one} - {fy}) * (({one} - {fx}) * {at[0]} + {fx} * {at[1]}) + {fy} * (({one} - {fx}) * {at[2]} + {fx} * {at[3]})"
                )
                if inner.boundary and body.unrounded is not inner:
                    text = inner.boundary(text)
                return body.let(inner, text)

        return Bilinear(name, node.shape, "real", [x], None, node, weight=20, boundary=self.boundary(node.dtype))

    # --- attention
    def lower_attention(self, node, row):
        q, k, v = (self.value(a) for a in node.args[:3])
        mask = _get(node.args, 3, None)
        dropout = _get(node.args, 4, 0.0)
        causal = bool(_get(node.args, 5, node.kwargs.get("is_causal", False)))
        if dropout:
            raise Refused("attention with dropout draws random numbers", "pass dropout_p=0.0", node)
        scale = node.kwargs.get("scale", _get(node.args, 6, None))
        lead = list(node.shape[:-2])
        queries, keys, dim = q.shape[-2], k.shape[-2], q.shape[-1]
        name = node.name.replace("scaled_dot_product_attention", "attention")
        rank = len(node.shape)
        if not index.same(keys, v.shape[-2]):
            self.constraints.append(f"{index.code(keys)} == {index.code(v.shape[-2])}")
        factor = real_text(scale) if scale is not None else f"rsqrt(Real(int64({index.code(dim)})))"

        def of(tensor, indices, *rest):
            """Leading indices of q's heads in k's and v's: broadcast, or grouped."""
            front = []
            for d, extent in enumerate(tensor.shape[:-2]):
                i = indices[d]
                if extent == 1:
                    i = sympy.Integer(0)
                elif not index.same(extent, lead[d]):
                    i = index.floordiv(i, index.floordiv(lead[d], extent))
                front.append(i)
            return [*front, *rest]

        def finish(body, accumulator, indices):
            body.mention(dim)
            return f"{accumulator} * {factor}"

        scores = self.inner_product(
            node,
            name + "_scores",
            [*lead, queries, keys],
            dim,
            q,
            k,
            lambda i, c: of(q, i, i[-2], c),
            lambda i, c: of(k, i, i[-1], c),
            finish,
        )
        if mask is not None:
            m = self.value(mask)
            full = [*lead, queries, keys]
            if m.kind == "bool":
                text = lambda s, b: f"select({b}, {s}, Real(-assay::infinity()))"  # noqa: E731
            else:
                text = lambda s, b: f"{s} + {b}"  # noqa: E731
            placed = View(m, full, lambda i: broadcast(m, i, full))
            scores = Pointwise(name + "_masked", full, "real", [scores, placed], text, node)
        if causal:
            full = [*lead, queries, keys]
            scores = Choice(
                name + "_causal",
                full,
                "real",
                [
                    (lambda i: [(i[-1], i[-2] + 1)], scores, lambda i: i),
                    (lambda i: [], Literal(float("-inf"), "real"), lambda i: []),
                ],
                node,
            )
        _, _, weights, total = self.softmax_parts(node, scores, rank - 1)
        kept = unsqueezed(total, [rank - 1], rank)
        normal = self.point(node, [weights, kept], lambda e, s: f"{e} / {s}", weight=2, shape=scores.shape, name=name + "_p")
        normal.softmax = (weights, total, rank - 1)
        value = self.inner_product(
            node,
            name,
            node.shape,
            keys,
            normal,
            v,
            lambda i, c: [*i[:-1], c],
            lambda i, c: of(v, i, c, i[-1]),
        )
        return self.finished(node, value)

    # --- scans and orders
    def lower_cumsum(self, node, row):
        x = self.value(node.args[0])
        if not x.shape:
            return x
        dim = int(node.args[1]) % len(x.shape)
        product = "cumprod" in node.target
        kind = "real" if x.kind == "real" else "int"
        source = x.kind
        threads = [e for d, e in enumerate(x.shape) if d != dim]

        def write(body, indices, store):
            total = body.fresh(node.name + "_so_far")
            body.line(f"{'Real' if kind == 'real' else 'int64'} {total} = {1 if product else 0};")
            with body.loop("k", x.shape[dim]) as k:
                at = [*indices[:dim], k, *indices[dim:]]
                term = cast_text(body.value(x, at), source, kind)
                body.line(f"{total} = {total} {'*' if product else '+'} {term};")
                store(at, total)

        return Kernel(node.name, x.shape, kind, threads, write, [x], node, self.boundary(node.dtype) if kind == "real" else None)

    def lower_cummax(self, node, row):
        x = self.value(node.args[0])
        dim = int(node.args[1]) % len(x.shape)
        largest = "cummax" in node.target
        def make(which):
            def write(body, indices, store):
                best, place = body.fresh(node.name + "_best"), body.fresh(node.name + "_place")
                ctype = "Real" if x.kind == "real" else "int64"
                body.line(f"{ctype} {best} = 0;")
                body.line(f"int64 {place} = 0;")
                with body.loop("k", x.shape[dim]) as k:
                    at = [*indices[:dim], k, *indices[dim:]]
                    text = body.value(x, at)
                    with body.block(f"if ({body.code(k)} == 0 || {'greater' if largest else 'lesser'}_or_equal({text}, {best})) {{"):
                        body.line(f"{best} = {text};")
                        body.line(f"{place} = {body.code(k)};")
                    store(at, best if which == 0 else place)

            threads = [e for d, e in enumerate(x.shape) if d != dim]
            kernel = Kernel(node.name + ("" if which == 0 else "_index"), x.shape, x.kind if which == 0 else "int", threads, write, [x], node)
            kernel.exact = is_exact(x)
            return kernel

        def indices_of():
            self.must_be_exact(node, x)
            return make(1)

        return [make(0), indices_of]

    def lower_sort(self, node, row):
        """The rank of an element is how many come before it; ties keep their order."""
        x = self.value(node.args[0])
        topk = "topk" in node.target
        if topk:
            count, dim = node.args[1], _get(node.args, 2, -1)
            descending = bool(_get(node.args, 3, True))
        else:
            count = None
            stable = node.target.endswith("stable")
            dim = node.kwargs.get("dim", _get(node.args, 1 if not stable else 2, -1))
            descending = bool(node.kwargs.get("descending", _get(node.args, 2 if not stable else 3, False)))
        dim = int(dim) % len(x.shape)
        shape = list(x.shape)
        if count is not None:
            shape[dim] = sympy.sympify(count)
            self.within(shape[dim] - 1, x.shape[dim])
        threads = [e for d, e in enumerate(x.shape) if d != dim]
        before = "greater" if descending else "lesser"
        ordered = not topk or bool(_get(node.args, 4, True))
        choice = self.choice(node, x, dim, shape, descending, ordered)
        if choice is not None:
            picked = Gather(
                node.name,
                shape,
                x,
                [(choice, lambda i: i)],
                [x.shape[dim]],
                lambda i, s: [*i[:dim], s[0], *i[dim + 1 :]],
                node,
            )
            return [picked, choice]

        def make(which):
            def write(body, indices, store):
                with body.loop("k", x.shape[dim]) as k:
                    at = [*indices[:dim], k, *indices[dim:]]
                    mine = body.value(x, at)
                    rank = body.fresh(node.name + "_rank")
                    body.line(f"int64 {rank} = 0;")
                    with body.loop("l", x.shape[dim]) as other:
                        text = body.value(x, [*indices[:dim], other, *indices[dim:]])
                        mine_at, other_at = body.code(k), body.code(other)
                        body.line(
                            f"if ({before}({text}, {mine}) || (!{before}({mine}, {text}) && {other_at} < {mine_at})) ++{rank};"
                        )
                    symbol = index.variable(rank, x.shape[dim])
                    spot = [*indices[:dim], symbol, *indices[dim:]]
                    if count is None:
                        store(spot, mine if which == 0 else body.code(k))
                    else:
                        with body.block(f"if ({rank} < {body.code(shape[dim])}) {{"):
                            store(spot, mine if which == 0 else body.code(k))

            name = node.name + ("" if which == 0 else "_index")
            kernel = Kernel(name, shape, x.kind if which == 0 else "int", threads, write, [x], node)
            kernel.exact = is_exact(x)
            return kernel

        def indices_of():
            self.must_be_exact(node, x)
            return make(1)

        return [make(0), indices_of]


def lead_of(value, indices, lead):
    """Indices of the leading axes of a value that is broadcast along them."""
    own = value.shape[:-2]
    skip = lead - len(own)
    return [sympy.Integer(0) if extent == 1 else indices[skip + d] for d, extent in enumerate(own)]


def guarded(body, tests, lines):
    if not tests:
        body.lines(line[2:] for line in lines)
        return
    body.line("if (" + " && ".join(body.test(a, b) for a, b in tests) + ") {")
    body.lines(lines)
    body.line("}")

