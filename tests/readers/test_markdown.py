"""Markdown: headings, front matter, titles, and very long texts."""

import random
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from engine.readers.markdown import plain, read
from tests.cases import cases

BODY = "A sentence of the body that is long enough. " * 6


def test_headings_make_sections_but_not_those_in_code_lists_and_quotes() -> None:
    text = f"# One\n\n{BODY}\n\nTwo\n---\n\n{BODY}\n\n## Three ##\n\n{BODY}\n"
    document = read(text.encode(), "a.md", "a.md")
    assert [section.path for section in document.sections] == [("One",), ("One", "Two"), ("One", "Three")]
    assert document.text == text
    assert document.text[document.sections[1].start :].startswith("Two\n---")
    text = f"# Real\n\n```\n# no\n```\n\n> # no\n\n- # no\n\n    # no\n\n{BODY}"
    assert [section.path for section in read(text.encode(), "a", "a.md").sections] == [("Real",)]
    document = read(f"# One\r\n\r\n{BODY}\r\n\r\n# Two\r\n\r\n{BODY}".encode(), "a", "a.md")
    assert document.text[document.sections[1].start :].startswith("# Two\n")


def test_front_matter_is_metadata() -> None:
    front = '---\ntitle: "On Pumps"\nyear: 2020\ntags: [a, b]\nauthors:\n  - Ann\n  - Bob\ndraft: true\n---\n'
    document = read(f"{front}# Other\n\n{BODY}".encode(), "a", "a.md")
    assert document.title == "On Pumps"
    assert document.metadata == {"year": 2020, "tags": ["a", "b"], "authors": ["Ann", "Bob"], "draft": True}
    assert document.sections[0].heading == "Other"
    assert document.text == f"# Other\n\n{BODY}"


@cases(
    "source, title",
    {
        "the first heading of level one": ("## Sub\n\n# Main\n\ntext", "Main"),
        "without one the name of the file": ("## Sub\n\ntext", "notes"),
        "an unclosed front matter is text": ("---\ntitle: x\n\nbody", "notes"),
    },
)
def test_the_title_of_a_note(source: str, title: str) -> None:
    document = read(source.encode(), "a", "x/notes.md")
    assert (document.title, document.metadata) == (title, {})


def test_a_note_of_obsidian_shows_the_words_of_its_links() -> None:
    note = (
        "---\ntags: [rivers, to/read]\naliases:\n  - Lock keeper\n---\n"
        "See [[Weirs and gates]], [[Weirs#Sluice|the sluice]], [[Notes/Locks#Gates#^ab12]] and | [[a\\|b]] |.\n\n"
        "![[plan.png|200]] ![[Other note]]\n\n```bash\nif [[ -f x ]]; then\n```\n"
        "`[[code]]` and x[[0, 1]], [[1]](#one).\n"
    )
    document = read(note.encode(), "a", "vault/Lock.md")
    assert document.text == (
        "See [[Weirs and gates]], the sluice, Notes/Locks > Gates and | b |.\n\n"
        " Other note\n\n```bash\nif [[ -f x ]]; then\n```\n`[[code]]` and x[[0, 1]], [[1]](#one).\n"
    )
    assert document.title == "Lock"
    assert document.metadata == {"tags": ["rivers", "to/read"], "aliases": ["Lock keeper"], "left_out_figures": 1}


def test_the_parts_of_an_rfc_source_are_no_text() -> None:
    source = (
        f"---\ntitle: On Pumps\n--- abstract\n\n{BODY}\n\n--- middle\n\n# Introduction\n\n{BODY}\n\n--- back\n\nEnd.\n"
    )
    document = read(source.encode(), "a", "a.md")
    assert document.title == "On Pumps" and "---" not in document.text
    assert [section.heading for section in document.sections] == ["Abstract", "Introduction"]


def test_tags_within_a_note_of_obsidian_join_those_of_its_front_matter(tmp_path: Path) -> None:
    note = (
        "---\ntags: rivers, locks\n---\n# Weir #project/locks\n\n- [ ] See #to-read and #rivers, #日本; not #2024, "
        "a#b, (#c), http://x.org/#d or [e](#e).\n\n```c\n#include <x>\n```\n\n    #code\n\n`#f` ![[Other#Part]] #a/b/\n"
    )
    (tmp_path / "vault" / ".obsidian").mkdir(parents=True)
    document = read(note.encode(), "a", str(tmp_path / "vault" / "Notes" / "Weir.md"))
    assert document.metadata == {"tags": ["rivers", "locks", "project/locks", "to-read", "日本", "a/b"]}
    assert read(note.encode(), "a", str(tmp_path / "Weir.md")).metadata == {"tags": "rivers, locks"}


def test_titles_lose_their_markup() -> None:
    assert plain(r"**The `f(a[0][1])`** of [x](http://y) and snake_case *now* \# {#id}") == (
        "The f(a[0][1]) of x and snake_case now #"
    )


def test_headings_are_those_of_the_whole_parse() -> None:
    lines = ["a b", "- item\n", "  more", "    deep", "# Head %d\nBODY", "  # In %d\nBODY", "\nTitle %d\n===\nBODY", ""]
    lines += ["", "1. one", "> q", "```", "| a | b |", "|---|---|", "***", "2. # No %d", "- ```", "- # No %d", "1."]
    parser, choose = MarkdownIt("commonmark").enable("table"), random.Random(0).choice
    for _ in range(200):
        chosen = (choose(lines).replace("%d", str(number)).replace("BODY", BODY) for number in range(12))
        text = "\n".join([BODY, *chosen])
        tokens = parser.parse(text)
        heads = [two.content for one, two in pairwise(tokens) if one.type == "heading_open" and not one.level]
        sections = read(text.encode(), "a", "a.md").sections
        assert {title for one in sections for title in one.path} == {*filter(None, heads)}, text


def test_a_text_of_very_many_lines_is_scanned_for_headings() -> None:
    text = f"# One #\n\n{BODY}\n\n```\n# no\n````\n\n    # no\n\n"
    text += f"## Two *words*\n\n{BODY}\n\n~~~\n# no\n```\n~~~\n\n{BODY}\n"
    parsed = read(text.encode(), "a", "a.md").sections
    scanned = read((text + "a\n\n" * 200_000).encode(), "a", "a.md").sections
    assert [section.path for section in parsed] == [("One",), ("One", "Two words")]
    assert list(dict.fromkeys(section.path for section in scanned)) == [("One",), ("One", "Two words")]
    assert [section.start for section in parsed] == [0, scanned[1].start]


def test_a_huge_list_is_read_in_little_memory() -> None:
    tracemalloc.start()
    read(b"- a\n" * 250_000, "a", "a.md")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50_000_000


@pytest.mark.parametrize(
    ("marked", "shown"),
    [
        ("The 4^th^ of H~2~O, 10^12^.", "The 4th of H2O, 10^12."),
        ("`$x$`, `a^b^c`, ~5 to ~6 and x[^1].", "`$x$`, `a^b^c`, ~5 to ~6 and x[^1]."),
        ("$x^2y^2$, $`\\frac{a}{b}`$, $$\na_1\n$$, \\(c_2\\) and \\[d=1\\].", "x^2y^2, a/b, a_1, c_2 and d=1."),
        ("```math\n\\alpha\n```\n```{math}\n:label: eq\n\\beta\n```\n", "α\nβ\n"),
        ("It cost $5 (<10% of A$) to $7, \\[see p. 3\\].", "It cost $5 (<10% of A$) to $7, \\[see p. 3\\]."),
        ("# Aim {#sec:aim}\n[Small]{.smallcaps} `x`{.py}, a {x}.", "# Aim\n[Small] `x`, a {x}."),
        (
            "<table>\n<colgroup>\n<col/>\n</colgroup>\n<tr>\n<td>Oak</td>\n<td>Elm</td>\n</tr>\n</table>",
            "\n\n\n\n\nOak | Elm\n\n\n",
        ),
        ("::: {.note}\nWait.\n:::\n", "\nWait.\n\n"),
        ("::: {.callout-tip}\n\n## Tip\nWait.\n:::\n{{< include _a.qmd >}}", "\n\nTip\nWait.\n\n"),
        (
            "```{r}\n% x\n```\n(a)=\n% y\n```{note} Look\n:class: x\nSee {ref}`it <a>`, H{sub}`2`O.\n```",
            "```{r}\n% x\n```\nLook\nSee it, H2O.\n",
        ),
        ('<Tab label="Oak">\n{:.x}\nElm is List<Ash>.\n</Tab>{% a %}', "Oak\n\nElm is List<Ash>.\n</Tab>"),
        (":::tip My tip\nWait.\n:::\n", "My tip\nWait.\n\n"),
        (":::warning[Look out]{#x}\nWait.\n:::", "Look out\nWait.\n"),
        ("~~~\n::: x\n~~~\nEnd: of ::: it.", "~~~\n::: x\n~~~\nEnd: of ::: it."),
    ],
)
def test_marks_of_pandoc_are_read(marked: str, shown: str) -> None:
    assert read(marked.encode(), "a", "a.md").text == shown
