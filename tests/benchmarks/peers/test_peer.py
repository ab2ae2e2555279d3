from __future__ import annotations

import pytest

from benchmarks.peers import peer
from benchmarks.peers.peer import PEERS, Entry, check_packages, versions
from engine.errors import MissingExtra


def test_the_error_for_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = Entry("nowhere", "Nothing", {"no_such_module": "no-such-package"})
    monkeypatch.setattr(peer, "PEERS", {**PEERS, "absent": absent})
    check_packages(["longmatch"])
    with pytest.raises(
        MissingExtra, match=r"the peer absent needs no-such-package; .*pip install 'longmatch\[peers\]'"
    ):
        check_packages(["longmatch", "absent"])


def test_versions_are_those_of_the_distributions() -> None:
    assert versions("longmatch") == {}
    pytest.importorskip("sentence_transformers")
    assert set(versions("st-chunks")) == {"sentence-transformers"}
