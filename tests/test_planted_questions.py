"""Sections planted in documents of the demo corpus are found by containment and novelty, and others are not."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import longmatch
from engine.readers import read_document
from engine.text.document import Document
from engine.text.segmentation import Section

CORPUS = Path(__file__).parents[1] / "demo" / "corpus"
N_DRAFTS = 14
LEAST_WORDS = 80  # of a section that is planted, or expected to be novel
REPLACED = (0.0, 0.1, 0.3)  # shares of words that are replaced in planted sections, in turn
CONTAINED = 0.5  # score from which on a section counts as contained


@dataclass(frozen=True)
class Planted:
    """An index, the drafts that are not in it, and the documents in it that hold sections of the drafts."""

    index: longmatch.Index
    drafts: list[Document]
    homes: dict[tuple[str, int], str | None]  # of each long section the document that it was planted in, or None


def long_sections(document: Document) -> list[int]:
    return [
        number
        for number, one in enumerate(document.sections)
        if len(document.text[one.start : one.stop].split()) >= LEAST_WORDS
    ]


def edited(text: str, share: float, words: list[str], rng: random.Random) -> str:
    return " ".join(rng.choice(words) if rng.random() < share else word for word in text.split())


def with_section(document: Document, text: str) -> Document:
    start = len(document.text)
    whole = f"{document.text}\n\nInserted\n{text}\n"
    inserted = Section("Inserted", ("Inserted",), start, len(whole))
    return replace(document, text=whole, sections=(*document.sections, inserted))


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    rng = random.Random(7)
    paths = sorted(path for path in CORPUS.rglob("*") if path.suffix in (".md", ".txt"))
    documents = [read_document(path) for path in paths]
    drafts = rng.sample([one for one in documents if len(long_sections(one)) >= 4], N_DRAFTS)
    others = {one.doc_id: one for one in documents if one not in drafts}
    words = sorted({word for one in others.values() for word in one.text.split()})
    homes: dict[tuple[str, int], str | None] = {}
    for draft in drafts:
        numbers = long_sections(draft)
        homes |= {(draft.doc_id, number): None for number in numbers}
        for place, number in enumerate(sorted(rng.sample(numbers, len(numbers) // 2))):
            home, section = rng.choice(sorted(others)), draft.sections[number]
            share = REPLACED[place % len(REPLACED)]
            text = edited(draft.text[section.start : section.stop], share, words, rng)
            others[home] = with_section(others[home], text)
            homes[draft.doc_id, number] = home
    folder = tmp_path_factory.mktemp("planted") / "x.lm"
    with longmatch.build(folder, list(others.values()), encode="none", progress=False) as index:
        yield Planted(index, drafts, homes)


def test_novelty_finds_planted_sections_with_high_precision_and_recall(planted: Planted) -> None:
    judged = []
    for draft in planted.drafts:
        for one in planted.index.search(draft, mode="novelty").sections or ():
            if (draft.doc_id, one.section) in planted.homes and one.novelty is not None:
                home = planted.homes[draft.doc_id, one.section]
                found = one.hit.doc_id if one.hit is not None and one.novelty <= 1 - CONTAINED else None
                judged.append((home, found))
    n_planted = sum(home is not None for home, _ in judged)
    n_found = sum(found is not None for _, found in judged)
    n_right = sum(home is not None and found == home for home, found in judged)
    precision, recall = n_right / n_found, n_right / n_planted
    assert (len(judged), n_planted) == (160, 77)
    assert precision >= 0.9 and recall >= 0.9, (precision, recall)


def test_containment_ranks_the_documents_that_got_sections_first(planted: Planted) -> None:
    n = n_right = 0
    for draft in planted.drafts:
        homes = {home for (name, _), home in planted.homes.items() if name == draft.doc_id and home is not None}
        hits = [hit.doc_id for hit in planted.index.search(draft, k=len(homes), mode="containment")]
        n += len(homes)
        n_right += len(homes.intersection(hits))
    assert n_right / n >= 0.7, (n_right, n)
