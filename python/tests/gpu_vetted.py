"""Vetted kernels on a GPU: gpu_vetted.py FOLDER, where FOLDER is what vet_all.sh left. Needs torch and g++.

Every kernel is called from torch, under torch.compile and from C++, and launched by hand: the results are
the same bits, and torch's in f64 within rounding. Then each refusal is tried, the pairing of forward and
backward, and the watch. Ends with exit code 1 where anything is not as it must be.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import Any

try:
    import torch

    GPU = torch.cuda.is_available()
except ImportError:
    GPU = False
if not GPU:
    print("skipped: needs torch and a GPU")
    sys.exit(0)

import gpu_cases

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
ROUNDING = {"f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11}
# Additions in the order of arrival: other bits from call to call.
ANY_ORDER = {"scatter_add", "embedding_rmsnorm_backward"}
failures: list[str] = []


def report(what: str, good: bool, detail: str = "") -> None:
    print(f"{'ok  ' if good else 'FAIL'} {what}{': ' + detail if detail else ''}", flush=True)
    if not good:
        failures.append(what)


def load(folder: pathlib.Path) -> Any:
    name = "vetted_" + re.sub(r"\W", "_", folder.name)
    spec = importlib.util.spec_from_file_location(name, folder / "kernel.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def as_tuple(result: Any) -> tuple[Any, ...]:
    return (result,) if isinstance(result, torch.Tensor) else tuple(result)


def same(a: tuple[Any, ...], b: tuple[Any, ...], op: str, dtype: str) -> bool:
    if op not in ANY_ORDER:
        return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    return all(near(x, y.double(), dtype) <= 1 for x, y in zip(a, b, strict=True))


def near(got: Any, want: Any, dtype: str) -> float:
    """The largest error, in units of what rounding may do."""
    want = want.double()
    scale = float(want.square().mean().sqrt())
    allowed = 8 * ROUNDING[dtype] * want.abs() + (8 * ROUNDING[dtype] + 1e-5) * scale
    return float(((got.double() - want).abs() / allowed).max())


# --- by hand: launch.json and the PTX, read without anything that a loader does


def value(expression: Any, axes: dict[str, int]) -> int:
    text = str(expression).replace("/", "//").replace("&&", " and ").replace("||", " or ")
    names = {"ceil_div": lambda a, b: -(-a // b), "round_up": lambda a, b: -(-a // b) * b}
    return int(eval(text, {"__builtins__": {}, "min": min, "max": max, **names}, dict(axes)))


def by_hand(folder: pathlib.Path, module: Any, args: list[Any], given: dict[str, int]) -> Any:
    driver = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *parameters: Any) -> None:
        code = getattr(driver, name)(*parameters)
        assert code == 0, f"{name}: {code}"

    plan = json.loads((folder / "launch.json").read_text())
    ptx = (folder / "kernel.ptx").read_text()
    tensors = {s.name: a for s, a in zip(module.INPUTS, args, strict=True)}
    axes = module.solve({n: a.shape for n, a in tensors.items() if hasattr(a, "shape")}, given)
    values: dict[str, Any] = {**axes, **tensors}
    outputs = []
    for spec in module.OUTPUTS:
        shape = [value(extent, axes) for extent in module.SHAPES[spec.name]]
        if spec.updates:
            outputs.append(tensors[spec.updates].clone())
            values[spec.updates] = outputs[-1]
        else:
            fill = torch.full(shape, 77, device="cuda")
            outputs.append(fill.to(module._TORCH_DTYPES[spec.dtype]))
        values[spec.name] = outputs[-1]
    for buffer in plan.get("workspace", []):
        assert buffer["dtype"] == "f32"
        shape = [value(extent, axes) for extent in buffer["shape"]]
        content = 0.0 if buffer.get("init") == "zero" else math.nan
        values[buffer["name"]] = torch.full(shape, content, device="cuda")
    torch.cuda.synchronize()
    handle = ctypes.c_void_p()
    image = next(folder.glob("kernel.sm_*.cubin")).read_bytes()
    call("cuModuleLoadData", ctypes.byref(handle), image)
    for kernel in plan["kernels"]:
        symbols = re.findall(r"\.entry\s+(\S+?)\(([^)]*)\)", ptx)
        (symbol, parameters) = next(s for s in symbols if kernel["entry"] in s[0])
        types = re.findall(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)", parameters)
        if not types:
            types = re.findall(r"\.param \.(\w+)", parameters)
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), handle, symbol.encode())
        kept: list[Any] = []
        for name, kind in zip(kernel["args"], types, strict=True):
            one = values[name]
            if isinstance(one, torch.Tensor):
                kept.append(ctypes.c_uint64(one.data_ptr()))
            elif kind == "f32":
                kept.append(ctypes.c_float(one))
            else:
                kept.append({"u32": ctypes.c_int32, "s32": ctypes.c_int32}.get(kind, ctypes.c_int64)(one))
        pointers = (ctypes.c_void_p * len(kept))(*(ctypes.addressof(k) for k in kept))
        grid = [value(e, axes) for e in kernel["grid"]] + [1, 1]
        block = [value(e, axes) for e in kernel["block"]] + [1, 1]
        shared = value(kernel.get("shared_bytes", 0), axes)
        call("cuLaunchKernel", function, *grid[:3], *block[:3], shared, None, pointers, None)
    call("cuCtxSynchronize")
    call("cuModuleUnload", handle)
    return tuple(outputs)


# --- from C++

CPP = """
#include <cstdio>
#include "kernel.hpp"
#include "gpu_host.hpp"
namespace vetted = NAMESPACE;
using vetted::DType;
template <class Act> std::string refusal(Act act) {
  try { act(); } catch (const vetted::Refused& refused) { return refused.what(); }
  return "taken";
}
int main() {
  gpu_host::Context context;
  vetted::Call call;
FILL
  vetted::Kernel kernel(FOLDER);
  kernel(call);
  context.synchronise();
KEEP
  {
    // What is updated may lie where it lay.
    auto placed = call;
PLACE
    kernel(placed);
    context.synchronise();
KEPT
  }
  auto bad = call;
  bad.FIRST.dtype = DType::u8;
  std::puts(refusal([&] { kernel(bad); }).c_str());
  bad = call;
  bad.FIRST.data = &bad;
  std::puts(refusal([&] { kernel(bad); }).c_str());
  bad = call;
  bad.OUTPUT.data = bad.OTHER.data;
  std::puts(refusal([&] { kernel(bad); }).c_str());
  bad = call;
  bad.FIRST.shape[0] = std::int64_t{1} << 40;
  std::puts(refusal([&] { kernel(bad); }).c_str());
  bad = call;
  bad.FIRST.shape.push_back(3);
  std::puts(refusal([&] { kernel(bad); }).c_str());

  // The watch, with the kernel itself as the reference: nothing exceeds its allowance.
  vetted::Kernel other(FOLDER);
  kernel.watch = std::make_shared<vetted::Watch>([&](const vetted::Call& c, void* s) { other(c, s); }, 1.0);
  kernel(call);
  const auto& tally = kernel.watch->outputs().begin()->second;
  std::printf("watched %llu failed %llu exceeded %llu\\n", (unsigned long long)tally.checked,
              (unsigned long long)kernel.watch->failed(), (unsigned long long)tally.exceeded);
}
"""


def from_cpp(folder: pathlib.Path, module: Any, args: list[Any], given: dict[str, int]) -> Any:
    text = (folder / "kernel.hpp").read_text()
    namespace = re.search(r"^namespace (assay_kernels::\S+) \{", text, re.M)
    assert namespace is not None
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        fill, keep, place, kept, outputs = "", "", "", "", []
        for spec, arg in zip(module.INPUTS, args, strict=True):
            if isinstance(arg, torch.Tensor):
                raw = arg.cpu().contiguous()
                size = raw.numel() * raw.element_size()
                (work / spec.name).write_bytes(ctypes.string_at(raw.data_ptr(), size))
                shape = ", ".join(map(str, arg.shape))
                fill += (
                    f'  call.{spec.name} = {{context.read("{work / spec.name}"), '
                    f"DType::{spec.dtype}, {{{shape}}}, {{}}}};\n"
                )
            else:
                fill += f"  call.{spec.name} = {arg!r};\n"
        tensors = {s.name: a for s, a in zip(module.INPUTS, args, strict=True)}
        axes = module.solve({n: a.shape for n, a in tensors.items() if hasattr(a, "shape")}, given)
        for spec in module.OUTPUTS:
            shape = module.shapes(axes)[spec.name]
            words = ", ".join(map(str, shape))
            size = math.prod(shape) * module._size_of(spec.dtype)
            fill += f"  call.{spec.name} = {{context.fresh({size}), DType::{spec.dtype}, {{{words}}}, {{}}}};\n"
            keep += f'  context.write(call.{spec.name}.data, {size}, "{work / spec.name}.out");\n'
            outputs.append((spec, shape, work / f"{spec.name}.out"))
            if spec.updates:
                place += f'    placed.{spec.updates}.data = context.read("{work / spec.updates}");\n'
                place += f"    placed.{spec.name}.data = placed.{spec.updates}.data;\n"
                kept += f'    context.write(placed.{spec.name}.data, {size}, "{work / spec.name}.placed");\n'
        source = CPP.replace("NAMESPACE", namespace[1]).replace("FILL", fill).replace("KEEP", keep)
        source = source.replace("PLACE", place).replace("KEPT", kept)
        source = source.replace("FOLDER", json.dumps(str(folder)))
        output = module.OUTPUTS[0]
        other = next(s.name for s in module.INPUTS if s.name != output.updates)
        source = source.replace("OTHER", other).replace("FIRST", module.INPUTS[0].name).replace("OUTPUT", module.OUTPUTS[0].name)
        (work / "main.cc").write_text(source)
        here = pathlib.Path(__file__).parent
        command = ["g++", "-std=c++17", "-O0", "-Wall", "-Wextra", f"-I{folder}", f"-I{here}"]
        built = subprocess.run(
            [*command, str(work / "main.cc"), "-o", str(work / "main"), "-ldl"],
            capture_output=True,
            text=True,
        )
        assert built.returncode == 0, built.stderr[:4000]
        ran = subprocess.run([str(work / "main")], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr[-2000:] + ran.stdout[-2000:]
        results = []
        for spec, shape, file in outputs:
            flat = torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8)
            results.append(flat.view(module._TORCH_DTYPES[spec.dtype]).reshape(shape).cuda())
            placed = file.with_suffix(".placed")
            assert not spec.updates or placed.read_bytes() == file.read_bytes(), "in place: other bits"
        return tuple(results), ran.stdout


# --- all of them


def try_kernel(folder: pathlib.Path) -> None:
    module = load(folder)
    op, dtype = module.NAME, folder.name.rsplit("-", 1)[1]
    what = f"{op} {dtype}"
    args, given = gpu_cases.arguments(op, DTYPES[dtype])
    function = getattr(module, op)
    got = as_tuple(function(*args, **given))
    torch.cuda.synchronize()
    want = gpu_cases.wanted(op, args, given)
    worst = max(near(g, w, dtype) for g, w in zip(got, want, strict=True))
    report(f"{what}: torch", worst <= 1, f"{worst:.3g} of what rounding may do")
    hand = by_hand(folder, module, args, given)
    report(f"{what}: the launch by hand", same(got, hand, op, dtype))
    small, few = gpu_cases.arguments(op, DTYPES[dtype], small=True)
    hand = by_hand(folder, module, small, few)
    report(f"{what}: another shape", same(as_tuple(function(*small, **few)), hand, op, dtype))

    torch._dynamo.reset()  # Or all kernels count as versions of this one lambda, of which eight may be.
    compiled = torch.compile(lambda *a: function(*a, **given), fullgraph=True)
    report(f"{what}: torch.compile", same(as_tuple(compiled(*args)), got, op, dtype))
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        other = as_tuple(function(*args, **given))
    side.synchronize()
    report(f"{what}: another stream", same(other, got, op, dtype))
    from_program, said = from_cpp(folder, module, args, given)
    report(f"{what}: C++", same(from_program, got, op, dtype))
    lines = said.splitlines()
    texts = [
        "was vetted for",
        "does not lie in the memory of a GPU",
        "overlap|its memory ends before",
        "was vetted for",
        "must be",
    ]
    refused = [line for line in lines if not line.startswith(("  fix:", "watched"))]
    good = len(refused) == 5 and "taken" not in refused
    good = good and all(re.search(text, line) for text, line in zip(texts, refused, strict=True))
    report(f"{what}: C++ refuses", good, "" if good else said)
    report(f"{what}: C++ watches", "watched 1 failed 0 exceeded 0" in said, lines[-1])

    def refusal(act: Any) -> str:
        try:
            act()
        except module.Refused as refused:
            return str(refused)
        return "taken"

    first = args[0]
    for name, bad, words in (
        ("a wrong dtype", first.double(), "was vetted for"),
        ("a CPU tensor", first.cpu(), "lies on cpu"),
        ("strides", torch.stack([first, first], -1)[..., 0], "strides"),
        ("a dimension more", first[None], "dimensions"),
    ):
        said = refusal(lambda bad=bad: function(bad, *args[1:], **given))
        report(f"{what}: refuses {name}", words in said and "fix:" in said, said.split("\n")[0])
    try_unseen(module, what, args, given)
    try_graph(module, what, args, given, got, op, dtype)
    empty = refusal(lambda: function(first[:0], *args[1:], **given))
    report(f"{what}: refuses an extent outside", "was vetted for" in empty, empty.split("\n")[0])


def try_unseen(module: Any, what: str, args: list[Any], given: dict[str, int]) -> None:
    """What is longer than anything that the judge ran is refused, and taken where that is said."""
    tensors = {s.name: a.shape for s, a in zip(module.INPUTS, args, strict=True) if hasattr(a, "shape")}
    axes = module.solve(tensors, given)
    kernel, said = module.KERNEL, []
    for axis in module.AXES:
        if axis.tried >= axis.high:
            continue
        longer = {**axes, axis.name: axis.tried + 1}
        try:
            kernel.check_axes(longer)
            said.append("taken")
        except module.Refused as refused:
            said.append(str(refused).split("\n")[0])
    report(f"{what}: refuses what nobody tried", all("the judge ran" in s for s in said), str(said[:1]))


def try_graph(
    module: Any, what: str, args: list[Any], given: dict[str, int], got: Any, op: str, dtype: str
) -> None:
    """Captured once, replayed with other contents."""
    function = getattr(module, op)
    static = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
    for each in static:
        if isinstance(each, torch.Tensor) and each.is_floating_point():
            each.zero_()
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    module.KERNEL.watch(lambda *a, **g: 1 / 0, rate=1.0)  # must not be asked
    with torch.cuda.graph(graph):
        results = as_tuple(function(*static, **given))
    failed = module.KERNEL.watcher.failed
    module.KERNEL.unwatch()
    for each, source in zip(static, args, strict=True):
        if isinstance(each, torch.Tensor):
            each.copy_(source)
    graph.replay()
    torch.cuda.synchronize()
    report(f"{what}: a CUDA graph", failed == 0 and same(results, got, op, dtype))


def try_images(folder: pathlib.Path) -> None:
    """The PTX alone does as well; a changed file does not."""
    import shutil

    with tempfile.TemporaryDirectory() as name:
        for case in ("ptx", "changed"):
            copy = pathlib.Path(name) / f"{case}-f32"
            shutil.copytree(folder, copy)
            cubin = next(copy.glob("*.cubin"))
            if case == "ptx":
                cubin.unlink()
            else:
                cubin.write_bytes(cubin.read_bytes()[:-1] + b"?")
            module = load(copy)
            x = torch.randn(5, 7, device="cuda")
            try:
                y = module.softmax(x)
                good = case == "ptx" and bool(torch.allclose(y, torch.softmax(x, -1), atol=1e-6))
                report(f"softmax: {case}", good)
            except module.Refused as refused:
                report(f"softmax: {case}", case == "changed", str(refused).split("\n")[0])


def try_chip(folder: pathlib.Path) -> None:
    module = load(folder)
    try:
        module.softmax(torch.randn(5, 7, device="cuda"))
        report("another chip is refused", False, "taken")
    except module.Refused as refused:
        report("another chip is refused", "was vetted for sm_80" in str(refused), str(refused))


def try_gradient(folder: pathlib.Path) -> None:
    forward, backward = load(folder / "rms_norm-f32"), load(folder / "rms_norm_backward-f32")
    rstd = lambda v: torch.rsqrt(v["x"].square().mean(-1) + 1e-6)  # noqa: E731
    forward.KERNEL.differentiable(backward, feed={"rstd": rstd})
    x = torch.randn(33, 129, device="cuda", requires_grad=True)
    weight = torch.randn(129, device="cuda", requires_grad=True)
    for name, function in (
        ("autograd", forward.rms_norm),
        ("autograd under torch.compile", torch.compile(forward.rms_norm, fullgraph=True)),
    ):
        got = torch.autograd.grad(function(x, weight, 1e-6).square().sum(), (x, weight))
        want = torch.autograd.grad(gpu_cases.rms_norm(x, weight, 1e-6).square().sum(), (x, weight))
        good = all(torch.allclose(g, w, rtol=1e-3, atol=1e-3) for g, w in zip(got, want, strict=True))
        report(f"rms_norm: {name}", good)


def try_watch(folder: pathlib.Path) -> None:
    module = load(folder / "softmax-f32")
    x = torch.randn(64, 256, device="cuda")

    def seconds(calls: int) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            module.softmax(x)
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / calls

    seconds(2000)
    plain = min(seconds(5000) for _ in range(3))
    module.KERNEL.watch(lambda x: torch.softmax(x, -1), rate=1e-3, seed=1)
    watched = min(seconds(5000) for _ in range(3))
    print(f"     a call: {plain * 1e6:.2f} us, watched at 1 in 1,000: {watched * 1e6:.2f} us "
          f"({100 * (watched / plain - 1):+.1f} %)")  # fmt: skip
    checked = module.KERNEL.watcher.outputs["y"]
    good = checked.checked > 3 and checked.exceeded == 0
    report("watch: a right kernel exceeds nothing", good, f"{checked.checked} calls checked")

    calls, real = 0, module.Kernel._launch

    def wrong_later(module_: Any, launch: Any, ready: Any, values: Any, *rest: Any) -> None:
        nonlocal calls
        real(module_, launch, ready, values, *rest)
        calls += 1
        if calls > 10_000:
            values["y"][7, 3] *= 1.01

    found: list[int] = []
    module.Kernel._launch = staticmethod(wrong_later)
    module.KERNEL.watch(
        lambda x: torch.softmax(x, -1),
        rate=1e-2,
        seed=2,
        on_check=lambda check: found.append(check.call) if check.exceeded else None,
    )
    while not found and calls < 20_000:
        module.softmax(x)
    module.Kernel._launch = staticmethod(real)
    module.KERNEL.unwatch()
    good = bool(found) and 10_000 < found[0] < 10_000 + 1_000
    report("watch: a kernel that goes wrong after 10,000 calls", good, f"found at call {found}")


def main() -> int:
    folder = pathlib.Path(sys.argv[1]).resolve()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    kernels = sorted(each for each in folder.iterdir() if (each / "kernel.py").exists())
    for each in kernels:
        if each.name.endswith("sm_80"):
            try_chip(each)
            continue
        try:
            try_kernel(each)
        except Exception as error:  # the others are tried all the same
            report(each.name, False, f"{type(error).__name__}: {error}")
    for name, part in (
        ("images", lambda: try_images(folder / "softmax-f32")),
        ("gradient", lambda: try_gradient(folder)),
        ("watch", lambda: try_watch(folder)),
    ):
        try:
            part()
        except Exception as error:
            report(name, False, f"{type(error).__name__}: {error}")
    print(f"{len(kernels)} vetted kernels, {len(failures)} failures")
    return 1 if failures or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
