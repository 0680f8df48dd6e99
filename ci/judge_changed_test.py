#!/usr/bin/env python3
"""judge_changed.py in a temporary repository, with the program itself and with one that pretends.

    ci/judge_changed_test.py build/release/bin/assay

What the workflow files run is held to what is in them: their command lines are taken from there.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ASSAY = ""
JUDGE = HERE / "judge_changed.py"

# Says what the first line of a kernel tells it to, in the form of `assay check`.
FAKE = """#!/usr/bin/env python3
import json, sys
a = sys.argv
assert a[1] == "check", a
kernel = open(a[2] + "/kernel.cu").read()
outcome = kernel.split()[1]
if outcome == "broken":
    print(json.dumps({"error": {"message": "no jail"}}))
    sys.exit(3)
results = [{"ruleId": "data_race", "ruleIndex": 0, "level": "error",
            "message": {"text": kernel.split("\\n")[1]},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": a[2].replace(" ", "%20") + "/kernel.cu"},
                                                "region": {"startLine": 2, "startColumn": 3}}}],
            "partialFingerprints": {"assayDefect/v1": "f"}}] if outcome == "refuted" else []
rules = [{"id": "data_race"}] if results else []
json.dump({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "assay", "rules": rules}},
           "invocations": [{"executionSuccessful": outcome != "inconclusive"}], "results": results}]},
          open(a[a.index("--sarif") + 1], "w"))
print(json.dumps({"outcome": outcome, "reason": " ".join(a[3:])}))
sys.exit({"accepted": 0, "refuted": 1, "inconclusive": 2}[outcome])
"""


class Repository(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.scratch.name) / "repo"
        self.root.mkdir()
        self.fake = pathlib.Path(self.scratch.name) / "fake"
        self.fake.write_text(FAKE)
        self.fake.chmod(0o755)
        self.git("init", "-q", "-b", "main")
        self.write(".gitignore", "assay-report/\n")
        self.kernel("kernels/a b", "accepted")
        self.kernel("kernels/c", "accepted")
        self.commit()

    def tearDown(self):
        self.scratch.cleanup()

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false",
                        *arguments], cwd=self.root, check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def branch(self):
        self.git("checkout", "-q", "-b", "change")

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def kernel(self, folder, outcome, message="two threads write", judge=None):
        self.write(folder + "/kernel.cu", f"// {outcome}\n{message}\n")
        self.write(folder + "/launch.json", "{}")
        self.write(folder + "/judge.json", json.dumps(judge or {"op": "softmax", "dtype": ["T=f16"]}))

    def run_it(self, *arguments, assay=None, environment=None, cwd=None):
        self.ran = subprocess.run(
            [sys.executable, str(JUDGE), "--base", "main", "--assay", str(assay or self.fake), *arguments],
            cwd=cwd or self.root, env={**os.environ, "GITHUB_ACTIONS": "", **(environment or {})},
            capture_output=True, text=True)
        return self.ran.returncode

    def left(self, name):
        return (self.root / "assay-report" / name).read_text()

    def test_only_what_is_touched_is_judged(self):
        self.branch()
        self.write("README", "x")
        self.commit()
        self.assertEqual(self.run_it(), 0)
        self.assertIn("No kernel was touched", self.ran.stdout)
        self.write("kernels/c/launch.json", "{ }")
        self.commit()
        self.assertEqual(self.run_it(), 0)
        self.assertIn("kernels/c", self.left("summary.md"))
        self.assertNotIn("kernels/a b", self.left("summary.md"))
        self.assertIn("--op softmax --arch sm_90 --effort quick", self.left("summary.md"))
        self.assertIn("--dtype T=f16", self.left("summary.md"))
        self.assertEqual(self.run_it("--all", cwd=self.root / "kernels"), 0)
        self.assertIn("kernels/a b", self.left("summary.md"))

    def test_what_main_changed_meanwhile_is_not_ours(self):
        self.branch()
        self.git("checkout", "-q", "main")
        self.kernel("kernels/c", "refuted")
        self.commit()
        self.git("checkout", "-q", "change")
        self.assertEqual(self.run_it(), 0)

    def test_a_refutation_is_told_at_its_line(self):
        self.branch()
        self.kernel("kernels/a b", "refuted", "100% wrong: a,b::warning::x")
        self.kernel("kernels/c", "refuted")
        self.commit()
        summary = pathlib.Path(self.scratch.name) / "summary"
        self.assertEqual(self.run_it("--github", environment={"GITHUB_STEP_SUMMARY": str(summary)}), 1)
        self.assertIn("::error file=kernels/a b/kernel.cu,line=2,col=3,title=assay%3A data_race::"
                      "100%25 wrong: a,b::warning::x\n", self.ran.stdout)
        self.assertIn("| kernels/c | softmax | refuted |", summary.read_text())
        log = json.loads(self.left("assay.sarif"))
        self.assertEqual(len(log["runs"]), 1)
        self.assertEqual(len(log["runs"][0]["results"]), 2)
        self.assertEqual(len(log["runs"][0]["tool"]["driver"]["rules"]), 1)
        issues = json.loads(self.left("gl-code-quality-report.json"))
        self.assertEqual(issues[0]["location"], {"path": "kernels/a b/kernel.cu", "lines": {"begin": 2}})
        self.assertNotEqual(issues[0]["fingerprint"], issues[1]["fingerprint"])
        # Twin: without --github nothing is told as a command.
        self.run_it()
        self.assertNotIn("::error", self.ran.stdout)

    def test_a_line_of_a_kernel_is_no_command(self):
        self.branch()
        self.kernel("kernels/c", "refuted", "x\r::stop-commands::y")
        self.commit()
        self.run_it("--github")
        for line in re.split("[\r\n]", self.ran.stdout):
            self.assertFalse(line.startswith("::stop"), line)

    def refused(self, words):
        self.commit()
        self.assertEqual(self.run_it(), 3, self.ran.stdout)
        self.assertIn(words, self.ran.stderr)
        self.git("reset", "-q", "--hard", "main")

    def test_links_lead_nowhere(self):
        secret = pathlib.Path(self.scratch.name) / "secret"
        secret.write_text("token")
        self.branch()
        for name in ("kernel.cu", "launch.json", "judge.json"):
            for target in (secret, "../../.git/config"):
                file = self.root / "kernels/c" / name
                file.unlink()
                file.symlink_to(target)
                self.refused("is a link")
        self.kernel("kernels/c", "accepted", judge={"op": "ops/mine/"})
        self.write("ops/mine/op.json", "{}")
        (self.root / "ops/mine/reference.cu").symlink_to("../../.git/config")
        self.refused("reference.cu: is a link")
        self.write("elsewhere/op.json", "{}")
        self.kernel("kernels/c", "accepted", judge={"op": "ops/mine/"})
        (self.root / "ops").mkdir(exist_ok=True)
        (self.root / "ops/mine").symlink_to("../elsewhere")
        self.refused("ops/mine: is a link")
        self.assertEqual(self.run_it(), 0)

    def test_the_report_goes_where_no_change_leads_it(self):
        home = pathlib.Path(self.scratch.name) / "home"
        home.mkdir()
        self.branch()
        self.kernel("kernels/c", "refuted")
        (self.root / "assay-report").symlink_to(home)
        self.refused("is part of the repository")
        self.kernel("kernels/c", "refuted")
        (self.root / "assay-report").mkdir()
        (self.root / "assay-report/summary.md").symlink_to(home / "profile")
        self.git("add", "-f", "assay-report")
        self.refused("is part of the repository")
        self.assertEqual(list(home.iterdir()), [])
        (self.root / "assay-report").symlink_to(home)  # left by another job
        self.assertEqual(self.run_it(), 3)
        self.assertIn("is a link", self.ran.stderr)

    def test_a_name_of_a_folder_is_no_command(self):
        self.branch()
        self.kernel("kernels/x\n::error::owned", "refuted")
        self.kernel("kernels/[a](http:x)", "refuted")
        self.commit()
        self.assertEqual(self.run_it("--github"), 1)
        for line in (self.ran.stdout + self.ran.stderr).splitlines():
            self.assertFalse(line.startswith("::error::owned"), line)
        self.assertIn("\\[a\\](http:x)", self.left("summary.md"))

    def test_the_worst_decides(self):
        self.branch()
        self.kernel("kernels/c", "inconclusive")
        self.commit()
        self.assertEqual(self.run_it(), 2)
        self.kernel("kernels/a b", "refuted")
        self.commit()
        self.assertEqual(self.run_it(), 1)
        self.kernel("kernels/d", "broken")
        self.commit()
        self.assertEqual(self.run_it(), 3)
        self.assertIn("no jail", self.left("summary.md"))

    def test_an_op_of_the_repository(self):
        self.kernel("kernels/c", "accepted", judge={"op": "ops/mine"})
        self.write("ops/mine/op.json", "{}")
        self.commit()
        self.branch()
        self.write("ops/mine/op.json", "{ }")
        self.commit()
        self.assertEqual(self.run_it(), 0)
        self.assertIn("--op ops/mine", self.left("summary.md"))

    def test_what_is_no_judge_json_is_said(self):
        self.branch()
        os.symlink("/", self.root / "outside")
        for judge in ({}, {"op": "/etc"}, {"op": "../x/y"}, {"op": "outside/etc"}, {"op": "--help"},
                      {"op": "a", "dtype": "T=f16"}, {"op": "a", "dtype": ["--unsafe-no-jail"]},
                      {"op": "a", "arch": "-x"}, {"op": "a", "effort": "none"}, {"op": "a", "unsafe": True}):
            self.kernel("kernels/c", "accepted", judge=judge if judge else {"x": 1})
            self.commit()
            self.assertEqual(self.run_it(), 3, judge)
            self.assertIn("fix:", self.ran.stderr)
        self.git("rm", "-q", "kernels/c/launch.json")
        self.commit()
        self.assertEqual(self.run_it(), 3)
        self.assertEqual(self.run_it("--base=--output=x"), 3)
        self.assertEqual(self.run_it("--base", "nowhere"), 3)

    def test_what_the_action_runs(self):
        self.branch()
        self.kernel("kernels/c", "refuted")
        self.commit()
        text = (HERE.parent / "action.yml").read_text()
        script = re.search(r"      run: \|\n((?:        .*\n)+)", text).group(1)
        ran = subprocess.run(
            ["bash", "-e", "-c", script], cwd=self.root, capture_output=True, text=True,
            env={**os.environ, "BASE": "main", "ASSAY": str(self.fake), "EFFORT": "standard", "ALL": "false",
                 "GITHUB_ACTION_PATH": str(HERE.parent)})
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertIn("::error file=kernels/c/kernel.cu", ran.stdout)
        self.assertIn("--effort standard", self.left("summary.md"))

    def test_what_the_template_runs(self):
        self.git("clone", "-q", str(self.root), str(pathlib.Path(self.scratch.name) / "clone"))
        clone = pathlib.Path(self.scratch.name) / "clone"
        self.root, origin = clone, self.root
        self.branch()
        self.kernel("kernels/c", "refuted")
        self.commit()
        text = (HERE / "gitlab.yml").read_text()
        lines = re.search(r"  script:\n((?:    - .*\n)+)", text).group(1)
        script = "".join(line.strip()[2:] + "\n" for line in lines.splitlines())
        ran = subprocess.run(
            ["bash", "-e", "-c", script], cwd=clone, capture_output=True, text=True,
            env={**os.environ, "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "ASSAY": str(self.fake),
                 "ASSAY_CI": str(JUDGE), "GITHUB_ACTIONS": ""})
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertEqual(json.loads(self.left("gl-code-quality-report.json"))[0]["check_name"], "data_race")

    def test_the_program_itself(self):
        self.branch()
        self.kernel("kernels/c", "accepted", judge={"op": "softmax", "dtype": ["T=f32"]})
        naive = HERE.parent / "ops/softmax/naive"
        self.write("kernels/c/launch.json", (naive / "launch.json").read_text())
        self.write("kernels/c/kernel.cu", (naive / "kernel.cu").read_text() + "\nint broken = nothing;\n")
        self.commit()
        self.assertEqual(self.run_it("--github", assay=ASSAY), 1, self.ran.stderr)
        line = len((self.root / "kernels/c/kernel.cu").read_text().splitlines())
        self.assertIn(f"::error file=kernels/c/kernel.cu,line={line},", self.ran.stdout)
        self.assertIn(f"kernels/c/kernel.cu:{line}:", self.ran.stderr)
        self.assertEqual(json.loads(self.left("1-verdict.json"))["outcome"], "refuted")
        log = json.loads(self.left("assay.sarif"))
        self.assertEqual(log["runs"][0]["results"][0]["ruleId"], "compile_error")


if __name__ == "__main__":
    ASSAY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
