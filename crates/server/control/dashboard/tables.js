// The tables: the last changes, what keeps pages from being hits, all figures.

import { at, count, el, list, milliseconds, moment, table } from "./page.js";
import { get } from "./api.js";
import { asking, missing } from "./explain.js";

const SHOWN = 15;
const ROWS = 10;

/** Reads the last changes anew; of one site where one is chosen. */
export async function showChanges(site) {
  await show("changes", "/v1/changes", (told) => {
    const changes = told.changes.filter((one) => site === "" || one.site === site).slice(0, SHOWN);
    if (changes.length === 0) return [note("There was none yet.")];
    // Where there is one site it needs no name.
    const named = site === "" && new Set(changes.map((one) => one.site)).size > 1;
    const rows = changes.map((one) => [
      moment(one.at_ms), names(one), one.by.text, outcome(one), ...(named ? [one.site ?? ""] : []),
    ]);
    const headings = ["when", "what changed", "by", "pages", ...(named ? ["site"] : [])];
    return [table(`The last ${changes.length} changes`, headings, rows)];
  });
}

/** Reads the reasons anew. */
export async function showReasons() {
  await show("reasons", "/v1/misses", (told) => {
    const page = (one) => (one.url ? asking(one.url) : "");
    const tables = [
      ["Not stored", told.not_stored, ["reason", "how often", "for instance", "what to do"],
        (one) => [code(one.reason), one.count, page(one), one.remedy ?? ""]],
      ["Passed on", told.bypassed, ["reason", "how often", "for instance", "what to do"],
        (one) => [code(one.reason), one.count, page(one), one.remedy ?? ""]],
      ["Cookies", told.cookies, ["cookie", "effect", "how often", "for instance"],
        (one) => [code(one.name), one.effect === "set" ? "set: not stored" : "sent: passed on", one.count, page(one)]],
      ["Parameters that part pages", told.parameters, ["parameter", "how often", "for instance"],
        (one) => [code(one.name), one.count, page(one)]],
      ["Dropped most", told.dropped, ["page", "how often", "last by"], (one) => [page(one), one.count, one.by?.text ?? ""]],
      ["Slowest renders", told.slowest, ["page", "took", "status", "when"],
        (one) => [page(one), milliseconds(one.took_ms), `${one.status}${one.stored ? "" : ", not stored"}`, moment(one.at_ms)]],
      ["Dropped though nothing changed", told.over_invalidation?.pages, ["page", "how often"], (one) => [page(one), one.count]],
    ];
    const some = tables.filter(([, rows]) => rows?.length > 0);
    if (some.length === 0) return [note("Nothing was noted yet.")];
    const made = some.map(([caption, rows, headings, row]) => table(caption, headings, rows.slice(0, ROWS).map(row)));
    return [el("div", { class: "tables" }, ...made), compared(told.over_invalidation)].filter(Boolean);
  });
}

/** All figures of a site, as they are. */
export function showFigures(figures) {
  const known = Object.entries(figures).filter(([, value]) => typeof value === "number");
  const terms = known.sort().map(([name, value]) => [name, count(value)]);
  at("table").replaceChildren(list(terms));
}

/** Not while somebody is in it: the place would be lost. */
async function show(id, path, made) {
  const place = at(id);
  const put = (...parts) => place.contains(document.activeElement) || place.replaceChildren(...parts);
  try {
    put(...made(await get(path)));
  } catch (error) {
    put(missing(error));
  }
}

function names(change) {
  const shown = change.names.map(({ kind, name }) => {
    if (kind === "tag" || kind === "url") return asking(name);
    return el("span", {}, kind === "everything" ? "everything" : `${kind} ${name ?? ""}`);
  });
  const more = change.names_left_out > 0 ? ` and ${count(change.names_left_out)} more` : null;
  return el("span", { class: "tags" }, ...shown, more);
}

const outcome = (change) =>
  change.strength === "mark" ? `${count(change.marked)} marked` : `${count(change.dropped)} dropped`;

const compared = (over) =>
  over?.compared > 0
    ? note(`Of ${count(over.compared)} pages that were dropped and rendered again, ${count(over.unchanged)} came out the same.`)
    : null;

const code = (text) => el("code", {}, text);
const note = (text) => el("p", { class: "note" }, text);
