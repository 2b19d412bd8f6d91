// What was read, as nodes. Contents are untrusted: text goes in as text, tables are rebuilt from a list of allowed tags.

import { copyText, linkTo, make, percent, said, saveFile, tr } from "./dom.js";
import { formulaNode } from "./formula.js";
import { tableCsv, tableNodes, tableText } from "./tables.js";

const FAMILIES = {
  title: ["doc_title", "paragraph_title"],
  table: ["table"],
  figure: ["image", "chart", "seal", "header_image", "footer_image"],
  formula: ["display_formula", "inline_formula", "formula_number"],
  caption: ["figure_title", "vision_footnote"],
  margin: ["header", "footer", "number", "footnote", "aside_text", "reference"],
};
export const familyOf = (label) => Object.keys(FAMILIES).find((family) => FAMILIES[family].includes(label)) ?? "text";
export const labelName = (label) => tr(label.replaceAll("_", " "));

const MARK_TAGS = { bold: "strong", italic: "em", strike: "s", code: "code", superscript: "sup", subscript: "sub" };
const MOST_SPANS = 2000;
const MOST_INDENT = 30; // spaces

/** Append text with its inline marks, and the search hits in it marked. Spans count code points from `from` on. */
function appendText(parent, text, pattern, spans = [], from = 0) {
  const marks = pattern ? [...text.matchAll(pattern)].map((hit) => ({ start: hit.index, end: hit.index + hit[0].length, node: () => make("mark") })) : [];
  if (spans.length) {
    const units = [0]; // the place of each code point in the string
    for (const char of text) units.push(units.at(-1) + char.length);
    const place = (offset) => units[Math.max(0, Math.min(offset - from, units.length - 1))];
    for (const { start, end, mark, target } of spans.slice(0, MOST_SPANS)) {
      marks.push({ start: place(start), end: place(end), node: () => (mark === "link" ? linkTo(target) : MARK_TAGS[mark] && make(MARK_TAGS[mark])) });
    }
  }
  const cuts = [...new Set([0, text.length, ...marks.flatMap(({ start, end }) => [start, end])])].sort((a, b) => a - b);
  for (const [index, end] of cuts.slice(1).entries()) {
    const start = cuts[index];
    let node = text.slice(start, end);
    for (const mark of marks) {
      const around = mark.start <= start && end <= mark.end ? mark.node() : null;
      if (around) around.append(node), (node = around);
    }
    parent.append(node);
  }
  return parent;
}

/** The items of a list, each with its marks. */
function listItems(text, pattern, spans) {
  let from = 0;
  return text.split("\n").map((item) => {
    const length = [...item].length;
    const own = spans.filter(({ start, end }) => start < from + length && end > from);
    const indent = item.length - item.trimStart().length;
    const node = appendText(make("li"), item.slice(indent), pattern, own, from + indent);
    node.style.marginInlineStart = `${Math.min(indent, MOST_INDENT) * 0.6}em`;
    from += length + 1;
    return node;
  });
}

/** Text of a region as search sees it: without the tags of a table. */
export function plainText(region) {
  const { summary = "", keywords = [], chart } = region.description ?? {};
  return [contentText(region), summary, keywords.join(", "), ...(chart ?? []).flat()].filter(Boolean).join(" ");
}

const contentText = (region) => (region.content_format === "html" ? tableText(region.content ?? "") : region.content ?? "");

/** A regular expression for a query: white space matches any white space, case is ignored; null for an empty query. */
export function queryPattern(query) {
  const words = query.normalize("NFC").trim().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  return new RegExp(words.map((word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("\\s+"), "giu");
}

/** The picture of a region, cut out of the page image. */
function pictureNode(box, image, label) {
  const canvas = make("canvas", { class: "picture", role: "img", "aria-label": tr("{label}, cut out of the page", { label: labelName(label) }) });
  const draw = () => {
    const [x, y] = [(box[0] / 1000) * image.naturalWidth, (box[1] / 1000) * image.naturalHeight];
    canvas.width = Math.max(1, Math.round(((box[2] - box[0]) / 1000) * image.naturalWidth));
    canvas.height = Math.max(1, Math.round(((box[3] - box[1]) / 1000) * image.naturalHeight));
    canvas.getContext("2d").drawImage(image, x, y, canvas.width, canvas.height, 0, 0, canvas.width, canvas.height);
  };
  if (image.complete && image.naturalWidth) draw();
  else image.addEventListener("load", draw, { once: true });
  return canvas;
}

/** The lines of a listing that a model fenced, when that is all it wrote; else null. */
function fencedCode(text) {
  const lines = text.trim().split("\n");
  const fence = lines[0].slice(0, 3);
  return (fence === "```" || fence === "~~~") && lines.length > 2 && lines.at(-1).startsWith(fence) ? lines.slice(1, -1).join("\n") : null;
}

/** What a region says. `image` is the page's image element or null. */
function contentNode(region, pattern, image) {
  const code = region.content_format === "markdown" && region.content ? fencedCode(region.content) : null;
  const text = code ?? (region.content_format === "markdown" && region.level ? region.content?.replace(/^#{1,6} /, "") : region.content);
  if (region.content_format === "html" && text) return tableNodes(text, (parent, part) => appendText(parent, part, pattern));
  const shown = make("div", { class: "content", dir: "auto" });
  const spans = text === region.content ? (region.spans ?? []) : [];
  let formula;
  if (familyOf(region.label) === "figure" && image) shown.append(pictureNode(region.bbox_2d, image, region.label));
  if (text === null || text === undefined || text === "") {
    if (!shown.hasChildNodes()) shown.append(make("p", { class: "nothing" }, text === "" ? tr("Nothing was read here.") : tr("Not read.")));
  } else if (region.content_format === "latex" && (formula = formulaNode(text))) {
    shown.append(make("div", { class: "math" }, formula));
  } else if (code !== null || region.label === "algorithm") {
    shown.append(appendText(make("pre", { class: "formula" }), text, pattern));
  } else if (region.content_format === "latex" || region.content_format === "formula_text") {
    shown.append(appendText(make("code", { class: "formula" }), text, pattern));
  } else if (region.level) {
    const level = Math.min(region.level + 1, 6);
    shown.append(appendText(make("div", { class: `heading l${level}`, role: "heading", "aria-level": level }), text, pattern, spans));
  } else if (region.list_item) {
    shown.append(make("ul", {}, ...listItems(text, pattern, spans)));
  } else {
    shown.append(appendText(make("p"), text, pattern, spans));
  }
  return shown;
}

/** An error of a page or region. */
export function errorNode(error) {
  const { message, remedy, original } = said(error);
  return make(
    "div",
    { class: "error" },
    make("strong", {}, original ? message : `${error.component}: ${error.category.replaceAll("_", " ")}`),
    original ? null : make("p", {}, message),
    remedy ? make("p", { class: "remedy" }, remedy) : null,
    original ? make("p", { class: "original", lang: "en" }, original) : null,
  );
}

/** What a model says that a region shows; null without a description. */
function descriptionNode(description, pattern) {
  if (!description) return null;
  const shown = make("div", { class: "content description", dir: "auto" }, make("strong", {}, tr("Description")));
  for (const text of [description.summary, (description.keywords ?? []).join(", ")]) {
    if (text) shown.append(appendText(make("p"), text, pattern));
  }
  const rows = (description.chart ?? []).map((row, line) => make("tr", {}, ...row.map((cell) => appendText(make(line ? "td" : "th"), cell, pattern))));
  if (rows.length) shown.append(make("table", {}, ...rows));
  return shown;
}

/** Confidence as what it means: the share of the characters that is expected to be right. */
export const rightShare = (confidence) => (confidence === null ? null : tr("about {share} right", { share: percent(confidence) }));

/** A button that copies text and says so. */
export function copyButton(name, text) {
  const button = make("button", { type: "button", class: "small" }, name);
  button.addEventListener("click", async () => {
    const copied = await copyText(text());
    button.textContent = copied ? tr("Copied") : tr("Not copied");
    setTimeout(() => (button.textContent = name), 1500);
  });
  return button;
}

/** What can be done with a region: copy its text; save a table as CSV. `content` is its node, `name` that of a file. */
function actionsNode(region, content, name) {
  if (!region.content) return null;
  const table = content.querySelector("table");
  const save = () => saveFile(`${name}.csv`, new Blob([tableCsv(table)], { type: "text/csv" }));
  return make(
    "span",
    { class: "actions" },
    table ? make("button", { type: "button", class: "small", onclick: save }, "CSV") : null,
    copyButton(tr("Copy"), () => (table ? content.innerText : region.content)),
  );
}

/** A region with its facts, for the text pane. `name` is that of a file made from it. */
export function regionNode(region, number, errors, pattern, image, name) {
  const facts = [
    region.content_format === "formula_text" ? tr("formula as plain text") : region.content_format === "latex" ? "LaTeX" : region.content_format === "markdown" ? "Markdown" : null,
    region.caption_of !== null ? tr("belongs to {n}", { n: region.caption_of + 1 }) : null,
    region.continues ? tr("continues in the next") : null,
    region.attempts > 1 ? tr("{n} attempts", { n: region.attempts }) : null,
    rightShare(region.confidence),
    region.other_engine ? tr("also read by {engine}", { engine: region.other_engine }) : null,
    region.score !== null ? tr("found {share}", { share: percent(region.score) }) : null,
    region.engine || region.source || null,
  ].filter(Boolean);
  const content = contentNode(region, pattern, image);
  return make(
    "article",
    { class: "region", tabIndex: 0, "data-region": number, "data-family": familyOf(region.label), "aria-label": `${number + 1}, ${labelName(region.label)}` },
    make(
      "div",
      { class: "meta" },
      make("span", { class: "number" }, String(number + 1)),
      make("span", { class: "label" }, labelName(region.label)),
      make("span", { class: "more" }, facts.join(" · ")),
      actionsNode(region, content, name),
    ),
    content,
    descriptionNode(region.description, pattern),
    ...errors.map(errorNode),
  );
}
