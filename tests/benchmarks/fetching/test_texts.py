"""Texts of the sources of the corpora: pages, papers and proposals become sections, and citations are masked."""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest

from benchmarks.datasets import DATA
from benchmarks.fetching.aila_casedocs import RECIPE as AILA
from benchmarks.fetching.clscisumm import RECIPE as CLSCISUMM
from benchmarks.fetching.clscisumm import parse_paper, parse_summary
from benchmarks.fetching.proposals import RECIPE as PROPOSALS
from benchmarks.fetching.proposals import mask_proposals, parse_proposal
from benchmarks.fetching.rfc import RECIPE as RFCS
from benchmarks.fetching.rfc import mask_rfcs, parse_rfc
from benchmarks.fetching.sources import FetchError, Recipe, Recorded
from benchmarks.fetching.wikipedia_seealso import RECIPE as WIKIPEDIA
from benchmarks.fetching.wikipedia_seealso import parse_page

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


def mask_requests(text: str) -> str:
    return mask_rfcs(text, {"KEY"})


@pytest.mark.parametrize(
    ("mask", "text", "masked"),
    [
        (mask_requests, "See [KEY], [2] and [NOTE].", "See [CITE], [2] and [NOTE]."),
        (mask_requests, "RFC 1034, RFC 1035 and RFC2181 obsolete IEN-116.", "[CITE] obsolete [CITE]."),
        (mask_requests, "RFCs 2821/2822 at http://www.ietf.org/rfc/rfc2821.txt now", "[CITE] at [CITE] now"),
        (mask_requests, "[KEY][RFC2119]", "[KEY][CITE]"),
        (mask_requests, "The year 1997 and port 25 stay.", "The year 1997 and port 25 stay."),
        (mask_proposals, "As PEP 8, PEP 257 and PEP 20 say.", "As [CITE] say."),
        (
            mask_proposals,
            "EIP-155/EIP-158 by https://github.com/ethereum/EIPs/issues/155",
            "[CITE] by [CITE]",
        ),
        (mask_proposals, "Python 3.8 keeps 20 steps.", "Python 3.8 keeps 20 steps."),
        (partial(mask_proposals, lists=False), "XEP-0030 and XEP-0115", "[CITE] and [CITE]"),
    ],
)
def test_citations_are_masked(mask: Callable[[str], str], text: str, masked: str) -> None:
    assert mask(text) == masked


NET = "Training-Set-2019/Task2/From-ScisummNet-2019"
PAPER_FILE, SUMMARY_FILE = f"{NET}/W01-1/Reference_XML/W01-1.xml", f"{NET}/W01-1/summary/W01-1.scisummnet_human.txt"


@pytest.mark.parametrize(
    ("recipe", "name", "key"),
    [
        (PROPOSALS, "peps-ba4deeb/peps/pep-0008.rst", "pep8"),
        (PROPOSALS, "EIPs-f767a1e/EIPS/eip-1559.md", "eip1559"),
        (PROPOSALS, "xeps-3ad7aaa/xep-0030.xml", "xep30"),
        (PROPOSALS, "xeps-3ad7aaa/inbox/xep-0030.xml", ""),
        (PROPOSALS, "peps-ba4deeb/peps/pep-0008/figure.png", ""),
        (WIKIPEDIA, "wikipedia.abstract.en-4f3e897/Page/AC/DC_(band).md", "AC/DC_(band)"),
        (WIKIPEDIA, "wikipedia.abstract.en-4f3e897/Abstract/Abacus.md", ""),
        (CLSCISUMM, f"scisumm-corpus-1dd68e4/data/{PAPER_FILE}", PAPER_FILE),
        (CLSCISUMM, f"scisumm-corpus-1dd68e4/data/{SUMMARY_FILE}", SUMMARY_FILE),
        (CLSCISUMM, "scisumm-corpus-1dd68e4/data/README.md", ""),
        (CLSCISUMM, "scisumm-corpus-1dd68e4/data/X/summary/X.abstract.txt", ""),
        (CLSCISUMM, "scisumm-corpus-1dd68e4/data/LAYSUMM_SAMPLE/x.xml", ""),
        (CLSCISUMM, "scisumm-corpus-1dd68e4/docs/x.xml", ""),
        (AILA, "AILA-1c26652/AILA_2019_dataset/Object_casedocs/C17.txt", "C17"),
        (AILA, "AILA-1c26652/AILA_2019_dataset/Query_doc.txt", "Query_doc.txt"),
        (AILA, "AILA-1c26652/AILA_2019_dataset/Object_statutes/S1.txt", ""),
    ],
)
def test_files_of_a_source_are_known_by_their_names(recipe: Recipe, name: str, key: str) -> None:
    assert recipe.key(name) == key


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
    first, second = RFCS.documents(recorded("rfc1", "rfc2", "rfc3"), files | metadata)
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
        list(RFCS.documents(recorded("rfc1"), {"rfc1.txt": RFC.encode()}))
    with pytest.raises(FetchError, match=r"rfc-index.xml cannot be read"):
        list(RFCS.documents(recorded("rfc1"), {"rfc1.txt": b"x", "rfc-index.xml": b"<html>"}))
    with pytest.raises(FetchError, match=r"rfc1.json cannot be read"):
        list(RFCS.documents(recorded("rfc1"), {"rfc1.txt": b"x", "rfc1.json": b"<html>"}))


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


def test_a_page_has_the_title_and_the_address_of_its_file() -> None:
    (document,) = WIKIPEDIA.documents(recorded("AC/DC_(band)", "Missing"), {"AC/DC_(band)": PAGE.encode()})
    assert (document["id"], document["title"]) == ("AC/DC_(band)", "AC/DC (band)")
    assert document["meta"] == {"url": "https://en.wikipedia.org/wiki/AC/DC_(band)"}


PAPER = """\
<PAPER>
  <S sid="0">A Tagger</S>
  <ABSTRACT>
    <S sid="1" ssid="1">We tag words.</S>
  </ABSTRACT>
  <SECTION title="1 Introduction " number="1">
    <S sid="2" ssid="1">Tags &amp;amp; words with p<q and r & s.</S>
    <S sid="3" ssid="2">A second  sentence.</S>
  </SECTION>
  <SECTION title="Acknowledgements" number="2">
    <S sid="4" ssid="1">Thanks.</S>
  </SECTION>
</PAPER>
"""


def test_a_paper_that_is_no_valid_xml_is_read_by_its_tags() -> None:
    paper = parse_paper(PAPER)
    assert (paper.title, paper.meta) == ("A Tagger", {"abstract": "We tag words."})
    assert paper.sections == (("1 Introduction", "Tags & words with p<q and r & s. A second sentence."),)


def test_a_section_named_abstract_is_the_abstract() -> None:
    paper = parse_paper('<SECTION title="Abstract 1 Introduction" number="1"><S sid="1">Short.</S></SECTION>')
    assert (paper.sections, paper.meta) == ((), {"abstract": "Short."})


def test_summaries_are_plain_or_tagged_lines() -> None:
    assert parse_summary("A Tagger\n\n It tags. \n") == ["A Tagger", "It tags."]
    assert parse_summary('<PAPER><S sid="1">It tags.</S></PAPER>') == ["It tags."]


def test_documents_take_roles_from_the_shipped_facts_and_the_first_file_of_a_paper() -> None:
    facts = replace(recorded("W01-1", "P16-W06"), given={"W01-1": {"roles": ["reference"]}, "P16-W06": {}})
    files = {
        "Test-Set-2016/A/Citance_XML/P16_w06.xml": PAPER,
        "Test-Set-2017/A/Citance_XML/P16_w06.xml": PAPER.replace("A Tagger", "Later"),
        PAPER_FILE: PAPER,
    }
    first, second = CLSCISUMM.documents(facts, {path: text.encode() for path, text in files.items()})
    assert first["meta"] == {"abstract": "We tag words.", "roles": ["reference"], "sets": []}
    assert (second["id"], second["title"]) == ("P16-W06", "A Tagger")


def test_queries_are_summaries_without_the_title_above_them() -> None:
    ids = ["sum:net:W01-1", "sum:cl2017test:W02-2", "sum:cl2018test:W03-3:ann", "sum:cl2017train:W04-4"]
    files = {
        PAPER_FILE: PAPER,
        SUMMARY_FILE: "A Tagger\nIt tags.",
        "Test-Set-2017/W02-2/summary/W02-2.human.summary.txt": "First line.\nSecond line.",
        "Test-Set-2018-Gold/Task2/W03-3_ann.human.txt": "By ann.",
    }
    assert CLSCISUMM.queries
    found = CLSCISUMM.queries(replace(recorded(), query_ids=ids), {path: text.encode() for path, text in files.items()})
    assert [(query["id"], query["sections"]) for query in found] == [
        (ids[0], [{"heading": "", "text": "It tags."}]),
        (ids[1], [{"heading": "", "text": "First line. Second line."}]),
        (ids[2], [{"heading": "", "text": "By ann."}]),
    ]


PEP = """\
PEP: 20
Title: The Zen of Python
Status: Active
Type: Informational
Created: 19-Aug-2004

Abstract
========

Long time Pythoneer Tim Peters succinctly channels the BDFL's guiding
principles for Python's design, see :pep:`8` and `the list <https://mail.python.org/>`__.

.. _a target: https://www.python.org
   on two lines

.. code-block:: python
   :class: good

   import this

References
==========

.. [1] Never read.

Two ``words`` here
------------------

Kept, as it has its own heading.
"""
EIP = """\
---
eip: 20
title: Token Standard
status: Final
type: Standards Track
category: ERC
created: 2015-11-19
---

## Abstract

A [standard](https://example.org) interface for tokens<br> in ![a picture](x.png) contracts.

```js
// not a heading
# transfer(to)
```

## Copyright

Waived by a sentence.

### Below it

Left out as well, it stands below.

## `Methods` of *tokens*

One two three.
"""
XEP = """\
<?xml version='1.0' encoding='UTF-8'?>
<!DOCTYPE xep SYSTEM 'xep.dtd' [
  <!ENTITY % ents SYSTEM 'xep.ent'>
%ents;
]>
<xep><header><title>JID &mdash; Escaping</title><abstract>It escapes what is odd.</abstract>
<status>Draft</status><type>Standards Track</type></header>
<section1 topic='Introduction' anchor='intro'><p>As &xep0030; says<note>Never read.</note>, so it is.</p>
<example caption='x'><![CDATA[<iq type='get'/>]]></example>
<section2 topic='IANA Considerations'><p>Nothing to be done here.</p></section2>
<section2 topic='Rules'><ul><li>One rule.</li> <li>Two rules.</li></ul></section2></section1></xep>
"""


def test_a_pep_becomes_sections_without_markup() -> None:
    parsed = parse_proposal("pep20", PEP)
    assert parsed.title == "The Zen of Python"
    assert parsed.meta == {"status": "Active", "type": "Informational", "created": "19-Aug-2004"}
    assert list(parsed.sections) == [
        (
            "Abstract",
            "Long time Pythoneer Tim Peters succinctly channels the BDFL's guiding principles for Python's design, "
            "see PEP 8 and the list.\n\nimport this",
        ),
        ("Two ``words`` here", "Kept, as it has its own heading."),
    ]


def test_an_eip_keeps_code_and_drops_sections_with_all_below_them() -> None:
    parsed = parse_proposal("eip20", EIP)
    assert (parsed.title, parsed.meta["type"]) == ("Token Standard", "ERC")
    assert list(parsed.sections) == [
        ("Abstract", "A standard interface for tokens in contracts.\n\n// not a heading # transfer(to)"),
        ("Methods of tokens", "One two three."),
    ]


def test_a_xep_is_read_without_its_entity_file() -> None:
    parsed = parse_proposal("xep1", XEP)
    assert parsed.title == "JID mdash Escaping"
    assert parsed.meta == {"status": "Draft", "type": "Standards Track"}
    assert list(parsed.sections) == [
        ("Abstract", "It escapes what is odd."),
        ("Introduction", "As XEP-0030 says, so it is.\n\n<iq type='get'/>"),
        ("Rules", "One rule. Two rules."),
    ]
    assert parse_proposal("xep1", "not a document").sections == ()


def unmasked_parts(corpus: str) -> Iterator[tuple[str, list[tuple[str, str, list[str]]]]]:
    """The id of each document and, for each heading or text with citations: recorded, unmasked, the citations."""
    with gzip.open(DATA / corpus / "unmask.jsonl.gz", "rt", encoding="utf-8") as file:
        masked = {line["id"]: line["masked"] for line in map(json.loads, file)}
    with gzip.open(DATA / corpus / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        for document in map(json.loads, file):
            parts = []
            for section, (headings, texts) in zip(document["sections"], masked[document["id"]], strict=True):
                parts += [(section[name], cited) for name, cited in (("heading", headings), ("text", texts)) if cited]
            yield document["id"], [(part, _unmasked(part, cited), cited) for part, cited in parts]


def _unmasked(part: str, cited: list[str]) -> str:
    left = iter(cited)
    text = re.sub(r"\[CITE\]", lambda _: next(left), part)
    assert next(left, None) is None
    return text


def mask_rfc(_doc_id: str, text: str, cited: list[str]) -> str:
    return mask_rfcs(text, {citation[1:-1] for citation in cited if citation.startswith("[")})


def mask_proposal(doc_id: str, text: str, _cited: list[str]) -> str:
    return mask_proposals(text, lists=not doc_id.startswith("xep"))


@pytest.mark.slow
@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("corpus", "mask", "n_documents", "most", "equal"),
    [
        ("rfc", mask_rfc, 2600, 60, {"rfc959", "rfc4964", "rfc3512", "rfc6280", "rfc9354"}),
        ("proposals", mask_proposal, 1763, 20, {"pep8", "pep13", "eip1559", "eip2929", "xep106"}),
    ],
)
def test_masking_unmasked_text_gives_the_recorded_corpus(
    corpus: str, mask: Callable[[str, str, list[str]], str], n_documents: int, most: int, equal: set[str]
) -> None:
    documents = list(unmasked_parts(corpus))
    wrong = set()
    for doc_id, parts in documents:
        cited = [citation for _, _, own in parts for citation in own]
        if any(mask(doc_id, original, cited) != recorded for recorded, original, _ in parts):
            wrong.add(doc_id)
    assert len(documents) == n_documents
    assert len(wrong) < most, wrong
    assert not equal & wrong
