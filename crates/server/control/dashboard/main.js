// Puts the page together: loads the figures of the chosen time, then follows them, shows those of the chosen
// site, and reads the tables anew when something has changed.

import { at, duration, el, say } from "./page.js";
import { ALL, History } from "./figures.js";
import { get } from "./api.js";
import { follow } from "./live.js";
import { Plot } from "./plot.js";
import { Tiles } from "./tiles.js";
import * as drop from "./drop.js";
import * as explain from "./explain.js";
import * as requests from "./requests.js";
import { showAttention } from "./attention.js";
import { showMostRequested, showRefused, showSources } from "./operations.js";
import { showChanges, showFigures, showReasons } from "./tables.js";

const REASONS_EVERY_MS = 15000;
const SOURCES_EVERY_MS = 5000;
/** After a pause as long as this, the recorded figures are loaded again. */
const PAUSE_MS = 15000;

let history = new History("hour");
const tiles = new Tiles(at("tiles"));
const plot = new Plot(at("plot"));
let last = null;
let changes = -1;
let reasonsAt = -Infinity;
let sourcesAt = -Infinity;

const chosen = () => at("site").value;

/** Loads the recorded figures of the chosen site, and of all sites together if that is another. */
async function load() {
  const into = history;
  for (const site of new Set([ALL, chosen()])) {
    try {
      const of = site === ALL ? "" : `&site=${encodeURIComponent(site)}`;
      const recorded = await get(`/v1/history?span=${into.span}${of}`);
      // Another time was chosen since.
      if (into !== history) return;
      history.load(site, recorded);
      show(recorded);
    } catch {
      // The figures then begin with the first live event, which reports errors as well.
    }
  }
}

function take(event) {
  const paused = last !== null && (event.at_ms < last.at_ms || event.at_ms > last.at_ms + PAUSE_MS);
  history.add(event);
  last = event;
  if (paused) load();
  fitChoice(Object.keys(event.figures.sites ?? {}));
  say(at("runs"), `${event.version}, up ${duration(event.figures.uptime_seconds)}`);
  const reasons = event.not_ready.join(", ");
  state(reasons === "" ? "live" : "unready", reasons === "" ? "Live" : `Not ready: ${reasons}`);
  show();
  if (event.figures.invalidations !== changes) {
    changes = event.figures.invalidations;
    showChanges(chosen());
  }
  if (event.at_ms - reasonsAt > REASONS_EVERY_MS || event.at_ms < reasonsAt) {
    reasonsAt = event.at_ms;
    showReasons();
    showOperations();
    showAttention(chosen());
  }
  if (event.at_ms - sourcesAt > SOURCES_EVERY_MS || event.at_ms < sourcesAt) {
    sourcesAt = event.at_ms;
    showSources(chosen());
  }
}

function showOperations() {
  showMostRequested(chosen());
  const moments = history.moments(chosen());
  if (last !== null) showRefused([moments[0], moments.at(-1)], history.span, last.figures.limits_hit);
}

/** Shows the figures; before the first live event with the number of cores in `recorded`. */
function show(recorded = null) {
  const told = last ?? recorded;
  if (told === null) return;
  tiles.show(history, chosen(), told);
  plot.show(history, chosen(), told.origin_times.bounds_ms);
  if (last === null) return;
  if (at("figures").open) showFigures(chosen() === ALL ? last.figures : last.figures.sites[chosen()]);
}

function state(name, text) {
  at("state").dataset.state = name;
  say(at("state"), text);
}

/** Offers the sites that there are, where there are several. */
function fitChoice(sites) {
  const choice = at("site");
  const there = [...choice.options].map((option) => option.value).join(" ");
  const wanted = [ALL, ...sites];
  at("choice").hidden = sites.length === 0;
  if (there === wanted.join(" ")) return;
  const before = choice.value;
  const option = (site) => el("option", { value: site }, site === ALL ? "all sites" : site);
  choice.replaceChildren(...wanted.map(option));
  choice.value = wanted.includes(before) ? before : ALL;
}

at("site").addEventListener("change", () => {
  show();
  load();
  showChanges(chosen());
  showSources(chosen());
  showOperations();
  showAttention(chosen());
});
at("span").addEventListener("change", (event) => {
  history = new History(event.target.value);
  say(at("now-span"), `and the last ${history.span}`);
  if (last !== null) history.add(last);
  load();
});
at("figures").addEventListener("toggle", () => show());
at("again").addEventListener("click", () => showReasons());
explain.start(chosen);
drop.start(chosen, () => showChanges(chosen()));
requests.start();
await load();
follow(take, (name, text) => state(name, name === "paused" ? text : `${text}: trying again`));
