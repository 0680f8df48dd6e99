"""The ops of this repository as torch functions: what the importer makes of them is held to the references that were
written by hand (importers/shipped_test.cc)."""

import torch


def row_sum(x: "bf16[rows, columns]"):
    """Sum of each row."""
    assert x.shape[0] <= 1048576 and x.shape[1] <= 1048576
    return x.float().sum(-1).to(x.dtype)


row_sum_outputs = ["y"]


def softmax(x: "bf16[rows, columns] about 0 +- 3 or infinite"):
    """Softmax of each row."""
    assert x.shape[0] <= 1048576 and x.shape[1] <= 262144
    return torch.softmax(x.float(), -1).to(x.dtype)


softmax_outputs = ["y"]


def cumsum(x: "bf16[rows, columns]"):
    """Running sums of each row."""
    assert x.shape[0] <= 1048576 and x.shape[1] <= 1048576
    return x.float().cumsum(-1).to(x.dtype)


cumsum_outputs = ["y"]


def gemm(a: "bf16[m, k]", b: "bf16[k, n]"):
    """Matrix product."""
    assert a.shape[0] <= 65536 and b.shape[1] <= 262144 and a.shape[1] <= 65536
    return (a.float() @ b.float()).to(a.dtype)


gemm_outputs = ["c"]


def layer_norm(x: "bf16[tokens, hidden]", weight: "bf16[hidden] about 1 +- 0.5", bias: "bf16[hidden] about 0 +- 0.5", eps: "f32 in {1e-5, 1e-6}"):
    """Layer normalisation."""
    assert x.shape[0] <= 1048576 and x.shape[1] <= 16384
    wide = x.float()
    mean = wide.mean(-1, keepdim=True)
    variance = (wide - mean).square().mean(-1, keepdim=True)
    return ((wide - mean) * torch.rsqrt(variance + eps) * weight.float() + bias.float()).to(x.dtype)


layer_norm_outputs = ["y"]


def rms_norm(x: "bf16[tokens, hidden]", weight: "bf16[hidden] about 1 +- 0.5", eps: "f32 in {1e-6, 1e-5}"):
    """RMS normalisation."""
    assert x.shape[0] <= 1048576 and x.shape[1] <= 16384
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * weight.float()).to(x.dtype)


rms_norm_outputs = ["y"]


def rms_norm_backward(
    x: "bf16[tokens, hidden]",
    weight: "bf16[hidden] about 1 +- 0.5",
    grad_out: "bf16[tokens, hidden]",
    rstd: "f32[tokens] in 0.125..4",
):
    """Gradients of an RMS norm whose rstd was saved."""
    assert x.shape[0] <= 1048576 and x.shape[1] <= 16384
    a, w, g, r = x.float(), weight.float(), grad_out.float(), rstd[:, None]
    dot = (g * w * a).mean(-1, keepdim=True)
    return (r * (g * w - a * (r * r * dot))).to(x.dtype), (g * a * r).sum(0).to(x.dtype)


rms_norm_backward_outputs = ["grad_x", "grad_weight"]


def cross_entropy(logits: "bf16[tokens, vocab] about 0 +- 3", targets: "i64[tokens]"):
    """Cross-entropy of each token."""
    assert logits.shape[0] <= 1048576 and logits.shape[1] <= 262144
    wide = logits.float()
    return torch.logsumexp(wide, -1) - wide.gather(1, targets[:, None]).squeeze(1)


cross_entropy_outputs = ["loss"]


def scatter_add(src: "bf16[tokens, hidden]", index: "i64[tokens]", like: "bf16[rows, hidden]"):
    """Rows added up by index."""
    assert src.shape[0] <= 1048576 and src.shape[1] <= 16384 and like.shape[0] <= 262144
    return torch.zeros_like(like, dtype=torch.float32).index_add(0, index, src.float()).to(src.dtype)


scatter_add_outputs = ["out"]


def embedding_rmsnorm_backward(
    grad_out: "bf16[tokens, hidden]",
    ids: "i64[tokens]",
    table: "bf16[vocab, hidden]",
    weight: "bf16[hidden] about 1 +- 0.5",
    eps: "f32 in {1e-6, 1e-5}",
):
    """Gradients of rms_norm(table[ids], weight)."""
    assert grad_out.shape[0] <= 1048576 and grad_out.shape[1] <= 16384 and table.shape[0] <= 262144
    x, g, w = table[ids].float(), grad_out.float(), weight.float()
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    slope = scale * scale * (g * w * x).mean(-1, keepdim=True)
    rows = scale * (g * w - x * slope)
    sums = torch.zeros_like(table, dtype=torch.float32).index_add(0, ids, rows)
    return sums.to(table.dtype), (g * x * scale).sum(0).to(table.dtype)


embedding_rmsnorm_backward_outputs = ["grad_table", "grad_weight"]


def moe_router(like: "i64[chosen]", x: "bf16[tokens, hidden]", weight: "bf16[experts, hidden] about 0 +- 0.1"):
    """The best experts of each token, and their shares."""
    assert x.shape[0] <= 1048576 and x.shape[1] <= 16384 and weight.shape[0] <= 1024 and like.shape[0] <= 64
    best, which = torch.topk(x.float() @ weight.float().T, like.shape[0], dim=-1)
    return which.to(torch.int32), torch.softmax(best, -1)


moe_router_outputs = ["expert", "share"]


def attention(
    q: "bf16[heads, queries, dim]",
    k: "bf16[heads, keys, dim]",
    v: "bf16[heads, keys, dim]",
    scale: "f32 in {0.125, 0.08838834764831845, 1}",
    softcap: "f32 in {0, 30, 50}",
    causal: "i32 in {0, 1}",
):
    """Attention with an optional causal mask and softcap."""
    assert q.shape[0] <= 65536 and q.shape[1] <= 131072 and k.shape[1] <= 131072 and q.shape[2] <= 256 and k.shape[1] >= q.shape[1]
    scores = q.float() @ k.float().transpose(-1, -2) * scale
    scores = torch.where(softcap > 0, softcap * torch.tanh(scores / softcap), scores)
    i, j = torch.arange(q.shape[1])[:, None], torch.arange(k.shape[1])[None, :]
    seen = (j <= i + (k.shape[1] - q.shape[1])) | (causal == 0)
    return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1).to(q.dtype) @ v


attention_outputs = ["o"]


def adamw(
    param: "bf16[n]",
    grad: "bf16[n]",
    m: "f32[n] about 0 +- 0.1",
    v: "f32[n] in 0..1e30",
    rate: "f32 in 0..1",
    beta1: "f32 in 0..0.9999",
    beta2: "f32 in 0..0.9999",
    decay: "f32 in 0..1",
    eps: "f32 in 1e-10..0.001",
    correction1: "f32 in 0.0001..1",
    correction2: "f32 in 0.0001..1",
):
    """One step of AdamW, in place."""
    assert param.shape[0] <= 4294967296
    g = grad.float()
    m.copy_(beta1 * m + (1 - beta1) * g)
    v.copy_(beta2 * v + (1 - beta2) * (g * g))
    step = rate * (m / correction1) / (torch.sqrt(v / correction2) + eps)
    wide = param.float()
    param.copy_((wide - rate * decay * wide - step).to(param.dtype))


adamw_outputs = {"param": "param_out", "m": "m_out", "v": "v_out"}
