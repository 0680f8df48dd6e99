"""For pytest: kernels as tests.

    def test_softmax(assert_vetted):
        assert_vetted("kernels/softmax", op="softmax", dtypes={"T": "bf16"})

A kernel that is not accepted fails the test with what the terminal would show. Where the judge cannot
run (no jail, no NVRTC) the test fails as well, with what to do: a test that could not judge has not
passed. `--assay-effort` sets the effort of tests that name none.
"""

from __future__ import annotations

from typing import Any, Callable

import pytest

from assay.api import check
from assay.results import Verdict


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("assay").addoption(
        "--assay-effort",
        choices=("quick", "standard", "thorough"),
        default="standard",
        help="Effort of assert_vetted where a test names none.",
    )


@pytest.fixture
def assert_vetted(request: pytest.FixtureRequest) -> Callable[..., Verdict]:
    """`assay.check`, which fails the test unless the kernel is accepted. Returns the verdict."""

    def judge(*args: Any, **options: Any) -> Verdict:
        __tracebackhide__ = True
        options.setdefault("effort", request.config.getoption("--assay-effort"))
        verdict = check(*args, **options)
        if not verdict.accepted:
            pytest.fail(str(verdict), pytrace=False)
        return verdict

    return judge
