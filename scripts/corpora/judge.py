#!/usr/bin/env python3
"""Judges every candidate of the corpora (or of other folders) and writes one line of JSON for each verdict.

    scripts/corpora/judge.py --assay build/release/bin/assay > verdicts.jsonl            # all of corpus/ and ops/*/naive
    scripts/corpora/judge.py --only right,naive --seeds 100:110 --jobs 16 > soak.jsonl   # fresh seeds of right kernels
    scripts/corpora/judge.py --folder my_kernels > verdicts.jsonl                        # folders with kernel.cu, launch.json, expect.json
    scripts/corpora/judge.py --only large --jobs 8 --cores 2 --pin --times --brief > large.jsonl   # seconds on two cores each

A line holds what was judged, the exit code, the outcome, what was expected of it, and the verdict without times. Lines come in the order
of names, whatever the number of jobs, so that two files can be compared (compare.py). The last line on stderr counts outcomes; exit
status 1 if a right kernel was refuted or a wrong one accepted.
"""
import argparse
import atexit
import collections
import concurrent.futures
import itertools
import json
import pathlib
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def choices(op):
    """Every binding of the op's dtype variables."""
    variables = json.loads((ROOT / "ops" / op / "op.json").read_text()).get("dtypes", {})
    for values in itertools.product(*variables.values()):
        yield dict(zip(variables, values))


def candidates(only, folders):
    """(name, folder, op, dtypes, expected outcome or None)"""
    if "naive" in only:
        for op in sorted(path.parent.name for path in ROOT.glob("ops/*/naive")):
            for dtypes in choices(op):
                yield f"naive/{op}", ROOT / "ops" / op / "naive", op, dtypes, "accepted"
    for kind, expected in (("right", "accepted"), ("hostile", "refuted"), ("adversarial", None), ("regress", None)):
        if kind in only:
            yield from described(ROOT / "corpus" / kind, kind, expected)
    if "precision" in only:
        for path in sorted(ROOT.glob("corpus/precision/*/*/*/kernel.cu")):
            folder, op, kind = path.parent, path.parts[-4], path.parts[-3]
            rules = json.loads((folder / "variant.json").read_text()) if (folder / "variant.json").exists() else {}
            for dtypes in choices(op):
                if dtypes["T"] in rules.get("dtypes", [dtypes["T"]]):
                    # Honest about roundings; what other gates say against it stands in variant.json.
                    expected = rules.get("judged", {}).get(dtypes["T"], "accepted") if kind == "honest" else None
                    yield f"precision/{op}/{kind}/{folder.name}", folder, op, dtypes, expected
    if "large" in only:
        yield from described(ROOT / "corpus" / "large" / "kernels", "large", None)
    if "families" in only:
        yield from families(ROOT / "corpus" / "large" / "families")
    for folder in folders:
        yield from described(pathlib.Path(folder), pathlib.Path(folder).name, None)


def families(root):
    """Each right kernel, and its edits (variants.json) in folders of their own."""
    made = pathlib.Path(tempfile.mkdtemp(prefix="assay-families-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    for path in sorted(root.glob("*/variants.json")):
        family = json.loads(path.read_text())
        yield f"families/{path.parent.name}", path.parent, family["op"], family["dtypes"], "accepted"
        for wrong in family["wrong"]:
            folder = made / f"{path.parent.name}_{wrong['name']}"
            folder.mkdir()
            files = {name: (path.parent / name).read_text() for name in ("kernel.cu", "launch.json")}
            for text, other in wrong["edits"]:
                files = {name: content.replace(text, other) for name, content in files.items()}
            for name, content in files.items():
                (folder / name).write_text(content)
            yield f"families/{path.parent.name}/{wrong['name']}", folder, family["op"], family["dtypes"], None if "open" in wrong else "refuted"


def described(root, prefix, expected):
    for path in sorted(root.glob("**/kernel.cu")):
        folder = path.parent
        for name in ("expect.json", "meta.json"):
            if (folder / name).exists():
                about = json.loads((folder / name).read_text())
                dtypes = about.get("dtypes") or about.get("dtype") or {}
                by_gates = ("refuted" if about["gates"] else "accepted") if "gates" in about else None
                if by_gates is None and "what" in about:
                    by_gates = "accepted"
                yield f"{prefix}/{folder.relative_to(root)}", folder, about["op"], dtypes, about.get("outcome") or about.get("expect") or expected or by_gates


def asked(folder, op, effort):
    """What `assay check` is told of a kernel beside its dtypes: its op, one of the library or of its own corpus, its target, and the effort where it has none of its own."""
    about = json.loads((folder / "expect.json").read_text()) if (folder / "expect.json").exists() else {}
    own = next((at for at in (folder.parent / "ops" / op, ROOT / "corpus" / "large" / "ops" / op) if at.is_dir()), folder)
    return ["--op", str(own) if own != folder else op, "--effort", about.get("effort", effort)] + (["--arch", about["arch"]] if "arch" in about else [])


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in ("seconds", "text")}
    if isinstance(value, list):
        return [without_times(inner) for inner in value]
    return value


def judge(arguments, item, seed, slot):
    name, folder, op, dtypes, expected = item
    cores = arguments.cores
    command = ["taskset", "-c", f"{slot * cores}-{slot * cores + cores - 1}"] if arguments.pin else []
    command += [arguments.assay, "check", str(folder), *asked(folder, op, arguments.effort), "--json", "--jobs", str(cores)]
    command += ["--seed", str(seed)]
    for variable, dtype in dtypes.items():
        command += ["--dtype", f"{variable}={dtype}"]
    command += arguments.extra
    start = time.monotonic()
    run = subprocess.run(command, capture_output=True, text=True)
    line = {"name": name, "dtypes": dtypes, "seed": seed, "exit": run.returncode, "expected": expected}
    try:
        verdict = json.loads(run.stdout)
        line["outcome"] = verdict["outcome"]
        line["reason"] = verdict["reason"]
        line["verdict"] = without_times(verdict)
    except (ValueError, KeyError):
        line["outcome"] = "error"
        line["stderr"] = run.stderr[-2000:]
    return line, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    parser.add_argument("--only", default="", help="of naive, right, hostile, adversarial, regress, precision (default: these, or none with --folder), large, families")
    parser.add_argument("--folder", action="append", default=[])
    parser.add_argument("--seeds", default="1:2", help="FIRST:END")
    parser.add_argument("--effort", default="standard")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cores", type=int, default=1, help="workers of each judgement")
    parser.add_argument("--pin", action="store_true", help="each judgement on cores of its own")
    parser.add_argument("--limit-seconds", type=float, default=0, help="start nothing after this many seconds")
    parser.add_argument("--brief", action="store_true", help="outcomes without verdicts, unless unexpected")
    parser.add_argument("--times", action="store_true", help="seconds in each line; the slowest ten, and medians by what was expected, on stderr")
    parser.add_argument("extra", nargs="*", help="further options of assay check, after --")
    arguments = parser.parse_args()
    only = arguments.only.split(",") if arguments.only else [] if arguments.folder else ["naive", "right", "hostile", "adversarial", "regress", "precision"]
    first, end = map(int, arguments.seeds.split(":"))
    work = [(item, seed) for seed in range(first, end) for item in candidates(only, arguments.folder)]
    outcomes, unexpected, times = collections.Counter(), [], []
    by_expected = collections.defaultdict(list)
    begun = time.monotonic()
    slots = queue.SimpleQueue()
    for slot in range(arguments.jobs):
        slots.put(slot)

    def run(pair):
        if arguments.limit_seconds and time.monotonic() - begun > arguments.limit_seconds:
            return None
        slot = slots.get()
        try:
            return judge(arguments, *pair, slot)
        finally:
            slots.put(slot)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for answer in pool.map(run, work):
            if answer is None:
                outcomes["not run"] += 1
                continue
            line, seconds = answer
            wrong = line["expected"] is not None and line["outcome"] != line["expected"]
            outcomes[f"{line['expected']} -> {line['outcome']}"] += 1
            by_expected[line["expected"]].append(seconds)
            if arguments.times:
                line["seconds"] = round(seconds, 2)
            times.append((seconds, f"{line['name']} {line['dtypes']} seed {line['seed']}"))
            if wrong:
                unexpected.append(line)
                reason = line.get("verdict", {}).get("reason", line.get("stderr", ""))
                print(f"{line['name']} {line['dtypes']} seed {line['seed']}: {line['outcome']}, expected {line['expected']}: {reason}", file=sys.stderr)
            if arguments.brief and not wrong:
                line.pop("verdict", None)
            print(json.dumps(line, sort_keys=True), flush=True)
    if arguments.times:
        for seconds, what in sorted(times, reverse=True)[:10]:
            print(f"{seconds:7.1f} s  {what}", file=sys.stderr)
        for expected, taken in by_expected.items():
            print(f"{expected}: {len(taken)}, median {statistics.median(taken):.1f} s, at most {max(taken):.1f} s", file=sys.stderr)
    print(", ".join(f"{key}: {count}" for key, count in sorted(outcomes.items())), file=sys.stderr)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
