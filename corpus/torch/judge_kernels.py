#!/usr/bin/env python3
"""Judges kernels written for problems of this folder: the naive one, the optimised one of kernels/NAME.cu, and its twins.

    corpus/torch/judge_kernels.py --out /tmp/ops [--assay build/release/bin/assay] [--effort quick] [--first] [NAME...]

A file of kernels/ holds one kernel with its launch plan in a comment. A line may end in `//~ TWIN: LINE`: the twin TWIN has
LINE in its place, and is wrong: it cheats on precision, masks, ties or tails. The naive and the optimised kernel must be accepted at
every dtype (with --first: at the op's first), each twin be refuted at the first. Prints a table; exit 1 where something came out otherwise.
--table PAGE DATA writes a table of such a file between the marks of a page, and judges nothing. --write FILE keeps what was judged: a kernel whose text and op are those of a row of the file is not judged again at the same effort.
Needs a Python with torch, as `assay import` does; --ops FOLDER takes ops that were imported before.
"""

import argparse
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BEGIN, END = "<!-- kernels: begin -->", "<!-- kernels: end -->"
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
        self.before, self.known = [], {}
        if options.write and pathlib.Path(options.write).exists():
            document = json.loads(pathlib.Path(options.write).read_text())
            self.before = [{"effort": document["effort"], **row} for row in document["judged"]]
            self.known = {(r["digest"], r["dtype"], r["effort"]): r for r in self.before if "digest" in r}

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
        texts = [p.read_bytes() for p in (op / "op.json", op / "reference.cu", candidate / "kernel.cu", candidate / "launch.json")]
        digest = hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]
        before = self.known.get((digest, dtype, self.options.effort))
        if before is not None and before["outcome"] == wanted:
            self.rows.append({**before, "wanted": wanted})
            return
        command = [self.options.assay, "check", str(candidate), "--op", str(op), "--effort", self.options.effort, "--json"]
        if dtype:
            command += ["--dtype", f"T={dtype}"]
        code, document, said = run(command)
        outcome = document.get("outcome", f"exit {code}")
        right = outcome == wanted
        self.failed += not right
        kinds = "" if outcome == "accepted" else document.get("reason", said.strip()[-200:])
        self.rows.append(
            {
                "problem": name,
                "kernel": what,
                "dtype": dtype,
                "effort": self.options.effort,
                "outcome": outcome,
                "wanted": wanted,
                "reason": kinds[:160],
                "digest": digest,
            }
        )
        self.save()
        mark = "" if right else "   <<<"
        print(f"{name:24} {what:12} {dtype:8} {outcome:12} {time.monotonic() - start:5.1f} s  {kinds[:110]}{mark}", flush=True)

    def save(self):
        """What was judged, and what the file held of other kernels, dtypes and efforts."""
        if not self.options.write:
            return
        of = lambda r: (r["problem"], r["kernel"], r["dtype"], r["effort"])  # noqa: E731
        rows = {of(r): r for r in [*self.before, *self.rows]}
        document = {
            "date": time.strftime("%Y-%m-%d"),
            "chip": "none: the emulator",
            "effort": self.options.effort,
            "command": f"corpus/torch/judge_kernels.py --effort {self.options.effort}" + (" --first" if self.options.first else ""),
            "judged": [rows[key] for key in sorted(rows)],
        }
        pathlib.Path(self.options.write).write_text(json.dumps(document, indent=1) + "\n")

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


def table(document):
    """What was judged, a line a problem: the dtypes at which kernels came out as they should, and those at which they did not."""
    lines = ["| problem | naive accepted at | optimised accepted at | twins refuted | otherwise |", "|---|---|---|---|---|"]
    problems = {}
    for row in document["judged"]:
        problems.setdefault(row["problem"], []).append(row)
    for name, rows in sorted(problems.items()):
        right = [r for r in rows if r["outcome"] == r["wanted"]]
        at = lambda what: ", ".join(sorted({r["dtype"] or "its own" for r in right if r["kernel"] == what})) or "-"  # noqa: E731
        twins = ", ".join(sorted({r["kernel"] for r in right if r["wanted"] == "refuted"})) or "-"
        other = "; ".join(f"{r['kernel']} {r['dtype']}: {r['outcome']}" for r in rows if r["outcome"] != r["wanted"]) or "-"
        lines.append(f"| {name} | {at('naive')} | {at('optimised')} | {twins} | {other} |")
    total = sum(r["outcome"] == r["wanted"] for r in document["judged"])
    lines += ["", f"{total} of {len(document['judged'])} judgements as they should be."]
    return "\n".join(lines)


def main():
    if sys.argv[1:2] == ["--table"]:
        page, data = (pathlib.Path(a) for a in sys.argv[2:4])
        head, rest = page.read_text().split(BEGIN)
        page.write_text(head + BEGIN + "\n\n" + table(json.loads(data.read_text())) + "\n\n" + END + rest.split(END)[1])
        return
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
    judge.save()
    right = sum(r["wanted"] == r["outcome"] for r in judge.rows)
    print(f"{right} of {len(judge.rows)} as they should be")
    sys.exit(1 if judge.failed else 0)


if __name__ == "__main__":
    main()
