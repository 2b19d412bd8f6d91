// One page on show: the image with its overlays, the text beside it, and what ties them together.

class PageView {
  constructor() {
    this.sheet = byId("sheet");
    this.stage = byId("stage");
    this.text = byId("text");
    this.number = null;
    this.selected = null;
    this.zoom = 1;
    this.wholePage = true;
    for (const pane of [this.sheet, this.text]) {
      pane.addEventListener("pointerover", (event) => this.point(this.regionAt(event)));
      pane.addEventListener("pointerleave", () => this.point(null));
      pane.addEventListener("click", (event) => {
        const region = this.regionAt(event);
        if (region !== null && getSelection().isCollapsed) this.select(region, { from: pane });
      });
    }
    this.text.addEventListener("focusin", (event) => {
      const region = this.regionAt(event);
      if (region !== null && region !== this.selected) this.select(region, { from: this.text });
    });
    new ResizeObserver(() => this.fit()).observe(this.stage);
  }

  regionAt(event) {
    const holder = event.target.closest("[data-region]");
    return holder ? Number(holder.dataset.region) : null;
  }

  /** Show a page. `accepts(label)` says which regions; `pattern` is marked in the text. */
  show(number, accepts, pattern) {
    const changed = number !== this.number;
    this.number = number;
    this.page = readPage(number);
    this.accepts = accepts;
    if (changed) {
      this.selected = null;
      this.drawImage();
      this.stage.scrollTo(0, 0);
      this.text.scrollTo(0, 0);
    }
    this.drawRegions(pattern);
    this.drawFacts();
    this.fit();
    if (this.selected !== null) this.select(this.selected, { quiet: true });
  }

  drawImage() {
    const data = readImage(this.number);
    const { page_number, doc_id, page_id } = this.page;
    const alt = page_number ? `Page ${page_number} of ${doc_id}` : page_id;
    this.image = data ? make("img", { alt, draggable: false, src: data }) : null;
    const note = this.page.width ? "No image was kept for this page." : "This page has no image.";
    this.boxes = make("div", { class: "boxes", "aria-hidden": "true" });
    this.lines = make("div", { class: "lines", "aria-hidden": "true" });
    this.sheet.replaceChildren(this.image ?? make("p", { class: "no-image" }, note), this.lines, this.boxes);
    this.linesDrawn = false;
  }

  drawRegions(pattern) {
    const { regions, errors } = this.page;
    const cards = errors.filter((error) => error.region === undefined).map(errorNode);
    const boxes = [];
    regions.forEach((region, number) => {
      if (!this.accepts(region.label)) return;
      const own = errors.filter((error) => error.region === region.index);
      const hit = pattern !== null && new RegExp(pattern, "iu").test(plainText(region));
      const card = regionNode(region, number, own, pattern, this.image);
      const box = this.boxNode(region, number);
      card.classList.toggle("hit", hit);
      box.classList.toggle("hit", hit);
      cards.push(card);
      boxes.push(box);
    });
    if (!cards.length) {
      cards.push(make("p", { class: "nothing" }, regions.length ? "The label filter hides all regions of this page." : "Nothing was found on this page."));
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
    const { regions, width, height } = this.page;
    for (const region of regions) {
      for (const { text, box } of region.lines) {
        const line = make("div", { class: "line", title: text });
        place(line, ...box.map((pixels, side) => (pixels / Math.max(side % 2 ? height : width, 1)) * 1000));
        this.lines.append(line);
      }
    }
  }

  drawFacts() {
    const { page } = this;
    const sum = Object.values(page.timings).reduce((total, value) => total + value, 0);
    const read = { "text-layer": "text layer", ocr: "OCR" }[page.text_source];
    byId("facts").textContent = [
      page.page_id,
      page.width ? `${page.width} × ${page.height} px` : null,
      page.rotation ? `turned by ${page.rotation}°` : null,
      read ? `text from ${read}` : null,
      page.languages.join(", "),
      rightShare(page.confidence),
      sum ? seconds(sum) : null,
    ].filter(Boolean).join(" · ");
    byId("facts").title = Object.entries(page.timings).map(([stage, value]) => `${stage} ${seconds(value)}`).join("\n");
  }

  /** Mark a region in both panes while the pointer is on it. */
  point(region) {
    for (const element of document.querySelectorAll(".pointed")) element.classList.remove("pointed");
    if (region !== null) for (const element of this.both(region)) element.classList.add("pointed");
  }

  both(region) {
    return document.querySelectorAll(`#sheet .box[data-region="${region}"], #text .region[data-region="${region}"]`);
  }

  /** Select a region and bring it into view in the pane that the wish did not come from. */
  select(region, { from = null, quiet = false } = {}) {
    this.selected = region;
    for (const element of document.querySelectorAll(".selected")) element.classList.remove("selected");
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

  setZoom(zoom) {
    this.zoom = Math.min(6, Math.max(0.5, zoom));
    this.fit();
  }

  toggleFit() {
    if (this.zoom === 1) this.wholePage = !this.wholePage;
    this.setZoom(1);
  }

  /** Size the sheet: the whole page or its full width, times the zoom. */
  fit() {
    if (!this.page) return;
    const ratio = this.page.width && this.page.height ? this.page.width / this.page.height : 1 / Math.SQRT2;
    const [width, height] = [this.stage.clientWidth - 32, this.stage.clientHeight - 32];
    const base = this.wholePage && height > 200 ? Math.min(width, height * ratio) : width;
    this.sheet.style.width = `${Math.max(60, base * this.zoom)}px`;
    this.sheet.style.aspectRatio = String(ratio);
  }
}

/** Put an element at a box in thousandths of the page. */
function place(element, x1, y1, x2, y2) {
  element.style.left = `${x1 / 10}%`;
  element.style.top = `${y1 / 10}%`;
  element.style.width = `${(x2 - x1) / 10}%`;
  element.style.height = `${(y2 - y1) / 10}%`;
}
