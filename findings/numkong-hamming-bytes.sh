#!/usr/bin/env bash
# NumKong: hamming() of packed bits counts bytes that differ, 64 where 261 bits do, and so it does with dtype="u1", its own name for bits.
#
# Expected: NumKong is SimSIMD under a new name, whose hamming() counts bits and refuses an array of uint8 until it is told that it holds
# bits ("bin8"). The documentation of hamming() names 'u1' and 'u8' as types, and 'u1' is the type of one bit in all of the project.
# What happens: an array of uint8, which is what np.packbits() gives, is taken for 64 numbers, and equal or not is counted. "u1" is read as
# NumPy's name for one byte. Only "uint1" counts bits, as the README says. cdist() is the same. jaccard() still refuses uint8 and "u1".
# One bit in each byte makes two codes as far apart as they can be, and distances of unrelated codes are nearly all the same.
# Who meets this: whoever ranks binary embeddings and moves from SimSIMD: without a dtype the call does not fail any more.
# Versions: numkong 7.8.6, simsimd 6.5.16. Source: numkong.hamming.__doc__; no issue found.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numkong==7.8.6 simsimd==6.5.16 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numkong
import numpy as np
import simsimd

random = np.random.default_rng(0)
one, far = np.packbits(random.random((2, 512)) < 0.5, axis=1)
near = one ^ np.uint8(1)


def distance(function, *arguments: object) -> float | str:
    try:
        return float(function(*arguments))
    except LookupError as error:
        return type(error).__name__


print("numkong", version("numkong"), "simsimd", version("simsimd"))
for name, other in (("one bit per byte turned", near), ("an unrelated code", far)):
    bits, octets = int(np.unpackbits(one ^ other).sum()), int((one != other).sum())
    by_type = {dtype: distance(numkong.hamming, one, other, *dtype.split()) for dtype in ("", "u1", "uint8", "uint1")}
    before = {dtype: distance(simsimd.hamming, one, other, *dtype.split()) for dtype in ("", "bin8")}
    print(f"{name}: {bits} bits differ, {octets} bytes; numkong {by_type}, simsimd {before}")
    assert by_type == {"": octets, "u1": octets, "uint8": octets, "uint1": bits}
    assert before == {"": "LookupError", "bin8": bits}
assert "'u1', 'u8'" in numkong.hamming.__doc__
table = numkong.cdist(np.stack([one]), np.stack([near, far]), metric="hamming")
print("cdist:", np.array(table).tolist(), "jaccard with u1:", distance(numkong.jaccard, one, far, "u1"))
assert np.array(table).tolist() == [[64, 64]] and distance(numkong.jaccard, one, far, "u1") == "LookupError"
PYTHON
