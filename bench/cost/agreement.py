#!/usr/bin/env python3
"""How well the cost model ranks kernels that a GPU has timed.

    bench/cost/agreement.py ESTIMATES TIMES [--out FILE]

ESTIMATES is what bench/cost/manifest.py --cost wrote, TIMES what bench/cost/measure.py did. Prints, by
op, Kendall's tau (tau-b) between the model's bound and the measured median: over pairs of kernels at
the same workload and dtype (the same work, which is what the model is for), over all pairs at the same
workload, and over all rows of the op. Times that differ by less than three percent count as ties.
Writes the table and the rows behind it as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter, defaultdict
from pathlib import Path

SAME = 1.03


def sign(a: float, b: float) -> int:
    if max(a, b) <= SAME * min(a, b):
        return 0
    return 1 if a > b else -1


def tau(groups: list[list[dict]]) -> tuple[float | None, int]:
    """Tau-b over the pairs within groups, and how many pairs there are."""
    agree = ties_model = ties_measured = pairs = 0
    for rows in groups:
        for i, one in enumerate(rows):
            for other in rows[:i]:
                measured = sign(one["median_us"], other["median_us"])
                model = sign(one["bound"], other["bound"])
                pairs += 1
                agree += measured * model
                ties_measured += measured == 0
                ties_model += model == 0
    scale = math.sqrt((pairs - ties_measured) * (pairs - ties_model))
    return (agree / scale if scale else None), pairs


def group(rows: list[dict], *keys: str) -> list[list[dict]]:
    found: dict[tuple, list[dict]] = defaultdict(list)
    for row in rows:
        found[tuple(json.dumps(row[key]) for key in keys)].append(row)
    return list(found.values())


def join(estimates: dict, times: dict) -> tuple[list[dict], list[dict]]:
    modelled = {}
    for kernel in estimates["kernels"]:
        for workload in kernel["estimate"]["workloads"]:
            modelled[kernel["id"], json.dumps(workload["axes"], sort_keys=True)] = workload
    rows, left_out = [], []
    for time in times["times"]:
        key = time["id"], json.dumps(time["axes"], sort_keys=True)
        estimate = modelled.get(key, {"left_out": "not modelled"})
        reason = time.get("left_out") or estimate.get("left_out")
        about = {name: time[name] for name in ("id", "op", "kernel", "dtype", "axes")}
        if reason:
            left_out.append({**about, "left_out": reason})
            continue
        rows.append(
            {
                **about,
                "median_us": time["median_us"],
                "spread_us": time["spread_us"],
                "calls": time["calls"],
                "conditions": time.get("conditions"),
                "bound": estimate["model"]["bound"],
                "limiter": estimate["limiter"],
                "share_of_limit": estimate["share_of_limit"],
            }
        )
    return rows, left_out


def shown(value: float | None) -> str:
    return "     -" if value is None else f"{value:6.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("estimates", type=Path)
    parser.add_argument("times", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    times = json.loads(options.times.read_text())
    rows, left_out = join(json.loads(options.estimates.read_text()), times)
    table = []
    print(f"{'op':28} {'kernels':>7} {'rows':>5} {'same work':>9} {'pairs':>6} {'same shape':>10} {'all':>6}")
    for op in sorted({row["op"] for row in rows}):
        mine = [row for row in rows if row["op"] == op]
        work, pairs = tau(group(mine, "axes", "dtype"))
        shape, _ = tau(group(mine, "axes"))
        whole, _ = tau([mine])
        ids = len({row["id"] for row in mine})
        print(f"{op:28} {ids:7} {len(mine):5} {shown(work):>9} {pairs:6} {shown(shape):>10} {shown(whole)}")
        table.append(
            {
                "op": op,
                "kernels": ids,
                "rows": len(mine),
                "pairs_of_same_work": pairs,
                "tau_same_work": work,
                "tau_same_shape": shape,
                "tau_all": whole,
            }
        )
    work, pairs = tau(group(rows, "op", "axes", "dtype"))
    ids = len({row["id"] for row in rows})
    print(f"{'all ops, same work':28} {ids:7} {len(rows):5} {shown(work):>9} {pairs:6}")
    below = [row for row in rows if row["bound"] * 1e6 > 1.05 * row["median_us"]]
    print(f"rows whose bound lies more than 5 % above the measured time: {len(below)} of {len(rows)}")
    reasons = Counter(row["left_out"] for row in left_out)
    for reason, count in reasons.most_common():
        print(f"left out: {count} rows: {reason}")
    if options.out:
        about = {name: times.get(name) for name in ("date", "device", "driver", "cuda", "idle")}
        document = {
            "schema": "assay.cost-agreement/1",
            **about,
            "kernels": ids,
            "tau_same_work": work,
            "bounds_above_measured": len(below),
            "ops": table,
            "rows": rows,
            "left_out": left_out,
        }
        options.out.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
