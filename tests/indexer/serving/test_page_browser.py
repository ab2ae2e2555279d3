"""The page in headless Chromium: searches, links, filters, errors, and what a keyboard and a screen reader need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lxml.html
import pytest

from demo.make_pictures import take_pictures
from engine.index import Index
from engine.readers import read_document
from engine.search.request import Mode, Request
from indexer.building.builder import build
from indexer.serving.settings import ServerSettings
from tests.fakes import make_corpus
from tests.indexer.serving.browsers import ARGUMENTS, CHROMIUM, Seen, opened_page, served_page
from tests.indexer.serving.clients import until
from tests.indexer.serving.test_live_index import HeldEncoder

playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; install it: apt-get install chromium"),
]
ROOT = Path(__file__).parents[3]
DEMO = ROOT / "demo"
DRAFT = DEMO / "queries/eip-7702.pdf"
NAMES = ["eip-2718.md", "eip-2930.md", "eip-3074.md", "eip-3607.md", "eip-5806.txt", "eip-8164.docx"]
TOKEN = "a-token-of-32-characters-or-more"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six proposals by words alone."""
    path = tmp_path_factory.mktemp("page") / "eips.lm"
    build(path, [read_document(DEMO / "corpus/eips" / name) for name in NAMES], encode="none", language="english")
    return path


@pytest.fixture(scope="module")
def base(folder: Path) -> Iterator[str]:
    with served_page(folder) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser, base: str) -> Iterator[Page]:
    """The page as it opens; after the test its console must be empty, and no other server was contacted."""
    with opened_page(browser, base) as (opened, seen):
        opened.goto("./")
        opened.wait_for_selector("#about:not(:empty)")
        yield opened
        assert seen == Seen()


def wait_for_result(page: Page) -> None:
    page.wait_for_selector("#tail details", state="attached")
    page.wait_for_selector("#progress", state="hidden")


def search_file(page: Page, file: Path = DRAFT) -> None:
    page.set_input_files("#file", file)
    wait_for_result(page)


def numbers(html: str) -> list[list[float]]:
    """All numbers of each hit, in their order."""
    articles = lxml.html.document_fromstring(html).xpath("//article[@class='hit']")
    return [[float(one.get("value")) for one in article.iter("data")] for article in articles]


def hits(page: Page) -> list[str]:
    return [one.inner_text().partition("\n")[0] for one in page.query_selector_all("article.hit h3 a")]


def test_page_report_json_and_python_show_the_same_numbers(page: Page, folder: Path) -> None:
    search_file(page)
    with page.expect_download() as download:
        page.click("#save")
    report = Path(download.value.path()).read_text(encoding="utf-8")
    assert download.value.suggested_filename == "EIP-7702-Set-Code-for-EOAs-report.html"
    form = {"file": {"name": DRAFT.name, "mimeType": "application/pdf", "buffer": DRAFT.read_bytes()}, "sections": "10"}
    (answer,) = page.request.post("v1/search/file", multipart=form).json()["results"]
    with Index.open(folder) as index:
        python = index.search(read_document(DRAFT)).to_dict(n_pairs=10)
    shown = page.content()
    assert numbers(shown) == numbers(report)
    assert [one[0] for one in numbers(shown)] == [hit["score"] for hit in python["hits"]]
    assert [contributions(hit) for hit in answer["hits"]] == [contributions(hit) for hit in python["hits"]]
    articles = lxml.html.document_fromstring(shown).xpath("//article[@class='hit']")
    for hit, article in zip(python["hits"], articles, strict=True):
        cells = article.xpath(".//table[@class='contributions']/tbody/tr/td[4]/data/@value")
        shares = hit["by_section"]
        rest = [sum(one["contribution"] for one in shares["rest"])] if shares["rest"] else []
        assert [float(one) for one in cells] == [*(row["contribution"] for row in shares["rows"]), *rest]
        assert sum(contributions(hit)) == pytest.approx(hit["score"], abs=1e-5)


def contributions(hit: dict[str, Any]) -> list[float]:
    return [part["contribution"] for part in hit["parts"]]


def test_a_link_to_an_indexed_document_shows_the_same_result(page: Page, browser: Browser, base: str) -> None:
    page.check("text=From the index")
    page.fill("#doc", "eip-3074.md")
    page.fill("#where", "title like '%a%'")
    page.check("text=References")
    page.click("button.primary >> visible=true")
    wait_for_result(page)
    page.click("#q1-h2 .evidence > summary")
    page.wait_for_url("**&hit=*")
    with opened_page(browser, base) as (other, seen):
        other.goto(page.url)
        wait_for_result(other)
        assert numbers(other.content()) == numbers(page.content())
        assert other.locator(".evidence[open]").get_attribute("id") == "q1-h2-evidence"
        assert (other.input_value("#where"), other.is_checked("[value=references]")) == ("title like '%a%'", True)
        assert seen == Seen()


def test_a_file_or_text_leaves_no_trace_in_the_address(page: Page, base: str) -> None:
    search_file(page)
    assert page.url == base and not page.is_visible("#copy")
    page.check("text=Text")
    page.fill("#text", "A transaction type that lets an account delegate to code.")
    page.click("#search > .primary")
    page.wait_for_selector("#head >> text=A transaction type")
    assert page.url == base


def test_containment_weights_and_diversity_give_the_scores_of_python(page: Page, folder: Path) -> None:
    page.click("text=More options")
    page.select_option("#mode", "containment")
    page.fill("#weights", "motivation=3, abstract=0")
    page.check("#diversify")
    search_file(page)
    options: dict[str, Any] = {"mode": "containment", "weights": {"motivation": 3, "abstract": 0}, "diversify": True}
    with Index.open(folder) as index:
        expected = index.search(read_document(DRAFT), Request.of(**options))
    assert [one[0] for one in numbers(page.content())] == [hit.score for hit in expected]
    page.click("#q1-h1 >> text=Search with this document")
    page.wait_for_selector("#head h2:not(:text('EIP-7702'))")
    page.goto(page.url + "&mode=containment&weights=motivation%3D3&diversify=1")
    wait_for_result(page)
    assert (page.input_value("#weights"), page.is_checked("#diversify")) == ("motivation=3", True)


def test_novelty_is_that_of_python_and_has_a_link_and_a_report(page: Page, folder: Path, base: str) -> None:
    page.click("text=More options")
    page.fill("#weights", "body=2")
    page.select_option("#mode", "novelty")
    assert not page.is_visible("#weights") and not page.is_visible("#exact")
    page.check("text=From the index")
    page.fill("#doc", "eip-3074.md")
    page.click("#search > .primary")
    wait_for_result(page)
    with Index.open(folder) as index:
        found = index.search("eip-3074.md", Request(mode=Mode.NOVELTY)).sections or ()
    shown = page.locator("article.hit .title .score data").evaluate_all("all => all.map((one) => Number(one.value))")
    assert shown == [one.novelty for one in found if one.novelty is not None]
    assert hits(page) == [one.heading for one in found]
    assert "mode=novelty" in page.url and not page.is_visible("#pages")
    page.click("#q1-h2 .evidence > summary")
    page.wait_for_url(f"**&hit={found[1].section + 1}")
    with page.expect_download() as download:
        page.click("#save")
    report = Path(download.value.path()).read_text(encoding="utf-8")
    assert "longmatch novelty report" in report and numbers(report) == numbers(page.content())
    assert str(folder.parent) not in report


def test_back_and_forward_move_between_results(page: Page) -> None:
    search_file(page)
    page.click("#q1-h1-title a")
    page.click("#q1-h1 a[href='#q1-h1-match-2']")
    assert page.url.endswith("#q1-h1-match-2")
    page.click("#q1-h2 >> text=Search with this document")
    page.wait_for_selector("#head h2:not(:text('EIP-7702'))")
    wait_for_result(page)
    assert page.is_visible("#copy")
    page.go_back()
    page.wait_for_selector(".panel >> text=Search with a whole document")
    page.go_forward()
    wait_for_result(page)
    assert "id=" in page.url


def test_back_returns_to_a_result_of_a_file(page: Page) -> None:
    search_file(page)
    first = hits(page)
    page.fill("#where", "title like 'Delegate%'")
    page.click("#search > .primary")
    page.wait_for_selector("#hits > article:only-child")
    page.click("#q1-h1-title a")
    page.go_back()
    assert len(hits(page)) == 1 and page.input_value("#where")
    page.go_back()
    page.wait_for_selector("#hits > article:nth-child(6)")
    assert hits(page) == first and page.input_value("#where") == ""
    page.go_back()
    page.wait_for_selector(".panel >> text=Search with a whole document")


def test_conditions_are_suggested_from_the_catalog(page: Page) -> None:
    page.click("text=Add a condition")
    page.select_option("#field", "status")
    page.fill("#value", "stag")
    page.wait_for_selector("#values option:only-child", state="attached")
    assert page.locator("#values option").get_attribute("value") == "Stagnant"
    page.fill("#value", "Stagnant")
    page.press("#value", "Enter")
    page.select_option("#field", "title")
    page.select_option("#operator", "like")
    page.fill("#value", "it's")
    page.click("#add")
    assert page.input_value("#where") == "status = 'Stagnant' and title like '%it''s%'"


def test_a_click_on_a_value_adds_it_to_the_filter(page: Page) -> None:
    search_file(page)
    page.click("article:has-text('eip-5806.txt') button[data-field=status]")
    page.wait_for_selector("#hits > article:only-child")
    assert page.input_value("#where") == "status = 'Stagnant'" and "where=status" in page.url


def test_documents_of_the_index_are_suggested_by_title(page: Page) -> None:
    page.check("text=From the index")
    page.fill("#doc", "delegate tra")
    page.wait_for_selector("#docs option:only-child", state="attached")
    assert page.locator("#docs option").get_attribute("value") == "eip-5806.txt"


def test_a_dropped_file_is_searched(page: Page) -> None:
    page.evaluate(
        """() => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File(["Delegate a transaction to code."], "draft.txt"));
            const event = (type) => new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer });
            for (const type of ["dragenter", "drop"]) document.body.dispatchEvent(event(type));
        }"""
    )
    wait_for_result(page)
    assert page.inner_text("#chosen").startswith("draft.txt") and len(hits(page)) == 6


def test_pages_of_hits_join(page: Page) -> None:
    search_file(page)
    whole = numbers(page.content())
    page.click("text=More options")
    page.select_option("#k", "5")
    page.click("#search > .primary")
    page.wait_for_selector("#range:has-text('1 to 5 of 6')")
    wait_for_result(page)
    first = numbers(page.content())
    page.click("#next")
    page.wait_for_selector("#range:has-text('6 to 6 of 6')")
    wait_for_result(page)
    assert [one[0] for one in first + numbers(page.content())] == [one[0] for one in whole]
    assert page.is_disabled("#next")


def test_stop_ends_a_search_and_the_next_one_runs(browser: Browser, tmp_path: Path) -> None:
    encoder = HeldEncoder()
    encoder.release.set()
    build(tmp_path / "x.lm", make_corpus(8), encoder=encoder, factory="scan", language="english")
    with served_page(tmp_path / "x.lm", encoder=encoder) as base, opened_page(browser, base) as (page, seen):
        encoder.release.clear()
        page.goto("./")
        page.check("text=Text")
        page.fill("#text", "topic3word1 topic3word2 common1")
        page.click("#search > .primary")
        page.wait_for_selector("#stage:text('Encoding your document')")
        page.click("#stop")
        page.wait_for_selector("#progress", state="hidden")
        assert not page.is_visible("#result") and not page.inner_text("#problem")
        encoder.release.set()
        until(lambda: "longmatch_requests_admitted 0.0" in page.request.get("metrics").text())
        page.click("#search > .primary")
        wait_for_result(page)
        assert len(hits(page)) > 0 and seen == Seen()


@pytest.mark.parametrize(
    ("where", "shown"),
    [("year >=", "filter"), ("yeer = 1", "no document has the field 'yeer'"), ("title = '", "filter")],
)
def test_an_error_names_what_is_wrong_with_the_filter(browser: Browser, base: str, where: str, shown: str) -> None:
    with opened_page(browser, base) as (page, seen):
        page.goto("./")
        page.check("text=Text")
        page.fill("#text", "Delegate a transaction to code.")
        page.fill("#where", where)
        page.click("#search > .primary")
        page.wait_for_selector("#problem .problem")
        assert shown in page.inner_text("#problem").lower() and not page.is_visible("#progress")
        # Chromium itself logs the status of a response; nothing else may be there.
        assert all("status of 400" in one for one in seen.logged) and not seen.outside


def test_a_search_continues_when_the_description_of_the_index_arrives(browser: Browser, base: str) -> None:
    held: dict[str, Route] = {}
    with opened_page(browser, base) as (page, seen):
        page.route("**/v1/index", lambda route: held.update(index=route))
        page.route("**/page/search", lambda route: held.update(search=route))
        page.goto("./")
        page.check("text=Text")
        page.fill("#text", "Delegate a transaction to code.")
        page.fill("#where", "family = 'eip'")
        with page.expect_request("**/page/search"):
            page.click("#search > .primary")
        held["index"].continue_()
        page.wait_for_selector("#about:has-text('documents')")
        assert page.input_value("#where") == "family = 'eip'"
        held["search"].continue_()
        page.wait_for_selector("article.hit")
        assert seen == Seen()


def test_an_empty_form_is_explained(page: Page) -> None:
    page.click("#search > .primary")
    assert "No file is chosen" in page.inner_text("#problem")


def test_a_file_that_cannot_be_read_is_named_with_a_next_step(browser: Browser, base: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text(" ")
    with opened_page(browser, base) as (page, seen):
        page.goto("./")
        page.wait_for_selector("#about:not(:empty)")
        page.set_input_files("#file", empty)
        page.wait_for_selector("#problem >> text=empty.txt")
        assert len(page.query_selector_all("#problem p")) == 2
        assert all("status of 422" in one for one in seen.logged) and not seen.outside


def test_a_file_over_the_limit_is_not_sent(browser: Browser, folder: Path, tmp_path: Path) -> None:
    large = tmp_path / "large.txt"
    large.write_text("word " * 1_000)
    limits = ServerSettings(port=0, threads=1, max_bytes=2_000)
    with served_page(folder, limits) as base, opened_page(browser, base) as (page, seen):
        page.goto("./")
        page.wait_for_selector("#about:not(:empty)")
        page.set_input_files("#file", large)
        page.wait_for_selector("#problem >> text=large.txt has 5 kB, the server takes 2 kB")
        assert seen == Seen()


def test_a_server_with_a_token_is_searched_after_the_token_is_entered(browser: Browser, folder: Path) -> None:
    guarded = ServerSettings(port=0, threads=1, token=TOKEN)
    with served_page(folder, guarded) as base, opened_page(browser, base) as (page, seen):
        page.goto("./?id=eip-3074.md")
        page.fill("#token", "not-the-token")
        page.press("#token", "Enter")
        page.wait_for_selector("#problem >> text=no valid token")
        page.fill("#token", TOKEN)
        page.press("#token", "Enter")
        wait_for_result(page)
        assert not page.is_visible("#access") and len(hits(page)) == 5
        page.reload()
        wait_for_result(page)
        assert all("status of 401" in one for one in seen.logged) and not seen.outside
        assert TOKEN not in page.url


def test_the_page_is_used_with_the_keyboard_alone(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    page.keyboard.type("Delegate a transaction to code of a contract.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    wait_for_result(page)
    assert page.inner_text("#status").startswith("6 of 6 hits for Delegate")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    page.keyboard.press("j")
    focused = page.evaluate("document.activeElement.id")
    assert focused == "q1-h2"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator(".evidence[open]").get_attribute("id") == "q1-h2-evidence"
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.id") == "q1-h2-match-1"


@pytest.fixture(scope="module")
def short_draft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four sections of the draft, cut short: its page of novelty has an eighth of the elements, of the same kinds.

    Only numbers of pages are missing, which the page of evidence has.
    """
    draft = read_document(DRAFT)
    path = tmp_path_factory.mktemp("short") / "draft.md"
    parts = [f"# {draft.title}"]
    for section in draft.sections[1:5]:
        text = draft.text[section.start : section.stop].removeprefix(section.heading).strip()
        parts.append(f"## {section.heading}\n\n{text[:600]}")
    path.write_text("\n\n".join(parts), encoding="utf-8")
    return path


# A scheme sets colours alone, so each width is laid out in one. Both schemes and the widest and narrowest layout are
# judged by axe-core, which takes most of the time.
LOOKS = pytest.mark.parametrize(
    ("width", "scheme", "by_axe"), [(390, "light", True), (820, "light", False), (1440, "dark", True)]
)


@LOOKS
def test_nothing_overflows_and_axe_finds_nothing(
    browser: Browser, base: str, short_draft: Path, width: int, scheme: str, by_axe: bool
) -> None:
    with opened_page(browser, base, width=width, scheme=scheme) as (page, seen):
        page.goto("./")
        page.wait_for_selector("#about:not(:empty)")
        page.click("text=Add a condition")
        page.click("text=More options")
        check_looks(page, by_axe)
        page.fill("#where", "title like 'Delegate%'")
        search_file(page)
        page.click("#q1-h1 .evidence > summary")
        check_looks(page, by_axe, left_out=".sides.full")  # both documents, which are judged in the report
        if not page.is_visible("#mode"):
            page.click("#panel > summary")
        page.select_option("#mode", "novelty")
        page.click("#search > .primary")
        page.wait_for_selector("#head >> text=most novel first")
        wait_for_result(page)
        page.click("#q1-h3 .evidence > summary")
        check_looks(page, by_axe=False)
        if by_axe:
            search_file(page, short_draft)
            page.wait_for_selector("#hits > article:nth-child(4):last-child")
            page.click("#q1-h3 .evidence > summary")
            check_looks(page, by_axe=True)
        assert seen == Seen()


@pytest.mark.parametrize(
    ("place", "evidence"),
    [
        ("#q1-h2", ["q1-h1-evidence", "q1-h2-evidence"]),
        ("#q1-h2-match-1", ["q1-h1-evidence", "q1-h2-evidence"]),
        ("", ["q1-h1-evidence"]),
    ],
    ids=["a hit", "a folded match", "without a place the first hit is shown"],
)
def test_a_link_into_a_report_opens_the_evidence_of_its_hit(
    browser: Browser, folder: Path, tmp_path: Path, place: str, evidence: list[str]
) -> None:
    report = tmp_path / "report.html"
    with Index.open(folder) as index:
        report.write_text(index.search(read_document(DRAFT), Request(k=3)).to_html(), encoding="utf-8")
    with opened_page(browser, report.as_uri()) as (page, seen):
        page.goto(report.as_uri() + place)
        opened = page.locator("details.evidence[open]").evaluate_all("all => all.map(one => one.id)")
        assert (opened, seen) == (evidence, Seen())


@LOOKS
def test_nothing_in_a_report_overflows_and_axe_finds_nothing(
    browser: Browser, folder: Path, short_draft: Path, tmp_path: Path, width: int, scheme: str, by_axe: bool
) -> None:
    draft = read_document(DRAFT)
    with Index.open(folder) as index:
        novelty = Request(mode=Mode.NOVELTY)
        pages = {
            "evidence": (index.search(draft, Request(k=1)), by_axe),
            "novelty": (index.search(draft, novelty), False),
        }
        if by_axe:
            pages["short"] = (index.search(read_document(short_draft), novelty), True)
    for name, (result, is_judged) in pages.items():
        report = tmp_path / f"{name}.html"
        report.write_text(result.to_html(), encoding="utf-8")
        with opened_page(browser, report.as_uri(), width=width, scheme=scheme) as (page, seen):
            page.goto(report.as_uri())
            check_looks(page, is_judged)
            assert seen == Seen()


def test_pictures_of_the_page_have_the_names_of_the_tutorial(browser: Browser, base: str, tmp_path: Path) -> None:
    take_pictures(browser, base, DRAFT, tmp_path)
    kept = ROOT / "docs/pictures"
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(one.name for one in kept.iterdir())
    assert all(one.read_bytes()[8:12] == b"WEBP" for one in tmp_path.iterdir())
    assert sum(one.stat().st_size for one in kept.iterdir()) <= 300_000


def check_looks(page: Page, by_axe: bool, left_out: str = "") -> None:
    """Nothing is wider than the window, and axe-core has no finding where it judges, but for elements left out."""
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0
    if not by_axe:
        return
    found = (
        pytest.importorskip("axe_playwright_python.sync_playwright")
        .Axe()
        .run(page, {"exclude": [[left_out]]} if left_out else None)
    )
    assert found.violations_count == 0, found.generate_report()
