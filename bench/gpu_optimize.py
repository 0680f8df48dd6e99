#!/usr/bin/env python3
"""What `assay generate --optimize` makes of replies that are written down: the floor and the best, beside the op's naive kernel.

    bench/gpu_optimize.py --assay build/release/bin/assay --out bench/results/h100_optimize.json --minutes 3
    bench/gpu_optimize.py --only row_sum --out r.json -- --unsafe-no-jail         # what stands behind -- goes to assay
    bench/gpu_optimize.py --modelled --out r.json                                 # no GPU: the cost model's shares

For each op: a transcript whose replies are the naive kernel and then variants of bench/cost/variants.py, from a thread a row to blocks
that read several values at once. The loop judges each (quick effort), times those that pass at the op's workloads, and keeps the one with
the best mean share of the limit. Needs a GPU, unless --modelled. Written anew after each op.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gpu_speed

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROWS = ("naive", "thread_a_row", "warp_a_row", "block_a_row", "block_a_row_by_8", "block_a_row_by_4_of_1024")
REPLIES = {
    "row_sum": ("f32", ROWS),
    "softmax": ("f32", ROWS),
    "rms_norm": ("bf16", ROWS),
    "layer_norm": ("bf16", ROWS),
    "cross_entropy": ("f32", ROWS),
    "gemm": ("bf16", ("naive", "plain", "tiles_of_16", "registers_4_by_4_near", "wmma_4_warps_by_1", "wmma_4_warps_by_4")),
}


def reply(folder):
    kernel, launch = (folder / "kernel.cu").read_text(), (folder / "launch.json").read_text()
    return f"```cuda\n{kernel}\n```\n\n```json\n{launch}\n```\n"


def write_transcript(path, op, names, variants):
    with open(path, "w") as out:
        print(json.dumps({"schema": "assay.transcript/1", "written": "by hand", "note": "kernels of bench/cost/variants.py, put together by bench/gpu_optimize.py",
                          "instance": op, "model": "none"}), file=out)
        for number, name in enumerate(names, 1):
            folder = ROOT / "ops" / op / "naive" if name == "naive" else variants / op / name
            print(json.dumps({"type": "exchange", "name": f"attempt-{number}", "reply": {"text": reply(folder), "stop": "end"}}), file=out)


def judged(run):
    """The events of a run's judgements, as far as it came."""
    file = run / "events.jsonl"
    events = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [event for event in events if event.get("type") == "attempt_judged"]


def attempts(run, names):
    """What the record says of each attempt."""
    rows = {}
    for event in judged(run):
        number, verdict = event["attempt"], event["verdict"]
        speed = next((gate for gate in verdict["gates"] if gate["gate"] == "speed"), None)
        rows[number] = {"reply": names[number - 1] if number <= len(names) else None, "outcome": verdict["outcome"], "reason": verdict["reason"],
                        "speed": speed and {"says": speed["reason"], "statistics": speed["statistics"]}}
    return [rows[number] for number in sorted(rows)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--only", default="", help="ops, with commas between")
    parser.add_argument("--replies", default="", help="of those that are written for an op only these, with commas between")
    parser.add_argument("--engine", default="gpu,emulator", help="assay's; its first GPU is what times are taken on")
    parser.add_argument("--modelled", action="store_true")
    parser.add_argument("extra", nargs="*", help="further options of assay generate, after --")
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    document = {"schema": "assay.optimize_results/1", "date": datetime.date.today().isoformat(),
                "gpu": None if arguments.modelled else gpu_speed.driver(), "ops": [], "left_out": []}
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        subprocess.run([sys.executable, str(ROOT / "bench/cost/variants.py"), str(work / "variants")], check=True)
        for op, (dtype, names) in REPLIES.items():
            if arguments.only and op not in arguments.only.split(","):
                continue
            names = tuple(name for name in names if not arguments.replies or name in arguments.replies.split(","))
            left = end - time.monotonic()
            if left < 5:
                document["left_out"].append(op)
                continue
            write_transcript(work / f"{op}.jsonl", op, names, work / "variants")
            command = [arguments.assay, "generate", op, "--dtype", f"T={dtype}", "--model", f"replay/{work / op}.jsonl", "--optimize",
                       "--effort", "quick", "--attempts", str(len(names)), "--out", str(work / op), *arguments.extra]
            if not arguments.modelled:
                command += ["--engine", arguments.engine, "--speed"]
            start = time.monotonic()
            row = {"op": op, "dtype": dtype}
            try:
                run = subprocess.run(command, capture_output=True, text=True, timeout=left, env=gpu_speed.surroundings())
                row.update(exit=run.returncode, said=run.stderr[-1500:].replace(str(work), "."))
            except subprocess.TimeoutExpired:
                row.update(exit=None, said=f"not done within {left:.0f} s")
            row["took_seconds"] = round(time.monotonic() - start, 1)
            row["attempts"] = attempts(work / op, names)
            row["emitted"] = [names[event["attempt"] - 1] for event in judged(work / op) if event.get("vetted")]
            document["ops"].append(row)
            arguments.out.write_text(json.dumps(document, indent=1) + "\n")
            print(f"{op}: exit {row['exit']}, {row['took_seconds']} s, {len(row['attempts'])} attempts judged", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
