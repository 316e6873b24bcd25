"""Terms: where they come from, what counts as a use of one, and where no link goes."""

import re
from pathlib import Path

import nbformat
import pytest
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.utils import new_document

from unrolled_grader.authoring.site import glossary

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = glossary.entries((ROOT / "site" / "glossary.md").read_text(encoding="utf-8"))
JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|NCHW 形式")

SMALL = """\
Before.

:::{glossary}
:sorted:

GEMM
general matrix multiply
汎用行列積
  A product of matrices.

max-pooling
最大値プーリング
  The largest of each window.
:::

After.
"""


def test_entries_are_the_names_of_the_directive_and_nothing_else():
    assert glossary.entries(SMALL) == [
        ("GEMM", "general matrix multiply", "汎用行列積"),
        ("max-pooling", "最大値プーリング"),
    ]


def test_there_are_enough_terms_each_once_and_each_with_a_japanese_name():
    assert 80 <= len(ENTRIES) <= 190
    names = [name.lower() for entry in ENTRIES for name in entry]
    assert sorted(names) == sorted(set(names))
    assert [entry for entry in ENTRIES if not any(map(JAPANESE.search, entry))] == []


def test_every_term_is_found_in_some_lesson():
    cells = (
        cell.source
        for file in sorted((ROOT / "notebooks").glob("*/*.ipynb"))
        for cell in nbformat.read(file, as_version=4).cells
        if cell.cell_type == "markdown"
    )
    text = "\n".join(cells)
    unused = [entry for entry in ENTRIES if not glossary.pattern(list(entry)).search(text)]
    assert unused == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the strides of x", "strides"),
        ("Max-pooling, too", "Max-pooling"),
        ("max pooling", "max pooling"),
        ("two batches", "batches"),
        ("by mini-batch", None),  # a batch with something before it is another term
        ("a stridency", None),
        ("pre-stride", None),
    ],
)
def test_a_use_is_a_whole_word_in_any_case_and_number(text, found):
    match = glossary.pattern(["stride", "max-pooling", "batch"]).search(text)
    assert (match and match[0]) == found


def linked(source: str, entries: list[tuple[str, ...]]) -> list[tuple[str, str]]:
    """(target, words) of each link that the transform's parts put into these paragraphs of reStructuredText."""
    document = new_document("page", get_default_settings(Parser))
    Parser().parse(source, document)
    before = document.astext()
    glossary.link_first_uses([document], entries)
    assert document.astext() == before, "the text stays as it was"
    return [
        (node["reftarget"], node.astext()) for node in document.findall() if isinstance(node, glossary.pending_xref)
    ]


def test_only_the_first_use_of_an_entry_is_linked_whatever_its_name():
    entries = glossary.entries(SMALL)
    source = "First gemm, then GEMM.\n\nA general matrix multiply. Max-pooling."
    assert linked(source, entries) == [("GEMM", "gemm"), ("max-pooling", "Max-pooling")]


def test_longer_names_come_before_the_shorter_ones_in_them():
    assert linked("A mini-batch, a batch.", [("batch",), ("mini-batch",)]) == [
        ("mini-batch", "mini-batch"),
        ("batch", "batch"),
    ]


def test_nothing_is_linked_in_code_headings_and_links():
    source = "A Gemm\n======\n\n``geMM`` and `gEMM <https://example.org>`__::\n\n    GeMm\n\nThen GEMM."
    assert linked(source, [("GEMM",)]) == [("GEMM", "GEMM")]
    assert linked(source.replace("GEMM", "that"), [("GEMM",)]) == []
