#!/usr/bin/env python3
"""The tables of docs/sanitizers.md: what we and compute-sanitizer's tools say about the same kernels.

  scripts/compare_sanitizers/summarise.py [--assay build/release/bin/assay]

With --assay, runs `assay sanitize` on the corpus first and renews docs/data/assay-sanitize.json. The other side,
docs/data/compute-sanitizer.json, is written by compare.py on a machine with a GPU.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import subprocess

from compare import ROOT, one_line_each

DATA = ROOT / "docs" / "data"
PAGE = ROOT / "docs" / "sanitizers.md"
BEGIN, END = "<!-- begin: summarise.py -->\n", "<!-- end: summarise.py -->\n"
TOOLS = ("memcheck", "initcheck", "racecheck", "synccheck")
PATTERN_SCHEDULES = 50


def run_ours(assay, source):
    expect = json.loads((source.parent / "expect.json").read_text())
    schedules = PATTERN_SCHEDULES if "patterns" in source.parts else expect.get("schedules", 0)
    done = subprocess.run([assay, "sanitize", source, "--launch", source.parent / "launch.json", "--json",
                           "--schedules", str(schedules)], capture_output=True, text=True)
    answer = json.loads(done.stdout)
    return {"kinds": sorted({finding["kind"] for finding in answer["findings"]}), "stop": answer["stop"]}


def renew_ours(assay):
    sources = sorted(ROOT.glob("corpus/buggy/*/*/*.cu")) + sorted(ROOT.glob("corpus/patterns/*/*.cu"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda source: run_ours(assay, source), sources))
    names = [str(source.relative_to(ROOT / "corpus")) for source in sources]
    document = {"schema": "assay.sanitizer_corpus/1", "results": dict(zip(names, answers))}
    (DATA / "assay-sanitize.json").write_text(one_line_each(document))


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
        caught = {"ours": kind in ours["results"][name]["kinds"],
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
            alarm = bool(ours["results"][name]["kinds"]) if who == "ours" else (
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
        text += ["", "The alarms on right kernels, in the tool's own words:", ""] + false
    text += ["", "Kernel by kernel; an empty cell means that the tool ended and reported nothing:", "",
             "| kernel | finding | assay sanitize | " + " | ".join(TOOLS) + " |", "|---|---|---|---|---|---|---|"] + rows
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assay", type=pathlib.Path)
    options = parser.parse_args()
    if options.assay:
        renew_ours(options.assay)
    theirs = json.loads((DATA / "compute-sanitizer.json").read_text())
    ours = json.loads((DATA / "assay-sanitize.json").read_text())
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    PAGE.write_text(head + BEGIN + tables(theirs, ours) + END + tail)


if __name__ == "__main__":
    main()
