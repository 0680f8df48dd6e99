"""From values to kernels: what is computed where.

Every output is a kernel, and so is every value that would otherwise be computed more than once: its
results go through a workspace of Reals, which keeps sums open and bounds whole. A kernel has a thread
for each element, or one for each row where a reduction serves all of a row (softmax, norms): then the
row's reductions stand before the loop that writes the row. Whatever is not that is stored.

Emission decides by trying: a reduction that is asked for where it cannot stand raises `Store`, and all
kernels are written again with one more workspace.
"""

import contextlib
import re

import sympy

from . import index
from .graph import Refused
from .values import CTYPE, View

RESERVED = set(
    """alignas alignof and asm auto bool break case catch char class const constexpr continue default delete do double
    else enum explicit extern false float for friend goto if inline int long mutable namespace new not operator or
    private protected public register return short signed sizeof static struct switch template this throw true try
    typedef typename union unsigned using virtual void volatile while xor T U V Real Out Decision int64 thread
    acos acosh asin asinh atan2 atanh exp exp2 expm1 log log2 log10 log1p sqrt rsqrt tanh erf erfinv abs min max fma sin cos tan atan pow sigmoid floor
    ceil round trunc sign select select_less less less_equal equal holds whole average affine scaled round_to
    may_rescale may_round_to thread_index settled softplus turn_cos turn_sin greater lesser
    greater_or_equal lesser_or_equal wrapped larger_of smaller_of floor_div floor_mod sum_of assay main INFINITY NAN isnan isinf gamma j0 j1 jn y0
    y1 yn signbit fmod remainder threadIdx blockIdx blockDim gridDim warpSize""".split()
)


PLAIN_SCALARS = {"f32": "float", "i32": "int", "i64": "int64"}


def identifier(text, taken=()):
    name = re.sub(r"\W", "_", text).strip("_") or "value"
    if name[0].isdigit():
        name = "v_" + name
    name = name[:48]
    if name in RESERVED:
        name += "_value"
    base, number = name, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    return name


class Store(Exception):
    """This value needs a kernel and a workspace of its own."""

    def __init__(self, value):
        super().__init__(value.name)
        self.value = value


class Scope:
    def __init__(self, depth, guard=False):
        self.lines, self.symbols, self.memo, self.depth, self.guard = [], set(), {}, depth, guard
        self.source = None


class Body:
    """The text of one kernel as it is written."""

    REPEATS = 6

    def __init__(self, planner, root):
        self.planner, self.root = planner, root
        self.scopes = [Scope(1)]
        self.taken = set(planner.names)
        self.inputs, self.workspaces, self.axes = {}, {}, set()
        self.threads = []  # loop variables that are threads
        self.row = []  # those of the loops over a thread's row
        self.first = None  # what indexes the first dimension of what the kernel writes
        self.reads = []  # (name, index of its first dimension) of every input and workspace that is read
        self.trial, self.partial = False, []
        self.unrounded = None
        self.counts = {}
        self.written = []

    # --- names and lines
    def fresh(self, text):
        name = identifier(text, self.taken)
        self.taken.add(name)
        return name

    def line(self, text):
        scope = self.scopes[-1]
        scope.lines.append("  " * scope.depth + text)

    def mention(self, expression):
        for s in sympy.sympify(expression).free_symbols:
            if s.is_positive and not index.is_variable(s):
                self.axes.add(s.name)

    def lines(self, lines):
        self.scopes[-1].lines += lines

    def code(self, expression, parent=0):
        self.mention(expression)
        return index.code(expression, parent)

    def address(self, indices, extents):
        for e in [*indices, *extents[1:]]:
            self.mention(e)
        return index.address(indices, extents)

    def test(self, a, b):
        self.mention(a)
        self.mention(b)
        return index.test(a, b)

    def _comment(self, value):
        node = value.node
        if node is None or not node.source:
            return
        said = next((s.source for s in reversed(self.scopes) if s.source), None)
        if said != (node.line, node.source):
            self.scopes[-1].source = (node.line, node.source)
            self.line(f"// {node.line}: {printable(node.source)}")

    def let(self, value, text):
        name = self.fresh(value.name)
        self._comment(value)
        self.line(f"const {CTYPE[value.kind]} {name} = {text};")
        return name

    def declare(self, value, start):
        name = self.fresh(value.name)
        self._comment(value)
        self.line(f"{CTYPE[value.kind]} {name} = {start};")
        return name

    def let_index(self, part, text, extent):
        """An integer that a tensor holds, as a symbol for index arithmetic."""
        if part.kind == "real":
            text = f"whole({text})"
        name = self.fresh(part.name + "_at")
        self.line(f"const int64 {name} = wrapped({text}, {self.code(extent)});")
        symbol = index.variable(name, extent)
        self.scopes[-1].symbols.add(symbol)
        return symbol

    # --- structure
    @contextlib.contextmanager
    def block(self, head, guard=False, symbols=()):
        outer = self.scopes[-1]
        inner = Scope(outer.depth + 1, guard)
        inner.symbols.update(symbols)
        self.scopes.append(inner)
        yield
        assert self.scopes.pop() is inner
        self.line(head)
        outer.lines += inner.lines
        self.line("}")

    @contextlib.contextmanager
    def branch(self):
        """A scope whose lines the caller writes, between braces of its own, once it has all of them."""
        inner = Scope(self.scopes[-1].depth + 1, guard=True)
        self.scopes.append(inner)
        yield inner
        assert self.scopes.pop() is inner

    @contextlib.contextmanager
    def loop(self, hint, extent):
        if extent == 1:
            yield sympy.Integer(0)
            return
        name = self.fresh(hint)
        symbol = index.variable(name, extent)
        with self.block(f"for (int64 {name} = 0; {name} < {self.code(extent)}; ++{name}) {{", symbols=[symbol]):
            yield symbol

    def nest(self, loops, innermost):
        def descend(rest, variables):
            if not rest:
                innermost(variables)
                return
            with self.loop(*rest[0]) as v:
                descend(rest[1:], variables + [v])

        descend(list(loops), [])

    # --- values
    def _home(self, value, indices):
        """The outermost scope in which the value can be computed at these indices."""
        symbols = set()
        for i in indices:
            symbols |= sympy.sympify(i).free_symbols
        safe = all(index.below(i, e) for i, e in zip(indices, value.shape))
        depth = len(self.scopes) - 1
        while depth > 0:
            scope = self.scopes[depth]
            if scope.symbols & symbols or (scope.guard and not safe):
                break
            depth -= 1
        return depth

    def value(self, value, indices):
        """C++ for an element of a value; what it takes is written where it is computed least often."""
        indices = [sympy.expand(i) for i in indices]
        if value is not self.root and (value in self.planner.stored or value.always_stored):
            return self.load(value, indices)
        key = (id(value), tuple(indices))
        for scope in reversed(self.scopes):
            if key in scope.memo:
                return scope.memo[key]
        self.counts[value] = self.counts.get(value, 0) + 1
        if self.counts[value] > self.REPEATS and 2 < value.cost and value.kind != "bool" and value is not self.root:
            raise Store(value)
        depth = self._home(value, indices)
        inner, self.scopes = self.scopes[depth + 1 :], self.scopes[: depth + 1]
        try:
            text = value.emit(self, indices)
            self.scopes[-1].memo[key] = text
        finally:
            self.scopes = self.scopes[: depth + 1] + inner
        return text

    def load(self, value, indices):
        name = self.planner.workspace(value)
        self.workspaces[name] = value
        self.reads.append((name, indices[0] if indices else None))
        text = f"{name}[{self.address(indices, value.shape)}]"
        return f"Decision({text})" if value.kind == "bool" else text

    def use_input(self, value, indices):
        self.inputs[value.name] = value
        self.reads.append((value.name, indices[0] if indices else None))

    def cheap(self, value):
        """Products read their operands often: what is more than a load is stored."""
        seen = value
        while hasattr(seen, "base") and not hasattr(seen, "parts"):
            seen = seen.base
        if seen.cost > 2 and seen not in self.planner.stored and not seen.always_stored and seen is not self.root:
            raise Store(seen)

    def claim(self, reduction, indices):
        """May this reduction be computed here? Only where there is a thread for each of its elements."""
        if reduction is self.root and not self.trial:
            return
        used = set()
        for i in indices:
            used |= {s for s in sympy.sympify(i).free_symbols if index.is_variable(s)}
        every = set(self.threads) | set(self.row)
        if used == set(self.threads) and len(self.scopes) == 1 or used == every and len(self.scopes) == 1 + len(self.row):
            self.planner.computed(reduction, self)
            return
        if self.trial:
            self.partial.append(used)
            return
        raise Store(reduction)


def printable(text):
    return "".join(c if 32 <= ord(c) < 127 and c != "\\" else "?" for c in text)[:120]


class Written:
    """A kernel: its text and its place in the launch plan."""

    def __init__(self, entry, text, args, grid, block, target, extent, first, reads):
        self.entry, self.text, self.args, self.grid, self.block = entry, text, args, grid, block
        self.target, self.extent, self.first, self.reads = target, extent, first, reads


class Planner:
    """All kernels of an op."""

    MOST = 400  # workspaces

    def __init__(self, outputs, inputs, axis_names, types):
        self.outputs = outputs  # (name, Value, dtype)
        self.inputs = inputs
        self.types = types  # dtype -> C++ type in the reference
        self.axis_names = list(axis_names)
        self.names = set(self.axis_names) | {v.name for v in inputs} | {n for n, _, _ in outputs} | RESERVED
        self.stored = {}
        self.tables = {}
        self.order = []
        self.homes = {}
        self.dtype_of_output = {n: d for n, _, d in outputs}

    def workspace(self, value):
        if value not in self.stored:
            self.stored[value] = identifier(value.name, self.names)
            self.names.add(self.stored[value])
        if value not in self.order:
            self._write_workspace(value)
        return self.stored[value]

    def table(self, value):
        """The name of a constant tensor's array."""
        if value not in self.tables:
            self.tables[value] = identifier(value.name, self.names)
            self.names.add(self.tables[value])
        return self.tables[value]

    def computed(self, reduction, body):
        if not reduction.heavy:
            return
        home = self.homes.setdefault(reduction, body.root)
        if home is not body.root:
            raise Store(reduction)

    def write(self):
        """The kernels in the order of their launches, and the workspaces (name, kind, shape)."""
        for _ in range(self.MOST):
            self.order, self.homes, self.kernels = [], {}, []
            self.in_progress = []
            try:
                for name, value, dtype in self.outputs:
                    self._write_output(name, value, dtype)
                workspaces = [(self.stored[v], v.kind, v.shape) for v in self.order]
                return self.kernels, workspaces
            except Store as need:
                if need.value in self.stored:
                    raise Refused(f"the value '{need.value.name}' cannot be placed") from None
                self.stored[need.value] = identifier(need.value.name, self.names)
                self.names.add(self.stored[need.value])
        raise Refused("the function takes too many workspaces", "split it into several")

    def _write_workspace(self, value):
        if value in self.in_progress:
            raise Refused(f"the value '{value.name}' depends on itself")
        self.in_progress.append(value)
        name = self.stored[value]

        def store(body, indices, text):
            flat = body.address(indices, value.shape)
            if value.kind == "bool":
                text = f"holds({text})"
            body.line(f"{name}[{flat}] = {text};")

        pointer = {"real": "Real", "int": "int64", "bool": "bool"}[value.kind]
        self._write_kernel(value, name, store, f"{pointer}* {name}", unrounded=False)
        self.order.append(value)
        self.in_progress.pop()

    def _write_output(self, name, value, dtype):
        ctype = self.types[dtype]
        if value in self.stored or value in self.order:
            value = View(value, value.shape, lambda indices: indices, name)

        def store(body, indices, text):
            flat = body.address(indices, value.shape)
            if value.kind == "bool":
                text = f"select({text}, Real(1), Real(0))"
            elif value.kind == "int":
                text = f"Real(int64({text}))"
            body.line(f"{name}[{flat}] = {text};")

        self._write_kernel(value, name, store, f"Out<{ctype}>* {name}", unrounded=dtype != "hidden")

    def _write_kernel(self, root, name, store, parameter, unrounded):
        if root.always_stored:
            body = self._custom(root, store)
        else:
            body = self._rows(root, name, store, unrounded)
        entry = identifier(name + "_kernel", self.names)
        self.names.add(entry)
        args, parameters = [], []
        for v in self.inputs:
            if v.name in body.inputs:
                args.append(v.name)
                parameters.append(f"{PLAIN_SCALARS[v.dtype]} {v.name}" if v.scalar else f"const {self.types[v.dtype]}* {v.name}")
        for workspace, value in body.workspaces.items():
            if workspace == name:
                continue
            pointer = {"real": "Real", "int": "int64", "bool": "bool"}[value.kind]
            args.append(workspace)
            parameters.append(f"const {pointer}* {workspace}")
        args.append(name)
        parameters.append(parameter)
        for axis in self.axis_names:
            if axis in body.axes:
                args.append(axis)
                parameters.append(f"int64 {axis}")
        threads = index.product(body.thread_extents)
        head = f"__global__ void {entry}("
        pad = " " * len(head)
        text, line = "", head
        for i, p in enumerate(parameters):
            piece = p + (", " if i + 1 < len(parameters) else ") {")
            if len(line) + len(piece) > 100 and line.strip():
                text += line.rstrip() + "\n"
                line = pad
            line += piece
        text += line + "\n" + "\n".join(body.scopes[0].lines) + "\n}\n"
        block = 128 if not body.by_row else 32
        grid = f"ceil_div({index.code(threads)}, {block})"
        extent = root.shape[0] if root.shape else None
        self.kernels.append(Written(entry, text, args, [grid], [block], name, extent, body.first, body.reads))
        self.names.discard(entry)

    def _open(self, body, extents, hints):
        """Thread indices: the kernel's first lines."""
        body.thread_extents = extents
        real = [(h, e) for h, e in zip(hints, extents) if e != 1]
        total = index.product(extents)
        if not real:
            body.line("if (thread_index() >= 1) return;")
            return [sympy.Integer(0)] * len(extents)
        if len(real) == 1:
            name = body.fresh(real[0][0])
            body.line(f"const int64 {name} = thread_index();")
            body.line(f"if ({name} >= {body.code(real[0][1])}) return;")
            symbols = {0: index.variable(name, real[0][1])}
        else:
            thread = body.fresh("element")
            body.line(f"const int64 {thread} = thread_index();")
            body.line(f"if ({thread} >= {body.code(total)}) return;")
            symbols = {}
            for position, (hint, extent) in enumerate(real):
                inner = index.product([e for _, e in real[position + 1 :]])
                text = thread if inner == 1 else f"{thread} / {index.code(inner, 4)}"
                body.mention(inner)
                if position > 0:
                    text += f" % {index.code(extent, 4)}"
                    body.mention(extent)
                name = body.fresh(hint)
                body.line(f"const int64 {name} = {text};")
                symbols[position] = index.variable(name, extent)
        result, at = [], 0
        for extent in extents:
            if extent == 1:
                result.append(sympy.Integer(0))
            else:
                result.append(symbols[at])
                at += 1
        body.scopes[-1].symbols.update(symbols.values())
        body.threads = list(symbols.values())
        return result

    def _custom(self, root, store):
        body = Body(self, root)
        body.by_row = True
        indices = self._open(body, root.threads, [f"i{d}" for d in range(len(root.threads))])
        kept = []

        def noted(where, text):
            kept.append(bool(indices) and where[0] == indices[0])
            store(body, where, text)

        root.write(body, indices, noted)
        body.first = indices[0] if kept and all(kept) else None
        return body

    def _rows(self, root, name, store, unrounded):
        rank = len(root.shape)
        trial = self._attempt(root, store, rank, unrounded, trial=True)
        split = None
        for used in trial.partial:
            positions = sorted(trial.positions[s] for s in used if s in trial.positions)
            if len(positions) < len(used):
                continue  # depends on a loop
            wanted = [d for d in range(rank) if root.shape[d] != 1]
            if positions == wanted[: len(positions)] and len(positions) < len(wanted):
                end = positions[-1] + 1 if positions else 0
                split = end if split is None else max(split, end)
        if split is None:
            split = rank
        return self._attempt(root, store, split, unrounded, trial=False)

    def _attempt(self, root, store, split, unrounded, trial):
        body = Body(self, root)
        body.trial = trial
        body.by_row = split < len(root.shape)
        hints = [f"i{d}" for d in range(len(root.shape))] if len(root.shape) > 1 else ["i"]
        indices = self._open(body, root.shape[:split], hints[:split])
        rest = list(zip(hints[split:], root.shape[split:]))
        body.positions = {}

        def write(variables):
            everything = indices + variables
            body.first = everything[0] if everything else None
            body.row = [v for v in variables if sympy.sympify(v).is_Symbol]
            for d, v in enumerate(everything):
                if sympy.sympify(v).is_Symbol:
                    body.positions[v] = d
            if unrounded:
                body.unrounded = innermost(root)
            text = body.value(root, everything)
            store(body, everything, text)

        # Reductions of a row are computed before the loop over it, so the loop's own lines come last.
        body.nest(rest, write)
        return body


def innermost(value):
    """What a view shows: the operator whose rounding the store repeats."""
    while hasattr(value, "base") and hasattr(value, "function") and not hasattr(value, "parts"):
        value = value.base
    return value
