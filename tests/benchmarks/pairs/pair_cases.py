"""Pairs of small documents that share words where they match, in random words of the tests' backbone."""

from __future__ import annotations

from benchmarks.pair_scorer import Budget, Pair
from engine.text.document import Document
from tests.training.made import pairs_of_texts

BUDGET = Budget(steps=4, pairs_per_step=8)


def texts(n: int = 24) -> dict[str, Document]:
    """q0, t0, q1, t1, ...; q and t of a number have half of their words in common."""
    return {document.doc_id: document for document in pairs_of_texts(n)}


def labelled(first: int, stop: int) -> list[Pair]:
    """For each number a match, and a mismatch with the next number."""
    numbers = list(range(first, stop))
    pairs = []
    for number, following in zip(numbers, [*numbers[1:], first], strict=True):
        pairs += [Pair(f"q{number}", f"t{number}", True), Pair(f"q{number}", f"t{following}", False)]
    return pairs


TRAIN, VALID, TEST = labelled(0, 12), labelled(12, 18), labelled(18, 24)
