#!/usr/bin/env python3
"""What a machine with a GPU needs to time kernels of the cost model's comparison, in one folder.

    bench/cost/manifest.py FOLDER [--assay PATH] [--only WORD,WORD] [--cost]

compiles each kernel (naive ones of every op and dtype, corpus/right, bench/cost/variants.py) with
`assay cost --export`, and writes FOLDER/index.json. The other machine needs that folder, python3, a
driver, and bench/cost/measure.py. Needs a CUDA toolkit here: the judge's compiler and nvcc.

With --cost, the model's estimates of the same kernels go to FOLDER/estimates.json, for
bench/cost/agreement.py; each is kept beside it, so that a run that was cut off goes on where it was.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Of the variants: rows in bf16 and f32, matrices in what tensor cores take as well.
DTYPES = {"gemm": ["bf16"], "adamw": ["f32"]}


def kernels(variants: Path) -> list[dict]:
    """Name, folder, op and dtype of every kernel."""
    found = []
    for op in sorted((ROOT / "ops").iterdir()):
        if not (op / "naive" / "kernel.cu").is_file():
            continue
        choices = json.loads((op / "op.json").read_text()).get("dtypes", {})
        for dtype in choices.get("T", [None]):
            found.append(dict(op=op.name, name="naive", folder=op / "naive", dtype=dtype))
    for folder in sorted((ROOT / "corpus" / "right").iterdir()):
        if not (folder / "kernel.cu").is_file():
            continue
        expect = json.loads((folder / "expect.json").read_text())
        found.append(
            dict(op=expect["op"], name=folder.name, folder=folder, dtype=expect.get("dtypes", {}).get("T"))
        )
    for folder in sorted(variants.glob("*/*")):
        for dtype in DTYPES.get(folder.parent.name, ["bf16", "f32"]):
            found.append(dict(op=folder.parent.name, name=folder.name, folder=folder, dtype=dtype))
    for row in found:
        row["id"] = f"{row['op']}-{row['name']}-{row['dtype']}"
    # Where time runs out, some of each op have been timed.
    random.Random(1).shuffle(found)
    return found


def run_assay(assay: str, row: dict, more: list[str]) -> subprocess.CompletedProcess[str]:
    command = [assay, "cost", str(row["folder"]), "--op", row["op"], "--jobs", "1", *more]
    if row["dtype"]:
        command += ["--dtype", f"T={row['dtype']}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--assay", default=str(ROOT / "build" / "release" / "bin" / "assay"))
    parser.add_argument("--nvcc", default="/usr/local/cuda/bin/nvcc")
    parser.add_argument("--only", default="", help="kernels whose id holds one of these words")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--steps", help="of a sample, with --cost")
    parser.add_argument("--cost", action="store_true", help="estimate instead of compiling for a GPU")
    options = parser.parse_args()
    out = options.folder
    variants = out / "variants"
    subprocess.run([sys.executable, str(ROOT / "bench/cost/variants.py"), str(variants)], check=True)
    words = [word for word in options.only.split(",") if word]
    rows = [row for row in kernels(variants) if not words or any(word in row["id"] for word in words)]
    done, failed = [], []

    def make(row: dict) -> str | None:
        """What went wrong, if anything did. Estimates that are there already are kept."""
        kept = out / f"{row['id']}.json"
        if options.cost and kept.is_file():
            return None
        more = ["--json"] if options.cost else ["--export", str(out / row["id"])]
        if options.cost and options.steps:
            more += ["--steps", options.steps]
        result = run_assay(options.assay, row, more)
        if result.returncode != 0:
            return f"{row['id']}: {result.stderr.strip().splitlines()[-1:]}"
        if options.cost:
            kept.write_text(result.stdout)
        return None

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(make, rows))
    for row, problem in zip(rows, results):
        if problem is not None:
            failed.append(row["id"])
            print(problem, file=sys.stderr)
            continue
        entry = {"id": row["id"], "op": row["op"], "kernel": row["name"], "dtype": row["dtype"]}
        if options.cost:
            entry["estimate"] = json.loads((out / f"{row['id']}.json").read_text())
        done.append(entry)
    if options.cost:
        document = {"schema": "assay.cost-estimates/1", "kernels": done}
        (out / "estimates.json").write_text(json.dumps(document, indent=1) + "\n")
    else:
        source = ROOT / "bench/cost/flush.cu"
        subprocess.run(
            [options.nvcc, "-cubin", "-arch=sm_90", "-o", str(out / "flush.cubin"), str(source)], check=True
        )
        document = {"schema": "assay.cost-manifest/1", "kernels": done}
        (out / "index.json").write_text(json.dumps(document, indent=1) + "\n")
    print(f"{len(done)} kernels, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
