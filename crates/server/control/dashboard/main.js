// Puts the page together: follows the figures, shows those of the chosen site, and reads the tables anew
// when something has changed.

import { at, duration, el, say } from "./page.js";
import { ALL, History } from "./figures.js";
import { follow } from "./live.js";
import { Tiles } from "./tiles.js";
import * as drop from "./drop.js";
import * as explain from "./explain.js";
import { showChanges, showFigures, showReasons } from "./tables.js";

const REASONS_EVERY_MS = 15000;

const history = new History();
const tiles = new Tiles(at("tiles"));
let last = null;
let changes = -1;
let reasonsAt = -Infinity;

const chosen = () => at("site").value;

function take(event) {
  history.add(event);
  last = event;
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
  }
}

function show() {
  if (last === null) return;
  tiles.show(history, chosen(), last);
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
  showChanges(chosen());
});
at("figures").addEventListener("toggle", show);
at("again").addEventListener("click", () => showReasons());
explain.start(chosen);
drop.start(chosen, () => showChanges(chosen()));
follow(take, (name, text) => state(name, name === "paused" ? text : `${text}: trying again`));
