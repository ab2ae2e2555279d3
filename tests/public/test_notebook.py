from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from engine.text.document import Document
from longmatch.notebook import show_documents
from tests.fakes import make_document


class Html:
    """The formatter of a notebook for HTML."""

    def __init__(self) -> None:
        self.views: dict[tuple[str, str], Callable[[Document], str]] = {}

    def for_type_by_name(self, module: str, name: str, view: Callable[[Document], str]) -> None:
        self.views[module, name] = view


def test_a_notebook_shows_documents_as_html(monkeypatch: pytest.MonkeyPatch) -> None:
    html = Html()
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": html}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    show_documents()
    document = make_document("d", "the river")
    view = html.views[type(document).__module__, type(document).__name__]
    assert "the river" in view(document)


def test_without_a_notebook_nothing_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    show_documents()
