"""The function in f64 by torch itself, for `assay import --check`.

The exported graph, before it is decomposed, is run with f64 in place of every wider float: so the
check does not share torch's decompositions, nor any of ours, with what it checks. Permitted roundings
are not made, as the reference's truth does not make them; with --strict, prescribed ones are.
"""

import sympy
import torch

from . import export
from .graph import Refused

NARROW = (torch.bfloat16, torch.float16)
WIDE = (torch.bfloat16, torch.float16, torch.float32)
EIGHT = (torch.float8_e4m3fn, torch.float8_e5m2)
NAMES = {name: dtype for dtype, name in export.DTYPES.items()}


class Exact(torch.fx.Interpreter):
    """Runs a graph with f64 for all floats."""

    def __init__(self, module, strict):
        super().__init__(module)
        self.strict = strict

    def run_node(self, n):
        result = super().run_node(n)
        value = n.meta.get("val")
        if n.op == "call_function" and isinstance(result, torch.Tensor) and isinstance(value, torch.Tensor):
            if value.dtype in EIGHT:
                limit = torch.finfo(value.dtype).max
                return result.clamp(-limit, limit).to(value.dtype).to(torch.float64)
            if self.strict and value.dtype in NARROW:
                return result.to(value.dtype).to(torch.float64)
        return result

    def call_function(self, target, args, kwargs):
        name = str(target)
        if name.startswith(("aten._assert", "aten.sym_constrain")) or "assert" in name:
            return None
        exchange = lambda a: torch.float64 if a in (*WIDE, *EIGHT) else a  # noqa: E731
        args, kwargs = torch.utils._pytree.tree_map_only(torch.dtype, exchange, (args, kwargs))
        return super().call_function(target, args, kwargs)

    def call_module(self, target, args, kwargs):
        return None  # guards on extents


def tensors_of(case, data):
    """The inputs of one case, by name."""
    found = {}
    for name, place in case["inputs"].items():
        raw = bytearray(data[place["offset"] : place["offset"] + place["bytes"]])
        dtype = NAMES[place["dtype"]]
        if not raw:
            found[name] = torch.empty(place["shape"], dtype=dtype)
            continue
        found[name] = torch.frombuffer(raw, dtype=torch.uint8).view(dtype).reshape(place["shape"])
    return found


def of_size(example, spec, axes):
    """An input that the op lacks, since no output hangs on what it holds: zeros of the case's size."""
    sizes = {symbol: axes.get(symbol.name, 1) for e in spec.tensor.shape for symbol in sympy.sympify(e).free_symbols}
    shape = [int(sympy.sympify(e).subs(sizes)) for e in spec.tensor.shape]
    return example if list(example.shape) == shape else torch.zeros(shape, dtype=example.dtype)


def outputs_of(exported, graph, examples, given, axes, strict):
    """What the function makes of one case's inputs: output -> tensor."""
    lifted = exported.graph_signature.inputs_to_lifted_tensor_constants
    arguments, own, waiting = [], {}, list(zip(graph.inputs, examples))
    for node in exported.graph.nodes:
        if node.op != "placeholder":
            continue
        if node.name in lifted:
            tensor = exported.constants[lifted[node.name]]
        else:
            spec, example = waiting.pop(0)
            tensor = given[spec.name] if spec.name in given else of_size(example, spec, axes)
            tensor = tensor.reshape(()) if spec.origin == "scalar" else tensor
            own[spec.name] = len(arguments)
        arguments.append(tensor.to(torch.float64) if tensor.dtype in (*WIDE, *EIGHT) else tensor.clone())
        if arguments[-1] is tensor:
            arguments[-1] = tensor.clone()  # functions may write to their arguments
    with torch.no_grad():
        made = Exact(exported.graph_module, strict).run(*arguments)
    made = [m for m in torch.utils._pytree.tree_leaves(made) if isinstance(m, torch.Tensor)]
    named = [n for n, _ in graph.outputs if n not in graph.updates]
    if len(made) < len(named):
        raise Refused("torch returned fewer tensors than were exported")
    outputs = dict(zip(named, made[len(made) - len(named) :]))
    for n, written in graph.updates.items():
        outputs[n] = arguments[own[written]]
    return outputs


def answer(problem, exported, graph, request):
    """{"cases": [{output: hexadecimal f64}]} for the cases of a request."""
    strict = request.get("strict", False)
    examples = export.tensors_of(problem)
    with open(request["check"]["data"], "rb", closefd=False) as file:
        data = file.read()
    results = []
    for case in request["check"]["cases"]:
        outputs = outputs_of(exported, graph, examples, tensors_of(case, data), case["axes"], strict)
        results.append({n: hexadecimal(t) for n, t in outputs.items()})
    return {"cases": results}


def hexadecimal(tensor):
    """The elements as f64, little end first."""
    flat = tensor.detach().to(torch.float64).contiguous().flatten()
    return bytes(flat.view(torch.uint8).tolist()).hex()
