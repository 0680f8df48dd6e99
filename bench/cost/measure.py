#!/usr/bin/env python3
"""Times the kernels of a manifest (bench/cost/manifest.py) on the GPU of this machine.

    python3 measure.py FOLDER --out times.json [--seconds 330]

Needs python3 and a driver, nothing else. Each kernel at each workload: inputs filled, warmed up, then
the median of several calls between two events, with caches that hold nothing of it (a kernel reads
256 MiB of other memory before each call). Clocks and power are noted beside each median. Calls that
take long are made less often. Kernels run in a process of their own, which is replaced when one of
them fails; what was measured until then is kept.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import struct
import subprocess
import sys
import time
from pathlib import Path

SIZES = {"bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "bf16": 2, "f16": 2, "i32": 4, "u32": 4, "f32": 4}
FLUSH_BYTES = 256 << 20
PATTERN_VALUES = 1 << 16
HANG_SECONDS = 45


class Failed(Exception):
    pass


class Driver:
    def __init__(self) -> None:
        self.lib = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device = ctypes.c_int()
        self("cuDeviceGet", ctypes.byref(device), 0)
        context = ctypes.c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(128)
        self("cuDeviceGetName", name, 128, device)
        version = ctypes.c_int()
        self("cuDriverGetVersion", ctypes.byref(version))
        self.device = name.value.decode()
        self.cuda = f"{version.value // 1000}.{version.value % 1000 // 10}"

    def __call__(self, name: str, *args: object) -> None:
        # 64-bit addresses and sizes are passed as such.
        wide = [ctypes.c_uint64(a) if isinstance(a, int) and a > 0x7FFFFFFF else a for a in args]
        code = getattr(self.lib, name)(*wide)
        if code:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorName(code, ctypes.byref(text))
            raise Failed(f"{name}: {(text.value or b'error').decode()}")

    def allocate(self, size: int) -> int:
        pointer = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 256)))
        return pointer.value

    def module(self, path: Path) -> ctypes.c_void_p:
        module = ctypes.c_void_p()
        self("cuModuleLoadData", ctypes.byref(module), path.read_bytes())
        return module

    def function(self, module: ctypes.c_void_p, symbol: str) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
        return function


class Management:
    """Clocks and power, where the management library is there."""

    def __init__(self) -> None:
        self.lib = None
        try:
            lib = ctypes.CDLL("libnvidia-ml.so.1")
            self.handle = ctypes.c_void_p()
            if lib.nvmlInit_v2() == 0 and lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.handle)) == 0:
                self.lib = lib
        except OSError:
            pass

    def text(self, name: str, *args: object) -> str:
        buffer = ctypes.create_string_buffer(96)
        if self.lib is None or getattr(self.lib, name)(*args, buffer, 96) != 0:
            return "unknown"
        return buffer.value.decode()

    def number(self, name: str, *args: object) -> int | None:
        value = ctypes.c_uint()
        if self.lib is None or getattr(self.lib, name)(self.handle, *args, ctypes.byref(value)) != 0:
            return None
        return value.value

    def now(self) -> dict:
        milliwatts = self.number("nvmlDeviceGetPowerUsage")
        return {
            "sm_mhz": self.number("nvmlDeviceGetClockInfo", 1),
            "memory_mhz": self.number("nvmlDeviceGetClockInfo", 2),
            "watts": None if milliwatts is None else milliwatts / 1000,
        }


def small_float(dtype: str, value: float) -> int:
    if dtype == "bf16":
        return struct.unpack("<I", struct.pack("<f", value))[0] + 0x8000 >> 16 & 0xFFFF
    return struct.unpack("<H", struct.pack("<e", value))[0]


def pattern(dtype: str, fill: dict) -> bytes:
    """A stretch of values; buffers repeat it."""
    rng = random.Random(7)
    kind = fill["kind"]
    count = PATTERN_VALUES
    if kind == "index":
        values = [rng.randrange(fill["below"]) for _ in range(count)]
    elif kind == "range":
        values = [rng.uniform(fill["low"], fill["high"]) for _ in range(count)]
    elif kind == "choice":
        values = [rng.choice(fill["values"]) for _ in range(count)]
    elif kind == "normal":
        values = [rng.gauss(fill["mean"], fill["scale"]) for _ in range(count)]
    else:
        return bytes(4 * count)
    if dtype in ("bf16", "f16"):
        return struct.pack(f"<{count}H", *(small_float(dtype, value) for value in values))
    if dtype in ("f32", "f64"):
        return struct.pack(f"<{count}{'f' if dtype == 'f32' else 'd'}", *values)
    letter = {1: "b", 2: "h", 4: "i", 8: "q"}[SIZES.get(dtype, 8)]
    return struct.pack(f"<{count}{letter}", *(int(value) for value in values))


def fit(dtype: str, value: bytes, size: int) -> bytes:
    if len(value) == size or dtype.startswith(("f", "b")):
        return value
    number = int.from_bytes(value, "little", signed=dtype.startswith("i"))
    return (number % 2 ** (8 * size)).to_bytes(size, "little")


class Bench:
    def __init__(self, folder: Path) -> None:
        self.driver = Driver()
        self.management = Management()
        self.patterns: dict[str, bytes] = {}
        self.flush_function = self.driver.function(self.driver.module(folder / "flush.cubin"), "flush")
        self.flush_memory = self.driver.allocate(FLUSH_BYTES)
        self.driver("cuMemsetD8_v2", self.flush_memory, 1, ctypes.c_size_t(FLUSH_BYTES))
        self.never = self.driver.allocate(256)
        self.events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self.events:
            self.driver("cuEventCreate", ctypes.byref(event), 0)

    def launch(self, function: ctypes.c_void_p, grid: list, block: list, shared: int, cooperative: bool, values: list) -> None:
        pointers = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in values)
        )
        name = "cuLaunchCooperativeKernel" if cooperative else "cuLaunchKernel"
        more = () if cooperative else (None,)
        numbers = [ctypes.c_uint(number) for number in (*grid, *block, shared)]
        self.driver(name, function, *numbers, None, pointers, *more)

    def flush(self) -> None:
        values = [
            ctypes.c_uint64(self.flush_memory),
            ctypes.c_uint64(FLUSH_BYTES // 16),
            ctypes.c_uint64(self.never),
        ]
        self.launch(self.flush_function, [528, 1, 1], [512, 1, 1], 0, False, values)

    def fill(self, pointer: int, buffer: dict) -> None:
        size = buffer["bytes"]
        kind = buffer["fill"]["kind"]
        if size == 0 or kind == "none":
            return
        if kind == "zero":
            self.driver("cuMemsetD8_v2", pointer, 0, ctypes.c_size_t(size))
            return
        key = json.dumps([buffer["dtype"], buffer["fill"]])
        if key not in self.patterns:
            self.patterns[key] = pattern(buffer["dtype"], buffer["fill"])
        data = self.patterns[key]
        done = min(size, len(data))
        self.driver("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), data, ctypes.c_size_t(done))
        while done < size:
            more = min(done, size - done)
            self.driver("cuMemcpyDtoD_v2", ctypes.c_uint64(pointer + done), ctypes.c_uint64(pointer), ctypes.c_size_t(more))
            done += more

    def sizes(self, function: ctypes.c_void_p) -> list[int]:
        found: list[int] = []
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        info = self.driver.lib.cuFuncGetParamInfo
        while not info(function, ctypes.c_size_t(len(found)), ctypes.byref(offset), ctypes.byref(size)):
            found.append(size.value)
        return found

    def prepare(self, module: ctypes.c_void_p, launch: dict, pointers: list[int]) -> tuple:
        function = self.driver.function(module, launch["symbol"])
        if launch["shared_bytes"] > 0:
            self.driver("cuFuncSetAttribute", function, 8, launch["shared_bytes"])
        sizes = self.sizes(function)
        values: list = []
        for i, argument in enumerate(launch["args"]):
            if "buffer" in argument:
                values.append(ctypes.c_uint64(pointers[argument["buffer"]]))
                continue
            data = bytes.fromhex(argument["bytes"])
            data = fit(argument["dtype"], data, sizes[i] if i < len(sizes) else len(data))
            values.append((ctypes.c_uint8 * len(data)).from_buffer_copy(data))
        if launch["cluster"] != [1, 1, 1]:
            raise Failed("clusters are not launched here")
        return function, launch["grid"], launch["block"], launch["shared_bytes"], launch["cooperative"], values

    def call(self, launches: list[tuple], zeros: list[tuple[int, int]]) -> float:
        """Microseconds between two events round the launches."""
        for pointer, size in zeros:
            self.driver("cuMemsetD8Async", pointer, 0, ctypes.c_size_t(size), None)
        self.flush()
        self.driver("cuEventRecord", self.events[0], None)
        for launch in launches:
            self.launch(*launch)
        self.driver("cuEventRecord", self.events[1], None)
        self.driver("cuEventSynchronize", self.events[1])
        milliseconds = ctypes.c_float()
        self.driver("cuEventElapsedTime", ctypes.byref(milliseconds), *self.events)
        return 1000 * milliseconds.value

    def workload(self, module: ctypes.c_void_p, row: dict) -> dict:
        pointers: list[int] = []
        try:
            for buffer in row["buffers"]:
                pointers.append(self.driver.allocate(buffer["bytes"]))
                self.fill(pointers[-1], buffer)
            launches = [self.prepare(module, launch, pointers) for launch in row["launches"]]
            zeros = [
                (pointer, buffer["bytes"])
                for pointer, buffer in zip(pointers, row["buffers"])
                if buffer["fill"]["kind"] == "zero" and buffer["bytes"] > 0
            ]
            first = self.call(launches, zeros)
            # About a third of a second each, and no more than 30 calls.
            calls = max(1, min(30, int(300_000 / max(first, 1.0))))
            for _ in range(min(3, calls - 1)):
                self.call(launches, zeros)
            times = sorted(self.call(launches, zeros) for _ in range(calls)) if calls > 1 else [first]
            return {
                "median_us": times[len(times) // 2],
                "spread_us": [times[len(times) // 10], times[len(times) * 9 // 10]],
                "calls": calls,
                "conditions": self.management.now(),
            }
        finally:
            for pointer in pointers:
                self.driver.lib.cuMemFree_v2(ctypes.c_uint64(pointer))


def work(folder: Path, start: int, rows: Path, end: float) -> int:
    """The process that opens the driver: kernels from number `start` on, a line a workload."""
    kernels = json.loads((folder / "index.json").read_text())["kernels"]
    with rows.open("a") as out:

        def tell(**row: object) -> None:
            out.write(json.dumps(row) + "\n")
            out.flush()

        bench = Bench(folder)
        tell(
            device=bench.driver.device,
            cuda=bench.driver.cuda,
            driver=bench.management.text("nvmlSystemGetDriverVersion"),
            idle=bench.management.now(),
        )
        for number, kernel in enumerate(kernels[start:], start):
            document = json.loads((folder / kernel["id"] / "launches.json").read_text())
            module = bench.driver.module(folder / kernel["id"] / "kernel.cubin")
            for workload in document["workloads"]:
                about = {**kernel, "number": number, "axes": workload["axes"]}
                if time.time() > end:
                    tell(**about, left_out="no time was left")
                    continue
                if "left_out" in workload:
                    tell(**about, left_out=workload["left_out"])
                    continue
                tell(begins=number, axes=workload["axes"])
                try:
                    tell(**about, **bench.workload(module, workload))
                except Failed as failed:
                    tell(**about, left_out=str(failed))
                    if "MEMORY" not in str(failed) and "clusters" not in str(failed):
                        return 1  # The context is of no use any more.
            bench.driver("cuModuleUnload", module)
    return 0


def measure(folder: Path, out: Path, seconds: float) -> int:
    kernels = json.loads((folder / "index.json").read_text())["kernels"]
    rows = out.with_suffix(".rows.jsonl")
    rows.unlink(missing_ok=True)
    end = time.time() + seconds
    start = 0
    while start < len(kernels) and time.time() < end:
        command = [sys.executable, __file__, str(folder), "--out", str(out)]
        command += ["--worker", str(start), "--until", str(end)]
        process = subprocess.Popen(command)
        size, seen = -1, time.time()
        while process.poll() is None:
            time.sleep(0.2)
            now = rows.stat().st_size if rows.exists() else 0
            if now != size:
                size, seen = now, time.time()
            elif time.time() - seen > HANG_SECONDS:
                process.kill()
                process.wait()
        if process.returncode == 0:
            break
        begun = [json.loads(line).get("begins") for line in rows.read_text().splitlines()] if rows.exists() else []
        last = max((number for number in begun if number is not None), default=start)
        print(f"{kernels[last]['id']} ended the process; going on behind it", file=sys.stderr)
        start = max(start, last) + 1
    lines = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    document = {
        "schema": "assay.cost-times/1",
        "date": time.strftime("%Y-%m-%d"),
        **next((line for line in lines if "device" in line), {}),
        "times": [
            {key: value for key, value in line.items() if key != "number"} for line in lines if "id" in line
        ],
    }
    out.write_text(json.dumps(document, indent=1) + "\n")
    rows.unlink(missing_ok=True)
    timed = sum("median_us" in row for row in document["times"])
    print(f"{timed} of {len(document['times'])} timed on {document.get('device')}")
    return 0 if timed else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=330)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
        rows = options.out.with_suffix(".rows.jsonl")
        return work(options.folder, options.worker, rows, options.until)
    return measure(options.folder, options.out, options.seconds)


if __name__ == "__main__":
    sys.exit(main())
