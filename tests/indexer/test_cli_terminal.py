"""Bold and colours on terminals alone; plain text in pipes and where NO_COLOR is set."""

from __future__ import annotations

import io
import re
import subprocess
import sys

import pytest

from engine.report.lines import Run, Style, line
from indexer.cli import terminal

LINES = [line("the ", Run("fox", Style.MATCH), Run(" 狐[b]x[/b]", Style.FAINT)), line(Run("█" * 200, Style.SHADE_4))]
PLAIN = "the fox 狐[b]x[/b]\n" + "█" * 200 + "\n"


class Screen(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


def _screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    found = Screen()
    monkeypatch.setattr(sys, "stdout", found)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return found


def test_a_terminal_gets_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _screen(monkeypatch)
    terminal.show(LINES)
    shown = screen.getvalue()
    assert "\x1b[1;33mfox\x1b[0m" in shown and "\x1b[1;31m█" in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == PLAIN  # not wrapped, and markup is not interpreted


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_without_colours_gets_plain_text(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    screen = _screen(monkeypatch)
    monkeypatch.setenv(name, value)
    terminal.show(LINES)
    assert screen.getvalue() == PLAIN


def test_a_pipe_gets_plain_text_80_columns_wide(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show(LINES)
    assert capsys.readouterr().out == PLAIN
    assert terminal.width() == 80


def test_the_width_is_that_of_the_terminal_within_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    _screen(monkeypatch)
    for columns, width in ((40, 60), (97, 97), (300, 120)):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert terminal.width() == width


def test_a_pipe_does_not_import_rich() -> None:
    code = "import sys; from indexer.cli import main; main(['query', '--help'], standalone_mode=False); "
    code += "from indexer.cli.terminal import show; from engine.report.lines import Run, Style; "
    code += "show([(Run('fox', Style.TITLE),)]); print('rich' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-2:] == ["fox", "False"]
