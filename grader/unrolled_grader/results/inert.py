"""What a student's notebook may show in somebody else's browser: text, pictures that carry their data, plain tables.

`document` is the page around it, for feedback, report and near-copies, `table` what stands in all of them.

Everything else is dropped: scripts, event handlers, frames, forms, styles, classes, ids, and whatever would load
something. What passes is on a list; nothing is searched for what is bad. Hostile input costs bounded time: what is too
long, or what the parsers cannot take, is shown as plain text or not at all.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import nh3
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.filters import ansi2html
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from unrolled_grader.results.pictures import PLACE, Pictures, picture

POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'none'; img-src data:; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">"
)
"""A second safeguard: were something to come through, a browser would still run nothing and load nothing."""
TEXT_LIMIT = 20_000  # characters of one text output
HTML_LIMIT = 300_000  # characters of one HTML output; a longer one is passed over for the output's next form
TAG_LIMIT = 5_000
"""Tags and entities in one piece of HTML: the parser's time grows with the square of how deep tags nest."""
EFFORT_LIMIT = 25 * 10**7
"""Of parsing one piece of HTML, as `effort` counts it: of the worst there is, four seconds and half a gigabyte.

A table of 60 x 20 numbers takes four fifths of it.
"""
PLAIN_EFFORT = 1_000  # what a character takes beside the tags
MARKDOWN_LIMIT = 20_000  # characters of one markdown text; a longer one is shown as it was typed
NOT_SHOWN = '<p class="quiet">(an output that this page does not show)</p>'

_words = re.compile(r"\w+").findall
TAGS = set(
    _words(
        "a abbr b blockquote br caption code col colgroup dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins "
        "kbd li ol p pre q s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var"
    )
)
GONE = set(
    _words(
        "applet audio button canvas embed frame frameset head iframe math noembed noframes noscript object option "
        "plaintext script select style svg template textarea title video xmp"
    )
)
"""Tags that go with all that is in them; of other tags that are not allowed, the text stays."""
PICTURES = ("image/png", "image/jpeg", "image/gif")
STYLES = {"text-align", "vertical-align", "font-weight", "font-style"}
LINK = re.compile(r"(https?://|mailto:)[^\s]", re.IGNORECASE)
DATA_URI = re.compile(r"data:image/(?:png|jpeg|gif);base64,([A-Za-z0-9+/=\s]+)", re.IGNORECASE)
NUMBER = re.compile(r"[0-9]{1,4}")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\ud800-\udfff]")


def document(title: str, style: str, body: str) -> str:
    """Return a whole page that needs nothing but itself. `body` is HTML, `title` text."""
    text = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">{POLICY}<meta name="referrer" '
        'content="no-referrer"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{style}</style></head>\n<body>{body}</body></html>\n"
    )
    return text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate could not be written


def table(head: Sequence[str], rows: Iterable[Iterable[str]], numbers: Collection[int] = ()) -> str:
    """Return a table of cells that are HTML; `numbers` are the columns of numbers."""
    kinds = [' class="number"' if column in numbers else "" for column in range(len(head))]
    top = "".join(f"<th{kind}>{cell}</th>" for kind, cell in zip(kinds, head, strict=True))
    cells = ("".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=True)) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def output(shown: NotebookNode) -> str:
    """Return one output of a code cell as inert HTML."""
    if shown.output_type == "stream":
        return terminal(shown.text)
    if shown.output_type == "error":
        return terminal("\n".join(shown.traceback) or f"{shown.ename}: {shown.evalue}")
    return next(filter(None, _forms(shown.get("data", {}))), NOT_SHOWN)


def terminal(text: Any) -> str:
    """Return text as a terminal shows it, in HTML: colours stay, other escapes and control characters go."""
    return f"<pre>{ansi2html(UNPRINTABLE.sub('�', _cut(_joined(text))))}</pre>"  # type: ignore[no-untyped-call]


def markdown(text: Any, attachments: Mapping[str, Any] | None = None) -> str:
    """Return Markdown as inert HTML; formulas stay TeX, in a frame of their own."""
    pictures = Pictures(attachments or {})
    source = pictures.with_placeholders(_joined(text))
    if len(source) > MARKDOWN_LIMIT:
        return terminal(pictures.in_words(source))
    try:
        return pictures.put_back(_clean(MarkdownWithMath(renderer=_Renderer()).render(source)))
    except Exception:  # deep nesting: nothing that is typed stops the page
        return terminal(pictures.in_words(source))


@pass_context
def markdown_in_page(context: Context, text: Any) -> str:
    """Return Markdown as inert HTML, with the pictures of its cell: the filter of nbgrader's templates."""
    return markdown(text, context.get("cell", {}).get("attachments"))


def clean(markup: Any) -> str:
    """Return HTML without anything that acts, loads, or reaches out of its place."""
    try:
        return _clean(str(markup))
    except Exception:  # too much, or nested so deeply that the parsers give up
        return NOT_SHOWN


def effort(*texts: str) -> int:
    """Return an upper bound of what parsing these texts takes: each tag may have the parser repeat all the text."""
    return sum(len(text) * (text.count("<") + text.count(">") + PLAIN_EFFORT) for text in texts)


def _clean(markup: str) -> str:
    """Leave of HTML what runs and loads nothing. Raises ValueError for too much of it, or what the parser raises."""
    tags = markup.count("<") + markup.count("&")
    if len(markup) > HTML_LIMIT or tags > TAG_LIMIT or effort(markup) > EFFORT_LIMIT:
        raise ValueError(f"HTML of {len(markup)} characters with {markup.count('<')} tags is too much to show")
    cleaned = _cleaner.clean(UNPRINTABLE.sub("", markup))
    if len(cleaned) > HTML_LIMIT:  # a bold that nobody closed stands in each paragraph after it
        raise ValueError(f"HTML that unfolds into {len(cleaned)} characters is too much to show")
    return cleaned


class _Renderer(IPythonRenderer):
    """Markdown to HTML that `clean` has still to go over: formulas and code as they were typed."""

    def __init__(self) -> None:
        super().__init__(escape=False, exclude_anchor_links=True)

    def block_code(self, code: str, info: str | None = None) -> str:
        return f"<pre><code>{html.escape(code)}</code></pre>\n"

    def block_math(self, body: str) -> str:
        return f'<div class="tex">{html.escape(body.strip())}</div>'

    def inline_math(self, body: str) -> str:
        return f'<code class="tex">{html.escape(body.strip())}</code>'

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(f"\\begin{{{name}}}{body}\\end{{{name}}}")


def _inert_value(tag: str, name: str, value: str) -> str | None:
    """The value that an attribute on the list may have; None if it may not stay."""
    if name == "href":
        return value if LINK.match(value) else None
    if name == "src":
        found = DATA_URI.fullmatch(value)
        return value if PLACE.fullmatch(value) else (found and picture(found[1])) or None
    if name == "style":
        return value if "(" not in value else None  # no function, so no url()
    return value if name in ("alt", "title", "class", "open") or NUMBER.fullmatch(value) else None


_cleaner = nh3.Cleaner(
    tags=TAGS,
    clean_content_tags=GONE,
    attributes={
        "*": {"alt", "title", "style", "open", "colspan", "rowspan", "start", "width", "height"},
        "a": {"href"},
        "img": {"src"},
    },
    attribute_filter=_inert_value,
    tag_attribute_values={"code": {"class": {"tex"}}, "div": {"class": {"tex"}}},
    url_schemes={"http", "https", "mailto", "data"},  # which of them where, says _inert_value
    filter_style_properties=STYLES,
    link_rel=None,
)


def _forms(data: Mapping[str, Any]) -> Iterator[str]:
    """The forms of an output as inert HTML, the first choice first; some are empty."""
    for uri in filter(None, (picture(_joined(data.get(kind, ""))) for kind in PICTURES)):
        alt = html.escape(_joined(data.get("text/plain", "a picture"))[:1000])
        yield f'<img src="{uri}" alt="{alt}">'
    cleaned = clean(_joined(data.get("text/html", "")))
    seen = re.search("<img [^<>]*src=", cleaned) or re.search(r"[^\s<>]", re.sub("<[^<>]*>", "", cleaned))
    yield f"<div>{cleaned}</div>" if seen and cleaned != NOT_SHOWN else ""
    yield markdown(data["text/markdown"]) if data.get("text/markdown") else ""
    formula = _cut(_joined(data.get("text/latex", ""))).strip()
    yield f'<div class="tex">{html.escape(formula.strip("$").strip())}</div>' if formula else ""
    yield terminal(data["text/plain"]) if data.get("text/plain") else ""


def _joined(text: Any) -> str:
    """nbformat allows a list of lines wherever it allows a text."""
    return "".join(map(str, text)) if isinstance(text, Sequence) and not isinstance(text, str) else str(text)


def _cut(text: str) -> str:
    more = len(text) - TEXT_LIMIT
    return text if more <= 0 else f"{text[:TEXT_LIMIT]}\n… ({more:,} more characters)"
