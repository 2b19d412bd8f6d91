// The app: the bar at the top, the address that says what is shown, keys, language, and the login.

import { applyKeptTheme, byId, keepSetting, keptSetting, make, setMessages, toggleTheme, tr } from "../viewer/dom.js";
import { HomeView } from "./home.js";
import { JobView } from "./job.js";
import { korean } from "./korean.js";
import { icon, shownDialog } from "./parts.js";
import { SearchView } from "./search.js";
import { forgetKey, hasKey, keepKey, onKeyNeeded } from "./server.js";

const LANGUAGE_KEY = "pagemill-interface";
const language = keptSetting(LANGUAGE_KEY) ?? (navigator.language.startsWith("ko") ? "ko" : "en");
document.documentElement.lang = language;
if (language === "ko") setMessages(korean);
applyKeptTheme();

let view = null;
let place = ""; // which view is shown: another address of the same view only routes it

/** Go to an address: as a step that Back undoes, in place of the current one, or only in the address bar. */
function go(hash, how = "push") {
  if (how === "push") {
    location.hash = hash;
    return;
  }
  history.replaceState(null, "", hash);
  if (how === "replace") route();
}

function route() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  const wish = new URLSearchParams(query);
  const job = path.match(/^\/jobs\/([\w-]+)(?:\/(\d+))?$/);
  if (path === "/search") {
    show("search", () => new SearchView(go), { query: wish.get("q") ?? "", collection: wish.get("collection") ?? "" });
  } else if (job) {
    const region = Number(wish.get("region")) - 1;
    show(`job ${job[1]}`, () => new JobView(job[1], go), { page: job[2] ? Number(job[2]) : null, region: region >= 0 ? region : null });
  } else {
    show("home", () => new HomeView(go), {});
  }
}

function show(name, makeView, target) {
  if (place !== name) {
    view?.close();
    view = makeView();
    place = name;
    byId("view").replaceChildren(...view.nodes);
    byId("query").value = target.query ?? "";
  }
  view.route(target);
}

// The bar at the top.

function topBar() {
  const query = make("input", { id: "query", type: "search", placeholder: tr("Search all jobs"), "aria-label": tr("Search the text of all jobs"), autocomplete: "off", spellcheck: false });
  const search = make("form", { class: "search", role: "search" }, icon("search"), query, make("kbd", { "aria-hidden": "true" }, "/"));
  search.addEventListener("submit", (event) => {
    event.preventDefault();
    query.blur(); // so that keys go to the hits
    if (query.value.trim()) go(`#/search?${new URLSearchParams({ q: query.value.trim() })}`);
  });
  const other = language === "ko" ? ["en", "English"] : ["ko", "한국어"];
  const tool = (id, title, action, ...content) => make("button", { type: "button", id, title, "aria-label": title, onclick: action }, ...content);
  const logOut = tool("log-out", tr("Forget the key"), () => (forgetKey(), location.reload()), tr("Log out"));
  logOut.hidden = !hasKey();
  return make(
    "header",
    { class: "top" },
    make("h1", { class: "brand" }, make("a", { href: "#/" }, icon("page"), make("span", {}, "pagemill"))),
    search,
    make(
      "div",
      { class: "tools plain" },
      logOut,
      make("button", { type: "button", id: "language", lang: other[0], onclick: () => changeLanguage(other[0]) }, other[1]),
      tool("theme", tr("Light or dark (t)"), toggleTheme, "◐"),
      tool("help", tr("Keyboard (?)"), showKeys, "?"),
    ),
  );
}

function changeLanguage(to) {
  keepSetting(LANGUAGE_KEY, to);
  location.reload();
}

// The login.

let asking = null; // one dialog for all requests that wait for a key
onKeyNeeded((wasWrong) => {
  asking ??= askForKey(wasWrong).finally(() => (asking = null));
  return asking;
});

async function askForKey(wasWrong) {
  const field = make("input", { type: "password", id: "key", required: true, autofocus: true, autocomplete: "current-password" });
  const dialog = make(
    "dialog",
    { class: "login", "aria-labelledby": "login-title" },
    make("h2", { id: "login-title" }, tr("This server needs a key")),
    make("p", {}, wasWrong ? tr("The server does not accept this key.") : tr("Ask whoever runs the server for one. It is kept until this tab is closed.")),
    make("form", { method: "dialog" }, make("label", { class: "field" }, make("span", {}, tr("Key")), field), make("div", { class: "buttons" }, make("button", { class: "primary", id: "log-in" }, tr("Log in")))),
  );
  dialog.classList.toggle("wrong", wasWrong);
  dialog.addEventListener("cancel", (event) => event.preventDefault()); // there is nothing to see without a key
  await shownDialog(dialog);
  keepKey(field.value.trim());
  byId("log-out").hidden = false;
}

// Keys.

const KEYS = [
  [["←", "→"], "previous, next page"],
  [["j", "k"], "next, previous region"],
  [["n", "p"], "next, previous hit"],
  [["/", "g"], "search; go to page"],
  [["o", "r", "l"], "regions, reading order, text lines"],
  [["+", "−", "0", "z"], "zoom; fit; selected region"],
  [["t", "?"], "light or dark, this list"],
];

function showKeys() {
  const rows = KEYS.map(([keys, does]) => make("div", {}, make("dt", {}, ...keys.flatMap((key) => [make("kbd", {}, key), " "])), make("dd", {}, tr(does))));
  shownDialog(make("dialog", { id: "keys", "aria-labelledby": "keys-title" }, make("h2", { id: "keys-title" }, tr("Keyboard")), make("dl", {}, ...rows), make("form", { method: "dialog" }, make("button", {}, tr("Close")))));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key.startsWith("Arrow") && event.target.closest(".table")) return;
  const action = { t: toggleTheme, "/": () => byId("query").select(), "?": showKeys, ...view.keys() }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

// Start.

byId("app").append(make("a", { class: "skip", href: "#view", onclick: (event) => (event.preventDefault(), byId("view").focus()) }, tr("Skip to the content")), topBar(), make("div", { id: "view", class: "view", tabIndex: -1 }));
addEventListener("hashchange", route);
route();
