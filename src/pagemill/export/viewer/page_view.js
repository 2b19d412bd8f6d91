// One page: the image with its overlays, the text beside it, and what ties them together.

import { errorNode, familyOf, labelName, plainText, regionNode, rightShare } from "./content.js";
import { make, seconds, toggleTheme, tr } from "./dom.js";

const SWITCHES = [
  // id, pressed at first, name, title, class of the sheet while it is off
  ["show-regions", true, "Regions", "Region boxes (o)", "no-boxes"],
  ["show-order", true, "Order", "Reading order (r)", "no-order"],
  ["show-lines", false, "Lines", "Text lines (l)", "no-lines"],
];

/**
 * Shows one page in two panes: `sheetPane` and `textPane`; `switches` and `tabs` belong to them. All are made here, to be
 * put where the page has room for them. `onstep(by)` is called for the next or previous page, `onselect(region)` when a
 * region is selected.
 */
export class PageView {
  constructor({ onstep, onselect }) {
    this.onstep = onstep;
    this.onselect = onselect;
    this.key = null;
    this.page = null;
    this.selected = null;
    this.zoom = 1;
    this.wholePage = true;
    this.makePanes();
    for (const pane of [this.sheet, this.text]) {
      pane.addEventListener("pointerover", (event) => this.point(this.regionAt(event)));
      pane.addEventListener("pointerleave", () => this.point(null));
      pane.addEventListener("click", (event) => {
        const region = this.regionAt(event);
        if (region !== null && getSelection().isCollapsed) this.select(region, { from: pane });
      });
      pane.addEventListener("dblclick", () => pane === this.sheet && this.zoomToRegion());
    }
    this.text.addEventListener("focusin", (event) => {
      const region = this.regionAt(event);
      if (region !== null && region !== this.selected) this.select(region, { from: this.text });
    });
    new ResizeObserver(() => this.fit()).observe(this.stage);
    this.drawSwitches();
  }

  makePanes() {
    const button = (id, sign, title, action, label = title) =>
      make("button", { type: "button", id, title, "aria-label": label, onclick: action }, sign);
    this.previous = button("previous", "‹", tr("Previous page (←)"), () => this.onstep(-1), tr("Previous page"));
    this.next = button("next", "›", tr("Next page (→)"), () => this.onstep(1), tr("Next page"));
    this.where = make("span", { class: "where", id: "where", role: "status" });
    this.sheet = make("div", { class: "sheet", id: "sheet" });
    this.stage = make("div", { class: "stage", id: "stage", tabIndex: -1 }, this.sheet);
    this.facts = make("span", { class: "facts", id: "facts" });
    this.textBar = make("div", { class: "bar" }, this.facts);
    this.text = make("div", { class: "text", id: "text", tabIndex: -1 });
    const sheetBar = make(
      "div",
      { class: "bar" },
      this.previous,
      this.where,
      this.next,
      make("span", { class: "grow" }),
      button("zoom-out", "−", tr("Smaller (−)"), () => this.zoomBy(1 / 1.25)),
      button("zoom-fit", tr("Fit"), tr("Whole page or full width (0)"), () => this.toggleFit()),
      button("zoom-in", "+", tr("Larger (+)"), () => this.zoomBy(1.25)),
    );
    this.sheetPane = make("section", { class: "sheet-pane", "aria-label": tr("Page image") }, sheetBar, this.stage);
    this.textPane = make("section", { class: "text-pane", "aria-label": tr("Text of the page") }, this.textBar, this.text);
    const switches = SWITCHES.map(([id, pressed, name, title]) =>
      make("button", { type: "button", id, "aria-pressed": String(pressed), title: tr(title), onclick: () => this.toggle(id) }, tr(name)));
    this.switches = make("div", { class: "tools", role: "group", "aria-label": tr("Show on the page image") }, ...switches);
    const tabs = [["pages", "Pages"], ["image", "Image"], ["text", "Text"]].map(([pane, name]) =>
      make("button", { type: "button", "data-pane": pane, onclick: () => this.showPane(pane) }, tr(name)));
    this.tabs = make("div", { class: "tabs", role: "group", "aria-label": tr("What to show") }, ...tabs);
  }

  /** Where panes are shown one at a time: show one of `pages`, `image`, `text`. */
  showPane(pane) {
    this.sheetPane.parentElement.dataset.pane = pane;
    for (const tab of this.tabs.children) tab.setAttribute("aria-pressed", String(tab.dataset.pane === pane));
    this.fit();
  }

  toggle(id) {
    const button = this.switches.querySelector(`#${id}`);
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    this.drawSwitches();
  }

  drawSwitches() {
    SWITCHES.forEach(([id, , , , off], at) => {
      const pressed = this.switches.children[at].getAttribute("aria-pressed") === "true";
      this.sheet.classList.toggle(off, !pressed);
      if (id === "show-lines") this.linesShown = pressed;
    });
    if (this.linesShown) this.drawLines();
  }

  /** What keys do on a page; a home adds its own. */
  keys() {
    return {
      ArrowRight: () => this.onstep(1),
      ArrowLeft: () => this.onstep(-1),
      j: () => this.step(1),
      k: () => this.step(-1),
      o: () => this.toggle("show-regions"),
      r: () => this.toggle("show-order"),
      l: () => this.toggle("show-lines"),
      t: toggleTheme,
      "+": () => this.zoomBy(1.25),
      "=": () => this.zoomBy(1.25),
      "-": () => this.zoomBy(1 / 1.25),
      0: () => this.toggleFit(),
      z: () => this.zoomToRegion(),
    };
  }

  regionAt(event) {
    const holder = event.target.closest("[data-region]");
    return holder ? Number(holder.dataset.region) : null;
  }

  /**
   * Show a page: its record and the address of its image, null without one. `key` tells pages apart, `accepts(label)`
   * says which regions to show, `pattern` is marked in the text, `spot` is a box in page pixels to highlight.
   */
  show(key, page, image, { accepts = () => true, pattern = null, spot = null } = {}) {
    const changed = key !== this.key;
    this.key = key;
    this.page = page;
    this.accepts = accepts;
    if (changed) {
      this.selected = null;
      this.drawImage(image);
      this.stage.scrollTo(0, 0);
      this.text.scrollTo(0, 0);
    }
    this.drawRegions(pattern);
    this.drawSpot(spot);
    this.drawFacts();
    this.fit();
    if (this.selected !== null) this.select(this.selected, { quiet: true });
    if (this.linesShown) this.drawLines();
  }

  drawImage(address) {
    const { page_number, doc_id, page_id } = this.page;
    const alt = page_number ? tr("Page {n} of {name}", { n: page_number, name: doc_id }) : page_id;
    this.image = address ? make("img", { alt, draggable: false, src: address }) : null;
    const isDocument = this.page.text_source.startsWith("document");
    const note = isDocument ? tr("Read from the file itself, which has no page images.") : this.page.width ? tr("No image was kept for this page.") : tr("This page has no image.");
    this.boxes = make("div", { class: "boxes", "aria-hidden": "true" });
    this.lines = make("div", { class: "lines", "aria-hidden": "true" });
    this.sheet.replaceChildren(this.image ?? make("p", { class: "no-image" }, note), this.lines, this.boxes);
    this.linesDrawn = false;
  }

  /** Highlight a box of the page, in its pixels. */
  drawSpot(spot) {
    this.sheet.querySelector(".spot")?.remove();
    if (!spot) return;
    const node = make("div", { class: "spot", "aria-hidden": "true" });
    place(node, ...this.thousandths(spot));
    this.sheet.append(node);
    node.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** A box in page pixels as thousandths of the page. */
  thousandths(box) {
    return box.map((pixels, side) => (pixels / Math.max(side % 2 ? this.page.height : this.page.width, 1)) * 1000);
  }

  drawRegions(pattern) {
    const { regions, errors } = this.page;
    const cards = errors.filter((error) => error.region === undefined).map(errorNode);
    const boxes = [];
    regions.forEach((region, number) => {
      if (!this.accepts(region.label)) return;
      const own = errors.filter((error) => error.region === region.index);
      const hit = pattern !== null && new RegExp(pattern, "iu").test(plainText(region));
      const card = regionNode(region, number, own, pattern, this.image, `${this.page.page_id}_${region.index}`);
      const box = this.boxNode(region, number);
      card.classList.toggle("hit", hit);
      box.classList.toggle("hit", hit);
      cards.push(card);
      if (region.source !== "whole-page") boxes.push(box); // without a place of its own it would cover all others
    });
    if (!cards.length) {
      cards.push(make("p", { class: "nothing" }, regions.length ? tr("The label filter hides all regions of this page.") : tr("Nothing was found on this page.")));
    }
    this.text.replaceChildren(...cards);
    this.boxes.replaceChildren(...boxes);
  }

  boxNode(region, number) {
    const [x1, y1, x2, y2] = region.bbox_2d;
    const box = make("div", { class: "box", "data-region": number, "data-family": familyOf(region.label), title: labelName(region.label) });
    place(box, x1, y1, x2, y2);
    // A region inside of another one must be reachable: the smaller, the higher.
    box.style.zIndex = String(1 + Math.round((1 - ((x2 - x1) * (y2 - y1)) / 1e6) * 100));
    box.append(make("span", { class: "order" }, String(number + 1)));
    return box;
  }

  drawLines() {
    if (this.linesDrawn || !this.page) return;
    this.linesDrawn = true;
    for (const region of this.page.regions) {
      for (const { text, box } of region.lines) {
        const line = make("div", { class: "line", title: text });
        place(line, ...this.thousandths(box));
        this.lines.append(line);
      }
    }
  }

  drawFacts() {
    const { page } = this;
    const sum = Object.values(page.timings).reduce((total, value) => total + value, 0);
    const read = { "text-layer": tr("text layer"), ocr: "OCR", document: tr("the file"), "document+ocr": tr("the file and OCR") }[page.text_source];
    this.facts.textContent = [
      page.page_id,
      page.width ? `${page.width} × ${page.height} px` : null,
      page.rotation ? tr("turned by {n}°", { n: page.rotation }) : null,
      read ? tr("text from {source}", { source: read }) : null,
      page.languages.join(", "),
      rightShare(page.confidence),
      sum ? seconds(sum) : null,
    ].filter(Boolean).join(" · ");
    this.facts.title = Object.entries(page.timings).map(([stage, value]) => `${stage} ${seconds(value)}`).join("\n");
  }

  /** Mark a region in both panes while the pointer is on it. */
  point(region) {
    for (const element of this.all(".pointed")) element.classList.remove("pointed");
    if (region !== null) for (const element of this.both(region)) element.classList.add("pointed");
  }

  both(region) {
    return this.all(`[data-region="${region}"]`);
  }

  all(selector) {
    return [...this.sheet.querySelectorAll(selector), ...this.text.querySelectorAll(selector)];
  }

  /** Select a region and bring it into view in the pane that the wish did not come from. */
  select(region, { from = null, quiet = false } = {}) {
    this.selected = region;
    for (const element of this.all(".selected")) element.classList.remove("selected");
    for (const element of this.both(region)) {
      element.classList.add("selected");
      if (!quiet && !(from && from.contains(element))) element.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    this.onselect?.(region);
  }

  /** Go to the next (1) or previous (-1) region shown. */
  step(by) {
    const cards = [...this.text.querySelectorAll(".region")];
    const at = cards.findIndex((card) => Number(card.dataset.region) === this.selected);
    const card = cards[at < 0 ? (by > 0 ? 0 : cards.length - 1) : at + by];
    if (!card) return;
    this.select(Number(card.dataset.region));
    card.focus({ preventScroll: true });
  }

  /** Zoom, and keep what is in the middle of the image there. */
  zoomBy(factor) {
    const { stage } = this;
    const middle = (scrolled, shown, all) => (scrolled + shown / 2) / all;
    const x = middle(stage.scrollLeft, stage.clientWidth, stage.scrollWidth);
    const y = middle(stage.scrollTop, stage.clientHeight, stage.scrollHeight);
    this.zoom = Math.min(6, Math.max(0.5, this.zoom * factor));
    this.fit();
    stage.scrollTo(x * stage.scrollWidth - stage.clientWidth / 2, y * stage.scrollHeight - stage.clientHeight / 2);
  }

  /** The selected region over the full width of its pane, beside its text; the second time the whole page again. */
  zoomToRegion() {
    const box = this.sheet.querySelector(".box.selected");
    if (!box) return;
    const wanted = this.zoom * ((this.stage.clientWidth - 32) / Math.max(box.offsetWidth, 1));
    this.zoom = this.zoom === 1 ? Math.min(6, Math.max(1, wanted)) : 1;
    this.fit();
    for (const element of this.both(this.selected)) element.scrollIntoView({ block: "center", inline: "center" });
  }

  toggleFit() {
    if (this.zoom === 1) this.wholePage = !this.wholePage;
    this.zoom = 1;
    this.fit();
  }

  /** Size the sheet: the whole page or its full width, times the zoom. */
  fit() {
    if (!this.page) return;
    const ratio = this.page.width && this.page.height ? this.page.width / this.page.height : 1 / Math.SQRT2;
    const [width, height] = [this.stage.clientWidth - 32, this.stage.clientHeight - 32];
    const base = this.wholePage && height > 200 ? Math.min(width, height * ratio) : width;
    this.sheet.style.width = `${Math.max(60, base * this.zoom)}px`;
    this.sheet.style.aspectRatio = String(ratio);
    this.text.style.zoom = String(Math.min(2, Math.max(0.75, this.zoom))); // the text grows with its image
  }
}

/** Put an element at a box in thousandths of the page. */
function place(element, x1, y1, x2, y2) {
  element.style.left = `${x1 / 10}%`;
  element.style.top = `${y1 / 10}%`;
  element.style.width = `${(x2 - x1) / 10}%`;
  element.style.height = `${(y2 - y1) / 10}%`;
}
