"""kernel.py without a GPU: arithmetic, plans, refusals, the launch as the driver would see it, watching.

That kernels run is tried on a GPU, by on_gpu.sh.
"""

from __future__ import annotations

import ctypes
import logging
import math
import struct
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from conftest import TESTDATA, module_of

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")


def inputs(tokens: int, hidden: int) -> tuple[Any, Any]:
    return torch.zeros(tokens, hidden, dtype=torch.bfloat16), torch.zeros(tokens, dtype=torch.int64)


def test_expressions_come_to_what_the_judge_has(scatter: ModuleType) -> None:
    rows = module_of(TESTDATA / "expressions.py", "golden_expressions")
    names = ("negate", "add", "subtract", "multiply", "divide", "modulo", "ceil_div", "round_up")
    for name in (*names, "minimum", "maximum"):
        setattr(rows, name, getattr(scatter, name))
    refused = 0
    for text, value, a, b, c, wanted in rows.ROWS:
        if wanted is None:
            refused += 1
            with pytest.raises(scatter.Refused):
                value(a, b, c)
        else:
            assert value(a, b, c) == wanted, text
    assert len(rows.ROWS) == 400 and 20 < refused < 300


def test_the_plan_is_the_one_of_the_shapes(scatter: ModuleType) -> None:
    axes = scatter.solve({"src": (5, 100), "index": (5,)}, {"rows": 7})
    assert axes == {"tokens": 5, "hidden": 100, "rows": 7}
    scatter.KERNEL.check_axes(axes)
    plan = scatter.plan(axes)
    assert [launch.grid for launch in plan.launches] == [(2, 1, 1), (3, 1, 1)]
    assert plan.workspace == (scatter.Workspace("sums", "f32", (7, 100), True),)
    assert scatter.shapes(axes)["out"] == (7, 100)


def test_what_the_certificate_does_not_cover_is_refused_with_the_cure(scatter: ModuleType) -> None:
    src, index = inputs(4, 8)
    for args, rows, words in (
        ((src, index), 3, "src lies on cpu.*fix: move it there: src.cuda()"),
        ((src.float(), index), 3, "src is torch.float32, and .* was vetted for bf16.*fix: src.to"),
        ((src, index.int()), 3, "index is torch.int32"),
        ((src[0], index), 3, "src has 1 dimensions, and 2 are expected.*tokens, hidden"),
    ):
        with pytest.raises(scatter.Refused, match="(?s)" + words):
            scatter.scatter_add(*args, rows=rows)
    kernel = scatter.KERNEL
    good = {"tokens": 4, "hidden": 8, "rows": 3}
    kernel.check_axes(good)
    for axis, value in (("tokens", 0), ("hidden", 16385), ("rows", 262145)):
        with pytest.raises(scatter.Refused, match=f"{axis} is {value}, and .* was vetted for 1 to"):
            kernel.check_axes({**good, axis: value})
    # Seen whole, at its ends, in slices: each axis by itself.
    kernel.check_axes({"tokens": 257, "hidden": 4096, "rows": 1000})
    for axis, tried in (("tokens", 257), ("hidden", 4096), ("rows", 1000)):
        with pytest.raises(scatter.Refused, match=f"the judge ran {tried} at most(?s:.*)strict = False"):
            kernel.check_axes({**good, axis: tried + 1})


def test_what_was_taken_unseen_is_refused_again_once_it_is_not(scatter: ModuleType) -> None:
    kernel = scatter.KERNEL
    src, index = inputs(258, 8)
    tensors = {scatter.INPUTS[0]: src, scatter.INPUTS[1]: index}
    with pytest.raises(scatter.Refused, match="the judge ran 257 at most"):
        kernel._ready_for(tensors, (src, index, 3))
    kernel.strict = False
    try:
        ready = kernel._ready_for(tensors, (src, index, 3))
        assert kernel._ready_for(tensors, (src, index, 3)) is ready
        with pytest.raises(scatter.Refused, match="tokens is 1048577"):
            kernel.check_axes({"tokens": 1048577, "hidden": 8, "rows": 3})
    finally:
        kernel.strict = True
    with pytest.raises(scatter.Refused, match="the judge ran 257 at most"):
        kernel._ready_for(tensors, (src, index, 3))


def test_loaded_twice_it_is_two_operators(scatter: ModuleType) -> None:
    again = module_of(TESTDATA / "kernel.py", "golden_kernel_again")
    assert again.KERNEL.qualified != scatter.KERNEL.qualified
    for module in (again, scatter):
        with pytest.raises(module.Refused, match="src lies on cpu"):
            module.scatter_add(*inputs(4, 8), rows=3)


def test_strides_and_addresses_are_looked_at(
    scatter: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = scatter.INPUTS[0]

    def check(**about: Any) -> None:
        plain = {
            "device": SimpleNamespace(type="cuda"),
            "is_contiguous": lambda: True,
            "stride": lambda: (1, 4),
            "data_ptr": lambda: 256,
            "element_size": lambda: 2,
            "storage_offset": lambda: 3,
            "numel": lambda: 5,
            "untyped_storage": lambda: SimpleNamespace(nbytes=lambda: 16),
        }
        scatter.KERNEL._check_place(spec, SimpleNamespace(**{**plain, **about}))

    check()
    with pytest.raises(scatter.Refused, match=r"strides \(1, 4\)(?s:.*)src.contiguous\(\)"):
        check(is_contiguous=lambda: False)
    with pytest.raises(scatter.Refused, match=r"no multiple of 2 bytes(?s:.*)src.clone\(\)"):
        check(data_ptr=lambda: 257)
    with pytest.raises(scatter.Refused, match="src needs 16 bytes, and its storage ends before"):
        check(untyped_storage=lambda: SimpleNamespace(nbytes=lambda: 15))
    check(numel=lambda: 0, untyped_storage=lambda: SimpleNamespace(nbytes=lambda: 0))
    gone = torch.zeros(4, 8, dtype=torch.bfloat16)
    gone.untyped_storage().resize_(0)
    with pytest.raises(scatter.Refused, match="its storage ends before"):
        scatter.KERNEL._check_place(
            spec,
            SimpleNamespace(
                device=SimpleNamespace(type="cuda"),
                is_contiguous=gone.is_contiguous,
                data_ptr=gone.data_ptr,
                element_size=gone.element_size,
                storage_offset=gone.storage_offset,
                numel=gone.numel,
                untyped_storage=gone.untyped_storage,
            ),
        )


def test_only_dense_tensors_are_taken(scatter: ModuleType) -> None:
    src, index = inputs(4, 8)
    nested = torch.nested.nested_tensor([src[0], src[1, :3]])
    for bad in (src.to_sparse(), src.to_sparse_csr(), nested):
        with pytest.raises((scatter.Refused, NotImplementedError, RuntimeError)):
            scatter.scatter_add(bad, index, rows=3)
        with pytest.raises(scatter.Refused, match="only dense tensors"):
            scatter.KERNEL._check_form(scatter.INPUTS[0], bad)
    scatter.KERNEL._check_form(scatter.INPUTS[0], src)


def test_nothing_is_loaded_while_a_graph_is_captured(
    scatter: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(scatter.Refused, match="is not loaded yet(?s:.*)fix: call it once before"):
        scatter.KERNEL._module(0)
    monkeypatch.setitem(scatter.KERNEL._modules, 0, "loaded")
    assert scatter.KERNEL._module(0) == "loaded"


def test_shapes_that_do_not_fit_each_other_are_refused(scatter: ModuleType) -> None:
    src, index = inputs(4, 8)
    with pytest.raises(scatter.Refused, match=r"index is \(4,\), and must be \(tokens\) = \(3,\)"):
        prepare(scatter, src[:3], index, 3)


def prepare(scatter: ModuleType, src: Any, index: Any, rows: int) -> Any:
    tensors = {scatter.INPUTS[0]: src, scatter.INPUTS[1]: index}
    return scatter.KERNEL._prepare((object(),), tensors, (src, index, rows))


def test_names_that_are_words_of_the_language(hostile: ModuleType) -> None:
    axes = hostile.solve({"torch": (8, 8), "shape": (4, 2)}, {"NULL": 3})
    assert axes == {"lambda": 4, "int": 5, "ceil_div": 6, "KERNEL": 3, "add": 2, "NULL": 3}
    hostile.KERNEL.check_axes(axes)
    assert hostile.plan(axes).launches[0].grid == (4, 2, 1)
    assert hostile.shapes(axes)["Tensor"] == (20, 3)
    with pytest.raises(hostile.Refused, match="64 % lambda == 0"):
        hostile.KERNEL.check_axes({**axes, "lambda": 3})
    with pytest.raises(hostile.Refused, match="ceil_div >= 0"):
        hostile.KERNEL.check_axes({**axes, "ceil_div": -1})
    hostile.KERNEL.check_axes({**axes, "lambda": 0})  # decided on the left
    assert callable(hostile.plan_)


def test_scalars_have_their_domain(hostile: ModuleType) -> None:
    spec = next(each for each in hostile.INPUTS if each.name == "return")
    assert hostile.Kernel._scalar(spec, 1.5, {}) == struct.pack("<f", 1.5)
    for value in (0.4, 2.5, math.nan, math.inf, 1e300):
        with pytest.raises(hostile.Refused, match="return is"):
            hostile.Kernel._scalar(spec, value, {})
    choice = hostile.Scalar("eps", "f32", choices=(1e-6, 1e-5))
    assert hostile.Kernel._scalar(choice, struct.unpack("<f", struct.pack("<f", 1e-6))[0], {})
    with pytest.raises(hostile.Refused, match="vetted for 1e-06, 1e-05"):
        hostile.Kernel._scalar(choice, 2e-6, {})
    below = hostile.Scalar("at", "i64", below="int")
    assert hostile.Kernel._scalar(below, 4, {"int": 5})
    with pytest.raises(hostile.Refused, match="at is 5"):
        hostile.Kernel._scalar(below, 5, {"int": 5})


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_scalars_are_rounded_to_nearest_even(scatter: ModuleType, dtype: str) -> None:
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(4000, generator=generator) * 2.0 ** torch.randint(
        -24, 16, (4000,), generator=generator
    )
    to = torch.bfloat16 if dtype == "bf16" else torch.float16
    wanted = values.to(to).view(torch.int16)
    for value, bits in zip(values.tolist(), wanted.tolist(), strict=True):
        if abs(value) < 65504:
            assert struct.unpack("<h", scatter._pack(dtype, value))[0] == bits, value


class Driver:
    """Keeps what would be launched."""

    def __init__(self) -> None:
        self.launches: list[tuple[Any, list[int]]] = []
        self.sizes: list[int] = []

    def call(self, name: str, config: Any, function: Any, parameters: Any, extra: None) -> None:
        assert name == "cuLaunchKernelEx"
        values = []
        for address, size in zip(parameters, self.sizes, strict=True):
            values.append(int.from_bytes(ctypes.string_at(address, size), "little", signed=True))
        copied = type(config._obj).from_buffer_copy(config._obj)
        ids = [config._obj.attributes[i].id for i in range(config._obj.attribute_count)]
        self.launches.append((copied, values + ids))

    def module(self, sizes: list[int]) -> Any:
        self.sizes = sizes
        function = SimpleNamespace(handle=None, sizes=sizes, prepare=lambda driver, launch: None)
        return SimpleNamespace(driver=self, function=lambda symbol: function)


def test_the_driver_gets_pointers_and_narrowed_extents(scatter: ModuleType) -> None:
    src, index = inputs(5, 100)
    ready = prepare(scatter, src, index, 7)
    sums = torch.zeros(7, 100)
    values = {"src": src, "index": index, "sums": sums}
    driver = Driver()
    launch = ready.plan.launches[0]
    scatter.Kernel._launch(driver.module([8, 8, 8, 8, 4]), launch, ready, values, {}, 4096)
    config, got = driver.launches[0]
    assert (list(config.grid), list(config.block)) == ([2, 1, 1], [256, 1, 1])
    assert (config.stream, config.shared_bytes, config.attribute_count) == (4096, 0, 0)
    assert got == [src.data_ptr(), index.data_ptr(), sums.data_ptr(), 5, 100]
    with pytest.raises(scatter.Refused, match="hidden does not fit the 1 bytes"):
        wide = scatter._Ready({**ready.axes, "hidden": 300}, ready.outputs, ready.plan)
        scatter.Kernel._launch(driver.module([8, 8, 8, 8, 1]), launch, wide, values, {}, 0)
    with pytest.raises(RuntimeError, match="takes 4 arguments, not 5"):
        scatter.Kernel._launch(driver.module([8] * 4), launch, ready, values, {}, 0)
    empty = scatter.Launch("k", (0, 1, 1), (1, 1, 1), (1, 1, 1), 0, False, ())
    scatter.Kernel._launch(driver.module([]), empty, ready, values, {}, 0)
    assert len(driver.launches) == 1
    both = scatter.Launch("k", (4, 1, 1), (32, 1, 1), (2, 1, 1), 1024, True, ())
    scatter.Kernel._launch(driver.module([]), both, ready, values, {}, 0)
    config, ids = driver.launches[1]
    assert (config.shared_bytes, ids) == (1024, [2, 4])


def test_limits_of_the_hardware(scatter: ModuleType) -> None:
    def plan(**changes: Any) -> Any:
        launch = {
            "symbol": "k", "grid": (1, 1, 1), "block": (32, 1, 1), "cluster": (1, 1, 1),
            "shared_bytes": 0, "cooperative": False, "args": (), **changes,
        }  # fmt: skip
        return scatter.Plan((), (), (scatter.Launch(**launch),))

    scatter.check_plan(plan(grid=(2**31 - 1, 65535, 0), block=(1024, 1, 1)))
    for changes in (
        {"grid": (2**31, 1, 1)}, {"grid": (1, 65536, 1)}, {"grid": (-1, 1, 1)}, {"block": (0, 1, 1)},
        {"block": (1025, 1, 1)}, {"block": (64, 32, 1)}, {"shared_bytes": 228 * 1024 + 1},
        {"grid": (3, 1, 1), "cluster": (2, 1, 1)},
    ):  # fmt: skip
        with pytest.raises(scatter.Refused):
            scatter.check_plan(plan(**changes))


def test_torch_compile_sees_shapes_and_dtypes(scatter: ModuleType) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        src = torch.empty(4, 8, dtype=torch.bfloat16, device="cuda")
        index = torch.empty(4, dtype=torch.int64, device="cuda")
        out = scatter.scatter_add(src, index, rows=3)
        assert (out.shape, out.dtype, out.device.type) == ((3, 8), torch.bfloat16, "cuda")
        with pytest.raises(scatter.Refused, match="vetted for bf16"):
            scatter.scatter_add(src.float(), index, rows=3)

    seen = []

    def backend(graph: Any, example: Any) -> Any:
        seen.append(str(graph.graph))
        return graph.forward

    compiled = torch.compile(
        lambda src, index: scatter.scatter_add(src * 2, index, rows=3), backend=backend, fullgraph=True
    )
    with pytest.raises(scatter.Refused, match="src lies on cpu"):
        compiled(*inputs(4, 8))
    assert len(seen) == 1 and "scatter_add" in seen[0]


def test_a_pairing_that_cannot_be_made_says_what_is_missing(scatter: ModuleType) -> None:
    other = SimpleNamespace(
        inputs=[scatter.Tensor("rstd", "f32", 1, 4)], outputs=[scatter.OUTPUTS[0]], given=[]
    )
    with pytest.raises(scatter.Refused, match="takes 'rstd'(?s:.*)feed="):
        scatter.KERNEL.differentiable(other)
    with pytest.raises(scatter.Refused, match="'out' is the gradient of no input"):
        scatter.KERNEL.differentiable(other, feed={"rstd": lambda values: None})


def test_a_pair_has_gradients() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    forward = module_of(TESTDATA / "kernel.py", "golden_kernel_with_gradient")
    strides: list[Any] = []

    def op(grad: Any, index: Any) -> Any:
        strides.append(grad.stride())
        return grad[index]

    backward = SimpleNamespace(
        inputs=[forward.Tensor("grad_out", "bf16", 2, 2), forward.Tensor("index", "i64", 1, 8)],
        outputs=[forward.Tensor("grad_src", "bf16", 2, 2)],
        given=[],
        op=op,
    )
    forward.KERNEL.differentiable(SimpleNamespace(KERNEL=backward))
    with FakeTensorMode():
        src = torch.empty(4, 8, dtype=torch.bfloat16, requires_grad=True)
        index = torch.empty(4, dtype=torch.int64)
        out = forward.scatter_add(src, index, rows=3)
        (gradient,) = torch.autograd.grad(out.sum(), src)
        assert (gradient.shape, gradient.dtype) == (src.shape, torch.bfloat16)
    assert strides == [(8, 1)]  # the gradient of a sum arrives with strides of 0


# --- watching


def test_a_kernel_that_goes_wrong_after_10000_calls_is_found_within_the_expectation(
    hostile: ModuleType,
) -> None:
    right = torch.rand(64, generator=torch.Generator().manual_seed(3)).reshape(64, 1)
    wrong = right.clone()
    wrong[7] *= 1.01
    found = []
    for seed in range(40):
        first: list[int] = []
        watch = hostile.Watch(
            lambda *args, **given: right,
            rate=1e-2,
            seed=seed,
            on_check=lambda check: first.append(check.call) if check.exceeded else None,
            logger=quiet(),
        )
        for call in range(1, 12001):
            if watch.due():
                watch.check([wrong if call > 10000 else right], [None] * len(hostile.INPUTS) + [3])
            if first:
                break
        assert first and first[0] > 10000
        found.append(first[0] - 10000)
    # Geometric: 100 calls in the mean; of 40 the mean lies within 4 deviations of it.
    assert 100 - 4 * 100 / 40**0.5 < sum(found) / 40 < 100 + 4 * 100 / 40**0.5


def quiet() -> logging.Logger:
    logger = logging.getLogger("assay.test")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
    return logger


def test_what_is_counted(hostile: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    want = torch.tensor([1.0, -2.0, math.nan, 4.0])
    answers = [want, want + torch.tensor([0.5, 0, 0, 0]), want.nan_to_num(0)]
    watch = hostile.Watch(lambda *args, **given: want, rate=1.0, relative=0.25, absolute=0.0)
    args = [None] * len(hostile.INPUTS) + [3]
    for answer in answers:
        assert watch.due()
        watch.check([answer], args)
    tally = watch.outputs["Tensor"]
    assert (tally.checked, tally.exceeded, tally.worst) == (3, 2, math.inf)
    assert tally.bias > 0
    assert "1 of 4 elements beyond their allowance, worst 2, bias 0.5" in caplog.text
    text = watch.prometheus()
    assert 'assay_kernel_exceeded_total{instance="plan-class=f32-sm_90",output="Tensor"} 2\n' in text
    assert 'allowance_use{instance="plan-class=f32-sm_90",output="Tensor"} +Inf\n' in text
    assert text.count("# TYPE") == 7


def test_a_reference_that_fails_fails_no_call(hostile: ModuleType) -> None:
    def broken(*args: Any, **given: Any) -> Any:
        raise ValueError("no")

    watch = hostile.Watch(broken, rate=1.0, logger=quiet())
    watch.check([torch.zeros(1)], [None] * len(hostile.INPUTS) + [3])
    watch.reference = lambda *args, **given: torch.zeros(2)
    watch.check([torch.zeros(1)], [None] * len(hostile.INPUTS) + [3])
    assert (watch.failed, watch.outputs["Tensor"].checked) == (2, 0)


def test_drift_is_errors_now_over_errors_at_first(hostile: ModuleType) -> None:
    tally = hostile.Tally()
    for _ in range(16):
        tally.add(hostile.Check("y", 1, 0.1, 0.0, 0, 1))
    assert tally.drift == pytest.approx(1)
    for _ in range(100):
        tally.add(hostile.Check("y", 1, 0.4, 0.0, 0, 1))
    assert tally.drift == pytest.approx(4, rel=1e-3)
