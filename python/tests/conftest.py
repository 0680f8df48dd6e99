"""What the tests share: loaders kept beside the code that writes them, and the built program."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import sys
from types import ModuleType

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TESTDATA = SOURCE / "loaders" / "testdata"


def module_of(path: pathlib.Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def scatter() -> ModuleType:
    """The loader of scatter_add."""
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    return module_of(TESTDATA / "kernel.py", "golden_kernel")


@pytest.fixture(scope="session")
def hostile() -> ModuleType:
    """A loader of an op whose names are words of the language."""
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    return module_of(TESTDATA / "hostile.py", "golden_hostile")


@pytest.fixture(scope="session")
def program() -> pathlib.Path:
    named = os.environ.get("ASSAY_PROGRAM") or shutil.which("assay")
    if named is None:
        pytest.skip("no program: build assay and name it in $ASSAY_PROGRAM")
    return pathlib.Path(named)
