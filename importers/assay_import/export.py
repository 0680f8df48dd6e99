"""torch.export of a problem's function, as plain data.

Every extent is free (Dim.AUTO); parameters and buffers are arguments like all others. What torch's
guards say of the extents becomes constraints. Here torch ends: nothing behind this file imports it.
"""

import re
import traceback

import sympy
import torch

from . import index, recipes, scalars
from .graph import Graph, InputSpec, Node, Refused, Tensor, Untold, renumber, walk

DTYPES = {
    torch.bool: "bool",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.float8_e4m3fn: "f8e4m3",
    torch.float8_e5m2: "f8e5m2",
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.complex64: "c64",
    torch.complex128: "c128",
}
# Kept whole: their own rows have better bounds than what torch would make of them.
KEPT = (
    "aten.scaled_dot_product_attention.default",
    "aten.rms_norm.default",
    "aten.logsumexp.default",
    "aten.silu.default",
    "aten.softplus.default",
    "aten.linalg_vector_norm.default",
    "aten.addcmul.default",
    "aten.addcdiv.default",
    "aten.one_hot.default",
    "aten.tril.default",
    "aten.triu.default",
    "aten.scatter_add.default",
    "aten.index_add.default",
    "aten.hardsigmoid.default",
    "aten.hardswish.default",
    "aten.square.default",
    "aten.lerp.Scalar",
    "aten.lerp.Tensor",
    "aten.complex.default",
    "aten.polar.default",
)


VALUES_CURE = (
    "keep it a tensor: torch.where instead of if, masks instead of sizes; or take the function itself as a weaker "
    "reference, whose honest error is estimated: --value-only"
)


class Flat(torch.nn.Module):
    """The function over a flat list of tensors: arguments, then parameters, then buffers."""

    def __init__(self, problem, names):
        super().__init__()
        self.problem, self.names = problem, names
        # Not a submodule: its parameters come as arguments.
        object.__setattr__(self, "module", problem.function if isinstance(problem.function, torch.nn.Module) else None)

    def forward(self, *tensors):
        given = len(self.problem.tensors)
        arguments = self.problem.assemble(list(tensors[:given]))
        if self.module is None:
            return self.problem.function(*arguments)
        state = dict(zip(self.names, tensors[given:]))
        return torch.func.functional_call(self.module, state, tuple(arguments))


def state_of(problem):
    """Parameters and buffers: (name, tensor, origin)."""
    module = problem.function
    if not isinstance(module, torch.nn.Module):
        return []
    found = [(n, p.detach(), "parameter") for n, p in module.named_parameters()]
    found += [(n, b.detach(), "buffer") for n, b in module.named_buffers()]
    return found


class Traced(torch.nn.Module):
    """A function as the operators that it ran, with every transform (torch.func.grad, vmap) gone into them."""

    def __init__(self, flat, tensors):
        super().__init__()
        from torch.fx.experimental.proxy_tensor import make_fx

        self.graph_module = make_fx(flat, tracing_mode="symbolic", _allow_non_fake_inputs=True)(*tensors)

    def forward(self, *tensors):
        return self.graph_module(*tensors)


def program(problem, specialised=False, traced=False, again=False):
    """The exported program, not decomposed yet, with the flat list of example tensors."""
    state = state_of(problem)
    flat = Flat(problem, [n for n, _, _ in state])
    tensors = [t for _, t in problem.tensors] + [t for _, t, _ in state]
    if traced:
        flat = Traced(flat, tensors)
    free = torch.export.Dim.AUTO
    own = len(problem.tensors)

    def shapes(which):
        if specialised:
            which = "none"
        return (
            tuple(
                {d: free for d in range(t.dim())} if which == "all" or (which == "arguments" and i < own) else None
                for i, t in enumerate(tensors)
            ),
        )

    first = None
    for which in ("all", "arguments", "none"):
        try:
            with torch.no_grad():
                exported = torch.export.export(flat, tuple(tensors), dynamic_shapes=shapes(which), strict=False)
            return exported, tensors, state, which
        except Exception as error:  # noqa: BLE001 - a problem's code may raise anything
            first = first or error
            if on_data(error) and not again:
                # Python's own words for numbers ask for values that they do not need.
                with scalars.taught(problem.function):
                    try:
                        return program(problem, specialised, traced, again=True)
                    except Refused:
                        break
            if on_data(error):
                break
    raise explained(first, str(first).strip() or type(first).__name__, problem)


def on_data(error):
    text = str(error)
    return "DataDependent" in type(error).__name__ or "data-dependent" in text or "_local_scalar_dense" in text


def explained(error, text, problem):
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    if on_data(error):
        return Refused(
            "its result's shape or its control flow depends on values: " + first[:300],
            VALUES_CURE,
        )
    frames = traceback.extract_tb(error.__traceback__)
    where = next((f"line {f.lineno}: {f.line}" for f in reversed(frames) if f.filename.endswith("problem.py")), "")
    cure = ""
    if isinstance(error, AssertionError) and where and problem.names_sizes and problem.hints:
        tried = ", ".join(f"{name} = {size}" for name, size in problem.hints.items())
        cure = f"the annotations leave sizes open, and it was tried with {tried}: give an example that it takes by {problem.name}_inputs() beside it"
    return Refused(f"torch.export could not take the function: {type(error).__name__}: {first[:300]}" + (f" ({where})" if where else ""), cure)


def keep_own_frames():
    """Stack traces of nodes hold the frames of the problem's file, not those called forward alone."""
    base = torch.fx.proxy.TracerBase

    def own(self, summary):
        return traceback.StackSummary.from_list([f for f in summary if f.filename.endswith("problem.py")])

    for tracer in [base, *base.__subclasses__()]:
        if "_filter_traceback_frames" in vars(tracer):
            tracer._filter_traceback_frames = own


class Converter:
    def __init__(self, names):
        self.names = names  # torch's symbol -> our axis

    def integer(self, e):
        """A size of torch's as an index expression."""
        e = sympy.sympify(e)
        if e.is_Integer:
            return sympy.Integer(int(e))
        if e.is_Symbol:
            if e not in self.names:
                raise Refused("its result's size depends on values", "use a form of fixed size: a mask, or padding to the largest size")
            return self.names[e]
        if isinstance(e, (sympy.Add, sympy.Mul)):
            parts = [self.integer(a) for a in e.args]
            return sympy.Add(*parts) if isinstance(e, sympy.Add) else sympy.Mul(*parts)
        if isinstance(e, sympy.Pow) and e.exp.is_Integer and e.exp > 0:
            return self.integer(e.base) ** int(e.exp)
        name = type(e).__name__
        if name in ("FloorDiv", "CleanDiv"):
            return index.floordiv(self.integer(e.args[0]), self.integer(e.args[1]))
        if name in ("Mod", "PythonMod"):
            return index.mod(self.integer(e.args[0]), self.integer(e.args[1]))
        if name == "ModularIndexing":
            a, b, c = (self.integer(x) for x in e.args)
            return index.mod(index.floordiv(a, b), c)
        if name in ("Max", "Min"):
            return (sympy.Max if name == "Max" else sympy.Min)(*(self.integer(a) for a in e.args))
        if name in ("CeilToInt", "FloorToInt", "TruncToInt"):
            over = self.ratio(e.args[0])
            if over is not None:
                a, b = over
                return index.floordiv(a + b - 1 if name == "CeilToInt" else a, b)
        raise Refused(f"the extent {e} is no expression that an op can have", "make the extents simpler")

    def ratio(self, e):
        """A float of torch's as (numerator, denominator), both indices; None where it is no such quotient."""
        name = type(e).__name__
        if name == "IntTrueDiv":
            return tuple(self.integer(x) for x in e.args)
        if name == "ToFloat":
            return self.integer(e.args[0]), sympy.Integer(1)
        if isinstance(e, sympy.Mul):
            above, below = sympy.Integer(1), sympy.Integer(1)
            for factor in e.args:
                if factor.is_number:
                    number = sympy.nsimplify(factor, rational=True)
                    if abs(number.q) > 1 << 20:
                        return None
                    above, below = above * number.p, below * number.q
                    continue
                inner = self.ratio(factor)
                if inner is None:
                    return None
                above, below = above * inner[0], below * inner[1]
            return above, below
        return None

    def number(self, e):
        """A float that is computed of sizes, as a tree (values.scalar_text)."""
        e = sympy.sympify(e)
        if e.is_number:
            return float(e)
        name = type(e).__name__
        if name in ("ToFloat",):
            return ("axis", self.integer(e.args[0]))
        if name in ("FloatPow", "Pow", "PowByNatural"):
            base, power = e.args
            return ("pow", self.number(base), float(power) if power.is_number else self.number(power))
        if name in ("FloatTrueDiv", "IntTrueDiv"):
            return ("/", self.number(e.args[0]), self.number(e.args[1]))
        if isinstance(e, sympy.Mul):
            return ("*", *(self.number(a) for a in e.args))
        if isinstance(e, sympy.Add):
            return ("+", *(self.number(a) for a in e.args))
        if name.startswith("OpaqueUnaryFn_sqrt"):
            return ("sqrt", self.number(e.args[0]))
        return ("axis", self.integer(e))

    def tensor(self, value):
        if isinstance(value, torch.Tensor):
            return Tensor([self.integer(extent(s)) for s in value.shape], dtype_of(value.dtype))
        if isinstance(value, (list, tuple)):
            return [self.tensor(v) for v in value]
        return None


def extent(size):
    return size.node.expr if isinstance(size, torch.SymInt) else int(size)


def dtype_of(dtype):
    if dtype not in DTYPES:
        raise Refused(f"tensors of {dtype} are not supported", "use one of " + ", ".join(str(d) for d in DTYPES))
    return DTYPES[dtype]


def source_of(node):
    """(line, text) of the problem's own Python behind a node."""
    found = re.findall(r'File "([^"]+)", line (\d+)[^\n]*\n\s+([^\n]*)', node.meta.get("stack_trace") or "")
    for file, line, text in reversed(found):
        if file.endswith("problem.py"):
            return int(line), text.strip()
    return 0, ""


def statistics(tensor):
    """What the example says of an input's values."""
    if tensor.numel() == 0:
        return {}
    if tensor.dtype == torch.bool:
        return {"min": 0.0, "max": 1.0, "mean": 0.5, "std": 0.5}
    values = tensor.detach().to(torch.float64).flatten()[: 1 << 20]
    finite = values[torch.isfinite(values)]
    found = {"infinite": bool(finite.numel() < values.numel())}
    if finite.numel():
        found |= {"min": finite.min().item(), "max": finite.max().item(), "mean": finite.mean().item()}
        found["std"] = finite.std().item() if finite.numel() > 1 else 0.0
    return found


def made_up(dtype):
    """What integers hold of which there is no example: all that 8 bits do, or numbers of either sign."""
    low, high = {"i8": (-128, 127), "u8": (0, 255)}.get(dtype, (-1000, 1000))
    return {"min": low, "max": high}


def axis_names(exported, tensors, specs, hints, problem_names):
    """torch's symbols as axes, named after what the problem calls the number, or after input and dimension.
    Where the problem names sizes itself (`problem_names`), one name is one axis.
    """
    lifted = getattr(exported.graph_signature, "inputs_to_lifted_tensor_constants", {})
    placeholders = [n for n in exported.graph.nodes if n.op == "placeholder" and n.name not in lifted]
    taken = {name for name, _ in specs}
    names, examples, order = {}, {}, []
    shape_env = None
    sized = {}
    for node in placeholders:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            continue
        for s in value.shape:
            if isinstance(s, torch.SymInt):
                shape_env = s.node.shape_env
    hinted = dict(getattr(shape_env, "backed_var_to_val", None) or getattr(shape_env, "var_to_val", {}) or {})
    for node, (name, _), tensor in zip(placeholders, specs, tensors):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            continue
        for d, s in enumerate(value.shape):
            e = extent(s)
            if isinstance(e, int):
                continue
            for symbol in sorted(e.free_symbols, key=str):
                example = int(tensor.shape[d]) if e == symbol else int(hinted.get(symbol, 0)) or None
                sized.setdefault(symbol, (f"{name}_{d}" if e == symbol else f"{name}_{d}_part", example))
                if e == symbol and not sized[symbol][1]:
                    sized[symbol] = (f"{name}_{d}", example)
                if symbol not in order:
                    order.append(symbol)
    from .kernels import identifier

    same = {}
    for symbol in order:
        fallback, example = sized[symbol]
        candidates = [h for h, number in hints.items() if number == example]
        wanted = candidates[0].lower() if len(candidates) == 1 else fallback
        if problem_names and len(candidates) == 1 and candidates[0] in same:
            names[symbol] = same[candidates[0]]
            continue
        if wanted != fallback and wanted in taken and not problem_names:
            wanted = fallback  # another extent that happens to have the same size
        name = identifier(wanted, taken)
        if len(candidates) == 1:
            same[candidates[0]] = index.axis(name)
        taken.add(name)
        names[symbol] = index.axis(name)
        examples[name] = example or 1
    return names, examples, shape_env


def constraints_of(shape_env, converter):
    """Guards on extents that are not of the form s != 1, as expressions of an op."""
    texts, notes = [], []
    for guard in getattr(shape_env, "guards", []) or []:
        e = guard.expr
        if not isinstance(e, (sympy.Eq, sympy.Le, sympy.Lt, sympy.Ge, sympy.Gt)):
            continue
        left, right = e.lhs, e.rhs
        if any(s not in converter.names for s in e.free_symbols):
            continue
        number = right if right.is_number else left if left.is_number else None
        if number is not None and not isinstance(e, sympy.Eq) and abs(int(number)) <= 2:
            continue
        sign = {sympy.Eq: "==", sympy.Le: "<=", sympy.Lt: "<", sympy.Ge: ">=", sympy.Gt: ">"}
        word = next(t for c, t in sign.items() if isinstance(e, c))
        try:
            a, b = converter.integer(left), converter.integer(right)
        except Refused:
            notes.append(f"the guard {e} is not among the constraints")
            continue
        if word == "==" and index.same(a, b):
            continue
        if word == "<=" and index.nonnegative(b - a) or word == "<" and index.nonnegative(b - a - 1):
            continue
        if word == ">=" and index.nonnegative(a - b) or word == ">" and index.nonnegative(a - b - 1):
            continue
        text = f"{index.code(a, 1)} {word} {index.code(b, 1)}"
        if text not in texts:
            texts.append(text)
    return texts, notes


def name_bins(lowered, converter):
    """As many bins as bincount's `minlength` says: values are taken for indices below it, as those of an embedding are."""
    for node in lowered.graph.nodes:
        if node.op != "call_function" or str(node.target) != "aten.bincount.default":
            continue
        size = extent(node.meta["val"].shape[0])
        least = node.args[2] if len(node.args) > 2 else node.kwargs.get("minlength", 0)
        if isinstance(least, torch.fx.Node):
            least = least.meta["val"]
        least = least.node.expr if isinstance(least, torch.SymInt) else least
        if isinstance(size, int) or least == 0:
            continue
        converter.names[size] = converter.integer(least)


def within_limits(axes, constraints):
    """A constraint that names one axis and its largest or smallest value is that axis' limit: (rest)."""
    kept = []
    for text in constraints:
        said = re.fullmatch(r"(\w+) (<=|>=) (\d+)", text)
        if not said or said[1] not in axes:
            kept.append(text)
            continue
        axis, value = axes[said[1]], int(said[3])
        if said[2] == "<=":
            axis["max"] = value if axis["max"] is None else min(axis["max"], value)
        else:
            axis["min"] = max(axis["min"], value)
    return kept


def constraints_of_pads(exported, converter):
    """What torch asks of extents that are mirrored or go round, which decomposed graphs no longer say."""
    texts = []
    for node in exported.graph.nodes:
        if node.op != "call_function" or str(node.target) != "aten.pad.default" or len(node.args) < 3 or node.args[2] not in ("reflect", "circular"):
            continue
        shape = node.args[0].meta["val"].shape
        for number, pad in enumerate(node.args[1]):
            size = extent(shape[len(shape) - 1 - number // 2])
            if not isinstance(pad, int) or isinstance(size, int) or pad <= 0:
                continue
            least = pad + 1 if node.args[2] == "reflect" else pad
            texts.append(f"{index.code(converter.integer(size), 1)} >= {least}")
    return sorted(set(texts))


CHOOSERS = ("aten.topk.default", "aten.sort.default", "aten.sort.stable", "aten.max.dim", "aten.min.dim")


def choice_of(node):
    """The operator whose index an output is, where it is one's: as it is, or as another integer."""
    while node.target == "aten._to_copy.default" and node.dtype in ("i32", "i64"):
        node = node.args[0]
    if node.target == "getitem" and int(node.args[1]) == 1 and node.args[0].target in CHOOSERS:
        return node.args[0]
    if node.target in ("aten.argmax.default", "aten.argmin.default"):
        return node
    return None


def finite(bound, otherwise):
    """A bound of torch's as an integer, where it is one."""
    return int(bound) if isinstance(bound, (int, sympy.Integer)) else otherwise


def decompositions():
    """torch's own, but for operators that are kept whole; and for those that torch leaves whole and the table lacks, what torch
    knows of them otherwise."""
    from torch._decomp import decomposition_table

    from .table import OPERATORS

    table = torch.export.default_decompositions()
    for name in KEPT:
        packet, overload = name.removeprefix("aten.").split(".")
        operator = getattr(getattr(torch.ops.aten, packet, None), overload, None)
        if operator is not None and operator in table:
            del table[operator]
    for operator, function in decomposition_table.items():
        name = str(operator)
        if name.startswith("aten.") and name not in OPERATORS and operator not in table:
            table[operator] = function
    return table


def tensors_of(problem):
    """The example tensors in the order of the exported program's arguments."""
    return [t for _, t in problem.tensors] + [t for _, t, _ in state_of(problem)]


def whole(problem, specialised=False):
    """The exported program as torch has it, not decomposed, and its graph as plain data."""
    keep_own_frames()
    try:
        exported, tensors, state, how = program(problem, specialised)
        lowered = exported.run_decompositions(decompositions())
    except (NotImplementedError, RuntimeError, Refused) as error:
        # What torch.func wraps around tensors stays in the program, and can neither be read nor copied with it; and a function
        # that derives by itself needs tensors that record what is done with them.
        if not any(word in str(error) for word in ("TensorWrapper", "data pointer", "storage", "require grad", "constant's list", "attribute 'constant'")):
            raise
        exported, tensors, state, how = program(problem, specialised, traced=True)
        lowered = exported.run_decompositions(decompositions())
    from .kernels import identifier
    from .values import kind_of

    taken, specs = set(), []
    for name, _ in problem.tensors:
        specs.append((identifier(name, taken), "argument"))
        taken.add(specs[-1][0])
    for name, _, origin in state:
        specs.append((identifier(name, taken), origin))
        taken.add(specs[-1][0])
    names, examples, shape_env = axis_names(lowered, tensors, specs, problem.hints, problem.names_sizes)
    converter = Converter(dict(names))
    name_bins(lowered, converter)
    nodes, inputs, placeholders, outputs = {}, [], [], []
    order, updates = [], {}
    # Names of results: a list of those that are returned, or by the argument that is written to.
    renamed = problem.output_names if isinstance(problem.output_names, dict) else {}
    output_names = [] if renamed else list(problem.output_names)
    signature = lowered.graph_signature
    lifted = {**getattr(signature, "inputs_to_lifted_tensor_constants", {})}
    waiting = list(zip(specs, tensors))

    def converted(a):
        if isinstance(a, torch.fx.Node):
            value = a.meta.get("val")
            if a in nodes:
                return nodes[a]
            if scalars.of_values(value, converter.names):
                return Untold()
            if isinstance(value, torch.SymInt):
                return converter.integer(value.node.expr)
            if isinstance(value, torch.SymFloat):
                return converter.number(value.node.expr)
            if isinstance(value, (torch.SymBool, int, float)) and a not in nodes:
                return value if isinstance(value, (int, float)) else True
            return nodes[a]
        if isinstance(a, torch.SymInt):
            return converter.integer(a.node.expr)
        if isinstance(a, (list, tuple)):
            return [converted(x) for x in a]
        if isinstance(a, torch.dtype):
            return dtype_of(a)
        if isinstance(a, (torch.device, torch.layout, torch.memory_format)):
            return None
        return a

    def take(node, made):
        for used in walk([made.args, made.kwargs]):
            used.users.append(made)
        nodes[node] = made
        order.append(made)

    for node in lowered.graph.nodes:
        if node.op == "placeholder":
            value = node.meta.get("val")
            if node.name in lifted:
                constant = lowered.constants[lifted[node.name]]
                nodes[node] = Node(identifier(node.name), "constant", [constant.detach().cpu().flatten().tolist()], {}, converter.tensor(value))
                order.append(nodes[node])
                if constant.numel() > 4096:
                    raise Refused("a constant tensor of more than 4096 elements", "give it to the function as an input")
                continue
            (name, origin), tensor = waiting.pop(0)
            spec = InputSpec(name, converter.tensor(value), origin, statistics(tensor))
            if problem.names_sizes and origin == "argument" and kind_of(spec.tensor.dtype) == "int":
                spec.statistics = made_up(spec.tensor.dtype)
            given = problem.tensors[len(inputs)][0] if origin == "argument" else name
            if origin == "argument":
                spec.said = dict(problem.said.get(given, {}))
                if given in problem.scalars:
                    spec.origin = "scalar"
            if not spec.said and (word := recipes.seen_in(torch, name, tensor)):
                spec.said = {"word": word, "last": int(tensor.flatten()[-1]) if word == "offsets" else 0}
            inputs.append(spec)
            nodes[node] = Node(name, "placeholder", [], {}, spec.tensor)
            placeholders.append(nodes[node])
        elif node.op == "call_function":
            value = node.meta.get("val")
            if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)):
                made = scalars.node_of(node, converter.names, converted)
                if made is not None:
                    take(node, made)
                continue
            target = "getitem" if node.target.__name__ == "getitem" else str(node.target)
            if target.startswith(("aten._assert", "aten.sym_", "aten._check")):
                continue
            line, text = source_of(node)
            made = Node(
                node.name,
                target,
                [converted(a) for a in node.args],
                {k: converted(v) for k, v in node.kwargs.items()},
                converter.tensor(value),
                text,
                line,
            )
            take(node, made)
        elif node.op == "get_attr":
            raise Refused("control flow on data (torch.cond, map, scan)", "write it with torch.where or a loop of fixed length")
        elif node.op == "output":
            results = node.args[0]
            taken_outputs = taken | set(examples)
            for spec, result in zip(signature.output_specs, results):
                if result is None:
                    continue
                kind = spec.kind.name
                if not isinstance(result, torch.fx.Node) or not isinstance(result.meta.get("val"), torch.Tensor):
                    raise Refused("a result is no tensor", "return tensors alone")
                if kind == "USER_INPUT_MUTATION":
                    position = [n.name for n in lowered.graph.nodes if n.op == "placeholder" and n.name not in lifted].index(spec.target)
                    written = specs[position][0]
                    wanted = renamed.get(problem.tensors[position][0] if position < len(problem.tensors) else "", written + "_after")
                elif kind == "USER_OUTPUT":
                    wanted = "out"
                else:
                    raise Refused(f"a result of the kind {kind}")
                name = identifier(wanted, taken_outputs)
                taken_outputs.add(name)
                if kind == "USER_INPUT_MUTATION":
                    updates[name] = written
                outputs.append((name, nodes[result]))
                nodes[result].users.append(None)
    if not outputs:
        raise Refused("the function returns nothing")
    returned = [position for position, (name, _) in enumerate(outputs) if name not in updates]
    if len(returned) > 1 or output_names:
        others = taken | set(examples) | set(updates)
        for count, position in enumerate(returned):
            wanted = output_names[count] if count < len(output_names) else f"out{count}"
            outputs[position] = (identifier(wanted, others), outputs[position][1])
            others.add(outputs[position][0])
    choices = {}
    for name, node in outputs:
        chosen = choice_of(node)
        if chosen is not None and chosen not in choices.values() and node.dtype in ("i64", "i32"):
            choices[name] = chosen
    constraints, notes = constraints_of(shape_env, converter)
    constraints += [c for c in constraints_of_pads(exported, converter) if c not in constraints]
    axes = {}
    for symbol, axis in names.items():
        if axis.name not in examples:
            continue
        bounds = lowered.range_constraints.get(symbol)
        low = finite(bounds.lower if bounds is not None else 1, 1)
        high = finite(bounds.upper if bounds is not None else None, None)
        low = 1 if low <= 2 else low
        axes[axis.name] = {"min": low, "max": high if high is not None and high < 1 << 40 else None, "example": examples[axis.name]}
    constraints = within_limits(axes, constraints)
    if how == "arguments" and state:
        notes.append("extents of parameters are constants: torch.export could not free them")
    elif how == "none" and not specialised:
        notes.append("all extents are constants: torch.export could not free them")
    renumber(order, [node for _, node in outputs])
    return exported, Graph(inputs, placeholders, order, outputs, axes, constraints, notes, choices, updates)
