"""Links from the first use of a term on each page to the glossary: a small Sphinx extension.

Pages of docs/ and api/ are left alone: networks and hosts are other things there. So is what stands above the first
heading below a page's title: nobody looks up every word of a first paragraph.

The terms are those of the `glossary` directive in glossary.md: each entry is one or more lines of names (English, an
abbreviation, Japanese), then an indented explanation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

PAGE = "glossary"
OPEN, CLOSE = ":::{glossary}", ":::"
NOT_INSIDE = (nodes.literal, nodes.FixedTextElement, nodes.title, nodes.reference, nodes.raw, pending_xref)
"""Code, headings and links; in these nothing is linked."""


def entries(source: str) -> list[tuple[str, ...]]:
    """Return the names of each entry of a glossary.md, in order: `("im2col", "image to column", "…")`."""
    found, names, inside = list[tuple[str, ...]](), list[str](), False
    for line in source.splitlines():
        if line.strip() in (OPEN, CLOSE):
            inside = line.strip() == OPEN
        elif inside and line and not line.startswith((" ", ":")):
            names.append(line.strip())
        elif inside and names:
            found.append(tuple(names))
            names = []
    return found


def pattern(names: list[str]) -> re.Pattern[str]:
    """Return a pattern for any of the names as whole words, capitalized or plural too; it tries longer names first."""
    longest = sorted(names, key=len, reverse=True)
    words = "|".join(r"[ \n-]".join(map(re.escape, re.split("[ -]", name))) for name in longest)
    return re.compile(rf"(?<![\w-])({words})(?:s|es)?(?![\w-])", re.IGNORECASE)


def name_of(found: str, names: Mapping[str, str]) -> str:
    """Return the name in `names` (by its lower case, with spaces for hyphens) that was found, perhaps in the plural."""
    plain = _plain(found)
    return next(names[form] for form in (plain, plain[:-1], plain[:-2]) if form in names)


def _plain(name: str) -> str:
    return re.sub(r"[\s-]", " ", name.lower())


class LinkFirstUse(SphinxTransform):
    """Turns the first use of each entry on a page into a link to the glossary."""

    default_priority = 700  # after the text is parsed, before links are resolved

    def apply(self, **kwargs: Any) -> None:
        if self.env.docname == PAGE or self.env.docname.startswith(("docs/", "api/")):
            return
        chapters = (part for page in self.document.children for part in page.children)
        link_first_uses((part for part in chapters if isinstance(part, nodes.section)), self.config.glossary_entries)


def link_first_uses(parts: Iterable[nodes.Node], entries: list[tuple[str, ...]]) -> None:
    """Put a link to the glossary around the first use of each entry, under any of its names, in parts of a page."""
    left = {name: entry for entry in entries for name in entry}
    for text in [text for part in parts for text in part.findall(nodes.Text)]:
        if left and not _inside(text):
            pieces = list(_pieces(str(text), left))
            if len(pieces) > 1:
                text.parent.replace(text, pieces)


def _inside(node: nodes.Node | None) -> bool:
    return node is not None and (isinstance(node, NOT_INSIDE) or _inside(node.parent))


def _pieces(text: str, left: dict[str, tuple[str, ...]]) -> Iterator[nodes.Node]:
    """The text cut at first uses. Entries that were found are taken out of `left` (name -> its entry)."""
    start = 0
    while left and (found := pattern(list(left)).search(text, start)):
        name = name_of(found[0], {_plain(each): each for each in left})
        for each in left[name]:
            left.pop(each, None)
        yield nodes.Text(text[start : found.start()])
        link = pending_xref("", refdomain="std", reftype="term", reftarget=name, refexplicit=True, refwarn=True)
        link += nodes.inline("", found[0], classes=["xref", "std", "std-term"])
        yield link
        start = found.end()
    yield nodes.Text(text[start:])


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the glossary's setting and links to Sphinx, which calls this when it loads the extension."""
    app.add_config_value("glossary_entries", [], "env", types=frozenset({list}))
    app.add_transform(LinkFirstUse)
    app.connect("config-inited", _read_glossary, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _read_glossary(app: Sphinx, config: Any) -> None:
    config.glossary_entries = entries(Path(app.srcdir, f"{PAGE}.md").read_text(encoding="utf-8"))
