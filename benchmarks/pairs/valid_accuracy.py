"""How many valid pairs an encoder in training tells apart; what chooses its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.pairs.comparing import Comparer, Comparison
from benchmarks.pairs.scorer import Pair
from benchmarks.pairs.selection import best_accuracy
from benchmarks.pairs.splitting import documents_of
from engine.document import Document
from engine.encoders.trainable import TrainableEncoder
from engine.training.selection import spread_chunks


class ValidAccuracy:
    """Reads the documents of some pairs again at each call, cut down to chunks spread over them."""

    def __init__(
        self,
        encoder: TrainableEncoder,
        documents: Mapping[str, Document],
        pairs: Sequence[Pair],
        comparison: Comparison,
        *,
        chunks: int,
    ) -> None:
        """Segment the documents of `pairs`, of which both kinds are needed."""
        self._encoder = encoder
        self._comparer = Comparer(encoder, comparison)
        self._pairs = pairs
        self._doc_ids = sorted(documents_of(pairs))
        self._segmented = [spread_chunks(encoder.segment(documents[doc_id]), chunks) for doc_id in self._doc_ids]

    def __call__(self) -> float:
        """The accuracy at the threshold that is best for these pairs, in [.5, 1] where they are balanced.

        Raises:
            TrainingError: a score is no number any more.
        """
        encoded = self._encoder.encode_segmented(self._segmented)
        sides = {doc_id: self._comparer.side(one) for doc_id, one in zip(self._doc_ids, encoded, strict=True)}
        scores = [self._comparer.score(sides[pair.first], sides[pair.second]) for pair in self._pairs]
        return best_accuracy(scores, self._pairs)
