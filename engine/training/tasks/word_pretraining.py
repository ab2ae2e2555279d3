"""Pretraining on documents alone by masked words, without pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from engine.encoders.backbone.backbone import Backbone
from engine.encoders.encoder import SegmentedDocument
from engine.encoders.mean import TOKEN_BUDGET
from engine.encoders.trainable import TrainableEncoder
from engine.errors import DocumentError, TrainingError
from engine.training.task import Backward, epoch_slice, step_generator
from engine.training.tasks.masked_word_loss import MaskedWordLoss
from engine.training.tasks.view_pairs import ViewPairs


@dataclass(frozen=True, slots=True)
class WordBatch:
    """Documents, and the seed of their masking."""

    documents: tuple[SegmentedDocument, ...]
    seed: int


class WordPretraining:
    """A `Task`: the backbone predicts masked words, as in BERT's pretraining; see `MaskedWordLoss`.

    Continued on one's own documents, it is the domain-adaptive pretraining of Gururangan et
    al. (2020, arXiv:2004.10964).
    """

    def __init__(
        self, encoder: TrainableEncoder, pairs: ViewPairs, *, group_tokens: int | None = None, seed: int = 0
    ) -> None:
        """Prepare the backbone and its head.

        Args:
            encoder: only its backbone is trained.
            pairs: of the same encoder; its sampler is not used, each document is read by itself.
            group_tokens: maximum tokens of one forward pass.
            seed: of the head.

        Raises:
            TrainingError: the encoder has no backbone to predict words.
            EncoderError: the tokenizer has no [MASK].
        """
        backbone = getattr(encoder, "backbone", None)
        if not isinstance(backbone, Backbone):
            raise TrainingError(f"an encoder of kind {encoder.kind!r} has no backbone that guesses words")
        self.pairs = pairs
        self._backbone = backbone
        self._words = MaskedWordLoss(backbone, seed=seed)
        self._token_budget = group_tokens or TOKEN_BUDGET
        self.module: nn.Module = nn.ModuleDict({"encoder": encoder.module, "words": self._words})

    def batch(self, step: int) -> WordBatch:
        """See `Task.batch`; a document without a token is left out.

        Raises:
            TrainingError: all documents of the step were left out.
        """
        pairs, rng = self.pairs, step_generator(self.pairs.seed, step)
        read = []
        for position in epoch_slice(len(pairs.documents), pairs.batch_size, step, pairs.seed):
            try:
                read.append(pairs.stretch(pairs.documents[position], rng))
            except DocumentError:
                continue
        if not read:
            raise TrainingError(f"the {pairs.batch_size} documents of step {step} have no text that can be read")
        return WordBatch(tuple(read), int(rng.integers(2**62)))

    def n_tokens(self, batch: WordBatch) -> int:
        """See `Task.n_tokens`."""
        return sum(len(ids) for document in batch.documents for ids in document.token_ids)

    def backward(self, batch: WordBatch, backward: Backward) -> Mapping[str, float]:
        """See `Task.backward`."""
        loss = self._words.backward(
            self._backbone,
            [ids for document in batch.documents for ids in document.token_ids],
            backward,
            weight=1.0,
            token_budget=self._token_budget,
            seed=batch.seed,
        )
        return {"loss": loss}
