"""The evidence report in headless Chromium: its script runs, and the console stays empty."""

import shutil
import subprocess
from pathlib import Path

import lxml.html
import pytest

from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; install it: apt-get install chromium"),
]


def opened(page: Path, place: str, profile: Path) -> tuple[lxml.html.HtmlElement, str]:
    """The page as the browser has it after its scripts ran, and what the browser logged."""
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += [f"--user-data-dir={profile}", "--virtual-time-budget=2000", "--dump-dom", f"{page.as_uri()}#{place}"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return lxml.html.document_fromstring(run.stdout), run.stderr


@pytest.fixture(scope="module")
def report(built_folder: Path, corpus: list[Document], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.fakes import FakeEncoder

    path = tmp_path_factory.mktemp("page") / "report.html"
    with Index.open(built_folder, encoder=FakeEncoder()) as index:
        path.write_text(index.search(corpus[3], Request(k=3)).to_html(), encoding="utf-8")
    return path


def opened_evidence(page: lxml.html.HtmlElement) -> list[str]:
    return [str(one) for one in page.xpath("//details[@class='evidence' and @open]/@id")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "evidence"),
    [("q1-h2-match-1", ["q1-h1-evidence", "q1-h2-evidence"]), ("", ["q1-h1-evidence"])],
    ids=["a link to a folded match opens its hit", "without a place the first hit is shown"],
)
def test_a_link_opens_the_evidence_of_its_hit(report: str, tmp_path: Path, place: str, evidence: list[str]) -> None:
    page, log = opened(report, place, tmp_path)
    assert opened_evidence(page) == evidence
    assert "CONSOLE" not in log
