from __future__ import annotations

import numpy as np
import pytest

from benchmarks.sections.planting import (
    Damage,
    Form,
    Passage,
    Position,
    damaged,
    drop_words,
    plant,
    shuffle_sentences,
)
from engine.document import Document
from tests.fakes import make_document

TEXT = "One is first. Two is second. Three is third. Four is fourth. Five is fifth."
PASSAGE = Passage("Planted", "Green seed grows.")


@pytest.fixture
def host() -> Document:
    return make_document("host", [("One", "First. Second."), ("Two", "Third. Fourth."), ("Three", "Fifth. Sixth.")])


def test_a_share_of_the_words_is_dropped_and_the_rest_keeps_its_order() -> None:
    words = [f"w{number}" for number in range(50)]
    left = drop_words(" ".join(words), 0.3, np.random.default_rng(0)).split()
    assert len(left) == 35 and left == sorted(left, key=words.index)
    assert drop_words("a\n\nb", 0, np.random.default_rng(0)) == "a\n\nb"


def test_sentences_change_places_and_stay_whole() -> None:
    shuffled = shuffle_sentences(TEXT, np.random.default_rng(0))
    assert shuffled != TEXT
    assert sorted(f"{shuffled} ".split(". ")) == sorted(f"{TEXT} ".split(". "))


def test_damages_are_seeded_and_only_a_copy_has_the_heading() -> None:
    kinds = {damage: damaged(Passage("A", TEXT), damage, np.random.default_rng(1)) for damage in Damage}
    assert {damage: passage.heading for damage, passage in kinds.items() if passage.heading} == {Damage.COPY: "A"}
    n_words = {damage: len(passage.text.split()) for damage, passage in kinds.items()}
    assert list(n_words.values()) == [15, 13, 11, 7, 15]  # round(0.1 * 15) is 2, of a half to the even number
    assert kinds[Damage.COPY].text == TEXT
    assert damaged(Passage("A", TEXT), Damage.DROP_50, np.random.default_rng(1)) == kinds[Damage.DROP_50]


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("position", Position)
def test_the_host_holds_the_passage_and_all_that_it_was(host: Document, position: Position, form: Form) -> None:
    planted = plant(host, PASSAGE, position, form)
    document, span = planted.document, planted.span
    expected = "Planted\n\nGreen seed grows." if form is Form.SECTION else "Green seed grows."
    assert document.text[span.start : span.stop] == expected
    assert (document.text[: span.start] + document.text[span.stop :]).split() == host.text.split()
    starts, stops = ([getattr(section, end) for section in document.sections] for end in ("start", "stop"))
    assert starts == [0, *stops[:-1]] and stops[-1] == len(document.text)
    holder = document.sections[planted.section]
    assert holder.start <= span.start < span.stop <= holder.stop
    kept = [section.heading for section in document.sections if section is not holder or form is Form.PASSAGE]
    assert kept == ["One", "Two", "Three"]


def test_positions_are_the_first_the_middle_and_the_last(host: Document) -> None:
    sections = [plant(host, PASSAGE, position, Form.SECTION).section for position in Position]
    passages = [plant(host, PASSAGE, position, Form.PASSAGE).section for position in Position]
    assert (sections, passages) == ([0, 1, 3], [0, 1, 2])
    middle = plant(host, PASSAGE, Position.MIDDLE, Form.PASSAGE).document
    text = " ".join(middle.text.split())
    assert text == "One First. Second. Two Third. Green seed grows. Fourth. Three Fifth. Sixth."
