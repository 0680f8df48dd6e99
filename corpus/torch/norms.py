"""Norms over rows, groups and batches."""

import torch
import torch.nn.functional as F


def layer_norm(x: "bf16[batch, tokens, hidden]", weight: "bf16[hidden]", bias: "bf16[hidden]"):
    """Layer normalisation."""
    return F.layer_norm(x, (x.shape[-1],), weight, bias, 1e-5)


def layer_norm_by_hand(x: "f32[tokens, hidden]", weight: "f32[hidden]", bias: "f32[hidden]"):
    """Layer normalisation, written out."""
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * weight + bias


def rms_norm(x: "bf16[tokens, hidden]", weight: "bf16[hidden]"):
    """RMS normalisation in f32, as Llama has it."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return weight * wide.to(x.dtype)


def fused_add_rms_norm(x: "bf16[tokens, hidden]", residual: "bf16[tokens, hidden]", weight: "bf16[hidden]"):
    """A residual added, then RMS normalisation; both are results."""
    total = x.float() + residual.float()
    scale = torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (total * scale * weight.float()).to(x.dtype), total.to(x.dtype)


def group_norm(x: "f32[batch, 32, height, width]", weight: "f32[32]", bias: "f32[32]"):
    """Group normalisation in eight groups."""
    return F.group_norm(x, 8, weight, bias)


def instance_norm(x: "f32[batch, channels, height, width]"):
    """Instance normalisation."""
    mean = x.mean(dim=(2, 3), keepdim=True)
    var = x.var(dim=(2, 3), keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(var + 1e-5)


def l2_normalise(x: "f32[rows, columns]"):
    """Rows of length one."""
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(1e-6)


def standardise(x: "f32[rows, columns]"):
    """Zero mean, unit deviation."""
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6)


def qk_norm(q: "bf16[tokens, heads, dim]", weight: "bf16[dim]"):
    """RMS normalisation of each head."""
    return F.rms_norm(q, (q.shape[-1],), weight, 1e-6)


def modulated_norm(x: "bf16[batch, tokens, hidden]", scale: "bf16[batch, hidden]", shift: "bf16[batch, hidden]"):
    """A norm without weights, modulated as diffusion transformers do."""
    normal = F.layer_norm(x, (x.shape[-1],))
    return normal * (1 + scale[:, None, :]) + shift[:, None, :]
