from __future__ import annotations

import gzip
import random
import zipfile
import zlib
from io import BytesIO

from benchmarks.fuzzing.mutations import MOST_BYTES, damaged
from benchmarks.fuzzing.seeds import seeds


def copies(suffix: str, n_copies: int) -> list[bytes]:
    known = seeds()
    return [damaged(known[suffix], list(known.values()), random.Random(number)) for number in range(n_copies)]


def test_damage_is_that_of_its_seed() -> None:
    assert copies(".tex", 50) == copies(".tex", 50)
    assert len(set(copies(".tex", 50))) > 40


def test_every_kind_of_damage_occurs() -> None:
    seed, made = seeds()[".html"], copies(".html", 400)
    assert any(len(one) < len(seed) / 2 for one in made)
    assert any(len(one) > 20 * len(seed) for one in made)
    assert any(b"99999999999999999999" in one for one in made)
    assert any(b"<td><td><td>" in one or b"<ul><ul><ul>" in one or b"<p><p><p>" in one for one in made)
    assert any(b"%PDF" in one or b"\\section" in one or b"PK" in one for one in made)
    assert any(b"\x00" in one for one in made)
    assert any(len(one) == len(seed) and sum(map(int.__ne__, one, seed)) == 1 for one in made)
    assert max(map(len, made)) <= MOST_BYTES


def test_damaged_members_are_packed_again() -> None:
    whole = [one for one in copies(".odt", 60) if zipfile.is_zipfile(BytesIO(one))]
    contents = {zipfile.ZipFile(BytesIO(one)).read("content.xml") for one in whole if _opens(one)}
    assert len(contents) > 10
    assert (
        len({gzip.decompress(one) for one in copies(".txt.gz", 60) if one.startswith(b"\x1f\x8b\x08\0\0\0\0\0\x04")})
        > 10
    )


def _opens(data: bytes) -> bool:
    try:
        return zipfile.ZipFile(BytesIO(data)).testzip() is None
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, NotImplementedError, RuntimeError):
        return False
