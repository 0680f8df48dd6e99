#!/usr/bin/env python3
"""Imports and checks every problem of this folder, and prints a table; with --write FILE, into docs/torch-ops.md.

    corpus/torch/import_all.py --assay build/release/bin/assay --out /tmp/ops [--cases 50] [--judge] [NAME...]

--judge also judges each op's naive candidate, at quick effort. --host needs no assay, but a Python with torch and a C++
compiler: references run in double on this machine, outside of any jail (importers/host_truth.py).
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BEGIN, END = "<!-- problems: begin -->", "<!-- problems: end -->"


def problems():
    for path in sorted(HERE.glob("*.py")):
        if path.name in ("import_all.py", "judge_kernels.py", "judge_shipped.py", "shipped.py"):
            continue
        for name, doc in re.findall(r'^def (\w+)\([^\n]*\n\s+"""([^\n]*?)"""', path.read_text(), re.M):
            yield path, name, doc


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if line.strip()]
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = {}
    return done.returncode, document, said


def on_host(path, name, cases):
    """What --host says of a problem, and whether it is not as it should be."""
    sys.path.insert(0, str(HERE.parent.parent / "importers"))
    import host_truth

    compared = host_truth.compare(path, name, cases)
    if isinstance(compared, str):
        return "refused: " + compared[:110], True
    worst, _ = compared
    return f"{cases} cases, {worst:.1e}" + ("" if worst <= 1e-12 else " **differs**"), worst > 1e-12


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default=str(HERE.parent.parent / "build/release/bin/assay"))
    parser.add_argument("--out", default="")
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--write")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if not options.host and not options.out:
        parser.error("--out FOLDER says where the ops go")
    rows, failed = [], 0
    for path, name, doc in problems():
        if options.names and name not in options.names and path.stem not in options.names:
            continue
        if options.host:
            verdict, wrong = on_host(path, name, options.cases)
            failed += wrong != (path.stem == "refused")
            rows.append((path.stem, name, doc, verdict, ""))
            print(f"{path.stem:12} {name:26} {verdict}", file=sys.stderr, flush=True)
            continue
        folder = pathlib.Path(options.out) / name
        code, document, said = run(
            [options.assay, "import", "torch", f"{path}:{name}", "--out", str(folder), "--check", "--cases", str(options.cases), "--json"]
        )
        expected_refusal = path.stem == "refused"
        check = document.get("check")
        if check:
            verdict = f"{check['cases']} cases, {float(check['worst']):.1e}" + ("" if check["agrees"] else " **differs**")
            failed += 0 if check["agrees"] else 1
        else:
            error = document.get("error", {})
            verdict = "refused: " + str(error.get("message", said[-1] if said else code)).removeprefix("cannot be imported: ")[:110]
            failed += 0 if expected_refusal else 1
        judged = ""
        if options.judge and check:
            code, document, said = run([options.assay, "check", str(folder / "naive"), "--op", str(folder), "--effort", "quick", "--json"])
            judged = str(document.get("outcome", document.get("verdict", code)))
            failed += 0 if judged == "accepted" else 1
        rows.append((path.stem, name, doc, verdict, judged))
        print(f"{path.stem:12} {name:26} {verdict:32} {judged}", file=sys.stderr, flush=True)
    lines = ["| set | problem | | reference against torch, f64 |" + (" naive |" if options.judge else ""), "|---|---|---|---|" + ("---|" if options.judge else "")]
    lines += [f"| {s} | {n} | {d} | {v} |" + (f" {j} |" if options.judge else "") for s, n, d, v, j in rows]
    text = "\n".join(lines)
    if options.write:
        page = pathlib.Path(options.write)
        old = page.read_text()
        page.write_text(old.split(BEGIN)[0] + BEGIN + "\n\n" + text + "\n\n" + END + old.split(END)[1])
    else:
        print(text)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
