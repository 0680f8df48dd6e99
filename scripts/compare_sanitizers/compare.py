#!/usr/bin/env python3
"""compute-sanitizer's tools on corpus/buggy and corpus/patterns, on a machine with a GPU.

  scripts/compare_sanitizers/compare.py --out docs/data/compute-sanitizer.json [--jobs 14]

Compiles each kernel with nvcc, runs it in a process of its own under each tool, and writes what each tool said:
the number of errors, its first words, or that it ran into the time-out. `summarise.py` turns that and our own
results into the tables of docs/sanitizers.md.
"""
import argparse
import concurrent.futures
import datetime
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 20
FORMATS = {"f32": "f", "f64": "d", "f16": "e", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i",
           "u32": "I", "i64": "q", "u64": "Q", "bool": "?"}
SIZES = {**{name: struct.calcsize(code) for name, code in FORMATS.items()}, "bf16": 2}


def pack(dtype, values):
    if dtype == "bf16":
        words = (struct.unpack("<I", struct.pack("<f", value))[0] for value in values)
        return b"".join(struct.pack("<H", (word + 0x7FFF + (word >> 16 & 1)) >> 16) for word in words)
    kind = float if dtype in ("f16", "f32", "f64") else int
    return struct.pack(f"<{len(values)}{FORMATS[dtype]}", *(kind(value) for value in values))


def contents(buffer):
    """The bytes a buffer starts with; None when it is left uninitialised."""
    dtype, count = buffer["dtype"], buffer["elements"]
    init = buffer.get("init", {"kind": "uninitialised"})
    rng = random.Random(init.get("seed", 0))
    kind = init["kind"]
    if kind == "uninitialised":
        return None
    if kind == "zero":
        return bytes(count * SIZES[dtype])
    if kind == "constant":
        return pack(dtype, [init["value"]] * count)
    if kind == "iota":
        return pack(dtype, range(count))
    if kind == "normal":
        return pack(dtype, [rng.gauss(init.get("mean", 0), init.get("scale", 1)) for _ in range(count)])
    low, high = init.get("low", 0), init.get("high", 1)
    whole = dtype not in ("f16", "bf16", "f32", "f64")
    return pack(dtype, [rng.randint(int(low), int(high)) if whole else rng.uniform(low, high) for _ in range(count)])


def write_plan(folder, cubin, work):
    launch = json.loads((folder / "launch.json").read_text())
    lines = [f"module {cubin}"]
    numbers = {}
    for name, buffer in launch["buffers"].items():
        numbers[name] = len(numbers)
        data = contents(buffer)
        file = "-"
        if data is not None:
            file = work / f"{name}.bin"
            file.write_bytes(data)
        lines.append(f"buffer {buffer['elements'] * SIZES[buffer['dtype']]} {file}")
    for kernel in launch["kernels"]:
        dims = []
        for key in ("grid", "block", "cluster"):
            sizes = list(kernel.get(key, [1]))
            dims += sizes + [1] * (3 - len(sizes))
        lines.append(" ".join(map(str, ["kernel", kernel["entry"], *dims, kernel.get("shared_bytes", 0),
                                        int(kernel.get("cooperative", False))])))
        for arg in kernel["args"]:
            if arg in numbers:
                lines.append(f"arg buffer {numbers[arg]}")
            else:
                scalar = launch["scalars"][arg]
                lines.append(f"arg bytes {pack(scalar['dtype'], [scalar['value']]).hex()}")
    plan = work / "plan"
    plan.write_text("\n".join(lines) + "\n")
    return plan


def prepare(source, work):
    """Compiles a kernel and writes its plan; None when it does not compile."""
    work.mkdir(parents=True, exist_ok=True)
    cubin = work / "kernel.cubin"
    arch = json.loads((source.parent / "expect.json").read_text()).get("arch", "sm_90")
    done = subprocess.run(["nvcc", "-std=c++17", f"-arch={arch}", "-lineinfo", "-cubin", "-o", cubin, source],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr[-400:]
    return write_plan(source.parent, cubin, work), ""


def examine(tool, plan, launcher):
    command = [str(launcher), str(plan)]
    if tool != "none":
        command = ["compute-sanitizer", "--error-exitcode", "42", "--print-limit", "3", *tool.split(), *command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
        text, code, hung = done.stdout + done.stderr, done.returncode, False
    except subprocess.TimeoutExpired as late:
        text = "".join((part or b"").decode(errors="replace") for part in (late.stdout, late.stderr))
        code, hung = None, True
    said = [line.lstrip("= ") for line in text.splitlines() if line.startswith("=========")]
    said = [line for line in said if line and not line.startswith(("COMPUTE-SANITIZER", "Saved host", "Host Frame"))]
    counts = [int(n) for n in re.findall(r"(\d+) (?:errors?|hazards?)\b", " ".join(said[-1:]))]
    return {"errors": max(counts, default=0), "exit": code, "timed_out": hung, "said": said[:2],
            "program": [line for line in text.splitlines() if line and not line.startswith("=")][:1]}


def words(command):
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def one_line_each(document):
    """JSON with a line for each kernel, so that differences can be read."""
    lines = [f" {json.dumps(name)}: {json.dumps(result)}" for name, result in sorted(document["results"].items())]
    head = json.dumps({**document, "results": None}, indent=1)
    return head.replace('"results": null', '"results": {\n' + ",\n".join(lines) + "\n }") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/compare_sanitizers"))
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--corpus", type=pathlib.Path, default=ROOT / "corpus")
    parser.add_argument("--seconds", type=int, default=480, help="start no further run after this long")
    options = parser.parse_args()
    deadline = time.time() + options.seconds
    options.work.mkdir(parents=True, exist_ok=True)
    launcher = options.work / "launcher"
    subprocess.run(["nvcc", "-std=c++17", "-o", launcher, HERE / "launcher.cc", "-lcuda"], check=True)
    tools = ["--tool memcheck", "--tool initcheck", "--tool racecheck", "--tool synccheck"]

    sources = sorted(options.corpus.glob("buggy/*/*/*.cu")) + sorted(options.corpus.glob("patterns/*/*.cu"))
    # Kernels that hang hold up the others while they do: last.
    sources.sort(key=lambda path: (path.name == "bug.cu" and "schedule" in path.parts, path.parts))
    results = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        names = [str(source.relative_to(options.corpus)) for source in sources]
        plans = dict(zip(names, pool.map(
            lambda source: prepare(source, options.work / "_".join(source.relative_to(options.corpus).parts)), sources)))
        print(f"compiled {sum(plan is not None for plan, _ in plans.values())} of {len(plans)}", flush=True)

        def one(job):
            name, tool = job
            plan, why = plans[name]
            if plan is None:
                return name, tool, {"skipped": "does not compile: " + why}
            if time.time() > deadline:
                return name, tool, {"skipped": "no time left"}
            return name, tool, examine(tool, plan, launcher)

        for name, tool, result in pool.map(one, [(name, tool) for name in names for tool in tools]):
            results.setdefault(name, {})[tool.replace("--tool ", "")] = result
    document = {
        "schema": "assay.compute_sanitizer/1",
        "date": datetime.date.today().isoformat(),
        "gpu": words(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]),
        "driver": words(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]),
        "compute_sanitizer": words(["compute-sanitizer", "--version"]).splitlines()[-1:],
        "nvcc": words(["nvcc", "--version"]).splitlines()[-1:],
        "seconds_allowed": SECONDS,
        "results": results,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(one_line_each(document))
    print(f"{len(results)} kernels, {options.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
