#!/usr/bin/env python3
"""Regenerates the whole library as a batch with replayed models, kills it, and takes the failures into a corpus.

    scripts/corpora/library_batch.py --assay build/release/bin/assay --out /tmp/library              # all that is below
    scripts/corpora/library_batch.py --assay ... --out DIR --effort quick --wrong 2 --ops softmax,gemm

Each instance of each op (dtypes x targets) has a transcript: up to --wrong of the wrong kernels that corpus/hostile, corpus/adversarial and corpus/regress know for that op,
up to --mutants changes of one token in the naive kernel (mutants.py), other ones at each dtype and target, one kernel that does not compile, then the naive one. A wrong kernel is tried at every dtype, since one that names its types is wrong at the others too;
one that happens to be right there ends the transcript early, so those come last. Four things are shown, and printed as one JSON document:

1. the batch runs to its end: every instance has its kernel;
2. the same batch, killed with SIGKILL at --kills random points and resumed, comes to the same summary (but for `measured`, and for instances
   where a wrong kernel passed all but the held-out cases, whose seeds nobody knows: they are named);
3. the same batch again does nothing, and how long that takes;
4. all runs are ingested, split, exported; every exported failure is replayed.

Exit status 0 where all four hold.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "corpora"))
from judge import choices, described  # noqa: E402
from mutants import mutants  # noqa: E402


def reply(folder, change=lambda kernel: kernel):
    kernel, launch = ((folder / name).read_text() for name in ("kernel.cu", "launch.json"))
    return f"```cuda\n{change(kernel)}\n```\n```json\n{launch}\n```\n"


def wrong_kernels(op):
    """Folders of kernels that are refuted for this op, each with the dtypes at which it is; none: at all."""
    for kind, expected in ("hostile", "refuted"), ("adversarial", None), ("regress", None):
        for _, folder, its_op, dtypes, outcome in described(ROOT / "corpus" / kind, kind, expected):
            if its_op == op and outcome == "refuted":
                yield folder, dtypes


def write_plan(out, ops, archs, wrong, most_mutants, effort):
    """One entry of the plan for each instance, each with a transcript of its own."""
    entries, failing = [], 0
    for op in ops:
        naive = ROOT / "ops" / op / "naive"
        changed = [source for _, source in mutants((naive / "kernel.cu").read_text())]
        bindings = list(choices(op))
        for number, (dtypes, arch) in enumerate(itertools.product(bindings, archs)):
            known = list(wrong_kernels(op))[number % len(archs) :: len(archs)]
            certain = [reply(folder) for folder, its in known if its in ({}, dtypes)][:wrong]
            other = [reply(folder) for folder, its in known if its not in ({}, dtypes)][: wrong - len(certain)]
            replies = certain + [reply(naive, lambda _, source=source: source) for source in changed[number :: len(bindings) * len(archs)][:most_mutants]] + other
            replies += [reply(naive).replace("__global__", "__globule__", 1), reply(naive)]
            failing += len(replies) - 1
            name = "-".join([op, *dtypes.values(), arch])
            lines = [{"schema": "assay.transcript/1", "written": "by hand", "note": "from the corpora", "instance": name, "model": "a person"}]
            lines += [{"type": "exchange", "name": f"attempt-{n}", "reply": {"text": text, "stop": "end"}} for n, text in enumerate(replies, 1)]
            file = out / f"{name}.jsonl"
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
            entries.append({"op": op, "dtypes": [dtypes], "archs": [arch], "model": f"replay/{file}", "attempts": len(replies)})
    plan = out / "plan.json"
    plan.write_text(json.dumps({"schema": "assay.batch_plan/1", "defaults": {"effort": effort}, "ops": entries}, indent=1))
    return plan, len(entries), failing


def summary(batch):
    value = json.loads((batch / "summary.json").read_text())
    value.pop("measured")
    return value


def differences(one, other):
    """What two summaries differ in: instances by name; those whose first different attempt fell to held-out cases apart, since their seeds are drawn
    anew each time and nobody may know them; "rest" where it is anything else."""
    rest = {name: {key: value for key, value in of.items() if key not in ("instances", "totals")} for name, of in (("one", one), ("other", other))}
    found = {"held_out": [], "other": [] if rest["one"] == rest["other"] and len(one["instances"]) == len(other["instances"]) else ["rest"]}
    for ours, theirs in zip(one["instances"], other["instances"]):
        if ours != theirs:
            first = next((pair for pair in zip(ours["attempts"], theirs["attempts"]) if pair[0] != pair[1]), ({}, {}))
            found["held_out" if "holdout" in [attempt.get("gate") for attempt in first] else "other"].append(ours["instance"])
    return found


def grown(batch):
    """Bytes of all logs of the batch: how far it is."""
    return sum(path.stat().st_size for path in batch.glob("**/events.jsonl"))


def killed(command, batch, store, kills, rng, whole):
    """Runs the batch, killing it where its logs have grown by a random share; how often it was."""
    done = 0
    while True:
        place = ["--resume" if (batch / "batch.json").exists() else "--out", str(batch), "--store", str(store)]
        process = subprocess.Popen(command + place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        goal = grown(batch) + rng.uniform(0, 1.5 * whole / max(kills, 1))
        while process.poll() is None:
            if done < kills and grown(batch) > goal:
                process.send_signal(signal.SIGKILL)
                process.wait()
                done += 1
                break
            time.sleep(0.02)
        else:
            return done, process.returncode


def call(*words):
    started = time.monotonic()
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    return ran, round(time.monotonic() - started, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--ops", default="", help="a comma between; default: all")
    parser.add_argument("--archs", default="sm_90", help="a comma between; each has its share of the wrong kernels")
    parser.add_argument("--wrong", type=int, default=100, help="wrong kernels an instance at most")
    parser.add_argument("--mutants", type=int, default=0, help="mutants an instance at most")
    parser.add_argument("--effort", default="standard")
    parser.add_argument("--jobs", default=str(os.cpu_count()))
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="of the points where it is killed")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True)
    ops = options.ops.split(",") if options.ops else sorted(path.parent.name for path in ROOT.glob("ops/*/naive"))
    plan, instances, failing = write_plan(out, ops, options.archs.split(","), options.wrong, options.mutants, options.effort)
    command = [options.assay, "batch", "--plan", str(plan), "--jobs", options.jobs]
    shown = {"instances": instances, "failing_replies": failing}
    holds = {}

    print(f"{instances} instances, {failing} failing replies", file=sys.stderr)
    ran, shown["seconds"] = call(*command, "--out", out / "whole", "--store", out / "store")
    reference = summary(out / "whole")
    shown["outcomes"] = reference["totals"]["outcomes"]
    holds["all_accepted"] = ran.returncode == 0
    if ran.returncode != 0:
        print(ran.stderr[-3000:], file=sys.stderr)

    times, status = killed(command, out / "killed", out / "store-killed", options.kills, random.Random(options.seed), grown(out / "whole"))
    shown["killed"] = times
    found = differences(reference, summary(out / "killed"))
    shown["fell_to_held_out_cases_once"] = found["held_out"]
    holds["killed_is_identical"] = times == options.kills and status == ran.returncode and not found["other"]

    ran, shown["second_run_seconds"] = call(*command, "--out", out / "second", "--store", out / "store")
    shown["second_run_says"] = ran.stderr.strip().splitlines()[-1:]
    holds["second_run_does_nothing"] = ran.returncode == 0 and not list(out.glob("second/runs/*/events.jsonl"))

    corpus = out / "corpus.sqlite"
    ran, shown["ingest_seconds"] = call(options.assay, "corpus", "ingest", out / "whole", "--corpus", corpus, "--licence", "MIT")
    holds["ingested"] = ran.returncode == 0
    for step in ("split",), ("export", out / "export"):
        ran, _ = call(options.assay, "corpus", *step, "--corpus", corpus)
        holds[step[0]] = ran.returncode == 0
    ran, shown["replay_seconds"] = call(options.assay, "corpus", "replay", out / "export", "--corpus", corpus, "--json")
    holds["failures_replay"] = ran.returncode == 0
    shown["replayed"] = {key: value for key, value in json.loads(ran.stdout or "{}").items() if isinstance(value, (int, str))}

    print(json.dumps({"shows": holds, **shown}, indent=1))
    return 0 if all(holds.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
