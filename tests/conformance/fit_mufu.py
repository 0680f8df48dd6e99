#!/usr/bin/env python3
"""Recovers the coefficients of the special function unit from a recording of whole binades.

    conformance_record_mufu H200 DIR && tests/conformance/fit_mufu.py DIR > validator/emu/semantics/mufu_rows.inc

DIR holds NAME.FIRST.u32: the results, as bits, for the 2^23 arguments from FIRST on. Every result says between which two
fixed-point numbers the sum c0 + c1 * x + c2 * TruncatedSquare(x) lies before it is cut (validator/emu/semantics/mufu.h). Least
squares come within a few units of c1 and c2; of the integers near them exactly one pair leaves room for a c0 in every segment. A
segment without such a pair ends the program: then the chip computes otherwise than the model says. Needs numpy.
"""
import sys

import numpy as np

COUNT = 1 << 23
LOW = COUNT >> 6  # Offsets of a segment.
FIRST_LINE = "// Written by tests/conformance/fit_mufu.py from recordings of an H200."


def truncated_square(x):
    total = np.zeros_like(x)
    for i in range(17):
        for j in range(i, 17):
            column = 2 * i if i == j else i + j + 1
            if column >= 19:
                total += (x >> i & x >> j & 1) << column
    return total >> 19


SQUARES = truncated_square(np.arange(1 << 17, dtype=np.int64))


def read(folder, name, first):
    return np.fromfile(f"{folder}/{name}.{first:08x}.u32", dtype=np.uint32).astype(np.int64)


def interval(bits, unit):
    """The numbers, in units of 2^-unit, that are cut to the floats `bits`: from, to."""
    shift = unit + (bits >> 23) - 150
    up, down = np.maximum(shift, 0), np.maximum(-shift, 0)
    mantissa = bits & 0x7FFFFF | 0x800000
    if (mantissa & (np.int64(1) << down) - 1).any():
        raise SystemExit("a result has more places than the unit")
    low = mantissa << up >> down
    return low, low + (np.int64(1) << up) - 1


def fit(what, x, low, high, units):
    """The integers (c0, c1, c2) of one segment, in units (c0, rounding, c1, c2) of the finest."""
    unit0, rounding, unit1, unit2 = units
    square = SQUARES[x]
    middle = (low + high) / 2 - float(low[0])
    weight = 1.0 / (high - low + 1.0)
    step = max(1, len(x) // 8192)
    design = np.stack([np.ones(len(x)), x, square], axis=1)[::step] * weight[::step, None]
    _, guess1, guess2 = np.linalg.lstsq(design, (middle * weight)[::step], rcond=None)[0]
    found = []
    for c2 in range(round(guess2 / unit2) - 6, round(guess2 / unit2) + 7):
        rest = guess1 + (guess2 - c2 * unit2) * square[-1] / max(1, x[-1])
        for c1 in range(round(rest / unit1) - 24, round(rest / unit1) + 25):
            for every in (max(1, len(x) // 1024), 1):
                sums = c1 * unit1 * x[::every] + c2 * unit2 * square[::every] + rounding
                least = (low[::every] - sums).max()
                most = (high[::every] - sums).min()
                c0 = -(-int(least) // unit0)
                if c0 * unit0 > most:
                    break
            else:
                found.append((c0, c1, c2))
    if len(found) != 1:
        raise SystemExit(f"{what}: {len(found)} quadratics fit")
    return found[0]


def by_six_bits(what, low, high, units):
    x = np.arange(LOW, dtype=np.int64)
    return [fit(f"{what}, segment {s}", x, low[s * LOW:(s + 1) * LOW], high[s * LOW:(s + 1) * LOW], units) for s in range(64)]


def rcp(folder):
    low, high = interval(read(folder, "rcp.approx.ftz.f32", 0x3F800000), 40)
    x = np.arange(1 << 16, dtype=np.int64) << 1
    return [fit(f"rcp, segment {s}", x, low[s << 16:(s + 1) << 16], high[s << 16:(s + 1) << 16], (1 << 14, 4046, 1, 2))
            for s in range(128)]


def rsqrt(folder):
    rows = []
    for first in (0x3F800000, 0x40000000):
        low, high = interval(read(folder, "rsqrt.approx.ftz.f32", first), 40)
        if first == 0x3F800000:
            low[0] -= 1 << 16  # 1 is exact, which the quadratic need not be.
        rows += by_six_bits("rsqrt", low, high, (1 << 14, 16383, 1, 4))
    return rows


def sqrt(folder):
    rows = []
    for first in (0x3F800000, 0x40000000):
        rows += by_six_bits("sqrt", *interval(read(folder, "sqrt.approx.ftz.f32", first), 40), (1 << 15, 32767, 1, 2))
    return rows


def ex2(folder):
    bits = read(folder, "ex2.approx.ftz.f32", 0x3F800000) - (1 << 23)
    return by_six_bits("ex2", *interval(bits, 39), (1 << 14, 12228, 2, 2))


def lg2(folder):
    # [1, 2) gives the sum to 24 bits, [1/2, 1) its one's complement; both cut it to 2^-36 first.
    above = read(folder, "lg2.approx.ftz.f32", 0x3F800000)
    above[0] = above[1]  # lg2(1) is exact; it says nothing.
    low, high = interval(above, 36)
    low[0], high[0] = 0, 1 << 36
    below_low, below_high = interval(read(folder, "lg2.approx.ftz.f32", 0x3F000000) & 0x7FFFFFFF, 36)
    low = np.maximum(low, (1 << 36) - 1 - below_high)
    high = np.minimum(high, (1 << 36) - 1 - below_low)
    return by_six_bits("lg2", low << 2, (high << 2) + 3, (1 << 12, 837, 1, 2))


def sin(folder):
    low = np.zeros(COUNT, dtype=np.int64)
    high = np.full(COUNT, 1 << 40, dtype=np.int64)
    seen = np.zeros(COUNT, dtype=bool)
    for first in range(0x3A800000, 0x40000000, 1 << 23):
        x = (first + np.arange(COUNT, dtype=np.uint32)).astype(np.uint32).view(np.float32)
        product = x.astype(np.float64) * float(np.float32(0.15915493667125702))
        turns = (product.view(np.uint64) & np.uint64(0xFFFFFFFFE0000000)).view(np.float64)
        place = np.floor(turns * 2.0**25).astype(np.int64)
        inside = place < COUNT
        at = place[inside]
        lows, highs = interval(read(folder, "sin.approx.ftz.f32", first)[inside], 38)
        low[at], high[at], seen[at] = lows, highs, True
    rows = []
    for s in range(64):
        x = np.flatnonzero(seen[s * LOW:(s + 1) * LOW])
        part = slice(s * LOW, (s + 1) * LOW)
        rows.append(fit(f"sin, segment {s}", x, low[part][x], high[part][x], (1 << 13, 0, 2, 2)))
    return rows


def tanh(folder):
    rows = []
    for binade, segments in enumerate((1, 1, 1, 2, 2, 4, 4, 4, 8, 16, 8)):
        width = COUNT // segments
        # The bits of the mantissa below the 17 of the offset make no difference.
        bits = read(folder, "tanh.approx.f32", 119 + binade << 23)[::width >> 17]
        low, high = interval(bits, 45)
        x = np.arange(1 << 17, dtype=np.int64)
        for s in range(segments):
            part = slice(s << 17, (s + 1) << 17)
            rows.append(fit(f"tanh, binade {binade}, segment {s}", x, low[part], high[part], (1 << 21, 0, 64, 128)))
    return rows


def write(name, rows):
    print(f"constexpr Row k{name}Rows[{len(rows)}] = {{")
    line = "   "
    for row in rows:
        text = " {%d, %d, %d}," % row
        if len(line + text) > 100:
            print(line)
            line = "   "
        line += text
    print(line)
    print("};")


def main():
    folder = sys.argv[1]
    print(FIRST_LINE)
    for name, function in (("Rcp", rcp), ("Rsqrt", rsqrt), ("Sqrt", sqrt), ("Exp2", ex2), ("Log2", lg2), ("Sin", sin),
                           ("Tanh", tanh)):
        write(name, function(folder))


main()
