"""Office, Hangul, web and text files through the doors: command line, Python, REST, docling's API, MCP."""

import base64
import json
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import AsyncIterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import docx
import made_documents as made
import old_files
import pytest
from forked_command import run_forked
from hostile import damaged
from parse_command import ENVIRONMENT, all_once, command, parse, records, wait_for
from rest_world import FastEngines, World, rest_world

import pagemill
from pagemill.document.page import Status
from pagemill.errors import ExitCode
from pagemill.runtime import engines

PROTOCOL = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    made.word(folder / "report.docx")
    made.slides(folder / "deck.pptx")
    made.sheets(folder / "prices.xlsx")
    made.hangul(folder / "notice.hwpx")
    made.book(folder / "novel.epub")
    made.notice_html(folder / "page.html")
    (folder / "notes.md").write_text("# Notes\n\nA *short* one.\n", encoding="utf-8")
    (folder / "table.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (folder / "plain.txt").write_text("Only text.\n", encoding="utf-8")
    return folder


def test_the_name_of_an_open_file_shows_what_its_text_is(folder: Path):
    with (folder / "table.csv").open("rb") as file:
        assert [table.rows for table in pagemill.parse(file).tables] == [2]


def test_a_folder_of_documents(folder: Path, tmp_path: Path):
    out = tmp_path / "out"
    ended = parse(folder, "-o", out)
    assert ended.returncode == ExitCode.OK, ended.stderr
    found = {record["page_id"]: record for record in records(out)}
    assert len(found) == 3 + 2 + 2 + 6
    assert {record["text_source"] for record in found.values()} == {"document"}
    word = found["report_1"]
    assert word["regions"][1]["content"] == "Annual report"
    assert all(region["bbox"] == [0, 0, word["width"], word["height"]] for region in word["regions"])
    (crop,) = word["image_crops"]
    assert (out / crop["path"]).read_bytes().startswith(b"\xff\xd8")
    text = (out / "documents" / "report.md").read_text(encoding="utf-8")
    assert text.startswith("# Annual report\n\n## First part\n\nPlain **bold**, *italic* H<sub>2</sub>O and [a link]")
    assert "![image: A red field](../crops/" in text
    assert "Running head" not in text and "deleted" not in text
    assert found["prices_2"]["metadata"]["notes"] == ["the sheet 'Secret' is hidden"]
    # Sheets with as many columns are two tables.
    assert (out / "documents" / "prices.md").read_text(encoding="utf-8").count("hidden text") == 1


@pytest.mark.slow
def test_a_run_is_resumed_after_a_kill(tmp_path: Path):
    long = "".join(f"<h2>Chapter {number}</h2><p>{f'word{number} ' * 3000}</p>" for number in range(40))
    (tmp_path / "long.html").write_text(long, encoding="utf-8")
    out = tmp_path / "out"
    assert parse(tmp_path / "long.html", "-o", out, "--limit", "3").returncode == ExitCode.OK
    assert all_once(out, 3)
    with subprocess.Popen(
        command(tmp_path / "long.html", "-o", out), env=ENVIRONMENT, stderr=subprocess.PIPE
    ) as process:
        wait_for(lambda: len((out / "ocr_results.jsonl").read_bytes().splitlines()) > 3 or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
    ended = parse(tmp_path / "long.html", "-o", out)
    assert ended.returncode == ExitCode.OK, ended.stderr
    assert all_once(out, 40)
    whole = (out / "documents" / "long.md").read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"## Chapter (\d+)", whole)] == list(range(40))
    verified = run_forked("verify", out, env=ENVIRONMENT)
    assert verified.returncode == ExitCode.OK


@pytest.mark.slow
def test_tables_that_are_cut_are_one_in_the_document(tmp_path: Path):
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f"{n},x\n" for n in range(5000)), encoding="utf-8")
    out = tmp_path / "out"
    assert parse(tmp_path / "a.csv", "-o", out).returncode == ExitCode.OK
    text = (out / "documents" / "a.md").read_text(encoding="utf-8")
    assert text.count("| --- |") == 1 and text.count("\n| ") == 5001


def test_a_damaged_document_fails_alone(folder: Path, tmp_path: Path):
    (tmp_path / "bad.docx").write_bytes(damaged((folder / "report.docx").read_bytes(), 1))
    out = tmp_path / "out"
    ended = parse(tmp_path / "bad.docx", folder / "notes.md", "-o", out)
    assert ended.returncode == ExitCode.PAGES_FAILED
    assert "bad.docx" in ended.stderr and "damaged" in ended.stderr
    assert sorted(record["status"] for record in records(out)) == [Status.DONE, Status.FAILED]
    assert parse(tmp_path / "bad.docx", "-o", tmp_path / "alone").returncode == ExitCode.INPUT


def test_pages_of_a_document_can_be_chosen(folder: Path, tmp_path: Path):
    assert parse(folder / "deck.pptx", "-o", tmp_path / "out", "--pages", "2-3").returncode == ExitCode.OK
    assert [record["page_number"] for record in sorted(records(tmp_path / "out"), key=lambda r: r["page_idx"])] == [
        2,
        3,
    ]


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", re.sub(r"<[^>]*>", " ", text))


WANTED = " ".join((made.NOTICE_TITLE, *made.NOTICE_TEXTS, *(" ".join(row) for row in made.NOTICE_ROWS)))
CELLS = [cell for row in made.NOTICE_ROWS for cell in row]


def notice_pdf(path: Path) -> Path:
    """The notice drawn: ReportLab sets its text in a Korean font that PDF readers have."""
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

    pdfmetrics.registerFont(UnicodeCIDFont("HYGothic-Medium"))
    plain = ParagraphStyle("plain", fontName="HYGothic-Medium", fontSize=11, leading=16, spaceAfter=10)
    title = ParagraphStyle("title", parent=plain, fontSize=20, leading=26, spaceAfter=18)
    table = Table([list(row) for row in made.NOTICE_ROWS])
    table.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 1, "black"), ("FONT", (0, 0), (-1, -1), "HYGothic-Medium")]))
    texts = [Paragraph(made.NOTICE_TITLE, title), *(Paragraph(text, plain) for text in made.NOTICE_TEXTS)]
    SimpleDocTemplate(str(path), pagesize=A4).build([*texts, Spacer(1, 12), table])
    return path


def said_by(page: dict[str, Any]) -> tuple[str, list[str]]:
    """The text of a page, and the cells of its table."""
    (markup,) = (region["content"] for region in page["regions"] if region["label"] == "table")
    cells = [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", markup)]
    return " ".join(region["content"] or "" for region in page["regions"]), cells


def test_a_notice_says_the_same_in_every_format(tmp_path: Path):
    notice_pdf(tmp_path / "notice.pdf")
    made.notice_docx(tmp_path / "notice.docx")
    made.notice_hwpx(tmp_path / "notice.hwpx")
    made.notice_html(tmp_path / "notice.html")
    old_files.hwp(tmp_path / "notice.hwp", made.NOTICE_TITLE, made.NOTICE_TEXTS, made.NOTICE_ROWS)
    for file in (Path(made.__file__).parent / "files").glob("notice.*"):  # written by LibreOffice
        shutil.copy(file, tmp_path)
    out = tmp_path / "out"
    assert parse(tmp_path, "-o", out).returncode == ExitCode.OK
    pages = {Path(record["source"]).suffix: record for record in records(out)}
    assert pages.keys() == {".pdf", ".docx", ".hwpx", ".html", ".hwp", ".doc", ".odt", ".rtf"}
    for suffix, page in pages.items():
        text, cells = said_by(page)
        assert words_of(text) == words_of(WANTED), suffix
        assert cells == CELLS, suffix


@pytest.mark.slow
def test_a_scan_of_the_notice_says_nearly_the_same(tmp_path: Path):
    import pypdfium2

    with pypdfium2.PdfDocument(notice_pdf(tmp_path / "notice.pdf")) as pdf:
        pdf[0].render(scale=200 / 72).to_pil().save(tmp_path / "notice.png")
    out = tmp_path / "out"
    assert parse(tmp_path / "notice.png", "-o", out, "--lang", "ko,en").returncode == ExitCode.OK
    text, cells = said_by(records(out)[0])
    read, wanted = Counter(words_of(text)), Counter(words_of(WANTED))
    assert (read & wanted).total() >= 0.9 * wanted.total()
    assert sum(one == other for one, other in zip(cells, CELLS, strict=True)) >= 0.9 * len(CELLS)


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(engines, "load", FastEngines().load)
    async with rest_world(tmp_path) as world:
        yield world


@pytest.mark.slow
async def test_documents_through_rest_and_the_web_app(world: World, folder: Path) -> None:
    files = [("files", (name, (folder / name).read_bytes())) for name in ("report.docx", "notice.hwpx", "plain.txt")]
    answer = await world.client.post("/v1/jobs", files=files)
    assert answer.status_code == 202, answer.text
    job = (await world.client.get(f"/v1/jobs/{answer.json()['id']}?wait=60")).json()
    assert (job["state"], job["pages"]["finished"]) == ("finished", 3), job
    texts = [(await world.client.get(f"/v1/jobs/{job['id']}/documents/000{n}.md")).text for n in (1, 2, 3)]
    assert texts[0].startswith("# Annual report") and "공고 제목" in texts[1] and "Only text." in texts[2]
    (first, *_) = (await world.client.get(f"/v1/jobs/{job['id']}/pages")).json()["pages"]
    image = await world.client.get(f"/v1/jobs/{job['id']}/pages/{first['n']}/image")
    assert image.status_code >= 400 and "without images" in image.text


@pytest.mark.slow
async def test_documents_through_doclings_api(world: World, folder: Path) -> None:
    source = {
        "kind": "file",
        "base64_string": base64.b64encode((folder / "report.docx").read_bytes()).decode(),
        "filename": "report.docx",
    }
    body: dict[str, Any] = {
        "sources": [source],
        "options": {"from_formats": ["docx"], "to_formats": ["md", "json"], "image_export_mode": "placeholder"},
    }
    answer = await world.client.post("/v1/convert/source", json=body)
    assert answer.status_code == 200, answer.text
    document = answer.json()["document"]
    assert document["md_content"].startswith("# Annual report\n")
    assert document["json_content"]["origin"]["filename"] == "report.docx"


@pytest.mark.slow
def test_documents_through_mcp(folder: Path, tmp_path: Path):
    asked = [
        {"id": 1, "method": "initialize", "params": PROTOCOL},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "parse_document", "arguments": {"source": "report.docx"}}},
    ]
    launched = [sys.executable, "-m", "pagemill", "mcp", "--root", str(folder), "--cache", str(tmp_path / "cache")]
    with subprocess.Popen(
        launched, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.writelines(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in asked)
        process.stdin.flush()
        answers = {}
        for line in process.stdout:
            told = json.loads(line)
            answers[told.get("id")] = told
            if told.get("id") == 2:
                break
        process.stdin.close()
        assert process.wait(60) == 0
    told = answers[2]["result"]["structuredContent"]
    assert (told["state"], told["pages_finished"]) == ("finished", 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report.docx", "deck.pptx", "prices.xlsx", "notice.hwpx", "novel.epub"])
def test_500_damaged_documents(folder: Path, tmp_path: Path, name: str):
    """None of them crashes, hangs, or lacks text without saying so."""
    data = (folder / name).read_bytes()
    suffix = Path(name).suffix
    (tmp_path / "in").mkdir()
    for seed in range(500):
        (tmp_path / "in" / f"{seed}{suffix}").write_bytes(damaged(data, seed))
    ended = parse(folder / name, "-o", tmp_path / "whole")
    assert ended.returncode == ExitCode.OK
    whole = sorted((record["page_number"], record["markdown"]) for record in records(tmp_path / "whole"))
    whole = [(number, re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)) for number, text in whole]
    ended = parse(tmp_path / "in", "-o", tmp_path / "out")
    assert ended.returncode in (ExitCode.PAGES_FAILED, ExitCode.INPUT)  # the latter where all of them failed
    pages: dict[str, list[dict[str, Any]]] = {}
    for record in records(tmp_path / "out"):
        pages.setdefault(record["source"], []).append(record)
    assert len(pages) == 500
    for source, found in pages.items():
        said = sorted(
            (page["page_number"], re.sub(r"!\[[^\]]*\]\([^)]*\)", "", page["markdown"]))
            for page in found
            if page["page_number"]
        )
        assert any(page["errors"] for page in found) or said == whole, source
        assert not {error["category"] for page in found for error in page["errors"]} & {"crash", "timeout", "internal"}


def test_a_package_is_what_its_members_say(folder: Path, tmp_path: Path):
    with zipfile.ZipFile(folder / "report.docx") as archive:
        assert "word/document.xml" in archive.namelist()
    (tmp_path / "wrong.xlsx").write_bytes((folder / "report.docx").read_bytes())
    assert parse(tmp_path / "wrong.xlsx", "-o", tmp_path / "out").returncode == ExitCode.OK
    assert "Annual report" in records(tmp_path / "out")[0]["markdown"]


def test_mail_and_archives_are_several_documents(folder: Path, tmp_path: Path):
    message = EmailMessage()
    message["Subject"] = "Inspection"
    message.set_content("See the table.")
    message.add_attachment(b"a,b\n1,2\n", maintype="text", subtype="csv", filename="table.csv")
    path, out = tmp_path / "all.zip", tmp_path / "out"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(folder / "report.docx", "../report.docx")
        archive.writestr("mail.eml", bytes(message))
        archive.writestr("bad.docx", b"PK\x03\x04 no document")
    ended = parse(path, "-o", out)
    assert ended.returncode == ExitCode.PAGES_FAILED and "all.zip#bad.docx" in ended.stderr
    found = {record["source"].rpartition("/")[2]: record["status"] for record in records(out)}
    assert found == {
        "report.docx": Status.DONE,
        "all.zip#mail.eml": Status.DONE,
        "all.zip#mail.eml#table.csv": Status.DONE,
        "all.zip#bad.docx": Status.FAILED,
    }
    assert {each.name for each in (out / "documents").glob("*.md")} >= {"report.md", "mail.md", "table.md"}
    assert not (tmp_path / "report.docx").exists()
    again = parse(path, "-o", out)
    assert "3 pages finished before" in again.stderr
    assert parse(f"{path}#mail.eml#table.csv", "-o", tmp_path / "one").returncode == ExitCode.OK


@pytest.mark.slow
def test_pictures_of_documents_are_recognized(tmp_path: Path):
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (700, 120), "white")
    ImageDraw.Draw(picture).text((20, 30), "Invoice number 48213", fill="black", font=ImageFont.load_default(36))
    picture.save(tmp_path / "a.png")
    word = docx.Document()
    word.add_paragraph("Before")
    word.add_picture(str(tmp_path / "a.png"))
    word.save(str(tmp_path / "a.docx"))
    out = tmp_path / "out"
    assert parse(tmp_path / "a.docx", "-o", out, "--read-images").returncode == ExitCode.OK
    assert "Invoice number 48213" in (out / "documents" / "a.md").read_text(encoding="utf-8")
    assert "48213" not in pagemill.parse(tmp_path / "a.docx").markdown
    assert "Invoice number 48213" in pagemill.parse(tmp_path / "a.docx", read_images=True).markdown
