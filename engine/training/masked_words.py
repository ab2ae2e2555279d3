"""Pretraining by masked words (Devlin et al. 2019, arXiv:1810.04805), and by the masked sentence blocks of SMITH.

Letters in shapes: N sequences, L tokens of one (padded), M masked words, H width of a state, V words of the vocabulary.
Of SMITH: B documents, N blocks of all of them, n of one (padded), M masked blocks, R of them real.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, pad

from engine.encoders.backbone import Backbone
from engine.encoders.encoder import SegmentedDocument, Variant
from engine.encoders.smith import SmithEncoder, document_windows
from engine.encoders.trainable import TrainableEncoder, pad_chunks
from engine.errors import TrainingError
from engine.settings import COUNT, Checked, setting
from engine.text.segmentation import TokenWindow
from engine.training.task import Backward, epoch_slice, full_precision, step_generator

IGNORED = -100  # the target that `torch.nn.functional.cross_entropy` leaves out
SHARE = 0.15  # of the words of a sequence that are masked
MOST = 5  # in a block of SMITH
_INITIAL_STD = 0.02


@dataclass(frozen=True, slots=True)
class MaskedWords:
    """Token ids to read, and the words to predict."""

    ids: Tensor  # (N, L) int64
    targets: Tensor  # (N, L) int64, the original id where a word is to be predicted, else IGNORED


def maskable(ids: Tensor, mask: Tensor, special_ids: Collection[int]) -> Tensor:
    """Tokens that may be masked: the real ones that are not special.

    Args:
        ids: (N, L) int64.
        mask: (N, L) bool, True where a token is real.
    """
    return mask & ~torch.isin(ids, torch.tensor(sorted(special_ids), device=ids.device))


def choose_by_chance(maskable: Tensor, generator: torch.Generator) -> Tensor:
    """Choose each word with the same probability, (N, L) bool; a sequence may get none."""
    return maskable & (torch.rand(maskable.shape, generator=generator) < SHARE)


def choose_by_count(maskable: Tensor, mask: Tensor, generator: torch.Generator) -> Tensor:
    """Choose a fixed number of words of each sequence, as SMITH's released code does.

        n = min(MOST, max(1, round(SHARE * length)))

    Args:
        maskable: (N, L) bool.
        mask: (N, L) bool, True where a token is real; `length` counts these, special ones included.

    Returns:
        (N, L) bool; fewer where a sequence has fewer words.
    """
    wanted = (mask.sum(1, dtype=torch.float64) * SHARE).round().clamp(1, MOST)  # half to even, as Python's round
    drawn = torch.rand(maskable.shape, generator=generator).masked_fill(~maskable, 2)
    return maskable & (drawn.argsort(1).argsort(1) < wanted[:, None])


def mask_words(
    ids: Tensor, chosen: Tensor, generator: torch.Generator, *, mask_id: int, vocabulary_size: int
) -> MaskedWords:
    """Mask the chosen words: 80 % become [MASK], 10 % a random id of the vocabulary, 10 % stay.

    Args:
        ids: (N, L) int64; not changed.
        chosen: (N, L) bool.
    """
    fate = torch.rand(ids.shape, generator=generator)
    other = torch.randint(vocabulary_size, ids.shape, generator=generator)
    read = torch.where(chosen & (fate < 0.8), mask_id, ids)
    read = torch.where(chosen & (fate >= 0.9), other, read)
    return MaskedWords(read, ids.masked_fill(~chosen, IGNORED))


class PredictionTransform(nn.Module):
    """LN(gelu(W x + b)), which BERT applies before each prediction."""

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        limit = 2 * _INITIAL_STD
        nn.init.trunc_normal_(self.dense.weight, std=_INITIAL_STD, a=-limit, b=limit, generator=generator)
        nn.init.zeros_(self.dense.bias)

    def forward(self, states: Tensor) -> Tensor:
        """(..., H) to (..., H)."""
        transformed: Tensor = self.norm(gelu(self.dense(states), approximate="tanh"))
        return transformed


class MaskedWordHead(nn.Module):
    """Predicts words from their states: the transform, then the encoder's own word embeddings, and a bias."""

    def __init__(self, width: int, vocabulary_size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.transform = PredictionTransform(width, generator)
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))

    def forward(
        self,
        states: Tensor,  # (M, H), of the masked words alone
        embeddings: Tensor,  # (V, H), of the encoder, trained here too
    ) -> Tensor:
        """(M, V) logits, float32."""
        transformed: Tensor = self.transform(states.float())
        return transformed @ embeddings.float().T + self.bias


class MaskedWordLoss(nn.Module):
    """Trains a backbone to predict masked words, beside any other objective.

    Devlin et al. (2019, arXiv:1810.04805), task 1: 15 % of the words, of these 80 % as
    [MASK], 10 % as another word. As in SimCSE (Gao et al. 2021, arXiv:2104.08821)
    it is a forward pass of its own. The module holds only the parameters of the head.
    """

    def __init__(self, backbone: Backbone, *, seed: int = 0) -> None:
        """Make a head for a backbone."""
        super().__init__()
        n_words, width = backbone.model.get_input_embeddings().weight.shape
        if width != backbone.width:
            raise TrainingError(
                f"word embeddings of {backbone.folder} are {width} wide, its states {backbone.width}; "
                "train without masked words"
            )
        tokenizer = backbone.tokenizer
        self.mask_id = tokenizer.mask_id
        self.special = {*tokenizer.prefix, *tokenizer.suffix, tokenizer.pad_id, tokenizer.mask_id}
        self.head = MaskedWordHead(width, n_words, torch.Generator().manual_seed(seed)).to(backbone.device)

    def backward(
        self,
        backbone: Backbone,
        sequences: Sequence[Sequence[int]],
        backward: Backward,
        *,
        weight: float,
        token_budget: int,
        seed: int,
    ) -> float:
        """Add the gradients of `weight` times the loss.

        Args:
            sequences: N lists of ids, without special tokens.

        Returns:
            The mean cross-entropy over all masked words, without the weight; 0 where none was masked.
        """
        generator = torch.Generator().manual_seed(seed)
        parts = []
        for batch in backbone.batches(sequences, token_budget):
            ids, mask = backbone.tokenizer.pad([sequences[position] for position in batch])
            chosen = choose_by_chance(maskable(ids, mask, self.special), generator)
            n_words = backbone.tokenizer.vocabulary_size
            hidden = mask_words(ids, chosen, generator, mask_id=self.mask_id, vocabulary_size=n_words)
            parts.append((hidden, mask, int(chosen.sum())))
        n_hidden = sum(count for *_, count in parts)
        total = 0.0
        for words, mask, count in parts:
            if count:
                loss = self._sum(backbone, words, mask) / n_hidden
                backward(weight * loss)
                total += loss.item()
        return total

    def _sum(self, backbone: Backbone, words: MaskedWords, mask: Tensor) -> Tensor:
        """Sum of the cross-entropies of one forward pass."""
        targets = words.targets.to(backbone.device)  # (N, L)
        is_hidden = targets != IGNORED
        states = backbone.hidden_states(words.ids, mask)[is_hidden]
        with full_precision(states.device):
            logits = self.head(states, backbone.model.get_input_embeddings().weight)
            return cross_entropy(logits, targets[is_hidden], reduction="sum")


def backbone_of(encoder: TrainableEncoder, lack: str) -> Backbone:
    """The backbone of an encoder; raises TrainingError for one without, which names what it lacks."""
    backbone = getattr(encoder, "backbone", None)
    if not isinstance(backbone, Backbone):
        raise TrainingError(f"an encoder of type {encoder.kind} {lack}")
    return backbone


class Objective(StrEnum):
    """The objectives of the pretraining."""

    WORDS = "wp"
    BLOCKS = "sp"


@dataclass(frozen=True)
class SmithSettings(Checked):
    """Settings of the pretraining; {wp} is SMITH-WP, {wp, sp} SMITH-WP+SP."""

    tasks: frozenset[Objective] | None = setting(
        None, "wp (masked words), sp (masked blocks) or wp,sp; by default all that the encoder can learn"
    )
    batch_size: int = setting(32, "documents of a batch", COUNT)
    masked_blocks: int = setting(2, "masked blocks of a document", COUNT)
    seed: int = 0


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


class SmithPretraining:
    """A `Task`: the two losses of section 4.2 of the paper, summed.

    L_wp is BERT's masked-word loss. For L_sp, m block vectors of each document are
    replaced by one learned vector before positions are added. With C the output of
    the document encoder at a masked block k, and h the replaced vectors,

        s = LN(gelu(W C + b)),   L_sp = -mean_k log(exp(s_k . h_k) / sum_r exp(s_k . h_r))

    over all masked blocks r of the batch. `paper` has s = C. `released` draws
    positions where a document may have no block (not predicted, but among the
    candidates), adds a bias by position in the batch, and takes the mean of L_wp at each block
    position, summed over the positions. `released` and `paper` mask the same words of a
    document in every epoch, at most five of a block. `fixed` draws real blocks only, never
    all blocks of a document, and draws the masked words at each step. It reads one window of
    a document with several, also drawn at each step.

    L_wp trains only the token path of the sentence encoder. Its pooler and dense layer and
    the document encoder learn from L_sp; the last layer learns from neither.
    """

    def __init__(
        self, encoder: SmithEncoder, documents: Sequence[SegmentedDocument], settings: SmithSettings = SmithSettings()
    ) -> None:
        """Prepare the encoder and the heads of the pretraining."""
        learnable = frozenset(Objective) if encoder.config.is_hierarchical else frozenset({Objective.WORDS})
        self.objectives = learnable if settings.tasks is None else settings.tasks
        if not documents or not self.objectives:
            raise TrainingError(
                f"{len(documents)} documents and {len(self.objectives)} objectives; give at least one of each"
            )
        if Objective.BLOCKS in self.objectives and not encoder.config.is_hierarchical:
            raise TrainingError("an encoder of 0 document layers cannot guess blocks; leave out the objective 'sp'")
        self.encoder = encoder
        self.documents = documents
        self.settings = settings
        self._special = {*encoder.tokenizer.prefix, *encoder.tokenizer.suffix, encoder.tokenizer.pad_id}
        if Objective.WORDS in self.objectives:
            self._special.add(encoder.tokenizer.mask_id)
        self.module = SmithPretrainingModule(encoder, settings).to(encoder.device)

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
            # The same words in every epoch, wherever the document is in the corpus.
            content = repr((self.settings.seed, [list(ids) for ids in document.token_ids])).encode()
            generator = torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(content).digest()[:8]) >> 1)
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
        if self.encoder.config.variant is not Variant.RELEASED:
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
        if not is_real.all():
            padding = self.module.encoder.padding_block()
            truth = padding.repeat(len(is_real), 1).index_put((is_real.nonzero()[:, 0],), truth)
        with full_precision(blocks.device):
            logits = self.module.block_head(contextual.float()) @ truth.float().T  # (R, M)
            if self.module.slot_bias is not None:
                logits = logits + self.module.slot_bias[: len(is_real)]
            return cross_entropy(logits, is_real.nonzero()[:, 0])
