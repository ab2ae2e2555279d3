"""The floor is interpolated by length, pinned with the reference, and cuts rankings without moving a score."""

from pathlib import Path

import numpy as np
import pytest

import longmatch
from engine.scoring.evidence import Floor, FloorTable
from engine.text.document import Document

SUBJECTS = ("heron", "turbine", "ledger", "violin", "glacier", "orchard")


def text_of(number: int, subject: str | None = None) -> str:
    """A text of words of its own, of its subject, and of the language that all share."""
    subject = SUBJECTS[number % len(SUBJECTS)] if subject is None else subject
    rng = np.random.default_rng(number)
    shared = [f"common{word}" for word in rng.integers(0, 60, 60)]
    own = [f"{subject}{word}" for word in rng.integers(0, 40, 60)]
    words = [word for both in zip(shared, own, strict=True) for word in both]
    return ". ".join(" ".join(words[at : at + 8]) for at in range(0, len(words), 8)) + "."


def documents(n: int) -> list[Document]:
    return [Document.from_text(text_of(number), title=f"Text {number}", doc_id=f"d{number:03}") for number in range(n)]


pytestmark = pytest.mark.usefixtures("usual_floor")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("floor") / "made.lm"
    longmatch.build(path, documents(60), encode="none", language="english").close()
    return path


def test_a_floor_lies_between_the_nearest_lengths() -> None:
    table = FloorTable(np.array([10, 1_000]), np.array([[0.1, 0.2, 0.3], [0.3, 0.4, 0.5]], np.float32))
    assert table.at(100) == Floor(0.2, 0.3, 0.4)
    assert (table.at(1), table.at(0)) == (Floor(0.1, 0.2, 0.3), Floor(0.1, 0.2, 0.3))
    assert table.at(10_000_000) == Floor(0.3, 0.4, 0.5)


@pytest.mark.parametrize(("score", "level"), [(0.1, 0), (0.15, 50), (0.25, 95), (0.3, 95), (0.31, 99)])
def test_the_level_of_a_score_is_the_highest_percentile_below_it(score: float, level: int) -> None:
    assert Floor(0.1, 0.2, 0.3).level(score) == level


def test_a_text_on_another_subject_does_not_stand_out_and_one_of_a_document_does(folder: Path) -> None:
    with longmatch.open(folder) as index:
        foreign = index.search(text_of(900, "submarine"))
        version = index.search(text_of(7) + " " + text_of(901, "heron"))
    assert foreign.hits
    assert foreign.nothing_stands_out
    assert "nothing stands out: unrelated documents of this index reach" in str(foreign)
    assert not version.nothing_stands_out
    assert (version[0].doc_id, version.to_dict()["hits"][0]["above"]) == ("d007", 99)
    assert "above 99 % of unrelated pairs" in str(version)


def test_in_a_small_collection_the_few_documents_on_a_subject_stand_out(tmp_path: Path) -> None:
    families = SUBJECTS[:4]
    made = [
        Document.from_text(text_of(number, families[number % 4]), title=f"Text {number}", doc_id=f"d{number:03}")
        for number in range(24)
    ]
    longmatch.build(tmp_path / "small.lm", made, encode="none", language="english").close()
    with longmatch.open(tmp_path / "small.lm") as index:
        halves = [
            (text_of(700 + number, families[number % 4])[:450], text_of(900 + number, "submarine")[:450])
            for number in range(20)
        ]
        results = [index.search(" ".join(both)) for both in halves]
        foreign = [index.search(text_of(900 + number, "submarine")) for number in range(20)]
    assert all(int(result[0].doc_id[1:]) % 4 == number % 4 for number, result in enumerate(results))
    assert not any(result.nothing_stands_out for result in results)
    assert all(result.nothing_stands_out for result in foreign)


def test_least_cuts_the_ranking_and_moves_no_score(folder: Path) -> None:
    with longmatch.open(folder) as index:
        every = [(hit.doc_id, hit.score) for hit in index.search_id("d003", k=60)]
        least = every[4][1]
        pages = [index.search_id("d003", k=3, offset=offset, least=least) for offset in (0, 3, 6)]
        automatic = index.search_id("d003", k=60, least="auto")
    assert [(hit.doc_id, hit.score) for page in pages for hit in page] == every[:5]
    assert [hit.rank for page in pages for hit in page] == [1, 2, 3, 4, 5]
    assert f"no hit on this page reaches the least score of the search, {least:g}" in str(pages[2]).replace("\n", " ")
    expected = [one for one in every if one[1] >= automatic.floor.p99]
    assert [(hit.doc_id, hit.score) for hit in automatic] == expected
    assert 0 < len(expected) < 60


def test_the_floor_stays_with_additions_and_is_that_of_all_partitions(folder: Path, tmp_path: Path) -> None:
    longmatch.build(tmp_path / "parts.lm", documents(60), encode="none", language="english", partitions=3).close()
    longmatch.build(tmp_path / "more.lm", documents(60), encode="none", language="english").close()
    floors = []
    for path in (folder, tmp_path / "parts.lm", tmp_path / "more.lm"):
        with longmatch.open(path) as index:
            if path.stem == "more":
                index.add([Document.from_text(text_of(number), doc_id=f"n{number}") for number in range(500, 520)])
            floors.append(index.search_id("d003").floor)
    assert floors[0] is not None
    assert floors[0] == floors[1] == floors[2]


def test_few_documents_have_no_floor(tmp_path: Path) -> None:
    with longmatch.build(tmp_path / "few.lm", documents(12), encode="none", language="english") as index:
        found = index.search_id("d003", least="auto")
        contained = index.search_id("d003", mode="containment")
    assert (found.floor, found.to_dict()["hits"][0]["above"], found.nothing_stands_out) == (None, None, False)
    assert "scores of unrelated documents are not known" in str(found)
    assert contained.floor is None
