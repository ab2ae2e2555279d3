#!/usr/bin/env bash
# Zarr: rows cut off by resize() are back after one append(): of 5 vectors of 10 that were dropped, 2 return, as many as the chunk holds.
#
# Expected: resize() to fewer rows drops the others. Rows that a later, longer shape adds have the fill value until they are written, as
# in HDF5, whose chunked data sets zarr resembles: h5py gives zeros for the same calls.
# What happens: chunks that lie outside the new shape are deleted, but the one that the new end cuts stays as it is. As soon as the array
# grows over it, its old rows are read again. How many come back depends on the chunk size alone. Nothing is logged.
# Who meets this: a store of vectors that is cut back after deletions and grown ahead of writing: unwritten rows are not empty, so a
# test for the fill value takes deleted passages for live ones.
# Versions: zarr 3.1.6, h5py 3.16.0. Source: issue 1017 of zarr-developers/zarr-python (open since 2022).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check zarr==3.1.6 h5py==3.16.0 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

import h5py
import numpy as np
import zarr

folder = Path(sys.argv[1])
vectors = np.repeat(np.arange(1, 11, dtype="float32")[:, None], 4, axis=1)


def cut_and_grown(array: zarr.Array | h5py.Dataset) -> list[float]:
    """The first value of each row after ten rows were cut to five and one was added in a room for ten."""
    array[:] = vectors
    array.resize((5, 4))
    array.resize((10, 4))
    array[5] = -1
    return array[:, 0].tolist()


print("zarr", version("zarr"), "h5py", version("h5py"))
FILLED = [1, 2, 3, 4, 5, -1, 0, 0, 0, 0]
with h5py.File(folder / "rows.h5", "w") as file:
    rows = cut_and_grown(file.create_dataset("rows", (10, 4), "float32", chunks=(4, 4), maxshape=(None, 4)))
    print("h5py, chunks of 4 rows:", rows)
    assert rows == FILLED
for chunk, after in ((5, []), (4, [7, 8]), (10, [7, 8, 9, 10])):
    rows = cut_and_grown(zarr.create_array(folder / f"{chunk}.zarr", shape=(10, 4), chunks=(chunk, 4), dtype="float32", fill_value=0))
    print(f"zarr, chunks of {chunk} rows:", rows)
    assert rows == FILLED[:6] + after + FILLED[6 + len(after) :]
PYTHON
