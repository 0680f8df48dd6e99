#!/usr/bin/env python3
"""Imports and checks every problem of this folder, and prints a table; with --write FILE, into docs/torch-ops.md.

    corpus/torch/import_all.py --assay build/release/bin/assay --out /tmp/ops [--cases 50] [--judge] [--data FILE] [NAME...]

--judge also judges each op's naive candidate, at quick effort. --host needs no assay, but a Python with torch and a C++
compiler: references run in double on this machine, outside of any jail (importers/host_truth.py). --data writes what was
measured as JSON, with the command and the versions.
"""

import argparse
import datetime
import json
import math
import pathlib
import platform
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 1e-12  # relative
BEGIN, END = "<!-- problems: begin -->", "<!-- problems: end -->"


def problems():
    for path in sorted(HERE.glob("*.py")):
        if path.name in ("import_all.py", "judge_kernels.py", "judge_shipped.py", "judging.py", "shipped.py"):
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
    """What --host says of a problem: what was measured, or the refusal."""
    sys.path.insert(0, str(HERE.parent.parent / "importers"))
    import host_truth

    try:
        compared = host_truth.compare(path, name, cases)
    except Exception as error:  # noqa: BLE001 - one problem's failure is not the others'
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        return {"cases": cases, "worst": math.inf, "where": f"{type(error).__name__}: {first[:160]}", "agrees": False}
    if isinstance(compared, str):
        return {"refused": compared}
    worst, where = compared
    return {"cases": cases, "worst": worst, "where": where, "agrees": worst <= LIMIT}


def told(measured):
    if "refused" in measured:
        return "refused: " + measured["refused"].removeprefix("cannot be imported: ")[:110]
    return f"{measured['cases']} cases, {measured['worst']:.1e}" + ("" if measured["agrees"] else " **differs**")


def torch_version(options):
    """The torch with which it was measured."""
    if options.host:
        import torch

        return torch.__version__
    made = sorted(pathlib.Path(options.out).glob("*/import.json"))
    return str(json.loads(made[0].read_text()).get("torch", "")) if made else ""


def in_jail(options, path, name, folder):
    """What `assay import --check` says of a problem."""
    code, document, said = run(
        [options.assay, "import", "torch", f"{path}:{name}", "--out", str(folder), "--check", "--cases", str(options.cases), "--json"]
    )
    check = document.get("check")
    if check:
        return {"cases": check["cases"], "worst": float(check["worst"]), "where": check.get("where", ""), "agrees": check["agrees"]}
    return {"refused": str(document.get("error", {}).get("message", said[-1] if said else code))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default=str(HERE.parent.parent / "build/release/bin/assay"))
    parser.add_argument("--out", default="")
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--data", default="", help="a JSON file for what was measured")
    parser.add_argument("--write")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if not options.host and not options.out:
        parser.error("--out FOLDER says where the ops go")
    rows, failed, data = [], 0, []
    for path, name, doc in problems():
        if options.names and name not in options.names and path.stem not in options.names:
            continue
        folder = pathlib.Path(options.out) / name
        measured = on_host(path, name, options.cases) if options.host else in_jail(options, path, name, folder)
        verdict, judged = told(measured), ""
        failed += measured.get("agrees", False) == (path.stem == "refused")
        if options.judge and "cases" in measured and not options.host:
            code, document, _ = run([options.assay, "check", str(folder / "naive"), "--op", str(folder), "--effort", "quick", "--json"])
            judged = str(document.get("outcome", document.get("verdict", code)))
            failed += 0 if judged == "accepted" else 1
        rows.append((path.stem, name, doc, verdict, judged))
        data.append({"set": path.stem, "problem": name, **measured})
        print(f"{path.stem:12} {name:26} {verdict:32} {judged}", file=sys.stderr, flush=True)
    if options.data:
        file = pathlib.Path(options.data)
        if options.names and file.exists():  # the others' stand
            made = {(d["set"], d["problem"]) for d in data}
            every = {(path.stem, name): (number, doc) for number, (path, name, doc) in enumerate(problems())}
            kept = [d for d in json.loads(file.read_text())["problems"] if (d["set"], d["problem"]) in every.keys() - made]
            data = sorted(data + kept, key=lambda d: every[d["set"], d["problem"]])
            rows = [(d["set"], d["problem"], every[d["set"], d["problem"]][1], told(d), "") for d in data]
        document = {
            "date": datetime.date.today().isoformat(),
            "chip": "none: " + ("references in double, compiled by c++" if options.host else "the emulator"),
            "command": "corpus/torch/import_all.py " + ("--host " if options.host else "") + f"--cases {options.cases}",
            "torch": torch_version(options),
            "python": platform.python_version(),
            "limit": LIMIT,
            "problems": data,
        }
        file.write_text(json.dumps(document, indent=1) + "\n")
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
