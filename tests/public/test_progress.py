"""Where progress is printed, and where it is not."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

from engine.text.document import Document
from indexer.building.report import BuildReport
from longmatch import _show_documents
from longmatch.writing import is_shown, listening, progress_log
from tests.fakes import make_document


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def notebook(kernel: object) -> ModuleType:
    module = ModuleType("IPython")
    module.get_ipython = lambda: SimpleNamespace(kernel=kernel)  # type: ignore[attr-defined]
    return module


def test_a_pipe_is_quiet_and_a_terminal_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not is_shown(None)
    assert is_shown(True)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert is_shown(None)
    assert not is_shown(False)


def test_a_notebook_is_not_quiet_and_a_plain_ipython_in_a_pipe_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setitem(sys.modules, "IPython", notebook(object()))
    assert is_shown(None)
    monkeypatch.setitem(sys.modules, "IPython", notebook(None))
    assert not is_shown(None)


def test_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    progress_log(True)("one")
    progress_log(None)("two")
    assert capsys.readouterr() == ("", "one\n")


def test_a_terminal_sees_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with listening(None, 3) as (listener, log):
        assert listener is not None
        listener(BuildReport(n_added=2))
        log("done")
    printed = terminal.getvalue()
    assert "2 of 3 documents" in printed and "━" in printed
    assert "done\n" in printed


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
    _show_documents()
    document = make_document("d", "the river")
    view = html.views[type(document).__module__, type(document).__name__]
    assert "the river" in view(document)


def test_without_a_notebook_nothing_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    _show_documents()
