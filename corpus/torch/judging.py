"""Many judgements, several at a time, a line of JSON each: what judge_kernels.py and judge_shipped.py share.

A judgement is asked for as a dict (what it is called, `candidate`, `op`, `dtypes`, `wanted`). Its line has the same keys but for paths, with
`effort`, `outcome`, `reason`, `seconds` and `digest`: of the kernel, its plan, and the op with all of its files. A line of a file that was written
before, of the same name, effort and digest, is not judged again, unless it did not end.
"""

import concurrent.futures
import hashlib
import json
import pathlib
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NO_TORCH = "skipped: there is no torch; scripts/fetch_torch.sh fetches it, or set ASSAY_PYTHON to a Python that has it"


def arguments(parser, effort):
    """The options of judging, which both scripts take."""
    parser.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    parser.add_argument("--python", default="", help="a Python with torch, for importing")
    parser.add_argument("--import-only", default="", metavar="FOLDER", help="import the ops to FOLDER, with torch, and judge nothing")
    parser.add_argument("--judge", default="", metavar="FOLDER", help="judge with the ops that --import-only left in FOLDER; needs no torch")
    parser.add_argument("--effort", default=effort)
    parser.add_argument("--jobs", type=int, default=1, help="judgements at a time")
    parser.add_argument("--limit-seconds", type=float, default=0, help="begin none after that long")
    parser.add_argument("--each-seconds", type=float, default=0, help="end a judgement that takes longer; its outcome is 'not ended'")
    parser.add_argument("--unsafe-no-jail", action="store_true", help="judge without namespaces, where there are none")
    parser.add_argument("--lines", default="", help="a file to which the lines are added")
    parser.add_argument("--known", action="append", default=[], help="a file of lines of earlier runs")


def import_op(options, source, function, folder):
    """Imports an op, unless it is there. Without a torch the program ends as a skipped test."""
    if (folder / "op.json").exists():
        return
    command = [options.assay, "import", "torch", f"{source}:{function}", "--out", str(folder)]
    if options.python:
        command += ["--python", options.python]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "fetch_torch.sh" in done.stderr:
        print(NO_TORCH)
        sys.exit(77)
    if done.returncode:
        raise SystemExit(f"{function} cannot be imported: {done.stderr}")


def digest(op, candidate):
    """Of what a verdict hangs on, but for the judge itself."""
    made = hashlib.sha256()
    files = [p for p in sorted(op.rglob("*")) if p.is_file() and "naive" not in p.relative_to(op).parts and p.name != "import.json"]
    for path in [*files, candidate / "kernel.cu", candidate / "launch.json"]:
        made.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return made.hexdigest()[:16]


def named(row):
    """What a judgement is called, by all keys of its line that were asked for."""
    return json.dumps({k: v for k, v in row.items() if k not in ("outcome", "reason", "seconds", "wanted")}, sort_keys=True)


def read_lines(paths):
    """Lines by name; a later one stands for an earlier one."""
    rows = {}
    for path in map(pathlib.Path, filter(None, paths)):
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                row = json.loads(line)
            except ValueError:  # cut off where a run was ended
                continue
            rows[named(row)] = row
    return rows


def check(options, row, op, candidate, dtypes):
    command = [options.assay, "check", str(candidate), "--op", str(op), "--effort", options.effort, "--json"]
    command += ["--jobs", "1"] if options.jobs > 1 else []
    command += ["--unsafe-no-jail"] if options.unsafe_no_jail else []
    for variable, dtype in dtypes.items():
        command += ["--dtype", f"{variable}={dtype}"]
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=options.each_seconds or None)
        document = json.loads(done.stdout)
        outcome, reason = document["outcome"], document.get("reason", "")
    except subprocess.TimeoutExpired:
        outcome, reason = "not ended", f"after {options.each_seconds:.0f} s"
    except (ValueError, KeyError):
        outcome, reason = f"exit {done.returncode}", done.stderr.strip()[-300:]
    reason = "" if outcome == "accepted" else reason[:300]
    return {**row, "outcome": outcome, "reason": reason, "seconds": round(time.monotonic() - start, 1)}


def judge_all(options, asked):
    """The lines of all that was asked for, in order; None where there was no time. Tells each as it ends."""
    known, begun, lock = read_lines([*options.known, options.lines]), time.monotonic(), threading.Lock()

    def one(request):
        request = dict(request)
        op, candidate, dtypes = request.pop("op"), request.pop("candidate"), request.pop("dtypes")
        row = {**request, "effort": options.effort, "digest": digest(op, candidate)}
        before = known.get(named(row))
        if before is not None and before["outcome"] != "not ended":
            return {**before, "wanted": row["wanted"]}
        if options.limit_seconds and time.monotonic() - begun > options.limit_seconds:
            return None
        row = check(options, row, op, candidate, dtypes)
        with lock:
            if options.lines:
                with open(options.lines, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row, sort_keys=True) + "\n")
            what = " ".join(f"{v:24}" if k == "problem" else f"{v:12}" for k, v in request.items() if k != "wanted")
            mark = "" if row["wanted"] in (row["outcome"], "either") else f"   <<< {row['wanted']} was expected"
            print(f"{what} {row['outcome']:12} {row['seconds']:6.1f} s  {row['reason'][:110]}{mark}", flush=True)
        return row

    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        return list(pool.map(one, asked))


def conclude(rows):
    """Tells how many came out as they should; the exit status."""
    done = [r for r in rows if r is not None]
    right = sum(r["outcome"] == r["wanted"] for r in done)
    late = len(rows) - len(done)
    print(f"{right} of {len(done)} as they should be" + (f"; for {late} there was no time" if late else ""))
    return 1 if right < len(done) else 0
