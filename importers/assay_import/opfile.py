"""The op folder's files: op.json, reference.cu, reference.json, workloads.jsonl, the naive candidate.

What the function does not say is inferred from how it uses its inputs, and listed for review in
import.json: domains (indices, positive numbers, probabilities), extents' ranges, properties.
"""

import hashlib
import json
import pathlib
import re

import sympy

from . import index
from .graph import Refused
from .kernels import Planner, identifier, printable
from .lower import Lowering
from .naive import SHIM
from .recipes import WAVES, Recipes
from .values import Value, kind_of

FLOATS = ("bf16", "f16", "f32")
PLAIN = {
    "f32": "float",
    "f64": "double",
    "bool": "bool",
    "i8": "signed char",
    "u8": "unsigned char",
    "i16": "short",
    "u16": "unsigned short",
    "i32": "int",
    "u32": "unsigned int",
    "i64": "int64",
    "u64": "unsigned long long",
}
CANDIDATE = {"bf16": "__nv_bfloat16", "f16": "__half", "f8e4m3": "__nv_fp8_e4m3", "f8e5m2": "__nv_fp8_e5m2"}


def binding(graph, specialised):
    """What T stands for: (dtype, choices), or (None, []) where no float tensor comes in."""
    inputs = [s.tensor.dtype for s in graph.inputs if s.tensor.dtype in FLOATS and s.origin != "scalar"]
    if not inputs:
        return None, []
    narrow = [d for d in inputs if d != "f32"]
    bound = max(set(narrow), key=narrow.count) if narrow else "f32"
    if specialised:
        return bound, [bound]
    elsewhere = {n.dtype for n in graph.nodes if hasattr(n.meta, "dtype")} & {"bf16", "f16"}
    if bound == "f32":
        return bound, ["f32"] if elsewhere else ["f32", "bf16", "f16"]
    other = {"bf16": "f16", "f16": "bf16"}[bound]
    if other in elsewhere or other in inputs:
        return bound, [bound]
    return bound, [bound, other, "f32"] if "f32" not in inputs else [bound, other]


# --- properties
def properties(graph, kernels, op, atomics):
    """What holds by construction: equal bits every time, where no atomics are to be expected, and rows that hang on no other row of an input.

    The first axis of an input keeps its rows apart where every output has that axis first, and every kernel on the
    way from the input to an output reads what it reads at the row that it writes.
    """
    # Sums by index, and into one number, are added by atomics: honestly so, and in any order.
    whole = any(o.get("shape") == [1] for o in op["outputs"].values())
    found = [] if atomics or whole else ["deterministic"]
    for spec in graph.inputs:
        shape = spec.tensor.shape
        if spec.name not in op["inputs"] or not shape or not shape[0].is_Symbol or shape[0] in shape[1:]:
            continue
        axis = shape[0]
        if any(not o.get("shape") or o["shape"][0] != axis.name for o in op["outputs"].values()):
            continue
        tainted, apart = {spec.name}, True
        for kernel in kernels:  # in the order of their launches
            reads = [first for name, first in kernel.reads if name in tainted]
            if not reads:
                continue
            tainted.add(kernel.target)
            apart = apart and kernel.extent == axis and kernel.first is not None and all(r == kernel.first for r in reads)
        if apart:
            found.append({"independent_rows": [spec.name, axis.name]})
    return found


# --- domains
POSITIVE = {"aten.log.default", "aten.log2.default", "aten.log10.default", "aten.sqrt.default", "aten.rsqrt.default", "aten.log1p.default"}
THROUGH = {"aten._to_copy.default", "aten.clone.default", "aten.view.default", "aten.expand.default", "aten.permute.default",
           "aten.unsqueeze.default", "aten.squeeze.dims", "aten.alias.default", "aten.slice.Tensor", "aten.select.int", "getitem",
           "aten.split_with_sizes.default", "aten._local_scalar_dense.default"}  # fmt: skip


def shown(value):
    return float(f"{value:.6g}")


def domains(graph, uses, axes, extra_axes, used):
    """input -> domain, with a line for review each."""
    found, notes, distinct, ascending = {}, [], {}, set()
    by_name = {s.name: s for s in graph.inputs}
    positive = {}
    for node, spec in zip(graph.placeholders, graph.inputs):
        if kind_of(spec.tensor.dtype) != "real":
            continue
        waiting, seen = [(node, 0.0)], set()
        while waiting:
            at, offset = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            for user in at.users:
                if user is None:
                    continue
                if user.target in THROUGH:
                    waiting.append((user, offset))
                elif user.target in ("aten.add.Tensor", "aten.add.Scalar") and isinstance(user.args[1], (int, float)):
                    waiting.append((user, offset + float(user.args[1])))
                elif user.target in POSITIVE or (
                    user.target == "aten.pow.Tensor_Scalar" and isinstance(user.args[1], float) and user.args[1] != int(user.args[1])
                ):
                    floor = -1.0 if "log1p" in user.target else 0.0
                    positive[spec.name] = max(positive.get(spec.name, -1e30), floor - offset)
                elif user.target.startswith("aten._native_batch_norm_legit_no_training") and user.args[4] is at:
                    positive[spec.name] = 0.0
    for name, kind, detail in uses:
        if name not in by_name or kind_of(by_name[name].tensor.dtype) != "int":
            continue
        if kind == "index":
            detail = sympy.expand(detail)
            axis = next((a for a, e in {**{n: index.axis(n) for n in axes}, **extra_axes}.items() if index.same(e, detail)), None)
            if axis is None:
                axis = identifier("classes" if not extra_axes else "count", set(axes) | set(extra_axes) | set(by_name))
                extra_axes[axis] = detail
            before = found.get(name)
            if before is None:
                found[name] = {"kind": "index", "of": axis}
                notes.append(f"{name} holds indices below {axis}")
        elif kind == "distinct":
            distinct[name] = sympy.expand(detail)
    ascending.update(n for n, k, _ in uses if k == "ascending" and n in by_name)
    for spec in graph.inputs:
        stats, name = spec.statistics, spec.name
        kind = kind_of(spec.tensor.dtype)
        if name not in used or said_domain(spec, found):
            continue
        if name in found or kind == "bool":
            continue
        if kind == "int":
            low, high = stats.get("min", 0), stats.get("max", 1)
            low, high = (int(min(low, 0)), int(max(high, 1)))
            found[name] = {"kind": "range", "low": low, "high": high}
            notes.append(f"{name} is taken for whole numbers from {low} to {high}: review this")
            continue
        domain = {}
        low, high, std, mean = (stats.get(k, d) for k, d in (("min", -1.0), ("max", 1.0), ("std", 1.0), ("mean", 0.0)))
        if name in positive and low >= positive[name]:
            least = positive[name]
            if high <= 1 and low >= 0 and least >= 0:
                domain = {"kind": "range", "low": shown(max(least, 2.0**-10)), "high": 1.0}
                notes.append(f"{name} is taken for numbers from {domain['low']} to 1: it goes through a function of positive numbers")
            else:
                top = max(4.0, 2 * high)
                domain = {"kind": "range", "low": shown(least + 2.0**-10 if least <= 0 else least), "high": shown(top)}
                notes.append(f"{name} is taken for numbers from {domain['low']} to {domain['high']}: it goes through a function of positive numbers")
        elif std == std and std > 0 and (abs(mean) > std / 2 or not 0.5 <= std <= 2):
            domain = {"typical_mean": shown(mean) if abs(mean) > std / 10 else 0.0, "typical_scale": shown(std)}
            notes.append(f"{name} is typically {domain['typical_mean']} +- {domain['typical_scale']}, as in the example")
        if not domain and WAVES.search(name):
            domain = {"kind": "range", "low": -1.0, "high": 1.0}
            notes.append(f"{name} is taken for numbers from -1 to 1, as its name says")
        if stats.get("infinite"):
            domain["allow_infinity"] = True
        if domain:
            found[name] = domain
    return found, notes, distinct, ascending


def said_domain(spec, found):
    """The domain that an annotation names."""
    if "values" in spec.said:
        whole = kind_of(spec.tensor.dtype) == "int"
        found[spec.name] = {"kind": "choice", "values": [int(v) if whole else v for v in spec.said["values"]]}
    elif "low" in spec.said:
        low, high = spec.said["low"], spec.said["high"]
        whole = kind_of(spec.tensor.dtype) == "int"
        found[spec.name] = {"kind": "range", "low": int(low) if whole else low, "high": int(high) if whole else high}
    elif "mean" in spec.said:
        found[spec.name] = {"typical_mean": spec.said["mean"], "typical_scale": spec.said["scale"]}
    else:
        return False
    if spec.said.get("infinite"):
        found[spec.name]["allow_infinity"] = True
    return True


def generated(graph, found, distinct, ascending, uses, recipes, notes):
    """Gives inputs whose values belong together to the generator."""
    for spec in graph.inputs:
        if spec.name not in recipes.inputs:
            continue
        word = spec.said.get("word", "")
        places = {n: sympy.expand(d) for n, k, d in uses if k == "index"}
        extent = None
        if spec.name in distinct and word not in ("distinct", "one_hot"):
            word = "distinct"
        if spec.name in ascending and word != "offsets":
            word = "ascending"
        if not word:
            continue
        if word in ("distinct", "pages"):
            extent = distinct.get(spec.name, places.get(spec.name))
        elif word == "offsets":
            extent = ragged_total(graph, spec)
            if extent is None:
                notes.append(f"{spec.name} looks like offsets, but no axis is as long as its last")
                continue
        recipes.add(spec, word, extent)
        notes[:] = [n for n in notes if not n.startswith(f"{spec.name} ")]
        found[spec.name] = {"kind": "generated"}


def ragged_total(graph, spec):
    if "of" in spec.said:
        return index.axis(spec.said["of"].lower())
    names = [n for n, a in graph.axes.items() if a["example"] == spec.said.get("last")]
    return index.axis(names[0]) if len(names) == 1 else None


def largest_power(number):
    power = 1
    while power < number:
        power *= 2
    return power


def make(problem, graph, options):
    """All files of the op folder as {name: text}, and what to tell."""
    specialised = options.get("specialised", False)
    bound, choices = binding(graph, specialised)
    lowering = Lowering(graph, {"bound": bound, "variable": len(choices) > 1, "strict": options.get("strict", False)})
    outputs = lowering.run()
    axes = list(graph.axes)
    types = {d: PLAIN.get(d, f"assay::{d}") for d in set(PLAIN) | set(CANDIDATE)}
    if bound:
        types[bound] = "T"
    for name, value, dtype in outputs:
        if not isinstance(value, Value):
            raise Refused(f"the output '{name}' is complex", "return torch.view_as_real(...)")
        if dtype in ("f64", "c64", "c128"):
            raise Refused(f"the output '{name}' is f64: truths are computed in f64, so nothing can be held to it", "compute in f32")
    types["hidden"] = "double"
    chosen = [made for made, _, _, _ in lowering.chosen.values()]
    planner = Planner(outputs, lowering.inputs + chosen, axes, types)
    kernels, workspaces = planner.write()
    extra_axes = {}
    found, notes, distinct, ascending = domains(graph, lowering.uses, axes, extra_axes, {a for k in kernels for a in k.args})
    notes += lowering.notes
    own = {s.name for s in graph.inputs}
    for name, kind, _ in lowering.uses:
        if name not in own and kind == "distinct":
            raise Refused(
                f"several elements of a computed index ('{name}') may point to one place, and which of them wins is chance",
                "use an accumulating form (index_add, scatter_add, index_put_ with accumulate=True), or make the index an input",
            )
        if name not in own and kind == "ascending":
            raise Refused(f"a search through computed numbers ('{name}'): whether they are sorted is not known", "make them an input")
    used_inputs = set()
    for kernel in kernels:
        used_inputs |= set(kernel.args)
    inputs = {}
    dropped = []
    for spec, node in zip(graph.inputs, graph.placeholders):
        if spec.name not in used_inputs:
            dropped.append(spec.name)
            continue
        entry = {
            "shape": [shape_entry(e) for e in spec.tensor.shape],
            "dtype": "T" if spec.tensor.dtype == bound else spec.tensor.dtype,
        }
        if spec.origin == "scalar":
            entry = {"shape": None, "dtype": spec.tensor.dtype}
        inputs[spec.name] = entry
    if dropped:
        notes.append("no output hangs on " + ", ".join(dropped))
    op_axes = {}
    limits = axis_limits(graph, problem)
    for name, axis in graph.axes.items():
        if not mentions(name, graph, kernels):
            continue
        if specialised or name in lowering.bounded:
            op_axes[name] = {"type": "const", "value": axis["example"]}
            if not specialised:
                notes.append(f"{name} is {axis['example']}: a computed index runs along it, which reaches as far as the example's")
        else:
            op_axes[name] = {"type": "var", "min": axis["min"], "max": limits[name]}
        if problem.axes.get(name):
            op_axes[name]["description"] = printable(problem.axes[name])
    for name, expression in extra_axes.items():
        if expression.is_Integer:
            op_axes[name] = {"type": "const", "value": int(expression)}
        else:
            op_axes[name] = {"type": "expr", "expression": index.code(expression)}
    only_values(op_axes, graph, notes)
    op = {
        "schema": "assay.op/1",
        "name": identifier(problem.name)[:60],
        "summary": printable(problem.summary) or f"{problem.name}, imported from PyTorch.",
        "axes": op_axes,
    }
    if bound:
        op["dtypes"] = {"T": choices}
    recipes = Recipes(graph, inputs, types, list(op_axes))
    generated(graph, found, distinct, ascending, lowering.uses, recipes, notes)
    notes += recipes.notes
    for name, entry in inputs.items():
        if name in found:
            entry["domain"] = found[name]
    op["inputs"] = inputs
    op["outputs"] = outputs_of(graph, lowering, outputs, bound, inputs)
    constraints = [c for c in graph.constraints + lowering.constraints + at_least_one(graph) + recipes.constraints if not specialised]
    constraints = derived_axes(op_axes, constraints)
    if constraints:
        op["constraints"] = constraints[:64]
    op["reference"] = {"source": "reference.cu", "launch": "reference.json"}
    made = recipes.files(dump)
    if made:
        op["generator"] = {"source": "generator.cu", "launch": "generator.json"}
    op["precision"] = {"accumulate": "f32"}
    if lowering.products:
        op["precision"]["tensor_cores"] = True
    op["properties"] = properties(graph, kernels, op, lowering.atomics)
    if made:  # what a generator makes hangs on all of the input that it takes its seed from
        op["properties"] = [p for p in op["properties"] if not isinstance(p, dict)]
    if len(kernels) > 64:
        raise Refused(f"the function takes {len(kernels)} kernels", "split it into several")
    source = pathlib.Path(problem.source).read_text(errors="replace")
    provenance = {
        "schema": "assay.import/1",
        "kind": options["kind"],
        "function": printable(options.get("function", "")),
        "source_sha256": hashlib.sha256(source.encode("utf-8", "replace")).hexdigest(),
        "licence": licence_of(source),
        "torch": options.get("torch", ""),
        "options": {k: bool(options.get(k)) for k in ("strict", "specialised")},
        "axes": {n: a["example"] for n, a in graph.axes.items() if n in op_axes},
        "inferred": notes + graph.notes,
    }
    prologue = describe(op, graph, provenance)
    tables = table_text(planner)
    reference = prologue + '#include "assay/reference.cuh"\n\n'
    if bound:
        reference += "using T = ASSAY_T;\n\n"
    reference += tables + "\n".join(k.text for k in kernels)
    plan = launch(kernels, workspaces, "Real")
    workloads = []
    example = {n: op_axes[n] and graph.axes[n]["example"] for n in op_axes if n in graph.axes and op_axes[n]["type"] == "var"}
    if example and not problem.names_sizes and all(v and v <= op_axes[n]["max"] for n, v in example.items()):
        workloads.append({"axes": example, "note": "the example"})
    known = {n for n in op_axes if op_axes[n]["type"] == "var"}
    for w in problem.workloads:
        every = {**problem.fixed, **w["axes"]}
        kept = {n.lower(): v for n, v in every.items() if n.lower() in known}
        if set(kept) == known and all(op_axes[n]["min"] <= v <= op_axes[n]["max"] for n, v in kept.items()):
            workloads.append({"axes": kept, "note": printable(w.get("note", ""))})
    files = {
        "op.json": dump(op),
        "reference.cu": reference,
        "reference.json": dump(plan),
        "import.json": dump(provenance),
        **made,
    }
    if not lowering.chosen:  # a reference is told what was chosen; a candidate is not
        files["naive/kernel.cu"] = naive(prologue, tables, kernels, bound, types)
        files["naive/launch.json"] = dump(launch(kernels, workspaces, "f32"))
    if workloads:
        files["workloads.jsonl"] = "".join(json.dumps(w) + "\n" for w in workloads)
    return files, {"name": op["name"], "notes": provenance["inferred"], "kernels": len(kernels), "axes": provenance["axes"]}


def outputs_of(graph, lowering, outputs, bound, inputs):
    """Outputs in the function's order, then what the reference writes for the judge alone."""
    values = {name: (value, dtype) for name, value, dtype in outputs}
    found = {}
    for name, _ in graph.outputs:
        if name in lowering.chosen:
            made, _, _, relation = lowering.chosen[name]
            found[name] = {"shape": [shape_entry(e) for e in made.shape] or [1], "dtype": made.dtype, "relation": relation}
            continue
        value, dtype = values[name]
        if name in graph.updates:
            if graph.updates[name] not in inputs:
                raise Refused(f"'{graph.updates[name]}' is written to, and nothing is read of it", "return the new values instead")
            found[name] = {"updates": graph.updates[name]}
            continue
        found[name] = {"shape": [shape_entry(e) for e in value.shape] or [1], "dtype": "T" if dtype == bound else dtype}
        if kind_of(dtype) != "real" and value.kind == "real":
            # A whole number made of computed ones: near an edge either neighbour is honest.
            found[name]["relation"] = "allowance"
    for _, hidden, scores, _ in lowering.chosen.values():
        found[hidden] = {"shape": [shape_entry(e) for e in scores.shape], "hidden": True}
    return found


def mentions(name, graph, kernels):
    symbol = index.axis(name)
    shapes = [s.tensor.shape for s in graph.inputs] + [n.shape for _, n in graph.outputs]
    return any(symbol in sympy.sympify(e).free_symbols for shape in shapes for e in shape) or any(name in k.args for k in kernels)


def only_values(op_axes, graph, notes):
    """An axis whose own constraints leave one value is a constant."""
    for name, axis in op_axes.items():
        own = [c for c in graph.constraints if set(re.findall(r"[A-Za-z_]\w*", c)) - {"max", "min"} == {name}]
        if axis["type"] != "var" or not any("==" in c for c in own):
            continue
        tests = [compile(c.replace("/", "//").replace("&&", " and "), name, "eval") for c in own]
        words = {"__builtins__": {}, "max": max, "min": min}
        left = []
        for value in range(axis["min"], min(axis["max"], 4096) + 1):
            try:
                if all(eval(test, words, {name: value}) for test in tests):  # noqa: S307 - our own text
                    left.append(value)
            except ZeroDivisionError:
                continue
            if len(left) > 1:
                break
        if len(left) == 1:
            op_axes[name] = {"type": "const", "value": left[0]}
            notes.append(f"{name} is {left[0]}: the function's constraints leave no other")


def derived_axes(op_axes, constraints):
    """An axis that a constraint says is equal to an expression of others is derived from them, so that shapes can be found: (rest)."""
    words = lambda text: set(re.findall(r"[A-Za-z_]\w*", text)) - {"max", "min"}  # noqa: E731
    depends, kept = {}, []  # derived axis -> all that it hangs on
    for constraint in constraints:
        sides = constraint.split(" == ")
        for name, other in (sides, sides[::-1]) if len(sides) == 2 else ():
            used = words(other)
            every = used.union(*(depends.get(u, set()) for u in used))
            fits = op_axes.get(name, {}).get("type") == "var" and used and used <= set(op_axes) and name not in every
            if fits and not any(name in d for d in depends.values()):
                op_axes[name] = {**{k: v for k, v in op_axes[name].items() if k == "description"}, "type": "expr", "expression": other}
                depends[name] = every
                kept.append(f"{other} >= 1")
                break
        else:
            kept.append(constraint)
    return list(dict.fromkeys(kept))


def at_least_one(graph):
    """Constraints that keep extents from becoming empty: a window is no larger than what it slides over."""
    texts = []
    for shape in [n.shape for n in graph.nodes if hasattr(n.meta, "shape")]:
        for e in shape:
            e = sympy.sympify(e)
            if e.is_Integer or index.nonnegative(e - 1):
                continue
            if isinstance(e, index.FloorDiv) and index.nonnegative(e.args[0] - e.args[1]):
                continue
            # a / b + c >= 1 where a >= (1 - c) b: without a quotient of what may be negative.
            quotients = [part for part in sympy.Add.make_args(e) if isinstance(part, index.FloorDiv)]
            rest = e - quotients[0] if len(quotients) == 1 else None
            if rest is not None and rest.is_Integer:
                above, below = quotients[0].args
                text = f"{index.code(above, 1)} >= {index.code(sympy.expand((1 - rest) * below), 1)}"
            else:
                text = f"{index.code(e)} >= 1"
            if text not in texts:
                texts.append(text)
    return texts


def axis_limits(graph, problem):
    """The largest value of each axis: what the function asserts; else twice the largest workload's; 4096 where the problem
    names a size without an example; else sixteen times the example's."""
    used = {}
    for w in problem.workloads:
        for name, value in {**problem.fixed, **w["axes"]}.items():
            if isinstance(value, int):
                used[name.lower()] = max(used.get(name.lower(), 1), value)
    limits = {}
    for name, axis in graph.axes.items():
        if axis["max"] is not None:
            top = axis["max"]
        elif name in used:
            top = 2 * largest_power(used[name])
        elif problem.names_sizes and name in {h.lower() for h in problem.hints}:
            top = 4096
        else:
            top = max(64, 16 * largest_power(axis["example"] or 1))
        limits[name] = max(top, axis["min"])
    return limits


def shape_entry(e):
    e = sympy.sympify(e)
    return int(e) if e.is_Integer else index.code(e)


def launch(kernels, workspaces, real):
    plan = {
        "schema": "assay.launch/1",
        "kernels": [{"entry": k.entry, "grid": k.grid, "block": k.block, "args": k.args} for k in kernels],
    }
    if workspaces:
        dtype = {"real": real, "int": "i64", "bool": "bool"}
        plan["workspace"] = [
            {"name": n, "dtype": dtype[kind], "shape": [shape_entry(e) for e in shape] or [1]} for n, kind, shape in workspaces
        ]
    return plan


def describe(op, graph, provenance):
    lines = [f"// {op['name']}: {op['summary']}", "//", "// Lowered from PyTorch; the comments quote the lines that it came from."]
    if provenance["licence"]:
        lines.append(f"// {provenance['licence']}")
    return "\n".join(lines) + "\n"


def licence_of(source):
    found = re.search(r"^[#\s]*((?:SPDX-License-Identifier|Copyright|License)[^\n]{0,160})", source, re.M | re.I)
    return printable(found[1].strip()) if found else ""


def table_text(planner):
    text = ""
    for value, name in planner.tables.items():
        ctype = {"real": "double", "int": "int64", "bool": "bool"}[value.kind]
        numbers = ", ".join(("true" if n else "false") if value.kind == "bool" else literal(n) for n in value.numbers)
        text += f"__device__ const {ctype} {name}[] = {{{numbers}}};\n"
    return text + ("\n" if text else "")


def literal(number):
    if isinstance(number, float):
        if number != number or number in (float("inf"), float("-inf")):
            raise Refused("a constant tensor holds numbers that are not finite", "give it to the function as an input")
        return repr(number)
    return f"{int(number)}ll"


def naive(prologue, tables, kernels, bound, types):
    text = prologue + "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <cuda_fp8.h>\n\n"
    if bound:
        text += "using T = ASSAY_T;\n"
    text += SHIM + "\n" + tables.replace("const double", "const float")
    body = "\n".join(k.text for k in kernels).replace(".settled()", "")
    # A Real holds any integer that an output may have; a float does not.
    body = re.sub(r"^(\s+\w+\[.*\] = )Real\(int64\((.*)\)\);$", r"\1\2;", body, flags=re.M)
    return text + body.replace("__global__ void", 'extern "C" __global__ void')


def dump(document):
    return json.dumps(document, indent=2) + "\n"

