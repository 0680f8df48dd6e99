#!/usr/bin/env python3
"""Judges the library's corpora by ops that were imported from torch (corpus/torch/shipped) in place of those written by hand: the same
kernels must be refuted and accepted.

    corpus/torch/judge_shipped.py [--assay build/release/bin/assay] [--effort quick] [--each 3] [OP...]

Takes, of each op, the first wrong kernels of corpus/hostile whose counterexamples are the smallest, all right ones of corpus/right, and the naive
one. Exit 1 where one comes out otherwise than it should.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def kernels(folder, op):
    found = []
    for path in sorted(folder.glob("*/expect.json")):
        expected = json.loads(path.read_text())
        if expected["op"] == op:
            found.append((math.prod(expected.get("smallest", {"": 1}).values()), path.parent, expected.get("dtypes", {})))
    return sorted(found, key=lambda f: (f[0], f[1].name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    parser.add_argument("--effort", default="quick")
    parser.add_argument("--each", type=int, default=3, help="wrong kernels of an op")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    failed = total = 0
    for folder in sorted((HERE / "shipped").iterdir()):
        op = folder.name
        if options.names and op not in options.names:
            continue
        chosen = [(path, dtypes, "refuted") for _, path, dtypes in kernels(ROOT / "corpus/hostile", op)[: options.each]]
        chosen += [(path, dtypes, "accepted") for _, path, dtypes in kernels(ROOT / "corpus/right", op)]
        chosen.append((ROOT / "ops" / op / "naive", {}, "accepted"))
        for path, dtypes, wanted in chosen:
            command = [options.assay, "check", str(path), "--op", str(folder), "--effort", options.effort, "--json"]
            for variable, dtype in dtypes.items():
                command += ["--dtype", f"{variable}={dtype}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            try:
                document = json.loads(done.stdout)
            except ValueError:
                document = {"outcome": f"exit {done.returncode}", "reason": done.stderr.strip()[-200:]}
            right = document.get("outcome") == wanted
            total, failed = total + 1, failed + (not right)
            mark = "" if right else f"   <<< {wanted} was expected"
            print(f"{op:28} {path.name:42} {document.get('outcome'):12} {document.get('reason', '')[:90]}{mark}", flush=True)
    print(f"{total - failed} of {total} as they should be")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
