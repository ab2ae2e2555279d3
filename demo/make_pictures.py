"""Take the pictures of the tutorial: the page and a report, in headless Chromium, over an index of the demo corpus.

Needs Chromium and Playwright: apt-get install chromium; pip install playwright

Example, from the folder above this one:
    longmatch index demo.lm demo/corpus --encode none
    longmatch serve demo.lm
    python -m demo.make_pictures http://127.0.0.1:8321/ demo/queries/eip-7702.pdf docs/pictures
"""

from __future__ import annotations

import base64
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DESKTOP, PHONE = (1180, 760), (390, 760)  # pixels
_QUALITY = 60  # of WebP, in percent
_WAIT_MS = 60_000
_FIRST = "#q1-h1"  # the best hit on the page and in the report


@click.command(help=__doc__)
@click.argument("address")
@click.argument("query", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
def main(address: str, query: Path, out: Path) -> None:
    """Take all pictures of the server at ADDRESS into the folder OUT."""
    # Imported here: longmatch does not depend on it.
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        take_pictures(browser, address, query, out)
        browser.close()
    for picture in sorted(out.glob("*.webp")):
        click.echo(f"{picture.stat().st_size:>9,} bytes  {picture}")


def take_pictures(browser: Browser, address: str, query: Path, out: Path) -> None:
    """Search with a file, and take pictures of the page and the report.

    Args:
        browser: Chromium, the only one that writes WebP.
        address: of the page.
        query: the file to search with.
        out: the folder of the pictures; created if missing.
    """
    out.mkdir(parents=True, exist_ok=True)
    page = _opened(browser, address, DESKTOP)
    _take(page, out / "page.webp")
    page.set_input_files("#file", query)
    page.wait_for_selector("#tail details", state="attached")
    page.wait_for_selector("#progress", state="hidden")
    _take(page, out / "result.webp")
    page.click(f"{_FIRST} .evidence > summary")
    _take(page, out / "evidence.webp", f"{_FIRST}-evidence")
    _take(page, out / "match.webp", f"{_FIRST}-match-1")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        with page.expect_download() as download:
            page.click("#save")
        download.value.save_as(report)
        _take(_opened(browser, report.as_uri(), PHONE, scheme="dark"), out / "report.webp")


def _opened(browser: Browser, address: str, size: tuple[int, int], scheme: Literal["light", "dark"] = "light") -> Page:
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    context.set_default_timeout(_WAIT_MS)
    page = context.new_page()
    page.goto(address, wait_until="networkidle")
    return page


def _take(page: Page, picture: Path, place: str | None = None) -> None:
    """Write a picture of the window, after scrolling to a place if one is given."""
    if place is not None:
        page.locator(place).evaluate("one => one.scrollIntoView()")
    parameters = {"format": "webp", "quality": _QUALITY}
    taken = page.context.new_cdp_session(page).send("Page.captureScreenshot", parameters)
    picture.write_bytes(base64.b64decode(taken["data"]))


if __name__ == "__main__":
    main()
