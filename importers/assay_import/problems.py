"""What people have: a function in a file, a KernelBench model, a SOL-ExecBench or flashinfer-trace folder.

Each loader yields a Problem: the function (or module), its example tensors by name, how to call it with
others, and what the file says besides (sizes by name, workloads, a licence line).
"""

import importlib.util
import inspect
import json
import math
import pathlib
import re

import torch

from . import recipes
from .graph import Refused

DTYPE_NAMES = {
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "bool": torch.bool,
}


class Problem:
    def __init__(self, name, function, arguments, names, source, hints=None, workloads=None, output_names=None, summary=""):
        self.name, self.function, self.source = name, function, source
        self.hints = hints or {}  # name -> size
        self.workloads = workloads or []
        self.output_names = output_names or []
        self.summary = summary
        self.fixed = {}  # axes that are constants of the problem, with their values
        self.names_sizes = False  # equal names in `hints` are equal sizes
        self.axes = {}  # axis -> description, where the file names axes itself
        self.said = {}  # argument -> what its annotation says besides (recipes.parsed)
        self.shapes = {}  # argument -> its extents as the file names them: axes or numbers
        self.scalars = set()  # arguments that are numbers, passed by value
        if isinstance(function, torch.nn.Module):
            function.eval()
        self._arguments, self.tensors, self._slots = arguments, [], []
        self._flatten(arguments, names)

    def _flatten(self, arguments, names):
        from torch.utils import _pytree

        for position, argument in enumerate(arguments):
            leaves, spec = _pytree.tree_flatten(argument)
            name = names[position] if position < len(names) else f"arg{position}"
            tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
            for number, i in enumerate(tensors):
                self.tensors.append((name if len(tensors) == 1 else f"{name}_{number}", leaves[i].detach()))
            self._slots.append((leaves, spec, tensors))

    def assemble(self, tensors):
        """The function's arguments with other tensors in the places of the example's."""
        from torch.utils import _pytree

        waiting, arguments = list(tensors), []
        for leaves, spec, places in self._slots:
            filled = list(leaves)
            for i in places:
                filled[i] = waiting.pop(0)
            arguments.append(_pytree.tree_unflatten(filled, spec))
        return arguments


def load_module(path, name="problem"):
    path = pathlib.Path(path)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Refused:
        raise
    except BaseException as error:  # noqa: BLE001 - hostile or broken, it ends here
        if isinstance(error, (KeyboardInterrupt, MemoryError)):
            raise
        raise Refused(f"the problem file cannot be loaded: {type(error).__name__}: {str(error)[:200]}") from None
    return module


def sizes_of(module):
    """Module-level whole numbers: what the file calls its extents."""
    found = {}
    for name, value in vars(module).items():
        if isinstance(value, int) and not isinstance(value, bool) and value > 1 and re.fullmatch(r"[A-Za-z]\w*", name):
            found[name] = value
    return found


def parameters_of(function):
    target = function.forward if isinstance(function, torch.nn.Module) else function
    return [p for p in inspect.signature(target).parameters.values()]


SHORT = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "i32": "int32", "i64": "int64", "u8": "uint8", "i8": "int8"}
SCALARS = (torch.float32, torch.int32, torch.int64)


def dtype_named(text):
    dtype = DTYPE_NAMES.get(SHORT.get(text, text))
    if dtype is None:
        raise Refused(f"'{text}' is no dtype", "use bf16, f16, f32, i32, i64, bool")
    return dtype


def example_for(name, annotation, hints, literals=()):
    """An example of an annotation such as "bf16[batch, 128]", "i64[tokens] distinct" or, a number that is passed by value,
    "f32 in 0..1": (tensor, what it says besides, whether it is a number, its extents). Names of sizes go to `hints`;
    none is one of the `literals`, the numbers that are extents elsewhere."""
    match = re.fullmatch(r"\s*(\w+)\s*(\[([^\]]*)\])?\s*(.*)", annotation)
    if not match:
        raise Refused(f"the annotation of '{name}' is not understood: {annotation[:80]}", 'write it as "bf16[batch, 128]"')
    dtype, said = dtype_named(match[1]), recipes.parsed(match[4])
    number = match[2] is None
    if number and dtype not in SCALARS:
        raise Refused(f"'{name}' is a number of the dtype {match[1]}", "numbers are f32, i32 or i64")
    sizes, shape = [], []
    for text in (t.strip() for t in (match[3] or "").split(",") if t.strip()):
        shape.append(int(text) if text.isdigit() else text)
        if text.isdigit():
            sizes.append(int(text))
            continue
        # Sizes of their own: export tells extents apart by their values, and takes equal ones for one.
        size = hints.get(text, 6)
        while text not in hints and (size in hints.values() or size in literals):
            size += 2
        hints[text] = size
        sizes.append(size)
    made = recipes.example(torch, sizes, dtype, said, hints)
    if made is None:
        made = torch.randn(sizes).to(dtype) if dtype.is_floating_point else torch.zeros(sizes, dtype=dtype)
    return made, said, number, shape


def torch_function(path, function_name):
    """FILE:FUNCTION. Examples are `FUNCTION_inputs()`, `example_inputs()` or `get_inputs()` of the file,
    or the annotations."""
    module = load_module(path)
    function = getattr(module, function_name, None)
    if function is None:
        raise Refused(f"there is no '{function_name}' in the file")
    if inspect.isclass(function):
        function = function(*getattr(module, "get_init_inputs", list)())
    if not callable(function):
        raise Refused(f"'{function_name}' cannot be called")
    parameters = parameters_of(function)
    hints, annotated = sizes_of(module), False
    said, scalars, shapes = {}, set(), {}
    torch.manual_seed(0)
    for maker in (f"{function_name}_inputs", "example_inputs", "get_inputs"):
        if hasattr(module, maker):
            made = getattr(module, maker)()
            if isinstance(made, dict):
                arguments = [made[p.name] if p.name in made else p.default for p in parameters]
            else:
                arguments = list(made) + [p.default for p in parameters[len(made) :] if p.default is not inspect.Parameter.empty]
            break
    else:
        arguments, hints, annotated = [], {}, True
        texts = [p.annotation for p in parameters if isinstance(p.annotation, str)]
        literals = {int(n) for text in texts for extents in re.findall(r"\[([^\]]*)\]", text) for n in re.findall(r"\b\d+\b", extents)}
        for p in parameters:
            if isinstance(p.annotation, str):
                made, known, number, shapes[p.name] = example_for(p.name, p.annotation.strip("'\""), hints, literals)
                arguments.append(made)
                said[p.name] = known
                if number:
                    scalars.add(p.name)
            elif p.default is not inspect.Parameter.empty:
                arguments.append(p.default)
            else:
                raise Refused(
                    f"there is no example for '{p.name}'",
                    f"add a function {function_name}_inputs() that returns the arguments, or annotate them, \"bf16[batch, 128]\"",
                )
    summary = (inspect.getdoc(function) or "").strip().splitlines()
    outputs = getattr(module, f"{function_name}_outputs", [])
    problem = Problem(
        function_name.lower(),
        function,
        arguments,
        [p.name for p in parameters],
        path,
        hints,
        output_names=outputs,
        summary=summary[0] if summary else "",
    )
    problem.names_sizes, problem.said, problem.scalars = annotated, said, scalars
    problem.shapes = shapes
    return problem


def kernelbench(path):
    """A file with Model, get_inputs() and get_init_inputs()."""
    module = load_module(path)
    for name in ("Model", "get_inputs"):
        if not hasattr(module, name):
            raise Refused(f"there is no {name} in the file", "KernelBench's problems have Model, get_inputs and get_init_inputs")
    torch.manual_seed(0)
    init = list(getattr(module, "get_init_inputs", list)())
    if len(init) == 1 and isinstance(init[0], dict):
        model = module.Model(**init[0])
    else:
        model = module.Model(*init)
    arguments = list(module.get_inputs())
    name = re.sub(r"^\d+_", "", pathlib.Path(path).stem)
    doc = (inspect.getdoc(module.Model) or "").strip().splitlines()
    return Problem(
        name or "model",
        model,
        arguments,
        [p.name for p in parameters_of(model)],
        path,
        sizes_of(module),
        summary=doc[0] if doc else "",
    )


# What numbers of definitions usually are.
NUMBERS = (
    (r"eps", {"values": [1e-6, 1e-5]}),
    (r"scale", {"values": [0.125, 0.08838834764831845, 1.0]}),
    (r"cap", {"values": [30.0, 50.0]}),
)


def definition(folder):
    """SOL-ExecBench's and flashinfer-trace's definition: axes, inputs, outputs, a reference in Python."""
    folder = pathlib.Path(folder)
    files = [folder] if folder.is_file() else sorted(folder.glob("*.json"))
    files = [f for f in files if f.name != "workload.json"]
    preferred = [f for f in files if f.name == "definition.json"]
    if not files:
        raise Refused("there is no definition.json in the folder")
    path = (preferred or files)[0]
    try:
        document = json.loads(path.read_text())
    except (ValueError, UnicodeDecodeError) as error:
        raise Refused(f"{path.name} is no JSON: {error}") from None
    for key in ("name", "axes", "inputs", "outputs", "reference"):
        if key not in document:
            raise Refused(f"{path.name} has no '{key}'")
    workloads = []
    for file in sorted(path.parent.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            if not line.strip():
                continue
            item = json.loads(line)
            workloads.append(item.get("workload", item))
    return path, document, workloads


def from_definition(folder, numbers=True):
    path, document, workloads = definition(folder)
    source = pathlib.Path("/tmp/problem.py")
    source.write_text(document["reference"])
    module = load_module(source)
    function = getattr(module, "run", None) or getattr(module, "reference", None)
    if function is None:
        raise Refused("the reference has no function `run`")
    axes = document["axes"]
    first = next((w.get("axes", {}) for w in workloads), {})
    sizes, hints = {}, {}
    for number, (name, axis) in enumerate(axes.items()):
        if axis.get("type") == "const":
            sizes[name] = int(axis["value"])
        elif name in first:
            sizes[name] = int(first[name])
        else:
            sizes[name] = 5 + 2 * number
    # Export distinguishes extents by value: variable axes take sizes of their own, which are no constant's.
    used = {size for name, size in sizes.items() if axes[name].get("type") == "const"}
    used |= {int(e) for spec in document["inputs"].values() for e in spec.get("shape") or [] if not isinstance(e, str)}
    for name, axis in axes.items():
        if axis.get("type") == "var":
            size = min(sizes[name], 48)
            while size in used or size < 3:
                size += 1
            used.add(size)
            sizes[name] = size
            hints[name] = size
        else:
            hints[name] = sizes[name]
    for name, axis in axes.items():
        if axis.get("type") == "expr":
            sizes[name] = int(eval(axis["expression"], {"__builtins__": {}}, dict(sizes)))  # noqa: S307 - in the jail
    torch.manual_seed(0)
    arguments, names, said, scalars, shapes = [], [], {}, set(), {}
    for name, spec in document["inputs"].items():
        names.append(name)
        dtype = DTYPE_NAMES.get(spec["dtype"])
        if spec.get("shape") is None:
            known = next((k for pattern, k in NUMBERS if re.search(pattern, name)), {"low": -2.0, "high": 2.0})
            if dtype is not None and dtype.is_floating_point and not numbers:
                arguments.append(known.get("values", [0.5])[0])
            elif dtype is not None and dtype.is_floating_point:
                # A number by value, whatever it is; whole ones may say extents, and stay as they are.
                said[name] = known
                scalars.add(name)
                arguments.append(torch.tensor(known.get("values", [0.5])[0], dtype=torch.float32))
            else:
                arguments.append(1)
            continue
        if dtype is None:
            raise Refused(f"the input '{name}' has the dtype {spec['dtype']}", "dtypes of PyTorch up to 64 bits are supported")
        shape = [sizes[s] if isinstance(s, str) else int(s) for s in spec["shape"]]
        shapes[name] = [s if axes.get(s, {}).get("type") == "var" else sizes[s] if isinstance(s, str) else int(s) for s in spec["shape"]]
        if dtype.is_floating_point:
            arguments.append(torch.randn(shape).to(dtype))
        else:
            arguments.append(torch.zeros(shape, dtype=dtype))
    problem = Problem(
        document["name"],
        function,
        arguments,
        names,
        source,
        hints,
        workloads=[{"axes": w["axes"], "note": str(w.get("uuid", ""))[:60]} for w in workloads if isinstance(w.get("axes"), dict)],
        output_names=list(document["outputs"]),
        summary=str(document.get("description", ""))[:300],
    )
    problem.said, problem.scalars, problem.shapes = said, scalars, shapes
    problem.axes = {name: axis.get("description", "") for name, axis in axes.items()}
    problem.names_sizes = True
    problem.fixed = {name: int(axis["value"]) for name, axis in axes.items() if axis.get("type") == "const"}
    return problem


def free_roots():
    """math.sqrt of an extent is an expression of it: else torch takes the extent for the constant that it is in the example."""
    plain = math.sqrt
    if getattr(plain, "of_extents", False):
        return

    def sqrt(x):
        return torch._sym_sqrt(x) if isinstance(x, (torch.SymInt, torch.SymFloat)) else plain(x)

    sqrt.of_extents = True
    math.sqrt = sqrt


def load(kind, path, function="", numbers=True):
    """The problem. `numbers`: are floats that a definition takes by value arguments, or constants?"""
    free_roots()
    if kind == "torch":
        return torch_function(path, function)
    if kind == "kernelbench":
        return kernelbench(path)
    return from_definition(path, numbers)
