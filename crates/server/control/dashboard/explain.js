// "Why?": what Pagewell would do with a URL and why, or which pages a tag has.

import { at, bytes, count, duration, el, list, milliseconds, moment, table } from "./page.js";
import { post } from "./api.js";
import { dropBy } from "./drop.js";

/** Answers the form; `chosen` says which site is chosen. */
export function start(chosen) {
  const form = at("look");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const question = at("question").value.trim();
    if (question === "") return;
    await answer(ask(question, chosen()));
  });
}

/** Puts a question into the form, and asks it. */
export function look(question) {
  at("question").value = question;
  at("question").focus();
  at("look").requestSubmit();
}

/** What is shown when one of these calls is not there. */
export function missing(error) {
  const text = error.status === 404 && error.name === "not-found"
    ? "This version of Pagewell does not tell."
    : `It could not be asked: ${error.message}`;
  return el("p", { class: "note" }, text);
}

/** A button that asks about something. */
export function asking(question) {
  const button = el("button", { type: "button", class: "link" }, question);
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
    el("p", {}, told.sentence),
    told.remedy ? el("p", { class: "remedy" }, told.remedy) : null,
    list([
      ["key", told.key?.join(" · ")],
      ["rule", rule && `${rule.number}${rule.path ? ` (${rule.path})` : ""}`],
      ...(page ? aboutPage(page) : []),
      ...(render ? [["last render", lastRender(render)]] : []),
      ...(drop ? [["last dropped", lastDrop(drop)]] : []),
    ]),
    page ? dropButton("urls", told.url, "Drop this page …") : null,
  ].filter(Boolean);
}

function aboutPage(page) {
  const left = page.ttl_seconds;
  const tags = el("span", { class: "tags" }, ...page.tags.map(asking));
  if (page.tags_left_out > 0) tags.append(` and ${count(page.tags_left_out)} more`);
  const by = page.dropped_by ?? {};
  const rules = (by.rules ?? []).map((rule) => `${rule.database}: ${rule.table} → ${rule.tag}`);
  return [
    ["fresh for", left === null ? null : left > 0 ? `${duration(left)} more` : "no longer"],
    ["lifetime from", page.lifetime_from],
    ["made", page.stored_at_ms && span(moment(page.stored_at_ms), page.render_ms === null ? "" : ` in ${milliseconds(page.render_ms)}`)],
    ["served", `${page.served_at_least ? "at least " : ""}${count(page.served)} times`],
    ["it is", [page.status, page.content_type, bytes(page.bytes)].filter(Boolean).join(" · ")],
    ["made from", page.tags.length > 0 ? tags : "no tags"],
    ["varies by", page.varies_by?.join(", ")],
    ["marked", page.marked_at_ms && moment(page.marked_at_ms)],
    ["also dropped by", [by.url, ...(by.prefixes ?? []).map((path) => `${path} and below`), ...rules].filter(Boolean).join(" · ")],
  ];
}

function lastRender(render) {
  const kept = render.stored ? "stored" : `not stored: ${render.reason ?? "no reason is known"}`;
  const took = render.took_ms === null ? "" : ` in ${milliseconds(render.took_ms)}`;
  const cookies = render.cookies?.length > 0 ? `; it sets ${render.cookies.join(", ")}` : "";
  return span(moment(render.at_ms), `${took}: ${render.status}, ${kept}${cookies}. ${render.remedy ?? ""}`);
}

function lastDrop(drop) {
  const name = drop.name ? ` (${drop.name.kind} ${drop.name.name ?? ""})` : "";
  const same = drop.unchanged ? "; the next render was the same" : "";
  return span(moment(drop.at_ms), ` by change ${drop.change}: ${drop.by.text}${name}${same}`);
}

function aboutTag(told) {
  const rows = told.pages.map((page) => [asking(page.url), page.site, moment(page.stored_at_ms), fresh(page.ttl_seconds)]);
  const change = told.last_change;
  return [
    el("h3", {}, el("code", {}, told.tag)),
    el("p", {}, `${count(told.pages_total)} ${told.pages_total === 1 ? "page depends" : "pages depend"} on it.`),
    list([
      ["last changed", change && span(moment(change.at_ms), `: ${change.by.text}, dropped ${count(change.dropped)}`)],
      ["changed by", told.rules?.map((rule) => `${rule.database}: ${rule.table}`).join(", ")],
    ]),
    rows.length > 0 ? table("Pages with this tag", ["page", "site", "stored", "fresh for"], rows) : null,
    told.pages_left_out > 0 ? el("p", { class: "note" }, `${count(told.pages_left_out)} more are not shown.`) : null,
    dropButton("tags", told.tag, "Drop them …"),
  ].filter(Boolean);
}

const fresh = (seconds) => (seconds === null ? "" : seconds > 0 ? duration(seconds) : "stale");

const span = (...children) => el("span", {}, ...children);

function dropButton(kind, name, text) {
  const button = el("button", { type: "button" }, text);
  button.addEventListener("click", () => dropBy(kind, name));
  return button;
}
