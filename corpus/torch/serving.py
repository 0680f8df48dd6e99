"""Ragged batches, paged caches, quantised weights and mixtures of experts, in the manner of SOL-ExecBench."""

import math

import torch
import torch.nn.functional as F


def cache_write(cache: "bf16[slots, heads, dim]", key: "bf16[tokens, heads, dim]", slot: "i64[tokens]"):
    """New keys put into their slots of a cache."""
    out = cache.clone()
    out[slot] = key
    return out


def cache_write_in_place(cache: "f16[slots, dim]", key: "f16[tokens, dim]", slot: "i64[tokens] distinct"):
    """The same cache, overwritten."""
    cache.index_copy_(0, slot, key)
    return key.float().square().sum(-1)


def row_update(state: "f32[batch, width, dim]", at: "i64[batch]", value: "f32[batch, dim]"):
    """One place of each row."""
    out = state.clone()
    out[torch.arange(state.shape[0]), at] = value
    return out


def ragged_mean(x: "f32[total, dim]", offsets: "i32[bounds] offsets of total"):
    """Means of ragged rows; 0 of empty ones."""
    at = torch.arange(x.shape[0])
    inside = (at[None, :] >= offsets[:-1, None]) & (at[None, :] < offsets[1:, None])
    return (inside.to(x.dtype) @ x) / (offsets[1:] - offsets[:-1]).clamp(min=1)[:, None]


def attention_by_lengths(q: "f16[batch, heads, dim]", k: "f16[batch, keys, heads, dim]", v: "f16[batch, keys, heads, dim]", length: "i32[batch] in 1..6"):
    """Decoding where each sequence has a length of its own."""
    scores = torch.einsum("bhd,bkhd->bhk", q.float(), k.float()) / math.sqrt(q.shape[-1])
    seen = torch.arange(k.shape[1])[None, None, :] < length[:, None, None].clamp(max=k.shape[1])
    p = torch.softmax(scores.masked_fill(~seen, float("-inf")), -1)
    return torch.einsum("bhk,bkhd->bhd", p, v.float()).to(q.dtype)


def int4_product(x: "bf16[m, 64]", packed: "u8[n, 32] in 0..255", scale: "f32[n, 2]", zero: "f32[n, 2]"):
    """A product with weights of 4 bits, two a byte, scales and zeros of 32."""
    low, high = (packed & 15).to(torch.float32), (packed >> 4).to(torch.float32)
    q = torch.stack([low, high], -1).reshape(packed.shape[0], 2, 32)
    w = (q - zero[..., None]) * scale[..., None]
    return (x.float() @ w.reshape(packed.shape[0], 64).T).to(x.dtype)


def fp8_blocks(a: "f32[m, 64]", b: "f32[n, 64]"):
    """A product of blocks of 32 that are rounded to e4m3 with a scale each."""
    def quantised(x):
        blocks = x.reshape(x.shape[0], 2, 32)
        scale = blocks.abs().amax(-1, keepdim=True).clamp_min(1e-4) / 448.0
        return (blocks / scale).to(torch.float8_e4m3fn).float(), scale
    qa, sa = quantised(a)
    qb, sb = quantised(b)
    return torch.einsum("mgk,ngk,mg,ng->mn", qa, qb, sa.squeeze(-1), sb.squeeze(-1))


def rope_partial(x: "bf16[tokens, heads, 12]", cos: "f32[positions, 4]", sin: "f32[positions, 4]", at: "i64[tokens]"):
    """Rotary embedding of the first eight of twelve numbers, by position."""
    c, s = cos[at][:, None], sin[at][:, None]
    a, b = x[..., :4].float(), x[..., 4:8].float()
    return torch.cat([(a * c - b * s).to(x.dtype), (a * s + b * c).to(x.dtype), x[..., 8:]], -1)


def rope_scaled(x: "f32[tokens, heads, 16]"):
    """Rotary embedding with frequencies that are computed and scaled by parts."""
    inverse = 10000.0 ** (-torch.arange(0, 16, 2, dtype=torch.float32) / 16)
    inverse = torch.where(inverse < 0.05, inverse / 4, inverse)
    angle = torch.arange(x.shape[0], dtype=torch.float32)[:, None] * inverse[None, :]
    c, s = angle.cos()[:, None], angle.sin()[:, None]
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)


def expert_dispatch(x: "bf16[tokens, hidden]", expert: "i64[tokens, 2]", share: "f32[tokens, 2]", w: "bf16[experts, hidden, width]"):
    """Each token through its two experts, the results weighted."""
    y = torch.einsum("th,tkhw->tkw", x.float(), w[expert].float())
    return (y * share[..., None]).sum(1).to(x.dtype)


def expert_counts(expert: "i64[tokens, 2]", load: "f32[8]"):
    """How many tokens each of eight experts has, and the loss that balances them."""
    counts = F.one_hot(expert, 8).sum(dim=(0, 1))
    share = counts.to(torch.float32) / expert.numel()
    return counts, (share * torch.softmax(load, 0)).sum() * 8


def segment_largest(x: "f32[edges, dim]", node: "i64[edges]", out: "f32[nodes, dim]"):
    """The largest message of each node, and the mean."""
    at = node[:, None].expand(-1, x.shape[1])
    return out.scatter_reduce(0, at, x, "amax", include_self=False), out.scatter_reduce(0, at, x, "mean", include_self=True)


def bucket_bias(distance: "i64[queries, keys] in -40..40", table: "f32[32, heads]"):
    """T5's bias by relative position, exact for near ones."""
    near = distance.abs()
    far = (8 + (near.clamp(min=1).float() / 8).log() / math.log(16.0) * 8).floor().clamp(max=15).long()
    bucket = torch.where(near < 8, near, far) + (distance > 0).long() * 16
    return table[bucket].permute(2, 0, 1)


def quantile_bins(x: "f32[rows, columns]", edges: "f32[bins]"):
    """Which bin each number falls into."""
    return torch.bucketize(x, edges)


def alibi(q: "f32[heads, length, dim]", k: "f32[heads, length, dim]", v: "f32[heads, length, dim]", slope: "f32[heads] in 0.01..0.5"):
    """Causal attention with a bias that grows with distance."""
    at = torch.arange(q.shape[1])
    bias = -slope[:, None, None] * (at[:, None] - at[None, :]).abs().float()
    scores = q @ k.transpose(-1, -2) * 0.25 + bias
    return torch.softmax(scores.masked_fill(at[None, :] > at[:, None], float("-inf")), -1) @ v


def masked_attention(q: "f32[heads, queries, dim]", k: "f32[heads, keys, dim]", v: "f32[heads, keys, dim]", mask: "f32[queries, keys] causal"):
    """Attention with a causal mask that is added."""
    return torch.softmax(q @ k.transpose(-1, -2) + mask, -1) @ v


def einsum_chain(a: "f32[batch, i, j]", b: "f32[batch, j, k]", c: "f32[k]"):
    """sum over j and k of a b c."""
    return torch.einsum("bij,bjk,k->bi", a, b, c)


def expert_offsets(expert: "i64[tokens]", load: "f32[experts]"):
    """How many tokens each expert has, and where its own begin."""
    counts = torch.bincount(expert, minlength=load.shape[0])[: load.shape[0]]
    return counts, torch.cumsum(counts, 0) - counts
