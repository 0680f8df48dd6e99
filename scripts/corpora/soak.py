#!/usr/bin/env python3
"""Judges kernels whose verdict is known again and again, under fresh seeds, and counts the wrong verdicts.

    scripts/corpora/soak.py right --judgements 2000 --out soak.jsonl       # right kernels: false refutations
    scripts/corpora/soak.py campaign --out campaign.jsonl                  # 30 wrong kernels of the campaign's classes x 5 seeds
    scripts/corpora/soak.py campaign --all --twins --seeds 7:12 --out x.jsonl   # all of them, and their right twins

right       ops/*/naive, corpus/right, and what is right of corpus/adversarial, corpus/regress and corpus/precision, at every dtype
campaign    wrong kernels of corpus/adversarial/campaign and their like in corpus/regress: each class in turn until there are --kernels of them

One line of JSON is appended to --out for each judgement, as it ends. Started again, the script goes on where it was: what stands in the file
is not judged again, unless assay itself failed there. The first line holds the digest of the program; another program's file is refused.
Every seed goes through all kernels before the next one begins, so a sweep that is cut short has seen each kernel equally often.

On stdout: one document that says what was judged, how it came out, each wrong verdict with its seed, gate and finding, and the rate of wrong
verdicts with its upper 95 % limit. Exit status 1 if a right kernel was refuted, a wrong one accepted, or nothing judged.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import judge as corpora

CLASSES = ("plan", "two", "large", "long", "val", "unr")


def right_kernels():
    every = corpora.candidates(["naive", "right", "adversarial", "regress", "precision"], [])
    return [item for item in every if item[4] == "accepted"]


def class_of(name):
    return name.rsplit("/", 1)[1].split("_")[0]


def campaign_kernels(count, twins):
    """Wrong kernels, one of each class in turn; behind them the right twins."""
    items = [item for item in corpora.candidates(["adversarial", "regress"], []) if "/campaign/" in item[0] or class_of(item[0]) in CLASSES]
    wrong = {name: [] for name in CLASSES}
    for item in items:
        prefix = class_of(item[0])
        if item[4] == "refuted" and prefix in wrong:
            wrong[prefix].append(item)
    depth = max(map(len, wrong.values()))
    order = [wrong[name][at] for at in range(depth) for name in CLASSES if at < len(wrong[name])]
    return order[:count] + ([item for item in items if item[4] == "accepted"] if twins else [])


def key(name, dtypes, seed):
    return name, json.dumps(dtypes, sort_keys=True), seed


def judged(path, program):
    """Lines of an earlier start, by kernel and seed; the last one counts. A line that was cut off when it was written is no line."""
    lines = {}
    if not path.exists():
        return lines
    with open(path) as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if "program" in line:
                if line["program"] != program:
                    sys.exit(f"{path} was written by another program ({line['program'][:12]}, now {program[:12]}): give another --out")
            elif line["outcome"] != "error":
                lines[key(line["name"], line["dtypes"], line["seed"])] = line
    return lines


def findings(verdict):
    """Each gate that did not pass, and what its counterexamples found."""
    return [
        {
            "gate": gate["gate"],
            "status": gate["status"],
            "reason": gate["reason"],
            "findings": [
                {"kind": finding["kind"], "message": finding["message"]}
                for counterexample in gate["counterexamples"]
                for finding in counterexample["findings"]
            ],
        }
        for gate in verdict["gates"]
        if gate["status"] in ("refuted", "inconclusive")
    ]


def run(arguments, item, seed):
    name, folder, op, dtypes, expected = item
    command = [arguments.assay, "check", str(folder), *corpora.asked(folder, op, arguments.effort), "--json", "--jobs", "1", "--seed", str(seed)]
    for variable, dtype in dtypes.items():
        command += ["--dtype", f"{variable}={dtype}"]
    line = {"name": name, "dtypes": dtypes, "seed": seed, "expected": expected}
    start = time.monotonic()
    try:
        answer = subprocess.run(command + arguments.extra, capture_output=True, text=True, timeout=arguments.timeout)
        verdict = json.loads(answer.stdout)
        line.update(exit=answer.returncode, outcome=verdict["outcome"], reason=verdict["reason"])
        if verdict["outcome"] != expected:
            line["gates"] = findings(verdict)
            line["verdict"] = verdict
    except subprocess.TimeoutExpired:
        line.update(outcome="error", reason=f"no verdict within {arguments.timeout:.0f} s")
    except (ValueError, KeyError):
        line.update(exit=answer.returncode, outcome="error", reason=answer.stderr[-500:])
    line["seconds"] = round(time.monotonic() - start, 2)
    return line


def upper_limit(wrong, trials):
    """The Clopper-Pearson limit: a rate above it would have given so few wrong verdicts in less than one sweep of twenty."""
    def at_most(rate):
        term, total = (1 - rate) ** trials, 0.0
        for count in range(wrong + 1):
            total += term
            term *= (trials - count) / (count + 1) * rate / (1 - rate)
        return total

    low, high = wrong / trials, 1 - 1e-12
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if at_most(middle) > 0.05 else (low, middle)
    return high


def summary(arguments, lines):
    outcomes = collections.Counter(f"{line['expected']} -> {line['outcome']}" for line in lines)
    decided = [line for line in lines if line["outcome"] in ("accepted", "refuted")]
    wrong = [line for line in decided if line["outcome"] != line["expected"]]
    open_ones = [line for line in lines if line["outcome"] not in ("accepted", "refuted")]
    seconds = sorted(line["seconds"] for line in lines)
    document = {
        "schema": "assay.soak/1",
        "what": arguments.what,
        "effort": arguments.effort,
        "judgements": len(lines),
        "kernels": len({(line["name"], json.dumps(line["dtypes"], sort_keys=True)) for line in lines}),
        "seeds": sorted({line["seed"] for line in lines}),
        "outcomes": dict(sorted(outcomes.items())),
        "wrong": [{name: line.get(name) for name in ("name", "dtypes", "seed", "outcome", "reason", "gates")} for line in wrong],
        "undecided": [{name: line.get(name) for name in ("name", "dtypes", "seed", "outcome", "reason")} for line in open_ones],
    }
    if decided:
        document["wrong_rate"] = {"of": len(decided), "rate": len(wrong) / len(decided), "upper_95": upper_limit(len(wrong), len(decided))}
    if seconds:
        slow = sorted(lines, key=lambda line: -line["seconds"])[:10]
        document["seconds"] = {"total": round(sum(seconds), 1), "median": seconds[len(seconds) // 2], "largest": seconds[-1]}
        document["slowest"] = [{name: line[name] for name in ("name", "dtypes", "seed", "seconds")} for line in slow]
    return document, not lines or bool(wrong)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Behind --: further options of assay check.",
    )
    parser.add_argument("what", choices=("right", "campaign"))
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where the judgements go, and are taken from when started again")
    parser.add_argument("--assay", default=str(corpora.ROOT / "build/release/bin/assay"))
    parser.add_argument("--judgements", type=int, default=2000, help="right: how many in all (seeds follow from it)")
    parser.add_argument("--seeds", default="", help="FIRST:END (default: from 1001 as many as are needed, campaign 5)")
    parser.add_argument("--kernels", type=int, default=30, help="campaign: how many wrong ones")
    parser.add_argument("--all", action="store_true", help="campaign: all wrong ones")
    parser.add_argument("--twins", action="store_true", help="campaign: their right twins as well")
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    parser.add_argument("--effort", default="standard")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="judgements at once (default: one a core)")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds after which a judgement is an error")
    parser.add_argument("--limit-seconds", type=float, default=0, help="start nothing after this many seconds")
    # Cut at -- here: where a list of positionals may follow, versions of argparse differ.
    own = sys.argv[1:]
    at = own.index("--") if "--" in own else len(own)
    arguments = parser.parse_args(own[:at])
    arguments.extra = own[at + 1:]

    items = right_kernels() if arguments.what == "right" else campaign_kernels(10**6 if arguments.all else arguments.kernels, arguments.twins)
    items = [item for item in items if arguments.only in item[0]]
    if not items:
        sys.exit("no such kernels")
    first, end = map(int, arguments.seeds.split(":")) if arguments.seeds else (1001, 0)
    if not end:
        end = first + (-(-arguments.judgements // len(items)) if arguments.what == "right" else 5)
    work = [(item, seed) for seed in range(first, end) for item in items]
    if arguments.what == "right" and not arguments.seeds:
        work = work[:arguments.judgements]

    program = hashlib.sha256(pathlib.Path(arguments.assay).read_bytes()).hexdigest()
    lines = judged(arguments.out, program)
    wanted = {key(item[0], item[3], seed) for item, seed in work}
    todo = [(item, seed) for item, seed in work if key(item[0], item[3], seed) not in lines]
    print(f"{len(work)} judgements, {len(work) - len(todo)} of them done before, {arguments.jobs} at once", file=sys.stderr)

    begun, lock = time.monotonic(), threading.Lock()
    with open(arguments.out, "a") as out, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        if out.tell() and not arguments.out.read_bytes().endswith(b"\n"):
            out.write("\n")
        out.write(json.dumps({"program": program, "what": arguments.what, "effort": arguments.effort}) + "\n")
        out.flush()

        def step(pair):
            if arguments.limit_seconds and time.monotonic() - begun > arguments.limit_seconds:
                return
            line = run(arguments, *pair)
            with lock:
                out.write(json.dumps(line, sort_keys=True) + "\n")
                out.flush()
                lines[key(line["name"], line["dtypes"], line["seed"])] = line
                if line["outcome"] != line["expected"]:
                    print(f"{line['name']} {line['dtypes']} seed {line['seed']}: {line['outcome']}, expected {line['expected']}: {line['reason']}", file=sys.stderr)

        list(pool.map(step, todo))
    document, bad = summary(arguments, [line for at, line in lines.items() if at in wanted])
    document["left_out"] = len(work) - document["judgements"]
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    print()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
