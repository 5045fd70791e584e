// Databases and cluster nodes with their lag, the most requested pages, and refused requests.

import { at, count, duration, el, milliseconds, shortener, table } from "./page.js";
import { get } from "./api.js";
import { asking } from "./explain.js";

/** The kinds of databases in words. */
const KINDS = { mariadb: "MariaDB or MySQL", postgresql: "PostgreSQL", cluster: "cluster stream" };

/** The counters of refusals, each with a label. */
const REFUSED = [
  ["own_errors", "In all: errors of Pagewell's own"],
  ["denied", "Requests that a rule refuses (deny)"],
  ["rate_limited", "Requests over a limit for one client: 429"],
  ["renders_limited", "Requests over the renders of a rule: 429, or an expired page"],
  ["passwords_refused", "Requests without a right password: 401"],
  ["misses_deferred", "Requests deferred under overload: 503, or an expired page"],
  ["rejected", "Malformed or oversized requests"],
  ["purges_refused", "Purge requests without permission"],
  ["handshakes_failed", "Failed TLS handshakes"],
  ["proxies_refused", "Connections with a wrong or missing PROXY header"],
  ["memcached_refused", "Items refused on the memcached port"],
];

/** Shows the databases and nodes of a site, or of all sites, with the age of their figures. Where a
 * connection is down, state and lag are unknown. The section is hidden if there are none. */
export async function showSources(site) {
  await show("sources", async () => {
    const answer = await get("/v1/sources");
    const of = (list) => list.filter((one) => site === "" || one.site === site);
    const [databases, nodes] = [of(answer.databases), of(answer.nodes)];
    at("sources-section").hidden = databases.length === 0;
    const named = site === "" && new Set(databases.map((one) => one.site)).size > 1;
    const more = (one) => (named ? [one.site ?? ""] : []);
    const headings = named ? ["site"] : [];
    const parts = [
      table(
        "Databases",
        ["name", "kind", "server", "state", "lag", "last measured", ...headings],
        databases.map((one) => [
          one.name, KINDS[one.kind] ?? one.kind, one.server, state(one), lag(one.lag_us, 1000), ago(one.measured_ms_ago), ...more(one),
        ]),
      ),
    ];
    const stream = databases.find((one) => one.kind === "cluster");
    if (stream) {
      const rows = nodes.map((one) => [
        nodeName(one.host_name, one.name), condition(one.state), lag(one.lag_ms, 1),
        ago(one.reported_ms_ago), ago(one.read_ms_ago), ...more(one),
      ]);
      const columns = ["node", "state", "lag", "last report", "last contact", ...headings];
      if (rows.length > 0) parts.push(table("Other cluster nodes", columns, rows));
      else parts.push(note(stream.followed ? "No other cluster node is known." : "The stream is not followed, so other cluster nodes are unknown."));
      parts.push(note("This node is ", nodeName(answer.own_host_name, answer.own_name), "."));
    }
    return parts;
  });
}

/** Shows the most requested pages of a site, or of all sites. */
export async function showMostRequested(site) {
  await show("requested", async () => {
    const { pages } = await get("/v1/most-requested");
    const shown = pages.filter((one) => site === "" || one.site === site);
    if (shown.length === 0) return [note("No stored page has answered a request yet.")];
    const times = (one) => (one.served_at_least ? `at least ${count(one.served)}` : one.served);
    const short = shortener(shown.map((one) => one.url));
    const rows = shown.map((one) => [asking(one.url, short(one.url)), one.variants, times(one)]);
    return [
      table("Stored pages", ["page", "variants", "cache hits"], rows),
      note("Counted approximately, for each stored page since it was stored. URLs that differ only in hidden values share a row."),
    ];
  });
}

/** Shows the refusals of a site, or of all sites. `first` and `now` are moments of their figures: the first
 * one of the `span`, and the newest. `limits` says how often each limit was reached, on all sites. */
export async function showRefused([first, now], span, limits) {
  await show("refused", () => {
    const since = (name) => Math.max(0, now[name] - first[name]);
    const known = ([name]) => now[name] > 0;
    const rows = REFUSED.filter(known).map(([name, label]) => [label, now[name], since(name)]);
    const reached = Object.entries(limits ?? {}).filter(([, times]) => times > 0);
    reached.sort(([, one], [, other]) => other - one);
    if (rows.length + reached.length === 0) return [note("None since the start.")];
    const parts = [];
    if (rows.length > 0) parts.push(table("Refused", ["what", "since the start", `last ${span}`], rows));
    if (reached.length > 0) {
      const caption = "Limits reached, of all sites together";
      parts.push(table(caption, ["limit", "since the start"], reached.map(([name, times]) => [code(`limits.${name}`), times])));
    }
    return [el("div", { class: "tables" }, ...parts)];
  });
}

/** Not while the focus is inside: the place would be lost. After an error the last state stays. */
async function show(id, parts) {
  const place = at(id);
  try {
    const made = await parts();
    if (!place.contains(document.activeElement)) place.replaceChildren(...made);
  } catch (error) {
    if (place.children.length === 0) place.replaceChildren(note(`Not available: ${error.message}`));
  }
}

function state(database) {
  if (!database.followed) return warning(database.stores_pages ? "reconnecting" : "not followed: no page is stored");
  return database.stores_pages ? "followed" : warning("too far behind: no page is stored");
}

/** A lag; so many units of the value are a millisecond. */
const lag = (value, units) => (value === null ? "unknown" : milliseconds(value / units));
/** The age of a figure, in whole seconds. */
const ago = (ms) => (ms === null ? "never" : `${duration(Math.round(ms / 1000))} ago`);
/** The host name of a node and its process; the process alone if it announces no host name. */
const nodeName = (host, process) => el("span", {}, host === null ? null : `${host} `, code(process));
const condition = (name) => (name === "connected" ? name : warning(name));
const warning = (text) => el("strong", { class: "warning" }, text);
const code = (text) => el("code", {}, text);
const note = (...text) => el("p", { class: "note" }, ...text);
