"""compute_score for verl, over the columns of an export's `rl` configuration.

    custom_reward_function.path=examples/rewards/verl_compute_score.py
    custom_reward_function.name=compute_score

`ground_truth` is the environment card as JSON text, as exports write it. What could not be decided scores 0. Run as a program it needs no
trainer.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from assay_reward import Rewards, example_candidates  # noqa: E402


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    """Reward of one completion."""
    card = json.loads(ground_truth)
    line = Rewards().judge([{"op": card["op"], "op_digest": card["op_digest"], "binding": card["binding"], "arch": card["arch"],
                             "reply": solution_str}])[0]
    return line["reward"] if line["conclusive"] else 0.0


if __name__ == "__main__":
    naive = pathlib.Path(__file__).resolve().parents[2] / "ops/rms_norm/naive"
    card = json.dumps({"op": "rms_norm", "op_digest": "", "binding": "T=f32", "arch": "sm_90"})
    for reply in example_candidates(naive):
        print(compute_score("assay/rms_norm", reply, card))
