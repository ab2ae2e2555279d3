from __future__ import annotations

from dataclasses import replace

from benchmarks.fetching.clscisumm import RECIPE, parse_paper, parse_summary
from tests.benchmarks.fetching.test_rfc_text import recorded

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
NET = "Training-Set-2019/Task2/From-ScisummNet-2019"


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


def test_only_papers_and_human_summaries_count() -> None:
    names = [f"{NET}/W01-1/Reference_XML/W01-1.xml", f"{NET}/W01-1/summary/W01-1.scisummnet_human.txt"]
    assert [RECIPE.key(f"scisumm-corpus-1dd68e4/data/{name}") for name in names] == names
    for other in ("data/README.md", "data/X/summary/X.abstract.txt", "data/LAYSUMM_SAMPLE/x.xml", "docs/x.xml"):
        assert RECIPE.key(f"scisumm-corpus-1dd68e4/{other}") == ""


def test_documents_take_roles_from_the_shipped_facts_and_the_first_file_of_a_paper() -> None:
    facts = replace(recorded("W01-1", "P16-W06"), given={"W01-1": {"roles": ["reference"]}, "P16-W06": {}})
    files = {
        "Test-Set-2016/A/Citance_XML/P16_w06.xml": PAPER,
        "Test-Set-2017/A/Citance_XML/P16_w06.xml": PAPER.replace("A Tagger", "Later"),
        f"{NET}/W01-1/Reference_XML/W01-1.xml": PAPER,
    }
    first, second = RECIPE.documents(facts, {path: text.encode() for path, text in files.items()})
    assert first["meta"] == {"abstract": "We tag words.", "roles": ["reference"], "sets": []}
    assert (second["id"], second["title"]) == ("P16-W06", "A Tagger")


def test_queries_are_summaries_without_the_title_above_them() -> None:
    ids = ["sum:net:W01-1", "sum:cl2017test:W02-2", "sum:cl2018test:W03-3:ann", "sum:cl2017train:W04-4"]
    files = {
        f"{NET}/W01-1/Reference_XML/W01-1.xml": PAPER,
        f"{NET}/W01-1/summary/W01-1.scisummnet_human.txt": "A Tagger\nIt tags.",
        "Test-Set-2017/W02-2/summary/W02-2.human.summary.txt": "First line.\nSecond line.",
        "Test-Set-2018-Gold/Task2/W03-3_ann.human.txt": "By ann.",
    }
    assert RECIPE.queries
    found = RECIPE.queries(replace(recorded(), query_ids=ids), {path: text.encode() for path, text in files.items()})
    assert [(query["id"], query["sections"]) for query in found] == [
        (ids[0], [{"heading": "", "text": "It tags."}]),
        (ids[1], [{"heading": "", "text": "First line. Second line."}]),
        (ids[2], [{"heading": "", "text": "By ann."}]),
    ]
