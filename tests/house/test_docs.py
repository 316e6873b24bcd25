"""What the pages for people say of the code is true, and each says for whom it is."""

import re
from pathlib import Path

import pytest
from imports import PACKAGES, graph

import unrolled

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_first_for_whom_it_is(page: Path) -> None:
    title, first = page.read_text(encoding="utf-8").split("\n\n")[:2]
    assert title.startswith("# ")
    assert first.startswith("For ")


def test_the_way_of_a_submission_is_as_the_design_tells_it() -> None:
    way = re.findall(r"^\d+\. `([\w/]+)\.py`: ", DESIGN, re.MULTILINE)
    assert 10 < len(way) <= 14
    modules = [f"unrolled_grader.{file.replace('/', '.')}" for file in way]
    imports = graph("unrolled_grader")
    assert set(modules) <= set(imports)
    for number, module in enumerate(modules[1:], 1):
        assert any(module in imports[before] for before in modules[:number]), f"nothing above imports {module}"


def test_every_module_of_the_grader_has_its_place_in_the_table_of_rooms() -> None:
    rows = dict(re.findall(r"^\| (`\w+/`|the root) \| [^|]+ \| (.+) \|$", DESIGN, re.MULTILINE))
    grader = PACKAGES["unrolled_grader"]
    for row, cell in rows.items():
        folder = grader if row == "the root" else grader / row.strip("`/")
        files = {file.stem for file in folder.glob("*.py")} - {"__init__"}
        named = set(re.findall(r"`(\w+)`", cell))
        assert files == named, row


def test_every_page_means_this_version_and_names_what_is_there() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(\d[^]]*)\] - (\S+)$", changes, re.MULTILINE)
    cited = dict(re.findall(r"^(version|date-released): (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE))
    assert newest is not None
    assert [*newest.groups()] == [unrolled.__version__, cited["date-released"]]
    assert cited["version"] == unrolled.__version__
    for page in [*PAGES, *ROOT.glob("*.md")]:
        text = page.read_text(encoding="utf-8")
        assert set(re.findall(r"unrolled-(\d[\w.]*)-py3", text)) <= {unrolled.__version__}, page.name
    for page in ROOT.glob("*.md"):  # the site's tests follow those of docs/
        for link in re.findall(r"\]\(([\w./-]+)[)#]", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
