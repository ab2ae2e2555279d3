from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from benchmarks.report import ReportError, main, pictures_of
from benchmarks.runs import write_run
from benchmarks.tables.pictures import PICTURES, THEMES, Picture, drawn_picture, panels
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run

TABLE = """
| System | pets (2) | cars (2) | p |
| --- | --- | --- | --- |
| words | 0.500 [0.400, 0.600] | 0.300 [0.200, 0.400] ± 0.01 | 0.1 |
| a < b | 0.250 [0.200, 0.300] | - |  |

| Other | pets (2) |
| --- | --- |
| words | 0.1 [0.0, 0.2] |
"""
PICTURE = Picture("retrieval", ("System",), title="nDCG")


def test_a_picture_has_the_intervals_of_a_table_and_of_no_other() -> None:
    assert panels(PICTURE, TABLE) == {
        "pets (2)": {"words": (0.5, 0.4, 0.6), "a < b": (0.25, 0.2, 0.3)},
        "cars (2)": {"words": (0.3, 0.2, 0.4)},
    }
    by_system = Picture("retrieval", ("p",), "pets (2)", ("System",))
    assert panels(by_system, TABLE) == {"words": {"0.1": (0.5, 0.4, 0.6)}, "a < b": {"": (0.25, 0.2, 0.3)}}
    with pytest.raises(ValueError, match="'words' is twice in a panel of retrieval"):
        panels(PICTURE, TABLE + TABLE)
    assert drawn_picture(PICTURE, "no table", "light") == ""


def test_dots_and_intervals_stand_at_their_values_in_both_themes() -> None:
    light, dark = (drawn_picture(PICTURE, TABLE, theme) for theme in THEMES)
    shapes = [re.sub(r'(fill|stroke)="#\w+"', "", picture) for picture in (light, dark)]
    assert shapes[0] == shapes[1] and light != dark
    root = ElementTree.fromstring(light)
    words = {text.text: text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"words", "a < b", "pets (2)", "cars (2)", "nDCG", "0.2", "0.6"} <= words.keys()
    first = next(iter(root.iter("{http://www.w3.org/2000/svg}circle")))
    line = next(one for one in root.iter("{http://www.w3.org/2000/svg}line") if one.get("stroke-width") == "2")
    place = {name: float(line.attrib[name]) for name in ("x1", "x2")}
    assert float(first.attrib["cx"]) == pytest.approx((place["x1"] + place["x2"]) / 2, abs=0.1)
    assert (first.get("fill"), line.get("stroke")) == (THEMES["light"][3],) * 2


def test_check_fails_until_the_pictures_of_a_page_are_drawn(tmp_path: Path, origin: Origin) -> None:
    page = tmp_path / "page.md"
    page.write_text('<source srcset="pictures/retrieval-dark.svg">\n<!-- results:retrieval -->\n<!-- /results -->\n')
    write_run(made_run("bm25", [0.25, 0.75], origin, "proposals"), tmp_path / "results")
    options = ["--page", str(page), "--results", str(tmp_path / "results")]
    assert CliRunner().invoke(main, options).exit_code == 0
    assert CliRunner().invoke(main, [*options, "--check"]).exit_code == 0
    picture = tmp_path / "pictures" / "retrieval-light.svg"
    picture.write_text(picture.read_text().replace("bm25", "bm24"))
    stale = CliRunner().invoke(main, [*options, "--check"])
    assert (stale.exit_code, "these files differ from what the runs give: retrieval-light.svg" in stale.stderr) == (
        1,
        True,
    )
    with pytest.raises(ReportError, match="there is no picture 'cats'; name one of retrieval, peers"):
        pictures_of(page, 'srcset="pictures/cats-dark.svg"', [])
    assert all(len(one.labels) for one in PICTURES.values())
