"""The keywords of a text by TextRank; words alone, no phrases and no names."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.baselines.word_vectors import are_content
from benchmarks.packages import optional

_WINDOW = 5  # words; the paper tries 2 to 10
_DAMPING = 0.85
_DIGITS = 12  # of a rank, beyond which two ranks are equal


def content_words(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    """The content words of each sentence; see `are_content`.

    Raises:
        MissingExtra: gensim is not installed.
    """
    words = sorted({word for sentence in sentences for word in sentence})
    content = {word for word, is_content in zip(words, are_content(words), strict=True) if is_content}
    return [[word for word in sentence if word in content] for sentence in sentences]


def keywords(sentences: Sequence[Sequence[str]], most: int) -> list[str]:
    """The content words of the highest rank, best first; equal ones by name.

    Mihalcea & Tarau (2004, EMNLP, W04-3252), section 3: words are joined that stand near each other,
    and the rank of a word is its PageRank in this graph without directions or weights,

        r(v) = (1 - d) / n + d sum_{u next to v} r(u) / degree(u),  d = 0.85

    over n words. (The paper leaves out the division by n, which scales all ranks alike.) The paper takes nouns
    and adjectives and joins neighbouring keywords to phrases. Here no part of speech is known: all content
    words are ranked, those of a window of five words of one sentence are joined, stop words left out, and
    a keyword is one word.

    Args:
        sentences: the content words of each, in reading order.
        most: keywords; a text of fewer words has all of them.

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
