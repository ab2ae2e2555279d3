"""The keywords of a text by TextRank; single words only, no phrases and no names."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.baselines.word_vectors import are_content
from benchmarks.packages import optional

_WINDOW = 5  # words; the paper tries 2 to 10
_DAMPING = 0.85
_DIGITS = 12  # decimals to which a rank is rounded before ranks are compared


def content_words(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    """The content words of each sentence; see `are_content`.

    Raises:
        MissingExtra: gensim is not installed.
    """
    words = sorted({word for sentence in sentences for word in sentence})
    content = {word for word, is_content in zip(words, are_content(words), strict=True) if is_content}
    return [[word for word in sentence if word in content] for sentence in sentences]


def keywords(sentences: Sequence[Sequence[str]], most: int) -> list[str]:
    """The content words with the highest ranks, best first; words of equal rank by name.

    Mihalcea & Tarau (2004, EMNLP, W04-3252), section 3: words near each other are joined by an edge,
    and the rank of a word is its PageRank in this graph without directions or weights,

        r(v) = (1 - d) / n + d sum_{u next to v} r(u) / degree(u),  d = 0.85

    over n words. (The paper leaves out the division by n, which scales all ranks by one factor.) The paper uses
    nouns and adjectives and joins neighbouring keywords to phrases. Here parts of speech are not known: all content
    words are ranked, content words within a window of five in one sentence are joined, and a keyword is one
    word.

    Args:
        sentences: the content words of each sentence, in reading order.
        most: the number of keywords; of a text with fewer words, all are returned.

    Raises:
        MissingExtra: networkx is not installed.
    """
    networkx = optional("networkx", "TextRank", "networkx")
    graph = networkx.Graph()
    for sentence in sentences:
        graph.add_nodes_from(sentence)
        for at, word in enumerate(sentence):
            graph.add_edges_from((word, other) for other in sentence[at + 1 : at + _WINDOW] if other != word)
    if not graph:
        return []
    ranks = networkx.pagerank(graph, alpha=_DAMPING)
    return sorted(ranks, key=lambda word: (-round(ranks[word], _DIGITS), word))[:most]
