"""What people have: a function in a file, a KernelBench model, a SOL-ExecBench or flashinfer-trace folder.

Each loader yields a Problem: the function (or module), its example tensors by name, how to call it with
others, and what the file says besides (sizes by name, workloads, a licence line).
"""

import importlib.util
import inspect
import json
import pathlib
import re

import torch

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


def example_for(name, annotation, hints):
    """An example tensor of an annotation such as "bf16[batch, 128]"; names of sizes go to `hints`."""
    match = re.fullmatch(r"\s*(\w+)\s*\[([^\]]*)\]\s*", annotation)
    short = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "i32": "int32", "i64": "int64", "u8": "uint8", "i8": "int8"}
    if not match:
        raise Refused(f"the annotation of '{name}' is not understood: {annotation[:80]}", 'write it as "bf16[batch, 128]"')
    dtype = DTYPE_NAMES.get(short.get(match[1], match[1]))
    if dtype is None:
        raise Refused(f"'{match[1]}' is no dtype", "use bf16, f16, f32, i32, i64, bool")
    sizes = []
    for text in (t.strip() for t in match[2].split(",") if t.strip()):
        if text.isdigit():
            sizes.append(int(text))
            continue
        # Sizes of their own: export tells extents apart by their values.
        size = hints.get(text, 6)
        while text not in hints and size in hints.values():
            size += 2
        hints[text] = size
        sizes.append(size)
    if dtype == torch.bool or not dtype.is_floating_point:
        return torch.zeros(sizes, dtype=dtype)
    return torch.randn(sizes).to(dtype)


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
        for p in parameters:
            if isinstance(p.annotation, str):
                arguments.append(example_for(p.name, p.annotation.strip("'\""), hints))
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
        output_names=list(outputs),
        summary=summary[0] if summary else "",
    )
    problem.names_sizes = annotated
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


def from_definition(folder):
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
    # Export distinguishes extents by value: variable axes take sizes of their own.
    used = set()
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
    arguments, names = [], []
    for name, spec in document["inputs"].items():
        names.append(name)
        dtype = DTYPE_NAMES.get(spec["dtype"])
        if spec.get("shape") is None:
            arguments.append({"sm_scale": 0.125}.get(name, 1.0 if dtype is not None and dtype.is_floating_point else 1))
            continue
        if dtype is None:
            raise Refused(f"the input '{name}' has the dtype {spec['dtype']}", "dtypes of PyTorch up to 64 bits are supported")
        shape = [sizes[s] if isinstance(s, str) else int(s) for s in spec["shape"]]
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
    problem.axes = {name: axis.get("description", "") for name, axis in axes.items()}
    problem.names_sizes = True
    problem.fixed = {name: int(axis["value"]) for name, axis in axes.items() if axis.get("type") == "const"}
    return problem


def load(kind, path, function=""):
    if kind == "torch":
        return torch_function(path, function)
    if kind == "kernelbench":
        return kernelbench(path)
    return from_definition(path)
