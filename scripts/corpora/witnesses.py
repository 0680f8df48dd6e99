#!/usr/bin/env python3
"""What the emulator sees and what a GPU sees: every kernel of the corpora, judged by both.

    scripts/corpora/witnesses.py --out docs/data/h100_witnesses.json --jobs 14 --limit-seconds 500
    scripts/corpora/witnesses.py --out w.json --only naive,hostile -- --unsafe-no-jail     # what stands behind -- goes to assay
    scripts/corpora/witnesses.py --table docs/data/h100_witnesses.json                     # the table of docs/gpu.md, no GPU needed

naive, right, hostile, precision   assay check --every-gate --engine gpu,emulator: the gates that refute on the emulator, and what the
                                   device gate says of the same candidate although it is refuted already
buggy, patterns                    assay sanitize --engine gpu,emulator: bug.cu, its corrected twin, and what is right and looks wrong

Needs a GPU. One document: a row a kernel, in the order of names. Written anew every few seconds; started again with the same --out, the
script goes on where it was. Exit status 1 if a kernel that the emulator accepts is refuted by the device.
"""
import argparse
import collections
import concurrent.futures
import datetime
import json
import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import judge as corpora

ROOT = corpora.ROOT
KINDS = ("naive", "right", "hostile", "precision", "buggy", "patterns")
OF_THE_GPU = ("device", "speed")


def work(only):
    """(name, dtypes, command behind `assay`)"""
    for name, folder, op, dtypes, _ in corpora.candidates([kind for kind in only if kind in KINDS[:4]], []):
        command = ["check", str(folder), "--op", op, "--every-gate", "--engine", "gpu,emulator"]
        for variable, dtype in dtypes.items():
            command += ["--dtype", f"{variable}={dtype}"]
        yield name, dtypes, command
    for kind in ("buggy", "patterns"):
        for launch in sorted(ROOT.glob(f"corpus/{kind}/**/launch.json")) if kind in only else []:
            for kernel in sorted(launch.parent.glob("*.cu")):
                arch = json.loads((launch.parent / "expect.json").read_text()).get("arch")
                command = ["sanitize", str(kernel), "--launch", str(launch), "--engine", "gpu,emulator"]
                yield str(kernel.relative_to(ROOT / "corpus")), {}, command + (["--arch", arch] if arch else [])


def kinds_of(findings):
    return sorted({finding["kind"] for finding in findings})


def of_check(verdict):
    """What each engine says, in words: accepted, refuted, inconclusive, not run."""
    gates = {gate["gate"]: gate for gate in verdict["gates"]}
    refuted = [name for name, gate in gates.items() if gate["status"] == "refuted" and name not in OF_THE_GPU]
    unknown = [name for name, gate in gates.items() if gate["status"] == "inconclusive" and name not in OF_THE_GPU]
    device = gates["device"]
    found = [finding for example in device.get("counterexamples", []) for finding in example["findings"]]
    return {
        "emulator": "refuted" if refuted else "inconclusive" if unknown else "accepted",
        "gates": refuted,
        "gpu": {"passed": "accepted", "skipped": "not run"}.get(device["status"], device["status"]),
        "gpu_kinds": kinds_of(found),
        "gpu_says": found[0]["message"] if found else device["reason"],
    }


def of_sanitize(document):
    def words(stop, findings):
        return "refuted" if findings else "accepted" if stop in ("completed", "fault") else "inconclusive"

    witness = document["witness"]
    return {
        "emulator": words(document["stop"], document["findings"]),
        "gates": kinds_of(document["findings"]),
        "gpu": words(witness["stop"], witness["findings"]),
        "gpu_kinds": kinds_of(witness["findings"]),
        "gpu_says": witness["findings"][0]["message"] if witness["findings"] else witness["reason"],
    }


def ask(arguments, item):
    name, dtypes, command = item
    command = [arguments.assay, *command, "--json", "--jobs", "1", *arguments.extra]
    if "check" in command:
        command += ["--effort", arguments.effort]
    row = {"name": name, "dtypes": dtypes}
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=arguments.timeout)
        document = json.loads(run.stdout)
        return {**row, **(of_check if "gates" in document else of_sanitize)(document)}
    except subprocess.TimeoutExpired:
        return {**row, "error": f"not done within {arguments.timeout:.0f} s"}
    except (ValueError, KeyError, TypeError) as error:
        return {**row, "error": f"{error!r}: {run.stderr[-600:]}"}


def table(document):
    """By corpus and what the emulator says: what the GPU says."""
    counts = collections.defaultdict(collections.Counter)
    for row in document["rows"]:
        corpus = row["name"].split("/")[0]
        if corpus == "buggy":
            corpus += "/" + row["name"].rsplit("/", 1)[1].removesuffix(".cu")
        if corpus == "precision":
            corpus += "/" + row["name"].split("/")[2]
        counts[corpus, row.get("emulator", "no answer")][row.get("gpu", "no answer")] += 1
    columns = ("refuted", "accepted", "inconclusive", "not run", "no answer")
    print("| corpus | the emulator says | kernels |" + "".join(f" GPU: {column} |" for column in columns))
    print("|---|---|---|" + "---|" * len(columns))
    for (corpus, said), row in sorted(counts.items()):
        print(f"| {corpus} | {said} | {sum(row.values())} |" + "".join(f" {row[column] or ''} |" for column in columns))
    only = [row for row in document["rows"] if row.get("emulator") == "accepted" and row.get("gpu") == "refuted"]
    for row in only:
        print(f"accepted by the emulator alone: {row['name']} {row['dtypes'] or ''}: {row['gpu_says']}")
    return 1 if only else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--effort", default="quick")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=150, help="seconds for a kernel")
    parser.add_argument("--limit-seconds", type=float, default=0, help="start nothing after this many seconds")
    parser.add_argument("extra", nargs="*", help="further options of assay, after --")
    arguments = parser.parse_args()
    if arguments.table:
        return table(json.loads(arguments.table.read_text()))
    if not arguments.out:
        parser.error("--out or --table")
    query = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    if query.returncode != 0:
        sys.exit("no GPU here: nvidia-smi does not run")
    document = {"schema": "assay.witnesses/1", "date": str(datetime.date.today()), "gpu_and_driver": query.stdout.strip(), "effort": arguments.effort, "rows": []}
    done = {}
    if arguments.out.exists():
        for row in json.loads(arguments.out.read_text())["rows"]:
            if "error" not in row:
                done[row["name"], json.dumps(row["dtypes"])] = row
    items = list(work(arguments.only.split(",")))
    begun, lock, written = time.monotonic(), threading.Lock(), [0.0]

    def write():
        rows = [done[key] for key in sorted(done)]
        head = json.dumps({**document, "left": len(items) - len(rows)}, indent=1)
        text = ",\n".join(json.dumps(row) for row in rows)
        arguments.out.write_text(head.replace('"rows": []', f'"rows": [\n{text}\n ]') + "\n")
        written[0] = time.monotonic()

    def run(item):
        if (item[0], json.dumps(item[1])) in done or (arguments.limit_seconds and time.monotonic() - begun > arguments.limit_seconds):
            return
        row = ask(arguments, item)
        with lock:
            done[item[0], json.dumps(item[1])] = row
            if time.monotonic() - written[0] > 5:
                write()
                print(f"\r{len(done)} of {len(items)}", end="", file=sys.stderr)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(run, items))
    write()
    print(file=sys.stderr)
    return table(json.loads(arguments.out.read_text()))


if __name__ == "__main__":
    sys.exit(main())
