// What the site has shown so far: the report of its trial, and the results of its audit. Both come with the answer of
// `/v1/status`; the report is called for only while there is a trial.

import { amount, at, breakable, count, duration, el, list, percent, prose, say, table } from "./page.js";
import { get, open, post } from "./api.js";

const SPANS = [["hour", "hour"], ["day", "24 hours"], ["month", "31 days"]];

/** Shows both for the chosen site, or for all sites. */
export async function showProof({ trial, audit }, site) {
  showAudits((audit ?? []).filter((one) => site === "" || one.site === site));
  const trials = (trial ?? []).filter((one) => site === "" || one.site === site);
  if (trials.length === 0) {
    at("trial-section").hidden = true;
    return;
  }
  try {
    const query = site === "" ? "" : `?site=${encodeURIComponent(site)}`;
    put("trial", (await get(`/v1/trial${query}`)).trials.flatMap(report));
  } catch (error) {
    put("trial", [note(`Not available: ${error.message}`)]);
  }
  at("trial-section").hidden = false;
}

function report(one) {
  const served = one.serve_percent === 0 ? "the answers of the origin" : `cache hits, ${one.serve_percent} % of them`;
  const figures = list([
    ["running for", duration(one.running_seconds)],
    ["visitors get", served],
    ["requests", count(one.requests)],
    ["would-be hit ratio", percent(one.hit_percent / 100)],
    ["PHP time saved", duration(one.saved_seconds)],
    ["compared", `${count(one.compared)} (${amount(one.versions, "version")} of pages)`],
    ["without a verdict", unjudged(one)],
    ["PHP time used", duration(one.render_seconds)],
  ]);
  const rows = one.problems.map((problem) => [
    el("span", {}, code(problem.class), problem.is_accepted ? " accepted" : ""),
    el("code", {}, ...breakable(problem.url)), problem.count, problem.places.join("; "),
    problem.cause ? prose(problem.cause) : "", prose(problem.remedy),
  ]);
  const suspects = one.suspects.length > 0 ? note(`Not explained yet: ${one.suspects.join(", ")}`) : null;
  const again = el("button", { type: "button" }, "New record …");
  again.addEventListener("click", () => restart(one.site));
  return [
    el("p", {}, one.site === null ? "" : `${one.site}: `, el("strong", one.outcome === "safe" ? {} : { class: "warning" }, one.sentence)),
    ...one.notices.map(note),
    figures,
    rows.length > 0 ? table("What differed", ["class", "example", "count", "place", "cause", "remedy"], rows) : null,
    suspects,
    el("p", {}, again),
  ].filter(Boolean);
}

const unjudged = (one) => [count(one.without_verdict), ...Object.entries(one.unjudged).map(([why, times]) => `${why}: ${count(times)}`)].join(", ");

/** Begins a new record after a confirmation: what was found so far is lost. */
async function restart(site) {
  say(at("confirm-title"), "Begin a new record?");
  say(at("confirm-text"), "The trial forgets what it has counted and found. Do this after a deployment.");
  say(at("confirm-yes"), "Begin");
  if ((await open(at("confirm"))) !== "yes") return;
  try {
    await post("/v1/trial", { restart: true, site });
    document.activeElement?.blur();
    await showProof({ trial: [{ site }] }, site ?? "");
  } catch (error) {
    put("trial", [note(`No new record: ${error.message}`)]);
  }
}

function showAudits(audits) {
  at("audit-section").hidden = audits.length === 0;
  put("audit", audits.flatMap((one) => {
    const name = audits.length > 1 ? `${one.site ?? "default site"}: ` : "";
    const rows = SPANS.map(([span, label]) => [label, one[span].compared, one[span].wrong, `at least ${one[span].right}`, one[span].nines.toFixed(1)]);
    return [
      el("p", {}, `${name}Audited today: ${count(one.day.compared)}, ${count(one.day.wrong)} wrong.`),
      table("Cache hits compared with a new render", ["last", "compared", "wrong", "right", "nines"], rows),
    ];
  }));
}

/** Not while the focus is inside: the place would be lost. */
function put(id, parts) {
  const place = at(id);
  if (!place.contains(document.activeElement)) place.replaceChildren(...parts);
}

const code = (text) => el("code", {}, text);
const note = (text) => el("p", { class: "note" }, text);
