"""Progress counts the tokens of a search over its steps, and ends an abandoned search at its next step."""

from __future__ import annotations

import pytest

from indexer.serving.failures import Refusal
from indexer.serving.progress import Progress, Stage, State, Subject


def test_tokens_are_counted_over_several_steps() -> None:
    progress, share = Progress(), 0.0
    progress.expect(Subject.CANDIDATES, 100)
    with progress.encoding(60, lambda: share):
        share = 0.5
        assert progress.state == State(Stage.ENCODING, Subject.CANDIDATES, 30, 100)
    assert progress.state == State(Stage.ENCODING, Subject.CANDIDATES, 60, 100)
    with progress.encoding(40, lambda: share):
        assert progress.state == State(Stage.ENCODING, Subject.CANDIDATES, 80, 100)
    assert progress.state == State(Stage.SEARCHING)


def test_no_more_tokens_are_shown_than_were_expected() -> None:
    progress = Progress()
    progress.expect(Subject.QUERY, 100)
    with progress.encoding(130, lambda: 0.9):
        assert progress.state == State(Stage.ENCODING, Subject.QUERY, 100, 100)


def test_an_abandoned_search_ends_at_its_next_step() -> None:
    progress = Progress()
    progress.enter(Stage.READING)
    progress.abandon()
    with pytest.raises(Refusal, match="the client closed the connection"):
        progress.enter(Stage.SEARCHING)
    with pytest.raises(Refusal), progress.encoding(1, lambda: 0.0):
        pass
    assert progress.state == State(Stage.READING)
