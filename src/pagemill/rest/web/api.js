// The HTTP interface, as /openapi.json describes it: each request with its parameters, a form to send it, and curl's command.

import { copyButton } from "../viewer/content.js";
import { applyKeptTheme, byId, make, saveFile } from "../viewer/dom.js";
import { failureNode, icon } from "./parts.js";
import { getJson, hasKey, keepKey, onKeyNeeded, send } from "./server.js";

const LONGEST_SHOWN = 100_000; // characters of an answer
const MOST_LEVELS = 6; // of an example made from a schema
const FILES_FORM = { properties: { files: { type: "array", items: { format: "binary" } } } };
applyKeptTheme();

/** Text in which ``double`` backticks mark code. */
const prose = (text) => text.split("``").map((part, at) => (at % 2 ? make("code", {}, part) : part));

/** A value of a schema, to be changed by the reader. */
function exampleOf(schema, schemas, level = 0) {
  if (!schema || level > MOST_LEVELS) return null;
  if (schema.$ref) return exampleOf(schemas[schema.$ref.split("/").at(-1)], schemas, level + 1);
  const set = schema.example ?? schema.examples?.[0] ?? schema.default ?? schema.enum?.[0] ?? schema.const;
  if (set !== undefined) return set;
  const choice = (schema.anyOf ?? schema.oneOf ?? schema.allOf)?.find(({ type }) => type !== "null");
  if (choice) return exampleOf(choice, schemas, level + 1);
  if (schema.properties) return Object.fromEntries(Object.entries(schema.properties).map(([name, each]) => [name, exampleOf(each, schemas, level + 1)]));
  return { array: schema.items ? [exampleOf(schema.items, schemas, level + 1)] : [], string: "", integer: 0, number: 0, boolean: false }[schema.type] ?? {};
}

/** One request: what it is for, its parameters and body, a button that sends it, and its answer. */
class Operation {
  constructor(path, method, about, schemas) {
    Object.assign(this, { path, method: method.toUpperCase(), about });
    this.fields = (about.parameters ?? []).filter((each) => each.name !== "last-event-id").map((parameter) => this.field(parameter));
    this.body = this.makeBody(about.requestBody?.content ?? {}, schemas);
    this.curl = make("pre", { class: "formula" });
    this.answer = make("div", { class: "answer" });
    const open = make("details", { class: "operation", id: about.operationId });
    open.append(make("summary", {}, make("span", { class: "method", "data-method": method }, this.method), make("code", {}, path), make("span", { class: "purpose" }, ...prose((about.description ?? about.summary ?? "").split("\n")[0]))));
    open.addEventListener("toggle", () => open.open && this.draw(open), { once: true });
    this.node = open;
  }

  draw(open) {
    const form = make("form", { class: "request" }, make("div", { class: "fields" }, ...this.fields.map(({ node }) => node)), this.body?.node ?? "", make("div", { class: "buttons" }, make("button", { class: "primary" }, "Send"), copyButton("Copy curl", () => this.curl.textContent)), this.curl, this.answer);
    form.addEventListener("submit", (event) => (event.preventDefault(), this.send()));
    form.addEventListener("input", () => this.drawCurl());
    open.append(make("div", { class: "prose" }, ...prose((this.about.description ?? "").split("\n").slice(1).join("\n"))), form);
    this.drawCurl();
  }

  field(parameter) {
    const { name, required, schema = {}, description } = parameter;
    const input = make("input", { name, required: Boolean(required), placeholder: schema.default === undefined ? "" : String(schema.default ?? ""), autocomplete: "off", spellcheck: false });
    const kind = schema.enum?.join(" | ") ?? schema.type ?? schema.anyOf?.map((each) => each.type ?? "").filter((each) => each !== "null").join(" | ");
    const about = [parameter.in, required ? "required" : null, kind, description].filter(Boolean).join(", ");
    return { parameter, input, node: make("label", { class: "field" }, make("span", {}, name), input, make("small", {}, about)) };
  }

  /** The form of the body; files first, where it takes any. */
  makeBody(content, schemas) {
    const form = content["multipart/form-data"]?.schema ?? (/\/file(\/|$)/.test(this.path) ? FILES_FORM : null);
    if (form) {
      const inputs = Object.entries(form.properties).map(([name, schema]) => {
        const isFile = name === "files";
        const input = make("input", isFile ? { type: "file", multiple: true, name } : { name, autocomplete: "off", spellcheck: false });
        return { name, isFile, input, node: make("label", { class: "field" }, make("span", {}, name), input, make("small", {}, schema.description ?? "")) };
      });
      return { inputs, node: make("div", { class: "fields" }, ...inputs.map(({ node }) => node)) };
    }
    const json = content["application/json"];
    if (!json && this.method !== "POST") return null;
    const example = json ? (json.example ?? exampleOf(json.schema, schemas)) : this.path.endsWith("/source") || this.path.endsWith("/source/async") ? { sources: [{ kind: "http", url: "https://example.org/report.pdf" }] } : null;
    if (example === null) return null;
    const text = make("textarea", { rows: 6, spellcheck: false, value: JSON.stringify(example, null, 2) });
    return { text, node: make("label", { class: "field" }, make("span", {}, "JSON"), text) };
  }

  address() {
    const query = new URLSearchParams();
    let path = this.path;
    for (const { parameter, input } of this.fields) {
      if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, input.value ? encodeURIComponent(input.value) : `{${parameter.name}}`);
      else if (parameter.in === "query" && input.value) query.append(parameter.name, input.value);
    }
    return query.size ? `${path}?${query}` : path;
  }

  headers() {
    const named = this.fields.filter(({ parameter, input }) => parameter.in === "header" && input.value);
    return Object.fromEntries([...named.map(({ parameter, input }) => [parameter.name, input.value]), ...(this.body?.text ? [["Content-Type", "application/json"]] : [])]);
  }

  drawCurl() {
    const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
    const parts = ["curl", ...(this.method === "GET" || this.body ? [] : [`-X ${this.method}`]), ...(hasKey() ? ["-H 'Authorization: Bearer KEY'"] : [])];
    for (const [name, value] of Object.entries(this.headers())) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
    for (const { name, isFile, input } of this.body?.inputs ?? []) {
      if (isFile) parts.push(...(input.files.length ? Array.from(input.files, (file) => `-F ${quoted(`${name}=@${file.name}`)}`) : [`-F ${name}=@report.pdf`]));
      else if (input.value) parts.push(`-F ${quoted(`${name}=${input.value}`)}`);
    }
    if (this.body?.text) parts.push(`-d ${quoted(this.body.text.value)}`);
    this.curl.textContent = [...parts, quoted(location.origin + this.address())].join(" ");
  }

  async send() {
    this.answer.replaceChildren(make("p", { class: "nothing" }, "Sending…"));
    let body = this.body?.text?.value;
    if (this.body?.inputs) {
      body = new FormData();
      for (const { name, isFile, input } of this.body.inputs) {
        if (isFile) for (const file of input.files) body.append(name, file, file.name);
        else if (input.value) body.append(name, input.value);
      }
    }
    try {
      this.show(await send(this.address(), { method: this.method, headers: this.headers(), body }));
    } catch (error) {
      this.answer.replaceChildren(make("strong", {}, error.status ? String(error.status) : ""), failureNode(error));
    }
  }

  async show(response) {
    const kind = response.headers.get("Content-Type") ?? "";
    const blob = await response.blob();
    const shown = [make("strong", {}, `${response.status} ${kind}`)];
    if (kind.startsWith("image/")) shown.push(make("img", { src: URL.createObjectURL(blob), alt: "" }));
    else if (/json|text|event-stream/.test(kind)) {
      let text = await blob.text();
      if (kind.includes("json")) text = JSON.stringify(JSON.parse(text), null, 2);
      shown.push(make("pre", { class: "formula" }, text.slice(0, LONGEST_SHOWN) + (text.length > LONGEST_SHOWN ? "\n…" : "")));
    }
    if (blob.size) shown.push(make("button", { type: "button", class: "small", onclick: () => saveFile(this.path.split("/").at(-1).replace(/\W/g, "") || "answer", blob) }, "Save"));
    this.answer.replaceChildren(...shown);
  }
}

const key = make("input", { type: "password", id: "key", placeholder: "Key", "aria-label": "Key", autocomplete: "off" });
key.addEventListener("change", () => keepKey(key.value.trim()));
onKeyNeeded(async (wasWrong) => {
  key.focus();
  throw Object.assign(new Error(wasWrong ? "The server does not accept this key." : "This server needs a key: enter it above."), { status: 401 });
});
const page = make("main", { class: "home api" });
byId("app").append(make("header", { class: "top" }, make("h1", { class: "brand" }, make("a", { href: "/" }, icon("page"), make("span", {}, "pagemill"))), make("span", { class: "grow" }), make("form", { onsubmit: (event) => event.preventDefault() }, key)), page);
try {
  const { info, paths, components } = await getJson("/openapi.json");
  const groups = new Map(); // tag: operations
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, about] of Object.entries(operations)) {
      const tag = about.tags?.[0] ?? "";
      groups.set(tag, [...(groups.get(tag) ?? []), new Operation(path, method, about, components.schemas)]);
    }
  }
  page.append(make("p", {}, `${info.description} Version ${info.version}. `, make("a", { href: "/openapi.json" }, "openapi.json")));
  for (const [tag, operations] of groups) page.append(make("section", {}, make("h2", {}, tag), make("div", { class: "jobs" }, ...operations.map(({ node }) => node))));
} catch (error) {
  page.append(failureNode(error));
}
