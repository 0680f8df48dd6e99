#!/usr/bin/env python3
"""Compares two files of verdicts that judge.py wrote, before and after a change.

    scripts/corpora/compare.py before.jsonl after.jsonl

Prints each candidate whose verdict differs: the outcome, or the first place where the documents differ. Exit status 1 if an outcome changed,
0 otherwise. Seeds of held-out cases are new in every judgement and not compared; where such cases refute, verdicts differ as these do, unless
both were judged with one seed: judge.py ... -- --holdout-seed 5.
"""
import json
import sys


def read(path):
    with open(path) as lines:
        verdicts = [json.loads(line) for line in lines]
    for line in verdicts:
        for gate in line.get("verdict", {}).get("gates", []):
            if gate["gate"] == "holdout":
                gate.pop("seeds", None)
    return {(line["name"], json.dumps(line["dtypes"], sort_keys=True), line["seed"]): line for line in verdicts}


def first_difference(a, b, place="verdict"):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            if a.get(key) != b.get(key):
                return first_difference(a.get(key), b.get(key), f"{place}.{key}")
    if isinstance(a, list) and isinstance(b, list):
        for index, (left, right) in enumerate(zip(a, b)):
            if left != right:
                return first_difference(left, right, f"{place}[{index}]")
        if len(a) != len(b):
            return f"{place}: {len(a)} entries, then {len(b)}"
    return f"{place}: {json.dumps(a)[:160]} -> {json.dumps(b)[:160]}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    before, after = read(sys.argv[1]), read(sys.argv[2])
    outcomes = changed = same = 0
    for key in sorted(before.keys() | after.keys()):
        a, b = before.get(key), after.get(key)
        name = f"{key[0]} {key[1]} seed {key[2]}"
        if a is None or b is None:
            print(f"{name}: only {'after' if a is None else 'before'}")
        elif a["outcome"] != b["outcome"]:
            outcomes += 1
            print(f"{name}: {a['outcome']} -> {b['outcome']}: {b.get('verdict', {}).get('reason', b.get('stderr', ''))}")
        elif a.get("verdict") != b.get("verdict"):
            changed += 1
            print(f"{name}: {first_difference(a.get('verdict'), b.get('verdict'))}")
        else:
            same += 1
    print(f"{same} the same, {changed} with other details, {outcomes} with another outcome")
    return 1 if outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
