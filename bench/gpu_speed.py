#!/usr/bin/env python3
"""Times kernels at their ops' workloads on this machine's GPU and writes one JSON document.

    bench/gpu_speed.py --assay build/release/bin/assay --out bench/results/h100.json --minutes 8
    bench/gpu_speed.py --assay ... --out ... --minutes 8 -- --unsafe-no-jail       # what stands behind -- goes to assay
    bench/gpu_speed.py --assay ... --out ... --minutes 4 --only naive --rounds 3 -- --unchecked --seconds 0.3   # every op and dtype

In this order, as far as the minutes go: the timing tricks of corpus/timing (each must be found out, or be no faster than its honest
twin), naive kernels and those of corpus/right at their ops' workloads in bf16, then the naive ones in f16 and f32. The document
says what was left out. The card's rates are measured by the first run and handed to the others. It is written anew after each step, so that a run that is cut keeps what it has. The table goes to stderr.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def steps(arguments):
    """(section, name, op, dtype, folder, more arguments)"""
    tricks = sorted(path.parent for path in ROOT.glob("corpus/timing/*/expect.json"))
    for folder in tricks:
        about = json.loads((folder / "expect.json").read_text())
        yield "tricks", folder.name, about["op"], about["dtypes"]["T"], folder, ["--workload", "0", "--workload", "2"]
    ops = sorted(path.parent.name for path in ROOT.glob("ops/*/naive"))
    first = [op for op in ("rms_norm", "gemm", "softmax", "attention", "row_sum", "layer_norm", "cross_entropy", "cumsum") if op in ops]
    ops = first + [op for op in ops if op not in first]
    for op in ops:
        yield "kernels", f"naive/{op}", op, "bf16", ROOT / "ops" / op / "naive", []
    for folder in sorted(path.parent for path in ROOT.glob("corpus/right/*/expect.json")):
        about = json.loads((folder / "expect.json").read_text())
        yield "kernels", f"right/{folder.name}", about["op"], about["dtypes"].get("T", "bf16"), folder, []
    for dtype in ("f16", "f32"):
        for op in ops:
            yield "kernels", f"naive/{op}", op, dtype, ROOT / "ops" / op / "naive", []


def bench(arguments, op, dtype, folder, more, seconds, rates):
    command = [arguments.assay, "bench", str(folder), "--op", op, "--dtype", f"T={dtype}", "--json", "--rounds", str(arguments.rounds)]
    if rates.exists():
        command += ["--rates", str(rates)]
    command += more + arguments.extra
    start = time.monotonic()
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=max(seconds, 1), env=surroundings())
    except subprocess.TimeoutExpired:
        return {"exit": None, "error": f"not done within {seconds:.0f} s"}
    result = {"exit": run.returncode, "took_seconds": round(time.monotonic() - start, 2)}
    try:
        result.update(json.loads(run.stdout))
    except json.JSONDecodeError:
        result["error"] = run.stderr[-2000:]
    return result


def surroundings():
    """Where cuBLASLt or cuDNN came as a wheel, its folder is a root that assay looks in."""
    environment = dict(os.environ)
    for site in sys.path:
        for root in (pathlib.Path(site) / "nvidia/cu13", pathlib.Path(site)):
            libraries = ("lib/libcublasLt.so.13", "nvidia/cublas/lib/libcublasLt.so.13", "nvidia/cudnn/lib/libcudnn.so.9")
            if any((root / library).exists() for library in libraries):
                environment.setdefault("CUDA_PATH", str(root))
    return environment


def plain():
    """The honest twins by a harness that shares nothing with Assay's; why not, where there is none."""
    folders = [str(ROOT / "corpus/timing" / name) for name in ("honest", "honest_workspace")]
    try:
        run = subprocess.run([sys.executable, str(ROOT / "bench/plain_timing.py"), *folders], capture_output=True, text=True, timeout=90)
        return json.loads(run.stdout) if run.returncode == 0 else {"error": run.stderr[-1000:]}
    except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        return {"error": str(error)}


def driver():
    try:
        query = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm,clocks.max.memory,power.limit", "--format=csv,noheader"],
                               capture_output=True, text=True, timeout=30)
        return query.stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"nvidia-smi: {error}"


def tell(row):
    where = f"{row['name']} {row['dtype']}"
    if "workloads" not in row:
        return f"{where:44} {str(row.get('error', ''))[:300]}\n"
    text = ""
    for at in row["workloads"]:
        if "left_out" in at:
            text += f"{where:44} {at['workload']:36} left out: {at['left_out'][:160]}\n"
            continue
        wrong = "  WRONG: " + at["findings"][0].splitlines()[0][:140] if at.get("findings") else ""
        library = f"  {at.get('library', 'library')} {1e6 * at['library_seconds']:.1f} us" if "library_seconds" in at else ""
        text += (f"{where:44} {at['workload']:36} {1e6 * at['seconds']:10.1f} us {100 * at['share']:6.1f} % ({at['limited_by']})"
                 f" spread {100 * at['spread']:.1f} %{library}{wrong}\n")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--most", type=float, default=150, help="seconds for one kernel")
    parser.add_argument("--only", default="", help="parts of names with their dtypes ('naive/gemm f32'), with commas between; others are not timed")
    parser.add_argument("extra", nargs="*", help="what assay bench gets besides, behind --")
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    document = {"schema": "assay.speed_results/1", "date": datetime.date.today().isoformat(), "gpu": driver(),
                "command": "bench/gpu_speed.py " + " ".join(sys.argv[1:]), "plain": plain(), "tricks": [], "kernels": [], "left_out": []}
    rates = pathlib.Path(tempfile.mkdtemp()) / "rates.json"
    sys.stderr.write(f"plain harness: {json.dumps(document['plain'])}\n")
    for section, name, op, dtype, folder, more in steps(arguments):
        if not any(word in f"{name} {dtype}" for word in arguments.only.split(",")):
            continue
        left = end - time.monotonic()
        if left < 5:
            document["left_out"].append(f"{name} {dtype}")
            continue
        row = {"name": name, "op": op, "dtype": dtype, **bench(arguments, op, dtype, folder, more, min(left, arguments.most), rates)}
        # The card's rates stand once.
        if "rates" in row:
            document.setdefault("rates", row["rates"])
            del row["rates"]
            rates.write_text(json.dumps(document["rates"]))
        document[section].append(row)
        sys.stderr.write(tell(row))
        sys.stderr.flush()
        out = pathlib.Path(arguments.out)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(document, indent=1) + "\n")
    pathlib.Path(arguments.out).write_text(json.dumps(document, indent=1) + "\n")
    wrong = [row for row in document["kernels"] if row["exit"] == 1]
    sys.stderr.write(f"{len(document['kernels'])} kernels and {len(document['tricks'])} tricks; left out: {len(document['left_out'])}; "
                     f"right kernels with a wrong output: {len(wrong)}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
