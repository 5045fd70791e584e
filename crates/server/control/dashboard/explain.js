// Explains how Pagewell would answer a URL, or lists the pages with a tag.

import { amount, at, breakable, bytes, count, duration, el, list, milliseconds, moment, prose, shortener, table } from "./page.js";
import { post } from "./api.js";
import { dropBy } from "./drop.js";

/** Answers the form; `chosen` returns the chosen site. */
export function start(chosen) {
  const form = at("look");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const question = at("question").value.trim();
    if (question === "") return;
    await answer(ask(question, chosen()));
  });
}

/** Puts a URL or tag into the form, and submits it. */
export function look(question) {
  at("question").value = question;
  at("question").focus();
  at("look").requestSubmit();
}

/** The note for a call that failed or is not supported. */
export function missing(error) {
  const text = error.status === 404 && error.name === "not-found"
    ? "This version of Pagewell does not support it."
    : `The call failed: ${error.message}`;
  return el("p", { class: "note" }, text);
}

/** A button that explains a URL or tag; its label may be shorter. */
export function asking(question, label = question) {
  const title = label === question ? {} : { title: question };
  const button = el("button", { type: "button", class: "link", ...title }, ...breakable(label));
  button.addEventListener("click", () => look(question));
  return button;
}

function ask(question, site) {
  const of = site === "" ? {} : { site };
  if (!/^(\/|https?:)/i.test(question)) return { tag: question, ...of };
  const headers = {};
  for (const line of at("lines").value.split("\n")) {
    const [, name, value] = /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (name) headers[name.toLowerCase()] = value;
  }
  const cookie = at("cookie").value.trim();
  if (cookie !== "") headers.cookie = cookie;
  return { url: question, headers, ...of };
}

async function answer(question) {
  const place = at("answer");
  try {
    const told = await post("/v1/explain", question);
    place.replaceChildren(...(told.about === "tag" ? aboutTag(told) : aboutUrl(told)));
  } catch (error) {
    place.replaceChildren(missing(error));
  }
}

function aboutUrl(told) {
  const { page, rule, last_render: render, last_drop: drop } = told;
  const verdict = el("span", { class: "verdict", "data-verdict": told.verdict }, told.verdict);
  return [
    el("h3", {}, verdict, told.reason ? el("code", {}, told.reason) : null),
    el("p", {}, prose(told.sentence)),
    told.remedy ? el("p", { class: "remedy" }, prose(told.remedy)) : null,
    list([
      ["key", told.key?.join(" · ")],
      ["rule", rule && `${rule.number}${rule.path ? ` (${rule.path})` : ""}`],
      ...(page ? aboutPage(page) : []),
      ...(render ? [["last render", lastRender(render, told.remedy)]] : []),
      ...(drop ? [["last purged", lastDrop(drop)]] : []),
    ]),
    page ? dropButton("urls", told.url, "Purge this page …") : null,
  ].filter(Boolean);
}

function aboutPage(page) {
  const left = page.ttl_seconds;
  const tags = el("span", { class: "tags" }, ...page.tags.map((tag) => asking(tag)));
  if (page.tags_left_out > 0) tags.append(` and ${count(page.tags_left_out)} more`);
  // A line for each table of a statement, with the condition.
  const lines = page.reads?.map((line) => el("li", {}, line));
  const reads = lines && el("details", {}, el("summary", {}, `${amount(lines.length, "set")} of rows`), el("ul", {}, ...lines));
  const by = page.dropped_by ?? {};
  const rules = (by.rules ?? []).map((rule) => `${rule.database}: ${rule.table} → ${rule.tag}`);
  return [
    ["fresh for", left === null ? null : left > 0 ? `${duration(left)} more` : "no longer"],
    ["TTL from", page.lifetime_field ?? page.lifetime_from],
    ["rendered", page.stored_at_ms && span(moment(page.stored_at_ms), page.render_ms === null ? "" : ` in ${milliseconds(page.render_ms)}`)],
    ["served", `${page.served_at_least ? "at least " : ""}${amount(page.served, "time")}`],
    ["response", [page.status, page.content_type, bytes(page.bytes)].filter(Boolean).join(" · ")],
    ["depends on", page.tags.length > 0 ? tags : reads ? null : "no tags"],
    ["reads", reads],
    ["varies by", page.varies_by?.join(", ")],
    ["marked stale", page.marked_at_ms && moment(page.marked_at_ms)],
    ["also purged by", [by.url, ...(by.prefixes ?? []).map((path) => `${path} and below`), ...rules].filter(Boolean).join(" · ")],
  ];
}

/** The last origin request; its remedy only if it is not `shown` already. */
function lastRender(render, shown) {
  const why = render.refusal ? `the application does not offer it: ${render.refusal} (${render.reason})` : render.reason;
  const kept = render.stored ? "stored" : `not stored: ${why ?? "reason unknown"}`;
  const took = render.took_ms === null ? "" : ` in ${milliseconds(render.took_ms)}`;
  const cookies = render.cookies?.length > 0 ? `; sets ${render.cookies.join(", ")}` : "";
  const sent = render.visitor_cookies?.length > 0 ? `; its request had the cookie ${render.visitor_cookies.join(", ")}` : "";
  const remedy = render.remedy && render.remedy !== shown ? prose(` ${render.remedy}`) : null;
  return span(moment(render.at_ms), `${took}: ${render.status}, ${kept}${cookies}${sent}.`, remedy);
}

function lastDrop(drop) {
  const name = drop.name ? ` (${drop.name.kind} ${drop.name.name ?? ""})` : "";
  const same = drop.unchanged ? "; the content did not change" : "";
  return span(moment(drop.at_ms), ` by invalidation ${drop.change}: ${drop.by.text}${name}${same}`);
}

function aboutTag(told) {
  const short = shortener(told.pages.map((page) => page.url));
  // Where there is one site it needs no name.
  const named = told.pages.some((page) => page.site);
  const rows = told.pages.map((page) => [
    asking(page.url, short(page.url)), ...(named ? [page.site ?? ""] : []), moment(page.stored_at_ms), fresh(page.ttl_seconds),
  ]);
  const headings = ["page", ...(named ? ["site"] : []), "stored", "fresh for"];
  const isPath = told.pages_total === 0 && told.tag.includes("/");
  const change = told.last_change;
  return [
    el("h3", {}, el("code", {}, told.tag)),
    el("p", {}, `${count(told.pages_total)} ${told.pages_total === 1 ? "page depends" : "pages depend"} on this tag.`),
    list([
      ["last invalidated", change && span(moment(change.at_ms), `: ${change.by.text}, purged ${count(change.dropped)}`)],
      ["changed by rows of", told.rules?.map((rule) => `${rule.database}: ${rule.table}`).join(", ")],
    ]),
    rows.length > 0 ? table("Pages with this tag", headings, rows) : null,
    told.pages_left_out > 0 ? el("p", { class: "note" }, `${count(told.pages_left_out)} more are not shown.`) : null,
    isPath ? el("p", {}, "A path begins with a slash. Was this page meant? ", asking(`/${told.tag}`)) : null,
    told.pages_total > 0 ? dropButton("tags", told.tag, "Purge them …") : null,
  ].filter(Boolean);
}

const fresh = (seconds) => (seconds === null ? "" : seconds > 0 ? duration(seconds) : "stale");

const span = (...children) => el("span", {}, ...children);

function dropButton(kind, name, text) {
  const button = el("button", { type: "button" }, text);
  button.addEventListener("click", () => dropBy(kind, name));
  return button;
}
