"""Positions, images and geometry."""

import math

import torch
import torch.nn.functional as F


def yarn_frequencies(position: "i64[tokens] in 0..4096", inv: "f32[half] in 0.001..1", mscale: "f32 in {1.0, 1.2}"):
    """cos and sin tables with a ramp between interpolated and extrapolated frequencies."""
    low, high = 1.0, 3.0
    ramp = ((torch.arange(inv.shape[0], dtype=torch.float32) - low) / (high - low)).clamp(0, 1)
    f = inv / 4 * ramp + inv * (1 - ramp)
    angle = position[:, None].float() * f[None]
    both = torch.cat([angle, angle], -1)
    return both.cos() * mscale, both.sin() * mscale


def sinusoids(t: "f32[n] in 0..1000", like: "f32[half]"):
    """Timestep embedding of diffusion models."""
    half = like.shape[0]
    f = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)
    args = t[:, None] * f[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


def relative_bias(q: "f32[heads, length, dim]", k: "f32[heads, length, dim]", v: "f32[heads, length, dim]", table: "f32[buckets, heads]"):
    """Bias by distance, through a table of buckets."""
    n = q.shape[1]
    at = torch.arange(n)
    d = (at[None] - at[:, None]).abs().clamp(max=table.shape[0] - 1)
    return torch.softmax(q @ k.transpose(1, 2) + table[d].permute(2, 0, 1), -1) @ v


def talking_heads(q: "f32[batch, heads, length, dim]", k: "f32[batch, heads, length, dim]", v: "f32[batch, heads, length, dim]", mix: "f32[heads, heads]"):
    """Scores of heads are mixed before the softmax, and after."""
    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    s = torch.einsum("bhij,hg->bgij", s, mix)
    p = torch.softmax(s, -1)
    return torch.einsum("bhij,hg->bgij", p, mix) @ v


def local_attention_blocks(q: "f16[batch, 3, 4, dim]", k: "f16[batch, 3, 4, dim]", v: "f16[batch, 3, 4, dim]"):
    """Blocks attend to themselves and to the one before."""
    kp = torch.cat([F.pad(k[:, :-1], (0, 0, 0, 0, 1, 0)), k], 2)
    vp = torch.cat([F.pad(v[:, :-1], (0, 0, 0, 0, 1, 0)), v], 2)
    s = torch.einsum("bnqd,bnkd->bnqk", q, kp).float() / math.sqrt(q.shape[-1])
    return torch.einsum("bnqk,bnkd->bnqd", torch.softmax(s, -1).to(v.dtype), vp)


def perceiver_pool(x: "f32[batch, tokens, dim]", query: "f32[slots, dim]", seen: "bool[batch, tokens]"):
    """Slots attend to tokens that count; where none does, the result is zero."""
    s = torch.einsum("sd,btd->bst", query, x)
    s = s.masked_fill(~seen[:, None], -1e9)
    p = torch.softmax(s, -1) * seen[:, None]
    return torch.einsum("bst,btd->bsd", p, x)


def box_iou(a: "f32[n, 4]", b: "f32[m, 4]"):
    """Intersection over union of boxes by corners."""
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    area = lambda t: (t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1])  # noqa: E731
    return inter / (area(a)[:, None] + area(b)[None] - inter + 1e6)


def harris(x: "f32[batch, 1, high, wide]"):
    """Corner response by Sobel filters and a box."""
    kx = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])[None, None]
    gx, gy = F.conv2d(x, kx, padding=1), F.conv2d(x, kx.transpose(2, 3), padding=1)
    box = lambda t: F.avg_pool2d(t, 3, 1, 1)  # noqa: E731
    a, b, c = box(gx * gx), box(gy * gy), box(gx * gy)
    return a * b - c * c - 0.04 * (a + b) ** 2


def quaternion_rotate(q: "f32[n, 4]", v: "f32[n, 3]"):
    """Vectors turned by quaternions that are normalised first."""
    q = q / q.norm(dim=-1, keepdim=True)
    w, u = q[:, :1], q[:, 1:]
    t = 2 * torch.cross(u, v, dim=-1)
    return v + w * t + torch.cross(u, t, dim=-1)


def cholesky_like(a: "f32[n, 3, 3]"):
    """Determinant and inverse of 3x3 matrices by cofactors, kept away from zero."""
    m = a @ a.transpose(1, 2) + 3 * torch.eye(3)
    c = torch.cross(m[:, :, 1], m[:, :, 2], dim=-1)
    det = (m[:, :, 0] * c).sum(-1)
    return det, c / det[:, None]


def matrix_power_trace(a: "f32[batch, n, n] about 0 +- 0.3"):
    """Traces of the first three powers."""
    two = a @ a
    return torch.stack([torch.diagonal(m, dim1=1, dim2=2).sum(-1) for m in (a, two, two @ a)], -1)


def mel_log(power: "f32[batch, bins, frames] in 0..100", bank: "f32[mels, bins] in 0..1"):
    """Log-mel energies with a floor, normalised."""
    mel = torch.matmul(bank, power).clamp(min=1e-10).log10()
    mel = torch.maximum(mel, mel.amax(dim=(1, 2), keepdim=True) - 8.0)
    return (mel + 4.0) / 4.0
