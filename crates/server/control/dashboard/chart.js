// A line over the time of which there are figures, as SVG. It has a sentence for those who do not see it, which is
// read when somebody comes to it, and never by itself.

import { duration, svg } from "./page.js";

const [WIDTH, HEIGHT] = [300, 56];

export class Chart {
  constructor(name) {
    this.name = name;
    this.area = svg("path", { class: "area" });
    this.line = svg("path", { class: "line" });
    const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" };
    this.element = svg("svg", box, this.area, this.line);
  }

  /** Draws `[milliseconds, value]`, the newest last; `top` is the least height of the scale. Returns the
   * most there is. */
  draw(points, top, shown) {
    const known = points.filter(([, value]) => value !== null);
    const most = Math.max(0, ...known.map(([, value]) => value));
    const scale = Math.max(most, top) || 1;
    const end = points.at(-1)?.[0] ?? 0;
    const span = Math.max(1, end - (points[0]?.[0] ?? end));
    const place = ([ms, value]) => {
      const x = WIDTH - ((end - ms) / span) * WIDTH;
      return [x.toFixed(1), (HEIGHT - 2 - (value / scale) * (HEIGHT - 5)).toFixed(1)];
    };
    const runs = split(points).map((run) => run.map(place));
    const path = (run) => `M${run.map((point) => point.join(" ")).join("L")}`;
    const floor = (run) => `${path(run)}L${run.at(-1)[0]} ${HEIGHT}L${run[0][0]} ${HEIGHT}Z`;
    this.line.setAttribute("d", runs.map(path).join(""));
    this.area.setAttribute("d", runs.map(floor).join(""));
    const now = known.length > 0 ? `now ${shown(known.at(-1)[1])}, at most ${shown(most)}` : "nothing yet";
    this.element.setAttribute("aria-label", `${this.name}, the last ${duration(span / 1000)}: ${now}`);
    return most;
  }
}

/** What is not known parts a line. */
function split(points) {
  const runs = [[]];
  for (const point of points) {
    if (point[1] !== null) runs.at(-1).push(point);
    else if (runs.at(-1).length > 0) runs.push([]);
  }
  return runs.filter((run) => run.length > 0);
}
