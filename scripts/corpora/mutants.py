"""Small changes of a right kernel that make it another one, most of them wrong.

    for what, source in mutants(kernel): ...

Each is the kernel with one token changed, in the order of places; no two are the same. Nothing says that a mutant is wrong: a bound may be raised
where nothing lies behind it.
"""
import re

# What is changed, into what. Comments, directives and declarations of entry points are left alone.
CHANGES = (
    ("sum for difference", r"(?<![+\w])\+=", "-="),
    ("difference for sum", r"-=", "+="),
    ("product for sum", r"(?<= )\+(?= )", "*"),
    ("sum for product", r"(?<= )\*(?= )", "+"),
    ("difference reversed", r"(?<= )-(?= )", "+"),
    ("quotient for product", r"(?<= )/(?= )", "*"),
    ("one element more", r"(?<= )<(?= )", "<="),
    ("other way round", r"(?<= )>(?= )", "<"),
    ("one more", r"(?<== )0(?=;)", "1"),
    ("not zero", r"\b0\.0f\b", "0.25f"),
    ("half", r"\b1\.0f\b", "0.5f"),
    ("smallest for largest", r"\bfmaxf?\b", "fminf"),
    ("no barrier", r"__sync(threads|warp)\(\);", ";"),
    ("every second", r"\+\+(?=\w+\))", "++++"),
    ("block for thread", r"\bthreadIdx\.x\b", "blockIdx.x"),
    ("thread for block", r"\bblockIdx\.x\b", "threadIdx.x"),
)
QUIET = re.compile(r"//[^\n]*|/\*.*?\*/|^\s*#[^\n]*|__global__[^{;]*", re.S | re.M)


def mutants(source):
    """(what was changed and in which line, the whole source) of each."""
    quiet = [match.span() for match in QUIET.finditer(source)]
    changes = [
        (match.start(), what, match.end(), new)
        for what, old, new in CHANGES
        for match in re.finditer(old, source)
        if not any(begin <= match.start() < end for begin, end in quiet)
    ]
    seen = {source}
    for start, what, end, new in sorted(changes):
        mutant = source[:start] + new + source[end:]
        if mutant not in seen:
            seen.add(mutant)
            yield f"{what}, line {source.count(chr(10), 0, start) + 1}", mutant
