"""The judge and the loop, as functions."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Union

from assay._program import AssayError, Progress, run
from assay.results import Counterexample, Generated, Op, Sanitized, Verdict

PathLike = Union[str, pathlib.Path]
Launch = Union[Mapping[str, Any], PathLike]
AnyOp = Union[str, pathlib.Path, Op]


def ops(*, progress: Progress = None) -> list[Op]:
    """All ops of the library: those of this package, and those in $ASSAY_OPS."""
    _, document = run(["ops", "list"], progress=progress)
    return [op(row["name"]) for row in document["ops"] if "error" not in row]


def op(
    what: AnyOp | Callable[..., Any],
    *,
    out: PathLike | None = None,
    strict: bool = False,
    progress: Progress = None,
) -> Op:
    """An op by its name, or the folder that holds it, or made from a function that is written in torch.

    A function is found by its file and name, so it must stand in a file of its own. What it imports
    into lies in `out` (default: a folder beside that file, called as the function).
    """
    if isinstance(what, (str, pathlib.Path, Op)):
        _, document = run(["ops", "show", str(what)], progress=progress)
        return Op.of(document)
    try:
        file = inspect.getsourcefile(what)
    except TypeError:  # written in C, or an object that can be called
        file = None
    name = getattr(what, "__qualname__", "")
    if file is None or not pathlib.Path(file).exists() or not name.isidentifier():
        raise AssayError(
            f"{what!r} does not stand at the top of a file",
            kind="usage",
            fix="write a function that calls it into a file of its own, def NAME(...)",
        )
    target = pathlib.Path(out) if out else pathlib.Path(file).with_name(what.__name__)
    words = ["import", "torch", f"{file}:{what.__name__}", "--out", str(target)]
    words += ["--python", sys.executable] + (["--strict"] if strict else [])
    _, document = run(words, progress=progress)
    return op(pathlib.Path(document["folder"]))


def check(
    source: PathLike,
    launch: Launch | None = None,
    op: AnyOp | None = None,
    *,
    dtypes: Mapping[str, str] | None = None,
    arch: str = "sm_90",
    effort: str = "standard",
    seed: int = 1,
    engine: str = "emulator",
    jobs: int = 0,
    emit: PathLike | None = None,
    progress: Progress = None,
) -> Verdict:
    """Judges a kernel against an op.

    `source` is CUDA source, a .cu file, or a folder that holds kernel.cu and launch.json; `launch` the
    launch plan: a dict, JSON text, or a file. `dtypes` binds the op's dtype variables, {"T": "bf16"}.
    `emit` names a folder to which an accepted kernel is written, with its certificate and loaders
    (see `load`). Takes seconds to minutes; `progress=True` shows how far it is.
    """
    if op is None:
        raise AssayError("no op was given", kind="usage", fix='check(source, launch, "softmax")')
    with _candidate(source, launch) as folder:
        words = ["check", str(folder), "--op", str(op), "--arch", arch, "--effort", effort]
        words += ["--seed", str(seed), "--engine", engine, "--jobs", str(jobs)]
        for variable, dtype in (dtypes or {}).items():
            words += ["--dtype", f"{variable}={dtype}"]
        if emit is not None:
            words += ["--emit", str(emit)]
        _, document = run(words, progress=progress)
    return Verdict.of(document, pathlib.Path(emit) if emit is not None else None)


def sanitize(
    source: PathLike,
    launch: Launch,
    *,
    checks: Sequence[str] = ("memory", "init", "race", "barrier"),
    schedules: int = 0,
    seed: int = 0,
    arch: str = "sm_90",
    progress: Progress = None,
) -> Sanitized:
    """Runs any kernel on the emulator and says what it does wrong; no op is needed.

    `source` is CUDA source or a .cu or .ptx file, `launch` a launch file with buffers and scalars
    (docs/sanitizers.md): a dict, JSON text, or a file.
    """
    with _files(source, launch) as (kernel, plan):
        words = ["sanitize", str(kernel), "--launch", str(plan), "--checks", ",".join(checks)]
        words += ["--schedules", str(schedules), "--seed", str(seed), "--arch", arch]
        _, document = run(words, progress=progress)
    return Sanitized.of(document)


def generate(
    op: AnyOp,
    *,
    model: str = "",
    dtypes: Mapping[str, str] | None = None,
    arch: str = "sm_90",
    attempts: int = 0,
    effort: str = "standard",
    budget_usd: float = 0,
    base_url: str = "",
    out: PathLike | None = None,
    options: Sequence[str] = (),
    progress: Progress = None,
) -> Generated:
    """Asks a model for a kernel until one passes every gate.

    `model` is openai/MODEL, anthropic/MODEL, exec/COMMAND or replay/FILE; without one the op's own
    transcript is replayed. Keys stand in the environment, as for the program. `options` are further
    words for `assay generate`.
    """
    words = ["generate", str(op), "--arch", arch, "--effort", effort]
    for variable, dtype in (dtypes or {}).items():
        words += ["--dtype", f"{variable}={dtype}"]
    for name, value in (
        ("--model", model),
        ("--attempts", attempts),
        ("--budget-usd", budget_usd),
        ("--base-url", base_url),
        ("--out", out),
    ):
        if value:
            words += [name, str(value)]
    _, document = run([*words, *options], progress=progress)
    return Generated.of(document)


def replay(
    counterexample: Counterexample | PathLike,
    *,
    op: AnyOp | None = None,
    engine: str = "emulator",
    progress: Progress = None,
) -> Counterexample:
    """Runs one failing case again; without findings the case passes now."""
    with contextlib.ExitStack() as stack:
        if isinstance(counterexample, Counterexample):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-"))
            path = counterexample.save(pathlib.Path(folder) / "counterexample.json")
        else:
            path = pathlib.Path(counterexample)
        words = ["replay", str(path), "--engine", engine]
        if op is not None:
            words += ["--op", str(op)]
        _, document = run(words, progress=progress)
    return Counterexample.of(document)


def doctor() -> Mapping[str, Any]:
    """What works on this machine, and the fix for what does not."""
    _, document = run(["doctor"])
    assert isinstance(document, dict)
    return document


def load(folder: PathLike) -> ModuleType:
    """The loader of a vetted kernel: the module kernel.py of its folder. Needs torch.

    A custom operator of torch by the op's name, and KERNEL, which can watch it and pair it with its
    backward pass (docs/python.md). It runs code of that folder: load what you vetted yourself, or
    after `assay verify`.
    """
    path = pathlib.Path(folder).resolve() / "kernel.py"
    if not path.exists():
        raise AssayError("holds no kernel.py", place=str(folder), fix="name a vetted folder")
    name = f"assay_kernel_{abs(hash(str(path))):x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is_file(text: PathLike) -> bool:
    """Is it the name of a file, rather than what a file holds?"""
    if isinstance(text, pathlib.Path):
        return True
    return "\n" not in text and "{" not in text and len(text) < 4096


def _launch_text(launch: Launch) -> str:
    if isinstance(launch, Mapping):
        return json.dumps(launch, indent=2)
    return pathlib.Path(launch).read_text() if _is_file(launch) else str(launch)


@contextlib.contextmanager
def _candidate(source: PathLike, launch: Launch | None) -> Iterator[pathlib.Path]:
    """A folder with kernel.cu and launch.json."""
    if launch is None:
        if not _is_file(source) or not pathlib.Path(source).is_dir():
            raise AssayError(
                "no launch plan was given",
                kind="usage",
                fix="give one, or a folder that holds kernel.cu and launch.json",
            )
        yield pathlib.Path(source)
        return
    with tempfile.TemporaryDirectory(prefix="assay-") as name:
        folder = pathlib.Path(name)
        text = pathlib.Path(source).read_text() if _is_file(source) else str(source)
        (folder / "kernel.cu").write_text(text)
        (folder / "launch.json").write_text(_launch_text(launch))
        yield folder


@contextlib.contextmanager
def _files(source: PathLike, launch: Launch) -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
    """A kernel and its launch file; files stay where they are, since plans may name others."""
    with tempfile.TemporaryDirectory(prefix="assay-") as name:
        kernel, plan = pathlib.Path(name) / "kernel.cu", pathlib.Path(name) / "launch.json"
        if _is_file(source):
            kernel = pathlib.Path(source)
        else:
            kernel.write_text(str(source))
        if not isinstance(launch, Mapping) and _is_file(launch):
            plan = pathlib.Path(launch)
        else:
            plan.write_text(_launch_text(launch))
        yield kernel, plan
