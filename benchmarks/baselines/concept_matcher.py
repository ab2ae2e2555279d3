"""Scores a pair of documents by the graph of their concepts; a re-ranker, since the graph needs both documents.

Letters in shapes: B pairs, V vertices of a graph (padded), W words of all documents of a side, F filters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import dropout

from benchmarks.baselines.concept_graphs import (
    ConceptGraph,
    ConceptText,
    Places,
    concept_graph,
    read_concept_text,
    weigh_terms,
)
from benchmarks.baselines.concepts import Grouping
from benchmarks.baselines.pair_model import PairModel, PairTraining, Prepared, TrainedScorer, settings_of
from benchmarks.baselines.term_similarities import N_SIMILARITIES
from benchmarks.baselines.text_inputs import WordConfig, make_word_table
from engine.text.document import Document

WORDS = WordConfig(width=200, tuned=False)


@dataclass(frozen=True, slots=True)
class ConceptMatcherConfig:
    """Sizes of the released code. The two booleans are ablations of the paper."""

    words: WordConfig = WORDS
    max_words: int = 2048  # read from a document; our choice
    max_keywords: int = 20  # of a document; our choice
    grouping: Grouping = field(default_factory=Grouping)
    is_grouped: bool = True  # False makes a concept of each keyword
    filters: int = 32  # F
    encoder_width: int = 128  # of the graph convolutions over the encoded sentences
    similarity_width: int = 16  # of the graph convolutions over the similarities of terms
    width: int = 16  # of the output of both kinds of convolutions, and of the layer before the logit
    dropout: float = 0.1
    compares_documents: bool = True  # the similarities of the two documents are also input of the last layers


class ConceptMatcher(PairModel[ConceptText]):
    """Liu et al. (2019, ACL, arXiv:1802.07459), section 4: the variant with both kinds of features.

    For vertex v of `concept_graph`, with x the vectors of the words of its sentences in one document,

        c(v) = max over the words of relu(W x + b),  m(v) = [|c_1 - c_2|; c_1 * c_2]
        m'(v) = the five similarities of `term_similarities`

    m and m' each go through two graph convolutions of their own. The mean of the results over the vertices, with the
    five similarities of the documents appended, goes through a dense layer to the logit. c is 0 where a document
    has no sentence at v.

    Departures: word vectors are trained on the documents of train unless a file is given. The encoder is
    the convolution of the released code, whose window is one word; the paper also names an LSTM.
    The released code reads 200 words of a vertex and updates after every pair; here all words of a vertex are
    read, and an update is for a batch of pairs. The variant with BERT vectors of the documents is left out.
    """

    def __init__(self, config: ConceptMatcherConfig, embedding: nn.Embedding) -> None:
        """Initialize random parameters over given word vectors."""
        super().__init__()
        self.embedding = embedding
        self.filters = nn.Linear(embedding.embedding_dim, config.filters)
        self.of_encoded = GraphConvolutions((2 * config.filters, config.encoder_width, config.width), config.dropout)
        self.of_similarities = GraphConvolutions(
            (N_SIMILARITIES, config.similarity_width, config.width), config.dropout
        )
        self.compares_documents = config.compares_documents
        n_features = 2 * config.width + N_SIMILARITIES * config.compares_documents
        self.layers = nn.Sequential(nn.Linear(n_features, config.width), nn.ReLU(), nn.Linear(config.width, 1))
        self._graphs = _Graphs(config.grouping if config.is_grouped else None)

    def forward(self, first: Sequence[ConceptText], second: Sequence[ConceptText]) -> Tensor:
        """See `PairModel.forward`."""
        graphs = [self._graphs.of(one, other) for one, other in zip(first, second, strict=True)]
        n_vertices = max(graph.n_vertices for graph in graphs)
        adjacency, similarities, real = (rows.to(self.device) for rows in _padded(graphs, n_vertices))
        ours = self._encode(first, [graph.first for graph in graphs], n_vertices)
        theirs = self._encode(second, [graph.second for graph in graphs], n_vertices)
        matched = torch.cat([(ours - theirs).abs(), ours * theirs], -1)  # (B, V, 2F)
        rows = torch.cat([self.of_encoded(matched, adjacency), self.of_similarities(similarities, adjacency)], -1)
        features = (rows * real.unsqueeze(-1)).sum(1) / real.sum(1, keepdim=True)
        if self.compares_documents:
            of_documents = torch.from_numpy(np.stack([graph.of_documents for graph in graphs])).to(self.device)
            features = torch.cat([features, of_documents], -1)
        logits: Tensor = self.layers(features)
        return logits.squeeze(-1)

    def _encode(self, texts: Sequence[ConceptText], places: Sequence[Places], n_vertices: int) -> Tensor:
        """(B, V, F) at least 0; 0 where a text has no sentence at a vertex."""
        ids = torch.from_numpy(np.concatenate([text.words.ids for text in texts])).to(self.device)
        vertices = torch.from_numpy(
            np.concatenate(
                [
                    np.repeat(number * n_vertices + place, text.words.sentences)
                    for number, (text, place) in enumerate(zip(texts, places, strict=True))
                ]
            )
        ).to(self.device)
        words, number_of = torch.unique(ids, return_inverse=True)
        rows = torch.relu(self.filters(self.embedding(words)))[number_of]  # (W, F)
        # No value is below zero after a relu, so the zero of an empty vertex never exceeds the value of a word.
        encoded = rows.new_zeros(len(texts) * n_vertices, rows.shape[1]).scatter_reduce(
            0, vertices.unsqueeze(1).expand_as(rows), rows, "amax", include_self=True
        )
        return encoded.view(len(texts), n_vertices, -1)


class GraphConvolutions(nn.Module):
    """Kipf & Welling (2017, ICLR, arXiv:1609.02907), eq. 2 and 9.

        H(l+1) = relu(A' H(l) W(l) + b(l)),  A' = D^-1/2 (A + I) D^-1/2,  D_ii = 1 + sum_j A_ij

    without relu after the last layer, with dropout before each but the first. The bias is from the released code.
    """

    def __init__(self, widths: Sequence[int], share: float) -> None:
        """Initialize random parameters by Glorot & Bengio (2010), as the paper does.

        Args:
            widths: the widths of the input and of each layer.
            share: the share of values that dropout sets to zero.
        """
        super().__init__()
        self.share = share
        self.weights = nn.ParameterList(torch.empty(before, after) for before, after in pairwise(widths))
        self.biases = nn.ParameterList(torch.zeros(after) for after in widths[1:])
        for weight in self.weights:
            nn.init.xavier_uniform_(weight)

    def forward(self, rows: Tensor, adjacency: Tensor) -> Tensor:
        """Map rows (B, V, first width) of vertices to (B, V, last width), by A' (B, V, V); see `normalized`."""
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if number:
                rows = dropout(torch.relu(rows), self.share, self.training)
            rows = adjacency @ (rows @ weight) + bias
        return rows


def normalized(edges: NDArray[np.float32]) -> NDArray[np.float32]:
    """A' of `GraphConvolutions`, (V, V), for edge weights that are at least 0, symmetric, and 0 on the diagonal."""
    looped = edges + np.eye(len(edges), dtype=edges.dtype)
    scale = 1 / np.sqrt(looped.sum(1))
    adjacency: NDArray[np.float32] = scale[:, None] * looped * scale
    return adjacency


def _padded(graphs: Sequence[ConceptGraph], n_vertices: int) -> tuple[Tensor, Tensor, Tensor]:
    """A' (B, V, V), the similarities at the vertices (B, V, 5), and (B, V) 1 where a vertex is real; padding is 0."""
    adjacency = np.zeros((len(graphs), n_vertices, n_vertices), np.float32)
    similarities = np.zeros((len(graphs), n_vertices, N_SIMILARITIES), np.float32)
    real = np.zeros((len(graphs), n_vertices), np.float32)
    for number, graph in enumerate(graphs):
        size = graph.n_vertices
        adjacency[number, :size, :size] = normalized(graph.edges)
        similarities[number, :size] = graph.similarities
        real[number, :size] = 1.0
    return torch.from_numpy(adjacency), torch.from_numpy(similarities), torch.from_numpy(real)


class _Graphs:
    """A cache of the graphs of pairs: making a graph takes longer than a step over it. Some kilobytes a pair."""

    def __init__(self, grouping: Grouping | None) -> None:
        self._grouping = grouping
        self._made: dict[tuple[ConceptText, ConceptText], ConceptGraph] = {}

    def of(self, first: ConceptText, second: ConceptText) -> ConceptGraph:
        pair = first, second
        if pair not in self._made:
            self._made[pair] = concept_graph(first, second, self._grouping)
        return self._made[pair]


def concept_matcher(
    config: ConceptMatcherConfig = ConceptMatcherConfig(),
    training: PairTraining = PairTraining(),  # noqa: B008
    *,
    device: str | None = None,
) -> TrainedScorer[ConceptText]:
    """Matching over concept graphs as a `PairScorer`. The IDF of terms is from the documents of train."""

    def prepare(documents: Mapping[str, Document], *, seed: int) -> Prepared[ConceptText]:
        table = make_word_table(documents.values(), config.words, seed=seed)
        weights = weigh_terms(documents.values())

        def read(document: Document) -> ConceptText:
            return read_concept_text(
                document, table.vocabulary, weights, max_words=config.max_words, max_keywords=config.max_keywords
            )

        return Prepared(ConceptMatcher(config, table.embedding), read)

    return TrainedScorer("concept-graph", settings_of(config), training, prepare, device=device)
