#!/usr/bin/env python3
"""What `assay generate --optimize` makes of replies that are written down, for every op in f32 and bf16: the naive kernel and the best that is found.

    bench/gpu_optimize.py --assay build/release/bin/assay --out bench/results/h100_optimize.json --minutes 8 -- --unsafe-no-jail   # what stands behind -- goes to assay
    bench/gpu_optimize.py --modelled --out r.json                                 # no GPU: the cost model's shares
    bench/gpu_optimize.py --measure r.json --out m.json --together 3              # a GPU times what --modelled found, and the naive kernels
    bench/gpu_optimize.py --only softmax,gemm:bf16 --out r.json                   # some
    bench/gpu_optimize.py --table bench/results/h100_optimize.json                # as Markdown

A row is an op and a dtype. Its transcript's replies are the op's naive kernel, then kernels of corpus/right and variants of
bench/cost/variants.py. The loop judges each (quick effort), times those that pass at the op's workloads, and keeps the one with the best mean
share of the limit. Rows go cheapest first, as far as the minutes go, several at once: Assay's processes take turns at the card, and what is timed has it to itself. The document is written anew after each, and rows that stand in it complete are not run again: a run that was cut goes on
where it was (--anew forgets them). Needs a GPU, unless --modelled.

--measure times alone: which kernel is the best is the model's word, and its outputs were judged when it was found.

Each row says, workload by workload, the share of the limit and the microseconds of the naive kernel and of the best, the library's where there is one, and ratios between
them; the op's bar; and of each reply how it was judged, and how long each gate took. Status 1: a reply was not accepted, though all of them are right for every shape.
"""
import argparse
import concurrent.futures
import datetime
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gpu_speed

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Cheapest first. Replies behind the naive one: "right/..." is a folder of corpus/right, others are variants.
REPLIES = {
    "row_sum": {"f32": ("block_a_row", "block_a_row_by_8"), "bf16": ("right/row_sum_vectorised", "block_a_row_by_8")},
    "softmax": {"f32": ("right/softmax_online", "block_a_row_by_8"), "bf16": ("right/softmax_online", "block_a_row_by_8")},
    "adamw": {"f32": ("one_each",), "bf16": ("one_each",)},
    "scatter_add": {"f32": ("right/scatter_add_by_column",), "bf16": ("right/scatter_add_by_column",)},
    "moe_router": {"f32": (), "bf16": ("right/moe_router_wmma",)},
    "rms_norm": {"f32": ("right/rms_norm_block_a_row", "block_a_row_by_8"), "bf16": ("right/rms_norm_block_a_row", "block_a_row_by_8")},
    "cross_entropy": {"f32": ("block_a_row_by_8", "right/cross_entropy_one_pass"), "bf16": ("block_a_row_by_8", "right/cross_entropy_one_pass")},
    "layer_norm": {"f32": ("block_a_row", "block_a_row_by_8"), "bf16": ("right/layer_norm_welford_pairs", "block_a_row_by_8")},
    "rms_norm_backward": {"f32": ("right/rms_norm_backward_kahan_parts",), "bf16": ("right/rms_norm_backward_kahan_parts",)},
    "cumsum": {"f32": ("right/cumsum_block_scan",), "bf16": ("right/cumsum_block_scan",)},
    "gemm": {"f32": ("registers_4_by_4_near", "registers_8_by_8_spread"), "bf16": ("registers_8_by_8_spread", "right/gemm_wmma")},
    "attention": {"f32": ("right/attention_online",), "bf16": ("right/attention_online",)},
    "embedding_rmsnorm_backward": {"f32": ("right/embedding_backward_without_atomics",), "bf16": ("right/embedding_backward_without_atomics",)},
}


def reply(folder):
    kernel, launch = (folder / "kernel.cu").read_text(), (folder / "launch.json").read_text()
    return f"```cuda\n{kernel}\n```\n\n```json\n{launch}\n```\n"


def folder_of(op, name, variants):
    if name == "naive":
        return ROOT / "ops" / op / "naive"
    return ROOT / "corpus" / name if name.startswith("right/") else variants / op / name


def write_transcript(path, op, names, variants):
    with open(path, "w") as out:
        print(json.dumps({"schema": "assay.transcript/1", "written": "by hand",
                          "note": "naive kernels, corpus/right and variants of bench/cost/variants.py, put together by bench/gpu_optimize.py",
                          "instance": op, "model": "none"}), file=out)
        for number, name in enumerate(names, 1):
            print(json.dumps({"type": "exchange", "name": f"attempt-{number}", "reply": {"text": reply(folder_of(op, name, variants)), "stop": "end"}}),
                  file=out)


def judged(run):
    """The events of a run's judgements, as far as it came."""
    file = run / "events.jsonl"
    events = []
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:  # the last line of a run that was cut
            break
    return [event for event in events if event.get("type") == "attempt_judged"]


def attempts(run, names):
    """What the record says of each attempt."""
    rows = {}
    for event in judged(run):
        number, verdict = event["attempt"], event["verdict"]
        speed = next((gate for gate in verdict["gates"] if gate["gate"] == "speed"), None)
        rows[number] = {"reply": names[number - 1] if number <= len(names) else None, "outcome": verdict["outcome"], "reason": verdict["reason"],
                        "seconds": {gate["gate"]: round(gate["seconds"], 1) for gate in verdict["gates"] if gate.get("seconds", 0) >= 0.1},
                        "speed": speed and {"says": speed["reason"], "statistics": speed["statistics"]}}
    return [rows[number] for number in sorted(rows)]


def workloads_of(attempt):
    """{workload: {"share", "us", "library", "library_us"}} and the bar, from the statistics of the speed gate."""
    found, bar = {}, None
    for statistic in ((attempt or {}).get("speed") or {}).get("statistics", []):
        if statistic["name"] == "times_the_limit":
            bar = 1 / statistic["limit"] if statistic["limit"] else None
            continue
        at = found[statistic["name"]] = {"share": statistic["value"]}
        if time_of := re.search(r"\), ([0-9.e+-]+) us, spread", statistic["note"]):
            at["us"] = float(time_of[1])
        if library := re.search(r", (cuBLASLt|cuDNN) ([0-9.e+-]+) us", statistic["note"]):
            at["library"], at["library_us"] = library[1], float(library[2])
    return found, bar


def mean(shares):
    return math.exp(sum(math.log(share) for share in shares) / len(shares)) if shares and min(shares) > 0 else None


def compared(row):
    """The naive kernel and the best, workload by workload."""
    by_name = {attempt["reply"]: attempt for attempt in row["attempts"]}
    best = row["emitted"][-1] if row["emitted"] else None
    naive, bar = workloads_of(by_name.get("naive"))
    fastest, bar_of_best = workloads_of(by_name.get(best))
    return {"bar": bar or bar_of_best, "naive": mean([at["share"] for at in naive.values()]), "best": mean([at["share"] for at in fastest.values()]), "best_reply": best,
            "workloads": lines_of(naive, fastest)}


def lines_of(naive, fastest):
    lines = []
    for workload in fastest or naive:
        first, last = naive.get(workload, {}), fastest.get(workload, {})
        line = {"workload": workload, "naive_share": first.get("share"), "naive_us": first.get("us"), "best_share": last.get("share"), "best_us": last.get("us")}
        library = last if "library" in last else first
        if "library" in library:
            line.update(library=library["library"], library_us=library["library_us"])
            if "us" in last:
                line["times_the_library"] = last["us"] / library["library_us"]
        if "us" in first and "us" in last:
            line["naive_over_best"] = first["us"] / last["us"]
        lines.append(line)
    return lines


def unexpected(row):
    """All of these kernels are right for every shape: what was not accepted."""
    return [f"{attempt['reply']}: {attempt['outcome']}: {attempt['reason']}" for attempt in row["attempts"] if attempt["outcome"] != "accepted"]


def run_row(arguments, op, dtype, names, work, variants, seconds):
    run = work / f"{op}_{dtype}"
    transcript = work / f"{op}_{dtype}.jsonl"
    write_transcript(transcript, op, names, variants)
    command = [arguments.assay, "generate", op, "--dtype", f"T={dtype}", "--model", f"replay/{transcript}", "--optimize",
               "--effort", "quick", "--attempts", str(len(names)), "--out", str(run), *arguments.extra]
    if not arguments.modelled:
        command += ["--engine", arguments.engine, "--speed"]
    start = time.monotonic()
    row = {"op": op, "dtype": dtype, "replies": names}
    # Interrupted, so that it ends its workers; an attempt that was judged stays judged.
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=gpu_speed.surroundings())
    try:
        said = process.communicate(timeout=seconds)[1]
        row.update(exit=process.returncode, said=said[-1500:].replace(str(work), "."))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        row.update(exit=None, said=f"not done within {seconds:.0f} s")
    row["took_seconds"] = round(time.monotonic() - start, 1)
    row["attempts"] = attempts(run, names)
    row["emitted"] = [names[event["attempt"] - 1] for event in judged(run) if event.get("vetted")]
    row.update(compared(row))
    row["unexpected"] = unexpected(row)
    return row


def timed(report):
    """{workload: {"share", "us", "library", "library_us"}} of a report of assay bench."""
    found = {}
    for at in report:
        if "left_out" in at:
            continue
        found[at["workload"]] = {"share": at["share"], "us": 1e6 * at["seconds"]}
        if "library" in at:
            found[at["workload"]].update(library=at["library"], library_us=1e6 * at["library_seconds"])
    return found


def measure_row(arguments, found, variants, rates, seconds):
    """The best that a document found, and the naive kernel, timed."""
    op, dtype, best = found["op"], found["dtype"], found["best_reply"]
    row = {key: found[key] for key in ("op", "dtype", "replies", "bar", "best_reply")}
    command = [arguments.assay, "bench", str(folder_of(op, best, variants)), "--op", op, "--dtype", f"T={dtype}", "--json", "--unchecked", "--rounds", "5",
               "--seconds", "0.5", *(["--against-naive"] if best != "naive" else []), *arguments.extra]
    if rates.exists():
        command += ["--rates", str(rates)]
    start = time.monotonic()
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=gpu_speed.surroundings())
        row.update(exit=run.returncode, said=run.stderr[-1500:].replace(str(variants), "."))
        report = json.loads(run.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        return {**row, "exit": row.get("exit"), "said": row.get("said", "") + f" {type(error).__name__}", "workloads": [], "naive": None, "best": None}
    row["took_seconds"] = round(time.monotonic() - start, 1)
    row["rates"] = report["rates"]
    fastest = timed(report["workloads"])
    naive = timed(report["naive"]) if best != "naive" else fastest
    row["workloads"] = lines_of(naive, fastest)
    row.update(naive=mean([at["share"] for at in naive.values()]), best=mean([at["share"] for at in fastest.values()]))
    return row


def measure(arguments, document, variants, work, end):
    """Rows of arguments.measure, without those that stand in the document; the first one's rates are everybody's, and stand once."""
    found = json.loads(arguments.measure.read_text())["ops"]
    document["found"] = f"by the cost model: {arguments.measure.name}; times are not held to truths"
    rates = work / "rates.json"
    wanted = [(op, dtype) for op, dtype, _ in planned(arguments)]
    known = [(row["op"], row["dtype"]) for row in document["ops"]]
    rows = [row for row in found if (row["op"], row["dtype"]) in wanted and (row["op"], row["dtype"]) not in known]

    def one(row):
        left = end - time.monotonic()
        measured = measure_row(arguments, row, variants, rates, min(left, arguments.most)) if left >= 5 else None
        if measured is None or measured["exit"] is None:
            document["left_out"].append(f"{row['op']} {row['dtype']}")
            return
        if "rates" in measured:
            document.setdefault("rates", measured["rates"])
            measured.pop("rates", None)
        document["ops"].append(measured)
        write(document, arguments.out)
        print(f"{row['op']} {row['dtype']}: exit {measured['exit']}, {measured.get('took_seconds')} s, {measured['naive']} -> {measured['best']} ({row['best_reply']})",
              file=sys.stderr, flush=True)

    if rows and "rates" not in document:
        one(rows.pop(0))
    if "rates" in document:
        rates.write_text(json.dumps(document["rates"]))
    with concurrent.futures.ThreadPoolExecutor(arguments.together) as pool:
        list(pool.map(one, rows))
    document["ops"].sort(key=lambda row: [(each["op"], each["dtype"]) for each in found].index((row["op"], row["dtype"])))
    write(document, arguments.out)
    return 1 if document["left_out"] or any(row["exit"] != 0 for row in document["ops"]) else 0


def table(document):
    """Markdown: a row of the table for each workload."""
    text = "| op | dtype | workload | limit, naive | limit, best | best | naive / best | library | best / library |\n|---|---|---|--:|--:|---|--:|---|--:|\n"

    def share(value):
        return "" if value is None else f"{100 * value:.1f} %"

    for row in document["ops"]:
        for at in row["workloads"]:
            over = f"{at['naive_over_best']:.1f}" if "naive_over_best" in at else ""
            library = f"{at['library']} {at['library_us']:.3g} us" if "library" in at else ""
            times = f"{at['times_the_library']:.2f}" if "times_the_library" in at else ""
            text += (f"| {row['op']} | {row['dtype']} | {at['workload']} | {share(at['naive_share'])} | {share(at['best_share'])} | {row['best_reply'] or ''} | {over} "
                     f"| {library} | {times} |\n")
    return text


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--most", type=float, default=400, help="seconds for one row")
    parser.add_argument("--together", type=int, default=1, help="rows at once")
    parser.add_argument("--only", default="", help="ops, or OP:DTYPE, with commas between")
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--replies", default="", help="of those that are written for a row only these, with commas between")
    parser.add_argument("--engine", default="gpu,emulator", help="assay's; its first GPU is what times are taken on")
    parser.add_argument("--modelled", action="store_true")
    parser.add_argument("--measure", type=pathlib.Path, help="time what this document found")
    parser.add_argument("--anew", action="store_true", help="run again what stands in the document")
    parser.add_argument("--table", type=pathlib.Path, help="print this document as Markdown, and run nothing")
    parser.add_argument("extra", nargs="*", help="further options of assay generate, after --")
    arguments = parser.parse_args()
    if not arguments.table and not arguments.out:
        parser.error("--out says where the document goes")
    return arguments


def planned(arguments):
    only = [word for word in arguments.only.split(",") if word]
    for op, by_dtype in REPLIES.items():
        for dtype in arguments.dtypes.split(","):
            if dtype not in by_dtype or (only and op not in only and f"{op}:{dtype}" not in only):
                continue
            names = [name for name in ("naive", *by_dtype[dtype]) if not arguments.replies or name in arguments.replies.split(",")]
            yield op, dtype, names


def write(document, path):
    """As a whole or not at all: a run may be cut at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    other = path.with_name(path.name + ".new")
    other.write_text(json.dumps(document, indent=1) + "\n")
    os.replace(other, path)


def main():
    arguments = parse()
    if arguments.table:
        sys.stdout.write(table(json.loads(arguments.table.read_text())))
        return 0
    end = time.monotonic() + 60 * arguments.minutes
    gpu = None if arguments.modelled else gpu_speed.driver()
    document = {"schema": "assay.optimize_results/2", "date": datetime.date.today().isoformat(), "gpu": gpu, "ops": [], "left_out": []}
    if arguments.out.exists() and not arguments.anew:
        before = json.loads(arguments.out.read_text())
        if before.get("schema") == document["schema"] and before.get("gpu") == gpu:
            document.update({key: before[key] for key in ("ops", "rates") if key in before})
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        variants = work / "variants"
        subprocess.run([sys.executable, str(ROOT / "bench/cost/variants.py"), str(variants)], check=True)
        if arguments.measure:
            return measure(arguments, document, variants, work, end)
        one_at_a_time = threading.Lock()

        def run_planned(op, dtype, names):
            with one_at_a_time:
                known = next((row for row in document["ops"] if (row["op"], row["dtype"]) == (op, dtype)), None)
            if known and known["exit"] is not None and known["replies"] == names:
                return
            left = end - time.monotonic()
            row = run_row(arguments, op, dtype, names, work, variants, min(left, arguments.most)) if left >= 5 else None
            with one_at_a_time:
                if row is None:
                    document["left_out"].append(f"{op} {dtype}")
                    return
                document["ops"] = [each for each in document["ops"] if each is not known] + [row]
                write(document, arguments.out)
            shares = " -> ".join("none" if row[each] is None else f"{100 * row[each]:.1f} %" for each in ("naive", "best"))
            print(f"{op} {dtype}: exit {row['exit']}, {row['took_seconds']} s, {len(row['attempts'])} of {len(names)} judged, {shares} ({row['best_reply']})"
                  + "".join(f"\n  UNEXPECTED {what}" for what in row["unexpected"]), file=sys.stderr, flush=True)
        with concurrent.futures.ThreadPoolExecutor(arguments.together) as pool:
            list(pool.map(lambda row: run_planned(*row), planned(arguments)))
    document["ops"].sort(key=lambda row: (list(REPLIES).index(row["op"]), arguments.dtypes.find(row["dtype"])))
    write(document, arguments.out)
    return 1 if any(row["unexpected"] for row in document["ops"]) else 0


if __name__ == "__main__":
    sys.exit(main())
