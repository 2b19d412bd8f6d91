from collections.abc import Iterator
from pathlib import Path

import pytest
from synthetic_report import failed_page, preview_of, synthetic_page, synthetic_report

from chromium_pipe import CHROMIUM, Chromium
from pagemill.document.page import ContentFormat, PageError

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]


@pytest.fixture(autouse=True)
def quiet_console(browser: Chromium) -> Iterator[None]:
    browser.resize(1440, 900)
    browser.console.clear()
    yield
    assert browser.console == []


@pytest.fixture
def report(tmp_path: Path) -> Path:
    pages = [*(synthetic_page(index) for index in range(6)), failed_page(6)]
    pages[3].errors.append(PageError(component="table", category="timeout", message="took too long", region=7))
    pages[4].confidence, pages[4].review = 0.91, True
    return synthetic_report(tmp_path, pages)


def count(browser: Chromium, selector: str) -> int:
    found = browser.evaluate(f"[...document.querySelectorAll('{selector}')].filter((e) => e.checkVisibility()).length")
    assert isinstance(found, int)
    return found


def text(browser: Chromium, selector: str) -> str:
    return str(browser.evaluate(f"document.querySelector('{selector}').textContent"))


def search(browser: Chromium, query: str) -> None:
    browser.click("#query")
    browser.evaluate("document.getElementById('query').select(), (document.getElementById('count').textContent = '')")
    browser.type(query)
    browser.wait_for(
        "/^(No hits|[0-9,]+ hits? on [0-9,]+ pages?(, the first [0-9,]+ shown)?)$/.test(count.textContent)"
    )


def test_overlays_lie_on_the_words(browser: Chromium, report: Path) -> None:
    browser.open(report)
    browser.wait_for("document.querySelector('#sheet img').complete")
    sheet, box = browser.evaluate(
        "['#sheet', '.box[data-region=\"2\"]'].map((s) => document.querySelector(s).getBoundingClientRect().toJSON())"
    )
    assert box["x"] - sheet["x"] == pytest.approx(80 / 800 * sheet["width"], abs=1)
    assert box["y"] - sheet["y"] == pytest.approx(170 / 1130 * sheet["height"], abs=1)
    assert box["width"] == pytest.approx(310 / 800 * sheet["width"], abs=1)
    assert browser.evaluate("document.querySelector('#sheet img').naturalWidth") == 800
    assert count(browser, ".box") == count(browser, ".region") == 11


def test_pointing_at_a_box_marks_its_text_and_the_other_way_round(browser: Chromium, report: Path) -> None:
    browser.open(report)
    browser.hover('.box[data-region="4"]')
    assert browser.evaluate("document.querySelector('.region.pointed').dataset.region") == "4"
    browser.click('.box[data-region="7"]')
    assert browser.evaluate("document.querySelector('.region.selected').dataset.region") == "7"
    assert browser.evaluate("location.hash") == "#page=1&region=8"
    browser.evaluate("document.getElementById('text').scrollTo(0, 0)")
    browser.hover('.region[data-region="1"]')
    assert browser.evaluate("document.querySelector('.box.pointed').dataset.region") == "1"


def test_search_lists_hits_marks_them_and_goes_there(browser: Chromium, report: Path) -> None:
    browser.open(report)
    search(browser, "WATER or")
    assert text(browser, "#count") == "No hits"
    search(browser, "stamps of page 3")
    assert text(browser, "#count") == "1 hit on 1 page"
    browser.press("Enter")
    assert text(browser, "#where") == "mill-report, page 3"
    assert text(browser, ".region.selected mark") == "stamps\nof page 3"
    assert count(browser, ".box.hit") == 1
    search(browser, "섬유")
    assert text(browser, "#count") == "6 hits on 6 pages"
    search(browser, "1,310 9 %")
    assert text(browser, "#count") == "6 hits on 6 pages"
    browser.press("Escape")
    browser.wait_for("!list.hidden")


def test_signs_in_a_query_are_taken_as_they_are(browser: Chromium, report: Path) -> None:
    browser.open(report)
    search(browser, "two-column ^$.*+?()[]{}|\\/-")
    assert text(browser, "#count") == "No hits"
    search(browser, "1,200 7 %")
    assert text(browser, "#count") == "6 hits on 6 pages"


def test_filters(browser: Chromium, report: Path) -> None:
    browser.open(report)
    assert count(browser, ".row") == 7
    browser.click('#status input[value="failed"]')
    assert count(browser, ".row") == 1
    assert "needs a password" in text(browser, ".error")
    browser.click('#status input[value="warned"]')
    assert text(browser, "#where") == "mill-report, page 4"
    browser.click('#status input[value="review"]')
    assert text(browser, "#where") == "mill-report, page 5"
    assert "about 91 % right" in text(browser, "#facts")
    browser.click('#status input[value="all"]')
    browser.click("#label-filter summary")
    browser.click('#labels input[value="table"]')
    assert count(browser, ".row") == 6
    assert count(browser, ".box") == count(browser, ".region") == 1
    search(browser, "water")
    assert text(browser, "#count") == "No hits"


def test_keys(browser: Chromium, report: Path) -> None:
    browser.open(report)
    browser.press("ArrowRight")
    assert text(browser, "#where") == "mill-report, page 2"
    browser.press("j")
    browser.press("j")
    assert browser.evaluate("document.activeElement.dataset.region") == "1"
    browser.press("ArrowLeft")
    assert count(browser, ".line") == 0
    browser.press("l")
    assert count(browser, ".line") == 15
    browser.press("r")
    assert count(browser, ".order") == 0
    browser.press("s")
    assert "failed" in text(browser, "#summary-panel")
    background = "getComputedStyle(document.body).backgroundColor"
    before = browser.evaluate(background)
    browser.press("t")
    assert browser.evaluate(background) != before


def test_fits_a_phone(browser: Chromium, report: Path) -> None:
    browser.resize(390, 800, mobile=True)
    browser.open(report)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    browser.click('.tabs [data-pane="pages"]')
    browser.click(".row:nth-of-type(2)")
    assert count(browser, "#sheet img") == 1
    browser.click('.tabs [data-pane="text"]')
    assert count(browser, ".region") > 0
    assert count(browser, "#sheet") == 0


def test_nothing_in_a_document_is_executed(browser: Chromium, tmp_path: Path) -> None:
    attack = (
        "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script><!--<script>"
    )
    page = synthetic_page(0, doc=attack)
    for region in page.regions:
        region.content = attack
    page.regions[7].content = (
        "<table onclick=\"document.title='owned'\"><tr>"
        f"<td style='position:fixed' rowspan=2>cell{attack}</td></tr></table>"
        "<iframe srcdoc='<script>parent.document.title=1</script>'></iframe><style>*{display:none}</style>"
    )
    page.errors.append(PageError(component=attack, category=attack, message=attack, remedy=attack))
    browser.open(synthetic_report(tmp_path, [page]))
    browser.wait_for("document.documentElement.classList.contains('indexed')")
    search(browser, "onerror")
    browser.press("s")
    assert browser.evaluate("document.title") == "pagemill report"
    assert attack in text(browser, '.region[data-region="2"]')
    assert count(browser, "#text img, #text iframe, #text script, #text style, #hits img") == 0
    cell = browser.evaluate("document.querySelector('.table td').getAttributeNames()")
    assert cell == ["rowspan"]
    assert browser.evaluate("document.querySelector('.table table').getAttributeNames()") == []


def test_a_table_is_saved_as_csv(browser: Chromium, report: Path, tmp_path: Path) -> None:
    browser.download_to(tmp_path)
    browser.open(report)
    browser.click('.region[data-region="7"]')
    browser.click('.region[data-region="7"] .actions button')
    assert browser.downloaded(tmp_path / "mill-report_1_7.csv").read_text("utf-8-sig").splitlines() == [
        "Mill,Sheets,Sheets",
        'North,"1,200",7 %',
        'North,"1,310",9 %',
    ]


def test_formulas_are_rendered(browser: Chromium, tmp_path: Path) -> None:
    page = synthetic_page(0)
    page.regions[8].content_format = ContentFormat.LATEX
    page.regions[8].content = r"\eta = \frac{P}{\rho g Q H} \tag{1}"
    # What is no formula, or would be more than one, is shown as it is.
    for at, latex in enumerate(
        (r"\frac{1}{", r"\href{javascript:alert(1)}{x}", r"\includegraphics{https://example.org/a.png}", "x" * 6000), 2
    ):
        page.regions[at].content_format, page.regions[at].content = ContentFormat.LATEX, latex
    page.regions[9].content_format = ContentFormat.LATEX
    page.regions[
        9
    ].content = r"\color{red}\bm{v} \style{background:url(//example.org)}{y} \sideset{_a}{^b}\sum <img src=x onerror=1>"
    browser.open(synthetic_report(tmp_path, [page]))
    assert count(browser, '.region[data-region="8"] math mfrac') == 1
    assert count(browser, "#text a[href], #text img") == 0
    assert count(browser, ".math") <= 2
    assert count(browser, "code.formula") >= 4


def test_a_thousand_pages_stay_usable(browser: Chromium, tmp_path: Path) -> None:
    image = preview_of(synthetic_page(0)).ljust(60_000, b"\0")  # as large as a real preview
    report = synthetic_report(
        tmp_path, [synthetic_page(index, doc=f"doc{index // 50}") for index in range(1000)], image=image
    )
    assert report.stat().st_size > 80_000_000
    browser.open(report)
    assert count(browser, ".row") == 1000
    browser.wait_for("document.documentElement.classList.contains('indexed')")
    search(browser, "part 777")
    browser.press("Enter")
    assert text(browser, "#where") == "doc15, page 777"
    search(browser, "water")
    assert text(browser, "#count") == "2,000 hits on 1,000 pages, the first 400 shown"
