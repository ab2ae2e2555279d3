"""A corpus in memory whose chunk vectors hold topics and noise, and whose words say nothing or everything."""

from __future__ import annotations

import numpy as np

from benchmarks.gaps.corpus import Case, Corpus
from engine.encoders.encoder import unit

N_TOPICS, N_DOCUMENTS, N_CHUNKS, WIDTH = 12, 96, 3, 16
N_SIGNAL = 6  # dimensions that topics lie in; the others are noise


def made_corpus(*, seed: int = 0, noise: float = 1.6, words_know: bool = False) -> Corpus:
    """Documents of twelve topics; a query's relevant documents are those of its topic, 48 queries to learn from."""
    draw = np.random.default_rng(seed)
    topics = unit(draw.standard_normal((N_TOPICS, N_SIGNAL)).astype(np.float32))
    of_topic = np.arange(N_DOCUMENTS) % N_TOPICS
    signal = np.repeat(topics[of_topic], N_CHUNKS, axis=0)
    rows = np.concatenate(
        [signal, noise * draw.standard_normal((len(signal), WIDTH - N_SIGNAL)) / np.sqrt(WIDTH - N_SIGNAL)], axis=1
    )
    chunks = unit(rows.astype(np.float32))
    names = [f"d{number:03d}" for number in range(N_DOCUMENTS)]
    everything = np.arange(N_DOCUMENTS)
    cases, qrels = {}, {}
    for split, members in (("train", everything[:48]), ("valid", everything[48:])):
        qrels[split] = {
            names[at]: {names[other]: 1 for other in everything.tolist() if other != at and other % 12 == at % 12}
            for at in members.tolist()
        }
        cases[split] = [
            Case(
                names[at],
                at,
                chunks[N_CHUNKS * at : N_CHUNKS * (at + 1)],
                np.ones(N_CHUNKS),
                everything[everything != at],
                *(2 * [0.5 * (of_topic == of_topic[at]) if words_know else 0.01 * draw.random(N_DOCUMENTS)]),
            )
            for at in members.tolist()
        ]
    return Corpus(f"made{seed}", names, chunks, N_CHUNKS * everything, chunks, N_CHUNKS * everything, 4, qrels, cases)
