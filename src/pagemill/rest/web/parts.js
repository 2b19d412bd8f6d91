// Small parts that several views have: icons, states, progress, errors, dialogs, times.

import { countOf, grouped, make, said, tr } from "../viewer/dom.js";

const ICONS = {
  page: "M6 2.8h8.2L19 7.6v13.6H6zM14 2.8v5h5M9 12h7M9 15h7M9 18h4",
  upload: "M12 16V4.5M7.5 9 12 4.5 16.5 9M4 15.5v4h16v-4",
  search: "M10.5 5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M14.7 14.7 20 20",
  back: "M14.5 5.5 8 12l6.5 6.5",
};

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "icon");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** A failure with what to do about it; `again` is offered as a button. */
export function failureNode(error, again = null) {
  const { message, remedy, original } = said(error);
  return make(
    "div",
    { class: "error", role: "alert" },
    make("strong", {}, message),
    remedy ? make("p", { class: "remedy" }, remedy) : null,
    original ? make("p", { class: "original", lang: "en" }, original) : null,
    again ? make("button", { type: "button", class: "small", onclick: again }, tr("Try again")) : null,
  );
}

/** State of a job as a word with its colour. */
export function stateNode(job) {
  const state = job.state === "finished" && job.pages.failed ? "warned" : job.state;
  const names = { queued: tr("waiting"), running: tr("running"), finished: tr("done"), warned: tr("done, with failures"), failed: tr("failed"), cancelled: tr("cancelled") };
  return make("span", { class: "state", "data-state": state }, names[state] ?? state);
}

/** The share of the pages of a job that are done, as a bar. */
export function progressNode(job) {
  const { total, finished, failed } = job.pages;
  const bar = make("div", { class: "progress", role: "progressbar", "aria-label": tr("Pages"), "aria-valuemin": 0, "aria-valuemax": 100 });
  const share = total ? finished / total : job.state === "finished" ? 1 : 0;
  bar.ariaValueNow = Math.round(share * 100);
  const done = make("i", { class: "done" });
  const bad = make("i", { class: "bad" });
  const failedShare = total ? failed / total : 0;
  done.style.width = `${Math.max(0, share - failedShare) * 100}%`;
  bad.style.width = `${failedShare * 100}%`;
  bar.append(done, bad);
  return bar;
}

/** How far a job is in words: documents, pages, what failed, speed, time left. The server counts a file that was not opened as a page. */
export function progressText(job) {
  const documents = job.documents.length;
  const unopened = job.documents.filter(({ pages }) => pages === 0).length;
  const [finished, failed] = [job.pages.finished - unopened, job.pages.failed - unopened];
  const total = job.pages.total === null ? null : job.pages.total - unopened;
  const counts = total === null || (total === finished && job.state !== "running")
    ? countOf(finished, "{n} page", "{n} pages")
    : tr("{n} of {total} pages", { n: grouped(finished), total: grouped(total) });
  const running = job.state === "running";
  return [
    documents > 1 ? countOf(documents, "{n} document", "{n} documents") : null,
    finished || !unopened ? counts : null,
    unopened ? countOf(unopened, "{n} document not opened", "{n} documents not opened") : null,
    failed > 0 ? countOf(failed, "{n} page failed", "{n} pages failed") : null,
    running && job.pages_per_second ? tr("{n} pages/s", { n: job.pages_per_second.toFixed(1) }) : null,
    running && job.eta_seconds ? tr("{time} left", { time: duration(job.eta_seconds) }) : null,
  ].filter(Boolean).join(" · ");
}

const duration = (s) =>
  s < 90 ? tr("{n} s", { n: Math.ceil(s) }) : s < 5400 ? tr("{n} min", { n: Math.round(s / 60) }) : tr("{n} h", { n: (s / 3600).toFixed(1) });

/** How long ago a moment is, in the language of the interface. */
export function ago(time) {
  const words = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto" });
  const s = (new Date(time) - Date.now()) / 1000;
  const [unit, size] = [["day", 86400], ["hour", 3600], ["minute", 60]].find(([, size]) => -s >= size) ?? ["second", 1];
  return -s < 10 ? tr("just now") : words.format(Math.round(s / size), unit);
}

export const bytes = (n) => (n < 2 ** 20 ? `${grouped(Math.max(1, Math.round(n / 1024)))} kB` : `${(n / 2 ** 20).toFixed(1)} MB`);

/** A file's name without its suffix. */
export const stem = (name) => name.replace(/\.[^./]*$/, "") || name;

/** Ask for a decision; answers whether the action was chosen. */
export function confirmed(question, action) {
  const dialog = make(
    "dialog",
    { "aria-labelledby": "question" },
    make("h2", { id: "question" }, question),
    make("form", { method: "dialog", class: "buttons" }, make("button", { value: "", autofocus: true }, tr("Back")), make("button", { value: "yes", class: "danger" }, action)),
  );
  return shownDialog(dialog).then((value) => value === "yes");
}

/** Show a dialog once; answers the value of the button that closed it. */
export function shownDialog(dialog) {
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resume) =>
    dialog.addEventListener("close", () => {
      dialog.remove();
      resume(dialog.returnValue);
    }));
}
