"""Numbers that are taken out of tensors (.item()) and computed with, and functions as people write them: devices by name,
arguments by keyword, several results under names, gradients taken inside."""

import math
from typing import NamedTuple, Optional

import torch


class Both(NamedTuple):
    scaled: torch.Tensor
    scale: torch.Tensor


def scaled_by_sum(x: "f32[n]"):
    """A number that is computed and read."""
    return x * float(x.abs().sum().item())


def dynamic_scale(x: "f32[rows, columns]"):
    """Rounded to steps of a scale that the largest number gives; both are results."""
    scale = max(x.abs().max().item(), 1e-4) / 448.0
    return Both(torch.round(x / scale), torch.full((x.shape[0],), scale))


def length_mask(x: "f32[rows, columns]", length: "i64[1]"):
    """What lies beyond a length is zero."""
    return torch.where(torch.arange(x.shape[1]) < length.item(), x, 0.0)


def row_at(x: "f32[rows, columns]", at: "i64[1]"):
    """The row that a tensor names."""
    return x[int(at.item())] * 2


def window_at(x: "f32[rows, columns]", start: "i64[1]"):
    """Three columns from a place on."""
    return torch.narrow(x, 1, start.item(), 3) + 1


def write_at(cache: "f32[rows, columns]", new: "f32[rows, 4]", at: "i64[1]"):
    """Four columns of a cache are written to, at a place that a tensor holds."""
    start = int(at.item())
    cache[:, start : start + 4] = new
    return cache.sum(1)


def bias_corrected(m: "f32[n]", v: "f32[n] in 0..4", step: "i32[1] in 1..1000"):
    """Adam's corrections by a step that is counted in a tensor."""
    t = int(step.item())
    return m / (1 - 0.9**t) / (torch.sqrt(v / (1 - 0.999**t)) + 1e-8)


def norm_clipped(x: "f32[n]", limit: "f32[1] in 0.5..2"):
    """Scaled so that the norm is at most a limit."""
    return x * min(limit.item() / (float(x.norm()) + 1e-6), 1.0)


def root_scaled(x: "f32[n]", width: "f32[1] in 1..64"):
    """Divided by the root of a number."""
    return x / math.sqrt(width.item())


def on_a_device(x: "f32[rows, columns]"):
    """A device that is not here."""
    ramp = torch.arange(x.shape[1], device="cuda", dtype=torch.float32)
    return x.cuda() * ramp + torch.zeros(x.shape[1], device=torch.device("cuda:0"))


def by_keyword(x: "f32[rows, columns]", *, weight: "f32[columns]", bias: Optional[torch.Tensor] = None, eps: float = 1e-6):
    """Arguments that have names alone, some of them left out."""
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight
    return {"y": y if bias is None else y + bias, "largest": y.amax(-1)}


def derived_inside(x: "f32[rows, inner]", w: "f32[inner, columns]"):
    """A gradient that the function takes itself."""
    x = x.detach().requires_grad_(True)
    (found,) = torch.autograd.grad(torch.tanh(x @ w).sum(), x)
    return found


def polar_rope(x: "f32[batch, length, pairs, 2]", angle: "f32[length, pairs]"):
    """Rotary embedding by complex numbers."""
    turn = torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(torch.view_as_complex(x) * turn)


def running_logsumexp(x: "f32[rows, columns]"):
    """log(sum(exp(x))) so far."""
    return torch.logcumsumexp(x, -1)


def middle_of_rows(x: "f32[rows, columns]"):
    """Medians, thirds and third smallest elements."""
    return x.median(-1).values, torch.quantile(x, 0.3, dim=-1), torch.kthvalue(x, 3, -1).values


def mean_by_index(x: "f32[n, columns]", group: "i64[n]", like: "f32[groups, columns]"):
    """Means of the rows of a group."""
    return like.index_reduce(0, group, x, "mean", include_self=False)


def lengths_of_vectors(x: "f32[n]", y: "f32[n]"):
    """hypot and logaddexp."""
    return torch.hypot(x, y), torch.logaddexp(x, y)
