from __future__ import annotations

from benchmarks.fetching.wikipedia_seealso import RECIPE, parse_page
from tests.benchmarks.fetching.test_rfc_text import recorded

PAGE = """\
An ABACUS (_plural_ abaci) is a tool that counts, and it is old.[1][2] It has beads]] and {{lang|la}} a frame.

Its energy is

$$E = mc^2$$

as was found much later by somebody else entirely.


History

Too short.

Old tools

  Name      Used in
  --------- ------------------------
  Suanpan   China, and many other places
  Soroban   Japan, and many other places

picture.png 12 34 56 78 90

|alt=An abacus of the Romans in a museum of today


See also

-   Slide rule

Modern see-also subsections

These words are left out too, as they stand below the links to pages.


Legacy

People still learn to use it, and some are faster than machines.

Category:Mathematical tools
"""


def test_a_page_becomes_sections_and_its_see_also_is_left_out() -> None:
    assert list(parse_page(PAGE)) == [
        (
            "Introduction",
            "An ABACUS (plural abaci) is a tool that counts, and it is old. It has beads and a frame.\n\n"
            "Its energy is\n\nas was found much later by somebody else entirely.",
        ),
        ("Old tools", "Name Used in Suanpan China, and many other places Soroban Japan, and many other places"),
        ("Legacy", "People still learn to use it, and some are faster than machines."),
    ]


def test_pages_are_named_by_their_files() -> None:
    key = RECIPE.key("wikipedia.abstract.en-4f3e897/Page/AC/DC_(band).md")
    assert key == "AC/DC_(band)"
    assert RECIPE.key("wikipedia.abstract.en-4f3e897/Abstract/Abacus.md") == ""
    (document,) = RECIPE.documents(recorded(key, "Missing"), {key: PAGE.encode()})
    assert (document["id"], document["title"]) == (key, "AC/DC (band)")
    assert document["meta"] == {"url": "https://en.wikipedia.org/wiki/AC/DC_(band)"}
