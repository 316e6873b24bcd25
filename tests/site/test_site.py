"""The built site: what is on it, what must not be, and how it is in a browser."""

import importlib
import inspect
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup

from chromium import PATIENCE
from unrolled_grader.authoring.syllabi import SYLLABI

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted(path.stem for path in (ROOT / "lessons").glob("[0-9][0-9]_*.py"))
API = ["ops", "ops.precision", "nn", "check", "journal", "timing", "parallel", "simgpu"]
MADE_BY_SPHINX = {"genindex.html", "search.html"}
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def soups(site):
    """Every page, parsed, by its path on the site."""
    return {
        file.relative_to(site).as_posix(): BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")
        for file in sorted(site.rglob("*.html"))
    }


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def words_of(soup) -> str:
    return squeezed(soup.find("article").get_text())


def test_every_lesson_note_and_doc_has_a_page(soups):
    expected = {f"lessons/{name}.html" for name in LESSONS} | {f"notes/{name}.html" for name in LESSONS}
    expected |= {f"docs/{file.stem}.html" for file in (ROOT / "docs").glob("*.md")}
    expected |= {"index.html", "glossary.html", "syllabi.html", "ladder.html", "notes/index.html", "api/index.html"}
    expected |= {f"api/unrolled.{name}.html" for name in API}
    assert set(soups) - MADE_BY_SPHINX == expected
    assert "an epoch of MNIST" in soups["ladder.html"].find("article").find("img")["alt"]


def test_the_side_bar_has_lessons_once_and_docs_in_the_order_of_the_readme(soups):
    pages = [link["href"] for link in soups["index.html"].select(".sidebar-tree li.toctree-l1 > a")]
    assert pages[: len(LESSONS) + 1] == [*(f"lessons/{name}.html" for name in LESSONS), "glossary.html"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("## More")[2]
    listed = [f"docs/{name}.html" for name in dict.fromkeys(re.findall(r"\]\(docs/([\w-]+)\.md\)", readme))]
    assert [page for page in pages if page in listed] == listed


@pytest.mark.parametrize("name", API)
def test_the_library_is_documented_as_it_is_exported(soups, name):
    module = importlib.import_module(f"unrolled.{name}")
    exported = {
        f"unrolled.{name}.{each}"
        for each in module.__all__
        if inspect.isroutine(thing := getattr(module, each)) or inspect.isclass(thing)
    }
    described = {element["id"] for element in soups[f"api/unrolled.{name}.html"].select("dl.py > dt")}
    assert exported
    assert exported <= described
    assert [
        entry
        for entry in exported
        if not soups[f"api/unrolled.{name}.html"].find(id=entry).find_next_sibling("dd").get_text(strip=True)
    ] == []


def test_no_link_is_broken(site, soups):
    broken = []
    places = {page: {element["id"] for element in soup.find_all(id=True)} for page, soup in soups.items()}
    for page, soup in soups.items():
        for tag, attribute in (("a", "href"), ("img", "src"), ("link", "href"), ("script", "src")):
            for element in soup.find_all(tag, attrs={attribute: True}):
                target = element[attribute]
                if not urlsplit(target).scheme and not _leads_somewhere(site, places, page, target):
                    broken.append(f"{page}: {target}")
    assert broken == []


def _leads_somewhere(site: Path, places, page: str, target: str) -> bool:
    path, fragment = urldefrag(urlsplit(target)._replace(query="").geturl())
    file = (site / page).parent / unquote(path) if path else site / page
    if not file.resolve().is_file():
        return False
    there = places.get(file.resolve().relative_to(site.resolve()).as_posix())
    return not fragment or there is None or unquote(fragment) in there


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_page_shows_stubs_and_the_outputs_of_a_complete_answer(soups, lesson):
    soup = soups[f"lessons/{lesson}.html"]
    assert "raise NotImplementedError" in words_of(soup)
    verdicts = [tag.get_text() for tag in soup.select(".verdict")]
    assert len(verdicts) > 3
    assert not [verdict for verdict in verdicts if verdict.split()[-1] not in ("pass", "deferred", "inconclusive")]
    assert soup.get_text().count("the outputs below it come from a complete") == 1
    assert f'check.start("{lesson}"' in words_of(soup)
    assert "pip install" not in str(soup.select_one(".cell_input"))
    assert len(soup.select("section#the-record li")) >= len(soup.select("h3[id^=exercise], section[id^=exercise]"))


@pytest.mark.parametrize("lesson", LESSONS)
def test_no_answer_and_no_rubric_is_published(site, soups, lesson):
    solution = nbformat.read(ROOT / "solutions" / lesson / f"{lesson}.ipynb", as_version=4)
    regions = re.findall(
        r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", "\n".join(c.source for c in solution.cells), re.S
    )
    published = words_of(soups[f"lessons/{lesson}.html"]).replace("*", "")
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert len(regions) > 1
    for region in regions:
        assert squeezed(region).replace("*", "") not in published
    assert "Rubric" not in published
    assert "BEGIN SOLUTION" not in published + index
    for file in site.glob(f"_downloads/*/{lesson}*.ipynb"):
        assert file.read_bytes() == (ROOT / "notebooks" / lesson / f"{lesson}.ipynb").read_bytes()


def test_no_page_holds_junk_of_the_machine_that_built_it(soups):
    for name in API:
        assert not re.search("ForwardRef|<function|<object|0x[0-9a-f]{6}", words_of(soups[f"api/unrolled.{name}.html"]))
    for lesson in LESSONS:
        source = str(soups[f"lessons/{lesson}.html"])
        assert "data:image/png" not in source
        assert not [folder for folder in ("/tmp/", sys.prefix, str(Path.home())) if folder in source]
        assert "application/vnd.jupyter.widget" not in source
        assert "it/s]" not in source


def test_every_page_is_under_a_megabyte_with_all_its_pictures(site, soups):
    for page, soup in soups.items():
        pictures = {(site / page).parent / image["src"] for image in soup.find_all("img", src=True)}
        total = (site / page).stat().st_size + sum(picture.stat().st_size for picture in pictures)
        assert total < MEGABYTE, f"{page}: {total:,} bytes"


def test_first_uses_are_linked_once_and_never_in_code_headings_or_links(soups):
    for page, soup in soups.items():
        targets = [link["href"] for link in soup.select("article a:has(> .std-term)")]
        assert len(targets) == len(set(targets)), page
        assert not soup.select(":is(h1, h2, h3, h4, code, pre, .finding) .std-term"), page
        assert not soup.select("article section:has(> h1) > :not(section) .std-term"), page
    assert all(len(soups[f"lessons/{name}.html"].select(".std-term")) >= 10 for name in LESSONS)


def test_the_syllabi_select_the_lessons_that_a_class_gets(soups):
    *parts, term = soups["syllabi.html"].select("article section section")
    assert {Path(link["href"]).stem for link in term.select("td a[href^='lessons/']")} == set(LESSONS)
    assert [f"{part.find('h2').get_text().split()[0]}h" for part in parts] == list(SYLLABI)
    for part, syllabus in zip(parts, SYLLABI.values(), strict=True):
        lessons = {Path(link["href"]).stem for link in part.select("td a[href^='lessons/']")}
        assert lessons == set(syllabus.lessons)
        assert syllabus.words in words_of(soups["syllabi.html"])


def test_each_note_gives_minutes_questions_and_misconceptions(soups):
    for lesson in LESSONS:
        headings = [heading.get_text().rstrip("¶#") for heading in soups[f"notes/{lesson}.html"].select("article h2")]
        assert headings[:3] == ["Minute by minute (estimates)", "Ask", "Usual misconceptions"]
        assert {"Show", "Skip", "What goes wrong in the room"} <= set(headings)


ONE_OF_EACH_KIND = ["index.html", "lessons/02_convolution.html", "api/unrolled.nn.html", "search.html"]
"""Pages for axe-core's slowest rule. Colours are those of the theme and of site.css, the same on every page."""
BUT_COLOURS = {
    "resultTypes": ["violations"],
    "rules": {"color-contrast": {"enabled": False}, "region": {"enabled": False}},
}
"""All other rules but `region`, a slow one, which goes with the colours."""


@pytest.fixture
def page(browser):
    """A page as wide as a phone; what its console says and what it asks for is gathered."""
    tab = browser.new_page(viewport={"width": 375, "height": 800})
    tab.set_default_timeout(1000 * PATIENCE)
    tab.errors, tab.asked = [], []
    tab.on("console", lambda message: tab.errors.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: tab.errors.append(str(error)))
    tab.on("request", lambda request: tab.asked.append(request.url))
    yield tab
    tab.close()


def faults(page, options: dict) -> list[str]:
    """What axe-core finds on the page."""
    found = Axe().run(page, options=options).response["violations"]
    return [f"{page.url}: {fault['id']}: {fault['nodes'][0]['html'][:150]}" for fault in found]


def test_every_page_is_quiet_self_contained_accessible_and_fits_a_phone(soups, address, page):
    wrong = []
    for name in soups:
        page.goto(address + name)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        wrong += [f"{name} is {wide} px too wide"] if wide > 0 else []
        wrong += faults(page, BUT_COLOURS)
    assert wrong == []
    assert page.errors == []
    assert [url for url in page.asked if not url.startswith((address, "data:"))] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_have_contrast_in_light_and_dark(address, page, scheme):
    page.emulate_media(color_scheme=scheme)
    backgrounds, wrong = set(), []
    for name in ONE_OF_EACH_KIND:
        page.goto(address + name)
        backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        wrong += faults(page, {"resultTypes": ["violations"], "runOnly": ["color-contrast", "region"]})
    assert wrong == []
    red = int(re.findall(r"\d+", backgrounds.pop())[0])
    assert red > 200 if scheme == "light" else red < 60


FOUND = {
    "unpooling": "glossary.html#term-unpooling",
    "畳み込み": "glossary.html#term-",
    "conv2d_gemm": "lessons/02_convolution.html#index-",
    "nn.Conv2d": "api/unrolled.nn.html#unrolled.nn.Conv2d",
    "memory is a strip": "lessons/01_matrix_parallelism.html#memory-is-a-strip",
}
"""Where the first result leads."""


@pytest.mark.parametrize("served", [True, False], ids=["served", "as files"])
def test_the_search_field_finds_words_names_and_japanese(site, address, page, served):
    page.set_viewport_size({"width": 1280, "height": 800})
    for words, leads_to in FOUND.items():
        page.goto(f"{address if served else site.as_uri() + '/'}index.html")
        page.locator(".sidebar-search").fill(words)
        page.keyboard.press("Enter")
        page.locator("#search-results .search-summary:has-text('finished')").wait_for()
        first = page.locator("#search-results li a").first
        assert str(first.get_attribute("href")).startswith(leads_to), words
    first.click()
    page.locator("article mark, article .highlighted").first.wait_for()
    assert page.errors == [] or not served  # a browser reads no excerpts from files


def test_what_scrolls_is_reached_by_keyboard_and_japanese_is_called_so(address, page):
    page.goto(address + "lessons/02_convolution.html")
    assert page.locator("pre[tabindex='0']").count() > 3
    assert page.locator(".picture[tabindex='0']").count() > 3
    page.goto(address + "glossary.html")
    assert page.locator("dt[lang=ja]").count() > 80
    assert page.locator("dt:has-text('convolution')").first.get_attribute("lang") is None
