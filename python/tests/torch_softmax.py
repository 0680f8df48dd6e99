"""Judges kernels against a softmax that is written in torch: torch_softmax.py FOLDER, where the op goes. Needs torch
in this Python, the jail and NVRTC; no GPU."""

from __future__ import annotations

import pathlib
import sys

import torch


def softmax_of_mine(x: "f32[rows, columns]") -> torch.Tensor:
    """Softmax of each row."""
    return torch.softmax(x, -1)


SOURCE = r"""
extern "C" __global__ void softmax(const float* x, float* y, long long rows, long long columns) {
  const long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float largest = -INFINITY, sum = 0;
  for (long long j = 0; j < columns; ++j) largest = fmaxf(largest, x[row * columns + j]);
  for (long long j = 0; j < columns; ++j) sum += expf(x[row * columns + j] - largest);
  for (long long j = 0; j < columns; ++j) y[row * columns + j] = expf(x[row * columns + j] - largest) / sum;
}"""


def main() -> int:
    import assay  # here: the jail that imports the function reads this file as well, and has no such package

    op = assay.op(softmax_of_mine, out=pathlib.Path(sys.argv[1]) / "softmax_of_mine")
    print(op)
    args = ["x", op.outputs[0].name, "rows", "columns"]
    launch = {
        "schema": "assay.launch/1",
        "kernels": [{"entry": "softmax", "grid": ["ceil_div(rows, 64)"], "block": [64], "args": args}],
    }
    emit = pathlib.Path(sys.argv[1]) / "vetted"
    right = assay.check(SOURCE, launch, op, effort="quick", emit=emit)
    print(right)
    # Without the largest value an exponential overflows; few inputs show it.
    wrong = assay.check(SOURCE.replace("- largest", "- 0 * largest"), launch, op, effort="quick")
    print(wrong)
    assert right.accepted and (emit / "kernel.py").exists(), right
    assert wrong.outcome == "refuted" and wrong.counterexamples, wrong
    module = assay.load(emit)
    try:
        getattr(module, op.name)(torch.zeros(2, 3))
    except module.Refused as refused:
        print(refused)
    else:
        raise AssertionError("a CPU tensor was taken")
    return 0


if __name__ == "__main__":
    sys.exit(main())
