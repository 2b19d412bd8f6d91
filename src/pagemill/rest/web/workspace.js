// The three panes: a list, the page image, its text. The list is given; pages are fetched from the server.

import { copyButton, queryPattern } from "../viewer/content.js";
import { make, tr } from "../viewer/dom.js";
import { PageView } from "../viewer/page_view.js";
import { failureNode, stem } from "./parts.js";
import { getJson, jobPath, send } from "./server.js";

export class Workspace {
  /** `side` is the list's pane; `onstep(by)` goes to another page, `onselect(region)` is told what is selected. */
  constructor(side, { onstep, onselect = () => {} }) {
    this.view = new PageView({ onstep, onselect });
    this.copy = copyButton(tr("Copy page as Markdown"), () => this.view.page.markdown);
    this.copy.hidden = true;
    this.view.textBar.append(make("span", { class: "grow" }), this.copy);
    this.panes = make("main", { class: "panes", id: "panes" }, side, this.view.sheetPane, this.view.textPane);
    this.nodes = [this.panes, this.view.tabs];
    this.view.showPane("pages");
    this.image = null;
    this.loading = new AbortController();
  }

  /**
   * Show a page of a job, read again from the server if it is another one or `fresh` says so. `document` is the name of
   * its file as the user knows it. `region` is selected, `spot` highlighted, hits of `query` are marked.
   */
  async open(job, page, { document, fresh = false, region = null, spot = null, query = "" }) {
    const key = `${job}/${page}`;
    const options = { pattern: queryPattern(query), spot };
    if (fresh || key !== this.view.key) {
      this.loading.abort();
      this.loading = new AbortController();
      const { signal } = this.loading;
      this.panes.ariaBusy = "true"; // what is shown until then is another page
      try {
        const record = await getJson(jobPath(job, "pages", page), { signal });
        // A file that was not opened has none, and a document that is no PDF neither.
        const hasImage = record.width && !record.text_source?.startsWith("document");
        const image = hasImage ? await fetchImage(jobPath(job, "pages", page, "image"), signal) : null;
        if (signal.aborted) return;
        this.setPlace(document, record.page_number);
        record.doc_id = document; // the server has numbers for documents
        record.page_id = [stem(document), record.page_number].filter((part) => part !== null).join("_");
        if (this.image) URL.revokeObjectURL(this.image);
        this.image = image;
        if (fresh) this.view.key = null;
        this.view.show(key, record, image, options);
      } catch (error) {
        if (!signal.aborted) this.fail(error, () => this.open(...arguments));
        return;
      } finally {
        if (!signal.aborted) this.panes.ariaBusy = "false";
      }
    } else {
      this.view.show(key, this.view.page, this.image, options);
    }
    this.copy.hidden = !this.view.page.markdown;
    if (region !== null) this.view.select(region);
  }

  setPlace(document, number) {
    this.view.where.textContent = number === null ? document : `${document}, ${tr("Page {n}", { n: number })}`;
  }

  /** Show nothing but a message. */
  clear(node) {
    this.loading.abort();
    this.panes.ariaBusy = "false";
    this.view.key = null;
    this.view.page = null;
    this.view.where.textContent = this.view.facts.textContent = "";
    this.view.sheet.removeAttribute("style");
    this.view.sheet.replaceChildren(node.cloneNode(true));
    this.view.text.replaceChildren(node);
    this.copy.hidden = true;
  }

  fail(error, again) {
    this.clear(failureNode(error));
    this.view.sheet.replaceChildren(failureNode(error, again));
  }

  /** Turn to the page where panes are shown one at a time. */
  leaveList() {
    if (this.panes.dataset.pane === "pages") this.view.showPane("image");
  }

  close() {
    this.loading.abort();
    if (this.image) URL.revokeObjectURL(this.image);
  }
}

/** The address of a page's image in memory, which an element can load without the key; null where there is none. */
export async function fetchImage(path, signal) {
  try {
    return URL.createObjectURL(await (await send(path, { signal })).blob());
  } catch (error) {
    if (error.status >= 400 && error.status < 500) return null; // the record says what is wrong with the page
    throw error;
  }
}
