"""Truths of a function that no graph can be made of: the function itself, in f64, again and again (python_truth.h).

Frames over a socket, as sandbox/frame.h has them: "ASY1", u32 header bytes, u64 payload bytes, u32 descriptors, u32 zero.
Each request names the function and lays out its inputs; the answer's payload is, for each element of each output, its value and
the largest deviation of the runs that were disturbed.
"""

import inspect
import json
import os
import select
import struct

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import problems
from .graph import Refused
from .table import OPERATORS
from .truth import EIGHT, NAMES, NARROW, WIDE

HEAD = struct.Struct("<4sIQII")
# What adds many terms: an honest kernel's error hangs on their magnitudes, not on their sum.
SUMS = {
    "sum", "mean", "cumsum", "mm", "bmm", "addmm", "baddbmm", "mv", "dot", "convolution", "index_add", "scatter_add", "_int_mm",
    "avg_pool2d", "avg_pool1d", "avg_pool3d", "nansum", "linalg_vector_norm",
}  # fmt: skip


class Disturbed(TorchDispatchMode):
    """Runs torch's operators in f64, whatever float they ask for. With `unit`, each result that a kernel would have to round is
    moved as it might be rounded, and casts to 16 bits are made or left out."""

    def __init__(self, generator=None, unit=0.0):
        super().__init__()
        self.generator, self.unit = generator, unit

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        asked = kwargs.get("dtype")
        tree = torch.utils._pytree
        args, kwargs = tree.tree_map_only(torch.dtype, lambda d: torch.float64 if d in (*WIDE, *EIGHT) else d, (args, kwargs))
        result = function(*args, **kwargs)
        name = function._schema.name.split("::")[-1]
        if asked in EIGHT and isinstance(result, torch.Tensor):
            limit = torch.finfo(asked).max
            return result.clamp(-limit, limit).to(asked).to(torch.float64)
        if not self.unit:
            return result
        if name == "_to_copy" and asked in NARROW and self.draw() < 0.5:
            return result.to(asked).to(torch.float64)
        row = OPERATORS.get(str(function)) or OPERATORS.get(f"aten.{name}.default")
        if name.endswith("_") or (row is not None and row.exact) or name == "_to_copy":
            return result
        if name in SUMS:
            return self.moved_by_terms(function, name, args, kwargs, result)
        return tree.tree_map_only(torch.Tensor, self.moved, result)

    def draw(self):
        return torch.rand((), generator=self.generator).item()

    def moved(self, x):
        if x.dtype != torch.float64 or x.numel() == 0:
            return x
        return x + x.abs().nan_to_num(0.0, 0.0, 0.0) * self.unit * (2 * torch.rand(x.shape, generator=self.generator, dtype=x.dtype) - 1)

    def moved_by_terms(self, function, name, args, kwargs, result):
        if not isinstance(result, torch.Tensor) or result.dtype != torch.float64 or result.numel() == 0:
            return result
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        terms = max(1.0, max(t.numel() for t in tensors) / result.numel())
        if name in ("mm", "bmm", "addmm", "baddbmm", "mv", "dot"):
            terms = float(tensors[-2].shape[-1])
        elif name == "convolution":
            terms = tensors[1].numel() / max(1, tensors[1].shape[0])
        sizes = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.abs() if t.is_floating_point() else t, args)
        size = function(*sizes, **kwargs).nan_to_num(0.0, 0.0, 0.0)
        noise = 2 * torch.rand(result.shape, generator=self.generator, dtype=result.dtype) - 1
        return result + size * self.unit * (terms**0.5 + 1) * noise


def called(function, given, axes):
    # An input whose name the reference language has already is called NAME_value in the op.
    known = {**axes, **{n.removesuffix("_value"): v for n, v in given.items()}, **given}
    arguments = {}
    for p in inspect.signature(function).parameters.values():
        if p.name in known:
            value = known[p.name]
            arguments[p.name] = value.clone() if isinstance(value, torch.Tensor) else value
        elif p.default is inspect.Parameter.empty:
            raise Refused(f"nothing is called '{p.name}': neither an input nor an axis of the op")
    with torch.no_grad():
        made = function(**arguments)
    made = [m for m in (made if isinstance(made, (tuple, list)) else [made]) if m is not None]
    return [m if isinstance(m, torch.Tensor) else torch.as_tensor(m) for m in made]


def inputs_of(request, payload):
    given = {}
    for name, place in request["inputs"].items():
        raw = bytearray(payload[place["offset"] : place["offset"] + place["bytes"]])
        dtype = NAMES[place["dtype"]]
        tensor = torch.frombuffer(raw, dtype=torch.uint8).view(dtype) if raw else torch.empty(0, dtype=dtype)
        tensor = tensor.to(torch.float64) if dtype in (*WIDE, *EIGHT) else tensor
        given[name] = tensor.reshape(-1)[0].item() if place["number"] else tensor.reshape(place["shape"])
    return given


def truth_of(function, request, payload):
    given = inputs_of(request, payload)
    with Disturbed():
        plain = called(function, given, request["axes"])
    wanted = request["outputs"]
    if len(plain) != len(wanted):
        raise Refused(f"the function returned {len(plain)} tensors; the op has {len(wanted)} outputs")
    for made, spec in zip(plain, wanted):
        if made.numel() != spec["elements"]:
            raise Refused(f"the output '{spec['name']}' has {made.numel()} elements; the op says {spec['elements']}")
    apart = [torch.zeros(m.numel(), dtype=torch.float64) for m in plain]
    for run in range(request["runs"]):
        with Disturbed(torch.Generator().manual_seed(run), request["unit"]):
            again = called(function, given, request["axes"])
        for most, a, b in zip(apart, plain, again):
            if a.shape != b.shape:
                raise Refused("its result's size hangs on how numbers are rounded")
            distance = (a.to(torch.float64) - b.to(torch.float64)).abs().flatten().nan_to_num(torch.inf, torch.inf)
            torch.maximum(most, torch.where(a.flatten() == b.flatten(), 0.0, distance), out=most)
    return b"".join(
        bytes(torch.stack([m.to(torch.float64).flatten(), d], -1).contiguous().view(torch.uint8).flatten().tolist())
        for m, d in zip(plain, apart)
    )


class Peer:
    """The other end, by plain reads and writes: the jail's filter knows no more of sockets."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.poll = select.poll()

    def wait(self, event):
        self.poll.register(self.descriptor, event)
        self.poll.poll()

    def exactly(self, count):
        parts = bytearray()
        while len(parts) < count:
            try:
                got = os.read(self.descriptor, min(1 << 20, count - len(parts)))
            except BlockingIOError:
                self.wait(select.POLLIN)
                continue
            if not got:
                raise SystemExit(0)
            parts += got
        return bytes(parts)

    def receive(self):
        magic, header, payload, _, _ = HEAD.unpack(self.exactly(HEAD.size))
        if magic != b"ASY1":
            raise SystemExit(1)
        return json.loads(self.exactly(header)), self.exactly(payload)

    def send(self, header, payload=b""):
        text = json.dumps(header).encode()
        rest = memoryview(HEAD.pack(b"ASY1", len(text), len(payload), 0, 0) + text + payload)
        while rest:
            try:
                rest = rest[os.write(self.descriptor, rest) :]
            except BlockingIOError:
                self.wait(select.POLLOUT)


def run(descriptor, path):
    peer = Peer(descriptor)
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    module, trouble = None, ""
    while True:
        request, payload = peer.receive()
        try:
            module = module or problems.load_module(path)
            function = getattr(module, request["function"], None)
            if not callable(function):
                raise Refused(f"there is no function '{request['function']}' in the file")
            peer.send({}, truth_of(function, request, payload) if "inputs" in request else b"")
        except Refused as refused:
            trouble = refused.what
        except Exception as error:  # noqa: BLE001 - the function may raise anything
            trouble = f"{type(error).__name__}: {error}"
        if trouble:
            peer.send({"fault": trouble[:400]})
            trouble = ""
