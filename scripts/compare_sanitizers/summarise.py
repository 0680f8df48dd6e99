#!/usr/bin/env python3
"""The tables of docs/sanitizers.md: what we and compute-sanitizer's tools say about the same kernels.

  scripts/compare_sanitizers/summarise.py [--test build/release/bin/sanitizer_corpus_test]

With --test, runs our side first and renews docs/data/sanitizer-corpus.json. The other side,
docs/data/compute-sanitizer.json, is written by compare.py on a machine with a GPU.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import tempfile

from compare import ROOT, one_line_each

DATA = ROOT / "docs" / "data"
PAGE = ROOT / "docs" / "sanitizers.md"
BEGIN, END = "<!-- begin: summarise.py -->\n", "<!-- end: summarise.py -->\n"
TOOLS = ("memcheck", "initcheck", "racecheck", "synccheck")


def renew_ours(program):
    """Runs the corpus test and keeps what it says of each kernel: a bug is found, a right kernel is clean."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        subprocess.run([program, f"--gtest_output=json:{report}"], stdout=subprocess.DEVNULL)
        suites = json.loads(report.read_text())["testsuites"]
    passed = {test["name"]: not test.get("failures") for suite in suites for test in suite["testsuite"]}
    results = {}
    for source in sorted(ROOT.glob("corpus/buggy/*/*/*.cu")) + sorted(ROOT.glob("corpus/patterns/*/*.cu")):
        folder = source.parent.relative_to(ROOT / "corpus")
        name = "_".join(folder.parts[1:])
        test = {"bug.cu": "IsFound", "fixed.cu": "TwinIsClean", "kernel.cu": "IsCleanUnderManySchedules"}[source.name]
        results[str(folder / source.name)] = passed[f"{test}/{name}"]
    document = {"schema": "assay.sanitizer_corpus/1", "results": results}
    (DATA / "sanitizer-corpus.json").write_text(one_line_each(document))


def family_of(name):
    parts = name.split("/")
    return parts[1] if parts[0] == "buggy" else "patterns"


def verdict(result):
    """caught (something was reported), time-out, or nothing."""
    if result is None or "skipped" in result:
        return "not run"
    return "reported" if result["errors"] > 0 else "time-out" if result["timed_out"] else "nothing"


def tables(theirs, ours):
    results = theirs["results"]
    bugs = [name for name in sorted(ours["results"]) if name.endswith("/bug.cu")]
    right = [name for name in sorted(ours["results"]) if not name.endswith("/bug.cu")]
    counts = collections.Counter()
    rows = []
    for name in bugs:
        folder = ROOT / "corpus" / pathlib.Path(name).parent
        kind = json.loads((folder / "expect.json").read_text())["kind"]
        said = {tool: verdict(results.get(name, {}).get(tool)) for tool in TOOLS}
        caught = {"ours": ours["results"][name],
                  **{tool: said[tool] == "reported" for tool in TOOLS}}
        caught["any"] = any(caught[tool] for tool in TOOLS)
        for who, hit in caught.items():
            counts[who, family_of(name), "caught"] += hit
        counts[family_of(name), "bugs"] += 1
        cells = [{"reported": "caught", "nothing": "", "time-out": "time-out", "not run": "not run"}[said[tool]]
                 for tool in TOOLS]
        rows.append(f"| {'/'.join(name.split('/')[1:3])} | {kind} | {'caught' if caught['ours'] else 'MISSED'} | "
                    + " | ".join(cells) + " |")
    false = []
    for name in right:
        counts[family_of(name), "right"] += 1
        for who in ("ours",) + TOOLS:
            alarm = not ours["results"][name] if who == "ours" else (
                verdict(results.get(name, {}).get(who)) == "reported")
            counts[who, "false"] += alarm
            if alarm and who != "ours":
                false.append(f"- {who} on {name}: \"{results[name][who]['said'][0]}\"")
    families = ("memory", "initialisation", "race", "schedule")
    text = [f"Recorded {theirs['date']} on an {theirs['gpu']}, driver {theirs['driver']}, compute-sanitizer "
            f"{theirs['compute_sanitizer'][0].split()[1]}; {theirs['seconds_allowed']} s a run.\n",
            "| caught | assay sanitize | " + " | ".join(TOOLS) + " | any of the four |", "|---|---|---|---|---|---|---|"]
    for family in families:
        total = counts[family, "bugs"]
        text.append(f"| {family} ({total}) | " + " | ".join(
            str(counts[who, family, "caught"]) for who in ("ours",) + TOOLS + ("any",)) + " |")
    text.append(f"| all ({len(bugs)}) | " + " | ".join(
        str(sum(counts[who, family, "caught"] for family in families)) for who in ("ours",) + TOOLS + ("any",)) + " |")
    text.append(f"| false alarms on {len(right)} right kernels | " + " | ".join(
        str(counts[who, "false"]) for who in ("ours",) + TOOLS) + " | |")
    if false:
        text += ["", "What was reported on kernels that we hold to be right, in the tool's own words:", ""] + false
    text += ["", "Kernel by kernel; an empty cell means that the tool ended and reported nothing:", "",
             "| kernel | finding | assay sanitize | " + " | ".join(TOOLS) + " |", "|---|---|---|---|---|---|---|"] + rows
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--test", type=pathlib.Path)
    options = parser.parse_args()
    if options.test:
        renew_ours(options.test)
    theirs = json.loads((DATA / "compute-sanitizer.json").read_text())
    ours = json.loads((DATA / "sanitizer-corpus.json").read_text())
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    PAGE.write_text(head + BEGIN + tables(theirs, ours) + END + tail)


if __name__ == "__main__":
    main()
