#!/usr/bin/env python3
"""Judges the library's corpora by ops that were imported from torch (shipped.py) as well as by those written by hand: the verdicts must be the
same.

    corpus/torch/judge_shipped.py [--assay build/release/bin/assay] [--effort quick] [--each 3] [OP...]      # the ops of corpus/torch/shipped
    corpus/torch/judge_shipped.py --import-only /tmp/shipped                                                  # with torch, once
    corpus/torch/judge_shipped.py --judge /tmp/shipped --jobs 16 --effort standard --lines /tmp/lines.jsonl   # without, anywhere, again and again
    corpus/torch/judge_shipped.py --collect docs/data/torch_shipped.json /tmp/lines.jsonl

Takes, of each op that ships, the naive kernel at every dtype and the kernels of corpus/right, hostile and precision (--each N: the first N of
each of the latter two). With --one-sided only the imported op judges, and what corpora expect is compared. A kernel at a dtype that the
imported op does not bind is left out, and counted. Exit 1 where two verdicts differ.
"""

import argparse
import importlib.util
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import judging  # noqa: E402

ROOT = judging.ROOT


def corpora():
    """The candidates of scripts/corpora/judge.py."""
    spec = importlib.util.spec_from_file_location("judge", ROOT / "scripts/corpora/judge.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.candidates(["naive", "right", "hostile", "precision"], [])


def asked(ops, options):
    """(judgements, how many candidates were left out because the imported op has no such binding)."""
    requests, left_out, taken = [], 0, {}
    for name, candidate, op, dtypes, wanted in corpora():
        imported, kind = ops / op, name.split("/")[0]
        if not (imported / "op.json").exists() or (options.names and op not in options.names):
            continue
        if kind in ("hostile", "precision"):
            taken[kind, op] = taken.get((kind, op), 0) + 1
            if options.each and taken[kind, op] > options.each:
                continue
        bound = json.loads((imported / "op.json").read_text())["dtypes"]
        if any(dtype not in bound.get(variable, []) for variable, dtype in dtypes.items()):
            left_out += 1
            continue
        row = {"candidate": candidate, "dtypes": dtypes, "wanted": wanted or "either"}
        for by in ["imported"] if options.one_sided else ["imported", "hand"]:
            what = {"problem": name, "dtype": " ".join(dtypes.values()), "by": by}
            requests.append({**what, **row, "op": imported if by == "imported" else ROOT / "ops" / op})
    return requests, left_out


def compared(rows):
    """[(name, dtype, imported's line, hand's line)] of those that both judged."""
    pairs = {}
    for row in rows:
        if row is not None:
            pairs.setdefault((row["problem"], row["dtype"]), {})[row["by"]] = row
    return [(*key, p["imported"], p["hand"]) for key, p in sorted(pairs.items()) if len(p) == 2]


def collect(data, files):
    pairs = compared(judging.read_lines(files).values())
    document = {
        "date": time.strftime("%Y-%m-%d"),
        "chip": "none: the emulator",
        "command": "corpus/torch/judge_shipped.py --judge OPS --effort EFFORT --lines LINES",
        "effort": " and ".join(sorted({a["effort"] for _, _, a, _ in pairs})),
        "compared": len(pairs),
        "same": sum(a["outcome"] == b["outcome"] for _, _, a, b in pairs),
        "judged": [
            {"candidate": name, "dtype": dtype, "imported": a["outcome"], "hand": b["outcome"]}
            | ({} if a["outcome"] == b["outcome"] else {"reasons": [a["reason"], b["reason"]]})
            for name, dtype, a, b in pairs
        ],
    }
    data.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{document['same']} of {document['compared']} verdicts are the same")


def main():
    if sys.argv[1:2] == ["--collect"]:
        collect(pathlib.Path(sys.argv[2]), sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    judging.arguments(parser, "quick")
    parser.add_argument("--each", type=int, default=0, help="of each op, so many wrong kernels and so many of corpus/precision (0: all)")
    parser.add_argument("--one-sided", action="store_true", help="judge by the imported ops alone")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.import_only:
        for op in sorted(p.parent.name for p in (ROOT / "ops").glob("*/op.json")):
            judging.import_op(options, judging.HERE / "shipped.py", op, pathlib.Path(options.import_only) / op)
        return
    requests, left_out = asked(pathlib.Path(options.judge) if options.judge else judging.HERE / "shipped", options)
    rows = judging.judge_all(options, requests)
    if options.one_sided:
        sys.exit(judging.conclude([r for r in rows if r is None or r["wanted"] != "either"]))
    pairs = compared(rows)
    for name, dtype, a, b in pairs:
        if a["outcome"] != b["outcome"]:
            print(f"{name} {dtype}: {a['outcome']} by the imported op, {b['outcome']} by the one written by hand: {a['reason'] or b['reason']}")
    differ = sum(a["outcome"] != b["outcome"] for _, _, a, b in pairs)
    late = sum(r is None for r in rows)
    said = [f"; {left_out} have no such dtype"] * bool(left_out) + [f"; for {late} judgements there was no time"] * bool(late)
    print(f"{len(pairs) - differ} of {len(pairs)} verdicts are the same" + "".join(said))
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
