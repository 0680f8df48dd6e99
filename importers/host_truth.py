"""Runs an imported reference on the host, in double, without the emulator: the C++ compiler takes its text, with the
reference language's words as plain functions of double. For tests of lowering alone; the judge never does this.
"""

import ctypes
import json
import math
import pathlib
import re
import subprocess
import tempfile

import torch

SHIM = r"""
#include <cmath>
#include <cstdint>
typedef long long int64;
typedef double Real;
typedef bool Decision;
typedef double T;
static int64 thread_number;
static int64 thread_index() { return thread_number; }
namespace assay {
typedef double bf16; typedef double f16; typedef double f32; typedef double f8e4m3; typedef double f8e5m2;
static double infinity() { return INFINITY; }
}
struct e4m3 {};
static double may_rescale(double x) { return x; }
template <class U> double may_round_to(double x) { return x; }
template <class U> double may_round_to(double x, double) { return x; }
static double eight(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  int e; std::frexp(x, &e); e = e - 1 < -6 ? -6 : e - 1;
  const double q = std::ldexp(1.0, e - 3), r = std::nearbyint(x / q) * q;
  return r > 448 ? 448 : r < -448 ? -448 : r;
}
template <class U> double round_to(double x) { return eight(x); }
static bool less(double a, double b) { return a < b; }
static bool less_equal(double a, double b) { return a <= b; }
static bool equal(double a, double b) { return a == b; }
template <class N> bool greater(N a, N b) { return a > b; }
template <class N> bool lesser(N a, N b) { return a < b; }
template <class N> bool greater_or_equal(N a, N b) { return a >= b; }
template <class N> bool lesser_or_equal(N a, N b) { return a <= b; }
static bool holds(bool x) { return x; }
template <class U> U select(bool c, U x, U y) { return c ? x : y; }
static int64 whole(double x) { return (int64)x; }
static int64 wrapped(int64 i, int64 n) { return i < 0 ? i + n : i; }
static int64 larger_of(int64 a, int64 b) { return a < b ? b : a; }
static int64 smaller_of(int64 a, int64 b) { return a < b ? a : b; }
static int64 floor_div(int64 a, int64 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static int64 floor_mod(int64 a, int64 b) { return a - floor_div(a, b) * b; }
static double max(double a, double b) { return a != a || a >= b ? a : b; }
static double min(double a, double b) { return a != a || a <= b ? a : b; }
static double average(double s, double n) { return s / n; }
static double affine(double x, double m, double f, double s) { return (x - m) * f + s; }
static double rsqrt(double x) { return 1 / std::sqrt(x); }
static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
static double softplus(double x) { return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
static double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
static double turn_cos(int64 k, int64 n) { return std::cos(2 * M_PI * (double)(k % n) / (double)n); }
static double turn_sin(int64 k, int64 n) { return std::sin(2 * M_PI * (double)(k % n) / (double)n); }
#define abs std::fabs
#define round std::nearbyint
#define __global__ static
#define __device__ static
"""


def evaluate(expression, axes):
    if isinstance(expression, int):
        return expression
    names = {"ceil_div": lambda a, b: -(-a // b), "round_up": lambda a, b: -(-a // b) * b, "min": min, "max": max}
    return eval(expression.replace("/", "//"), {"__builtins__": {}}, {**names, **axes})  # noqa: S307 - our own text


def satisfied(op, axes):
    try:
        return all(evaluate(re.sub(r"&&", " and ", c), axes) for c in op.get("constraints", []))
    except ZeroDivisionError:
        return False


def axes_of(op, generator, reach, examples):
    """Random extents that satisfy the op's constraints, or None. Later ones are like the example's, one by one."""
    for attempt in range(1200):
        axes = {}
        for name, axis in op["axes"].items():
            if axis["type"] == "const":
                axes[name] = axis["value"]
            elif axis["type"] == "var":
                high = min(axis["max"], max(axis["min"], reach))
                axes[name] = int(torch.randint(axis["min"], high + 1, (), generator=generator))
                if attempt >= 200 and name in examples and int(torch.randint(0, 3, (), generator=generator)) > 0:
                    axes[name] = min(max(examples[name] * int(torch.randint(1, 3, (), generator=generator)), axis["min"]), axis["max"])
        for name, axis in op["axes"].items():
            if axis["type"] == "expr":
                axes[name] = evaluate(axis["expression"], axes)
        if satisfied(op, axes):
            return axes
    return None


WIDTHS = {"i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}

EIGHT = {"f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}


def integer(text, axes):
    """A C++ index expression over axes."""
    return int(eval(text.replace("/", "//"), {"__builtins__": {}}, dict(axes)))  # noqa: S307 - our own text


def generated(name, shape, spec, text, axes, generator):
    """What the op's generator might make of an input: its words, with torch's random numbers."""
    line = re.search(rf"^  {name}\[i\] = (.*);$", text, re.M)[1]
    count = math.prod(shape)
    draw = lambda *a, **k: torch.randint(*a, generator=generator, **k)  # noqa: E731
    if found := re.search(r"permuted\(i, (.+), seed\)", line):
        return torch.randperm(integer(found[1], axes), generator=generator)[:count].reshape(shape)
    if found := re.search(r"page_of\(.*, ([^,]+), seed\)", line):
        return draw(0, integer(found[1], axes), shape)
    if found := re.search(r"offset_of\(i, (.+), ([^,]+), seed\)", line):
        total = integer(found[2], axes)
        inner = draw(0, total + 1, (count - 2,)).sort().values if count > 2 else torch.empty(0, dtype=torch.int64)
        return torch.cat([torch.zeros(1), inner, torch.full((1,), total)])[:count]
    if "ascending(" in line:
        values = torch.rand(shape, generator=generator, dtype=torch.float64).sort(-1).values * 4 - 2
        return (values * 4).floor() if spec["dtype"] in WIDTHS else values
    if "class_of(" in line:
        return torch.nn.functional.one_hot(draw(0, shape[-1], shape[:-1]), shape[-1])
    seen = torch.ones(shape, dtype=torch.bool).tril(shape[-1] - shape[-2])
    return seen if spec["dtype"] == "bool" else torch.zeros(shape, dtype=torch.float64).masked_fill(~seen, -math.inf)


def inputs_of(op, axes, generator, made=""):
    """Random inputs of a case; `made` is the text of the op's generator."""
    found = {}
    for name, spec in op["inputs"].items():
        shape = [evaluate(e, axes) for e in spec["shape"] or []]
        domain = spec.get("domain", {})
        kind = domain.get("kind", "any")
        if kind == "generated":
            value = generated(name, shape, spec, made, axes, generator)
        elif kind == "choice":
            value = torch.tensor(domain["values"])[torch.randint(0, len(domain["values"]), shape, generator=generator)]
            value = value.to(torch.float32).to(torch.float64)
        elif kind == "index":
            value = torch.randint(0, axes[domain["of"]], shape, generator=generator)
        elif kind == "range" and spec["dtype"] in WIDTHS:
            value = torch.randint(int(domain["low"]), int(domain["high"]) + 1, shape, generator=generator)
        elif kind == "range":
            value = torch.rand(shape, generator=generator, dtype=torch.float64) * (domain["high"] - domain["low"]) + domain["low"]
        elif spec["dtype"] in WIDTHS:
            value = torch.randint(0, 2, shape, generator=generator)
        else:
            value = torch.randn(shape, generator=generator, dtype=torch.float64)
        if spec["dtype"] in EIGHT:
            value = value.to(EIGHT[spec["dtype"]])  # numbers that 8 bits hold
        found[name] = value.to(WIDTHS.get(spec["dtype"], torch.float64)).contiguous()
    return found


class Host:
    """A compiled reference."""

    def __init__(self, files):
        self.op = json.loads(files["op.json"])
        self.plan = json.loads(files["reference.json"])
        text = files["reference.cu"].replace('#include "assay/reference.cuh"', SHIM).replace("using T = ASSAY_T;", "").replace(".settled()", "")
        text = re.sub(r"Out<[^>]*>\*", "double*", text)
        text = re.sub(r"const (float|assay::\w+)\*", "const double*", text)
        text = re.sub(r"([(,]\s*)(?:float) (\w+)", r"\1double \2", text)
        for kernel in self.plan["kernels"]:
            head = re.search(r"__global__ void " + kernel["entry"] + r"\(([^)]*)\)", text)
            count = len(head[1].split(","))
            types = [re.sub(r"\s*\w+$", "", p.strip()) for p in head[1].split(",")]
            numbers = {n for n, spec in self.op["inputs"].items() if spec["shape"] is None}
            given = zip(types, kernel["args"])
            casts = ", ".join(
                f"({t})a[{i}]" if "*" in t else f"*(const {'double' if t == 'double' else t}*)a[{i}]" if n in numbers else f"(int64)(intptr_t)a[{i}]"
                for i, (t, n) in enumerate(given)
            )
            text += f'extern "C" void run_{kernel["entry"]}(void** a, int64 n) {{ for (thread_number = 0; thread_number < n; ++thread_number) {kernel["entry"]}({casts}); }}\n'
            assert count == len(kernel["args"])
        self.folder = tempfile.TemporaryDirectory()
        source = pathlib.Path(self.folder.name) / "reference.cc"
        source.write_text(text)
        library = source.with_suffix(".so")
        done = subprocess.run(["c++", "-O1", "-w", "-shared", "-fPIC", "-o", str(library), str(source)], capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(done.stderr[:2000] + "\n" + files["reference.cu"])
        self.library = ctypes.CDLL(str(library))

    def run(self, axes, inputs):
        buffers = dict(inputs)
        for name, spec in self.op["outputs"].items():
            if name in buffers:
                continue  # a choice, which the reference reads
            if "updates" in spec:
                spec = self.op["inputs"][spec["updates"]]
            buffers[name] = torch.full([evaluate(e, axes) for e in spec["shape"]], math.nan, dtype=torch.float64)
        for spec in self.plan.get("workspace", []):
            dtype = {"Real": torch.float64, "i64": torch.int64, "bool": torch.bool}[spec["dtype"]]
            buffers[spec["name"]] = torch.zeros([evaluate(e, axes) for e in spec["shape"]], dtype=dtype)
        for kernel in self.plan["kernels"]:
            threads = evaluate(kernel["grid"][0], axes) * kernel["block"][0]
            values = [buffers[a].data_ptr() if a in buffers else axes[a] for a in kernel["args"]]
            array = (ctypes.c_void_p * len(values))(*[ctypes.c_void_p(v) for v in values])
            getattr(self.library, "run_" + kernel["entry"])(array, ctypes.c_longlong(threads))
        return {name: buffers[name] for name in self.op["outputs"]}


def compare(path, function, cases=4, reach=9, seed=1):
    """Imports FILE:FUNCTION, outside of the jail, and runs reference and torch in f64 on random cases: (worst relative
    difference, where it was), or the refusal as text. For problems that are our own."""
    from assay_import import export, opfile, problems, truth
    from assay_import.graph import Refused

    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "problem.py"
        copy.write_text(pathlib.Path(path).read_text())
        try:
            problem = problems.load("torch", str(copy), function)
            exported, graph = export.whole(problem)
            files, _ = opfile.make(problem, graph, {"kind": "torch", "function": function})
        except Refused as refused:
            return refused.what
        host = Host(files)
        examples = export.tensors_of(problem)
        known = json.loads(files["import.json"])["axes"]
        generator = torch.Generator().manual_seed(seed)
        worst, where = 0.0, ""
        for _ in range(cases):
            axes = axes_of(host.op, generator, reach, known)
            if axes is None:
                raise AssertionError(f"no shape satisfies {host.op.get('constraints')}")
            given = inputs_of(host.op, axes, generator, files.get("generator.cu", ""))
            expected = truth.outputs_of(exported, graph, examples, given, axes, False)
            chosen = {n for n, o in host.op["outputs"].items() if isinstance(o.get("relation"), dict)}
            got = host.run(axes, {**given, **{n: expected[n].contiguous() for n in chosen}})
            for name, value in expected.items():
                if name in chosen:
                    continue
                difference = relative(value.to(torch.float64).reshape(-1), got[name].reshape(-1))
                if difference > 1e-12 and comparable(value, got[name]):
                    # What cancels is as exact as what it is made of: what f32 arithmetic errs by says how large that is.
                    coarse = truth.outputs_of(exported, graph, examples, given, axes, False, torch.float32)[name]
                    made = size_of(given) if expected_is_noise(value, given) else made_of(value, coarse)
                    difference = relative(value.to(torch.float64).reshape(-1), got[name].reshape(-1), made)
                if difference > worst:
                    worst, where = difference, f"{name} at {axes}"
        return worst, where


def comparable(expected, got):
    """Are both finite in the same places, so that there is a difference to explain?"""
    a, b = expected.to(torch.float64).reshape(-1), got.reshape(-1)
    return a.shape == b.shape and bool((a.isfinite() == b.isfinite()).all())


def size_of(given):
    """The largest of the inputs' numbers, or 1."""
    floats = [v[v.isfinite()].abs().max() for v in given.values() if v.dtype == torch.float64 and bool(v.isfinite().any())]
    return max([1.0, *(float(f) for f in floats)])


def made_of(exact, coarse):
    """By which f64's roundings, were they 32 times as large, would be told as 1e-12 (importers/check.cc)."""
    apart = (exact.to(torch.float64) - coarse.to(torch.float64)).abs()
    apart = apart[apart.isfinite()]
    return float(apart.max()) * 2.0**-24 / 1e-12 if apart.numel() else 0.0


def expected_is_noise(expected, given):
    """Is all that torch computed the rounding of numbers that cancel? A normalised row of one element, say, whose gradient is zero: no
    digit of it is right, and what it is made of is the measure. Elements that mean something are larger than that by far."""
    finite = expected.to(torch.float64)[expected.to(torch.float64).isfinite()]
    return bool((finite.abs() <= 2.0**-40 * size_of(given)).all())


def relative(expected, got, reach=0.0):
    """The largest difference, relative to the element, to the largest one, or to `reach`."""
    if expected.shape != got.shape:
        return math.inf
    differ = ~((expected == got) | (expected.isnan() & got.isnan()))
    if not bool(differ.any()):
        return 0.0
    a, b = expected[differ], got[differ]
    if not bool((a.isfinite() & b.isfinite()).all()):
        return math.inf
    scale = expected[expected.isfinite()].abs().max().clamp(min=reach)
    return float(((a - b).abs() / torch.maximum(a.abs(), scale)).max())
