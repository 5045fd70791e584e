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
    delete document.body.dataset.trial;
    return;
  }
  try {
    const query = site === "" ? "" : `?site=${encodeURIComponent(site)}`;
    const reports = (await get(`/v1/trial${query}`)).trials;
    put("trial", reports.flatMap(report));
    // The figures of a site under trial are those of the trial: nothing is wrong if nothing is answered from the cache.
    const [one] = reports;
    if (reports.length === 1 && (site !== "" || at("choice").hidden)) document.body.dataset.trial = percent(one.hit_percent / 100);
    else delete document.body.dataset.trial;
  } catch (error) {
    put("trial", [note(`Not available: ${error.message}`)]);
  }
  at("trial-section").hidden = false;
}

/** A table of differences, and the meaning of their classes. */
function differences(title, problems, meanings) {
  if (problems.length === 0) return [];
  const rows = grouped(problems).map((problem) => [
    el("span", {}, code(problem.class), problem.is_accepted ? " accepted" : ""),
    el("span", { class: "url" }, el("code", {}, ...breakable(problem.url)), problem.paths > 1 ? ` and ${amount(problem.paths - 1, "other path")}` : ""), problem.count,
    problem.could_save ? `PHP time: at least ${duration(problem.could_save.seconds)}; the same for ${amount(problem.visitors.clients, "visitor")}` : problem.places.join("; "),
    causeOf(problem), prose(problem.remedy),
  ]);
  const classes = [...new Set(problems.map((problem) => problem.class))];
  return [
    table(title, ["class", "example", "count", "place", "cause", "remedy"], rows),
    list(classes.map((name) => [name, meanings[name]])),
  ];
}

/** The cause, and how often samples agree by chance, in the words of `pagewell trial`. */
function causeOf(problem) {
  const cause = problem.cause ? prose(problem.cause) : "";
  if (problem.chance_percent === undefined) return cause;
  const why = "because text of such a page is also drawn at random";
  return el("div", {}, cause, note(`by chance: in at most ${problem.chance_percent} % of comparisons, ${why}`));
}

function report(one) {
  const served = one.serve_percent === 0 || one.is_share_refused ? "the answers of the origin" : `cache hits, ${one.serve_percent} % of them`;
  const figures = list([
    ["running for", duration(one.running_seconds)],
    ["visitors get", served],
    ["requests for shared pages", count(one.requests)],
    ["would-be hit ratio, at least", percent(one.hit_percent / 100)],
    ["PHP time saved, at least", duration(one.saved_seconds)],
    ["compared", `${count(one.compared)} (${amount(one.versions, "version")} of pages)`],
    ["without a verdict", unjudged(one)],
    ["PHP time used", duration(one.render_seconds)],
  ]);
  const suspects = one.suspects.length > 0 ? note(`Not explained yet: ${one.suspects.map((path) => reasoned(path, one.suspect_reasons[path])).join(", ")}`) : null;
  const idle = one.idle_parameters.map((parameter) => `"${parameter.name}"`).join(", ");
  const open = one.unjudged_parameters.map((parameter) => `"${parameter.name}"`).join(", ");
  const again = el("button", { type: "button" }, "New record …");
  again.addEventListener("click", () => restart(one.site));
  return [
    el("p", {}, one.site === null ? "" : `${one.site}: `, el("strong", one.outcome === "safe" ? {} : { class: "warning" }, one.sentence)),
    ...one.notices.map((text) => el("p", { class: "note" }, prose(text))),
    figures,
    ...differences("Problems", one.problems.filter((problem) => !problem.is_notice), one.meanings),
    ...differences("Notices", one.problems.filter((problem) => problem.is_notice), one.meanings),
    suspects,
    idle === "" ? null : el("p", { class: "note" }, "Parameters that change no page: ", code(`keys.drop_also = [${idle}]`)),
    open === "" ? null : note(`Parameters with values that were not compared, so nothing is advised: ${open}`),
    el("p", {}, again),
  ].filter(Boolean);
}

/** One row for all paths of a group, as in the text of `pagewell trial`. */
function grouped(problems) {
  const groups = new Map();
  for (const problem of problems) {
    const group = groups.get(problem.group);
    if (group === undefined) {
      groups.set(problem.group, { ...problem, paths: 1 });
      continue;
    }
    group.count += problem.count;
    group.paths += 1;
    group.chance_percent ??= problem.chance_percent;
    if (problem.could_save) {
      group.could_save = { answers: group.could_save.answers + problem.could_save.answers, seconds: group.could_save.seconds + problem.could_save.seconds };
      if (problem.visitors.clients < group.visitors.clients) group.visitors = problem.visitors;
    }
  }
  return [...groups.values()];
}

const reasoned = (path, reason) => (reason === undefined ? path : `${path} (${reason})`);

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
    const rows = SPANS.map(([span, label]) => [label, one[span].compared, one[span].wrong, ...bound(one[span])]);
    return [
      el("p", {}, `${name}Audited today: ${count(one.day.compared)}, ${count(one.day.wrong)} wrong. Counted for ${duration(one.counted_seconds)}.`),
      table("Cache hits compared with a new render", ["last", "compared", "wrong", "right", "nines"], rows),
    ];
  }));
}

/** At least so many pages are right. */
const bound = ({ compared, right, nines }) => (compared > 0 ? [`at least ${right}`, nines.toFixed(1)] : ["nothing compared yet", ""]);

/** Not while the focus is inside: the place would be lost. */
function put(id, parts) {
  const place = at(id);
  if (!place.contains(document.activeElement)) place.replaceChildren(...parts);
}

const code = (text) => el("code", {}, text);
const note = (text) => el("p", { class: "note" }, text);
