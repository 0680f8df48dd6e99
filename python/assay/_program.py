"""The program `assay`: where it lies, and one call of it.

It is asked for JSON, which stands on stdout; what it tells people goes to stderr and is passed on,
never read.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

Progress = Union[bool, Callable[[str], None], None]
"""What becomes of the program's lines for people: True: stderr, a function: it gets each line,
None or False: nothing."""


class AssayError(RuntimeError):
    """The environment or a request is at fault: nothing was judged. `fix` says what to do."""

    def __init__(self, message: str, *, kind: str = "environment", place: str = "", fix: str = ""):
        text = f"{place}: {message}" if place else message
        super().__init__(f"{text}\n  fix: {fix}" if fix else text)
        self.kind, self.place, self.fix = kind, place, fix


class InternalError(AssayError):
    """Assay is at fault. Please report it."""


def program() -> pathlib.Path:
    """The program: $ASSAY_PROGRAM, the one in this package, or the one on PATH."""
    if named := os.environ.get("ASSAY_PROGRAM"):
        if not os.access(named, os.X_OK):
            raise AssayError("is no program", place=f"$ASSAY_PROGRAM ({named})", fix="unset it")
        return pathlib.Path(named)
    own = pathlib.Path(__file__).parent / "_install" / "bin" / "assay"
    if own.exists():
        return own
    if found := shutil.which("assay"):
        return pathlib.Path(found)
    raise AssayError(
        "the program 'assay' is not there",
        fix="pip install . in Assay's source tree, or name a built one in $ASSAY_PROGRAM",
    )


def run(
    arguments: Sequence[str],
    *,
    progress: Progress = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, Any]:
    """Runs the program; returns its exit code and its JSON document.

    Raises AssayError where nothing could be judged (exit code 3), InternalError where the program
    failed. Interrupted, it ends the program and waits for it.
    """
    command = [str(program()), *arguments, "--json"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
    )
    assert process.stdout is not None and process.stderr is not None
    errors: list[bytes] = []
    reader = threading.Thread(target=_pass_on, args=(process.stderr, progress, errors))
    try:
        reader.start()
        output = process.stdout.read()
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    finally:
        if reader.is_alive():
            reader.join()
        process.stdout.close()
        process.stderr.close()
    try:
        document = json.loads(output)
    except ValueError:
        said = b"".join(errors[-5:]).decode(errors="replace").strip()
        raise InternalError(
            f"assay {arguments[0]} ended with exit code {code} and without a document: {said}",
            kind="internal",
            fix="please report it",
        ) from None
    if isinstance(document, dict) and "error" in document and "schema" not in document:
        error = document["error"]
        failure = InternalError if error["kind"] == "internal" else AssayError
        raise failure(
            error["message"], kind=error["kind"], place=error["place"], fix=error["fix"]
        )
    return code, document


def _pass_on(stream: Any, progress: Progress, errors: list[bytes]) -> None:
    for line in stream:
        errors.append(line)
        del errors[:-50]
        if progress is True:
            sys.stderr.write(line.decode(errors="replace"))
            sys.stderr.flush()
        elif callable(progress):
            progress(line.decode(errors="replace").rstrip("\n"))


def main() -> None:
    """The command `assay` of an installed package: the program itself."""
    path = str(program())
    os.execv(path, [path, *sys.argv[1:]])
