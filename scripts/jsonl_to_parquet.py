#!/usr/bin/env python3
"""Turns every FORMAT/PART.jsonl below a folder into FORMAT/PART.parquet (zstd).

    scripts/jsonl_to_parquet.py FOLDER

The parts of a format get one schema, taken from all of their rows together: a column that is empty in one part has the type that it has
in the others. `assay corpus export --as parquet` runs this; nothing is read or written outside of the folder. Exit code 3: pyarrow is missing.
"""
import json
import pathlib
import sys


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        print("pyarrow is missing: python3 -m pip install pyarrow", file=sys.stderr)
        return 3
    folder = pathlib.Path(sys.argv[1])
    for format_folder in sorted(path for path in folder.iterdir() if path.is_dir()):
        parts = {}
        for file in sorted(format_folder.glob("*.jsonl")):
            with file.open(encoding="utf-8") as lines:
                parts[file] = [json.loads(line) for line in lines]
        if not parts:
            continue
        schema = pyarrow.Table.from_pylist([row for rows in parts.values() for row in rows]).schema
        for file, rows in parts.items():
            table = pyarrow.Table.from_pylist(rows, schema=schema)
            pyarrow.parquet.write_table(table, file.with_suffix(".parquet"), compression="zstd")
            file.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
