// Requests to the server: JSON, files, the stream of events, uploads; and the key that it may ask for.

import { tr } from "../viewer/dom.js";

const KEY = "pagemill-api-key";
const MOST_WAIT_S = 30;
const JOBS_A_REQUEST = 500; // the server's limit

/** What a request failed with: a message, and what to do about it. */
export class ServerError extends Error {
  constructor({ category = "server", message, remedy = null }, status = 0, wait = null) {
    super(message);
    Object.assign(this, { category, remedy, status, wait });
  }
}

export const hasKey = () => sessionStorage.getItem(KEY) !== null;
export const forgetKey = () => sessionStorage.removeItem(KEY);
export const keepKey = (key) => sessionStorage.setItem(KEY, key);
const authorization = () => (hasKey() ? { Authorization: `Bearer ${sessionStorage.getItem(KEY)}` } : {});

let askForKey = null; // set by the login dialog: answers when a key was entered
export function onKeyNeeded(ask) {
  askForKey = ask;
}

async function errorOf(response) {
  const wait = Number.parseFloat(response.headers.get("Retry-After") ?? "") || null;
  const body = await response.json().catch(() => null);
  const said = body?.error?.message ? body.error : { message: tr("The server answered {status}.", { status: response.status }) };
  return new ServerError(said, response.status, wait);
}

/** Send a request with the key; ask for one where the server wants it. Throws ServerError for every failure. */
export async function send(path, { headers = {}, ...options } = {}) {
  for (;;) {
    let response;
    try {
      response = await fetch(path, { ...options, headers: { ...headers, ...authorization() }, cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw unreachable();
    }
    if (response.ok) return response;
    if (response.status !== 401) throw await errorOf(response);
    await askForKey(hasKey());
  }
}

const unreachable = () =>
  new ServerError({ category: "network", message: tr("The server cannot be reached."), remedy: tr("Check that it is running.") });

export const getJson = async (path, options) => (await send(path, options)).json();
export const jobPath = (job, ...rest) => ["/v1/jobs", job, ...rest].map((part, at) => (at ? encodeURIComponent(part) : part)).join("/");

/** The newest jobs, so many at most, and what the next one of the list is after, if there are more. */
export async function newestJobs(count, signal) {
  const jobs = [];
  for (let after = null; ; ) {
    const limit = String(Math.min(count - jobs.length, JOBS_A_REQUEST));
    const query = new URLSearchParams({ limit, ...(after === null ? {} : { after }) });
    const found = await getJson(`/v1/jobs?${query}`, { signal });
    jobs.push(...found.jobs);
    after = found.next ?? null;
    if (after === null || jobs.length >= count) return { jobs, next: after };
  }
}

/** All pages of a job in reading order, in pieces: calls take(pages) for each. */
export async function eachPages(job, take, signal) {
  for (let after = null; ; ) {
    const query = new URLSearchParams({ limit: "500", ...(after === null ? {} : { after }) });
    const { pages, next } = await getJson(`${jobPath(job, "pages")}?${query}`, { signal });
    take(pages);
    if (next === null || next === undefined) return;
    after = String(next);
  }
}

/** The events of one answer. EventSource cannot send a key, so the stream is read with fetch. */
async function* parseEvents(body) {
  let text = "";
  for await (const piece of chunks(body.pipeThrough(new TextDecoderStream()))) {
    text += piece.replaceAll("\r", "");
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const event = { type: "message", data: [] };
      for (const line of text.slice(0, end).split("\n")) {
        const [, field, value] = line.match(/^([^:]*):? ?(.*)$/s);
        if (field === "data") event.data.push(value);
        else if (field === "event") event.type = value;
        else if (field === "id") event.id = value;
      }
      if (event.data.length) yield { ...event, data: JSON.parse(event.data.join("\n")) };
    }
  }
}

async function* chunks(stream) {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * Events of a job until it ends or `signal` is aborted, those after `cursor.last`, which is kept up to date; so a lost
 * connection is taken up again where it was lost. `onlost(error)` is called while there is none, with null once it is back.
 */
export async function* jobEvents(job, cursor, signal, onlost) {
  for (let attempt = 0; !signal.aborted; attempt++) {
    let failure = null;
    try {
      const headers = { Accept: "text/event-stream", ...(cursor.last ? { "Last-Event-ID": cursor.last } : {}) };
      const response = await send(jobPath(job, "events"), { headers, signal });
      onlost(null);
      for await (const event of parseEvents(response.body)) {
        attempt = 0;
        cursor.last = event.id ?? cursor.last;
        yield event;
        if (event.type === "job" && isOver(event.data)) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
      failure = error;
    }
    if (failure) onlost(failure instanceof ServerError ? failure : unreachable());
    await pause(failure?.wait ?? Math.min(2 ** attempt / 2, MOST_WAIT_S), signal);
  }
}

export const isOver = (job) => ["finished", "failed", "cancelled"].includes(job.state);

/** Wait so many seconds, or until the signal is aborted. */
export function pause(seconds, signal) {
  return new Promise((resume) => {
    const timer = setTimeout(resume, seconds * 1000);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resume()), { once: true });
  });
}

// Hexadecimal, because crypto.randomUUID exists only on https and localhost.
const randomKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Send files as a new job; answers the job. `onprogress(share)` is called while they are sent. */
export async function upload(files, options, collection, onprogress, signal) {
  const idempotency = randomKey(); // the same for a second try after a login, so that no job is made twice
  for (;;) {
    const form = new FormData();
    form.append("options", JSON.stringify(options));
    if (collection) form.append("collection", collection);
    for (const { file, name } of files) form.append("files", file, name);
    const request = new XMLHttpRequest(); // fetch does not report the progress of an upload
    request.open("POST", "/v1/jobs");
    for (const [name, value] of Object.entries({ ...authorization(), "Idempotency-Key": idempotency })) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => event.lengthComputable && onprogress(event.loaded / event.total);
    signal.addEventListener("abort", () => request.abort());
    await new Promise((resume, fail) => {
      request.onload = resume;
      request.onerror = () => fail(unreachable());
      request.onabort = () => fail(new DOMException("", "AbortError"));
      request.send(form);
    });
    if (request.status < 300) return JSON.parse(request.responseText);
    if (request.status !== 401) {
      const retry = { "Retry-After": request.getResponseHeader("Retry-After") ?? "" };
      throw await errorOf(new Response(request.responseText, { status: request.status, headers: retry }));
    }
    await askForKey(hasKey());
  }
}

/** Save what an address answers as a file. Without a key the browser does it alone; with one it has to be sent along. */
export async function download(path, name) {
  const link = document.createElement("a");
  link.download = name;
  link.href = path;
  if (hasKey()) {
    link.href = URL.createObjectURL(await (await send(path)).blob());
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }
  link.click();
}
