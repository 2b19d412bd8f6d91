// The whole: page list, filters, search, keys, and the address that names the page on show.
import { familyOf, labelName, queryPattern } from "../viewer/content.js";
import { applyKeptTheme, byId, grouped, make, toggleTheme } from "../viewer/dom.js";
import { PageView } from "../viewer/page_view.js";
import { readImage, readJson, readPage, Search } from "./data.js";
import { fillSummary } from "./summary.js";

const summary = readJson("summary");
const { documents, labels, pages, missing_pages: missingPages, missing_images: missingImages } = readJson("index");
const view = new PageView({ onstep: stepPage, onselect: address });
byId("switches").replaceWith(view.switches);
byId("panes").append(view.sheetPane, view.textPane);
byId("panes").after(view.tabs);
const search = new Search(pages.length);
const state = { query: "", pattern: null, labels: new Set(), status: "all", hits: [], hit: -1 };

const acceptsLabel = (label) => !state.labels.size || state.labels.has(label);
const STATUSES = {
  all: ["All", () => true],
  done: ["Good", (page) => !page.failed && !page.errors],
  warned: ["Warnings", (page) => !page.failed && page.errors > 0],
  review: ["Review", (page) => page.review],
  failed: ["Failed", (page) => page.failed],
};
const acceptsPage = (page) =>
  STATUSES[state.status][1](page) && (!state.labels.size || page.labels.some((index) => state.labels.has(labels[index])));

// The page list: one button a page, made once; filters hide.

const rows = pages.map((page, number) => {
  const mark = page.failed ? "failed" : page.errors ? "warned" : "done";
  return make(
    "button",
    { type: "button", class: "row", "data-status": mark, onclick: () => leaveList(() => go(number), "image") },
    make("span", { class: "page-number" }, page.number === null ? "–" : String(page.number)),
    make("span", { class: "title", dir: "auto" }, page.title || (page.failed ? "Failed" : "No text")),
    mark === "done" ? null : make("span", { class: "mark" }, page.failed ? "failed" : page.review ? "review" : "warning"),
  );
});
const groups = new Map(); // document index -> its section
pages.forEach((page, number) => {
  if (!groups.has(page.document)) {
    const name = documents[page.document];
    groups.set(page.document, make("section", { class: "document", "aria-label": name }, make("h2", { title: name }, name)));
  }
  groups.get(page.document).append(rows[number]);
});
byId("list").append(...groups.values());

let shown = []; // numbers of the pages that pass the filters
function filterPages() {
  shown = [];
  pages.forEach((page, number) => {
    const passes = acceptsPage(page);
    rows[number].hidden = !passes;
    if (passes) shown.push(number);
  });
  for (const section of groups.values()) section.hidden = !section.querySelector(".row:not([hidden])");
  if (!state.pattern) tellCount();
}

function tellCount() {
  const all = `${grouped(pages.length)} page${pages.length === 1 ? "" : "s"}`;
  byId("count").textContent = shown.length === pages.length ? all : `${grouped(shown.length)} of ${all}`;
}

// Showing a page.

const showPage = (number) => view.show(number, readPage(number), readImage(number), { accepts: acceptsLabel, pattern: state.pattern });

function go(number, region = null) {
  if (!(number >= 0 && number < pages.length)) return;
  rows[view.key]?.removeAttribute("aria-current");
  rows[number].setAttribute("aria-current", "true");
  rows[number].scrollIntoView({ block: "nearest" });
  showPage(number);
  const page = pages[number];
  const place = page.number === null ? "" : `, page ${page.number}`;
  byId("where").textContent = `${documents[page.document]}${place}`;
  const at = shown.indexOf(number);
  byId("previous").disabled = !shown.some((other) => other < number);
  byId("next").disabled = at < 0 ? !shown.some((other) => other > number) : at === shown.length - 1;
  if (region !== null) view.select(region);
  address();
}

function stepPage(by) {
  const ahead = by > 0 ? shown.filter((number) => number > view.key) : shown.filter((number) => number < view.key);
  const next = by > 0 ? ahead[0] : ahead.at(-1);
  if (next !== undefined) go(next);
}

function address() {
  const region = view.selected === null ? "" : `&region=${view.selected + 1}`;
  history.replaceState(null, "", `#page=${view.key + 1}${region}`);
}

function fromAddress() {
  const wish = new URLSearchParams(location.hash.slice(1));
  const region = Number(wish.get("region")) - 1;
  go(Number(wish.get("page")) - 1, region >= 0 ? region : null);
}

// Filters.

for (const [status, [name, accepts]] of Object.entries(STATUSES)) {
  const count = pages.filter(accepts).length;
  const radio = make("input", { type: "radio", name: "status", value: status, checked: status === "all", disabled: !count });
  radio.addEventListener("change", () => {
    state.status = status;
    refilter();
  });
  byId("status").append(make("label", {}, radio, make("span", {}, name, make("small", {}, grouped(count)))));
}
for (const label of labels) {
  const box = make("input", { type: "checkbox", value: label });
  box.addEventListener("change", () => {
    state.labels[box.checked ? "add" : "delete"](label);
    byId("label-state").textContent = state.labels.size ? [...state.labels].map(labelName).join(", ") : "all";
    refilter();
  });
  byId("labels").append(make("label", { class: "chip", "data-family": familyOf(label) }, box, make("span", {}, labelName(label))));
}

function refilter() {
  filterPages();
  if (!state.pattern) byId("list").scrollTo(0, 0);
  startSearch();
  const goal = shown.includes(view.key) || !shown.length ? view.key : shown[0];
  if (pages.length) go(goal, null);
}

// Search.

const MOST_SHOWN_HITS = 400;

function startSearch() {
  state.pattern = queryPattern(state.query);
  state.hits = [];
  state.hit = -1;
  const searching = state.pattern !== null;
  byId("hits").hidden = !searching;
  byId("list").hidden = searching;
  if (!searching) {
    search.cancel();
    tellCount();
    return;
  }
  byId("hits").replaceChildren();
  const drawn = { pages: 0, hits: 0 };
  search.find(state.pattern, (page, label) => acceptsPage(pages[page]) && acceptsLabel(label), (found, looked) => {
    for (; drawn.pages < found.length; drawn.pages++) {
      const { page, hits } = found[drawn.pages];
      const room = Math.max(0, MOST_SHOWN_HITS - drawn.hits);
      if (room) byId("hits").append(hitSection(page, hits.slice(0, room), hits.length));
      state.hits.push(...hits.slice(0, room));
      drawn.hits += hits.length;
    }
    const more = looked < pages.length ? `, searching page ${grouped(looked)}…` : "";
    const cut = drawn.hits > MOST_SHOWN_HITS ? `, the first ${MOST_SHOWN_HITS} shown` : "";
    byId("count").textContent = drawn.hits || more
      ? `${grouped(drawn.hits)} hit${drawn.hits === 1 ? "" : "s"} on ${grouped(found.length)} page${found.length === 1 ? "" : "s"}${cut}${more}`
      : "No hits";
  });
}

function hitSection(page, hits, all) {
  const name = `${documents[pages[page].document]}${pages[page].number === null ? "" : `, page ${pages[page].number}`}`;
  const first = state.hits.length;
  const buttons = hits.map((hit, index) => {
    const from = Math.max(0, hit.start - 40);
    const to = hit.start + hit.length + 60;
    const snippet = make("span", { dir: "auto" }, from ? "…" : "", hit.text.slice(from, hit.start));
    snippet.append(make("mark", {}, hit.text.slice(hit.start, hit.start + hit.length)), hit.text.slice(hit.start + hit.length, to));
    return make("button", { type: "button", class: "hit-row", "data-hit": first + index, onclick: () => leaveList(() => goHit(first + index), "text") }, snippet);
  });
  return make("section", { class: "document" }, make("h2", { title: name }, name, make("small", {}, grouped(all))), ...buttons);
}

function goHit(index) {
  const hit = state.hits[index];
  if (!hit) return;
  state.hit = index;
  document.querySelector(".hit-row[aria-current]")?.removeAttribute("aria-current");
  const row = document.querySelector(`.hit-row[data-hit="${index}"]`);
  row?.setAttribute("aria-current", "true");
  row?.scrollIntoView({ block: "nearest" });
  go(hit.page, hit.region);
}

let typing = 0;
byId("query").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    state.query = byId("query").value;
    startSearch();
    if (pages.length) showPage(view.key);
    if (state.pattern && matchMedia("(max-width: 760px)").matches) view.showPane("pages");
  }, 120);
});
byId("query").addEventListener("keydown", (event) => {
  if (event.key === "Enter") goHit(state.hit < 0 ? 0 : state.hit + 1);
  if (event.key === "Escape") {
    byId("query").value = "";
    byId("query").dispatchEvent(new Event("input"));
    byId("query").blur();
  }
});

// Switches.

function toggleSummary() {
  const panel = byId("summary-panel");
  if (panel.hidden) fillSummary(panel, summary);
  panel.hidden = !panel.hidden;
  byId("show-summary").setAttribute("aria-expanded", String(!panel.hidden));
}
byId("show-summary").addEventListener("click", toggleSummary);

applyKeptTheme();
byId("theme").addEventListener("click", toggleTheme);
byId("help").addEventListener("click", () => byId("keys").showModal());

/** Do what a row of the list asks for; where panes are shown one at a time, turn to the one that shows it. */
function leaveList(action, pane) {
  if (byId("panes").dataset.pane === "pages") view.showPane(pane);
  action();
}
const KEYS = {
  ...view.keys(),
  n: () => goHit(Math.min(state.hit + 1, state.hits.length - 1)),
  p: () => goHit(Math.max(state.hit - 1, 0)),
  s: toggleSummary,
  "/": () => byId("query").select(),
  "?": () => byId("keys").showModal(),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  if (event.target.matches("input[type=search], input[type=radio]")) return;
  if (event.key.startsWith("Arrow") && event.target.closest(".table")) return;
  const action = KEYS[event.key];
  if (!action || (!pages.length && event.key !== "s" && event.key !== "t" && event.key !== "?")) return;
  event.preventDefault();
  action();
});

// Start.

byId("subtitle").textContent = documents.length === 1 ? documents[0] : `${grouped(summary.documents)} documents`;
const notices = [];
if (missingPages) notices.push(`This report shows the first ${grouped(pages.length)} of ${grouped(pages.length + missingPages)} pages; ocr_results.jsonl holds them all.`);
if (missingImages) notices.push(`${grouped(missingImages)} ${missingImages === 1 ? "page is shown without its image" : "pages are shown without their images"}.`);
if (summary.interrupted) notices.push("The run was interrupted; this is what it got to.");
byId("notice").textContent = notices.join(" ");
byId("notice").hidden = !notices.length;
filterPages();
view.showPane("image");
if (pages.length) {
  fromAddress();
  if (view.key === null) go(shown[0] ?? 0);
} else {
  view.text.append(make("p", { class: "nothing" }, "The run has no pages."));
}
addEventListener("hashchange", fromAddress);
search.buildIndex().then(() => document.documentElement.classList.add("indexed"));
