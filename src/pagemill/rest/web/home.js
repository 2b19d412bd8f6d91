// The start: send files as a new job, and the list of jobs.

import { keepSetting, keptSetting, make, said, tr } from "../viewer/dom.js";
import { chosenFiles, droppedFiles } from "./files.js";
import { ago, bytes, confirmed, failureNode, icon, progressNode, progressText, stateNode } from "./parts.js";
import { getJson, isOver, jobPath, newestJobs, pause, send, upload } from "./server.js";

const REFRESH_S = 2;
const JOBS_AT_ONCE = 50;
const MOST_NAMES = 6;
const HEAD_BYTES = 1024; // what the server looks at
const FIRST_BYTES = /^(?:\x89PNG|\xff\xd8\xff|II[*+]\0|MM\0[*+]|BM|RIFF....WEBP|PAR1|ARROW1|\s*<(?:!doctype )?html)|%PDF-/is; // of a file whose name says nothing
const LANGUAGES_KEY = "pagemill-languages";
const FIRST_LANGUAGES = ["en", "ko", "ja", "zh", "de", "fr", "es"]; // shown without a click

export class HomeView {
  constructor(go) {
    this.go = go;
    this.files = [];
    this.ending = new AbortController();
    this.form = make("form", { class: "card", "aria-label": tr("New job") });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.jobs = make("div", { class: "jobs" });
    this.more = make("button", { type: "button", class: "more-jobs", hidden: true, onclick: () => this.loadMore() }, tr("Show more"));
    this.listProblem = make("div");
    const heading = make("h2", {}, tr("Jobs"));
    this.nodes = [make("main", { class: "home" }, this.form, make("section", { "aria-label": tr("Jobs") }, heading, this.listProblem, this.jobs, this.more), make("p", { class: "interface" }, make("a", { href: "/docs" }, tr("HTTP interface"))))];
    this.rows = new Map(); // job id: its parts
    this.shown = JOBS_AT_ONCE;
    document.title = "pagemill";
    this.makeForm();
    this.makeOptions().then(() => this.refresh()); // in this order: no row moves under the mouse when the options appear
  }

  keys() {
    return {};
  }

  route() {}

  close() {
    this.ending.abort();
  }

  // The new job.

  makeForm() {
    const input = (id, properties) => make("input", { type: "file", id, class: "offscreen", tabIndex: -1, multiple: true, ...properties });
    const files = input("files");
    const folder = input("folder", { webkitdirectory: true });
    for (const each of [files, folder]) each.addEventListener("change", () => this.add(chosenFiles(each)));
    const choose = (id, name, target) => make("button", { type: "button", id, onclick: () => target.click() }, name);
    this.drop = make(
      "div",
      { class: "drop" },
      icon("upload"),
      make("p", { class: "invitation" }, tr("Drop files or a folder here")),
      make("p", { class: "hint" }, tr("PDF, images, Office, HWP, HTML, Markdown, CSV, text, mail, ZIP")),
      make("div", { class: "buttons" }, choose("choose-files", tr("Choose files"), files), choose("choose-folder", tr("Choose a folder"), folder)),
      files,
      folder,
    );
    this.chosen = make("div", { class: "chosen", hidden: true });
    this.options = make("div", { class: "options" });
    this.problem = make("div");
    this.start = make("button", { type: "submit", class: "primary", id: "start", hidden: true }, tr("Start"));
    this.sending = make("div", { class: "sending", hidden: true });
    this.form.append(this.drop, this.chosen, this.problem, this.options, make("div", { class: "submit" }, this.sending, this.start));
    this.acceptDrops();
  }

  /** Files can be dropped anywhere on the page. */
  acceptDrops() {
    const { signal } = this.ending;
    const on = (type, handle) => addEventListener(type, handle, { signal });
    on("dragover", (event) => {
      event.preventDefault();
      this.drop.classList.add("over");
    });
    on("dragleave", (event) => {
      if (!event.relatedTarget) this.drop.classList.remove("over");
    });
    on("drop", async (event) => {
      event.preventDefault();
      this.drop.classList.remove("over");
      this.add(await droppedFiles(event.dataTransfer));
    });
  }

  async makeOptions() {
    try {
      this.offer = await getJson("/v1/options", { signal: this.ending.signal });
    } catch (error) {
      if (!this.ending.signal.aborted) this.problem.replaceChildren(failureNode(error, () => this.makeOptions()));
      return;
    }
    const { languages, engines } = this.offer;
    const kept = (keptSetting(LANGUAGES_KEY) ?? "").split(",");
    const names = new Intl.DisplayNames(document.documentElement.lang, { type: "language", fallback: "code" });
    const rank = (code) => (FIRST_LANGUAGES.indexOf(code) + 1 || FIRST_LANGUAGES.length + 1);
    const ordered = [...languages].sort((one, other) => rank(one) - rank(other) || names.of(one).localeCompare(names.of(other)));
    this.languages = ordered.map((code) => make("input", { type: "checkbox", value: code, checked: kept.includes(code) }));
    const chips = this.languages.map((box) => make("label", { class: "choice" }, box, make("span", {}, names.of(box.value))));
    const shown = chips.filter((chip, at) => at < FIRST_LANGUAGES.length || this.languages[at].checked);
    const rest = chips.filter((chip) => !shown.includes(chip));
    this.engine = make("select", { id: "engine" }, ...engines.map((name) => make("option", { value: name }, engineName(name))));
    this.pages = make("input", { id: "pages", placeholder: tr("all"), autocomplete: "off", spellcheck: false });
    this.password = make("input", { id: "password", autocomplete: "off", spellcheck: false });
    this.collection = make("input", { id: "collection", placeholder: tr("none"), autocomplete: "off", maxLength: 100 });
    const field = (name, control, hint) => make("label", { class: "field" }, make("span", {}, name), control, hint ? make("small", {}, hint) : null);
    const folded = (name, kind, ...content) => make("details", {}, make("summary", {}, name), make("div", { class: kind }, ...content));
    this.options.replaceChildren(
      make(
        "fieldset",
        { class: "languages" },
        make("legend", {}, tr("Languages of the pages")),
        ...shown,
        rest.length ? folded(tr("{n} more", { n: rest.length }), "choices", ...rest) : null,
      ),
      folded(
        tr("More options"),
        "fields",
        ...(engines.length > 1 ? [field(tr("Engine"), this.engine)] : []),
        field(tr("Pages"), this.pages, tr("such as 1,3-5,8-")),
        field(tr("Password"), this.password, tr("of encrypted files")),
        field(tr("Collection"), this.collection, tr("to search its jobs together")),
      ),
    );
  }

  async add(files) {
    const known = new Set(this.files.map(({ name, file }) => `${name}/${file.size}`));
    const refused = new Map(); // remedy: names
    for (const each of files.filter(({ name, file }) => !known.has(`${name}/${file.size}`))) {
      const remedy = await this.refusal(each);
      if (remedy) refused.set(remedy, [...(refused.get(remedy) ?? []), each.name]);
      else this.files.push(each);
    }
    this.problem.replaceChildren(...Array.from(refused, ([remedy, names]) => failureNode({ message: tr("Left out: {names}", { names: shortList(names) }), remedy })));
    this.drawChosen();
    if (this.files.length) this.start.focus();
  }

  /** Bytes of the largest file that the server takes. */
  largest() {
    return (this.offer?.limits.max_file_mib ?? Infinity) * 2 ** 20;
  }

  /** Why a file is refused before it is sent; null for one that is not. */
  async refusal({ name, file }) {
    if (!file.size) return tr("The file is empty.");
    if (file.size > this.largest()) return tr("The server takes files of at most {size}.", { size: bytes(this.largest()) });
    if (!this.offer || this.offer.suffixes.some((suffix) => name.toLowerCase().endsWith(suffix))) return null;
    const head = String.fromCharCode(...new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer()));
    return FIRST_BYTES.test(head) ? null : tr("Files of this kind are not read. Save it as PDF.");
  }

  drawChosen() {
    const size = this.files.reduce((sum, { file }) => sum + file.size, 0);
    const count = tr(this.files.length === 1 ? "{n} file" : "{n} files", { n: this.files.length });
    const entry = (chosen) =>
      make("li", { dir: "auto" }, chosen.name, make("button", { type: "button", "aria-label": tr("Leave out {name}", { name: chosen.name }), onclick: () => this.leaveOut(chosen) }, "×"));
    const more = this.files.length - MOST_NAMES;
    this.chosen.replaceChildren(
      make("p", {}, make("strong", {}, `${count}, ${bytes(size)}`), make("button", { type: "button", class: "small", onclick: () => this.leaveOut() }, tr("Clear"))),
      make("ul", {}, ...this.files.slice(0, MOST_NAMES).map(entry), more > 0 ? make("li", { class: "and" }, tr("and {n} more", { n: more })) : null),
    );
    this.chosen.hidden = this.start.hidden = !this.files.length;
  }

  /** Leave out one of the chosen files, or all. */
  leaveOut(chosen = null) {
    this.files = chosen ? this.files.filter((each) => each !== chosen) : [];
    this.drawChosen();
  }

  jobOptions() {
    const options = {};
    const languages = this.languages?.filter((box) => box.checked).map((box) => box.value) ?? [];
    if (languages.length) options.languages = languages;
    if (this.pages?.value.trim()) options.pages = this.pages.value.trim();
    if (this.password?.value) options.password = this.password.value;
    if (this.engine?.value && this.engine.value !== this.offer.engines[0]) options.recognition_engine = this.engine.value;
    return options;
  }

  async submit() {
    if (!this.files.length || this.start.disabled) return;
    const stop = new AbortController();
    this.ending.signal.addEventListener("abort", () => stop.abort());
    const options = this.jobOptions();
    if (options.languages) keepSetting(LANGUAGES_KEY, options.languages.join(","));
    this.problem.replaceChildren();
    this.start.disabled = true;
    try {
      const job = await upload(this.files, options, this.collection?.value.trim() ?? "", (share) => this.drawSending(share, stop), stop.signal);
      this.go(`#/jobs/${job.id}`);
    } catch (error) {
      if (error.name !== "AbortError") this.problem.replaceChildren(failureNode(error));
    } finally {
      this.sending.hidden = true;
      this.start.disabled = false;
    }
  }

  drawSending(share, stop) {
    if (this.sending.hidden) {
      const cancel = make("button", { type: "button", class: "small", onclick: () => stop.abort() }, tr("Cancel"));
      this.sent = make("progress", { max: 1, "aria-label": tr("Sending") });
      this.sending.replaceChildren(this.sent, cancel);
    }
    this.sending.hidden = false;
    this.sent.value = share;
  }

  // The list of jobs: read again while one of them runs, or the page is looked at.

  async refresh() {
    const { signal } = this.ending;
    for (let failures = 0; !signal.aborted; ) {
      try {
        if (!document.hidden) this.drawJobs(await newestJobs(this.shown, signal));
        failures = 0;
        this.listProblem.replaceChildren();
      } catch (error) {
        if (signal.aborted) return;
        failures++;
        this.listProblem.replaceChildren(failureNode(error));
      }
      await pause(REFRESH_S * (1 + failures), signal);
    }
  }

  async loadMore() {
    this.shown += JOBS_AT_ONCE;
    try {
      this.drawJobs(await newestJobs(this.shown, this.ending.signal));
    } catch (error) {
      if (!this.ending.signal.aborted) this.listProblem.replaceChildren(failureNode(error));
    }
  }

  drawJobs({ jobs, next }) {
    const gone = new Set(this.rows.keys());
    jobs.forEach((job, at) => {
      gone.delete(job.id);
      const row = this.rows.get(job.id) ?? this.makeRow(job);
      this.drawRow(row, job);
      if (this.jobs.children[at] !== row.element) this.jobs.insertBefore(row.element, this.jobs.children[at] ?? null);
    });
    for (const id of gone) {
      this.rows.get(id).element.remove();
      this.rows.delete(id);
    }
    this.jobs.querySelector(".empty")?.remove();
    if (!jobs.length) this.jobs.append(make("p", { class: "empty" }, tr("No jobs yet. Drop a document above to make one.")));
    this.more.hidden = next === null || next === undefined;
  }

  /** The parts of a row are made once and changed in place, so that no click or focus is lost. */
  makeRow(job) {
    const row = { state: make("span"), progress: make("span", { class: "track-holder" }), facts: make("small"), job };
    const link = make("a", { href: `#/jobs/${job.id}`, dir: "auto", title: job.name }, job.name);
    row.button = make("button", { type: "button", class: "small", onclick: () => this.end(row) });
    row.element = make("article", { class: "job", "data-job": job.id }, link, row.state, row.progress, row.facts, row.button);
    this.rows.set(job.id, row);
    return row;
  }

  drawRow(row, job) {
    row.job = job;
    row.state.replaceChildren(stateNode(job));
    row.progress.replaceChildren(progressNode(job));
    row.facts.textContent = [job.error ? said(job.error).message : progressText(job), job.collection, ago(job.created)].filter(Boolean).join(" · ");
    row.button.textContent = isOver(job) ? tr("Remove") : tr("Cancel");
    row.button.ariaLabel = `${row.button.textContent}: ${job.name}`;
  }

  /** Cancel a job that is not over, remove one that is. */
  async end({ job }) {
    const over = isOver(job);
    if (over && !(await confirmed(tr("Remove this job with its files and results?"), tr("Remove")))) return;
    try {
      await (over ? send(jobPath(job.id), { method: "DELETE" }) : send(jobPath(job.id, "cancel"), { method: "POST" }));
      this.drawJobs(await newestJobs(this.shown));
    } catch (error) {
      this.listProblem.replaceChildren(failureNode(error));
    }
  }
}

const shortList = (names) => names.slice(0, MOST_NAMES).join(", ") + (names.length > MOST_NAMES ? " …" : "");
const engineName = (name) => ({ lines: tr("lines (on this computer)"), vlm: tr("vlm (vision-language model)") })[name] ?? name;
