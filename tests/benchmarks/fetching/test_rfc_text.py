from __future__ import annotations

import json

import pytest

from benchmarks.fetching.rfc import RECIPE, mask_rfcs, parse_rfc
from benchmarks.fetching.sources import FetchError, Recorded

RFC = """\
Network Working Group                                         A. Author
Request for Comments: 9999                                   March 1997

                     Names in Two Pages

Status of this Memo

   Not read.

Abstract

   A short text with a long sentence that the end of the first
   page cuts

Author                  Best Current Practice                  [Page 1]
\f
RFC 9999                     Two Pages                      March 1997


   and the second page ends.

1.  Introduction

   The keywords are in [KEY] and [RFC 2119].

      +------+------+
      | left | right |
      +------+------+

   1.1. Purpose

      Numbered and indented.

2. Security Considerations

   None, see [2].

3. References

3.1. Normative

   [KEY]  Bradner, S., "Key words", BCP 14, RFC 2119.

4. Author's Address

   A. Author
"""


def test_pages_are_joined_and_only_the_body_is_read() -> None:
    sections, labels = parse_rfc(RFC)
    assert list(sections) == [
        ("Abstract", "A short text with a long sentence that the end of the first page cuts and the second page ends."),
        ("1 Introduction", "The keywords are in [KEY] and [RFC 2119].\n\n| left | right |"),
        ("1.1 Purpose", "Numbered and indented."),
        ("2 Security Considerations", "None, see [2]."),
    ]
    assert labels == {"KEY"}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("See [KEY], [2] and [NOTE].", "See [CITE], [2] and [NOTE]."),
        ("RFC 1034, RFC 1035 and RFC2181 obsolete IEN-116.", "[CITE] obsolete [CITE]."),
        ("RFCs 2821/2822 at http://www.ietf.org/rfc/rfc2821.txt now", "[CITE] at [CITE] now"),
        ("[KEY][RFC2119]", "[KEY][CITE]"),
        ("The year 1997 and port 25 stay.", "The year 1997 and port 25 stay."),
    ],
)
def test_citations_are_masked(text: str, masked: str) -> None:
    assert mask_rfcs(text, {"KEY"}) == masked


def recorded(*ids: str) -> Recorded:
    return Recorded(ids, ["000000"] * len(ids), {}, {}, [], {}, {}, "")


def test_titles_come_from_json_pages_or_from_the_index() -> None:
    page = {"title": " In JSON ", "pub_date": "May 1990", "pub_status": "UNKNOWN", "source": "Legacy"}
    page |= {"keywords": [], "obsoletes": ["RFC1"], "updates": []}
    index = """<rfc-index xmlns="https://www.rfc-editor.org/rfc-index"><rfc-entry><doc-id>RFC0002</doc-id>
    <title>In the index</title><date><month>March</month><year>1997</year></date><keywords><kw>key</kw></keywords>
    <updates><doc-id>RFC0001</doc-id></updates><publication-status>BEST CURRENT PRACTICE</publication-status>
    <wg_acronym>names</wg_acronym></rfc-entry></rfc-index>"""
    files = {"rfc1.txt": RFC.encode(), "rfc2.txt": RFC.encode()}
    metadata = {"rfc1.json": json.dumps(page).encode(), "rfc-index.xml": index.encode()}
    first, second = RECIPE.documents(recorded("rfc1", "rfc2", "rfc3"), files | metadata)
    assert (first["id"], first["title"], second["id"], second["title"]) == ("rfc1", "In JSON", "rfc2", "In the index")
    assert second["meta"] == {
        "number": 2,
        "date": "March 1997",
        "status": "BEST CURRENT PRACTICE",
        "wg": "names",
        "keywords": ["key"],
        "obsoletes": [],
        "updates": ["RFC0001"],
    }


def test_texts_without_titles_are_refused_with_the_next_step() -> None:
    with pytest.raises(FetchError, match=r"rfc1 is in neither rfc1.json nor rfc-index.xml; put https://"):
        list(RECIPE.documents(recorded("rfc1"), {"rfc1.txt": RFC.encode()}))
    with pytest.raises(FetchError, match=r"rfc-index.xml cannot be read"):
        list(RECIPE.documents(recorded("rfc1"), {"rfc1.txt": b"x", "rfc-index.xml": b"<html>"}))
    with pytest.raises(FetchError, match=r"rfc1.json cannot be read"):
        list(RECIPE.documents(recorded("rfc1"), {"rfc1.txt": b"x", "rfc1.json": b"<html>"}))
