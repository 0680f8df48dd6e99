#!/usr/bin/env python3
"""Judges the kernels that a change touches; what the GitHub Action and the GitLab template run.

A kernel is a folder with kernel.cu, launch.json and judge.json, which says what it is judged by:

    {"op": "softmax", "dtype": ["T=f16"], "arch": "sm_90", "effort": "quick"}

`op` is a name of assay's library, or a folder of this repository that holds op.json. A kernel is
judged when one of its files, or one of its op's, differs from the merge base of --base and HEAD; with
--all every kernel is. Nothing of the repository is run but by `assay`, in its jail.

Leaves in --out: <n>-verdict.json and <n>.sarif for each kernel, assay.sarif (all of them as one run),
gl-code-quality-report.json, summary.md. On GitHub, findings are told as annotations as well.

Exit codes: 0 every kernel accepted (or none touched), 1 one was refuted, 2 one was not decided,
3 something is wrong with judge.json or this machine. Python 3.9 and git; no packages.
"""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys

EFFORTS = ("quick", "standard", "thorough")
KNOWN_KEYS = {"op", "dtype", "arch", "effort"}


def shown(text):
    """On one line: names of a change's files may hold line breaks, and lines are commands to some hosts."""
    return "".join(char if char.isprintable() else "?" for char in str(text))


def fail(place, message, fix):
    print(f"error: {shown(place)}: {shown(message)}\n  fix: {shown(fix)}", file=sys.stderr)
    sys.exit(3)


def git(*arguments):
    ran = subprocess.run(["git", *arguments], capture_output=True)
    if ran.returncode != 0:
        fail("git " + " ".join(arguments), ran.stderr.decode(errors="replace").strip(),
             "fetch the base (with its history: fetch-depth 0), and name it with --base")
    return ran.stdout.decode(errors="surrogateescape")


def names(text):
    return [name for name in text.split("\0") if name]


def inside(path):
    """A path that stands in a judge.json, if it is one of this repository; links are followed."""
    root = pathlib.Path.cwd().resolve()
    resolved = (root / path).resolve()
    return resolved if resolved == root or root in resolved.parents else None


def no_links(path):
    """A link of a change's would show what it leads to, or have it written: what lies around a repository
    (.git/config with its token, for one) is none of the change's."""
    for place in [path, *path.parents]:
        if place.is_symlink():
            fail(place, "is a link", "put a file or a folder in its place")
    for folder, folders, files in os.walk(path):
        for name in folders + files:
            if os.path.islink(os.path.join(folder, name)):
                fail(os.path.join(folder, name), "is a link", "put a file or a folder in its place")


def report_folder(name):
    """Where the report goes: nothing that a change brought."""
    out = pathlib.Path(name)
    if not out.is_absolute():
        if names(git("ls-files", "-z", "--", name)):
            fail(name, "is part of the repository", "take it out, or name another folder with --out")
        for place in [out, *out.parents]:
            if place.is_symlink():
                fail(place, "is a link", "remove it, or name another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    return out


def read_judge(folder):
    file = folder / "judge.json"
    place = str(file)
    try:
        asked = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        fail(place, str(error), "write it like the example in ci/judge_changed.py")
    if not isinstance(asked, dict) or not isinstance(asked.get("op"), str):
        fail(place, "names no op", '{"op": "softmax"}')
    for key in asked:
        if key not in KNOWN_KEYS:
            fail(place, f"unknown key '{key}'", "known are " + ", ".join(sorted(KNOWN_KEYS)))
    dtypes = asked.get("dtype", [])
    if not isinstance(dtypes, list) or not all(isinstance(one, str) for one in dtypes):
        fail(place, "dtype is no list of words", '"dtype": ["T=f16"]')
    if asked.get("effort", "quick") not in EFFORTS:
        fail(place, "no such effort", " or ".join(EFFORTS))
    if not isinstance(asked.get("arch", "sm_90"), str):
        fail(place, "arch is no word", '"arch": "sm_90"')
    # Options are built here: a word that begins with a dash would be one.
    for word in [asked["op"], asked.get("arch", "sm_90"), *dtypes]:
        if word.startswith("-"):
            fail(place, f"'{word}' is no op, dtype or target", "leave out the dash")
    if "/" in asked["op"] and inside(asked["op"]) is None:
        fail(place, "the op is a folder outside of the repository", "name one of this repository")
    return asked


def kernels(base, judge_all):
    files = names(git("ls-files", "-z"))
    folders = sorted({str(pathlib.PurePosixPath(file).parent) for file in files
                      if pathlib.PurePosixPath(file).name == "judge.json"})
    if not judge_all:
        merge_base = git("merge-base", base, "HEAD").strip()
        changed = names(git("diff", "--name-only", "-z", merge_base, "HEAD"))
    for name in folders:
        folder = pathlib.Path(name)
        for needed in ("kernel.cu", "launch.json"):
            if not (folder / needed).is_file():
                fail(str(folder / needed), "is not there", "a kernel is kernel.cu and launch.json")
        for needed in ("kernel.cu", "launch.json", "judge.json"):
            no_links(folder / needed)
        asked = read_judge(folder)
        if "/" in asked["op"]:
            no_links(pathlib.Path(os.path.normpath(asked["op"])))
        if not judge_all:
            watched = ["" if name == "." else name + "/"]
            if "/" in asked["op"]:
                watched.append(os.path.relpath(inside(asked["op"])) + "/")
            if not any(file.startswith(one) for file in changed for one in watched):
                continue
        yield folder, asked


def judge(assay, folder, asked, effort, out, number):
    sarif = out / f"{number}.sarif"
    sarif.unlink(missing_ok=True)
    command = [assay, "check", os.path.normpath(folder), "--op", asked["op"], "--arch",
               asked.get("arch", "sm_90"), "--effort", effort or asked.get("effort", "quick"),
               "--format", "compiler", "--sarif", str(sarif), "--json"]
    for dtype in asked.get("dtype", []):
        command += ["--dtype", dtype]
    ran = subprocess.run(command, stdout=subprocess.PIPE)
    try:
        verdict = json.loads(ran.stdout)
    except ValueError:
        verdict = {}
    (out / f"{number}-verdict.json").write_bytes(ran.stdout)
    if "outcome" not in verdict:
        error = verdict.get("error", {})
        verdict = {"outcome": "not judged", "reason": error.get("message", "assay said nothing")}
    log = json.loads(sarif.read_text()) if sarif.exists() else None
    return ran.returncode, verdict, log


def results_of(log):
    for run in log["runs"] if log else []:
        for result in run["results"]:
            place = result["locations"][0]["physicalLocation"]
            yield result, place["artifactLocation"]["uri"], place["region"]


def merged(logs):
    """One run: code hosts take one a tool and upload."""
    whole, rules = None, {}
    for log in filter(None, logs):
        run = log["runs"][0]
        if whole is None:
            whole = json.loads(json.dumps(log))
            whole["runs"][0]["results"] = []
            whole["runs"][0]["invocations"] = []
        for rule in run["tool"]["driver"]["rules"]:
            rules.setdefault(rule["id"], (len(rules), rule))
        for result in run["results"]:
            whole["runs"][0]["results"].append(dict(result, ruleIndex=rules[result["ruleId"]][0]))
        whole["runs"][0]["invocations"] += run["invocations"]
    if whole is not None:
        whole["runs"][0]["tool"]["driver"]["rules"] = [rule for _, rule in rules.values()]
    return whole


def escaped(text, more=""):
    """For a workflow command of GitHub: kernels write parts of what is told."""
    for char in "%\r\n" + more:
        text = text.replace(char, "%%%02X" % ord(char))
    return text


def annotate(log):
    for result, uri, region in results_of(log):
        from urllib.parse import unquote
        place = f"file={escaped(unquote(uri), ':,')},line={region['startLine']}"
        if "startColumn" in region:
            place += f",col={region['startColumn']}"
        title = escaped("assay: " + result["ruleId"], ":,")
        print(f"::{'warning' if result['level'] == 'warning' else 'error'} {place},title={title}::"
              f"{escaped(result['message']['text'])}")


def code_quality(logs):
    """GitLab's report: an array of issues."""
    from urllib.parse import unquote
    issues = []
    for log in logs:
        for result, uri, region in results_of(log):
            issues.append({
                "description": result["message"]["text"],
                "check_name": result["ruleId"],
                "fingerprint": hashlib.sha256(
                    (uri + result["partialFingerprints"]["assayDefect/v1"]).encode()).hexdigest(),
                "severity": "minor" if result["level"] == "warning" else "critical",
                "location": {"path": unquote(uri), "lines": {"begin": region["startLine"]}},
            })
    return issues


def cell(text):
    """In a table of Markdown: words and nothing that would be drawn or followed."""
    text = shown(text.replace("\n", " ")).replace("<", "&lt;")
    return "".join("\\" + char if char in "\\|[]`" else char for char in text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--base", default="origin/main", help="what the change is against")
    parser.add_argument("--all", action="store_true", help="every kernel, changed or not")
    parser.add_argument("--assay", default="assay", help="the program")
    parser.add_argument("--effort", choices=EFFORTS, help="in place of what judge.json says")
    parser.add_argument("--out", default="assay-report", help="folder for what is left")
    parser.add_argument("--github", action="store_true",
                        default=os.environ.get("GITHUB_ACTIONS") == "true",
                        help="tell annotations and the summary as GitHub reads them")
    options = parser.parse_args()
    if options.base.startswith("-"):
        fail("--base", "is no commit", "name a branch or a commit")
    os.chdir(git("rev-parse", "--show-toplevel").rstrip("\n"))
    out = report_folder(options.out)
    rows, logs, worst = [], [], 0
    for number, (folder, asked) in enumerate(kernels(options.base, options.all), 1):
        print(shown(f"judging {folder} ({asked['op']})"), flush=True)
        code, verdict, log = judge(options.assay, folder, asked, options.effort, out, number)
        logs.append(log)
        rows.append((folder, asked, verdict))
        # Refuted is told before not decided, and either before nothing; the machine's faults first.
        order = [0, 2, 1, 3]
        code = code if code in order else 3
        worst = max(worst, code, key=order.index)
        if options.github:
            annotate(log)
        sys.stdout.flush()
    whole = merged(logs)
    if whole is not None:
        (out / "assay.sarif").write_text(json.dumps(whole, indent=2) + "\n")
    (out / "gl-code-quality-report.json").write_text(json.dumps(code_quality(logs), indent=2) + "\n")
    summary = "| kernel | op | outcome | why |\n|---|---|---|---|\n" if rows else "No kernel was touched.\n"
    for folder, asked, verdict in rows:
        summary += "| {} | {} | {} | {} |\n".format(
            *(cell(str(text)) for text in (folder, asked["op"], verdict["outcome"], verdict.get("reason", ""))))
    (out / "summary.md").write_text(summary)
    print(summary)
    if options.github and os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(os.environ["GITHUB_STEP_SUMMARY"], "a") as file:
            file.write(summary)
    return worst


if __name__ == "__main__":
    sys.exit(main())
