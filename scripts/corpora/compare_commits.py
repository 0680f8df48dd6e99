#!/usr/bin/env python3
"""Builds the judges of two commits, has both judge every corpus, and compares what they say: verdicts, findings, counterexamples.

    scripts/corpora/compare_commits.py main~20                            # against the working tree's commit
    scripts/corpora/compare_commits.py v1 v2 --only right,hostile --jobs 8
    scripts/corpora/compare_commits.py main~20 --explained differences.json
    scripts/corpora/compare_commits.py main~1 --effort quick --only naive -- --holdout-seed 5

Candidates are this tree's; each judge is built, with its own ops, in a worktree of its own under --work. One line of JSON is appended for
each judgement as it ends, so that a start that was cut short goes on where it was, builds included.

Two judgements are the same when their documents are, but for times. A difference is explained by a row of --explained,

    [{"names": "hostile/softmax_*", "places": "verdict.ledger.*", "why": "the wave of workloads came later"}]

when each place that differs matches `places` of a row whose `names` match the candidate (shell patterns, both). On stdout: one document with
every difference and its reason. Exit status 1 if one is not explained, or if a judge failed; 2 if something was not judged.
"""
import argparse
import concurrent.futures
import fnmatch
import hashlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import judge as corpora
import soak


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, **options)


def commit_of(name):
    return run("git", "-C", str(corpora.ROOT), "rev-parse", "--verify", f"{name}^{{commit}}", capture_output=True).stdout.strip()


def built(commit, work, jobs):
    """The program `assay` of a commit, in a worktree that later starts find again."""
    tree, log = work / commit[:12], work / f"{commit[:12]}.build.log"
    if not (tree / "CMakeLists.txt").exists():
        run("git", "-C", str(corpora.ROOT), "worktree", "add", "--force", "--detach", str(tree), commit, stdout=subprocess.DEVNULL)
    toolkit = run("bash", "-c", ". scripts/lib/setup.sh; provide_cuda 2>/dev/null; echo $ASSAY_CUDA_ROOT", cwd=corpora.ROOT, capture_output=True)
    print(f"building {commit[:12]} in {tree} (log in {log})", file=sys.stderr)
    with open(log, "w") as out:
        run("cmake", "--preset", "release", f"-DASSAY_CUDA_ROOT={toolkit.stdout.strip()}", cwd=tree, stdout=out, stderr=out)
        run("cmake", "--build", "build/release", "-j", str(jobs), "--target", "assay", "assay-worker", cwd=tree, stdout=out, stderr=out)
    return tree / "build/release/bin/assay"


def differences(a, b, place="verdict"):
    """Every place where two documents differ, as (place, before, after)."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [each for key in sorted(a.keys() | b.keys()) for each in differences(a.get(key), b.get(key), f"{place}.{key}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [each for index, pair in enumerate(zip(a, b)) for each in differences(*pair, f"{place}.{index}")]
    return [] if a == b and type(a) is type(b) else [(place, a, b)]


def reason(name, place, rows):
    """Why a place may differ; None: nothing explains it."""
    for row in rows:
        if fnmatch.fnmatchcase(name, row["names"]) and fnmatch.fnmatchcase(place, row["places"]):
            row["used"] = True
            return row["why"]
    return None


def compared(before, after, rows):
    """One row for two lines that differ; None where they are the same."""
    found = differences(before.get("verdict"), after.get("verdict"))
    if not found and before["outcome"] == after["outcome"]:
        return None
    if not found:
        found = [("outcome", before["outcome"], after["outcome"])]
    reasons = [reason(before["name"], place, rows) for place, _, _ in found]
    unexplained = [pair for pair, why in zip(found, reasons) if why is None]
    show = [{"place": place, "before": json.dumps(a)[:300], "after": json.dumps(b)[:300]} for place, a, b in (unexplained or found)[:5]]
    return {
        "name": before["name"],
        "dtypes": before["dtypes"],
        "outcomes": [before["outcome"], after["outcome"]],
        "places": len(found),
        "why": sorted({why for why in reasons if why}),
        "unexplained": len(unexplained),
        "show": show,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default="HEAD")
    parser.add_argument("--only", default="naive,right,hostile,adversarial,regress,precision", help="of naive, right, hostile, adversarial, regress, precision")
    parser.add_argument("--folder", action="append", default=[], help="further folders of candidates")
    parser.add_argument("--explained", type=pathlib.Path, help="rows that explain differences")
    parser.add_argument("--work", type=pathlib.Path, default=corpora.ROOT / "build/compare", help="trees, builds and judgements")
    parser.add_argument("--effort", default="standard")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="judgements at once (default: one a core)")
    parser.add_argument("--limit-seconds", type=float, default=0, help="start no judgement after this many seconds")
    parser.add_argument("extra", nargs="*", help="further options of assay check, after --")
    # argparse gives what stands behind options and a -- to nobody.
    ours = list(itertools.takewhile(lambda each: each != "--", sys.argv[1:]))
    arguments = parser.parse_args(ours)
    arguments.extra += sys.argv[2 + len(ours):]
    rows = json.loads(arguments.explained.read_text()) if arguments.explained else []
    arguments.work.mkdir(parents=True, exist_ok=True)

    items = list(corpora.candidates([each for each in arguments.only.split(",") if each], arguments.folder))
    sides, begun, lock = [], time.monotonic(), threading.Lock()
    for commit in (commit_of(arguments.before), commit_of(arguments.after)):
        assay = built(commit, arguments.work, arguments.jobs)
        worker = assay.with_name("assay-worker")
        program = hashlib.sha256(assay.read_bytes() + worker.read_bytes()).hexdigest()
        path = arguments.work / f"{commit[:12]}-{arguments.effort}.jsonl"
        done = soak.judged(path, program)
        out = open(path, "a")
        if out.tell() and not path.read_bytes().endswith(b"\n"):
            out.write("\n")
        out.write(json.dumps({"program": program}) + "\n")
        sides.append({"commit": commit, "assay": str(assay), "lines": done, "out": out})
    todo = [(side, item) for item in items for side in sides if soak.key(item[0], item[3], arguments.seed) not in side["lines"]]
    print(f"{2 * len(items)} judgements, {2 * len(items) - len(todo)} of them done before, {arguments.jobs} at once", file=sys.stderr)

    def step(pair):
        side, item = pair
        if arguments.limit_seconds and time.monotonic() - begun > arguments.limit_seconds:
            return
        options = argparse.Namespace(assay=side["assay"], effort=arguments.effort, extra=arguments.extra)
        line, _ = corpora.judge(options, item, arguments.seed)
        with lock:
            side["out"].write(json.dumps(line, sort_keys=True) + "\n")
            side["out"].flush()
            side["lines"][soak.key(line["name"], line["dtypes"], line["seed"])] = line

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(step, todo))

    same, different, failed, missing = 0, [], [], []
    for item in items:
        before, after = (side["lines"].get(soak.key(item[0], item[3], arguments.seed)) for side in sides)
        if before is None or after is None:
            missing.append(f"{item[0]} {item[3]}")
        elif "error" in (before["outcome"], after["outcome"]):
            failed.append({"name": item[0], "dtypes": item[3], "stderr": [each.get("stderr", "") for each in (before, after)]})
        elif row := compared(before, after, rows):
            different.append(row)
        else:
            same += 1
    document = {
        "schema": "assay.compare_commits/1",
        "before": sides[0]["commit"],
        "after": sides[1]["commit"],
        "effort": arguments.effort,
        "same": same,
        "explained": sum(1 for row in different if not row["unexplained"]),
        "unexplained": sum(1 for row in different if row["unexplained"]),
        "failed": failed,
        "not_judged": missing,
        "rows_that_explained_nothing": [row for row in rows if not row.get("used")],
        "differences": different,
    }
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    print()
    return 1 if document["unexplained"] or failed else 2 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
