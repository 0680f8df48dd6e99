"""Rewards from `assay reward`, for any trainer: lists of candidates in, lists of reward lines out.

    from assay_reward import Rewards
    rewards = Rewards(cache="judgements")
    lines = rewards.judge([{"op": "rms_norm", "binding": "T=f16", "reply": completion}])
    lines[0]["reward"]            # 0 to 1, or None: leave the sample out

One process judges a whole list; what it has judged before, in this run or another, comes from the cache. Needs nothing but Python 3.8 and
the program: on PATH, or named by ASSAY.
"""
import json
import os
import shutil
import subprocess


class Rewards:
    def __init__(self, cache="judgements", effort="standard", arch="sm_90", seed=1):
        program = os.environ.get("ASSAY") or shutil.which("assay")
        if not program:
            raise RuntimeError("assay is neither on PATH nor named by ASSAY")
        self._command = [program, "reward", "--cache", str(cache), "--effort", effort, "--arch", arch, "--seed", str(seed)]

    def judge(self, candidates):
        """One reward line (rewards/schemas/reward.schema.json) for each candidate, in order."""
        text = "".join(json.dumps(candidate) + "\n" for candidate in candidates)
        done = subprocess.run(self._command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if len(lines) != len(candidates):
            raise RuntimeError("assay reward ended early: " + done.stderr.strip())
        return lines


def text_of(completion):
    """A completion as text: trainers give either a string or a list of messages."""
    return completion if isinstance(completion, str) else completion[-1]["content"]


def example_candidates(folder):
    """The op's own right kernel, the same with a wrong result, and a reply that holds none."""
    kernel = (folder / "kernel.cu").read_text()
    launch = (folder / "launch.json").read_text()

    def reply(source):
        return f"```cuda\n{source}\n```\n\n```json\n{launch}\n```\n"

    return [reply(kernel), reply(kernel.replace("+ eps", "")), "I cannot."]
