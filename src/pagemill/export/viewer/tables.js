// Tables out of untrusted HTML: rebuilt from a list of allowed tags, and as CSV.

import { linkTo, make, tr } from "./dom.js";

const TABLE_TAGS = new Set(
  "table thead tbody tfoot tr td th caption colgroup col br p ul ol li b i em strong sub sup u s code a".split(" "),
);
const DROPPED_TAGS = new Set("script style template iframe object embed svg math noscript".split(" "));
const MOST_NODES = 50000;
const MOST_CELLS = 200000;

/**
 * Parse HTML into an inert body: it runs no script and loads nothing. Attributes and raw-text elements are taken out
 * of the source first, because the browser reports an inline style or handler as a violation of the page's policy
 * even in a document that is never shown.
 */
function parseInert(html) {
  const bare = html.replace(/<(\/?)([a-z][a-z0-9]*)[^>]*>/gi, (tag, slash, name) => {
    const lower = name.toLowerCase();
    if (DROPPED_TAGS.has(lower)) return `<${slash}template>`;
    if (!TABLE_TAGS.has(lower)) return `<${slash}span>`;
    const spans = slash ? [] : [...tag.matchAll(/\b(rowspan|colspan)\s*=\s*["']?\s*(\d{1,5})/gi)];
    const target = lower === "a" && !slash ? tag.match(/\shref="([^"<>\s]*)"/)?.[1] : null;
    return `<${slash}${lower}${spans.map(([, span, value]) => ` ${span}=${value}`).join("")}${target ? ` href="${target}"` : ""}>`;
  });
  return new DOMParser().parseFromString(bare, "text/html").body;
}

/** The text of a table without its tags. */
export function tableText(html) {
  const body = parseInert(html);
  for (const hidden of body.querySelectorAll("template")) hidden.remove();
  for (const end of body.querySelectorAll("td, th, br, tr")) end.after(" ");
  return body.textContent.replace(/\s+/g, " ").trim();
}

/** A table as nodes, with row and column spans and targets of links as the only attributes; `append(parent, text)` adds its texts. */
export function tableNodes(html, append) {
  let left = MOST_NODES;
  const copyChildren = (from, to, depth) => {
    for (const child of from.childNodes) {
      if (--left < 0) return;
      if (child.nodeType === Node.TEXT_NODE) {
        append(to, child.data);
      } else if (child.nodeType === Node.ELEMENT_NODE && !DROPPED_TAGS.has(child.localName)) {
        const allowed = TABLE_TAGS.has(child.localName) && depth < 40;
        const target = (allowed && (child.localName === "a" ? linkTo(child.getAttribute("href")) : make(child.localName))) || to;
        for (const name of target === to ? [] : ["rowSpan", "colSpan"]) {
          const span = Number.parseInt(child.getAttribute(name) ?? "", 10);
          if (span > 1 && name in target) target[name] = Math.min(span, 1000);
        }
        if (target !== to) to.append(target);
        copyChildren(child, target, depth + 1);
      }
    }
  };
  const scroller = make("div", { class: "table", tabIndex: 0, role: "group", "aria-label": tr("Table") });
  copyChildren(parseInert(html), scroller, 0);
  return scroller;
}

// What a spreadsheet would compute gets an apostrophe; numbers and dashes stay as they are. As in export/csv_tables.py.
const FORMULA_START = /^\s*[=+\-@＝＋－＠]/;
const NUMBER = /^(?:[+\-－＋]?\s?\(?[$€£¥₩]?\s?\d[\d.,'\u00a0\u202f ]*\)?\s?[%‰]?|-+)$/;
const inert = (text) => (FORMULA_START.test(text) && !NUMBER.test(text.trim()) ? `'${text}` : text);

/** The cells of a table element row by row, each in all the slots that it covers. */
function tableGrid(table) {
  const grid = [];
  let left = MOST_CELLS;
  [...table.rows].forEach((row, at) => {
    let column = 0;
    for (const cell of row.cells) {
      while (grid[at]?.[column] !== undefined) column++;
      const height = Math.min(cell.rowSpan, table.rows.length - at);
      const text = inert(cell.textContent.replace(/\s+/g, " ").trim());
      for (let down = 0; down < height; down++) {
        grid[at + down] ??= [];
        for (let right = 0; right < cell.colSpan && left-- > 0; right++) grid[at + down][column + right] ??= text;
      }
      column += cell.colSpan;
    }
    grid[at] ??= [];
  });
  return grid;
}

/** A table element as CSV (RFC 4180), with the mark by which spreadsheets know UTF-8. */
export function tableCsv(table) {
  const quoted = (text = "") => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return `\ufeff${tableGrid(table).map((row) => `${Array.from(row, (cell) => quoted(cell)).join(",")}\r\n`).join("")}`;
}
