"""The package against the program: $ASSAY_PROGRAM names it. Judging needs NVRTC and the jail, and is left out
with a line where `assay doctor` says that they are not there."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import stat

import pytest

import assay
from assay import _program

from conftest import SOURCE, module_of

SOFTMAX = SOURCE / "ops" / "softmax" / "naive"
RACY = """
__global__ void k(int* out) {
  __shared__ int x[64];
  x[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = x[63 - threadIdx.x];
}
"""
LAUNCH = {
    "schema": "assay.launch/1",
    "kernels": [{"entry": "k", "grid": [1], "block": [64], "args": ["out"]}],
    "buffers": {"out": {"dtype": "i32", "elements": 64, "init": {"kind": "constant", "value": 0}}},
}


@pytest.fixture(scope="session")
def judge(program: pathlib.Path) -> None:
    """Judging works here."""
    try:
        report = assay.doctor()
    except assay.AssayError as error:
        pytest.skip(f"assay doctor: {error}")
    missing = [row["what"] for row in report.get("checks", []) if row.get("state") == "missing"]
    if missing:
        pytest.skip(f"assay doctor: missing: {', '.join(missing)}")


def test_ops_are_values(program: pathlib.Path) -> None:
    names = {op.name: op for op in assay.ops()}
    assert {"softmax", "gemm", "scatter_add"} <= set(names)
    softmax = assay.op("softmax")
    assert softmax == names["softmax"]
    assert [(t.name, t.shape, t.dtype) for t in softmax.inputs] == [("x", "[rows, columns]", "T")]
    assert assay.op(softmax.folder) == softmax
    with pytest.raises(assay.AssayError, match="softmx(?s:.*)fix:") as caught:
        assay.op("softmx")
    assert caught.value.kind == "usage" and caught.value.fix


def test_an_accepted_kernel_is_emitted_and_loads(judge: None, tmp_path: pathlib.Path) -> None:
    lines: list[str] = []
    verdict = assay.check(
        (SOFTMAX / "kernel.cu").read_text(),
        json.loads((SOFTMAX / "launch.json").read_text()),
        "softmax",
        dtypes={"T": "f32"},
        effort="quick",
        emit=tmp_path / "vetted",
        progress=lines.append,
    )
    assert verdict.accepted and verdict.outcome == "accepted" and verdict.findings == ()
    assert verdict.raise_unless_accepted() is verdict
    assert {reach.axis for reach in verdict.reach} == {"rows", "columns"}
    assert lines and "accepted" in str(verdict)
    assert verdict.folder == tmp_path / "vetted"
    certificate = json.loads((verdict.folder / "certificate.json").read_text())
    files = {path.name for path in verdict.folder.iterdir()} - {"certificate.json"}
    assert files == set(certificate["sha256"]) and {"kernel.py", "kernel.hpp"} <= files

    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    module = assay.load(verdict.folder)
    assert assay.load(verdict.folder) is module
    with pytest.raises(module.Refused, match="x lies on cpu"):
        module.softmax(torch.zeros(2, 3))


def test_a_wrong_kernel_is_refuted_prints_and_replays(judge: None, tmp_path: pathlib.Path) -> None:
    source = (SOFTMAX / "kernel.cu").read_text()
    assert source.count("columns") > 3
    wrong = source.replace("j < columns", "j + 1 < columns")
    assert wrong != source
    verdict = assay.check(
        wrong, SOFTMAX / "launch.json", "softmax", effort="quick", emit=tmp_path / "vetted"
    )
    assert verdict.outcome == "refuted" and verdict.folder is None
    assert not (tmp_path / "vetted").exists()
    with pytest.raises(assay.NotAccepted, match="refuted"):
        verdict.raise_unless_accepted()
    finding = verdict.findings[0]
    assert finding.text and str(finding) in str(verdict)
    page = verdict._repr_html_()
    assert "refuted" in page and "<script" not in page
    again = assay.replay(verdict.counterexamples[0])
    assert again.findings[0].kind == finding.kind
    assert str(again.findings[0]) == str(finding)
    kept = again.save(tmp_path / "counterexample.json")
    assert assay.replay(kept).findings[0].kind == finding.kind


def test_a_function_of_torch_is_an_op(
    judge: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    script = module_of(pathlib.Path(__file__).with_name("torch_softmax.py"), "torch_softmax")
    monkeypatch.setattr("sys.argv", ["torch_softmax.py", str(tmp_path)])
    assert script.main() == 0
    assert "refuted" in capsys.readouterr().out
    imported = assay.op(tmp_path / "softmax_of_mine")
    assert [tensor.name for tensor in imported.inputs] == ["x"]
    assert assay.op(script.softmax_of_mine, out=tmp_path / "softmax_of_mine") == imported  # again
    (tmp_path / "by_hand").mkdir()
    (tmp_path / "by_hand" / "op.json").write_text("{}")
    with pytest.raises(assay.AssayError, match="holds an op that was not imported(?s:.*)fix:"):
        assay.op(script.softmax_of_mine, out=tmp_path / "by_hand")
    torch = pytest.importorskip("torch")
    for what in (lambda x: x, torch.softmax, torch.nn.Softmax(-1), len):
        with pytest.raises(assay.AssayError, match="does not stand at the top of a file(?s:.*)fix:"):
            assay.op(what, out=tmp_path / "other")


def test_the_sanitizer_finds_the_race(judge: None) -> None:
    report = assay.sanitize(RACY, LAUNCH)
    assert not report.clean and report.complete
    finding = report.findings[0]
    assert finding.kind == "data_race" and finding.site is not None and finding.site.line in (4, 5)
    assert "kernel.cu:" in str(report) and "error: data_race" in str(report)
    fixed = RACY.replace("  out[", "  __syncthreads();\n  out[")
    assert assay.sanitize(fixed, LAUNCH).clean


def test_what_is_shown_in_a_notebook_is_escaped() -> None:
    finding = assay.Finding.of({"kind": "trap", "message": "<script>alert(1)</script>"})
    assert "<script>" not in finding._repr_html_()
    assert "&lt;script&gt;" in finding._repr_html_()


def test_a_request_without_an_op_says_what_to_do() -> None:
    with pytest.raises(assay.AssayError, match="no op was given(?s:.*)fix: check"):
        assay.check("x", {})
    with pytest.raises(assay.AssayError, match="no launch plan(?s:.*)folder"):
        assay.check("__global__ void k() {}\n", op="softmax")


def fake(path: pathlib.Path, text: str) -> pathlib.Path:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_program_that_fails_is_told_from_a_kernel_that_does(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = fake(tmp_path / "broken", "echo 'check failed: x' >&2; exit 134\n")
    monkeypatch.setenv("ASSAY_PROGRAM", str(broken))
    with pytest.raises(assay.InternalError, match="exit code 134(?s:.*)check failed: x"):
        assay.ops()
    answer = '{"error": {"kind": "environment", "message": "no jail", "place": "bwrap", "fix": "do"}}'
    fake(broken, f"echo '{answer}'; exit 3\n")
    with pytest.raises(assay.AssayError, match="bwrap: no jail(?s:.*)fix: do") as caught:
        assay.ops()
    assert not isinstance(caught.value, assay.InternalError)
    monkeypatch.setenv("ASSAY_PROGRAM", str(tmp_path / "nothing"))
    with pytest.raises(assay.AssayError, match="is no program"):
        assay.ops()


def test_interrupting_ends_the_program(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = fake(tmp_path / "waiting", 'echo "$$" >&2; exec sleep 600\n')
    monkeypatch.setenv("ASSAY_PROGRAM", str(waiting))

    pids: list[int] = []

    def progress(line: str) -> None:
        pids.append(int(line))
        os.kill(os.getpid(), signal.SIGINT)  # somebody presses Ctrl-C

    with pytest.raises(KeyboardInterrupt):
        _program.run(["x"], progress=progress)
    assert pids and not pathlib.Path(f"/proc/{pids[0]}").exists()


pytest_plugins = ["pytester"]


def test_the_pytest_plugin_fails_a_test_with_the_words_of_the_terminal(
    judge: None, pytester: pytest.Pytester
) -> None:
    source = (SOFTMAX / "kernel.cu").read_text()
    pytester.makeconftest('pytest_plugins = ["assay.pytest_plugin"]')
    pytester.makepyfile(
        f"""
        SOURCE = {source!r}
        LAUNCH = {(SOFTMAX / "launch.json").read_text()!r}

        def test_right(assert_vetted):
            assert_vetted(SOURCE, LAUNCH, "softmax")

        def test_wrong(assert_vetted):
            assert_vetted(SOURCE.replace("j < columns", "j + 1 < columns"), LAUNCH, "softmax")
        """
    )
    result = pytester.runpytest_inprocess("--assay-effort=quick", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*error: *"])
