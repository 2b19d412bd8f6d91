// One job: its progress while it runs, its pages, and what can be done with it.

import { grouped, keepSetting, keptSetting, make, percent, tr } from "../viewer/dom.js";
import { confirmed, failureNode, icon, progressNode, progressText, stateNode, stem } from "./parts.js";
import { download, eachPages, getJson, isOver, jobEvents, jobPath, send } from "./server.js";
import { VirtualList } from "./virtual_list.js";
import { fetchImage, Workspace } from "./workspace.js";

const FILTERS = {
  all: ["All", () => true],
  warned: ["Warnings", (page) => page.status !== "failed" && page.errors.length > 0],
  failed: ["Failed", (page) => page.status === "failed"],
};
const THUMBNAILS_KEY = "pagemill-thumbnails";
const THUMBNAIL_PX = 160;
const SETTLED_MS = 150; // rows that scroll by ask for no thumbnail

export class JobView {
  constructor(id, go) {
    this.id = id;
    this.go = go;
    this.pages = new Map(); // n: entry of the page list
    this.filter = "all";
    this.page = null; // number of the page shown
    this.cursor = { last: null };
    this.ending = new AbortController();
    this.notice = make("div", { class: "notices" });
    this.filters = make("div", { class: "segments", role: "radiogroup", "aria-label": tr("Filter by status") });
    this.list = new VirtualList({ label: tr("Pages"), draw: (page) => this.drawRow(page), onopen: (page) => this.openRow(page) });
    this.count = make("p", { class: "count", role: "status", hidden: true }, tr("No such pages."));
    this.thumbnails = new Map(); // n: the address of its image, to come
    const side = make("nav", { class: "side", "aria-label": tr("Pages") }, make("div", { class: "filters" }, this.filters, this.makeFinder()), this.count, this.list.element);
    this.workspace = new Workspace(side, { onstep: (by) => this.step(by), onselect: (region) => this.onselect(region) });
    this.makeBar();
    this.nodes = [this.bar, this.notice, ...this.workspace.nodes];
    this.makeFilters();
    this.start();
  }

  keys() {
    return { ...this.workspace.view.keys(), g: () => this.jump.select() };
  }

  close() {
    this.ending.abort();
    this.workspace.close();
    for (const address of this.thumbnails.values()) address.then((found) => found && URL.revokeObjectURL(found), () => {});
  }

  async start() {
    const { signal } = this.ending;
    try {
      this.take(await getJson(jobPath(this.id), { signal }));
      await eachPages(this.id, (pages) => this.takePages(pages), signal);
      this.loaded = true;
      this.route(this.target);
      if (!isOver(this.job)) await this.follow();
    } catch (error) {
      if (signal.aborted) return;
      const gone = error.status === 404;
      const failure = failureNode(error, gone ? null : () => this.start());
      if (gone) failure.append(make("a", { href: "#/" }, tr("All jobs")));
      this.notice.replaceChildren(failure);
    }
  }

  /** Follow the job until it ends; then read the list again, for what the events do not say. */
  async follow() {
    const onlost = (error) => this.notice.replaceChildren(...(error ? [failureNode(error)] : []));
    for await (const { type, data } of jobEvents(this.id, this.cursor, this.ending.signal, onlost)) {
      if (type === "job") this.take(data);
      if (type === "page") this.takePages([this.entryOf(data)]);
    }
    if (this.ending.signal.aborted) return;
    const there = new Set();
    await eachPages(this.id, (pages) => (pages.forEach(({ n }) => there.add(n)), this.takePages(pages)), this.ending.signal);
    for (const n of this.pages.keys()) if (!there.has(n)) this.pages.delete(n); // the failure of a file that has pages now
    if (!there.has(this.page)) this.page = null;
    this.drawList();
  }

  /** The entry of the page list for an event, which says less: of errors only those of failed pages. */
  entryOf(event) {
    const known = this.pages.get(event.n);
    const name = this.job.documents.find((each) => each.id === event.document)?.name ?? event.document;
    return { name, confidence: null, ...known, ...event, errors: event.status === "failed" ? event.errors : (known?.status === "done" ? known.errors : []) };
  }

  take(job) {
    this.job = job;
    document.title = `${job.name} – pagemill`;
    this.drawBar();
    this.drawList();
  }

  /** Take entries of the page list; the list is drawn once for all that come within a frame. */
  takePages(pages) {
    for (const page of pages) {
      if (page.status !== "done" && page.status !== "failed") continue; // there is nothing to show yet
      const before = this.pages.get(page.n);
      this.pages.set(page.n, page);
      if (page.n === this.page && before && before.status !== page.status) {
        this.workspace.open(this.id, page.n, { document: page.name, fresh: true }); // it was parsed again
      }
    }
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      this.drawList();
    });
  }

  // The bar above: what the job is, how far it is, what can be done. Made once, so that no click is lost to a change.

  makeBar() {
    const button = (id, name, action) => make("button", { type: "button", id, onclick: () => this.attempt(action) }, name);
    this.title = make("h2", { dir: "auto" });
    this.state = make("span", { role: "status" });
    this.progress = make("span", { class: "track-holder" });
    this.measures = make("span", { id: "progress" });
    this.actions = {
      retry: button("retry", tr("Retry failed pages"), () => this.retry()),
      cancel: button("cancel", tr("Cancel"), () => this.cancel()),
      remove: button("remove", tr("Remove"), () => this.remove()),
    };
    const all = make("button", { type: "button", id: "download-all", onclick: () => this.attempt(() => this.downloadAll()) }, tr("Everything (.zip)"));
    this.documentLabel = make("p", { dir: "auto" });
    const choices = make("div", {}, all, this.documentLabel);
    this.attempt(async () => {
      const { formats } = await getJson("/v1/options", { signal: this.ending.signal });
      choices.append(...Object.entries(formats).map(([suffix, name]) =>
        make("button", { type: "button", onclick: () => this.attempt(() => this.downloadDocument(suffix)) }, name)));
    });
    this.menu = make("details", { class: "menu", id: "download" }, make("summary", {}, tr("Download")), choices);
    this.menu.addEventListener("focusout", (event) => {
      if (!this.menu.contains(event.relatedTarget)) this.menu.open = false;
    });
    this.problem = make("div", { class: "problem" });
    this.makeUnlock();
    this.bar = make(
      "section",
      { class: "jobbar", "aria-label": tr("Job") },
      make("a", { class: "back", href: "#/", "aria-label": tr("All jobs"), title: tr("All jobs") }, icon("back")),
      make("div", { class: "about" }, this.title, this.state),
      make("div", { class: "measure" }, this.progress, this.measures),
      make("div", { class: "tools plain" }, this.workspace.view.switches, this.menu, ...Object.values(this.actions)),
      this.problem,
      this.unlock,
    );
    this.bar.hidden = true;
  }

  drawBar() {
    const { job } = this;
    const over = isOver(job);
    this.bar.hidden = false;
    this.title.textContent = this.title.title = job.name;
    this.state.replaceChildren(stateNode(job));
    this.progress.replaceChildren(progressNode(job));
    this.measures.textContent = progressText(job);
    this.menu.hidden = job.pages.finished === 0;
    this.actions.retry.hidden = !over || !job.pages.failed;
    this.actions.cancel.hidden = over;
    this.actions.remove.hidden = !over;
    const asked = job.error?.category === "encrypted" ? { remedy: null } : {}; // the form below asks
    this.problem.replaceChildren(...(job.error ? [failureNode({ ...job.error, ...asked })] : []));
    this.documentLabel.textContent = this.currentDocument()?.name ?? "";
  }

  /** The document of the page shown, or the first. */
  currentDocument() {
    const { documents } = this.job;
    const page = this.pages.get(this.page); // maybe of a document inside of a file
    const inside = page && { id: page.document, name: page.name };
    return documents.find((each) => each.id === page?.document) ?? inside ?? documents[0];
  }

  downloadAll() {
    this.menu.open = false;
    return download(jobPath(this.id, "download.zip"), `${stem(this.job.name)}.zip`);
  }

  downloadDocument(suffix) {
    const { id, name } = this.currentDocument();
    this.menu.open = false;
    return download(jobPath(this.id, "documents", `${id}.${suffix}`), `${stem(name)}.${suffix}`);
  }

  /** Do something, and show it if it fails. */
  async attempt(action) {
    try {
      this.notice.replaceChildren();
      await action();
    } catch (error) {
      if (!this.ending.signal.aborted) this.notice.replaceChildren(failureNode(error));
    }
  }

  async retry(password = null) {
    const body = JSON.stringify({ password });
    this.take(await (await send(jobPath(this.id, "retry"), { method: "POST", headers: { "Content-Type": "application/json" }, body })).json());
    await this.follow();
  }

  async cancel() {
    this.take(await (await send(jobPath(this.id, "cancel"), { method: "POST" })).json());
  }

  async remove() {
    if (!(await confirmed(tr("Remove this job with its files and results?"), tr("Remove")))) return;
    await send(jobPath(this.id), { method: "DELETE" });
    this.go("#/");
  }

  // The list of pages.

  makeFilters() {
    this.counts = {};
    for (const [filter, [name]] of Object.entries(FILTERS)) {
      const radio = make("input", { type: "radio", name: "filter", value: filter, checked: filter === "all" });
      radio.addEventListener("change", () => {
        this.filter = filter;
        this.drawList();
      });
      this.counts[filter] = make("small", {}, "0");
      this.filters.append(make("label", {}, radio, make("span", {}, tr(name), this.counts[filter])));
    }
  }

  drawList() {
    const all = [...this.pages.values()].sort((a, b) => a.n - b.n);
    for (const [filter, [, accepts]] of Object.entries(FILTERS)) this.counts[filter].textContent = grouped(all.filter(accepts).length);
    const shown = all.filter(FILTERS[this.filter][1]);
    this.drawUnlock();
    this.list.show(this.withHeadings(shown), (page) => page.n === this.page);
    this.count.hidden = shown.length > 0 || this.filter === "all";
    if (this.page === null) this.showNone(shown);
    this.drawPlace();
  }

  /** No page is chosen yet: go to the first one, or say why there is none. */
  showNone(shown) {
    const first = shown.find(({ status }) => status === "done") ?? (this.filter !== "all" || (this.job && isOver(this.job)) ? shown[0] : null);
    if (first) return this.goPage(first);
    if (!this.loaded) return undefined;
    if (this.pages.size && !shown.length) return this.workspace.clear(make("p", { class: "nothing" }, tr("No such pages.")));
    const message = !this.job || !isOver(this.job) ? tr("Pages appear here as soon as they are read.") : tr("This job has no pages.");
    return this.workspace.clear(make("p", { class: "nothing" }, message));
  }

  /** The pages with a heading before those of each document, where there are several. */
  withHeadings(pages) {
    const isOne = (this.job?.documents.length ?? 0) < 2 && pages.every((each) => each.document === pages[0].document);
    if (isOne || this.list.tall) return pages; // tall rows name their document
    this.headings ??= new Map();
    const items = [];
    for (const [at, page] of pages.entries()) {
      if (page.document !== pages[at - 1]?.document) {
        if (!this.headings.has(page.document)) this.headings.set(page.document, { heading: page.name });
        items.push(this.headings.get(page.document));
      }
      items.push(page);
    }
    return items;
  }

  drawRow(page) {
    if (page.heading) return [make("span", { class: "title", dir: "auto", title: page.heading }, page.heading)];
    const failed = page.status === "failed";
    const note = failed ? tr("failed") : page.errors.length ? tr("warning") : null;
    const share = page.confidence === null || failed ? "" : percent(page.confidence);
    const number = page.page_number === null ? tr("Document") : tr("Page {n}", { n: page.page_number });
    const lines = this.list.tall
      ? [this.job.documents.length > 1 ? make("small", {}, page.name) : null, make("small", {}, number), page.title || null]
      : [page.title ? make("span", { class: "page-number" }, String(page.page_number ?? "")) : null, page.title || number];
    return [
      this.list.tall ? this.thumbnailNode(page) : null,
      make("span", { class: "title", dir: "auto", title: page.title ? `${number}: ${page.title}` : number }, ...lines),
      make("span", { class: "share", title: tr("characters expected to be right") }, share),
      note ? make("span", { class: failed ? "mark bad" : "mark" }, note) : null,
    ].filter(Boolean);
  }

  /** A small image of a page, which is asked for when the row has stayed in view for a moment. */
  thumbnailNode(page) {
    const image = make("img", { class: "thumbnail", alt: "" });
    if (!page.width && ["done", "failed"].includes(page.status)) return image;
    setTimeout(async () => {
      if (!image.isConnected) return;
      const path = `${jobPath(this.id, "pages", page.n, "image")}?width=${THUMBNAIL_PX}`;
      if (!this.thumbnails.has(page.n)) this.thumbnails.set(page.n, fetchImage(path, this.ending.signal).catch(() => null));
      const address = await this.thumbnails.get(page.n);
      if (address) image.src = address;
    }, SETTLED_MS);
    return image;
  }

  /** Below the filters: a page by its number, and thumbnails. */
  makeFinder() {
    this.jump = make("input", { type: "search", id: "jump", inputMode: "numeric", autocomplete: "off", placeholder: tr("Go to page (g)"), "aria-label": tr("Go to page (g)") });
    const form = make("form", { class: "jump" }, this.jump);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.jumpTo(Number(this.jump.value));
    });
    this.thumbnailSwitch = make("button", { type: "button", id: "thumbnails", title: tr("Thumbnails"), "aria-label": tr("Thumbnails"), onclick: () => this.showThumbnails(!this.list.tall) }, "▦");
    form.append(this.thumbnailSwitch);
    this.showThumbnails(keptSetting(THUMBNAILS_KEY) === "yes");
    return form;
  }

  showThumbnails(shown) {
    keepSetting(THUMBNAILS_KEY, shown ? "yes" : "no");
    this.thumbnailSwitch.setAttribute("aria-pressed", String(shown));
    this.list.setTall(shown);
    if (!this.job) return;
    this.drawList();
    this.list.reveal();
  }

  /** Go to the page of a number: of the document shown, else of the first one that has it. */
  jumpTo(number) {
    const found = [...this.pages.values()].filter((page) => page.page_number === number).sort((a, b) => a.n - b.n);
    const page = found.find((each) => each.document === this.pages.get(this.page)?.document) ?? found[0];
    this.jump.setCustomValidity(page ? "" : tr("There is no such page."));
    if (!page) return void this.jump.reportValidity();
    this.jump.blur();
    this.openRow(page);
  }

  makeUnlock() {
    const password = make("input", { type: "password", id: "unlock", required: true, maxLength: 1000, autocomplete: "off", "aria-label": tr("Password") });
    this.locked = make("span", { dir: "auto" });
    this.unlock = make("form", { class: "unlock", hidden: true }, this.locked, password, make("button", { class: "primary" }, tr("Open")));
    this.unlock.addEventListener("submit", (event) => {
      event.preventDefault();
      const { value } = password;
      password.value = "";
      this.tried = true;
      this.attempt(() => this.retry(value));
    });
  }

  /** Ask for the password of files that are encrypted. */
  drawUnlock() {
    const locked = isOver(this.job) ? [...this.pages.values()].filter((page) => page.errors.some(({ category }) => category === "encrypted")) : [];
    this.unlock.hidden = !locked.length;
    const names = [...new Set(locked.map(({ name }) => name))].slice(0, 3).join(", ");
    this.locked.textContent = this.tried ? tr("This is not the password of {names}.", { names }) : tr("Password of {names}", { names });
    this.unlock.classList.toggle("wrong", this.tried === true);
  }

  /** Where in the list the page shown is. */
  drawPlace() {
    this.workspace.view.previous.disabled = !this.list.neighbour(-1);
    this.workspace.view.next.disabled = !this.list.neighbour(1);
  }

  openRow(page) {
    this.goPage(page);
    this.workspace.leaveList();
  }

  step(by) {
    const page = this.list.neighbour(by);
    if (page) this.goPage(page);
  }

  goPage(page) {
    this.go(`#/jobs/${this.id}/${page.n}`, "replace"); // so that Back leads to the jobs, not through all pages
  }

  /** Go where an address says: to a page and a region of it. */
  route(target) {
    const { page, region } = target;
    this.target = target;
    this.page = page;
    if (!this.loaded) return; // it is routed again then
    if (page !== null) this.workspace.open(this.id, page, { document: this.currentDocument()?.name ?? "", region });
    this.drawList();
    this.drawBar();
    this.list.reveal();
  }

  onselect(region) {
    this.go(`#/jobs/${this.id}/${this.page}?region=${region + 1}`, "silent");
  }
}
