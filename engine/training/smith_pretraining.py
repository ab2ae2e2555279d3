"""SMITH's pretraining on plain documents: masked words and masked sentence blocks are predicted. No optimizer here.

Letters in shapes: B documents, N blocks of all of them, n of one (padded), L tokens
of a block, H width of a state, M masked blocks, R of them real.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from engine.encoders.encoder import SegmentedDocument, Variant
from engine.encoders.smith.encoder import SmithEncoder, document_windows
from engine.encoders.trainable import pad_chunks
from engine.errors import TrainingError
from engine.text.segmentation import TokenWindow
from engine.training.masked_words import (
    IGNORED,
    MaskedWordHead,
    MaskedWords,
    PredictionTransform,
    choose_by_chance,
    choose_by_count,
    mask_words,
    maskable,
)
from engine.training.settings import ABOVE_ZERO, COUNT, check_ranges, setting
from engine.training.task import Backward, epoch_slice, full_precision, step_generator


class Objective(StrEnum):
    """The objectives of the pretraining."""

    WORDS = "wp"
    BLOCKS = "sp"


class WordReduction(StrEnum):
    """Reduction of the losses of the masked words to one number."""

    MEAN = "mean"  # over all masked words
    SUM_BLOCKS = "sum_blocks"  # means by block position, summed: up to `max_blocks` times as large


@dataclass(frozen=True, slots=True)
class SmithSettings:
    """Settings of the pretraining; {wp} is SMITH-WP, {wp, sp} SMITH-WP+SP."""

    tasks: frozenset[Objective] | None = setting(
        None, "wp (masked words), sp (masked blocks) or wp,sp; by default all that the encoder can learn"
    )
    batch_size: int = setting(32, "documents of a batch", COUNT)
    wp_reduction: WordReduction | None = setting(
        None, "mean or sum_blocks (means by block position, summed); sum_blocks in released, else mean"
    )
    masked_blocks: int = setting(2, "masked blocks of a document", COUNT)
    temperature: float | None = setting(None, "initial value of a learned temperature", ABOVE_ZERO)
    stop_gradient: bool = setting(False, "no gradient through the blocks to predict")
    seed: int = 0

    def __post_init__(self) -> None:
        check_ranges(self)


def _all_of(encoder: SmithEncoder) -> frozenset[Objective]:
    return frozenset(Objective) if encoder.config.is_hierarchical else frozenset({Objective.WORDS})


@dataclass(frozen=True, slots=True)
class SmithBatch:
    """Documents in blocks, with their masked words and masked blocks."""

    words: MaskedWords  # (N, L) each
    mask: Tensor  # (N, L) bool, True where a token is real
    n_blocks: tuple[int, ...]  # of each of B documents; their sum is N
    hidden: Tensor  # (M, 2) int64: document, and block of it; in `released` the block may not exist


class SmithPretrainingModule(nn.Module):
    """The encoder's parameters, and those that only the pretraining needs."""

    def __init__(self, encoder: SmithEncoder, settings: SmithSettings) -> None:
        super().__init__()
        width, generator = encoder.config.width, torch.Generator().manual_seed(settings.seed)
        self.encoder = encoder.module
        self.word_head = MaskedWordHead(width, encoder.tokenizer.vocabulary_size, generator)
        # The paper compares the contextual block itself with the true one.
        is_printed = encoder.config.variant is Variant.PAPER
        self.block_head = nn.Identity() if is_printed else PredictionTransform(width, generator)
        self.hidden_block = nn.Parameter(torch.empty(width))
        nn.init.trunc_normal_(self.hidden_block, std=0.02, a=-0.04, b=0.04, generator=generator)
        is_released = encoder.config.variant is Variant.RELEASED
        self.slot_bias = (
            nn.Parameter(torch.zeros(settings.batch_size * settings.masked_blocks)) if is_released else None
        )
        learned = None if settings.temperature is None else torch.tensor(math.log(settings.temperature))
        self.log_temperature = None if learned is None else nn.Parameter(learned)


class SmithPretraining:
    """A `Task`: the two losses of section 4.2 of the paper, summed.

    L_wp is BERT's masked-word loss. For L_sp, m block vectors of each document are
    replaced by one learned vector before positions are added. With C the output of
    the document encoder at a masked block k, and h the replaced vectors,

        s = LN(gelu(W C + b)),   L_sp = -mean_k log(exp(s_k . h_k) / sum_r exp(s_k . h_r))

    over all masked blocks r of the batch. `paper` has s = C. `released` draws
    positions where a document may have no block (not predicted, but among the
    candidates), and adds a bias by position in the batch. `released` and `paper` mask the
    same words of a document in every epoch, at most five of a block. `fixed` draws real
    blocks only, never all blocks of a document, and draws the masked words at each step.
    It reads one window of a document with several, also drawn at each step.

    L_wp trains only the token path of the sentence encoder. Its pooler and dense layer and
    the document encoder learn from L_sp; the last layer learns from neither.
    """

    def __init__(
        self,
        encoder: SmithEncoder,
        documents: Sequence[SegmentedDocument],
        settings: SmithSettings = SmithSettings(),
    ) -> None:
        """Prepare the encoder and the heads of the pretraining.

        Raises:
            TrainingError: there are no documents or no objectives, or the encoder has no document layers to
                predict blocks.
        """
        self.objectives = _all_of(encoder) if settings.tasks is None else settings.tasks
        if not documents or not self.objectives:
            raise TrainingError(
                f"{len(documents)} documents and {len(self.objectives)} objectives; give at least one of each"
            )
        if Objective.BLOCKS in self.objectives and not encoder.config.is_hierarchical:
            raise TrainingError("an encoder of 0 document layers cannot guess blocks; leave out the objective 'sp'")
        self.encoder = encoder
        self.documents = documents
        self.settings = settings
        is_released = encoder.config.variant is Variant.RELEASED
        self._reduction = settings.wp_reduction or (WordReduction.SUM_BLOCKS if is_released else WordReduction.MEAN)
        self._special = {*encoder.tokenizer.prefix, *encoder.tokenizer.suffix, encoder.tokenizer.pad_id}
        if Objective.WORDS in self.objectives:
            self._special.add(encoder.tokenizer.mask_id)
        self._module = SmithPretrainingModule(encoder, settings).to(encoder.device)

    @property
    def module(self) -> SmithPretrainingModule:
        """See `Task.module`."""
        return self._module

    def batch(self, step: int) -> SmithBatch:
        """See `Task.batch`."""
        rng = step_generator(self.settings.seed, step)
        drawn = [
            self.documents[position]
            for position in epoch_slice(len(self.documents), self.settings.batch_size, step, self.settings.seed)
        ]
        read = [self._read(document, rng) for document in drawn]
        n_blocks = tuple(len(mask) for _, mask in read)
        words = MaskedWords(
            torch.cat([words.ids for words, _ in read]).to(self.encoder.device),
            torch.cat([words.targets for words, _ in read]).to(self.encoder.device),
        )
        mask = torch.cat([mask for _, mask in read]).to(self.encoder.device)
        return SmithBatch(words, mask, n_blocks, self._hidden_blocks(n_blocks, rng).to(self.encoder.device))

    def n_tokens(self, batch: SmithBatch) -> int:
        """See `Task.n_tokens`; special tokens are not counted."""
        return int(batch.mask.sum()) - len(batch.mask) * (1 + self.encoder.config.n_separators)

    def _read(self, document: SegmentedDocument, rng: np.random.Generator) -> tuple[MaskedWords, Tensor]:
        """One window of a document, (n, L), with masked words."""
        encoder = self.encoder
        windows = document_windows(document.chunks, encoder.config.max_blocks)
        is_fixed = encoder.config.variant is Variant.FIXED
        window = windows[int(rng.integers(len(windows)))] if is_fixed else windows[0]
        ids, mask = self._padded(document, window)
        if Objective.WORDS not in self.objectives:
            return MaskedWords(ids, torch.full_like(ids, IGNORED)), mask
        free = maskable(ids, mask, self._special)
        if is_fixed:
            generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
            chosen = choose_by_chance(free, generator)
        else:
            generator = torch.Generator().manual_seed(_document_seed(document, self.settings.seed))
            chosen = choose_by_count(free, mask, generator)
        tokenizer = encoder.tokenizer
        hidden = mask_words(
            ids, chosen, generator, mask_id=tokenizer.mask_id, vocabulary_size=tokenizer.vocabulary_size
        )
        return hidden, mask

    def _padded(self, document: SegmentedDocument, window: TokenWindow) -> tuple[Tensor, Tensor]:
        ids, mask = self.encoder.pad(document.token_ids[window.first : window.stop])
        # Padded to full length, so that the draws for a document do not depend on others.
        missing = (0, self.encoder.config.block_tokens - ids.shape[1])
        return pad(ids, missing, value=self.encoder.tokenizer.pad_id), pad(mask, missing, value=False)

    def _hidden_blocks(self, n_blocks: Sequence[int], rng: np.random.Generator) -> Tensor:
        """(M, 2): the blocks to predict, by document."""
        m, max_blocks = self.settings.masked_blocks, self.encoder.config.max_blocks
        rows: list[tuple[int, int]] = []
        for document, n in enumerate(n_blocks):
            among, count = {
                Variant.PAPER: (n, min(m, n)),
                Variant.RELEASED: (max_blocks, min(m, max_blocks)),
                Variant.FIXED: (n, min(m, n - 1)),  # with all blocks masked, nothing is left to predict from
            }[self.encoder.config.variant]
            rows.extend((document, int(block)) for block in sorted(rng.choice(among, count, replace=False)))
        return torch.tensor(rows, dtype=torch.int64).reshape(-1, 2)

    def backward(self, batch: SmithBatch, backward: Backward) -> Mapping[str, float]:
        """See `Task.backward`; the parts are "wp" and "sp"."""
        tokens, blocks = self.module.encoder.blocks(batch.words.ids, batch.mask)
        losses: dict[str, Tensor] = {}
        if Objective.WORDS in self.objectives:
            losses["wp"] = self._word_loss(tokens, batch)
        if Objective.BLOCKS in self.objectives:
            losses["sp"] = self._block_loss(blocks, batch)
        loss = torch.stack(list(losses.values())).sum()
        if loss.requires_grad:  # else nothing was masked in the whole batch
            backward(loss)
        return {name: part.item() for name, part in {**losses, "loss": loss}.items()}

    def _word_loss(self, tokens: Tensor, batch: SmithBatch) -> Tensor:
        is_hidden = batch.words.targets != IGNORED
        if not is_hidden.any():
            return tokens.new_zeros(())
        embeddings = self.module.encoder.sentence.bert.get_input_embeddings().weight
        with full_precision(tokens.device):
            logits = self.module.word_head(tokens[is_hidden], embeddings)
            losses = cross_entropy(logits, batch.words.targets[is_hidden], reduction="none")
        if self._reduction is WordReduction.MEAN:
            return losses.mean()
        places = torch.cat([torch.arange(n, device=losses.device) for n in batch.n_blocks])
        place = places[:, None].expand_as(is_hidden)[is_hidden]  # block position of each masked word
        sums = losses.new_zeros(max(batch.n_blocks)).index_add(0, place, losses)
        counts = torch.bincount(place, minlength=len(sums))
        return (sums / counts.clamp(min=1)).sum()

    def _block_loss(self, blocks: Tensor, batch: SmithBatch) -> Tensor:
        lengths = torch.tensor(batch.n_blocks, device=blocks.device)
        is_real = batch.hidden[:, 1] < lengths[batch.hidden[:, 0]]
        if not is_real.any():
            return blocks.new_zeros(())
        document, block = batch.hidden[is_real].T
        seen, mask = pad_chunks(torch.split(blocks, list(batch.n_blocks)))
        truth = seen[document, block]  # (R, H)
        hidden = seen.index_put((document, block), self.module.hidden_block.expand(len(block), -1))
        encoder = self.module.encoder.document
        assert encoder is not None
        contextual = encoder(hidden, mask)[document, block]  # (R, H)
        candidates = self._candidates(truth, is_real)  # (M, H)
        with full_precision(blocks.device):
            logits = self.module.block_head(contextual.float()) @ candidates.float().T  # (R, M)
            if self.module.slot_bias is not None:
                logits = logits + self.module.slot_bias[: len(is_real)]
            if self.module.log_temperature is not None:
                logits = logits / self.module.log_temperature.exp()
            return cross_entropy(logits, is_real.nonzero()[:, 0])

    def _candidates(self, truth: Tensor, is_real: Tensor) -> Tensor:
        """(M, H): the true blocks; in `released`, padding where a document has no such block."""
        if not is_real.all():
            padding = self.module.encoder.padding_block()
            truth = padding.repeat(len(is_real), 1).index_put((is_real.nonzero()[:, 0],), truth)
        return truth.detach() if self.settings.stop_gradient else truth


def _document_seed(document: SegmentedDocument, seed: int) -> int:
    """A seed from `seed` and the tokens, wherever the document is in the corpus."""
    content = repr((seed, [list(ids) for ids in document.token_ids])).encode()
    return int.from_bytes(hashlib.sha256(content).digest()[:8]) >> 1
