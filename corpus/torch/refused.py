"""What is refused, by name and with what to do: each function says what in its last word."""

import torch
import torch.nn.functional as F


def draws(x: "f32[n]"):
    """random"""
    return x * torch.rand_like(x)


def reads_value(x: "f32[n]", count: "i64[1]"):
    """values"""
    return x[: int(count.item())]


def sizes_from_data(x: "f32[n]"):
    """values"""
    return x[x > 0]


def branches_on_data(x: "f32[n]"):
    """values"""
    return x if x.sum() > 0 else -x


def chooses_computed(x: "f32[rows, k]", w: "f32[k, n]", table: "f32[n, m]"):
    """differ"""
    return table[(x @ w).argmax(-1)]


def unpooled(x: "f32[batch, 3, 8, 8]"):
    """chance"""
    y, at = F.max_pool2d(x, 2, return_indices=True)
    return F.max_unpool2d(y, at, 2)
