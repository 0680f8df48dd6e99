"""Inputs whose values belong together: what makes them, as the op's generator.

An annotation says it in words ("i64[tokens] distinct"), an example by what it holds, and an operator by what it
asks of its index: where two elements would be written to one place, which of them wins is chance, so that only
distinct places have a meaning. The words are those of ops/prelude/assay/generators.cuh.

    distinct        no number twice: slots of a cache that is written to
    offsets of n    0 first, n last, never falling: where the rows of a ragged batch begin
    ascending       never falling: the boundaries of a search
    one_hot         one 1 in each row, else 0
    causal          true (or 0) where a query sees a key, false (or minus infinity) else
    pages           pages of sequences: distinct while there are enough
"""

import re

import sympy

from . import index
from .graph import Refused

WORDS = ("distinct", "ascending", "one_hot", "causal", "pages")
OFFSETS = re.compile(r"(^|_)(offsets?|indptr|ptr|cu_seq\w*|cu_lens|starts)(_|$|\d)|indptr|cu_seqlens", re.I)
WAVES = re.compile(r"(^|_)(cos|sin)(_|$|\d)", re.I)


def parsed(text):
    """What follows the shape in an annotation: {"word", "of"}, {"low", "high"}, {"values"}, {"mean", "scale"} or {}, and
    "infinite" where infinities are among the values."""
    text = text.strip()
    if text.endswith("or infinite"):
        return {**parsed(text.removesuffix("or infinite")), "infinite": True}
    if not text:
        return {}
    if text in WORDS:
        return {"word": text}
    found = re.fullmatch(r"offsets\s+of\s+(\w+)", text)
    if found:
        return {"word": "offsets", "of": found[1]}
    found = re.fullmatch(r"in\s+([-+.\w]+?)\s*\.\.\s*([-+.\w]+)", text)
    try:
        if found:
            return {"low": float(found[1]), "high": float(found[2])}
        found = re.fullmatch(r"in\s*\{([^}]*)\}", text)
        if found:
            return {"values": [float(v) for v in found[1].split(",")]}
        found = re.fullmatch(r"about\s+([-+.\w]+)\s*\+-\s*([-+.\w]+)", text)
        if found:
            return {"mean": float(found[1]), "scale": float(found[2])}
    except ValueError:
        pass
    raise Refused(
        f"'{text[:60]}' says nothing that is known of an input",
        "after the shape: distinct, pages, ascending, one_hot, causal, offsets of AXIS, in LOW..HIGH, in {A, B}, about MEAN +- SCALE; or infinite",
    )


def example(torch, sizes, dtype, said, hints):
    """An example that is as the annotation says."""
    word = said.get("word")
    count = 1
    for s in sizes:
        count *= s
    if word in ("distinct", "pages"):
        return torch.arange(count).reshape(sizes).to(dtype)
    if word == "offsets":
        total = hints.get(said["of"], 6)
        return torch.linspace(0, total, count).floor().to(dtype).reshape(sizes)
    if word == "ascending":
        return torch.linspace(-2, 2, count).to(dtype).reshape(sizes)
    if word == "one_hot":
        return torch.nn.functional.one_hot(torch.arange(count // sizes[-1]) % sizes[-1], sizes[-1]).reshape(sizes).to(dtype)
    if word == "causal":
        seen = torch.ones(sizes, dtype=torch.bool).tril(sizes[-1] - sizes[-2])
        return seen if dtype == torch.bool else torch.zeros(sizes).masked_fill(~seen, float("-inf")).to(dtype)
    if "values" in said:
        return torch.full(sizes, said["values"][0]).to(dtype)
    if "low" in said and dtype.is_floating_point:
        return (torch.rand(sizes) * (said["high"] - said["low"]) + said["low"]).to(dtype)
    if "low" in said:
        return torch.full(sizes, int(said["low"])).to(dtype)
    return None


def seen_in(torch, name, tensor):
    """What an example looks like that no chance makes."""
    if tensor.numel() < 4 or tensor.numel() > 1 << 22:
        return ""
    shape = tensor.shape
    whole = not tensor.dtype.is_floating_point and tensor.dtype != torch.bool
    if whole and tensor.dim() == 1 and OFFSETS.search(name) and tensor[0] == 0 and bool((tensor.diff() >= 0).all()) and tensor[-1] > 0:
        return "offsets"
    if tensor.dim() >= 2 and min(shape[-2:]) >= 3:
        values = tensor.to(torch.float64)
        seen = torch.ones(shape[-2:], dtype=torch.bool).tril(shape[-1] - shape[-2])
        if tensor.dtype == torch.bool and bool((tensor == seen).all()):
            return "causal"
        if tensor.dtype.is_floating_point and bool(((values == 0) == seen).all()) and bool((values[..., ~seen] == -torch.inf).all()):
            return "causal"
        if tensor.dtype != torch.bool and bool(((values == 0) | (values == 1)).all()) and bool((values.sum(-1) == 1).all()):
            return "one_hot"
    return ""


class Recipes:
    """The generated inputs of an op: their kernels, and what must hold of the extents."""

    def __init__(self, graph, inputs, types, axes):
        self.graph, self.inputs, self.types, self.axes = graph, inputs, types, axes
        self.made, self.constraints, self.notes = [], [], []

    def add(self, spec, word, extent=None):
        """`spec`: the input. `extent`: how many places there are, as an expression."""
        name, shape = spec.name, [sympy.sympify(e) for e in spec.tensor.shape]
        count = index.product(shape)
        kind = spec.tensor.dtype
        rows, columns = (shape[-2] if len(shape) > 1 else sympy.Integer(1)), (shape[-1] if shape else sympy.Integer(1))
        c = lambda e: index.code(sympy.expand(e), 4)  # noqa: E731
        if word in ("distinct", "pages"):
            if extent is None:
                raise Refused(f"'{name}' is to hold distinct numbers, but indexes nothing", "use it as an index, or leave the word out")
            if word == "pages":
                value = f"assay::page_of(i / {c(columns)}, i % {c(columns)}, {c(columns)}, {c(extent)}, seed)"
                self.notes.append(f"{name} holds pages below {index.code(extent)}, each once while there are enough")
            else:
                if not index.nonnegative(extent - count):
                    self.constraints.append(f"{index.code(count, 1)} <= {index.code(extent, 1)}")
                value = f"assay::permuted(i, {c(extent)}, seed)"
                self.notes.append(f"{name} holds distinct numbers below {index.code(extent)}: of two that are equal, either could win")
        elif word == "offsets":
            value = f"assay::offset_of(i, {c(count - 1)}, {c(extent)}, seed)"
            self.notes.append(f"{name} holds where ragged rows begin, from 0 to {index.code(extent)}")
        elif word == "ascending":
            whole = kind[0] in "iu"
            low, high = (-8, 8) if whole else (-2, 2)
            value = f"assay::ascending(i % {c(columns)}, {c(columns)}, {low}.0, {high}.0, seed)"
            value = f"static_cast<int64>({value})" if whole else value
            self.notes.append(f"{name} never falls, from {low} to {high}")
        elif word == "one_hot":
            value = f"int64(i % {c(columns)} == assay::class_of(i / {c(columns)}, {c(columns)}, seed))"
            self.notes.append(f"{name} holds one 1 in each row")
        elif word == "causal":
            seen = f"assay::causal(i / {c(columns)} % {c(rows)}, i % {c(columns)}, {c(rows)}, {c(columns)})"
            if kind == "bool":
                value = f"int64({seen})"
            else:
                value = f"{seen} ? Real(0) : Real(-assay::infinity())"
            self.constraints.append(f"{index.code(rows, 1)} <= {index.code(columns, 1)}")
            self.notes.append(f"{name} is a causal mask")
        else:
            raise Refused(f"nothing makes an input that is '{word}'")
        self.made.append((spec, value, count))

    def files(self, dump):
        """generator.cu and generator.json, or {}."""
        if not self.made:
            return {}
        names = {s.name for s, _, _ in self.made}
        plain = [s for s in self.graph.inputs if s.name in self.inputs and s.name not in names and s.origin != "scalar"]
        # Values that differ from case to case: floats, where there are any.
        plain.sort(key=lambda s: (s.tensor.dtype[0] in "iu", s.tensor.dtype == "bool"))
        source = plain[0] if plain else None
        text = "// What belongs together: " + ", ".join(sorted(names)) + ".\n" + '#include "assay/generators.cuh"\n\n'
        if "T" in self.types.values():
            text += "using T = ASSAY_T;\n\n"
        kernels = []
        for number, (spec, value, count) in enumerate(self.made):
            used = set(count.free_symbols)
            seed = f"{number}"
            args, parameters = [], []
            if source is not None:
                elements = index.product([sympy.sympify(e) for e in source.tensor.shape])
                seed = f"assay::scrambled(assay::seed_of({source.name}, {index.code(elements)}) + {number})"
                used |= elements.free_symbols
                args.append(source.name)
                parameters.append(f"const {self.types[source.tensor.dtype]}* {source.name}")
            args.append(spec.name)
            parameters.append(f"Out<{self.types[spec.tensor.dtype]}>* {spec.name}")
            for axis in self.axes:
                if index.axis(axis) in used or re.search(rf"\b{axis}\b", value):
                    args.append(axis)
                    parameters.append(f"int64 {axis}")
            entry = f"make_{spec.name}"
            text += f"__global__ void {entry}({', '.join(parameters)}) {{\n"
            text += f"  const int64 i = thread_index();\n  if (i >= {index.code(count)}) return;\n"
            if "seed" in value:
                text += f"  const assay::uint64 seed = {seed};\n"
            text += f"  {spec.name}[i] = " + (value if "Real(" in value else f"Real({value})") + ";\n}\n\n"
            kernels.append({"entry": entry, "grid": [f"ceil_div({index.code(count)}, 32)"], "block": [32], "args": args})
        return {"generator.cu": text.rstrip() + "\n", "generator.json": dump({"schema": "assay.launch/1", "kernels": kernels})}
