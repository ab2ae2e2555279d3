"""HTML pages: headings, tables, menus that are left out, and limits."""

from __future__ import annotations

import time

import pytest

from engine.errors import DocumentError
from engine.readers.html import read

BODY = "A sentence of the body that is long enough. " * 6


def page(body: str, head: str = "<title>The page</title>") -> bytes:
    return f"<!DOCTYPE html><html lang='en'><head>{head}</head><body>{body}</body></html>".encode()


def test_headings_make_sections() -> None:
    document = read(page(f"<h1>One</h1><p>{BODY}</p><div><h2>Two <a href='#x'>¶</a></h2>{BODY}</div>"), "a", "a.html")
    assert [section.path for section in document.sections] == [("One",), ("One", "Two")]
    assert document.title == "The page"
    assert document.metadata == {"language": "en"}


def test_block_elements_break_lines_and_inline_elements_do_not() -> None:
    body = "<p>a <b>b</b><i>c</i>\n d<br>e</p><ul><li>x<li><p>y</p></ul><pre>  k\n    l\n</pre>z"
    assert read(page(body), "a", "a.html").text == "a bc d\ne\n- x\n- y\n\n  k\n    l\n\nz"


def test_tables_are_rows_of_cells() -> None:
    body = "<table><tr><th>A</th><th>B</th></tr><tr><td><p>1</p></td><td>2</td></tr></table>"
    assert read(page(body), "a", "a.html").text == "A | B\n1 | 2"


def test_tables_that_lay_out_a_page_are_not_rows() -> None:
    body = "<table><tr><td><h1>Head</h1><p>one</p><p>two</p></td></tr></table>"
    assert read(page(body), "a", "a.html").text == "Head\n\none\n\ntwo"


def test_menus_scripts_and_hidden_text_are_left_out() -> None:
    body = (
        "<nav>menu</nav><header>top</header><script>x()</script><style>y</style><aside>ad</aside><p hidden>h</p>"
        "<p style='display: none'>n</p><template>t</template><noscript>s</noscript><p>kept</p><footer>foot</footer>"
    )
    assert read(page(body), "a", "a.html").text == "kept"


def test_the_main_part_is_read_alone() -> None:
    assert read(page(f"<div>links</div><main><h1>M</h1>{BODY}</main>"), "a", "a.html").text.startswith(
        "M\n\nA sentence"
    )


def test_the_declared_charset_is_respected() -> None:
    data = "<html><head><meta charset='iso-8859-2'></head><body>Łódź</body></html>".encode("iso8859-2")
    assert read(data, "a", "a.html").text == "Łódź"


def test_an_xml_declaration_does_no_harm() -> None:
    assert read(b'<?xml version="1.0" encoding="utf-8"?><html><body><p>x</p></body></html>', "a", "a.xhtml").text == "x"


def test_deep_nesting_is_read() -> None:
    assert read(b"<div>" * 500 + b"deep" + b"</div>" * 500, "a", "a.html").text == "deep"


def test_nesting_that_the_parser_cuts_off_is_refused() -> None:
    with pytest.raises(DocumentError, match="nested too deeply"):
        read(b"<p>x<div>" * 5000 + b"deep", "a", "a.html")


@pytest.mark.parametrize("data", [b"", b"<html></html>", b"<!-- x -->", b"<script>x</script>"])
def test_a_page_without_text_is_refused(data: bytes) -> None:
    with pytest.raises(DocumentError, match="no text"):
        read(data, "a", "a.html")


def links(names: list[str], attributes: str = "") -> str:
    return f"<ul {attributes}>" + "".join(f"<li><a href='/{name}'>{name}</a></li>" for name in names) + "</ul>"


LANGUAGES = ["Deutsch", "Français", "Español", "Italiano", "日本語", "Polski", "Русский", "中文", "Svenska"]


@pytest.mark.parametrize("menu", [links(LANGUAGES), links(["Home", "News", "About"], "class='site-menu'")])
def test_lists_of_links_are_left_out(menu: str) -> None:
    document = read(page(f"<p>Before.</p><div>{menu} Between.</div><p>{BODY}</p>"), "a", "a.html")
    assert document.text == f"Before.\n\nBetween.\n\n{BODY.strip()}"


def test_short_lists_of_links_and_lists_with_text_are_kept() -> None:
    few = links(["Pumps", "Valves"])
    with_text = "<ul>" + "".join(f"<li><a href='#'>{name}</a> is a language.</li>" for name in LANGUAGES) + "</ul>"
    titled = links([f"{name}: a history of the language and of those who wrote it" for name in LANGUAGES])
    text = read(page(f"<p>{BODY}</p>{few}{with_text}{titled}"), "a", "a.html").text
    assert "- Pumps\n- Valves\n- Deutsch is a language." in text
    assert "Svenska: a history" in text


def test_a_page_of_links_keeps_them() -> None:
    assert read(page(f"<p>All:</p>{links(LANGUAGES)}"), "a", "a.html").text.startswith("All:\n- Deutsch\n- Français")


def test_thousands_of_attributes_take_no_time() -> None:
    tag = "<p " + " ".join(f"a{number}='<{number}>'" for number in range(100_000)) + ">"
    start = time.process_time()
    assert read(page(f"{tag}kept</p><p class='x'>next</p>"), "a", "a.html").text == "kept\n\nnext"
    assert time.process_time() - start < 5


def test_too_many_elements_are_refused_before_they_are_parsed() -> None:
    with pytest.raises(DocumentError, match="it has 2,000,001 tags"):
        read(b"x" + b"<br>" * 2_000_001, "a", "a.html")


@pytest.mark.slow
def test_a_row_of_very_many_cells_is_read() -> None:
    text = read(page("<table><tr>" + "<td>" * 5 + "<td>a" * 80_000 + "</table>"), "a", "a.html").text
    assert text == " | ".join("a" * 80_000)
