"""A reward function for TRL's GRPOTrainer, over the columns of an export's `rl` configuration.

    from datasets import load_dataset
    from trl import GRPOTrainer
    trainer = GRPOTrainer(model="...", reward_funcs=assay_reward, train_dataset=load_dataset("out", "rl", split="train"))

Run as a program it needs no trainer: it calls the function as TRL does, with three completions.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from assay_reward import Rewards, example_candidates, text_of  # noqa: E402


def assay_reward(prompts, completions, environment, **columns):
    """One reward for each completion; None (TRL leaves the sample out) where the judge could not decide."""
    candidates = [
        {"op": card["op"], "op_digest": card["op_digest"], "binding": card["binding"], "arch": card["arch"],
         "prompt": prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}], "reply": text_of(completion)}
        for prompt, completion, card in zip(prompts, completions, environment)
    ]
    return [line["reward"] if line["conclusive"] else None for line in Rewards().judge(candidates)]


if __name__ == "__main__":
    naive = pathlib.Path(__file__).resolve().parents[2] / "ops/rms_norm/naive"
    replies = example_candidates(naive)
    cards = [{"op": "rms_norm", "op_digest": "", "binding": "T=f32", "arch": "sm_90"}] * len(replies)
    messages = [[{"role": "assistant", "content": reply}] for reply in replies]
    for reward in assay_reward(prompts=["Write rms_norm."] * len(replies), completions=messages, environment=cards):
        print(reward)
