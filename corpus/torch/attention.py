"""Attention in its forms, rotary embedding, decoding."""

import math

import torch
import torch.nn.functional as F


def attention(q: "bf16[batch, heads, queries, dim]", k: "bf16[batch, heads, keys, dim]", v: "bf16[batch, heads, keys, dim]"):
    """Scaled dot-product attention."""
    return F.scaled_dot_product_attention(q, k, v)


def attention_causal(q: "f16[heads, length, dim]", k: "f16[heads, length, dim]", v: "f16[heads, length, dim]"):
    """Causal attention."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attention_by_hand(q: "bf16[heads, queries, dim]", k: "bf16[heads, keys, dim]", v: "bf16[heads, keys, dim]"):
    """Attention written out."""
    scores = torch.matmul(q, k.transpose(-1, -2)) * (1.0 / math.sqrt(q.shape[-1]))
    return torch.matmul(torch.softmax(scores.float(), dim=-1).to(q.dtype), v)


def attention_masked(q: "f32[heads, queries, dim]", k: "f32[heads, keys, dim]", v: "f32[heads, keys, dim]", bias: "f32[queries, keys]"):
    """Attention with an additive bias."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def attention_softcap(q: "f32[heads, queries, dim]", k: "f32[heads, keys, dim]", v: "f32[heads, keys, dim]"):
    """Attention whose logits are kept within 50."""
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    scores = 50.0 * torch.tanh(scores / 50.0)
    return torch.matmul(torch.softmax(scores, dim=-1), v)


def attention_grouped(q: "bf16[batch, 8, queries, dim]", k: "bf16[batch, 2, keys, dim]", v: "bf16[batch, 2, keys, dim]"):
    """Eight query heads, two of keys."""
    k = k.repeat_interleave(4, dim=1)
    v = v.repeat_interleave(4, dim=1)
    return F.scaled_dot_product_attention(q, k, v)


def attention_window(q: "f32[heads, length, dim]", k: "f32[heads, length, dim]", v: "f32[heads, length, dim]"):
    """Causal attention that sees eight keys back."""
    at = torch.arange(q.shape[1])
    distance = at[:, None] - at[None, :]
    mask = (distance >= 0) & (distance < 8)
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    return torch.matmul(torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1), v)


def rope(x: "bf16[batch, length, heads, dim]", cos: "f32[length, dim]", sin: "f32[length, dim]"):
    """Rotary embedding by halves."""
    half = x.shape[-1] // 2
    rotated = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return (x * cos[None, :, None, :] + rotated * sin[None, :, None, :]).to(x.dtype)


def rope_interleaved(x: "f32[tokens, heads, 2, pairs]", angle: "f32[tokens, pairs]"):
    """Rotary embedding of pairs, the angles computed."""
    cos, sin = torch.cos(angle)[:, None], torch.sin(angle)[:, None]
    a, b = x[:, :, 0], x[:, :, 1]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=2)


def decode_paged(q: "f16[batch, heads, dim]", cache_k: "f16[pages, 16, heads, dim]", cache_v: "f16[pages, 16, heads, dim]", table: "i64[batch, blocks]"):
    """One query a sequence, over pages of sixteen keys."""
    k = cache_k[table].flatten(1, 2).float()
    v = cache_v[table].flatten(1, 2).float()
    scores = torch.einsum("bhd,bkhd->bhk", q.float(), k) / math.sqrt(q.shape[-1])
    return torch.einsum("bhk,bkhd->bhd", torch.softmax(scores, dim=-1), v).to(q.dtype)


def attention_with_lse(q: "f32[heads, queries, dim]", k: "f32[heads, keys, dim]", v: "f32[heads, keys, dim]"):
    """Attention and the logarithm of its sums."""
    scores = torch.matmul(q, k.transpose(-1, -2)) * 0.125
    return torch.matmul(torch.softmax(scores, dim=-1), v), torch.logsumexp(scores, dim=-1)


def linear_attention(q: "f32[heads, length, dim]", k: "f32[heads, length, dim]", v: "f32[heads, length, width]"):
    """Attention with the feature map 1 + elu."""
    q, k = F.elu(q) + 1, F.elu(k) + 1
    state = torch.matmul(k.transpose(-1, -2), v)
    total = torch.matmul(q, k.sum(1, keepdim=True).transpose(-1, -2))
    return torch.matmul(q, state) / total
