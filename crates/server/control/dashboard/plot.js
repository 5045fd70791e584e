// The requests for pages over the chosen time: hits, stale, misses, not stored, deferred and errors as one stacked plot, purges as marks
// below it, the times of the origin as percentiles, all over the same axis. The axis is as long as there are figures.
// The same figures are a table for those who do not see the plot.

import { amount, count, el, number, percent, say, svg, table } from "./page.js";
import { below, quantile, results } from "./figures.js";

const [WIDTH, HEIGHT, STRIP] = [600, 100, 16];
const PARTS = 90;
const ROWS = 12;

/** The layers, the lowest first: the name in `results`, and the label. */
const LAYERS = [["hits", "Hits"], ["stale", "Stale"], ["misses", "Misses, stored"], ["others", "Not stored"], ["deferred", "Deferred"], ["errors", "Errors of Pagewell's own"]];
/** The label of a layer: what is not stored in a trial is not expected to be. */
const labelOf = ([name, label]) => (name === "others" && isTrial() ? "Answered by the origin, in a trial" : label);
const isTrial = () => document.body.dataset.trial !== undefined;
/** The percentiles: class, share, label. */
const TIMES = [["median", 0.5, "median"], ["most95", 0.95, "95 %"], ["most99", 0.99, "99 %"]];

export class Plot {
  constructor(place) {
    const box = (name, height, label) =>
      svg("svg", { class: name, viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
    const legend = (items) => el("ul", { class: "legend" }, ...items);
    const line = () => el("div", { class: "scale" }, el("span"), el("span"));
    const key = ([name, label]) => el("li", { class: name }, el("span", {}, label));
    this.layers = LAYERS.map(([name]) => svg("path", { class: name }));
    this.keys = LAYERS.map(key);
    this.purgeKey = key(["purges", "Purges"]);
    this.bars = box("bars", HEIGHT, "Requests for pages: nothing yet");
    this.bars.append(...this.layers);
    this.marks = box("marks", STRIP, "Purges: nothing yet");
    this.ticks = svg("path", { class: "purges" });
    this.marks.append(this.ticks);
    this.lines = TIMES.map(([name]) => svg("path", { class: name }));
    this.times = box("times", HEIGHT, "Times of the origin: nothing yet");
    this.times.append(...this.lines);
    this.timeKeys = TIMES.map(([name, , label]) => key([name, label]));
    [this.top, this.timeTop] = [line(), line()];
    this.axis = el("div", { class: "axis", "aria-hidden": "true" }, el("span"), el("span"), el("span"));
    this.details = el("details", {}, el("summary", {}, "As a table"), el("div"));
    this.details.addEventListener("toggle", () => this.#fillTable());
    place.append(
      legend([...this.keys, this.purgeKey]),
      this.top,
      el("div", { class: "plot" }, this.bars, this.marks),
      legend(this.timeKeys),
      this.timeTop,
      el("div", { class: "plot" }, this.times),
      this.axis,
      this.details,
    );
  }

  /** Shows a site's figures. `bounds` are those of the histogram of times. */
  show(history, site, bounds) {
    this.shown = { history, site, bounds };
    const parts = history.parts(site, PARTS);
    if (parts.length === 0) return;
    const [from, to] = [parts[0][0].at, parts.at(-1)[1].at];
    const x = (at) => (((at - from) / Math.max(1, to - from)) * WIDTH).toFixed(1);
    const all = results(parts[0][0], parts.at(-1)[1], isTrial());
    const begun = clock(history.clock(site, from), history.span);
    const when = `${begun} until now`;
    this.#showBars(parts, x, all, when);
    this.#showMarks(parts, x, when);
    this.#showTimes(parts, x, bounds, when);
    const middle = clock(history.clock(site, (from + to) / 2), history.span);
    [begun, middle, "now"].forEach((text, index) => say(this.axis.children[index], text));
    if (this.details.open) this.#fillTable();
  }

  #showBars(parts, x, all, when) {
    const rates = parts.map(([before, now]) => {
      const seconds = Math.max(0.001, (now.at - before.at) / 1000);
      const of = results(before, now, isTrial());
      return LAYERS.map(([name]) => of[name] / seconds);
    });
    const most = Math.max(...rates.map(sum));
    const y = (value) => (HEIGHT - (value / (most || 1)) * (HEIGHT - 2)).toFixed(1);
    this.layers.forEach((path, layer) => {
      const bar = ([before, now], index) => {
        const below = sum(rates[index].slice(0, layer));
        const above = below + rates[index][layer];
        if (above === below) return "";
        return `M${x(before.at)} ${y(below)}V${y(above)}H${x(now.at)}V${y(below)}Z`;
      };
      path.setAttribute("d", parts.map(bar).join(""));
    });
    const total = sum(Object.values(all));
    const told = LAYERS.map((layer, index) => {
      const [name, label] = [layer[0], labelOf(layer)];
      const share = total > 0 ? ` (${percent(all[name] / total)})` : "";
      const text = `${label} ${count(all[name])}${share}`;
      say(this.keys[index].firstChild, text);
      this.keys[index].hidden = name === "misses" && isTrial();
      return text;
    });
    say(this.top.firstChild, most > 0 ? `at most ${number(most)}/s` : "no requests");
    say(this.top.lastChild, amount(total, "request"));
    this.bars.setAttribute("aria-label", `Requests for pages, ${when}: ${told.join(", ")}`);
  }

  #showMarks(parts, x, when) {
    const purged = parts.map(([before, now]) => Math.max(0, now.dropped - before.dropped));
    const most = Math.max(...purged);
    const mark = (value, index) => {
      if (value === 0) return "";
      const height = 4 + (STRIP - 4) * Math.sqrt(value / most);
      return `M${x((parts[index][0].at + parts[index][1].at) / 2)} 0V${height.toFixed(1)}`;
    };
    this.ticks.setAttribute("d", purged.map(mark).join(""));
    const text = `Purges ${amount(sum(purged), "page")}`;
    say(this.purgeKey.firstChild, text);
    this.marks.setAttribute("aria-label", `${text}, ${when}`);
  }

  #showTimes(parts, x, bounds, when) {
    const values = TIMES.map(([, share]) => parts.map(([before, now]) => quantile(bounds, share)(before, now)));
    const most = Math.max(0, ...values.flat().filter((value) => value !== null));
    const y = (value) => (HEIGHT - 1 - (value / (most || 1)) * (HEIGHT - 4)).toFixed(1);
    values.forEach((line, index) => {
      const step = (value, at) => (value === null ? "" : `M${x(parts[at][0].at)} ${y(value)}H${x(parts[at][1].at)}`);
      const join = (value, at) =>
        value === null || line[at - 1] === null || at === 0 ? "" : `M${x(parts[at][0].at)} ${y(line[at - 1])}V${y(value)}`;
      this.lines[index].setAttribute("d", line.map((value, at) => join(value, at) + step(value, at)).join(""));
    });
    const whole = [parts[0][0], parts.at(-1)[1]];
    const told = TIMES.map(([, share, label], index) => {
      const value = quantile(bounds, share)(...whole);
      const text = `${label} ${below(bounds, value)}`;
      say(this.timeKeys[index].firstChild, text);
      return text;
    });
    say(this.timeTop.firstChild, most > 0 ? `Times of the origin, ${below(bounds, most)}` : "Times of the origin: no requests");
    this.times.setAttribute("aria-label", `Times of the origin, ${when}: ${told.join(", ")}`);
  }

  /** The same figures in a few rows; only while the table is open, and not while it has the focus. */
  #fillTable() {
    const place = this.details.lastChild;
    if (!this.details.open || !this.shown || place.contains(document.activeElement)) return;
    const { history, site, bounds } = this.shown;
    const rows = history.parts(site, ROWS).map(([before, now]) => {
      const of = results(before, now, isTrial());
      const time = (share) => below(bounds, quantile(bounds, share)(before, now));
      return [
        clock(history.clock(site, before.at), history.span), ...LAYERS.map(([name]) => of[name]),
        Math.max(0, now.dropped - before.dropped), ...TIMES.map(([, share]) => time(share)),
      ];
    });
    const headings = ["from", ...LAYERS.map((layer) => labelOf(layer).toLowerCase()), "purged pages", ...TIMES.map(([, , label]) => `${label} of the origin`)];
    place.replaceChildren(table("Requests for pages over time", headings, rows));
  }
}

const sum = (values) => values.reduce((all, value) => all + value, 0);

/** A time of the day, with seconds in the last hour, and with the day in the last week. */
function clock(ms, span) {
  const fine = { hour: "2-digit", minute: "2-digit" };
  const forms = { hour: { ...fine, second: "2-digit" }, day: fine, week: { ...fine, weekday: "short" } };
  return new Date(ms).toLocaleString([], forms[span]);
}
