"""Recurrences over time: states that decay, weighted averages, returns."""

import torch


def gated_delta(q: "f32[heads, 6, dim]", k: "f32[heads, 6, dim]", v: "f32[heads, 6, width]", beta: "f32[heads, 6] in 0..1", decay: "f32[heads, 6] in 0.5..1"):
    """Delta rule with a decaying state, token by token."""
    state = torch.zeros(q.shape[0], q.shape[2], v.shape[2])
    outs = []
    for t in range(q.shape[1]):
        kt, vt = k[:, t], v[:, t]
        state = state * decay[:, t, None, None]
        seen = torch.einsum("hd,hdw->hw", kt, state)
        state = state + torch.einsum("hd,hw->hdw", kt, (vt - seen) * beta[:, t, None])
        outs.append(torch.einsum("hd,hdw->hw", q[:, t], state))
    return torch.stack(outs, 1)


def rwkv_mix(k: "f32[batch, 5, dim]", v: "f32[batch, 5, dim]", w: "f32[dim]", u: "f32[dim]"):
    """RWKV's weighted average over time, in its stable form."""
    num, den, top = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]), torch.full_like(k[:, 0], -1e38)
    outs = []
    for t in range(5):
        m = torch.maximum(top, u + k[:, t])
        a, b = torch.exp(top - m), torch.exp(u + k[:, t] - m)
        outs.append((a * num + b * v[:, t]) / (a * den + b))
        m = torch.maximum(top - torch.exp(w), k[:, t])
        a, b = torch.exp(top - torch.exp(w) - m), torch.exp(k[:, t] - m)
        num, den, top = a * num + b * v[:, t], a * den + b, m
    return torch.stack(outs, 1)


def lru_scan(x: "f32[batch, 7, dim]", a: "f32[dim] in 0.1..0.99"):
    """A linear recurrent unit's input normalisation and scan."""
    gamma = torch.sqrt(1 - a * a)
    h = torch.zeros_like(x[:, 0])
    out = []
    for t in range(x.shape[1]):
        h = a * h + gamma * x[:, t]
        out.append(h)
    return torch.stack(out, dim=1)


def segsum(x: "f32[batch, length]"):
    """Stable segment sums: exp of differences of running sums below the diagonal."""
    total = x.cumsum(-1)
    d = total[:, :, None] - total[:, None, :]
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril(0)
    return torch.exp(d.masked_fill(~mask, -torch.inf))


def gae(reward: "f32[batch, 6]", value: "f32[batch, 7]", done: "bool[batch, 6]"):
    """Generalised advantage estimation, backwards in time."""
    keep = 1 - done.float()
    last = torch.zeros_like(reward[:, 0])
    out = []
    for t in reversed(range(reward.shape[1])):
        delta = reward[:, t] + 0.99 * value[:, t + 1] * keep[:, t] - value[:, t]
        last = delta + 0.99 * 0.95 * keep[:, t] * last
        out.insert(0, last)
    return torch.stack(out, 1)


def volume_render(density: "f32[rays, samples] in 0..5", colour: "f32[rays, samples, 3] in 0..1", step: "f32[rays, samples] in 0.01..0.1"):
    """Colours along rays, by transmittance."""
    alpha = 1 - torch.exp(-density * step)
    left = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
    w = alpha * left
    return (w[..., None] * colour).sum(1), w.sum(1)
