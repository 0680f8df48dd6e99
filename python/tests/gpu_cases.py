"""Inputs for the shipped ops, and what torch says of them in f64. Shared by the scripts that need a GPU."""

from __future__ import annotations

from typing import Any

import torch


def softmax(x: Any) -> Any:
    return torch.softmax(x, -1)


def cumsum(x: Any) -> Any:
    return torch.cumsum(x, -1)


def row_sum(x: Any) -> Any:
    return x.sum(-1)


def gemm(a: Any, b: Any) -> Any:
    return a @ b


def layer_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def rms_norm(x: Any, weight: Any, eps: float) -> Any:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rms_norm_backward(x: Any, weight: Any, grad_out: Any, rstd: Any) -> Any:
    with torch.enable_grad():
        x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
        return torch.autograd.grad(rms_norm(x, weight, 1e-6), (x, weight), grad_out)


def scatter_add(src: Any, index: Any, rows: int) -> Any:
    return src.new_zeros(rows, src.shape[1]).index_add(0, index, src)


def cross_entropy(logits: Any, targets: Any) -> Any:
    return torch.nn.functional.cross_entropy(logits, targets, reduction="none")


def embedding_rmsnorm_backward(grad_out: Any, ids: Any, table: Any, weight: Any, eps: float) -> Any:
    with torch.enable_grad():
        table, weight = table.detach().requires_grad_(), weight.detach().requires_grad_()
        return torch.autograd.grad(rms_norm(table[ids], weight, eps), (table, weight), grad_out)


def attention(q: Any, k: Any, v: Any, scale: float, softcap: float, causal: int) -> Any:
    scores = q @ k.transpose(-1, -2) * scale
    if softcap > 0:
        scores = softcap * torch.tanh(scores / softcap)
    if causal:
        queries, keys = scores.shape[-2:]
        hidden = torch.ones(queries, keys, dtype=torch.bool, device=q.device)
        scores = scores.masked_fill(hidden.triu(keys - queries + 1), float("-inf"))
    return torch.softmax(scores, -1) @ v


def adamw(
    param: Any, grad: Any, m: Any, v: Any, rate: float, beta1: float, beta2: float, decay: float,
    eps: float, correction1: float, correction2: float,
) -> Any:  # fmt: skip
    m, v = beta1 * m + (1 - beta1) * grad, beta2 * v + (1 - beta2) * grad.square()
    step = rate * (m / correction1) / ((v / correction2).sqrt() + eps)
    return param - rate * decay * param - step, m, v


def moe_router(x: Any, weight: Any, chosen: int) -> Any:
    best = torch.topk(x @ weight.t(), chosen)
    return best.indices, torch.softmax(best.values, -1)


def arguments(op: str, dtype: torch.dtype, small: bool = False) -> tuple[list[Any], dict[str, int]]:
    """Positional arguments, in the op's order, and axes that no input tells."""
    generator = torch.Generator(device="cuda").manual_seed(7)
    rows, columns = (3, 5) if small else (251, 1031)  # which quick effort tries

    def normal(*shape: int, scale: float = 1.0, mean: float = 0.0) -> Any:
        values = torch.randn(*shape, generator=generator, device="cuda") * scale + mean
        return values.to(dtype)

    def index(count: int, below: int) -> Any:
        return torch.randint(0, below, (count,), generator=generator, device="cuda")

    if op in ("softmax", "cumsum", "row_sum"):
        return [normal(rows, columns)], {}
    if op == "gemm":
        return [normal(rows, 129), normal(129, columns)], {}
    if op == "layer_norm":
        scale = normal(columns, scale=0.5, mean=1)
        return [normal(rows, columns), scale, normal(columns, scale=0.5), 1e-5], {}
    if op == "rms_norm":
        return [normal(rows, columns), normal(columns, scale=0.5, mean=1), 1e-6], {}
    if op == "rms_norm_backward":
        x = normal(rows, columns)
        rstd = torch.rsqrt(x.double().square().mean(-1) + 1e-6).float()
        return [x, normal(columns, scale=0.5, mean=1), normal(rows, columns), rstd], {}
    if op == "scatter_add":
        return [normal(rows, columns), index(rows, 31)], {"rows": 31}
    if op == "cross_entropy":
        return [normal(rows, columns, scale=3), index(rows, columns)], {}
    if op == "embedding_rmsnorm_backward":
        weight = normal(columns, scale=0.5, mean=1)
        return [normal(rows, columns), index(rows, 97), normal(97, columns), weight, 1e-5], {}
    if op == "attention":
        return [normal(3, 33, 64), normal(3, 65, 64), normal(3, 65, 64), 0.125, 30.0, 1], {}
    if op == "adamw":
        moments = [normal(rows).float() * 0.1, normal(rows).float().square()]
        return [normal(rows), normal(rows), *moments, 0.01, 0.9, 0.99, 0.1, 1e-8, 0.19, 0.02], {}
    if op == "moe_router":
        return [normal(rows, columns), normal(17, columns, scale=0.1)], {"chosen": 3}
    raise KeyError(f"no inputs are known for the op {op}: add them to gpu_cases.py")


def wanted(op: str, args: list[Any], given: dict[str, int]) -> tuple[Any, ...]:
    """In f64."""
    double = [
        a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args
    ]
    with torch.no_grad():
        result = globals()[op](*double, **given)
    return (result,) if isinstance(result, torch.Tensor) else tuple(result)
