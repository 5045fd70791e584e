// Makes and finds elements. What comes from data goes in as text, never as markup: nothing here takes
// markup, and the policy of the page (Trusted Types) forbids it besides.

const SVG = "http://www.w3.org/2000/svg";

/** The element with this id. */
export const at = (id) => document.getElementById(id);

/** An element with attributes and children: elements, or text. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same in SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Sets a text only where it differs, so that a reader is told nothing twice. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A table: a caption, headings, rows of cells. A number is set right. */
export function table(caption, headings, rows) {
  const heading = (text) => el("th", { scope: "col" }, text);
  // On a phone the heading stands before each value.
  const cell = (value, column) => {
    const number = typeof value === "number";
    return el("td", { "data-heading": headings[column], ...(number ? { class: "number" } : {}) }, number ? count(value) : value);
  };
  return el(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": caption },
    el(
      "table",
      {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, ...headings.map(heading))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map(cell)))),
    ),
  );
}

/** Names and what they are. What is not known is left out. */
export function list(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", {}, ...known.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** A sentence in which `text` between backticks is code. */
export function prose(text) {
  const parts = text.split("`");
  // A backtick without a partner is an ordinary character.
  if (parts.length % 2 === 0) return el("span", {}, text);
  return el("span", {}, ...parts.map((part, index) => (index % 2 === 1 ? el("code", {}, part) : part)));
}

/** A URL or tag that breaks after the separators of a URL. */
export function breakable(text) {
  return text.split(/(?<=[/?&=])(?!\/)/).flatMap((part) => [el("wbr"), part]).slice(1);
}

/** A function that shortens a URL to its path, if all of these URLs have the same origin. */
export function shortener(urls) {
  const origin = (url) => /^https?:\/\/[^/]+/i.exec(url)?.[0] ?? "";
  const all = new Set(urls.filter(Boolean).map(origin));
  return (url) => (all.size === 1 ? url.slice(origin(url).length) || "/" : url);
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const fine = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

export const count = (value) => whole.format(value);

/** A number with its noun: `1 page`, `2 pages`. */
export const amount = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** A number as exact as it deserves. */
export function number(value) {
  if (value >= 100) return whole.format(value);
  return value >= 10 ? tenth.format(value) : fine.format(value);
}

export const percent = (share) => `${share > 0.9995 || share === 0 ? whole.format(share * 100) : tenth.format(share * 100)} %`;

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${number(value)} ${units[at]}`;
}

export function milliseconds(ms) {
  return ms >= 1000 ? `${number(ms / 1000)} s` : `${number(ms)} ms`;
}

export function duration(seconds) {
  const [days, hours, minutes] = [seconds / 86400, (seconds / 3600) % 24, (seconds / 60) % 60].map(Math.floor);
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  if (seconds > 0 && seconds < 10) return milliseconds(seconds * 1000);
  return minutes > 0 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(seconds)} s`;
}

/** A moment by the clock of whoever looks; with its day where that is not today. */
export function moment(ms) {
  const then = new Date(ms);
  const today = then.toDateString() === new Date().toDateString();
  const text = today ? then.toLocaleTimeString() : then.toLocaleString();
  return el("time", { datetime: then.toISOString() }, text);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
