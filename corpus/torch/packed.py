"""Numbers of few bits, their scales and tables."""

import torch


def dequantise_q4k(packed: "u8[blocks, 16]", scale: "f32[blocks]", low: "f32[blocks]"):
    """Two nibbles a byte, with a scale and a minimum a block."""
    lo = (packed & 0xF).float()
    hi = (packed >> 4).float()
    return torch.cat([lo, hi], -1) * scale[:, None] - low[:, None]


def nf4_lookup(codes: "u8[n] in 0..15", table: "f32[16] ascending", absmax: "f32[blocks]"):
    """Codes through a table of sixteen, then by blocks of 8."""
    return table[codes.long()] * absmax.repeat_interleave(8)[: codes.shape[0]]


nf4_lookup_inputs = lambda: [torch.randint(0, 16, (40,), dtype=torch.uint8), torch.linspace(-1, 1, 16), torch.rand(5) + 0.5]


def fp8_tensorwise(x: "bf16[m, k]", w: "f8e4m3[n, k]", sx: "f32 in {0.5, 1.0}", sw: "f32 in {0.25, 1.0}"):
    """A product of e4m3 numbers with a scale each."""
    q = (x.float() / sx).clamp(-448, 448).to(torch.float8_e4m3fn)
    return ((q.float() @ w.float().T) * (sx * sw)).to(x.dtype)


def bitnet_product(x: "bf16[m, k]", w: "f32[n, k]"):
    """Ternary weights by their mean magnitude, activations to 8 bits a row."""
    s = w.abs().mean().clamp(min=1e-5)
    t = (w / s).round().clamp(-1, 1)
    a = 127 / x.float().abs().amax(-1, keepdim=True).clamp(min=1e-5)
    q = (x.float() * a).round().clamp(-128, 127)
    return ((q @ t.T) / a * s).to(x.dtype)


def page_gather_scale(cache: "f8e4m3[pages, 4, dim]", table: "i32[batch, slots] pages", scale: "f32[pages]"):
    """Pages of 8-bit numbers, each with a scale, in the order of a table."""
    picked = cache[table.long()].float() * scale[table.long()][..., None, None]
    return picked.flatten(1, 2)


def ema_scale_update(x: "f32[n]", amax: "f32[1] in 0.5..4", step: "f32 in {0.1, 0.01}"):
    """A running maximum that is written to, and what it scales."""
    amax.copy_(torch.maximum(amax * (1 - step), x.abs().max().reshape(1)))
    return x / amax * 127


def philox_like(x: "i32[n]"):
    """An integer hash of 32 bits."""
    x = x ^ (x >> 16)
    x = x * 73244475
    x = x ^ (x >> 15)
    return x
