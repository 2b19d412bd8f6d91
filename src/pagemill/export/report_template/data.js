// The data blocks of the file, parsed when asked for, and the search over them.
import { plainText } from "../viewer/content.js";
import { byId } from "../viewer/dom.js";

export const readJson = (id) => JSON.parse(byId(id).textContent);

/** A page's data; the three read last are kept. */
const pageCache = new Map();
export function readPage(number) {
  let page = pageCache.get(number);
  if (!page) {
    page = readJson(`page-${number}`);
    pageCache.set(number, page);
    if (pageCache.size > 3) pageCache.delete(pageCache.keys().next().value);
  }
  return page;
}

/** A page's image as a data URI, or null. */
export const readImage = (number) => byId(`image-${number}`)?.textContent ?? null;

const SLICE_MS = 10;
const pause = () => new Promise((resume) => setTimeout(resume));

/** Searches all pages without holding up the page: texts are read once, in slices, and every search is in slices too. */
export class Search {
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
