// The live list of requests: filtered by path, status and outcome, started and stopped by the form. Each row opens
// the explanation of its page.

import { at, count, el, milliseconds, moment, say } from "./page.js";
import { call } from "./api.js";
import { asking } from "./explain.js";
import { events, giveUpUnseen } from "./live.js";

const ROWS = 100;
const HEADINGS = ["time", "request", "status", "outcome", "took"];

let running = null;
let omitted = 0;
let rows = null;

/** Answers the form. */
export function start() {
  at("watch").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running === null) run();
    else running.abort();
  });
  // Another filter counts at once.
  at("watch").addEventListener("change", () => {
    if (running !== null) run();
  });
}

/** Runs the list until it is stopped, or started again with another filter. */
async function run() {
  running?.abort();
  const stream = new AbortController();
  [running, omitted, rows] = [stream, 0, null];
  showOmitted();
  state("Running. Nothing has been requested yet.", "Stop");
  at("watched").replaceChildren();
  const unwatch = giveUpUnseen(stream);
  let ended = "Stopped.";
  try {
    const answer = await call(`/v1/requests${query()}`, { signal: stream.signal });
    for await (const event of events(answer.body)) {
      if (running === stream) take(event);
    }
    ended = "Pagewell has ended the list.";
  } catch (error) {
    if (!stream.signal.aborted) ended = `Stopped: ${error.message}`;
  }
  unwatch();
  if (running !== stream) return;
  running = null;
  state(ended, "Start");
}

function query() {
  const given = ["path", "status", "outcome"].map((name) => [name, at(`watch-${name}`).value.trim()]);
  const parts = given.filter(([, value]) => value !== "").map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return parts.length > 0 ? `?${parts.join("&")}` : "";
}

function take({ requests, omitted: more }) {
  omitted += more;
  if (more > 0) showOmitted();
  if (requests.length === 0) return;
  rows ??= begin();
  rows.prepend(...requests.map(row).reverse());
  while (rows.children.length > ROWS && !rows.lastChild.contains(document.activeElement)) rows.lastChild.remove();
}

/** The table, which is made with the first request, so that a screen reader comes to no empty one. */
function begin() {
  state("Running; the newest request is first.", "Stop");
  const body = el("tbody");
  const head = el("thead", {}, el("tr", {}, ...HEADINGS.map((text) => el("th", { scope: "col" }, text))));
  const place = el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Requests" }, el("table", {}, el("caption", {}, "Requests"), head, body));
  at("watched").replaceChildren(place);
  return body;
}

function row(one) {
  // Where there is one site, its host needs no name.
  const question = at("choice").hidden || one.host === "" ? one.target : `http://${one.host}${one.target}`;
  const method = one.method === "GET" ? "" : `${one.method} `;
  const detail = one.detail === "" ? null : el("code", {}, one.detail);
  const cells = [
    moment(one.at_ms),
    el("span", {}, method, one.target.startsWith("/") && !one.target.includes("…") ? asking(question) : question),
    String(one.status),
    el("span", {}, `${one.outcome} `, detail),
    one.took_us === null ? "" : milliseconds(one.took_us / 1000),
  ];
  return el("tr", {}, ...cells.map((cell, index) => el("td", { "data-heading": HEADINGS[index] }, cell)));
}

function state(text, button) {
  say(at("watch-state"), text);
  say(at("watch-start"), button);
}

function showOmitted() {
  at("watch-omitted").hidden = omitted === 0;
  say(at("watch-omitted"), `${count(omitted)} more are not shown: there are too many. A filter helps.`);
}
