"""Ninety documents over nine topics that link to others of their topic, as a dataset in a folder."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

from benchmarks.datasets import Dataset, open_dataset
from benchmarks.pairs.building import Relations, Split, undirected

N_TOPICS, N_EACH = 9, 10
DOC_IDS = [f"d{number:02d}" for number in range(N_TOPICS * N_EACH)]
WORDS = (
    "the a of and in we is was old young fox dog river house bank light dark model vector search long document "
    "section chunk query target score finds shows every some many few runs jumps over under through quick slow"
).split()


def linked(seed: int = 0) -> Relations:
    """Every document links to three others of its topic, one with relevance 2; a third of the documents is held out."""
    rng = np.random.default_rng(seed)
    links: dict[str, dict[str, int]] = {}
    for number, doc_id in enumerate(DOC_IDS):
        fellows = [other for other in range(len(DOC_IDS)) if other % N_TOPICS == number % N_TOPICS and other != number]
        chosen = rng.permutation(fellows)[:3]
        links[doc_id] = {DOC_IDS[int(other)]: 2 if place == 0 else 1 for place, other in enumerate(chosen)}
    held = {doc_id: Split.TEST for doc_id in DOC_IDS[:15]} | {doc_id: Split.VALID for doc_id in DOC_IDS[15:30]}
    trainable = frozenset(
        undirected(query, target)
        for query, targets in links.items()
        for target in targets
        if query not in held and target not in held
    )
    return Relations(links, trainable, held)


def write_linked(folder: Path) -> Dataset:
    """Write the documents and their links as files; words of a text are of its topic, or common ones."""
    folder.mkdir()
    relations, rng = linked(), np.random.default_rng(0)
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        for number, doc_id in enumerate(DOC_IDS):
            own = WORDS[4 * (number % N_TOPICS) : 4 * (number % N_TOPICS) + 4]
            bodies = [" ".join(rng.choice([*own * 6, *WORDS], 30)) + "." for _ in range(2)]
            sections = [{"heading": f"part {part}", "text": body} for part, body in enumerate(bodies)]
            file.write(json.dumps({"id": doc_id, "title": "", "sections": sections, "meta": {}}) + "\n")
    rows = [f"{query}\t{target}\t{grade}" for query, own in relations.links.items() for target, grade in own.items()]
    (folder / "qrels.tsv").write_text("\n".join(["query_id\tdoc_id\trelevance", *rows, ""]))
    splits = {split.value: [one for one, own in relations.held.items() if own is split] for split in Split}
    splits["train"] = [doc_id for doc_id in DOC_IDS if doc_id not in relations.held]
    (folder / "splits.json").write_text(json.dumps(splits))
    return open_dataset(str(folder))
