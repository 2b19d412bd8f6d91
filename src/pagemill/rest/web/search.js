// Search in all jobs: the hits in a list, each shown on its page.

import { countOf, make, tr } from "../viewer/dom.js";
import { failureNode } from "./parts.js";
import { getJson } from "./server.js";
import { Workspace } from "./workspace.js";

const MOST_HITS = 100;

export class SearchView {
  constructor(go) {
    this.go = go;
    this.hits = [];
    this.at = -1;
    this.ending = new AbortController();
    this.count = make("p", { class: "count", role: "status" });
    this.list = make("div", { class: "list", tabIndex: -1 });
    const side = make("nav", { class: "side", "aria-label": tr("Hits") }, this.count, this.list);
    this.workspace = new Workspace(side, { onstep: (by) => this.open(this.at + by) });
    this.nodes = this.workspace.nodes;
  }

  keys() {
    return { ...this.workspace.view.keys(), n: () => this.open(this.at + 1), p: () => this.open(this.at - 1) };
  }

  close() {
    this.ending.abort();
    this.workspace.close();
  }

  route({ query = "", collection = "" }) {
    this.ending.abort();
    this.ending = new AbortController();
    this.search(query, collection, this.ending.signal);
  }

  async search(query, collection, signal) {
    document.title = `${query} – pagemill`;
    this.count.textContent = tr("Searching…");
    try {
      const words = new URLSearchParams({ q: query, limit: String(MOST_HITS), ...(collection ? { collection } : {}) });
      const { hits } = await getJson(`/v1/search?${words}`, { signal });
      this.query = query;
      this.hits = hits;
      this.draw();
    } catch (error) {
      if (signal.aborted) return;
      this.count.textContent = "";
      this.list.replaceChildren();
      this.workspace.clear(failureNode(error, () => this.search(query, collection, signal)));
    }
  }

  draw() {
    this.at = -1;
    this.count.textContent = this.hits.length ? countOf(this.hits.length, "{n} hit", "{n} hits") : tr("No hits");
    this.list.replaceChildren(...this.hits.map((hit, at) => this.hitNode(hit, at)));
    if (this.hits.length) this.open(0, false);
    else this.workspace.clear(make("p", { class: "nothing" }, tr("Nothing was found for “{query}”. Pages of a job can be found once it is done.", { query: this.query })));
  }

  hitNode(hit, at) {
    const page = hit.page_number === null ? "" : ` · ${tr("Page {n}", { n: hit.page_number })}`;
    return make(
      "button",
      { type: "button", class: "hit-row", onclick: () => this.open(at) },
      make("strong", { dir: "auto" }, `${hit.name}${page}`),
      snippetNode(hit.snippet),
    );
  }

  open(at, leave = true) {
    const hit = this.hits[at];
    if (!hit) return;
    this.at = at;
    if (leave) this.workspace.leaveList();
    this.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    this.list.children[at].setAttribute("aria-current", "true");
    this.list.children[at].scrollIntoView({ block: "nearest" });
    this.workspace.view.previous.disabled = at === 0;
    this.workspace.view.next.disabled = at === this.hits.length - 1;
    this.workspace.open(hit.job, hit.n, { document: hit.name, query: this.query, spot: hit.box, region: hit.region_id });
  }
}

/** A snippet with its marked spans, which count code points. */
export function snippetNode({ text, marks }) {
  const points = Array.from(text);
  const node = make("span", { dir: "auto" });
  let done = 0;
  for (const [start, end] of marks) {
    node.append(points.slice(done, start).join(""), make("mark", {}, points.slice(start, end).join("")));
    done = end;
  }
  node.append(points.slice(done).join(""));
  return node;
}
