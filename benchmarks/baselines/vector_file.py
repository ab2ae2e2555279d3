"""Word vectors, and text files that hold them: those of word2vec, GloVe and fastText.

Letters in shapes: V words, D width.
"""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import DatasetError


@dataclass(frozen=True)
class WordVectors:
    """Vectors of words, of any length."""

    row: Mapping[str, int]  # of each word
    vectors: NDArray[np.float32]  # (V, D)
    ranks: NDArray[np.int64]  # (V,) places in the whole source, from 0; the most frequent word is first


def read_vectors(file: Path, wanted: Collection[str]) -> WordVectors:
    """Read the vectors of some words; gensim would hold those of all, and takes lines of any length.

    Args:
        file: a word and its numbers a line, with spaces between; the first line may hold the
            numbers of words and of values instead, as word2vec writes them. May end in .gz.
        wanted: other words are passed over. Of one that comes twice the first counts.

    Raises:
        DatasetError: a line does not fit, or no word is wanted.
    """
    row: dict[str, int] = {}
    ranks: list[int] = []
    vectors: list[NDArray[np.float32]] = []
    rank = -1
    try:
        for rank, (word, numbers) in enumerate(_lines(file)):
            if word in wanted and word not in row:
                row[word] = len(row)
                ranks.append(rank)
                vectors.append(np.array(numbers, np.float32))
    except (OSError, EOFError, ValueError) as error:
        raise DatasetError(
            f"{file} cannot be read as word vectors, near word {rank + 1:,}: {error}; "
            "give a text file with a word and its numbers a line"
        ) from error
    if not row:
        raise DatasetError(
            f"{file} has vectors of {rank + 1:,} words, of which none is among the {len(wanted):,} wanted; "
            "give vectors of the same language, in lower case"
        )
    return WordVectors(row, np.stack(vectors), np.array(ranks))


def _lines(file: Path) -> Iterator[tuple[str, list[str]]]:
    with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
        width = 0
        for number, line in enumerate(lines):
            # A no-break space may be part of a word.
            fields = line.strip(" \r\n").split(" ")
            if number == 0 and len(fields) == 2:
                width = int(fields[1])
                continue
            width = width or len(fields) - 1
            if not 0 < width < len(fields):
                raise ValueError(f"the next line holds {len(fields) - 1} numbers, the first {width}")
            # GloVe has words with spaces in them.
            yield " ".join(fields[:-width]), fields[-width:]
