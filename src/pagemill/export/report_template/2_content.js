// What was read, as nodes. Contents are untrusted: text goes in as text, tables are rebuilt from a list of allowed tags.

const FAMILIES = {
  title: ["doc_title", "paragraph_title"],
  table: ["table"],
  figure: ["image", "chart", "seal", "header_image", "footer_image"],
  formula: ["display_formula", "inline_formula", "formula_number"],
  caption: ["figure_title", "vision_footnote"],
  margin: ["header", "footer", "number", "footnote", "aside_text", "reference"],
};
const familyOf = (label) => Object.keys(FAMILIES).find((family) => FAMILIES[family].includes(label)) ?? "text";
const labelName = (label) => label.replaceAll("_", " ");

/** Append text with the search hits in it marked. */
function appendText(parent, text, pattern) {
  let done = 0;
  if (pattern) {
    for (const match of text.matchAll(pattern)) {
      parent.append(text.slice(done, match.index), make("mark", {}, match[0]));
      done = match.index + match[0].length;
    }
  }
  parent.append(text.slice(done));
  return parent;
}

const TABLE_TAGS = new Set(
  "table thead tbody tfoot tr td th caption colgroup col br p ul ol li b i em strong sub sup u".split(" "),
);
const DROPPED_TAGS = new Set("script style template iframe object embed svg math noscript".split(" "));
const MOST_NODES = 50000;

/** Rebuild the HTML of a table from allowed tags, with row and column spans as the only attributes. */
function tableNodes(html, pattern) {
  const parsed = new DOMParser().parseFromString(html, "text/html"); // inert: runs no script, loads nothing
  let left = MOST_NODES;
  const copyChildren = (from, to, depth) => {
    for (const child of from.childNodes) {
      if (--left < 0) return;
      if (child.nodeType === Node.TEXT_NODE) {
        appendText(to, child.data, pattern);
      } else if (child.nodeType === Node.ELEMENT_NODE && !DROPPED_TAGS.has(child.localName)) {
        const target = TABLE_TAGS.has(child.localName) && depth < 40 ? make(child.localName) : to;
        for (const name of target === to ? [] : ["rowSpan", "colSpan"]) {
          const span = Number.parseInt(child.getAttribute(name) ?? "", 10);
          if (span > 1 && name in target) target[name] = Math.min(span, 1000);
        }
        if (target !== to) to.append(target);
        copyChildren(child, target, depth + 1);
      }
    }
  };
  const scroller = make("div", { class: "table", tabIndex: 0, role: "group", "aria-label": "Table" });
  copyChildren(parsed.body, scroller, 0);
  return scroller;
}

/** The picture of a region, cut out of the page image. */
function pictureNode(box, image, label) {
  const canvas = make("canvas", { class: "picture", role: "img", "aria-label": `${labelName(label)}, cut out of the page` });
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
  if (region.content_format === "html" && text) return tableNodes(text, pattern);
  const shown = make("div", { class: "content", dir: "auto" });
  if (familyOf(region.label) === "figure" && image) shown.append(pictureNode(region.bbox_2d, image, region.label));
  if (text === null || text === undefined || text === "") {
    if (!shown.hasChildNodes()) shown.append(make("p", { class: "nothing" }, text === "" ? "Nothing was read here." : "Not read."));
  } else if (code !== null || region.content_format === "latex" || region.content_format === "formula_text") {
    shown.append(appendText(make("code", { class: "formula" }), text, pattern));
  } else if (region.level) {
    const level = Math.min(region.level + 1, 6);
    shown.append(appendText(make("div", { class: `heading l${level}`, role: "heading", "aria-level": level }), text, pattern));
  } else if (region.list_item) {
    shown.append(make("ul", {}, ...text.split("\n").map((item) => appendText(make("li"), item, pattern))));
  } else {
    shown.append(appendText(make("p"), text, pattern));
  }
  return shown;
}

/** An error of a page or region. */
function errorNode(error) {
  return make(
    "div",
    { class: "error" },
    make("strong", {}, `${error.component}: ${error.category.replaceAll("_", " ")}`),
    make("p", {}, error.message),
    error.remedy ? make("p", { class: "remedy" }, error.remedy) : null,
  );
}

/** What a model says that a region shows; null without a description. */
function descriptionNode(description, pattern) {
  if (!description) return null;
  const shown = make("div", { class: "content description", dir: "auto" }, make("strong", {}, "Description"));
  for (const text of [description.summary, (description.keywords ?? []).join(", ")]) {
    if (text) shown.append(appendText(make("p"), text, pattern));
  }
  const rows = (description.chart ?? []).map((row, line) => make("tr", {}, ...row.map((cell) => appendText(make(line ? "td" : "th"), cell, pattern))));
  if (rows.length) shown.append(make("table", {}, ...rows));
  return shown;
}

const percent = (share) => `${Math.round(share * 100)} %`;
/** Confidence as what it means: the share of the characters that is expected to be right. */
const rightShare = (confidence) => (confidence === null ? null : `about ${percent(confidence)} right`);

/** A region with its facts, as it stands in the text pane. */
function regionNode(region, number, errors, pattern, image) {
  const facts = [
    region.content_format === "formula_text" ? "formula as plain text" : region.content_format === "latex" ? "LaTeX" : region.content_format === "markdown" ? "Markdown" : null,
    region.caption_of !== null ? `belongs to ${region.caption_of + 1}` : null,
    region.continues ? "goes on in the next" : null,
    region.attempts > 1 ? `${region.attempts} attempts` : null,
    rightShare(region.confidence),
    region.other_engine ? `also read by ${region.other_engine}` : null,
    region.score !== null ? `found ${percent(region.score)}` : null,
    region.engine || region.source || null,
  ].filter(Boolean);
  return make(
    "article",
    { class: "region", tabIndex: 0, "data-region": number, "data-family": familyOf(region.label), "aria-label": `${number + 1}, ${labelName(region.label)}` },
    make(
      "div",
      { class: "meta" },
      make("span", { class: "number" }, String(number + 1)),
      make("span", { class: "label" }, labelName(region.label)),
      make("span", { class: "more" }, facts.join(" · ")),
    ),
    contentNode(region, pattern, image),
    descriptionNode(region.description, pattern),
    ...errors.map(errorNode),
  );
}
