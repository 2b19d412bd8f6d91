"""The files of the web app: how they are served, and what a browser is not needed to check."""

import re
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import pagemill
from pagemill.document.labels import Label
from pagemill.document.page import DOUBTS, UNRELIABLE
from pagemill.export import report
from pagemill.recognition.vlm.guard import Flaw
from pagemill.rest import web_app
from pagemill.rest.errors import NotFoundError

FOLDERS = {"web": files("pagemill.rest") / "web", "viewer": files("pagemill.export") / "viewer"}
MODULES = {
    f"{folder}/{entry.name}": entry.read_text(encoding="utf-8")
    for folder, place in FOLDERS.items()
    for entry in place.iterdir()
    if entry.name.endswith(".js") and not entry.name.endswith(".min.js")
}


@pytest.fixture
def client():
    app = FastAPI(docs_url=None)
    app.include_router(web_app.router(SimpleNamespace()))
    return TestClient(app)


@pytest.mark.parametrize("address", ["/", "/docs"])
def test_the_page_and_its_modules_are_served_under_a_strict_policy(client, address):
    page = client.get(address)
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "data:" not in policy
    assert not re.search(r"<script>|<style|\son\w+=|style=|https?://", page.text)
    for address in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        answer = client.get(address)
        assert (answer.status_code, answer.headers["Content-Security-Policy"]) == (200, policy)


def test_modules_import_only_each_other(client):
    for name, text in MODULES.items():
        folder = name.partition("/")[0]
        for target in re.findall(r'from "([^"]+)"', text):
            found = target.removeprefix("../") if target.startswith("../") else f"{folder}/{target.removeprefix('./')}"
            assert found in MODULES, (name, target)
            assert client.get(f"/static/{found}").headers["Content-Type"].startswith("text/javascript")


def test_an_unchanged_file_is_not_sent_again(client):
    tag = client.get("/static/web/app.js").headers["ETag"]
    assert client.get("/static/web/app.js", headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.parametrize("path", ["web/missing.js", "viewer/..%2Freport.py", "..%2F..%2Fetc/passwd"])
def test_no_other_file_is_served(client, path):
    with suppress(NotFoundError):  # which the application turns into an answer
        assert client.get(f"/static/{path}").status_code == 404


def test_text_is_never_taken_for_markup():
    # DOMParser makes an inert document out of tables: see tables.js.
    for name, text in MODULES.items():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            name
        )


def test_every_message_has_a_translation():
    korean = set(re.findall(r'^  "([^"]+)": "', MODULES["web/korean.js"], re.MULTILINE))
    said = {label.value.replace("_", " ") for label in Label}
    for text in MODULES.values():
        for call in re.findall(r"\b(?:tr|countOf)\(([^)]*)", text):
            said |= {message for message in re.findall(r'"([^"]+)"', call) if message != "_"}
    assert said - korean - {" "} == set()


def test_every_category_of_errors_is_reported_in_korean():
    source = "".join(path.read_text(encoding="utf-8") for path in Path(pagemill.__file__).parent.rglob("*.py"))
    categories = set(re.findall(r'^ {4}category(?:: str)? = "(\w+)"|\bcategory="(\w+)"', source, re.MULTILINE))
    kinds = {kind for pair in categories for kind in pair if kind} | DOUBTS | {UNRELIABLE, *Flaw}
    assert kinds - set(re.findall(r'"error (\w+)": "', MODULES["web/korean.js"])) == set()


def test_the_report_has_every_module_of_the_viewer():
    # One file: what the app imports, the report contains.
    assert {f"viewer/{entry.name}" for entry in FOLDERS["viewer"].iterdir() if entry.name.endswith(".js")} == {
        name for name in (*report._MODULES, report._FORMULAS) if name.startswith("viewer/")
    }
