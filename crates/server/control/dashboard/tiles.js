// The tiles: a large figure, its chart, and small lines about it.

import { amount, bytes, count, el, milliseconds, number, percent, say } from "./page.js";
import { Chart } from "./chart.js";
import { SPANS, below, hitShare, meanTime, quantile, rate } from "./figures.js";

const perSecond = (value) => `${number(value)}/s`;
const cores = (before, now) => rate("process_cpu_us")(before, now) / 1e6;
const level = (name) => (before, now) => now[name];

/** Each: its name, the seconds a value is made over, the value, how it is shown, the least height of its
 * scale, and the small lines; for a site under trial other lines, beside the value of the trial. */
const TILES = [
  {
    name: "Requests", seconds: 2, value: rate("requests"), shown: perSecond,
    notes: ({ now }) => [`${count(now.requests)} since the start`, `${count(now.files)} of them for files`],
  },
  {
    name: "Hit ratio", seconds: 10, value: hitShare, shown: percent, top: 1, trial: ["would-be, at least, by the trial", "visitors get the origin's answers"],
    notes: ({ now, recent }) => [
      `${amount(now.hits + now.private_hits + now.collapsed, "hit")}, ${count(now.stale_hits)} stale`,
      `${perSecond(recent(60, rate("not_stored")) ?? 0)} not stored`,
    ],
  },
  {
    name: "CPU", seconds: 3, value: cores, shown: (value) => percent(value), top: 0.02,
    notes: ({ event }) => [`of one core (of ${event.cores})`, "Pagewell alone, without PHP"],
  },
  {
    name: "Memory", seconds: 1, value: level("memory_bytes"), shown: bytes,
    meter: ({ now }) => [now.memory_bytes, now.memory_budget_bytes],
    notes: ({ now }) => [
      `${amount(now.pages, "page")}; budget ${bytes(now.memory_budget_bytes)}`,
      `${bytes(now.process_resident_bytes)} resident in all`,
    ],
  },
  {
    name: "Renders", seconds: 2, value: rate("renders"), shown: perSecond,
    notes: ({ now }) => [
      `${count(now.origin_places_taken)} at the origin, ${count(now.origin_queue)} queued`,
      `${count(now.followers)} wait for another request's response`,
    ],
  },
  {
    name: "Origin", seconds: 10, value: meanTime, shown: milliseconds,
    notes: ({ event, now, recent }) => {
      const bounds = event.origin_times.bounds_ms;
      const within = (share) => below(bounds, recent(60, quantile(bounds, share)));
      return [`median ${within(0.5)}, 95 % ${within(0.95)}`, amount(now.origin_failures, "failure")];
    },
  },
  {
    name: "Changes", seconds: 10, value: rate("invalidations"), shown: perSecond,
    notes: ({ now, recent }) => [
      `${perSecond(recent(60, rate("dropped")) ?? 0)} pages purged`,
      now.database_changes > 0 || now.database_lag_us > 0
        ? `database lag ${milliseconds(now.database_lag_us / 1000)}`
        : `${count(now.invalidations)} since the start`,
    ],
  },
  {
    name: "Connections", seconds: 1, value: level("connections"), shown: number, door: true,
    notes: ({ recent }) => [`${perSecond(recent(10, rate("connections_accepted")) ?? 0)} new`],
  },
];

export class Tiles {
  constructor(place) {
    this.tiles = TILES.map((tile) => {
      const [value, most, meter] = [el("p", { class: "value" }, "–"), el("span", { class: "most" }), el("meter")];
      const [notes, chart] = [[el("li"), el("li")], new Chart(tile.name)];
      meter.hidden = !tile.meter;
      meter.setAttribute("aria-label", "Pages, of their budget");
      place.append(
        el(
          "article",
          { class: "tile", "data-tile": tile.name },
          el("h3", {}, tile.name), value, meter,
          el("div", { class: "chart" }, most, chart.element),
          el("ul", {}, ...notes),
        ),
      );
      return { ...tile, value_place: value, most, meter_place: meter, note_places: notes, chart };
    });
  }

  /** Shows a site's. */
  show(history, site, event) {
    for (const tile of this.tiles) {
      // Connections are counted where they come in, which is the same for all sites.
      const from = tile.door ? "" : site;
      const now = history.last(from);
      if (!now) continue;
      const points = history.series(from, tile.seconds, tile.value);
      const value = points.at(-1)[1];
      // Without events in the last seconds, a share or a mean is that of the whole time.
      const shown = value ?? history.now(from, SPANS[history.span] / 1000, tile.value);
      const trial = tile.trial ? document.body.dataset.trial : undefined;
      say(tile.value_place, trial ?? (shown === null ? "–" : tile.shown(shown)));
      tile.value_place.classList.toggle("spanned", trial === undefined && value === null && shown !== null);
      tile.value_place.dataset.span = history.span;
      const most = tile.chart.draw(points, tile.top ?? 0, tile.shown);
      say(tile.most, most > 0 ? `at most ${tile.shown(most)}` : "");
      const recent = (seconds, of) => history.now(from, seconds, of);
      const notes = trial === undefined ? tile.notes({ event, now, recent }) : tile.trial;
      tile.note_places.forEach((place, index) => say(place, notes[index] ?? ""));
      if (tile.meter) {
        const [held, budget] = tile.meter({ now });
        tile.meter_place.max = budget;
        tile.meter_place.value = held;
      }
    }
  }
}
