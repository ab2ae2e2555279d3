"""Siamese baselines over words and letter trigrams: DSSM, ARC-I, HAN and SMASH."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool1d

from benchmarks.pairs.inputs import DocumentWords, TrigramCounts, WordConfig, pad_words
from benchmarks.pairs.pair_model import CosineHead, SiameseModel


@dataclass(frozen=True, slots=True)
class DssmConfig:
    """Sizes; by default those of the paper."""

    widths: tuple[int, ...] = (300, 300, 128)  # of the dense layers; the last is D
    max_trigrams: int = 30_000
    min_count: int = 5  # a rarer trigram is not read


class Dssm(SiameseModel[TrigramCounts]):
    """Huang et al. (2013, CIKM, "Learning Deep Structured Semantic Models for Web Search using Clickthrough Data").

        l_1 = tanh(W_1 x + b_1),  l_i = tanh(W_i l_{i-1} + b_i),  R(q, d) = cos(y_q, y_d)

    over letter trigrams x. Parameters are initialized as in the paper, uniform within sqrt(6 / (fan in + fan out)).
    The paper applies a softmax to R over one clicked and four other documents; here a pair has a label, and the loss
    is the binary cross-entropy of its scaled cosine, as in the comparison on long documents (Jha et al. 2022,
    section 4.1.3). One tower encodes both documents.
    """

    def __init__(self, config: DssmConfig, n_trigrams: int) -> None:
        """Initialize random parameters for a number of trigrams."""
        super().__init__()
        # The first dense layer over sparse inputs: a weighted sum of its columns.
        self.columns = nn.EmbeddingBag(n_trigrams, config.widths[0], mode="sum")
        nn.init.xavier_uniform_(self.columns.weight)
        self.bias = nn.Parameter(torch.zeros(config.widths[0]))
        self.layers = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(config.widths))
        for layer in self.layers:
            assert isinstance(layer, nn.Linear)
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.head = CosineHead()

    def encode(self, documents: Sequence[TrigramCounts]) -> Tensor:
        """See `SiameseModel.encode`: (N, D) in (-1, 1)."""
        ids = torch.from_numpy(np.concatenate([document.ids for document in documents])).to(self.device)
        weights = torch.from_numpy(np.concatenate([document.weights for document in documents])).to(self.device)
        starts = torch.tensor(np.cumsum([0, *(len(document) for document in documents[:-1])]), device=self.device)
        rows = torch.tanh(self.columns(ids, starts, per_sample_weights=weights) + self.bias)
        for layer in self.layers:
            rows = torch.tanh(layer(rows))
        return rows


_WINDOW = 3  # words of a convolution
_POOLED = 2  # neighbours, of which the larger is kept
WORDS = WordConfig(width=50, tuned=False)


@dataclass(frozen=True, slots=True)
class ArcIConfig:
    """Sizes. The paper tries 200 to 500 feature maps, and has fixed word vectors of width 50."""

    words: WordConfig = WORDS
    max_words: int = 2048  # read from a document
    layers: int = 3  # of convolution and pooling; the comparison in CoLDE's paper has three, the paper of ARC-I two
    features: int = 200


class ArcI(SiameseModel[DocumentWords]):
    """Hu et al. (2014, NeurIPS, arXiv:1503.03244), section 2, as Jha et al. (2022, section 4.1.3) compare it.

        z_i = relu(W [x_{i-1}; x_i; x_{i+1}] + b),  x'_i = max(z_{2i}, z_{2i+1})

    for each layer. After each layer, positions beyond the text are zero: this is the paper's gate, which sets a unit
    to zero where its whole window is zero. The paper ends with a fixed number of windows, concatenated for an MLP over
    both sentences. Documents differ in length, and the comparison ends with a cosine, so here the vector of a document
    is the largest value of each feature map.
    """

    def __init__(self, config: ArcIConfig, embedding: nn.Embedding) -> None:
        """Initialize random parameters over given word vectors."""
        super().__init__()
        self.embedding = embedding
        widths = [embedding.embedding_dim, *[config.features] * config.layers]
        self.convolutions = nn.ModuleList(
            nn.Conv1d(before, after, _WINDOW, padding=_WINDOW // 2) for before, after in pairwise(widths)
        )
        self.head = CosineHead(middle=0.5)

    def encode(self, documents: Sequence[DocumentWords]) -> Tensor:
        """See `SiameseModel.encode`: (N, F), at least 0."""
        ids, mask = pad_words(documents, self.device)
        rows = self.embedding(ids).mT  # (N, E, L); padding is zero in the table
        real = mask.unsqueeze(1).float()
        for convolution in self.convolutions:
            # No value is below zero after a relu, so a zero never exceeds the value of a real neighbour.
            rows = max_pool1d(torch.relu(convolution(rows)) * real, _POOLED, ceil_mode=True)
            real = max_pool1d(real, _POOLED, ceil_mode=True)
        vectors: Tensor = rows.amax(-1)
        return vectors


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
