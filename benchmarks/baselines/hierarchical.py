"""Baselines that read words, then sentences, by gated recurrent units with attention: HAN and SMASH."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.baselines.pair_model import CosineHead, PairTraining, Prepared, SiameseModel, TrainedScorer, settings_of
from benchmarks.baselines.text_inputs import DocumentWords, WordConfig, make_word_table, read_words
from engine.text.document import Document


class AttentiveGru(nn.Module):
    """Maps each sequence to a vector; section 2.2 of Yang et al. (2016, NAACL, N16-1174).

        h_t = [forward GRU; backward GRU](x)_t,  u_t = tanh(W h_t + b),
        a_t = softmax_t(u_t . u_w),  v = sum_t a_t h_t

    Sequences are concatenated and read in batches of similar length. The backward GRU reads each sequence from its
    end: padding comes last in either direction, so that no result depends on it. (Packed sequences would give the
    same, but on a CPU the time of their gradient grows with the square of a document's length.)
    """

    def __init__(self, input_width: int, width: int, attention_width: int) -> None:
        """Initialize random parameters."""
        super().__init__()
        self.forwards = nn.GRU(input_width, width, batch_first=True)
        self.backwards = nn.GRU(input_width, width, batch_first=True)
        self.attention = nn.Linear(2 * width, attention_width)
        self.context = nn.Linear(attention_width, 1, bias=False)

    def forward(self, elements: Tensor, lengths: Tensor) -> Tensor:
        """Encode sequences.

        Args:
            elements: (T, E), the concatenated sequences.
            lengths: (N,) int64 on the CPU, at least 1 each; their sum is T.

        Returns:
            (N, 2 H).
        """
        starts = lengths.cumsum(0) - lengths
        batches = list(_of_like_length(lengths))
        rows = [self._read(elements, starts[batch], lengths[batch]) for batch in batches]
        return torch.cat(rows)[torch.cat(batches).argsort().to(elements.device)]

    def _read(self, elements: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
        at = torch.arange(int(lengths.max()))  # (L,)
        mask = at < lengths[:, None]  # (N, L)
        # At padding, any element can be read.
        onwards = torch.where(mask, at, 0)
        back = torch.where(mask, lengths[:, None] - 1 - at, 0)
        starts, mask, onwards, back = (each.to(elements.device) for each in (starts, mask, onwards, back))
        ahead = self.forwards(_taken(elements, starts[:, None] + onwards))[0]
        behind = self.backwards(_taken(elements, starts[:, None] + back))[0]
        behind = behind.gather(1, back.unsqueeze(-1).expand_as(behind))  # element t was read at step length - 1 - t
        states = torch.cat([ahead, behind], -1).float()  # (N, L, 2 H)
        scores = self.context(torch.tanh(self.attention(states))).squeeze(-1).float()
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        rows: Tensor = (weights.unsqueeze(-1) * states).sum(1)
        return rows


def _of_like_length(lengths: Tensor) -> Iterator[Tensor]:
    """Positions of sequences, batch by batch; in a batch, every one is longer than half of the longest."""
    doublings = [(length - 1).bit_length() for length in lengths.tolist()]
    for doubling in sorted(set(doublings)):
        yield torch.tensor([at for at, own in enumerate(doublings) if own == doubling])


def _taken(elements: Tensor, places: Tensor) -> Tensor:
    """(N, L, E): the elements at positions (N, L)."""
    return elements.index_select(0, places.flatten()).reshape(*places.shape, -1)


HAN_WORDS = WordConfig(width=200)


@dataclass(frozen=True, slots=True)
class HanConfig:
    """Sizes of the paper; the length is the best one in Yang et al. (2020, arXiv:2004.12297, table 5)."""

    words: WordConfig = HAN_WORDS
    max_words: int = 2048  # read from a document
    width: int = 50  # of either GRU, in each direction
    attention_width: int = 100  # of either context vector


class Han(SiameseModel[DocumentWords]):
    """Yang et al. (2016, NAACL, N16-1174): an `AttentiveGru` over the words of each sentence, one over the sentences.

    The paper classifies documents. Here the two vectors of a pair are compared by a
    cosine, as the papers on long documents do (Jha et al. 2022, section 4.1.3).
    """

    def __init__(self, config: HanConfig, embedding: nn.Embedding) -> None:
        """Initialize random parameters over given word vectors."""
        super().__init__()
        self.embedding = embedding
        self.words = AttentiveGru(embedding.embedding_dim, config.width, config.attention_width)
        self.sentences = AttentiveGru(2 * config.width, config.width, config.attention_width)
        self.head = CosineHead()

    def encode(self, documents: Sequence[DocumentWords]) -> Tensor:
        """See `SiameseModel.encode`: (N, 2 H)."""
        ids = torch.from_numpy(np.concatenate([document.ids for document in documents])).to(self.device)
        words = torch.from_numpy(np.concatenate([document.sentences for document in documents]))
        sentences = torch.tensor([len(document.sentences) for document in documents])
        vectors: Tensor = self.sentences(self.words(self.embedding(ids), words), sentences)
        return vectors


def han(
    config: HanConfig = HanConfig(),
    training: PairTraining = PairTraining(),  # noqa: B008
    *,
    device: str | None = None,
) -> TrainedScorer[DocumentWords]:
    """HAN as a `PairScorer`."""

    def prepare(documents: Mapping[str, Document], *, seed: int) -> Prepared[DocumentWords]:
        table = make_word_table(documents.values(), config.words, seed=seed)
        model = Han(config, table.embedding)
        return Prepared(model, lambda document: read_words(document, table.vocabulary, config.max_words))

    return TrainedScorer("han", settings_of(config), training, prepare, device=device)


_DEPTHS = 3
SMASH_WORDS = WordConfig(width=50, tuned=False)


@dataclass(frozen=True, slots=True)
class SmashConfig:
    """Sizes of the unofficial code; the length is the best one in Yang et al. (2020, arXiv:2004.12297)."""

    words: WordConfig = SMASH_WORDS
    max_words: int = 2048  # read from a document
    width: int = 128  # of each GRU, in each direction
    attention_width: int = 128  # of each context vector


class Smash(SiameseModel[DocumentWords]):
    """Jiang et al. (2019, WWW, "Semantic Text Matching for Long-Form Documents").

    A document is cut in three ways: in paragraphs of sentences of words; in one paragraph of its sentences; and in
    one sentence of all its words. Each time one `AttentiveGru` reads words, one reads sentences, and one reads
    paragraphs; the vector is [d_paragraphs; d_sentences; d_words]. For the vectors s and t of a pair,

        logit = w . relu(W [s; t; |s - t|; s * t] + b) + c

    so that the score depends on the order of the documents and cannot be searched with an index. The authors
    published no code. The networks shared by the three depths, the last two features and all widths are from the
    unofficial code of D. N. de Paula.
    """

    def __init__(self, config: SmashConfig, embedding: nn.Embedding) -> None:
        """Initialize random parameters over given word vectors."""
        super().__init__()
        self.embedding = embedding
        self.words = AttentiveGru(embedding.embedding_dim, config.width, config.attention_width)
        self.sentences = AttentiveGru(2 * config.width, config.width, config.attention_width)
        self.paragraphs = AttentiveGru(2 * config.width, config.width, config.attention_width)
        self.head = _FeatureHead(_DEPTHS * 2 * config.width)

    def encode(self, documents: Sequence[DocumentWords]) -> Tensor:
        """See `SiameseModel.encode`: (N, 6 H)."""
        ids = torch.from_numpy(np.concatenate([document.ids for document in documents])).to(self.device)
        words = self.embedding(ids)
        one = torch.ones(len(documents), dtype=torch.int64)
        sentences = self.words(words, torch.from_numpy(np.concatenate([document.sentences for document in documents])))
        paragraphs = self.sentences(
            sentences, torch.from_numpy(np.concatenate([document.paragraphs for document in documents]))
        )
        by_paragraphs = self.paragraphs(paragraphs, torch.tensor([len(document.paragraphs) for document in documents]))
        joined = self.sentences(sentences, torch.tensor([len(document.sentences) for document in documents]))
        by_sentences = self.paragraphs(joined, one)
        whole = self.words(words, torch.tensor([len(document) for document in documents]))
        by_words = self.paragraphs(self.sentences(whole, one), one)
        return torch.cat([by_paragraphs, by_sentences, by_words], -1)


class _FeatureHead(nn.Module):
    """Dense layers over two vectors, their distance and their product."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 1))

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """(B, D) and (B, D) to (B,)."""
        features = torch.cat([first, second, (first - second).abs(), first * second], -1)
        logits: Tensor = self.layers(features).squeeze(-1)
        return logits


def smash(
    config: SmashConfig = SmashConfig(),
    training: PairTraining = PairTraining(pairs_at_once=16),  # noqa: B008
    *,
    device: str | None = None,
) -> TrainedScorer[DocumentWords]:
    """SMASH RNN as a `PairScorer`."""

    def prepare(documents: Mapping[str, Document], *, seed: int) -> Prepared[DocumentWords]:
        table = make_word_table(documents.values(), config.words, seed=seed)
        model = Smash(config, table.embedding)
        return Prepared(model, lambda document: read_words(document, table.vocabulary, config.max_words))

    return TrainedScorer("smash", settings_of(config), training, prepare, device=device)
