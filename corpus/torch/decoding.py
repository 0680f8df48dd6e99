"""More of serving: written before the importer could be tried on them."""

import math

import torch
import torch.nn.functional as F


def latent_attention(q: "bf16[batch, heads, 16]", c: "bf16[batch, keys, 16]", up: "bf16[heads, 16, 8]"):
    """Decoding over a compressed cache: keys and values are one latent."""
    p = torch.softmax(torch.einsum("bhc,bkc->bhk", q.float(), c.float()) * 0.25, -1)
    return torch.einsum("bhk,bkc,hcd->bhd", p, c.float(), up.float()).to(q.dtype)


def merge_states(a: "f32[tokens, heads, dim]", b: "f32[tokens, heads, dim]", la: "f32[tokens, heads]", lb: "f32[tokens, heads]"):
    """Two partial attentions made one by the logarithms of their sums."""
    total = torch.logaddexp(la, lb)
    return a * torch.exp(la - total)[..., None] + b * torch.exp(lb - total)[..., None], total


def paged_write(pages: "f16[pages, 8, dim]", new: "f16[tokens, dim]", slot: "i64[tokens]"):
    """Rows written into pages by slot: page and place are computed of it."""
    flat = pages.reshape(-1, pages.shape[-1]).clone()
    flat[slot] = new
    return flat.reshape(pages.shape)


def ragged_softmax(x: "f32[total]", offsets: "i64[bounds] offsets of total"):
    """Softmax within ragged rows."""
    at = torch.arange(x.shape[0])
    row = (at[:, None] >= offsets[None, 1:-1]).sum(1)
    same = row[:, None] == row[None, :]
    top = torch.where(same, x[None, :], -torch.inf).amax(1)
    e = torch.exp(x - top)
    return e / torch.where(same, e[None, :], 0.0).sum(1)


def int8_dynamic(x: "bf16[m, k]", w: "i8[n, k]", scale: "f32[n]"):
    """Activations rounded to 8 bits a row, an integer product, scaled."""
    top = x.float().abs().amax(-1, keepdim=True).clamp(min=1e-5)
    q = torch.round(x.float() / top * 127).clamp(-127, 127)
    return ((q @ w.float().T) * (top / 127) * scale).to(x.dtype)


def mxfp4(x: "f32[m, 32]", packed: "u8[n, 16] in 0..255", exponent: "u8[n, 1] in 120..134"):
    """A product with e2m1 weights whose scale is a power of two."""
    table = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])
    q = torch.stack([table[(packed & 15).long()], table[(packed >> 4).long()]], -1).flatten(1)
    return x @ (q * torch.exp2(exponent.float() - 127)).T


def top_p_mask(logits: "f32[tokens, vocab]", p: "f32 in 0.2..0.9"):
    """How much is kept of each sorted distribution."""
    sorted_p = torch.sort(torch.softmax(logits, -1), descending=True).values
    before = sorted_p.cumsum(-1) - sorted_p
    return torch.where(before < p, sorted_p, 0.0)


def repetition_penalty(logits: "f32[batch, vocab]", seen: "i64[batch, 4]", penalty: "f32 in {1.2, 1.5}"):
    """Logits of tokens that were there are made smaller."""
    score = logits.gather(1, seen)
    score = torch.where(score < 0, score * penalty, score / penalty)
    return logits.scatter_reduce(1, seen, score, "amin", include_self=False)


def speculative_accept(draft: "f32[batch, steps] in 0.05..1", target: "f32[batch, steps] in 0.05..1", draw: "f32[batch, steps] in 0..1"):
    """How many drafted tokens stand."""
    kept = draw * draft <= target
    return kept.to(torch.int64).cumprod(-1).sum(-1)


def chunked_scan(x: "f32[batch, 4, 8, channels]", decay: "f32[batch, 4, 8, channels] in 0.5..1"):
    """A linear recurrence by chunks, as Mamba 2 has it."""
    logged = decay.log().cumsum(2)
    inside = torch.exp(logged[:, :, :, None] - logged[:, :, None, :])
    seen = torch.ones(8, 8, dtype=torch.bool).tril()
    within = (torch.where(seen[None, None, :, :, None], inside, 0.0) * x[:, :, None]).sum(3)
    ends = torch.exp(logged[:, :, -1:] - logged)
    state, out = torch.zeros_like(x[:, 0, 0]), []
    for chunk in range(4):
        out.append(within[:, chunk] + torch.exp(logged[:, chunk]) * state[:, None])
        state = torch.exp(logged[:, chunk, -1]) * state + (ends[:, chunk] * x[:, chunk]).sum(1)
    return torch.stack(out, 1)


def grouped_product(x: "bf16[tokens, hidden]", w: "bf16[4, hidden, width]", offsets: "i32[5] offsets of tokens"):
    """Each token through the expert whose rows hold it."""
    at = torch.arange(x.shape[0])
    expert = (at[:, None] >= offsets[None, 1:-1]).sum(1)
    return torch.einsum("th,thw->tw", x.float(), w[expert].float()).to(x.dtype)


def window_partition(x: "f32[batch, 8, 8, dim]", bias: "f32[16, 16]"):
    """Shifted windows of 4 x 4, their similarities with a bias."""
    y = torch.roll(x, (-2, -2), (1, 2)).reshape(x.shape[0], 2, 4, 2, 4, -1).permute(0, 1, 3, 2, 4, 5).flatten(3, 4)
    return torch.softmax(y @ y.transpose(-1, -2) * 0.3 + bias, -1)
