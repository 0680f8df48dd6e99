#!/usr/bin/env python3
"""What share of judging a kernel a compiler of blocks could save at most: samples of all processes of one `assay check`, by perf.

    bench/judgement_share.py [--assay build/release/bin/assay] FOLDER OP DTYPE > share.json

The judge runs on one core, with nothing kept from before. Of the worker's functions, those are counted that a compiler of straight
runs of instructions could do without: the dispatch loop, handlers of arithmetic, and what says which registers are defined. Needs
perf, nm and readelf; workers run in a namespace of their own, so that their symbols are looked up here.
"""
import argparse
import bisect
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

DISPATCH = ["RunSplit<", "emu::RunWarp("]
DEFINEDNESS = ["PropagateQuickly", "PropagateUndefined", "emu::Propagate(", "emu::SetUndefined", "RunBoundary"]
HANDLERS = ["Lanewise<", "::Cvt<", "SetP<", "Select<", "MaskOf", "PackParts", "UnpackParts", "PredicateLogic", "MovePredicate",
            "Lop3", "ConvertIntegers", "CarryHandler", "Approx1", "Approx2", "RunUnit", "Packed<", "BlendLanes", "NoteSelection",
            "::baseline::", "Convert<", "ConvertRare", "StoreLanes", "LoadLanes", "OnUnit", "::Div<", "::Rem<"]
NO_HANDLERS = ["CheckAddresses", "Multiply", "AddBlock", "TensorProduct"]
CONTROL = ["::Branch(", "AddSplit", "emu::Enter(", "MergeSplits", "ChooseSplit"]


class Names:
    """Functions of a program by the offset of their code in its file."""

    def __init__(self, program):
        headers = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
        self.segments = [tuple(int(part, 16) for part in found.groups())
                         for found in re.finditer(r"LOAD\s+(0x\w+)\s+(0x\w+)\s+0x\w+\s+(0x\w+)", headers)]
        listing = subprocess.run(["nm", "-C", "--defined-only", program], capture_output=True, text=True, check=True).stdout
        found = (re.match(r"([0-9a-f]+) [tTwW] (.*)", line) for line in listing.splitlines())
        self.functions = sorted((int(each[1], 16), each[2]) for each in found if each)
        self.starts = [start for start, _ in self.functions]

    def at(self, offset):
        for first, address, size in self.segments:
            if first <= offset < first + size:
                index = bisect.bisect_right(self.starts, offset - first + address) - 1
                return self.functions[index][1] if index >= 0 else "?"
        return "?"


def has(name, parts):
    return any(part in name for part in parts)


def kind(command, library, name):
    if "nvrtc" in library:
        return "compiler"
    if "worker" not in command:
        return "judge"
    if not library.endswith("assay-worker"):
        return "worker, libraries and system"
    if has(name, DISPATCH):
        return "dispatch"
    if has(name, DEFINEDNESS):
        return "definedness"
    if has(name, HANDLERS) and not has(name, NO_HANDLERS):
        return "handlers"
    if has(name, CONTROL):
        return "control"
    return "memory, exchange, monitors"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay", default="build/release/bin/assay")
    parser.add_argument("folder")
    parser.add_argument("op")
    parser.add_argument("dtype")
    options = parser.parse_args()
    names = Names(os.path.join(os.path.dirname(options.assay), "assay-worker"))
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "perf.data")
        subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", "499", "-o", data, options.assay, "check", options.folder,
                        "--op", options.op, "--dtype", options.dtype, "--jobs", "1"],
                       check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr, env={**os.environ, "ASSAY_CACHE": ""})
        report = subprocess.run(["perf", "report", "-i", data, "--stdio", "-F", "sample,comm,dso,sym", "-g", "none",
                                 "--field-separator", "|"], capture_output=True, text=True, check=True).stdout
    counts = collections.Counter()
    for line in report.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if line.startswith("#") or len(parts) < 4:
            continue
        symbol = re.sub(r"^\[.\] ", "", parts[3])
        offset = re.fullmatch(r"0x([0-9a-f]+)", symbol)
        counts[kind(parts[1], parts[2], names.at(int(offset[1], 16)) if offset else symbol)] += int(parts[0])
    total = counts.total()
    share = (counts["dispatch"] + counts["handlers"] + counts["definedness"]) / total
    json.dump({"judgement": f"{options.folder} {options.dtype}", "samples": total,
               "parts": {name: round(count / total, 3) for name, count in counts.most_common()},
               "share": round(share, 3), "bound": round(1 / (1 - share), 2),
               "bound_with_control": round(1 / (1 - share - counts["control"] / total), 2)}, sys.stdout, indent=1)
    print()


main()
