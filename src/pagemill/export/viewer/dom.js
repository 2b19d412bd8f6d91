// Elements, messages and numbers: what every part of the viewer needs.

export const byId = (id) => document.getElementById(id);

/** Make an element: properties starting with "data-", "aria-" or named "role" are attributes; text is never HTML. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name === "class") element.className = value;
    else if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A link to the web, a mail address or a telephone number; null for any other target. */
export function linkTo(target) {
  return /^(?:https?:\/\/|mailto:|tel:)\S+$/i.test(target ?? "") ? make("a", { href: target, rel: "noopener noreferrer", target: "_blank" }) : null;
}

let messages = {};
/** Take the translations of the interface: English message to message. */
export function setMessages(translations) {
  messages = translations;
}

/** A message in the language of the interface, with the values for its {names}. Without a translation it stays English. */
export function tr(message, values = {}) {
  return (messages[message] ?? message).replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** What to say of an error: in the language of the interface by its category, then with the server's own words. */
export function said({ category, message, remedy, status }) {
  const own = status === 0 ? null : messages[`error ${category}`]; // status 0: the browser's own, translated already
  return own ? { message: own, remedy: messages[`remedy ${category}`], original: [message, remedy].filter(Boolean).join(". ") } : { message, remedy };
}

export const grouped = (value) => value.toLocaleString("en");
export const seconds = (value) => (value >= 100 ? `${grouped(Math.round(value))} s` : `${value.toFixed(value >= 10 ? 1 : 2)} s`);
export const percent = (share) => `${Math.round(share * 100)} %`;
export const countOf = (count, one, many) => tr(count === 1 ? one : many, { n: grouped(count) });

/** Save data as a file. */
export function saveFile(name, blob) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000); // the browser may read it after the click
}

/** Copy text; answers whether it was. The clipboard's own interface exists only on https and localhost. */
export async function copyText(text) {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text).then(() => true, () => false);
  }
  const area = make("textarea", { value: text, class: "offscreen" });
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}

const THEME_KEY = "pagemill-theme";
/** Read a setting that is kept in this browser; null without one or without storage. */
export function keptSetting(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // a file opened without storage
  }
}
export function keepSetting(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch { /* the setting lasts until the page is closed */ }
}
export function toggleTheme() {
  const now = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const theme = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  keepSetting(THEME_KEY, theme);
}
export function applyKeptTheme() {
  const kept = keptSetting(THEME_KEY);
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
}
