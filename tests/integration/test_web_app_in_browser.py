"""The web app in a real browser, before a real server: only the engines are scripted."""

from __future__ import annotations

import base64
import json
import math
import re
import zipfile
from typing import TYPE_CHECKING, Any

import pikepdf
import pytest
from synthetic_report import synthetic_page
from web_world import page_file, scripted_engines, store_cancelled_jobs, store_job, web_server

from chromium_pipe import CHROMIUM, Chromium
from pagemill.document.page import PageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from web_world import ScriptedEngines

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]

KEYS = ("the-key-of-the-first-user", "the-key-of-the-second-user")
ATTACK = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@pytest.fixture(autouse=True)
def quiet_console(browser: Chromium) -> Iterator[None]:
    """No exception, no message, and no violation of the content security policy in any test."""
    browser.resize(1440, 900)
    browser.console.clear()
    yield
    assert complaints(browser) == []
    browser.leave()


def complaints(browser: Chromium) -> list[str]:
    """The console without what is no defect: a page without an image, a wrong key, advice on forms with a password."""
    expected = re.compile(r"Failed to load resource.* (401|404|422) |\[DOM\] Password")
    return [each for each in browser.console if not expected.match(each)]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedEngines]:
    with scripted_engines(monkeypatch) as made:
        yield made


@pytest.fixture
def server(script: ScriptedEngines, tmp_path: Path) -> Iterator[str]:
    with web_server(tmp_path / "data") as address:
        yield address


def scans(folder: Path, *shades: int) -> list[Path]:
    folder.mkdir(exist_ok=True)
    paths = [folder / f"scan-{shade}.png" for shade in shades]
    for path, shade in zip(paths, shades, strict=True):
        path.write_bytes(page_file(shade))
    return paths


def start_job(browser: Chromium, server: str, paths: list[Path]) -> None:
    """Send files with the app; the job is on show then."""
    browser.open(server)
    browser.wait_for("document.querySelector('.languages')")
    browser.choose_files("#files", paths)
    browser.click("#start")
    browser.wait_for("location.hash.startsWith('#/jobs/')")


def wait_for_state(browser: Chromium, state: str) -> None:
    browser.wait_for(f"document.querySelector('.jobbar .state')?.dataset.state === {json.dumps(state)}")


def count(browser: Chromium, selector: str) -> int:
    found = browser.evaluate(f"[...document.querySelectorAll('{selector}')].filter((e) => e.checkVisibility()).length")
    assert isinstance(found, int)
    return found


def text(browser: Chromium, selector: str) -> str:
    return str(browser.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText"))


def texts(browser: Chromium, selector: str) -> Any:
    return browser.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.innerText)")


def test_pages_appear_and_open_while_the_job_runs(
    browser: Chromium, server: str, script: ScriptedEngines, tmp_path: Path
) -> None:
    script.allow(1)
    start_job(browser, server, scans(tmp_path / "scans", 10, 20, 30))
    browser.wait_for("document.querySelectorAll('.virtual [role=option]').length === 1")
    browser.wait_for("document.querySelector('#sheet img')?.complete")
    assert browser.evaluate("document.querySelector('#sheet img').naturalWidth") == 240
    assert text(browser, ".region .content") in {f"The wheel of mill {shade}" for shade in (10, 20, 30)}
    assert browser.evaluate("document.querySelector('.jobbar .state').dataset.state") == "running"
    script.allow(1)
    browser.wait_for("document.querySelectorAll('.virtual [role=option]').length === 2")
    assert count(browser, "#cancel") == 1
    script.allow(math.inf)
    wait_for_state(browser, "finished")
    browser.wait_for("document.querySelectorAll('.virtual [role=option]').length === 3")
    assert text(browser, "#progress") == "3 documents · 3 pages"
    assert count(browser, "#cancel, #retry") == 0


def test_a_box_and_its_text_belong_together(browser: Chromium, server: str, tmp_path: Path) -> None:
    start_job(browser, server, scans(tmp_path / "scans", 10, 20))
    wait_for_state(browser, "finished")
    browser.wait_for("document.querySelectorAll('.virtual [role=option]').length === 2")
    browser.click(".virtual [role=option]")  # the page shown until then is the one that was read first
    browser.wait_for("where.textContent.startsWith('scan-10') && document.querySelector('.box')")
    browser.hover(".region")
    assert count(browser, ".box.pointed") == 1
    browser.click(".box")
    assert count(browser, ".region.selected") == 1
    assert browser.evaluate("location.hash").endswith("?region=1")
    first = text(browser, "#where")
    browser.press("ArrowRight")
    browser.wait_for(f"where.textContent !== {json.dumps(first)}")
    # The address names the page and the region: it can be passed on.
    browser.open(browser.evaluate("location.href") + "?region=1")
    browser.wait_for("document.querySelector('.region.selected')")
    assert text(browser, "#where") != first


def test_a_folder_is_sent_with_the_paths_in_it(browser: Chromium, server: str, tmp_path: Path) -> None:
    folder = tmp_path / "letters"
    scans(folder, 10)
    scans(folder / "older", 20)
    (folder / ".hidden").write_text("not a page")
    browser.open(server)
    browser.wait_for("document.querySelector('.languages')")
    browser.choose_files("#folder", [folder])
    browser.wait_for("document.querySelectorAll('.chosen li').length")
    assert {name.removesuffix("×").strip() for name in texts(browser, ".chosen li")} == {
        "letters/scan-10.png",
        "letters/older/scan-20.png",
    }
    browser.click("#start")
    browser.wait_for("location.hash.startsWith('#/jobs/')")
    wait_for_state(browser, "finished")
    browser.wait_for("document.querySelectorAll('.heading-row').length === 2")
    assert {"scan-10.png", "scan-20.png"} == set(texts(browser, ".heading-row"))


def test_files_can_be_dropped_anywhere(browser: Chromium, server: str) -> None:
    browser.open(server)
    browser.wait_for("document.querySelector('.languages')")
    data = base64.b64encode(page_file(10)).decode()
    browser.evaluate(f"""(() => {{
        const transfer = new DataTransfer();
        const bytes = Uint8Array.from(atob("{data}"), (letter) => letter.charCodeAt(0));
        transfer.items.add(new File([bytes], "dropped.png"));
        document.querySelector(".home").dispatchEvent(
            new DragEvent("drop", {{ dataTransfer: transfer, bubbles: true, cancelable: true }}));
    }})()""")
    browser.wait_for("document.querySelectorAll('.chosen li').length === 1")
    browser.press("Enter")  # the button to start has the focus
    browser.wait_for("location.hash.startsWith('#/jobs/')")
    wait_for_state(browser, "finished")
    assert text(browser, ".jobbar h2") == "dropped.png"


def test_results_are_downloaded(browser: Chromium, server: str, tmp_path: Path) -> None:
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    browser.download_to(downloads)
    start_job(browser, server, scans(tmp_path / "scans", 10))
    wait_for_state(browser, "finished")
    browser.wait_for("document.querySelector('.box')")
    browser.click("#download summary")
    browser.click("#download-all")
    with zipfile.ZipFile(browser.downloaded(downloads / "scan-10.zip")) as archive:
        assert archive.testzip() is None
        assert any(name.endswith(".md") for name in archive.namelist())
    browser.click("#download summary")
    browser.click("#download-all ~ button")
    assert "The wheel of mill 10" in browser.downloaded(downloads / "scan-10.md").read_text(encoding="utf-8")


def test_failed_pages_say_why_and_are_retried(
    browser: Chromium, server: str, script: ScriptedEngines, tmp_path: Path
) -> None:
    script.broken = {20}
    start_job(browser, server, scans(tmp_path / "scans", 10, 20))
    wait_for_state(browser, "warned")
    browser.click('.filters input[value="failed"]')
    browser.wait_for("document.querySelectorAll('.virtual [role=option]').length === 1")
    browser.click(".virtual [role=option]")
    browser.wait_for("document.querySelector('#text .error')")
    assert "lost its place" in text(browser, "#text .error")
    script.broken.clear()
    browser.click("#retry")
    wait_for_state(browser, "finished")
    browser.wait_for("document.querySelector('.region .content')?.innerText === 'The wheel of mill 20'")
    assert text(browser, "#progress") == "2 documents · 2 pages"


def test_a_file_that_does_not_open_says_why(browser: Chromium, server: str, tmp_path: Path) -> None:
    paths = scans(tmp_path / "scans", 10)
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    start_job(browser, server, [tmp_path / "broken.pdf", *paths])
    wait_for_state(browser, "warned")
    browser.wait_for("document.querySelectorAll('.virtual [role=option]').length === 2")
    assert texts(browser, ".virtual .title") == ["broken.pdf", "Document", "scan-10.png", "1The wheel of mill 10"]
    assert text(browser, "#progress") == "2 documents · 1 page · 1 document not opened"
    browser.wait_for("where.textContent === 'scan-10.png, Page 1'")  # the first one with something to see
    browser.click(".virtual [role=option]")
    browser.wait_for("where.textContent === 'broken.pdf' && document.querySelector('#text .error')")
    assert "broken.pdf is damaged" in text(browser, "#text .error")
    assert len(text(browser, "#text .error .remedy")) > 0


def test_a_job_is_cancelled_and_removed(
    browser: Chromium, server: str, script: ScriptedEngines, tmp_path: Path
) -> None:
    script.allow(1)
    start_job(browser, server, scans(tmp_path / "scans", 10, 20, 30, 40))
    browser.wait_for("document.querySelector('.virtual [role=option]')")
    browser.click("#cancel")
    script.allow(math.inf)  # pages in flight are finished
    wait_for_state(browser, "cancelled")
    browser.click(".back")
    browser.wait_for("document.querySelector('.job .state')")
    assert text(browser, ".job .state") == "cancelled"
    browser.click(".job button")
    browser.click("dialog .danger")
    browser.wait_for("document.querySelector('.jobs .empty')")


def test_two_users_see_their_own_jobs_at_once(
    browser: Chromium, script: ScriptedEngines, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with web_server(tmp_path / "data", api_keys=KEYS) as server, Chromium(tmp_path / "profile") as other:
        users = ((browser, KEYS[0], 10), (other, KEYS[1], 20))
        for user, key, _ in users:
            user.open(server)
            user.wait_for("document.querySelector('dialog.login')")
            user.type("not-the-key-of-anybody")
            user.press("Enter")
            user.wait_for("document.querySelector('dialog.login.wrong')")
            user.type(key)
            user.press("Enter")
            user.wait_for("document.querySelector('.jobs .empty')")
        script.allow(0)
        for user, _, shade in users:
            user.choose_files("#files", scans(tmp_path / "scans", shade))
            user.click("#start")
            wait_for_state(user, "running")
        script.allow(math.inf)
        for user, _, shade in users:
            wait_for_state(user, "finished")
            user.wait_for("document.querySelector('#sheet img')?.complete && document.querySelector('.region')")
            assert text(user, ".region .content") == f"The wheel of mill {shade}"
        addresses = [user.evaluate("location.hash") for user, _, _ in users]
        for user, _, shade in users:
            user.click(".back")
            user.wait_for("document.querySelector('.job')")
            assert texts(user, ".job a") == [f"scan-{shade}.png"]
        other.evaluate(f"location.hash = {json.dumps(addresses[0])}")
        other.wait_for("document.querySelector('.notices .error')")
        assert "no such job" in text(other, ".notices .error")
        other.click(".notices .error a")
        other.wait_for("document.querySelector('.job')")
        other.leave()
        assert complaints(other) == []


def test_many_pages_are_few_elements(browser: Chromium, script: ScriptedEngines, tmp_path: Path) -> None:
    data = tmp_path / "data"
    job = store_job(data, "archive.pdf", [synthetic_page(index, doc="0001") for index in range(600)])
    with web_server(data) as server:
        browser.open(f"{server}/#/jobs/{job}")
        browser.wait_for("document.querySelector('.segments small').innerText === '600'")
        browser.wait_for("document.querySelector('.region')")
        at_first = browser.evaluate("document.querySelectorAll('*').length")
        assert at_first < 600
        for share in (0.1, 0.5, 0.9, 1):
            browser.evaluate(f"document.querySelector('.virtual').scrollTo(0, 1e7 * {share})")
            browser.evaluate("new Promise((resume) => requestAnimationFrame(() => requestAnimationFrame(resume)))")
            assert 10 < count(browser, ".virtual .row") < 60
            assert browser.evaluate("document.querySelectorAll('*').length") < at_first + 100
        assert "part 600" in text(browser, ".virtual .space")
        browser.evaluate("document.querySelector('.virtual').focus()")
        browser.press("End")
        browser.wait_for("where.textContent === 'archive.pdf, Page 600'")
        browser.press("Home")
        browser.wait_for("where.textContent === 'archive.pdf, Page 1'")


def test_a_hit_of_the_search_is_shown_on_its_page(browser: Chromium, server: str, tmp_path: Path) -> None:
    start_job(browser, server, scans(tmp_path / "scans", 10))
    wait_for_state(browser, "finished")
    start_job(browser, server, scans(tmp_path / "scans", 20, 30))
    wait_for_state(browser, "finished")
    # The index is written after the jobs have ended.
    browser.wait_for("fetch('/v1/search?q=wheel').then((r) => r.json()).then(({ hits }) => hits.length === 3)")
    browser.press("/")
    browser.type("wheel")
    browser.press("Enter")
    browser.wait_for("document.querySelector('.spot') && document.querySelector('.hit-row[aria-current]')")
    assert len(texts(browser, ".hit-row")) == 3
    first = text(browser, "#where")
    assert text(browser, ".hit-row[aria-current] strong").replace(" ·", ",") == first
    assert count(browser, ".hit-row mark") > 0
    sheet, spot = browser.evaluate(
        "['#sheet', '.spot'].map((s) => document.querySelector(s).getBoundingClientRect().toJSON())"
    )
    assert spot["x"] + spot["width"] / 2 - sheet["x"] == pytest.approx(sheet["width"] / 2, abs=2)
    assert spot["y"] + spot["height"] / 2 - sheet["y"] == pytest.approx(60 / 320 * sheet["height"], abs=2)
    assert texts(browser, "#text mark") == ["wheel"]
    browser.press("n")
    browser.wait_for(f"where.textContent !== {json.dumps(first)}")
    browser.open(f"{server}/#/search?q=zebra")
    browser.wait_for("document.querySelector('.count').textContent === 'No hits'")


def hostile_page() -> Any:
    page = synthetic_page(0, doc="0001")
    for region in page.regions:
        region.content = ATTACK
    page.regions[7].content = (
        "<table onclick=\"document.title='owned'\" style='position:fixed'><tr>"
        f"<td style='background:red' rowspan=2 onmouseover=document.title=1>cell{ATTACK}</td></tr></table>"
        "<iframe srcdoc='<script>parent.document.title=1</script>'></iframe><style>*{display:none}</style>"
        "<svg><script>document.title='owned'</script></svg><base href=//evil><meta http-equiv=refresh content=0>"
    )
    page.errors.append(PageError(component=ATTACK, category=ATTACK, message=ATTACK, remedy=ATTACK))
    return page


def test_nothing_in_a_document_is_executed(browser: Chromium, script: ScriptedEngines, tmp_path: Path) -> None:
    data = tmp_path / "data"
    job = store_job(data, f"{ATTACK}.pdf", [hostile_page()])
    with web_server(data) as server:
        browser.open(server)
        browser.wait_for("document.querySelector('.job')")
        browser.evaluate("document.querySelector('.job a').click()")
        browser.wait_for("document.querySelector('.table td')")
        browser.evaluate("document.querySelector('.table td').dispatchEvent(new MouseEvent('mouseover'))")
        assert text(browser, ".jobbar h2") == f"{ATTACK}.pdf"
        assert ATTACK in text(browser, '.region[data-region="2"]')
        assert ATTACK in text(browser, "#text > .error")
        assert "owned" not in browser.evaluate("document.title.replace(/<.*>/, '')")
        found = "#view img:not(#sheet img), #view iframe, #view script, #view style, #view svg script"
        assert browser.evaluate(f"document.querySelectorAll('{found}').length") == 0
        assert browser.evaluate("document.querySelector('.table td').getAttributeNames()") == ["rowspan"]
        assert complaints(browser) == []
        # Opened by itself, a document as HTML runs nothing either. Its origin is none, so no picture comes with it.
        browser.open(f"{server}/v1/jobs/{job}/documents/0001.html")
        assert browser.evaluate("document.querySelectorAll('script, iframe').length") == 0
        assert "owned" not in browser.evaluate("document.title.replace(/<.*>/, '')")
        browser.leave()
        assert all("NotSameOrigin" in each for each in browser.console if "status of 404" not in each)
        browser.console.clear()


def test_an_upload_with_its_markup_as_its_name(browser: Chromium, server: str, tmp_path: Path) -> None:
    name = "<img src=x onerror=document.title='owned'>.png"
    path = tmp_path / name
    path.write_bytes(page_file(10))
    start_job(browser, server, [path])
    wait_for_state(browser, "finished")
    assert text(browser, ".jobbar h2") == name
    assert browser.evaluate("document.title") == f"{name} – pagemill"
    assert browser.evaluate("document.querySelectorAll('#view img:not(#sheet img)').length") == 0


def test_errors_are_shown_with_their_remedy(browser: Chromium, server: str, tmp_path: Path) -> None:
    browser.open(server)
    browser.wait_for("document.querySelector('.languages')")
    browser.choose_files("#files", scans(tmp_path / "scans", 10))
    browser.evaluate("document.querySelectorAll('.options details').forEach((each) => (each.open = true))")
    browser.click("#pages")
    browser.type("3-1")
    browser.click("#start")
    browser.wait_for("document.querySelector('.card .error')")
    assert "3-1" in text(browser, ".card .error")
    assert count(browser, "#start") == 1
    browser.open(f"{server}/#/jobs/0123456789")
    browser.wait_for("document.querySelector('.notices .error')")


def test_a_file_is_refused_before_it_is_sent(browser: Chromium, server: str, tmp_path: Path) -> None:
    browser.open(server)
    browser.wait_for("document.querySelector('.languages')")
    (good,) = scans(tmp_path / "scans", 10)
    large, empty, song, unnamed = (tmp_path / name for name in ("large.pdf", "empty.pdf", "song.mp3", "report.2026"))
    song.write_bytes(b"ID3 song")
    unnamed.write_bytes(b"%PDF-1.4")
    with large.open("wb") as file:
        file.truncate(600 * 2**20)  # sparse; the server takes 512 MiB
    empty.touch()
    browser.choose_files("#files", [good, large, empty, song, unnamed])
    browser.wait_for("document.querySelector('.card .error')")
    browser.wait_for("document.querySelectorAll('.chosen li').length === 2")
    refusals = texts(browser, ".card .error")
    for refusal, said in zip(
        refusals, (("large.pdf", "512.0 MB"), ("empty.pdf", "empty"), ("song.mp3", "kind")), strict=True
    ):
        assert all(part in refusal for part in said)
    assert "scan-10.png" in text(browser, ".chosen")
    assert "report.2026" in text(browser, ".chosen")


def test_a_password_is_asked_for_afterwards_and_in_korean(browser: Chromium, server: str, tmp_path: Path) -> None:
    with pikepdf.new() as document:
        document.add_blank_page()
        document.add_blank_page()
        document.save(tmp_path / "locked.pdf", encryption=pikepdf.Encryption(owner="o", user="mill"))
    browser.open(server)
    browser.evaluate("localStorage.setItem('pagemill-interface', 'ko')")
    try:
        browser.leave()
        start_job(browser, server, [tmp_path / "locked.pdf"])
        for password, state in (("wrong", "failed"), ("mill", "finished")):
            wait_for_state(browser, "failed")
            browser.wait_for("document.querySelector('.problem .error') && !document.querySelector('.unlock').hidden")
            assert text(browser, ".problem .error strong") == "암호로 보호된 파일입니다."
            browser.click("#unlock")
            browser.type(password)
            browser.press("Enter")
            browser.wait_for(f"document.querySelector('.jobbar .state').dataset.state !== '{state}'")
            wait_for_state(browser, state)
        browser.wait_for("document.querySelectorAll('.virtual [role=option]').length === 2")
        assert count(browser, ".unlock, .problem .error") == 0
        assert text(browser, "#progress") == "2페이지"
    finally:
        browser.evaluate("localStorage.removeItem('pagemill-interface')")


def test_pages_are_found_by_number_thumbnail_and_title(browser: Chromium, server: str, tmp_path: Path) -> None:
    with pikepdf.new() as document:
        for _ in range(3):
            document.add_blank_page()
        document.save(tmp_path / "three.pdf")
    start_job(browser, server, [tmp_path / "three.pdf"])
    wait_for_state(browser, "finished")
    browser.wait_for("document.querySelector('.virtual .title')?.innerText === '1The wheel of mill 255'")
    browser.press("g")
    browser.type("3")
    browser.press("Enter")
    browser.wait_for("where.textContent === 'three.pdf, Page 3' && document.querySelector('.box')")
    browser.click("#thumbnails")
    browser.wait_for("document.querySelectorAll('.thumbnail[src]').length === 3")
    browser.click("#thumbnails")
    assert count(browser, ".thumbnail") == 0
    width = browser.evaluate("sheet.clientWidth")
    browser.press("j")
    browser.press("z")  # this region is small: as large as it gets, and its text with it
    assert browser.evaluate("sheet.clientWidth") == pytest.approx(6 * width, rel=0.01)
    assert browser.evaluate("document.querySelector('#text').style.zoom") == "2"
    box, stage = browser.evaluate(
        "['.box.selected', '#stage'].map((s) => document.querySelector(s).getBoundingClientRect().toJSON())"
    )
    assert stage["left"] < box["left"] < box["right"] < stage["right"]
    assert stage["top"] < box["top"] < box["bottom"] < stage["bottom"]
    browser.press("z")
    assert browser.evaluate("sheet.clientWidth") == width


def test_the_http_interface_can_be_read_and_tried(browser: Chromium, server: str, tmp_path: Path) -> None:
    browser.open(server)
    browser.wait_for("document.querySelector('.languages')")
    browser.open(f"{server}/docs")
    browser.wait_for("document.querySelectorAll('.operation').length > 25")
    (send,) = browser.evaluate("[...document.querySelectorAll('.operation')].map((e, at) => [e.id, at])"
                               ".filter(([id]) => id.startsWith('send_')).map(([id]) => '#' + id)")  # fmt: skip
    browser.evaluate(f"document.querySelector('{send}').open = true")
    browser.wait_for(f"document.querySelector('{send} pre')?.textContent.includes('curl -F files=@report.pdf')")
    browser.choose_files(f"{send} input[type=file]", scans(tmp_path / "scans", 10))
    browser.evaluate(f"document.querySelector('{send} .primary').click()")
    browser.wait_for(f"document.querySelector('{send} .answer strong')?.innerText.startsWith('202')")
    assert '"name": "scan-10.png"' in text(browser, f"{send} .answer pre")
    browser.resize(390, 800, mobile=True)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390


def test_more_jobs_than_one_request_lists(browser: Chromium, script: ScriptedEngines, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    store_cancelled_jobs(tmp_path / "data", 510)
    with web_server(tmp_path / "data") as server:
        browser.open(server)
        for shown in (*range(50, 501, 50), 510):
            browser.wait_for(f"document.querySelectorAll('.job').length === {shown}")
            assert count(browser, ".more-jobs") == (shown < 510)
            browser.evaluate("document.querySelector('.more-jobs').click()")


def test_fits_a_phone(browser: Chromium, server: str, tmp_path: Path) -> None:
    browser.resize(390, 800, mobile=True)
    start_job(browser, server, scans(tmp_path / "a-folder-with-quite-a-long-name-to-be-cut", 10, 20))
    wait_for_state(browser, "finished")
    browser.wait_for("document.querySelectorAll('.virtual [role=option]').length === 2")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    browser.click(".virtual [role=option]")
    browser.wait_for("document.querySelector('#sheet img')?.checkVisibility()")
    assert count(browser, ".virtual") == 0
    browser.click('.tabs [data-pane="text"]')
    assert count(browser, ".region") == 1
    browser.open(server)
    browser.wait_for("document.querySelector('.job')")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390


CONTRASTS = """
(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const ground = (element) => {
    if (!element) return [255, 255, 255, 1];
    const own = rgba(getComputedStyle(element).backgroundColor);
    return own[3] === 1 ? own : over(own, ground(element.parentElement));
  };
  const light = (color) => {
    const [r, g, b] = color.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const weak = [];
  for (const element of document.querySelectorAll("#app *")) {
    const said = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
    if (!said.length || !element.checkVisibility({ opacityProperty: true }) || element.closest(":disabled")) continue;
    const style = getComputedStyle(element);
    const back = ground(element);
    const [one, other] = [light(over(rgba(style.color), back)), light(back)];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = Number.parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (contrast < (large ? 3 : 4.5)) weak.push(`${contrast.toFixed(2)} ${element.className} ${said[0].data.trim()}`);
  }
  return [...new Set(weak)];
})()
"""


def test_text_has_the_contrast_of_wcag_aa(browser: Chromium, script: ScriptedEngines, tmp_path: Path) -> None:
    data = tmp_path / "data"
    pages = [synthetic_page(index, doc="0001") for index in range(3)]
    pages[1].errors.append(PageError(component="table", category="timeout", message="took too long", region=7))
    store_job(data, "report.pdf", pages)
    with web_server(data) as server:
        for theme in ("light", "dark"):
            browser.open(server)
            browser.evaluate(f"localStorage.setItem('pagemill-theme', '{theme}')")
            browser.open(server)
            browser.wait_for("document.querySelector('.job') && document.querySelector('.languages')")
            assert "\n".join(browser.evaluate(CONTRASTS)) == ""
            browser.evaluate("document.querySelector('.job a').click()")
            browser.wait_for("document.querySelector('.region')")
            browser.press("ArrowRight")
            browser.wait_for("document.querySelector('.error')")
            browser.click("#download summary")
            assert "\n".join(browser.evaluate(CONTRASTS)) == ""
        browser.evaluate("localStorage.removeItem('pagemill-theme')")


def test_the_interface_speaks_korean(browser: Chromium, server: str, tmp_path: Path) -> None:
    browser.open(server)
    browser.click("#language")
    browser.wait_for("document.documentElement?.lang === 'ko' && document.querySelector('.languages')")
    try:
        start_job(browser, server, scans(tmp_path / "scans", 10, 20))
        wait_for_state(browser, "finished")
        browser.wait_for("document.querySelector('.region')")
        browser.click("#download summary")
        # File names, names of formats and engines, and what was read stay as they are.
        said = browser.evaluate(
            "[...document.querySelectorAll('button, summary, .segments span, .meta .label, .state, .title')]"
            ".filter((e) => e.checkVisibility()).map((e) => e.textContent)"
        )
        known = {"English", "Markdown", "HTML", "JSON", "DoclingDocument", "pagemill", "Markdown으로 복사"}
        assert [each for each in said if each not in known and each.isascii() and any(map(str.isalpha, each))
                and not each.startswith(("scan-", "1The wheel"))] == []  # fmt: skip
        browser.press("?")
        browser.wait_for("document.querySelector('dialog[open]')")
        assert "확대와 축소" in text(browser, "dialog[open]")
    finally:
        browser.evaluate("localStorage.clear()")
