// A list of any length of which only the rows in view are elements.

import { make } from "../viewer/dom.js";

const MARGIN_ROWS = 8;
const TALL = 124; // a thumbnail
const LOW = () => (matchMedia("(max-width: 760px)").matches ? 44 : 32); // fingers need more than a pointer

/**
 * `draw(item)` makes the content of a row; items with `heading` are headings, which cannot be opened.
 * `onopen(item)` is called for a click, for Enter, and for the arrow keys while the list has the focus.
 */
export class VirtualList {
  constructor({ label, draw, onopen }) {
    this.draw = draw;
    this.onopen = onopen;
    this.items = [];
    this.rows = new Map(); // item: its element, while it is in view
    this.current = -1;
    this.space = make("div", { class: "space", role: "presentation" });
    this.element = make("div", { class: "list virtual", tabIndex: 0, role: "listbox", "aria-label": label }, this.space);
    this.element.addEventListener("scroll", () => this.render(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.onkey(event));
    this.space.addEventListener("click", (event) => {
      const row = event.target.closest("[data-at]");
      if (row) this.open(Number(row.dataset.at));
    });
    new ResizeObserver(() => this.render()).observe(this.element);
  }

  /** Show these items; the one that `isCurrent` accepts is marked. */
  show(items, isCurrent) {
    this.items = items;
    this.current = items.findIndex((item) => !item.heading && isCurrent(item));
    let position = 0;
    this.positions = items.map((item) => (item.heading ? position : ++position));
    this.render();
  }

  /** Make rows tall or low; all are drawn again. */
  setTall(tall) {
    this.tall = tall;
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
  }

  rowHeight() {
    return this.tall ? TALL : LOW();
  }

  open(at) {
    const item = this.items[at];
    if (item && !item.heading) this.onopen(item);
  }

  /** The item that comes so many rows after the current one, headings not counted; undefined at an end. */
  neighbour(by) {
    let at = this.current < 0 && by < 0 ? this.items.length : this.current;
    do at += by; while (this.items[at]?.heading);
    return this.items[at];
  }

  onkey(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const item = by ? this.neighbour(by) : { Home: this.items.find((each) => !each.heading), End: this.items.findLast((each) => !each.heading) }[event.key];
    if (!item) return;
    event.preventDefault();
    this.onopen(item);
  }

  reveal() {
    const height = this.rowHeight();
    const top = this.current * height;
    if (this.current < 0) return;
    if (top < this.element.scrollTop) this.element.scrollTop = top - height;
    else if (top + height > this.element.scrollTop + this.element.clientHeight) this.element.scrollTop = top + 2 * height - this.element.clientHeight;
    this.render();
  }

  render() {
    const height = this.rowHeight();
    this.space.style.height = `${this.items.length * height}px`;
    const first = Math.max(0, Math.floor(this.element.scrollTop / height) - MARGIN_ROWS);
    const last = Math.min(this.items.length, Math.ceil((this.element.scrollTop + this.element.clientHeight) / height) + MARGIN_ROWS);
    const inView = new Set(this.items.slice(first, last));
    for (const [item, row] of this.rows) {
      if (inView.has(item)) continue;
      row.remove();
      this.rows.delete(item);
    }
    for (let at = first; at < last; at++) this.placeRow(at, at - first, height);
    if (this.current >= 0) this.element.setAttribute("aria-activedescendant", `row-${this.current}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /** Put a row in its place. A row that stays is not inserted again: a click on it would be lost. */
  placeRow(at, place, height) {
    const item = this.items[at];
    let row = this.rows.get(item);
    if (!row) {
      row = make("div", item.heading ? { class: "row heading-row", role: "presentation" } : { class: "row", role: "option" }, ...this.draw(item));
      this.rows.set(item, row);
    }
    if (this.space.children[place] !== row) this.space.insertBefore(row, this.space.children[place] ?? null);
    row.style.top = `${at * height}px`;
    row.style.height = `${height}px`;
    if (item.heading) return;
    row.id = `row-${at}`;
    row.dataset.at = at;
    row.ariaSelected = String(at === this.current);
    row.ariaPosInSet = this.positions[at];
    row.ariaSetSize = this.positions.at(-1);
  }
}
