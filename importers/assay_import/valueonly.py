"""A function that no graph can be made of, as the op's reference itself: `"reference": {"kind": "python"}`.

Its control flow hangs on values (.item(), if, sizes that are looked up), so that nothing is lowered and no error is derived: truths
are what the function returns in f64, and what error is honest is estimated (importers/python_truth.h). The outputs' extents are
found by calling it at two sizes.
"""

import hashlib
import pathlib

import torch

from . import recipes
from .export import dtype_of, made_up, statistics
from .graph import Refused
from .kernels import identifier, printable
from .opfile import dump, largest_power, licence_of, shown

APART = 3


def made_at(problem, sizes, seed=0):
    """What the function returns at these sizes of its axes, as a list of tensors."""
    torch.manual_seed(seed)
    arguments = []
    for name, example in problem.tensors:
        shape = [sizes[s] if isinstance(s, str) else s for s in problem.shapes.get(name, list(example.shape))]
        said = problem.said.get(name, {})
        value = recipes.example(torch, shape, example.dtype, said, sizes)
        if value is None and shape == list(example.shape) and not problem.names_sizes:
            value = example.clone()
        if value is None:
            value = torch.randn(shape).to(example.dtype) if example.dtype.is_floating_point else torch.zeros(shape, dtype=example.dtype)
        arguments.append(value)
    try:
        with torch.no_grad():
            result = problem.function(*problem.assemble(arguments))
    except Exception as error:  # noqa: BLE001 - the function may raise anything
        raise Refused(f"the function fails at {sizes}: {type(error).__name__}: {str(error)[:200]}") from None
    result = [r for r in (result if isinstance(result, (list, tuple)) else [result]) if r is not None]
    if not result or not all(isinstance(r, torch.Tensor) for r in result):
        raise Refused("a result is no tensor", "return tensors alone")
    return result


def extent_of(a, b, first, second):
    """An extent that is `a` at the sizes `first` and `b` at `second`: a number, an axis, or a line through one."""
    if a == b:
        return a
    for name in first:
        step, rest = divmod(b - a, second[name] - first[name])
        if rest == 0 and step > 0:
            offset = a - step * first[name]
            text = name if step == 1 else f"{step} * {name}"
            return text if offset == 0 else f"{text} {'+' if offset > 0 else '-'} {abs(offset)}"
    raise Refused("a result's size is no line through one axis, or hangs on values", "give results of a fixed size, padded")


def make(problem, options):
    """All files of the op folder as {name: text}, and what to tell."""
    if isinstance(problem.function, torch.nn.Module):
        raise Refused("a model's parameters are no arguments", "write a function that takes them")
    source = pathlib.Path(problem.source).read_text(errors="replace")
    named = {s for shape in problem.shapes.values() for s in shape if isinstance(s, str)}
    first = {n: v for n, v in problem.hints.items() if n in named}
    second = {n: v + APART + i for i, (n, v) in enumerate(first.items())}
    before, after = made_at(problem, first), made_at(problem, second)
    if len(before) != len(after):
        raise Refused("how many tensors it returns hangs on the sizes")
    for seed in (1, 2):
        if [m.shape for m in made_at(problem, first, seed)] != [m.shape for m in before]:
            raise Refused("a result's size hangs on values", "give results of a fixed size, padded")
    floats = [t.dtype for n, t in problem.tensors if t.dtype.is_floating_point and n not in problem.scalars and dtype_of(t.dtype) in ("bf16", "f16", "f32")]
    bound = next((dtype_of(d) for d in floats if d != torch.float32), "f32" if floats else None)
    as_bound = lambda d: "T" if d == bound else d  # noqa: E731
    notes = ["the function itself is the reference: what error is honest is estimated from disturbed runs, not derived"]
    inputs = {}
    for name, example in problem.tensors:
        said, dtype = problem.said.get(name, {}), dtype_of(example.dtype)
        number = name in problem.scalars
        entry = {"shape": None if number else problem.shapes.get(name, list(example.shape)), "dtype": dtype if number else as_bound(dtype)}
        if said.get("word"):
            raise Refused(f"'{name}' is generated, which references in Python are not", "leave the word out, or give a range")
        whole = not example.dtype.is_floating_point and example.dtype != torch.bool
        if "values" in said:
            entry["domain"] = {"kind": "choice", "values": said["values"]}
        elif "low" in said:
            low, high = said["low"], said["high"]
            entry["domain"] = {"kind": "range", "low": int(low) if whole else low, "high": int(high) if whole else high}
        elif "mean" in said:
            entry["domain"] = {"typical_mean": said["mean"], "typical_scale": said["scale"]}
        elif whole:
            found = made_up(dtype) if problem.names_sizes else statistics(example)
            entry["domain"] = {"kind": "range", "low": int(min(found.get("min", 0), 0)), "high": int(max(found.get("max", 1), 1))}
            notes.append(f"{name} is taken for whole numbers from {entry['domain']['low']} to {entry['domain']['high']}: review this")
        elif statistics(example).get("std", 1.0) < 0.5:
            entry["domain"] = {"typical_mean": shown(statistics(example)["mean"]), "typical_scale": shown(statistics(example)["std"] or 1.0)}
        inputs[name] = entry
    taken = set(inputs) | set(first)
    names = problem.output_names if isinstance(problem.output_names, list) else []
    outputs = {}
    for number, (a, b) in enumerate(zip(before, after)):
        wanted = names[number] if number < len(names) else ("out" if len(before) == 1 else f"out{number}")
        name = identifier(wanted, taken)
        taken.add(name)
        if a.dim() != b.dim():
            raise Refused("a result's rank hangs on the sizes")
        dtype = dtype_of(a.dtype)
        if dtype in ("f64", "c64", "c128"):
            raise Refused(f"the output '{name}' is {dtype}: truths are computed in f64, so nothing can be held to it", "return f32")
        shape = [extent_of(x, y, first, second) for x, y in zip(a.shape, b.shape)]
        outputs[name] = {"shape": shape or [1], "dtype": as_bound(dtype)}
    axes = {n: {"type": "var", "min": 1, "max": 4096 if problem.names_sizes else max(64, 16 * largest_power(v))} for n, v in first.items()}
    op = {
        "schema": "assay.op/1",
        "name": identifier(problem.name)[:60],
        "summary": printable(problem.summary) or f"{problem.name}, imported from PyTorch.",
        "axes": axes,
    }
    if bound:
        op["dtypes"] = {"T": [bound]}
    op |= {
        "inputs": inputs,
        "outputs": outputs,
        "reference": {"kind": "python", "source": "reference.py", "launch": "reference.json"},
        "precision": {"accumulate": "f32"},
        "properties": ["deterministic"],
    }
    function = options.get("function") or problem.function.__name__
    provenance = {
        "schema": "assay.import/1",
        "kind": options["kind"],
        "function": printable(function),
        "source_sha256": hashlib.sha256(source.encode("utf-8", "replace")).hexdigest(),
        "licence": licence_of(source),
        "torch": options.get("torch", ""),
        "options": {"value_only": True},
        "axes": first,
        "inferred": notes,
    }
    files = {
        "op.json": dump(op),
        "reference.py": source,
        "reference.json": dump({"schema": "assay.python/1", "function": function}),
        "import.json": dump(provenance),
    }
    return files, {"name": op["name"], "notes": notes, "kernels": 0, "axes": first}
