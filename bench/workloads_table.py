#!/usr/bin/env python3
"""What an op's workloads take: judges the naive kernel of every shipped op with phase_bench and prints a Markdown table.

    bench/workloads_table.py > table.md                                # every op, f32 and bf16; five minutes
    bench/workloads_table.py --dtypes f16 attention gemm               # some

Of each op: its workloads; the slices of the wave that tries them and each axis as long as the op allows, planned and left out; processor
seconds of all processes while that wave ran, and runs of the next one (shapes past 2^31) that were begun beside it, on two cores that are
never idle, which is what it takes at least; the same for the whole judgement, and what that took by the clock. Reasons for what was left
out go to stderr.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CORES = 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=str(ROOT / "build/release/bin/phase_bench"))
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("ops", nargs="*")
    arguments = parser.parse_args()
    shipped = sorted(path.parent.name for path in ROOT.glob("ops/*/naive"))
    print("| op | dtype | workloads | slices | left out | wave, 2 cores | judgement, 2 cores | elapsed |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    slowest = 0
    for op in arguments.ops or shipped:
        workloads = len((ROOT / "ops" / op / "workloads.jsonl").read_text().split("\n")) - 1
        dtypes = json.loads((ROOT / "ops" / op / "op.json").read_text()).get("dtypes", {}).get("T", [])
        for dtype in arguments.dtypes.split(","):
            if dtype not in dtypes:
                continue
            bench = subprocess.run([arguments.bench, f"{op}:{dtype}"], stdout=subprocess.PIPE, check=True)
            attempt = json.loads(bench.stdout)[0]["attempts"][0]
            wave = attempt["phases"]["waves"].get("workloads", {}).get("processor", 0) / CORES
            row = next((each for each in attempt["ledger"] if each["wave"] == "workloads"), {"planned": 0})
            left_out = sum(each["count"] for each in row.get("left_out", []))
            slowest = max(slowest, wave)
            print(f"| {op} | {dtype} | {workloads} | {row['planned']} | {left_out} | {wave:.1f} | {attempt['processor'] / CORES:.1f} "
                  f"| {attempt['seconds']:.1f} |", flush=True)
            for each in row.get("left_out", []):
                print(f"{op} {dtype}: {each['count']} left out: {each['reason']} [{each['example']}]", file=sys.stderr)
            if attempt["outcome"] != "accepted":
                print(f"{op} {dtype}: {attempt['outcome']}", file=sys.stderr)
    print(f"the longest wave: {slowest:.1f} s on {CORES} cores", file=sys.stderr)


if __name__ == "__main__":
    main()
