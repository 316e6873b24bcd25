"""The feedback page shows what was handed in and what the judge found, and nothing in it acts or loads."""

import re
import time
from html.parser import HTMLParser

import hostile
import pytest
from hostile import AWAY, BUNDLES, DEED, FORMULA, GRADES, IMITATION, MARKDOWN, MARKUP, TABLE
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from unrolled_grader.results import feedback, inert, pictures


class Tags(HTMLParser):
    """Every tag of a page with its attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_inert(markup: str) -> None:
    """By a list of what may be there, other than the sanitizer's own."""
    for tag, attributes in Tags(markup).tags:
        assert tag in inert.TAGS
        allowed = "alt class colspan height href open src style title width"
        assert attributes.keys() <= set(allowed.split())
        assert re.match(r"https?://|$", attributes.get("href", ""))
        assert re.match(r"data:image/(png|jpeg|gif);base64,|$", attributes.get("src", ""))
        assert attributes.get("class", "tex") == "tex" or tag in ("span", "p")
        assert not re.search(r"url|position|background", attributes.get("style", ""))


def shown(**bundle: object) -> str:
    data = {kind.replace("_", "/"): content for kind, content in bundle.items()}
    return inert.output(new_output("display_data", data=data))


def page_of(*cells: NotebookNode) -> str:
    return feedback.page(new_notebook(cells=list(cells)), {})


@pytest.mark.parametrize("markup", MARKUP)
def test_html_is_made_inert_and_a_browser_reads_what_was_let_through(markup: str) -> None:
    """Were it read otherwise the second time, something could have hidden the first."""
    assert_inert(shown(text_html=markup, text_plain="plain"))
    once = inert.clean(markup)
    assert inert.clean(once) in (once, inert.NOT_SHOWN)


@pytest.mark.parametrize("source", MARKUP + MARKDOWN)
def test_markdown_is_made_inert(source: str) -> None:
    assert_inert(inert.markdown(source))


@pytest.mark.parametrize("bundle", BUNDLES)
def test_every_kind_of_output_is_made_inert(bundle: dict[str, object]) -> None:
    markup = inert.output(new_output("display_data", data=bundle))
    assert_inert(markup)
    assert "text/plain" not in bundle or "<img" in markup or "<pre>" in markup


def test_what_is_dropped_leaves_its_plain_text() -> None:
    texts = [inert.output(new_output("display_data", data=bundle)) for bundle in BUNDLES]
    for still in ("javascript stood here", "a vector picture", "a document", "Button(", "no picture", "too large"):
        assert sum(still in text for text in texts) == 1
    assert "where HTML is empty" in texts[-1]


CARRIED = f'<img alt="a" src="data:image/png;base64,{hostile.png()}">'


@pytest.mark.parametrize(
    ("markup", "cleaned"),
    [
        (TABLE, TABLE),
        ('<a href="https://numpy.org/doc">NumPy</a>', '<a href="https://numpy.org/doc">NumPy</a>'),
        (CARRIED, CARRIED),
        ('<p style="text-align: right; position: fixed">1</p>', '<p style="text-align:right">1</p>'),
        (f'<p style="text-align: url({AWAY}/a); font-weight: bold">1</p>', "<p>1</p>"),
        # once `&copy` in an address became a sign of its own
        ('<a href="https://x.org/?a=1&copy=2">a</a>', '<a href="https://x.org/?a=1&amp;copy=2">a</a>'),
        ('<a href="&#106;avascript:1">a</a>', "<a>a</a>"),
        ("<style>p { color: red }</style><script>let x</script><p>a</p>", "<p>a</p>"),
        ("<button>x</button><title>y</title><textarea>z</textarea>a", "a"),
        ("<b>x" * 6000, inert.NOT_SHOWN),
    ],
)
def test_honest_html_stays_and_the_rest_goes(markup: str, cleaned: str) -> None:
    assert inert.clean(markup) == cleaned


@pytest.mark.parametrize(
    ("markup", "page"),
    [
        ("a &lt; b", "<div>a &lt; b</div>"),
        (CARRIED, f"<div>{CARRIED}</div>"),
        ("<table><tr><td> </td></tr></table>", "<pre>plain</pre>"),
        ("<b>x" * 6000, "<pre>plain</pre>"),
        ("&lt;" * 6000, "<pre>plain</pre>"),
        ("x" * 400_000, "<pre>plain</pre>"),
    ],
)
def test_html_without_text_or_end_gives_way_to_plain_text(markup: str, page: str) -> None:
    assert shown(text_html=markup, text_plain="plain") == page


def test_pictures_show_with_their_words() -> None:
    assert 'alt="a blue rectangle"' in shown(image_png=hostile.png(), text_plain="a blue rectangle")
    assert pictures.picture(hostile.bomb()) == ""
    assert pictures.picture(hostile.png(6000, 6000, "1")) == ""


def test_formulas_can_be_read_as_tex() -> None:
    markup = inert.markdown(f"Inline ${FORMULA}$ and\n\n$$\n{FORMULA}\n$$\n\n$a_1 * b_2 * c_3$")
    assert f'<code class="tex">{FORMULA}</code>' in markup
    assert f'<div class="tex">{FORMULA}</div>' in markup
    assert '<code class="tex">a_1 * b_2 * c_3</code>' in markup
    assert FORMULA in shown(text_latex=f"$\\displaystyle {FORMULA}$")


@pytest.mark.parametrize(
    ("source", "markup"),
    [
        ("```python\nif a < b:\n    x\n```", "<pre><code>if a &lt; b:\n    x\n</code></pre>\n"),
        ("$a<b>c$", '<p><code class="tex">a&lt;b&gt;c</code></p>\n'),
        ("$$a<b>c$$", '<p></p><div class="tex">a&lt;b&gt;c</div><p></p>\n'),
    ],
)
def test_code_and_formulas_stay_as_typed(source: str, markup: str) -> None:
    assert inert.markdown(source) == markup


def test_colours_stay_other_escapes_go_and_long_text_is_cut() -> None:
    red = '<pre><span class="ansi-red-fg">red</span>home�</pre>'
    assert inert.terminal("\x1b[31mred\x1b[0m\x1b[2J\x1b[Hhome\0") == red
    text = inert.terminal("x" * 1_000_000)
    assert len(text) < 1.1 * inert.TEXT_LIMIT
    assert "980,000 more characters" in text


def test_the_page_has_no_script_and_loads_nothing() -> None:
    page = feedback.page(hostile.notebook(), GRADES)
    parsed = Tags(page)
    names = {tag for tag, _ in parsed.tags}
    assert names.isdisjoint({"script", "link", "iframe", "object", "form", "input", "svg", "base"})
    assert page.count("<style>") == 1
    assert not any(name.startswith("on") for _, attributes in parsed.tags for name in attributes)
    assert re.search(r"url\(|@import", page[: page.index("</style>")]) is None
    (policy,) = [named["content"] for tag, named in parsed.tags if tag == "meta" and "http-equiv" in named]
    assert policy == (
        "default-src 'none'; script-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'"
    )
    assert all(attributes["src"].startswith("data:") for tag, attributes in parsed.tags if "src" in attributes)
    assert len(page) < 1_000_000
    assert DEED in parsed.text  # the source of the code is shown, as text


def test_only_the_judge_has_the_judges_frame() -> None:
    page = feedback.page(hostile.notebook(), GRADES)
    assert page.count('class="judge"') == 1
    frame = page[page.index('class="judge"') :]
    frame = frame[: frame.index("</div>")]
    assert "1 of 2 points, fail" in frame
    assert "&lt;b&gt;differs" in frame
    assert page.count(IMITATION) >= 2  # shown, in frames of the notebook's own
    assert IMITATION not in frame


def test_scores_comments_and_penalty_stand_on_the_page() -> None:
    text = Tags(feedback.page(hostile.notebook(), GRADES)).text
    assert "02_convolution: 3 of 5 points" in text
    assert "x: 0 of 5 points" in feedback.page(new_notebook(), {"notebook": "x", "score": -2.0, "max_score": 5.0})
    assert "Handed in late: 0.5 points less." in text
    assert "conv2d_gemm: 1 of 3 points" in text
    assert "explain_gemm: 2 of 2 points" in text
    assert "Well said." in text


def test_a_hostile_grade_id_and_half_a_character_stay_text() -> None:
    for name in (f'"><script>{DEED}</script>', "\ud800"):
        cell = new_code_cell(f"'{name}'", metadata=hostile.graded(name, 0, 1))
        page = feedback.page(new_notebook(cells=[cell, new_markdown_cell("\ud800")]), {"notebook": "<script>"})
        assert b"<script" not in page.encode("utf-8")


def test_a_page_has_an_end() -> None:
    """An output larger than the rest of the page is left out; what follows is shown."""
    outputs = [new_output("stream", text="&" * 20_000) for _ in range(200)]
    page = page_of(new_code_cell("", outputs=outputs), new_markdown_cell("The end."))
    assert len(page) < 1.2 * feedback.PAGE_LIMIT
    assert "does not show" in page
    assert "The end." in page


@pytest.mark.parametrize("text", ["a.", "%%html\n<"])
def test_colours_take_bounded_work_and_the_text_stays(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lexer's time grows with the square of a cell's length, so cells and pages have a limit."""
    looked_at: list[int] = []
    monkeypatch.setattr(feedback, "_coloured", lambda source: looked_at.append(len(source)) or source)
    long, short = text * 30_000, (text * 5_000)[:5_000]
    page = page_of(*map(new_code_cell, [long] + [short] * 100))
    assert max(looked_at) <= 5_000
    assert sum(looked_at) <= feedback.COLOURED_LIMIT
    assert f"({len(long) - inert.TEXT_LIMIT:,} more characters)" in page
    assert page.count("<section") == 101


def test_python_magics_and_other_text_are_coloured() -> None:
    source = "%time f(1)\n!ls\ndef f(x):\n    return 5 % x  # five"
    page = page_of(new_code_cell(source))
    assert '<span class="cp">%time f(1)' in page
    assert '<span class="k">def</span>' in page
    assert '<span class="c1"># five</span>' in page


@pytest.mark.parametrize("markup", [">" * 290_000, ("<a b=" + "=x " * 18) * 4900, "<div>" * 4000], ids=range(3))
def test_html_takes_bounded_work(markup: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of these takes up to half a minute, and a notebook may hold hundreds: then their plain text is shown."""
    efforts: list[int] = []
    monkeypatch.setattr(inert, "clean", lambda text: efforts.append(inert.effort(text)) or "shown")
    outputs = [new_output("display_data", data={"text/html": markup, "text/plain": "plain"}) for _ in range(20)]
    honest = new_output("display_data", data={"text/html": TABLE, "text/plain": "plain"})
    page = page_of(new_code_cell("", outputs=[*outputs, honest]))
    assert sum(efforts) <= feedback.EFFORT_LIMIT
    assert inert.effort(TABLE) in efforts
    assert page.count("plain") >= 20 - len(efforts)


def test_markdown_takes_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    efforts: list[int] = []
    monkeypatch.setattr(inert, "markdown", lambda text, files: efforts.append(inert.effort(text)) or text)
    page = page_of(*(new_markdown_cell("<div>" * 4000) for _ in range(50)))
    assert 0 < sum(efforts) <= feedback.EFFORT_LIMIT
    assert "&lt;div&gt;" in page


def test_a_picture_that_is_named_often_is_not_repeated() -> None:
    """A thousand times five megabytes."""
    answer = new_markdown_cell("![a](attachment:a.png)" * 900, attachments={"a.png": {"image/png": "A" * 5_000_000}})
    assert len(page_of(answer)) < 100_000


@pytest.mark.parametrize(
    "markup",
    [
        f'<b title="{"a" * 290_000}"></b>',
        f'<b title="{"<img " * 4000}{"a" * 270_000}"></b>',
        ">" * 300_000,
        "<a b=" * 4900 + "=x " * 80_000,
        "".join(f"<b title={number}><p>x" for number in range(900)),
    ],
    ids=["a long attribute", "tags in an attribute", "ends of tags", "attributes without end", "tags without end"],
)
def test_one_piece_of_html_takes_bounded_time(markup: str) -> None:
    """Each took from ten seconds to ten minutes of CPU time."""
    before = time.process_time()
    page = shown(text_html=markup, text_plain="plain")
    assert time.process_time() - before < 8
    assert page == "<pre>plain</pre>"


def test_cells_that_no_class_shares_are_not_kept() -> None:
    kept = feedback._markdown.cache_info().currsize
    page_of(new_markdown_cell("word " * feedback.SOURCE_LIMIT), new_markdown_cell("short"), new_markdown_cell("short"))
    assert feedback._markdown.cache_info().currsize == kept + 1
