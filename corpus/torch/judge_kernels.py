#!/usr/bin/env python3
"""Judges kernels written for problems of this folder: the naive one, the optimised one of kernels/NAME.cu, and its twins.

    corpus/torch/judge_kernels.py --out /tmp/ops [--assay build/release/bin/assay] [--effort quick] [--first] [NAME...]

A file of kernels/ holds one kernel with its launch plan in a comment. A line may end in `//~ TWIN: LINE`: the twin TWIN has
LINE in its place, and is wrong: it cheats on precision, masks, ties or tails. The naive and the optimised kernel must be accepted at
every dtype (with --first: at the op's first), each twin be refuted at the first. Prints a table; exit 1 where something came out otherwise.
Needs a Python with torch, as `assay import` does; --ops FOLDER takes ops that were imported before.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
MARK = re.compile(r"^(\s*)(.*?)\s*//~ (\w+): (.*)$")


def source_of(name):
    """The file in which a problem stands."""
    for path in sorted(HERE.glob("*.py")):
        if path.stem not in ("refused", "shipped") and re.search(rf"^def {name}\(", path.read_text(), re.M):
            return path
    raise SystemExit(f"no problem is called {name}")


def candidates(path):
    """(launch plan, {"": source, twin: source})."""
    text = path.read_text()
    plan = json.loads(re.search(r"^// launch: (.*)$", text, re.M)[1])
    plan = {"schema": "assay.launch/1", **plan}
    lines = text.splitlines()
    twins = {m[3] for m in map(MARK.match, lines) if m}
    made = {}
    for twin in ["", *sorted(twins)]:
        chosen = []
        for line in lines:
            m = MARK.match(line)
            chosen.append(line if not m else m[1] + (m[4] if m[3] == twin else m[2]))
        made[twin] = "\n".join(chosen) + "\n"
    return plan, made


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return done.returncode, json.loads(done.stdout), done.stderr
    except ValueError:
        return done.returncode, {}, done.stderr


class Judge:
    def __init__(self, options):
        self.options, self.rows, self.failed = options, [], 0

    def imported(self, name):
        folder = pathlib.Path(self.options.ops or self.options.out) / name
        if not (folder / "op.json").exists():
            command = [self.options.assay, "import", "torch", f"{source_of(name)}:{name}", "--out", str(folder)]
            if self.options.python:
                command += ["--python", self.options.python]
            code, _, said = run(command)
            if code and "fetch_torch.sh" in said:
                print("skipped: there is no torch; scripts/fetch_torch.sh fetches it, or set ASSAY_PYTHON to a Python that has it")
                sys.exit(77)
            if code:
                raise SystemExit(f"{name} cannot be imported: {said}")
        return folder

    def judge(self, name, op, candidate, what, dtype, wanted):
        start = time.monotonic()
        command = [self.options.assay, "check", str(candidate), "--op", str(op), "--effort", self.options.effort, "--json"]
        if dtype:
            command += ["--dtype", f"T={dtype}"]
        code, document, said = run(command)
        outcome = document.get("outcome", f"exit {code}")
        right = outcome == wanted
        self.failed += not right
        kinds = "" if outcome == "accepted" else document.get("reason", said.strip()[-200:])
        self.rows.append({"problem": name, "kernel": what, "dtype": dtype, "outcome": outcome, "wanted": wanted, "reason": kinds})
        mark = "" if right else "   <<<"
        print(f"{name:24} {what:12} {dtype:8} {outcome:12} {time.monotonic() - start:5.1f} s  {kinds[:110]}{mark}", flush=True)

    def problem(self, path):
        name = path.stem
        op = self.imported(name)
        choices = json.loads((op / "op.json").read_text()).get("dtypes", {}).get("T", [""])
        plan, made = candidates(path)
        folder = pathlib.Path(self.options.out) / f"{name}.kernels"
        for twin, text in made.items():
            at = folder / (twin or "right")
            at.mkdir(parents=True, exist_ok=True)
            (at / "kernel.cu").write_text(text)
            (at / "launch.json").write_text(json.dumps(plan, indent=2) + "\n")
        for dtype in choices[:1] if self.options.first else choices:
            if (op / "naive/kernel.cu").exists() and not self.options.twins:
                self.judge(name, op, op / "naive", "naive", dtype, "accepted")
            if not self.options.twins:
                self.judge(name, op, folder / "right", "optimised", dtype, "accepted")
        for twin in sorted(made):
            if twin:
                self.judge(name, op, folder / twin, twin, choices[0], "refuted")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default=str(HERE.parent.parent / "build/release/bin/assay"))
    parser.add_argument("--python", default="", help="a Python with torch")
    parser.add_argument("--out", required=True, help="where ops and candidates go")
    parser.add_argument("--ops", default="", help="ops that were imported before")
    parser.add_argument("--effort", default="quick")
    parser.add_argument("--first", action="store_true", help="the first dtype of each op alone")
    parser.add_argument("--twins", action="store_true", help="twins alone")
    parser.add_argument("--write", default="", help="a JSON file for the table")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    judge = Judge(options)
    for path in sorted((HERE / "kernels").glob("*.cu")):
        if not options.names or path.stem in options.names:
            judge.problem(path)
    if options.write:
        document = {"date": time.strftime("%Y-%m-%d"), "chip": "none: the emulator", "effort": options.effort, "judged": judge.rows}
        pathlib.Path(options.write).write_text(json.dumps(document, indent=1) + "\n")
    right = sum(r["wanted"] == r["outcome"] for r in judge.rows)
    print(f"{right} of {len(judge.rows)} as they should be")
    sys.exit(1 if judge.failed else 0)


if __name__ == "__main__":
    main()
