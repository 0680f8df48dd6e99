"""scatter_add-T=bf16-sm_90: a CUDA kernel that Assay vetted, as a custom operator of PyTorch.

    from kernel import scatter_add
    out = scatter_add(src, index, rows=...)

Works under torch.compile. Refuses, with what to do about it, whatever the kernel was not vetted
for: another dtype, an extent out of range, strides, a CPU tensor, another chip. KERNEL.watch
checks a share of the calls against a reference, KERNEL.differentiable adds a gradient.

Written by Assay from launch.json, op.json and certificate.json, which holds this file's digest.
Needs torch and a CUDA driver, nothing else.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import logging
import math
import operator
import pathlib
import random
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch


class Refused(ValueError):
    """A call that the kernel's certificate does not cover, or that cannot be made here."""

    def __init__(self, message: str, cure: str = "") -> None:
        super().__init__(f"{message}\n  fix: {cure}" if cure else message)
        self.cure = cure


# ---------------------------------------------------------------- what is said of the kernel below


@dataclass(frozen=True)
class Axis:
    """An extent. The op allows low to high; the judge ran shapes as long as `whole`, some blocks of
    shapes as long as `in_slices`, and the ends of shapes as long as `at_ends`."""

    name: str
    low: int
    high: int
    whole: int
    in_slices: int
    at_ends: int

    @property
    def tried(self) -> int:
        """The longest that the judge saw, each axis by itself."""
        return max(self.whole, self.in_slices, self.at_ends)


@dataclass(frozen=True)
class Tensor:
    """A packed tensor on the GPU."""

    name: str
    dtype: str
    rank: int
    align: int  # bytes that its address is a multiple of
    updates: str = ""  # of an output: the input that it is a copy of, which the kernel then changes


@dataclass(frozen=True)
class Scalar:
    """A number that is passed by value, and the values that the op's domain holds."""

    name: str
    dtype: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[float, ...] = ()
    below: str = ""  # an axis: 0 <= value < axis
    allow_nan: bool = False
    allow_infinity: bool = False


@dataclass(frozen=True)
class Workspace:
    name: str
    dtype: str
    shape: tuple[int, ...]
    zero: bool


@dataclass(frozen=True)
class TensorMap:
    """What cuTensorMapEncodeTiled is told; dimension 0 is the innermost, strides are bytes."""

    name: str
    tensor: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # of dimensions 1 and up; empty: packed
    box: tuple[int, ...]
    swizzle: int
    fill_nan: bool


@dataclass(frozen=True)
class Launch:
    symbol: str  # of the function in the machine code
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int
    cooperative: bool
    args: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    workspace: tuple[Workspace, ...]
    tensor_maps: tuple[TensorMap, ...]
    launches: tuple[Launch, ...]


# ------------------------------------------- 64-bit integers that are checked, as the judge has them
#
# Under torch.compile extents may be symbols, which only the shapes of outputs are made of: those are
# added and multiplied as they are.


def _fit(value: int) -> int:
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise Refused(f"{value} leaves 63 bits", "use a smaller shape")
    return value


def negate(a: int) -> int:
    return _fit(-a)


def add(a: int, b: int) -> int:
    return _fit(a + b)


def subtract(a: int, b: int) -> int:
    return _fit(a - b)


def multiply(a: int, b: int) -> int:
    return _fit(a * b)


def divide(a: int, b: int) -> int:
    """Truncates, as C does."""
    if type(a) is not int or type(b) is not int:
        return a // b
    if b == 0:
        raise Refused(f"{a} is divided by zero", "use another shape")
    return _fit(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


def modulo(a: int, b: int) -> int:
    if type(a) is not int or type(b) is not int:
        return a % b
    return subtract(a, multiply(divide(a, b), b))


def ceil_div(a: int, b: int) -> int:
    if type(a) is not int or type(b) is not int:
        return (a + b - 1) // b
    if b == 0:
        raise Refused(f"{a} is divided by zero", "use another shape")
    if a < 0 or b < 0:
        raise Refused(f"ceil_div of negative operands, {a} and {b}", "use another shape")
    return -(-a // b)


def round_up(a: int, b: int) -> int:
    return multiply(ceil_div(a, b), b)


def minimum(a: int, b: int) -> int:
    return a if a < b else b


def maximum(a: int, b: int) -> int:
    return a if a > b else b


# ------------------------------------------------------------------------------- the kernel

NAME = "scatter_add"
INSTANCE = "scatter_add-T=bf16-sm_90"
ARCH = "sm_90"
IMAGES = {  # what holds the program, the preferred one first, and its SHA-256
    "kernel.sm_90.cubin": "7c9b185f35cce03019b3c7cebdef327545fd0cfdeb1acdf7db7fd7d528c74538",
    "kernel.ptx": "d9657e50116f295ed2619730493b11018e73fa798b576fffa7f01973aba8d929",
}
AXES: list[Axis] = [
    Axis("tokens", low=1, high=1048576, whole=257, in_slices=0, at_ends=0),
    Axis("hidden", low=1, high=16384, whole=64, in_slices=0, at_ends=4096),
    Axis("rows", low=1, high=262144, whole=31, in_slices=1000, at_ends=0),
]
INPUTS: list[Tensor | Scalar] = [
    Tensor("src", "bf16", rank=2, align=2),
    Tensor("index", "i64", rank=1, align=8),
]
OUTPUTS: list[Tensor] = [
    Tensor("out", "bf16", rank=2, align=2),
]
GIVEN: list[str] = [  # axes that no input tells: arguments of their own
    "rows",
]
SHAPES: dict[str, tuple[str, ...]] = {
    "src": ("tokens", "hidden"),
    "index": ("tokens",),
    "out": ("rows", "hidden"),
}


def solve(shape: Mapping[str, Sequence[int]], given: Mapping[str, Any]) -> dict[str, int]:
    """The axes, from the shapes of the inputs."""
    rows = given["rows"]
    tokens = shape["src"][0]
    hidden = shape["src"][1]
    return {"tokens": tokens, "hidden": hidden, "rows": rows}


def shapes(axes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """What the inputs must be, and the outputs will be."""
    tokens = axes["tokens"]
    hidden = axes["hidden"]
    rows = axes["rows"]
    return {
        "src": (tokens, hidden),
        "index": (tokens,),
        "out": (rows, hidden),
    }


def constraints(axes: Mapping[str, int]) -> list[tuple[str, int]]:
    """What the op asks of the axes; 0: not so."""
    return []


def plan(axes: Mapping[str, int]) -> Plan:
    """launch.json for one shape."""
    tokens = axes["tokens"]
    hidden = axes["hidden"]
    rows = axes["rows"]
    return Plan(
        workspace=(
            Workspace("sums", "f32", (rows, hidden), zero=True),
        ),
        tensor_maps=(
        ),
        launches=(
            Launch(  # add
                "_Z0",
                grid=(ceil_div(multiply(tokens, hidden), 256), 1, 1),
                block=(256, 1, 1),
                cluster=(1, 1, 1),
                shared_bytes=0,
                cooperative=False,
                args=("src", "index", "sums", "tokens", "hidden"),
            ),
            Launch(  # store
                "_Z1",
                grid=(ceil_div(multiply(rows, hidden), 256), 1, 1),
                block=(256, 1, 1),
                cluster=(1, 1, 1),
                shared_bytes=0,
                cooperative=False,
                args=("sums", "out", "rows", "hidden"),
            ),
        ),
    )


# --------------------------------------------------------------------------------------- the driver

_TORCH_DTYPES: dict[str, torch.dtype] = {
    "bool": torch.bool,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i16": torch.int16,
    "u16": torch.uint16,
    "i32": torch.int32,
    "u32": torch.uint32,
    "i64": torch.int64,
    "u64": torch.uint64,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f32": torch.float32,
    "f64": torch.float64,
}
_FORMATS = {
    "bool": "<?",
    "i8": "<b",
    "u8": "<B",
    "i16": "<h",
    "u16": "<H",
    "i32": "<i",
    "u32": "<I",
    "i64": "<q",
    "u64": "<Q",
    "f32": "<f",
    "f64": "<d",
}
# Exponent and fraction bits of the small float types.
_SMALL = {"bf16": (8, 7), "f16": (5, 10), "f8e5m2": (5, 2), "f8e4m3": (4, 3)}
# CUtensorMapDataType; what is not a number to the copy engine goes by its size.
_MAP_TYPES = {"f16": 6, "bf16": 9, "f32": 7, "f64": 8, "i32": 3, "i64": 5}
_MAP_TYPES_BY_SIZE = {1: 0, 2: 1, 4: 2, 8: 4}


def _size_of(dtype: str) -> int:
    return _TORCH_DTYPES[dtype].itemsize


def _small_float(dtype: str, value: float) -> int:
    """The bits of `value`, rounded to nearest even; beyond the largest: infinity, or 448 in f8e4m3."""
    exponent_bits, fraction_bits = _SMALL[dtype]
    bias = 2 ** (exponent_bits - 1) - 1
    sign = (math.copysign(1.0, value) < 0) << (exponent_bits + fraction_bits)
    most = 0x7E if dtype == "f8e4m3" else (2**exponent_bits - 1) << fraction_bits
    if math.isnan(value):
        return sign | (0x7F if dtype == "f8e4m3" else most | 1 << (fraction_bits - 1))
    if math.isinf(value):
        return sign | most
    last = max(math.frexp(value)[1] - 1 if value else 1 - bias, 1 - bias) - fraction_bits
    bits = round(math.ldexp(abs(value), -last)) + ((last + fraction_bits + bias - 1) << fraction_bits)
    return sign | min(bits, most)


def _pack(dtype: str, value: Any) -> bytes:
    """One little-endian element, rounded to nearest even."""
    if dtype in _SMALL:
        return _small_float(dtype, value).to_bytes(_size_of(dtype), "little")
    number = value if dtype in ("bool", "f32", "f64") else operator.index(value)
    packed: bytes = struct.pack(_FORMATS[dtype], number)
    return packed


def _fit_scalar(dtype: str, value: bytes, size: int) -> bytes:
    """A scalar in the bytes of a kernel's parameter; empty where its value would change."""
    if len(value) == size or dtype in _SMALL or dtype in ("f32", "f64"):
        return value if len(value) == size else b""
    number = int.from_bytes(value, "little", signed=dtype.startswith("i"))
    if not -(2 ** (8 * size - 1)) <= number < 2 ** (8 * size):
        return b""
    return (number % 2 ** (8 * size)).to_bytes(size, "little")


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = [
        ("id", ctypes.c_int),
        ("padding", ctypes.c_uint),
        ("value", ctypes.c_uint * 16),
    ]


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    ]


_COOPERATIVE, _CLUSTER = 2, 4  # CUlaunchAttributeID
_MAX_DYNAMIC_SHARED, _NON_PORTABLE_CLUSTER = 8, 14  # CUfunction_attribute


class _Driver:
    """libcuda.so.1, opened when a kernel is first called."""

    _one: _Driver | None = None

    def __init__(self) -> None:
        try:
            self.lib = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Refused(f"there is no CUDA driver: {error}", "run on a machine with a GPU") from None

    @classmethod
    def get(cls) -> _Driver:
        if cls._one is None:
            cls._one = cls()
        return cls._one

    def call(self, name: str, *args: Any) -> None:
        if code := getattr(self.lib, name)(*args):
            text = ctypes.c_char_p()
            self.lib.cuGetErrorName(code, ctypes.byref(text))
            raise RuntimeError(f"{INSTANCE}: {name}: {(text.value or b'error').decode()} ({code})")


class _Function:
    """A kernel in a loaded module, and the sizes of its parameters."""

    def __init__(self, driver: _Driver, module: ctypes.c_void_p, symbol: str) -> None:
        self.handle = ctypes.c_void_p()
        driver.call("cuModuleGetFunction", ctypes.byref(self.handle), module, symbol.encode())
        self.sizes: list[int] = []
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        info = driver.lib.cuFuncGetParamInfo
        while not info(
            self.handle, ctypes.c_size_t(len(self.sizes)), ctypes.byref(offset), ctypes.byref(size)
        ):
            self.sizes.append(size.value)
        self.shared_bytes = 0
        self.clustered = False

    def prepare(self, driver: _Driver, launch: Launch) -> None:
        """Says what the driver wants to know before it launches."""
        set_attribute = "cuFuncSetAttribute"
        if launch.shared_bytes > self.shared_bytes:
            driver.call(set_attribute, self.handle, _MAX_DYNAMIC_SHARED, launch.shared_bytes)
            self.shared_bytes = launch.shared_bytes
        if math.prod(launch.cluster) > 8 and not self.clustered:
            driver.call(set_attribute, self.handle, _NON_PORTABLE_CLUSTER, 1)
            self.clustered = True


class _Module:
    """The kernel's machine code on one device."""

    def __init__(self, folder: pathlib.Path, device: int) -> None:
        major, minor = torch.cuda.get_device_capability(device)
        if f"sm_{major}{minor}" != ARCH.rstrip("abcdefghijklmnopqrstuvwxyz"):
            raise Refused(
                f"{INSTANCE} was vetted for {ARCH}, and {torch.cuda.get_device_name(device)} is "
                f"sm_{major}{minor}",
                f"vet it for this chip: assay check ... --arch sm_{major}{minor} --emit FOLDER",
            )
        self.driver = _Driver.get()
        context = ctypes.c_void_p()
        self.driver.call("cuInit", 0)
        self.driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.driver.call("cuCtxSetCurrent", context)
        self.context = context
        self.handle = ctypes.c_void_p()
        self.driver.call("cuModuleLoadData", ctypes.byref(self.handle), self._image(folder))
        self.functions: dict[str, _Function] = {}

    @staticmethod
    def _image(folder: pathlib.Path) -> bytes:
        for name, digest in IMAGES.items():
            if not (folder / name).exists():
                continue
            image = (folder / name).read_bytes()
            if hashlib.sha256(image).hexdigest() != digest:
                raise Refused(
                    f"{folder / name} is not the file that was vetted", "restore it from a copy"
                )
            return image + b"\0"
        raise Refused(
            f"{folder} holds none of {', '.join(IMAGES)}", "keep kernel.py in its vetted folder"
        )

    def function(self, symbol: str) -> _Function:
        if symbol not in self.functions:
            self.functions[symbol] = _Function(self.driver, self.handle, symbol)
        return self.functions[symbol]


# -------------------------------------------------------------------------------- watch in production


@dataclass
class Check:
    """One output of one checked call against its reference. Errors are counted in allowances."""

    output: str
    call: int  # which call of the kernel, from 1
    worst: float  # the largest |got - wanted| / allowance; above 1: exceeded
    bias: float  # the mean of (got - wanted) / allowance
    exceeded: int  # elements beyond their allowance
    elements: int


@dataclass
class Tally:
    """What the checked calls of one output came to."""

    checked: int = 0
    exceeded: int = 0  # calls
    worst: float = 0.0
    bias: float = 0.0  # mean over the checked calls
    first: float = 0.0  # mean of `worst` over the first 16 checked calls
    recent: float = 0.0  # the same, recent calls counting most

    @property
    def drift(self) -> float:
        """How many times larger errors are now than they were at first; 1: as they were."""
        return self.recent / self.first if self.first > 0 else float(self.recent <= 0) or math.inf

    def add(self, check: Check) -> None:
        self.checked += 1
        self.exceeded += check.exceeded > 0
        self.worst = max(self.worst, check.worst)
        self.bias += (check.bias - self.bias) / self.checked
        worst = min(check.worst, 1e6)
        if self.checked <= 16:
            self.first += (worst - self.first) / self.checked
            self.recent = self.first
        else:
            self.recent += 0.1 * (worst - self.recent)


_ROUNDOFF = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-24, "f64": 2.0**-53}


class Watch:
    """Checks one call in 1 / rate against a reference, on the GPU, after the call.

    The allowance of an element is relative * |wanted| + absolute * rms(wanted). It is a yardstick
    for watching, coarser than the bound that the judge derived. Cost: nothing but a countdown for
    a call that is not checked; the reference, the comparison and a wait for the GPU for one that
    is. A reference that fails is counted and logged, and never fails the call.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        *,
        rate: float = 1e-3,
        seed: int | None = None,
        relative: float | None = None,
        absolute: float | None = None,
        on_check: Callable[[Check], None] | None = None,
        logger: logging.Logger | None = None,
    ) -> None:
        if not 0 < rate <= 1:
            raise Refused(f"a rate of {rate} checks nothing", "use a share of calls, as 1e-3")
        self.reference = reference
        self.rate = rate
        self.relative, self.absolute = relative, absolute
        self.on_check = on_check
        self.logger = logger or logging.getLogger("assay.kernel")
        self.calls = self.failed = 0
        self.outputs: dict[str, Tally] = {tensor.name: Tally() for tensor in OUTPUTS}
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._left = self._wait()

    def _wait(self) -> int:
        """Calls until the next one that is checked: each one is, with probability `rate`."""
        if self.rate == 1:
            return 1
        return 1 + int(math.log(1 - self._random.random()) / math.log(1 - self.rate))

    def due(self) -> bool:
        with self._lock:
            self.calls += 1
            self._left -= 1
            if self._left > 0:
                return False
            self._left = self._wait()
            return True

    def check(self, outputs: Sequence[torch.Tensor], args: Sequence[Any]) -> None:
        inputs = len(INPUTS)
        try:
            with torch.no_grad():
                wanted = self.reference(
                    *args[:inputs], **dict(zip(GIVEN, args[inputs:], strict=True))
                )
                many = (wanted,) if isinstance(wanted, torch.Tensor) else tuple(wanted)
                checks = [
                    self._compare(spec, got, want)
                    for spec, got, want in zip(OUTPUTS, outputs, many, strict=True)
                ]
        except Exception:
            self.failed += 1
            self.logger.exception("%s: the reference of the watch failed", INSTANCE)
            return
        for check in checks:
            with self._lock:
                self.outputs[check.output].add(check)
            self.logger.log(
                logging.WARNING if check.exceeded else logging.DEBUG,
                "%s: call %d: %s: %d of %d elements beyond their allowance, worst %.3g, bias %.3g",
                INSTANCE, check.call, check.output, check.exceeded, check.elements, check.worst,
                check.bias,
            )  # fmt: skip
            if self.on_check is not None:
                self.on_check(check)

    def _compare(self, spec: Tensor, got: torch.Tensor, want: torch.Tensor) -> Check:
        if want.shape != got.shape:
            raise ValueError(f"{spec.name}: {tuple(want.shape)} instead of {tuple(got.shape)}")
        default = max(8 * _ROUNDOFF.get(spec.dtype, 0.0), 256 * 2.0**-24)
        relative = default if self.relative is None else self.relative
        absolute = default if self.absolute is None else self.absolute
        worst, exceeded, signed = 0.0, 0, 0.0
        got, want = got.reshape(-1), want.reshape(-1).to(got.device)
        pieces = range(0, got.numel(), 1 << 24)
        squares = sum(
            float(piece.double().nan_to_num(0, 0, 0).square().sum())
            for piece in (want[at : at + (1 << 24)] for at in pieces)
        )
        scale = math.sqrt(squares / max(1, got.numel()))
        for at in pieces:
            g, w = got[at : at + (1 << 24)].double(), want[at : at + (1 << 24)].double()
            allowance = relative * w.abs() + absolute * scale + 1e-300
            if spec.dtype not in _ROUNDOFF:
                allowance = torch.full_like(w, 1e-300)  # integers agree
            use = (g - w) / allowance
            use[(g == w) | (g.isnan() & w.isnan())] = 0
            size = use.abs().nan_to_num(math.inf, math.inf)
            worst = max(worst, float(size.max()))
            exceeded += int((size > 1).sum())
            signed += float(use.nan_to_num(1e6).clamp(-1e6, 1e6).sum())
        elements = got.numel()
        return Check(spec.name, self.calls, worst, signed / max(1, elements), exceeded, elements)

    def prometheus(self) -> str:
        """The counters in Prometheus' text format."""
        rows: list[tuple[str, str, str, dict[str, float]]] = [
            ("calls_total", "counter", "Calls while watched.", {"": self.calls}),
            ("reference_failed_total", "counter", "References that failed.", {"": self.failed}),
        ]
        for name, kind, words, field in (
            ("checked_total", "counter", "Calls that were checked.", "checked"),
            ("exceeded_total", "counter", "Checked calls beyond their allowance.", "exceeded"),
            ("allowance_use", "gauge", "Largest error, in allowances.", "worst"),
            ("bias", "gauge", "Mean signed error, in allowances.", "bias"),
            ("drift", "gauge", "Errors now over errors at first.", "drift"),
        ):
            values = {name: float(getattr(tally, field)) for name, tally in self.outputs.items()}
            rows.append((name, kind, words, values))
        text = ""
        for name, kind, words, values in rows:
            text += f"# HELP assay_kernel_{name} {words}\n# TYPE assay_kernel_{name} {kind}\n"
            for output, value in values.items():
                where = f'instance="{INSTANCE}"' + (f',output="{output}"' if output else "")
                shown = "+Inf" if value == math.inf else f"{value:.9g}"
                text += f"assay_kernel_{name}{{{where}}} {shown}\n"
        return text


# ----------------------------------------------------------------------------------------- the kernel


@dataclass(frozen=True)
class _Ready:
    """All that follows from the shapes of a call."""

    axes: dict[str, int]
    outputs: tuple[tuple[int, ...], ...]
    plan: Plan


class Kernel:
    """The vetted kernel as a custom operator of torch: KERNEL below is the only one.

    Thread-safe. A call costs the checks, the launches and, for each new shape, the plan.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.strict = True  # False: all that the op allows, though nobody tried it
        self.watcher: Watch | None = None
        self._modules: dict[int, _Module] = {}
        self._ready: OrderedDict[tuple[Any, ...], _Ready] = OrderedDict()
        self._lock = threading.Lock()
        words = [f"{_schema_type(spec)} {spec.name}_" for spec in INPUTS]
        words += [f"SymInt {name}_" for name in GIVEN]
        results = ", ".join(["Tensor"] * len(OUTPUTS))
        schema = f"({', '.join(words)}) -> {results if len(OUTPUTS) == 1 else f'({results})'}"
        # Loaded twice, it is two operators: the first one may be in use.
        first = f"{NAME}_{next(iter(IMAGES.values()))[:12]}"
        names = itertools.chain([first], (f"{first}_{number}" for number in itertools.count(2)))
        name = next(each for each in names if not hasattr(torch.ops.assay, each))
        self.qualified = f"assay::{name}"
        custom = torch.library.custom_op(
            self.qualified, self._run, mutates_args=(), schema=schema
        )
        custom.register_fake(self._fake)
        self.op = getattr(torch.ops.assay, name).default

    # ------------------------------------------------------------------------------------ for users

    def watch(self, reference: Callable[..., Any], **options: Any) -> Watch:
        """From now on checks a share of the calls against `reference`, which takes what the kernel
        takes and returns what it returns: a torch function, or another vetted kernel. See Watch."""
        self.watcher = Watch(reference, **options)
        return self.watcher

    def unwatch(self) -> None:
        self.watcher = None

    def differentiable(
        self,
        backward: Any,
        *,
        feed: Mapping[str, str | Callable[[dict[str, Any]], Any]] | None = None,
        gradients: Mapping[str, str] | None = None,
    ) -> None:
        """Gives the kernel a gradient: `backward` is the module or KERNEL of a vetted backward pass.

        An input of the backward pass that is called as one of the forward pass's inputs or outputs
        is that; grad_NAME is the gradient of output NAME, grad_out that of the only one. Others are
        named by `feed`: another name, or a function of all values by name. Its output grad_NAME is
        the gradient of input NAME; others are named by `gradients`.
        """
        other: Any = getattr(backward, "KERNEL", backward)
        its_inputs, its_outputs, its_given = other.inputs, other.outputs, other.given
        names = [spec.name for spec in INPUTS]
        results = [spec.name for spec in OUTPUTS]
        known = {*names, *results, *(f"grad_{name}" for name in results)}
        feed = dict(feed or {})
        for spec in its_inputs:
            if spec.name in feed or spec.name in known:
                continue
            if spec.name == "grad_out" and len(results) == 1:
                feed[spec.name] = f"grad_{results[0]}"
                continue
            raise Refused(
                f"the backward pass takes '{spec.name}', which the forward pass does not know",
                f"say what it is: feed={{'{spec.name}': lambda values: ...}}",
            )
        targets = {
            spec.name: (gradients or {}).get(spec.name, spec.name.removeprefix("grad_"))
            for spec in its_outputs
        }
        for result, target in targets.items():
            if target not in names:
                raise Refused(
                    f"the backward pass's '{result}' is the gradient of no input",
                    f"say of which: gradients={{'{result}': one of {names}}}",
                )

        def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            many = (output,) if len(results) == 1 else output
            values = [*inputs, *many]
            ctx.save_for_backward(*(v for v in values if isinstance(v, torch.Tensor)))
            ctx.others = [None if isinstance(v, torch.Tensor) else v for v in values]

        def run(ctx: Any, *grads: Any) -> Any:
            tensors = iter(ctx.saved_tensors)
            saved = [next(tensors) if value is None else value for value in ctx.others]
            values: dict[str, Any] = dict(zip([*names, *GIVEN, *results], saved, strict=True))
            for name, grad in zip(results, grads, strict=True):
                gradient = torch.zeros_like(values[name]) if grad is None else grad
                values[f"grad_{name}"] = gradient.contiguous()
            shape = {n: v.shape for n, v in values.items() if isinstance(v, torch.Tensor)}
            axes = solve(shape, values)
            args = []
            for spec in its_inputs:
                source = feed.get(spec.name, spec.name)
                args.append(source(values) if callable(source) else values[source])
            for name in its_given:
                if name not in axes:
                    raise Refused(f"the backward pass asks for the axis '{name}'", "call it yourself")
                args.append(axes[name])
            outcome = other.op(*args)
            many = (outcome,) if len(its_outputs) == 1 else outcome
            by_target = {targets[s.name]: v for s, v in zip(its_outputs, many, strict=True)}
            return tuple([by_target.get(name) for name in names] + [None] * len(GIVEN))

        torch.library.register_autograd(self.qualified, run, setup_context=setup)

    @property
    def inputs(self) -> list[Tensor | Scalar]:
        return INPUTS

    @property
    def outputs(self) -> list[Tensor]:
        return OUTPUTS

    @property
    def given(self) -> list[str]:
        return GIVEN

    # --------------------------------------------------------------------------------- one call of it

    def _fake(self, *args: Any) -> Any:
        """Shapes and dtypes alone, for torch.compile."""
        tensors = self._tensors(args)
        for spec, value in tensors.items():
            self._check_form(spec, value)
        shape = {spec.name: value.shape for spec, value in tensors.items()}
        axes = solve(shape, dict(zip(GIVEN, args[len(INPUTS) :], strict=True)))
        extents = shapes(axes)
        like: torch.Tensor | None = next(iter(tensors.values()), None)
        device = like.device if like is not None else "cuda"
        outputs = tuple(
            torch.empty(extents[spec.name], dtype=_TORCH_DTYPES[spec.dtype], device=device)
            for spec in OUTPUTS
        )
        return outputs[0] if len(outputs) == 1 else outputs

    def _run(self, *args: Any) -> Any:
        tensors = self._tensors(args)
        for spec, value in tensors.items():
            self._check_form(spec, value)
        for spec, value in tensors.items():
            self._check_place(spec, value)
        like: torch.Tensor | None = next(iter(tensors.values()), None)
        device = torch.cuda.current_device() if like is None else like.get_device()
        for spec, value in tensors.items():
            if value.get_device() != device:
                raise Refused(
                    f"{spec.name} lies on {value.device}, and other inputs on cuda:{device}",
                    "put all inputs on one device",
                )
        ready = self._ready_for(tensors, args)
        values: dict[str, Any] = {spec.name: value for spec, value in tensors.items()}
        scalars = {
            spec.name: (spec.dtype, self._scalar(spec, value, ready.axes))
            for spec, value in zip(INPUTS, args, strict=False)
            if isinstance(spec, Scalar)
        }
        with torch.cuda.device(device):
            module = self._module(device)
            module.driver.call("cuCtxSetCurrent", module.context)
            outputs = []
            for result, extents in zip(OUTPUTS, ready.outputs, strict=True):
                dtype = _TORCH_DTYPES[result.dtype]
                if result.updates:
                    # The input itself stays: operators of torch return what they change.
                    outputs.append(values[result.updates].clone())
                    values[result.updates] = outputs[-1]
                else:
                    outputs.append(torch.empty(extents, dtype=dtype, device=device))
                values[result.name] = outputs[-1]
            for buffer in ready.plan.workspace:
                make = torch.zeros if buffer.zero else torch.empty
                values[buffer.name] = make(
                    buffer.shape, dtype=_TORCH_DTYPES[buffer.dtype], device=device
                )
            stream = torch.cuda.current_stream(device).cuda_stream
            for launch in ready.plan.launches:
                self._launch(module, launch, ready, values, scalars, stream)
            watch = self.watcher
            if watch is not None and watch.due() and not torch.cuda.is_current_stream_capturing():
                watch.check(outputs, args)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @staticmethod
    def _tensors(args: Sequence[Any]) -> dict[Tensor, torch.Tensor]:
        return {s: v for s, v in zip(INPUTS, args, strict=False) if isinstance(s, Tensor)}

    @staticmethod
    def _check_form(spec: Tensor, value: torch.Tensor) -> None:
        if value.dtype != _TORCH_DTYPES[spec.dtype]:
            raise Refused(
                f"{spec.name} is {value.dtype}, and {INSTANCE} was vetted for {spec.dtype}",
                f"{spec.name}.to({_TORCH_DTYPES[spec.dtype]}), or a kernel vetted for that dtype",
            )
        if value.layout != torch.strided or value.is_nested:
            raise Refused(
                f"{spec.name} is sparse, nested or of another layout, and only dense tensors were vetted",
                f"{spec.name}.to_dense()",
            )
        if value.dim() != spec.rank:
            raise Refused(
                f"{spec.name} has {value.dim()} dimensions, and {spec.rank} are expected",
                f"reshape it: {', '.join(SHAPES[spec.name]) or 'no dimensions'}",
            )

    @staticmethod
    def _check_place(spec: Tensor, value: torch.Tensor) -> None:
        if value.device.type != "cuda":
            raise Refused(
                f"{spec.name} lies on {value.device}, and the kernel runs on a GPU",
                f"move it there: {spec.name}.cuda()",
            )
        if not value.is_contiguous():
            raise Refused(
                f"{spec.name} has the strides {value.stride()}, and only packed tensors were vetted",
                f"{spec.name}.contiguous()",
            )
        if value.data_ptr() % spec.align != 0:
            raise Refused(
                f"{spec.name} begins at an address that is no multiple of {spec.align} bytes",
                f"{spec.name}.clone()",
            )
        # Storage can be taken away from under a tensor, as sharded training does between its steps.
        size = value.element_size()
        needed = (value.storage_offset() + value.numel()) * size if value.numel() else 0
        if value.untyped_storage().nbytes() < needed:
            raise Refused(
                f"{spec.name} needs {needed} bytes, and its storage ends before",
                "call the kernel while the tensor has its memory",
            )

    def _ready_for(self, tensors: dict[Tensor, torch.Tensor], args: Sequence[Any]) -> _Ready:
        shape_of = (tuple(value.shape) for value in tensors.values())
        key = (self.strict, *shape_of, *args[len(INPUTS) :])
        return self._ready.get(key) or self._prepare(key, tensors, args)

    def _prepare(
        self, key: tuple[Any, ...], tensors: dict[Tensor, torch.Tensor], args: Sequence[Any]
    ) -> _Ready:
        given = {n: operator.index(v) for n, v in zip(GIVEN, args[len(INPUTS) :], strict=True)}
        axes = solve({spec.name: tuple(v.shape) for spec, v in tensors.items()}, given)
        self.check_axes(axes)
        extents = shapes(axes)
        for spec, value in tensors.items():
            if extents[spec.name] != tuple(value.shape):
                words = ", ".join(f"{name} = {value}" for name, value in axes.items())
                raise Refused(
                    f"{spec.name} is {tuple(value.shape)}, and must be "
                    f"({', '.join(SHAPES[spec.name])}) = {extents[spec.name]} where {words}",
                    "give inputs whose extents fit each other",
                )
        for result in OUTPUTS:
            if min(extents[result.name], default=0) < 0:
                raise Refused(f"{result.name} would be {extents[result.name]}", "use another shape")
        launch_plan = plan(axes)
        check_plan(launch_plan)
        ready = _Ready(axes, tuple(extents[spec.name] for spec in OUTPUTS), launch_plan)
        with self._lock:
            self._ready[key] = ready
            while len(self._ready) > 256:
                self._ready.popitem(last=False)
        return ready

    def check_axes(self, axes: Mapping[str, int]) -> None:
        """Refuses extents that the certificate does not cover."""
        for axis in AXES:
            value = axes[axis.name]
            if not axis.low <= value <= axis.high:
                raise Refused(
                    f"{axis.name} is {value}, and {INSTANCE} was vetted for {axis.low} to {axis.high}",
                    f"split the call, or widen {axis.name} in op.json and vet the kernel again",
                )
            if self.strict and value > axis.tried:
                raise Refused(
                    f"{axis.name} is {value}, and the judge ran {axis.tried} at most",
                    "vet it with more effort (assay check ... --effort thorough), add a workload of "
                    "that size to the op, or take it unseen: KERNEL.strict = False",
                )
        for text, holds in constraints(axes):
            if not holds:
                words = ", ".join(f"{name} = {axes[name]}" for name in axes)
                raise Refused(f"the op asks for {text}, and here {words}", "use another shape")

    @staticmethod
    def _scalar(spec: Scalar, value: Any, axes: Mapping[str, int]) -> bytes:
        try:
            packed = _pack(spec.dtype, value)
        except (TypeError, OverflowError, struct.error) as error:
            raise Refused(f"{spec.name} is {value!r}: {error}", f"give a {spec.dtype}") from None
        high = axes[spec.below] - 1 if spec.below else spec.high
        fits = not spec.choices or packed in [_pack(spec.dtype, choice) for choice in spec.choices]
        if math.isnan(value):
            fits = spec.allow_nan
        elif math.isinf(value):
            fits = spec.allow_infinity
        elif not (0 if spec.below else spec.low) <= value <= high:
            fits = False
        if not fits:
            domain = spec.choices or (0 if spec.below else spec.low, "to", high)
            raise Refused(
                f"{spec.name} is {value}, and {INSTANCE} was vetted for "
                f"{', '.join(map(str, domain))}",
                f"use one of those, or widen the domain of {spec.name} in op.json and vet it again",
            )
        return packed

    def _module(self, device: int) -> _Module:
        module = self._modules.get(device)
        if module is None:
            if torch.cuda.is_current_stream_capturing():
                raise Refused(
                    f"{INSTANCE} is not loaded yet, and a CUDA graph is being captured",
                    "call it once before the capture",
                )
            with self._lock:
                module = self._modules.get(device) or _Module(self.folder, device)
                self._modules[device] = module
        return module

    @staticmethod
    def _launch(
        module: _Module,
        launch: Launch,
        ready: _Ready,
        values: Mapping[str, torch.Tensor],
        scalars: Mapping[str, tuple[str, bytes]],
        stream: int,
    ) -> None:
        if 0 in launch.grid:
            return  # this is how a plan says that a kernel has nothing to do
        function = module.function(launch.symbol)
        if len(function.sizes) != len(launch.args):
            raise RuntimeError(
                f"{launch.symbol} takes {len(function.sizes)} arguments, not {len(launch.args)}"
            )
        function.prepare(module.driver, launch)
        kept: list[Any] = []
        for name, size in zip(launch.args, function.sizes, strict=True):
            if name in values:
                data = struct.pack("<Q", values[name].data_ptr())
            elif name in scalars:
                data = _fit_scalar(*scalars[name], size)
            elif name in ready.axes:
                data = _fit_scalar("i64", struct.pack("<q", ready.axes[name]), size)
            else:
                one = next(each for each in ready.plan.tensor_maps if each.name == name)
                kept.append(_encode(module.driver, one, values[one.tensor]))
                continue
            if len(data) != size:
                raise Refused(
                    f"{name} does not fit the {size} bytes of the kernel's parameter",
                    "use a smaller shape or value",
                )
            kept.append(ctypes.create_string_buffer(data, size))
        parameters = (ctypes.c_void_p * len(kept))(*(ctypes.addressof(each) for each in kept))
        attributes = (_Attribute * 2)()
        count = 0
        if launch.cooperative:
            attributes[count].id = _COOPERATIVE
            attributes[count].value[0] = 1
            count += 1
        if math.prod(launch.cluster) > 1:
            attributes[count].id = _CLUSTER
            attributes[count].value[:3] = launch.cluster
            count += 1
        config = _Config(
            launch.grid, launch.block, launch.shared_bytes, stream, attributes, count
        )
        module.driver.call(
            "cuLaunchKernelEx", ctypes.byref(config), function.handle, parameters, None
        )


def _schema_type(spec: Tensor | Scalar) -> str:
    if isinstance(spec, Tensor):
        return "Tensor"
    return {"b": "bool", "f": "float"}.get(spec.dtype.replace("bf", "f")[0], "SymInt")


def _encode(driver: _Driver, spec: TensorMap, tensor: torch.Tensor) -> Any:
    """A CUtensorMap over `tensor`, at an address that is a multiple of 64."""
    strides = spec.strides or tuple(
        itertools.accumulate((_size_of(spec.dtype), *spec.shape[:-1]), operator.mul)
    )[1:]
    rank = len(spec.shape)
    room = ctypes.create_string_buffer(128 + 64)
    offset = -ctypes.addressof(room) % 64
    image = (ctypes.c_char * 128).from_buffer(room, offset)
    driver.call(
        "cuTensorMapEncodeTiled",
        ctypes.byref(image),
        _MAP_TYPES.get(spec.dtype, _MAP_TYPES_BY_SIZE[_size_of(spec.dtype)]),
        ctypes.c_uint(rank),
        ctypes.c_void_p(tensor.data_ptr()),
        (ctypes.c_uint64 * rank)(*spec.shape),
        (ctypes.c_uint64 * max(1, rank - 1))(*strides),
        (ctypes.c_uint32 * rank)(*spec.box),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        0,
        spec.swizzle,
        0,
        int(spec.fill_nan),
    )
    return image


def check_plan(launch_plan: Plan) -> None:
    """The limits of the hardware, as the judge holds them."""
    for launch in launch_plan.launches:
        for what, extents, low, limits in (
            ("grid", launch.grid, 0, (2**31 - 1, 65535, 65535)),
            ("block", launch.block, 1, (1024, 1024, 64)),
            ("cluster", launch.cluster, 1, (16, 16, 16)),
        ):
            for letter, extent, limit in zip("xyz", extents, limits, strict=True):
                if not low <= extent <= limit:
                    raise Refused(
                        f"{what}.{letter} of {launch.symbol} comes to {extent}, outside of "
                        f"[{low}, {limit}]",
                        "split the call",
                    )
        if math.prod(launch.block) > 1024 or not 0 <= launch.shared_bytes <= 228 * 1024:
            raise Refused(f"{launch.symbol} asks for more than a block can have", "split the call")
        if any(g % c for g, c in zip(launch.grid, launch.cluster, strict=True)):
            raise Refused(f"the grid of {launch.symbol} is no multiple of its cluster", "split the call")
    for buffer in launch_plan.workspace:
        if min(buffer.shape, default=0) < 0 or math.prod(buffer.shape) * _size_of(buffer.dtype) > 2**37:
            raise Refused(f"the workspace {buffer.name} would be {buffer.shape}", "split the call")


KERNEL = Kernel(pathlib.Path(__file__).resolve().parent)


def scatter_add(src: torch.Tensor, index: torch.Tensor, *, rows: int) -> torch.Tensor:
    """The kernel.

    src: bf16 [tokens, hidden]
    index: i64 [tokens]
    Returns
    out: bf16 [rows, hidden]
    """
    return KERNEL.op(src, index, rows)  # type: ignore[no-any-return]
