// The tables: the last invalidations, the causes of cache misses, all counters.

import { at, count, el, list, milliseconds, moment, prose, shortener, table } from "./page.js";
import { get } from "./api.js";
import { asking, missing } from "./explain.js";

const SHOWN = 15;
const ROWS = 10;

/** Reloads the last invalidations, of the chosen site or of all. */
export async function showChanges(site) {
  await show("changes", "/v1/changes", (told) => {
    const changes = told.changes.filter((one) => site === "" || one.site === site).slice(0, SHOWN);
    if (changes.length === 0) return [note("There has been no invalidation yet.")];
    // Where there is one site it needs no name.
    const named = site === "" && new Set(changes.map((one) => one.site)).size > 1;
    const rows = changes.map((one) => [
      moment(one.at_ms), names(one), one.by.text, outcome(one), ...(named ? [one.site ?? ""] : []),
    ]);
    const headings = ["when", "tags and URLs", "by", "pages", ...(named ? ["site"] : [])];
    return [table("The newest is first", headings, rows)];
  });
}

/** Why a response was not stored: the application's own reason, if it gave one. */
const reason = (one) => (one.refusal ? el("span", {}, "the application does not offer it: ", code(one.refusal)) : code(one.reason));

/** What a cookie does, by the word in the list of misses. */
const cookieEffects = {
  set: "a response sets it: the page is not stored",
  bypass: "a request has it: the cache is bypassed",
  split: "each value has its own copies",
  own: "it is on no list: the response was for its client",
};

/** Reloads the causes of misses. */
export async function showReasons() {
  await show("reasons", "/v1/misses", (told) => {
    showOrigins(told.origins ?? []);
    const lists = [told.not_stored, told.bypassed, told.cookies, told.parameters, told.dropped, told.slowest, told.over_invalidation?.pages];
    const short = shortener(lists.flatMap((list) => list ?? []).map((one) => one.url));
    const page = (one) => (one.url ? asking(one.url, short(one.url)) : "");
    const remedy = (one) => prose(one.remedy ?? "");
    const tables = [
      ["Not stored", told.not_stored, ["reason", "count", "example", "remedy"],
        (one) => [reason(one), one.count, page(one), remedy(one)]],
      ["Bypassed", told.bypassed, ["reason", "count", "example", "remedy"],
        (one) => [code(one.reason), one.count, page(one), remedy(one)]],
      ["Cookies", told.cookies, ["cookie", "effect", "count", "example"],
        (one) => [code(one.name), cookieEffects[one.effect] ?? one.effect, one.count, page(one)]],
      ["Query parameters that create variants", told.parameters, ["parameter", "count", "example"],
        (one) => [code(one.name), one.count, page(one)]],
      ["Purged most", told.dropped, ["page", "count", "last by"], (one) => [page(one), one.count, one.by?.text ?? ""]],
      ["Slowest origin requests", told.slowest, ["page", "time", "status", "when"],
        (one) => [page(one), milliseconds(one.took_ms), `${one.status ?? "no response"}${one.stored ? "" : ", not stored"}`, moment(one.at_ms)]],
      ["Purged although the content did not change", told.over_invalidation?.pages, ["page", "count"], (one) => [page(one), one.count]],
    ];
    const some = tables.filter(([, rows]) => rows?.length > 0);
    if (some.length === 0) return [note("There have been no cache misses yet.")];
    const made = some.map(([caption, rows, headings, row]) => table(caption, headings, rows.slice(0, ROWS).map(row)));
    return [el("div", { class: "tables" }, ...made), compared(told.over_invalidation)].filter(Boolean);
  });
}

/** Shows what the origin of each site works for in the last minutes: groups of URLs, and who requests them. */
function showOrigins(all) {
  const some = all.filter((one) => one.groups.length > 0);
  at("origins-section").hidden = some.length === 0;
  const place = at("origins");
  if (place.contains(document.activeElement)) return;
  place.replaceChildren(...some.flatMap((one) => {
    const name = some.length > 1 ? `${one.site ?? "default site"}: ` : "";
    const state = one.overloaded ? "overloaded now" : one.overload_seconds > 0 ? "not overloaded now" : "not overloaded since the start";
    const groups = one.groups.map((group) => [
      code(group.group), group.kind, `${group.percent_of_requests} %`, milliseconds(group.busy_ms),
      `${group.percent_of_time} %`, group.deferred,
    ]);
    const clients = [...one.networks.map((who) => ["network", who]), ...one.agents.map((who) => ["user agent", who])];
    return [
      note(`${name}${state}; requests that have waited for the origin since the start: ${count(one.waited)}${deferred(one)} (misses.mode = "${one.mode}").`),
      el("p", {}, one.advice ?? ""),
      table("Groups of URLs (*: any segment; a, b: any parameter), last minutes", ["URLs", "kind", "requests", "time of the origin", "share of time", "deferred"], groups),
      table("Clients, last minutes", ["kind", "name", "requests"], clients.map(([kind, who]) => [kind, code(who.name), `${who.percent_of_requests} %`])),
    ];
  }));
}

/** All counters of a site. */
export function showFigures(figures) {
  const known = Object.entries(figures).filter(([, value]) => typeof value === "number");
  const terms = known.sort().map(([name, value]) => [name, count(value)]);
  at("table").replaceChildren(list(terms));
}

/** Does not replace a table that has the focus, so that the focus is not lost. */
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
  change.strength === "mark" ? `${count(change.marked)} marked stale` : `${count(change.dropped)} purged`;

const compared = (over) =>
  over?.compared > 0
    ? note(`Of ${count(over.compared)} purged pages that were rendered again, ${count(over.unchanged)} had the same content.`)
    : null;

const code = (text) => el("code", {}, text);
/** Under other modes, no request is deferred. */
const deferred = (one) =>
  one.mode === "protect" || one.deferred > 0 ? `, ${count(one.deferred)} deferred: a 503 that reloads, or an expired page` : "";
const note = (text) => el("p", { class: "note" }, text);
