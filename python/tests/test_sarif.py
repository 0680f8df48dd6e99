"""SARIF logs against the published schema 2.1.0: pydantic_sarif holds classes that were generated from it, with no
field beyond it allowed. Left out with a line where that package is not there: pip install pydantic-sarif."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any

import pytest

from conftest import SOURCE

model = pytest.importorskip(
    "pydantic_sarif.model", reason="pydantic_sarif is not installed: pip install pydantic-sarif"
)
NAIVE = SOURCE / "ops" / "row_sum" / "naive"
RACE = 'extern "C" __global__ void k(float* x) { x[0] = threadIdx.x; }\n'
LAUNCH = {
    "schema": "assay.launch/1",
    "kernels": [{"entry": "k", "grid": [1], "block": [64], "args": ["x"]}],
    "buffers": {"x": {"dtype": "f32", "elements": 64, "init": {"kind": "zero"}}},
}


def log_of(program: pathlib.Path, words: list[str], path: pathlib.Path) -> tuple[int, Any]:
    command = [str(program), *words, "--sarif", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert path.exists(), ran.stderr
    text = path.read_text()
    whole = next(c for c in vars(model).values() if getattr(c, "__name__", "").startswith("StaticAnalysis"))
    whole.model_validate_json(text)
    return ran.returncode, json.loads(text)


@pytest.mark.parametrize(
    ("change", "outcome", "results"),
    [
        (("", ""), 0, 0),
        (("j < columns", "j + 1 < columns"), 1, 1),
        (("float sum", "flaot sum"), 1, 1),
    ],
)
def test_what_check_writes(
    program: pathlib.Path, tmp_path: pathlib.Path, change: tuple[str, str], outcome: int, results: int
) -> None:
    text = (NAIVE / "kernel.cu").read_text()
    assert change[0] in text
    (tmp_path / "kernel.cu").write_text(text.replace(*change) if change[0] else text)
    (tmp_path / "launch.json").write_text((NAIVE / "launch.json").read_text())
    words = ["check", str(tmp_path), "--op", "row_sum", "--effort", "quick"]
    code, log = log_of(program, words, tmp_path / "out.sarif")
    if code == 3:
        pytest.skip("nothing can be judged here: assay doctor says why")
    assert code == outcome
    assert (len(log["runs"][0]["results"]) > 0) == (results > 0)


def test_what_sanitize_writes(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "kernel.cu").write_text(RACE)
    (tmp_path / "launch.json").write_text(json.dumps(LAUNCH))
    words = ["sanitize", str(tmp_path / "kernel.cu"), "--launch", str(tmp_path / "launch.json")]
    code, log = log_of(program, words, tmp_path / "out.sarif")
    if code == 3:
        pytest.skip("nothing can be judged here: assay doctor says why")
    assert code == 1 and log["runs"][0]["results"]


def test_a_log_beyond_the_schema_is_not_one() -> None:
    whole = next(c for c in vars(model).values() if getattr(c, "__name__", "").startswith("StaticAnalysis"))
    right = {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": []}]}
    whole.model_validate(right)
    for wrong in ({**right, "version": "2.0.0"}, {**right, "more": 1}, {"version": "2.1.0"}):
        with pytest.raises(ValueError, match="validation error"):
            whole.model_validate(wrong)
