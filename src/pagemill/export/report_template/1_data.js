// The data blocks of the file, parsed when asked for, and the search over them.
"use strict";

const byId = (id) => document.getElementById(id);
const readJson = (id) => JSON.parse(byId(id).textContent);

/** Make an element: properties starting with "data-", "aria-" or named "role" are attributes; text is never HTML. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name === "class") element.className = value;
    else if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A page's data; the three read last are kept. */
const pageCache = new Map();
function readPage(number) {
  let page = pageCache.get(number);
  if (!page) {
    page = readJson(`page-${number}`);
    pageCache.set(number, page);
    if (pageCache.size > 3) pageCache.delete(pageCache.keys().next().value);
  }
  return page;
}

/** A page's image as a data URI, or null. */
const readImage = (number) => byId(`image-${number}`)?.textContent ?? null;

/** Text of a region as search sees it: without the tags of a table. */
function plainText(region) {
  const { summary = "", keywords = [], chart } = region.description ?? {};
  return [contentText(region), summary, keywords.join(", "), ...(chart ?? []).flat()].filter(Boolean).join(" ");
}

function contentText(region) {
  if (region.content_format !== "html") return region.content ?? "";
  const body = new DOMParser().parseFromString(region.content ?? "", "text/html").body;
  for (const hidden of body.querySelectorAll("script, style, template")) hidden.remove();
  for (const end of body.querySelectorAll("td, th, br, tr")) end.after(" ");
  return body.textContent.replace(/\s+/g, " ").trim();
}

/** A regular expression for a query: white space matches any white space, case is ignored; null for an empty query. */
function queryPattern(query) {
  const words = query.normalize("NFC").trim().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  return new RegExp(words.map((word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("\\s+"), "giu");
}

const SLICE_MS = 10;
const pause = () => new Promise((resume) => setTimeout(resume));

/** Searches all pages without holding up the page: texts are read once, in slices, and every search is in slices too. */
class Search {
  constructor(total) {
    this.total = total;
    this.texts = []; // of each page: [[region number, label, text], ...]
    this.run = 0;
  }

  indexPage() {
    const page = readJson(`page-${this.texts.length}`);
    this.texts.push(page.regions.map((region, number) => [number, region.label, plainText(region)]));
  }

  async buildIndex() {
    let sliceEnd = performance.now() + SLICE_MS;
    while (this.texts.length < this.total) {
      this.indexPage();
      if (performance.now() > sliceEnd) {
        await pause();
        sliceEnd = performance.now() + SLICE_MS;
      }
    }
  }

  /**
   * Find a pattern on the pages that `accepts(page number, label)` lets through.
   * Calls report(pages with hits so far, pages looked at) after each slice; a newer search ends an older one.
   */
  async find(pattern, accepts, report) {
    const run = ++this.run;
    const found = [];
    let sliceEnd = performance.now() + SLICE_MS;
    for (let page = 0; page < this.total; page++) {
      while (this.texts.length <= page) this.indexPage();
      const hits = [];
      for (const [region, label, text] of this.texts[page]) {
        if (!accepts(page, label)) continue;
        for (const match of text.matchAll(pattern)) {
          hits.push({ page, region, start: match.index, length: match[0].length, text });
        }
      }
      if (hits.length) found.push({ page, hits });
      if (performance.now() > sliceEnd) {
        report(found, page + 1);
        await pause();
        if (run !== this.run) return;
        sliceEnd = performance.now() + SLICE_MS;
      }
    }
    report(found, this.total);
  }

  cancel() {
    this.run++;
  }
}
