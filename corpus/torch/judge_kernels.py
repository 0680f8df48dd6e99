#!/usr/bin/env python3
"""Judges kernels written for problems of this folder: the naive one, the optimised one of kernels/NAME.cu, and its twins.

    corpus/torch/judge_kernels.py --out /tmp/ops [--assay build/release/bin/assay] [--effort quick] [--first] [NAME...]
    corpus/torch/judge_kernels.py --import-only /tmp/ops                  # with torch, once
    corpus/torch/judge_kernels.py --judge /tmp/ops --jobs 16 --effort standard --lines /tmp/lines.jsonl     # without, anywhere, again and again
    corpus/torch/judge_kernels.py --collect docs/data/torch_kernels.json docs/torch-ops.md /tmp/lines.jsonl

A file of kernels/ holds one kernel with its launch plan in a comment. A line may end in `//~ TWIN: LINE`: the twin TWIN has
LINE in its place, and is wrong: it cheats on precision, masks, ties or tails. NAME.naive.cu is the naive kernel of an op that is imported without one,
because a choice is part of it. The naive and the optimised kernel must be accepted at every dtype (with --first: at the op's first), each twin be
refuted at the first. Exit 1 where something came out otherwise.

Importing needs a Python with torch, as `assay import` does. --lines keeps a line of JSON a judgement, and what stands there is not judged again
(judging.py). --collect makes of such lines the document DATA, whose table it writes into PAGE.
"""

import argparse
import json
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import judging  # noqa: E402

HERE = judging.HERE
BEGIN, END = "<!-- kernels: begin -->", "<!-- kernels: end -->"
MARK = re.compile(r"^(\s*)(.*?)\s*//~ (\w+): (.*)$")
NOT_PROBLEMS = ("refused", "shipped", "judging")


def source_of(name):
    """The file in which a problem stands."""
    for path in sorted(HERE.glob("*.py")):
        if path.stem not in NOT_PROBLEMS and re.search(rf"^def {name}\(", path.read_text(), re.M):
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


def written(folder, plan, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.cu").write_text(text)
    (folder / "launch.json").write_text(json.dumps(plan, indent=2) + "\n")
    return folder


def asked(path, op, out, options):
    """The judgements of one file of kernels/."""
    name = path.stem
    choices = json.loads((op / "op.json").read_text()).get("dtypes", {}).get("T", [""])
    plan, made = candidates(path)
    folders = {twin or "optimised": written(out / f"{name}.kernels" / (twin or "right"), plan, text) for twin, text in made.items()}
    by_hand = path.with_suffix(".naive.cu")
    if by_hand.exists():
        plan, made = candidates(by_hand)
        folders["naive"] = written(out / f"{name}.kernels" / "naive", plan, made[""])
    elif (op / "naive/kernel.cu").exists():
        folders["naive"] = op / "naive"
    for what, folder in folders.items():
        right = what in ("naive", "optimised")
        if right and options.twins:
            continue
        for dtype in choices if right and not options.first else choices[:1]:
            yield {
                "problem": name,
                "kernel": what,
                "dtype": dtype,
                "wanted": "accepted" if right else "refuted",
                "op": op,
                "candidate": folder,
                "dtypes": {"T": dtype} if dtype else {},
            }


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
    for effort in sorted({r["effort"] for r in document["judged"]}):
        rows = [r for r in document["judged"] if r["effort"] == effort]
        total = sum(r["outcome"] == r["wanted"] for r in rows)
        lines += ["", f"At {effort} effort {total} of {len(rows)} judgements as they should be."]
    return "\n".join(lines)


def collect(data, page, files):
    """Of lines the document, and of the document the table. Of one kernel at one dtype the last line counts; what did not end is left out."""
    of = lambda r: (r["problem"], r["kernel"], r["dtype"])  # noqa: E731
    rows = {of(r): r for r in judging.read_lines(files).values() if r["outcome"] != "not ended"}
    efforts = sorted({r["effort"] for r in rows.values()})
    document = {
        "date": time.strftime("%Y-%m-%d"),
        "chip": "none: the emulator",
        "effort": " and ".join(efforts),
        "command": "corpus/torch/judge_kernels.py --judge OPS --effort EFFORT --lines LINES",
        "judged": [rows[key] for key in sorted(rows)],
    }
    data.write_text(json.dumps(document, indent=1) + "\n")
    head, rest = page.read_text().split(BEGIN)
    page.write_text(head + BEGIN + "\n\n" + table(document) + "\n\n" + END + rest.split(END)[1])


def main():
    if sys.argv[1:2] == ["--collect"]:
        collect(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    judging.arguments(parser, "quick")
    parser.add_argument("--out", default="", help="where ops (but for --judge) and candidates go")
    parser.add_argument("--first", action="store_true", help="the first dtype of each op alone")
    parser.add_argument("--twins", action="store_true", help="twins alone")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    folder = options.import_only or options.judge or options.out
    if not folder:
        parser.error("--out FOLDER says where ops and candidates go")
    ops, out = pathlib.Path(folder), pathlib.Path(options.out or folder)
    requests = []
    for path in sorted((HERE / "kernels").glob("*.cu")):
        if "." in path.stem or (options.names and path.stem not in options.names):
            continue
        if not options.judge:
            judging.import_op(options, source_of(path.stem), path.stem, ops / path.stem)
        if not options.import_only:
            requests += asked(path, ops / path.stem, out, options)
    if options.import_only:
        return
    sys.exit(judging.conclude(judging.judge_all(options, requests)))


if __name__ == "__main__":
    main()
