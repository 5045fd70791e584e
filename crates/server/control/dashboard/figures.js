// The figures of the last hour, day or week, for each site, and values from two moments of it: rates, shares, times.
// A figure that cannot be known yet is null. The server has recorded moments; live events add one a second. Of
// those, all are kept for a minute, and then about as many as of the recorded ones.

import { milliseconds } from "./page.js";

const FINE_MS = 60000;
const STEP_MS = 10000;
/** About so many moments are kept. */
const MOMENTS = 360;

/** The times that can be chosen, each with its length. */
export const SPANS = { hour: 3600000, day: 86400000, week: 604800000 };

/** The figures that charts are made of; the others are shown as they are. */
const KEPT = [
  "requests", "files", "hits", "stale_hits", "private_hits", "collapsed", "renders", "followers",
  "origin_places_taken", "origin_queue", "origin_failures", "origin_errors", "stored", "not_stored", "memory_short",
  "invalidations", "dropped", "database_lag_us", "database_changes", "connections", "connections_accepted", "pages",
  "memory_bytes", "memory_budget_bytes", "evicted", "process_cpu_us", "process_resident_bytes",
  "own_errors", "denied", "rate_limited", "renders_limited", "passwords_refused", "misses_deferred", "misses_deferred_stale",
  "rejected", "purges_refused", "handshakes_failed", "proxies_refused", "memcached_refused",
];

/** All sites together. */
export const ALL = "";

export class History {
  #bySite = new Map();
  /** Moments further apart than this have a gap between them, for example because the tab was asleep. */
  #gapMs = 3 * STEP_MS;

  constructor(span) {
    this.span = span;
  }

  /** Takes the recorded figures of a site in. Moments of live events that are newer stay. */
  load(site, recorded) {
    const { at_ms: times, figures, origin_times: origin } = recorded;
    this.#gapMs = 3 * recorded.step_ms;
    const moments = times.map((at, index) => ({
      at,
      ...Object.fromEntries(KEPT.map((name) => [name, figures[name]?.[index] ?? 0])),
      counts: origin.counts[index],
      sum_us: origin.sum_us[index],
    }));
    const newer = this.moments(site).filter((one) => one.at > (times.at(-1) ?? 0));
    this.#bySite.set(site, [...moments, ...newer]);
  }

  /** Takes an event in. */
  add(event) {
    // What counts from zero again is another process.
    if (this.last(ALL)?.at > event.at_ms) this.#bySite.clear();
    const { sites = {}, ...all } = event.figures;
    this.#one(ALL, event, all, event.origin_times);
    for (const [site, figures] of Object.entries(sites)) {
      if (site === ALL) continue;
      const process = { process_cpu_us: all.process_cpu_us, process_resident_bytes: all.process_resident_bytes };
      this.#one(site, event, { ...figures, ...process }, event.origin_times.sites?.[site]);
    }
  }

  #one(site, event, figures, times) {
    const moments = this.#bySite.get(site) ?? [];
    const kept = Object.fromEntries(KEPT.map((name) => [name, figures[name] ?? 0]));
    moments.push({ at: event.at_ms, ...kept, counts: times?.counts ?? [], sum_us: times?.sum_us ?? 0 });
    while (moments[0].at < event.at_ms - SPANS[this.span]) moments.shift();
    thin(moments, event.at_ms - FINE_MS, Math.max(STEP_MS, (event.at_ms - moments[0].at) / MOMENTS));
    this.#bySite.set(site, moments);
  }

  moments(site) {
    return this.#bySite.get(site) ?? [];
  }

  last(site) {
    return this.moments(site).at(-1);
  }

  /** The time of a moment by the clock of the browser, in milliseconds since 1970. */
  clock(site, at) {
    return Date.now() - (this.last(site).at - at);
  }

  /** A value for each moment, made of it and of the one so long before it; null where there is none. */
  series(site, seconds, value) {
    const moments = this.moments(site);
    let first = 0;
    return moments.map((now, index) => {
      if (index > 0 && now.at - moments[index - 1].at > this.#gapMs) return [now.at, null];
      while (first < index - 1 && moments[first + 1].at <= now.at - seconds * 1000 + 250) first += 1;
      const before = moments[first];
      return [now.at, index > 0 && now.at > before.at ? value(before, now) : null];
    });
  }

  /** The newest value of such a series. */
  now(site, seconds, value) {
    const moments = this.moments(site);
    const now = moments.at(-1);
    const before = moments.findLast((one) => one.at <= now?.at - seconds * 1000 + 250) ?? moments[0];
    return now && before && before.at < now.at ? value(before, now) : null;
  }

  /** Parts of the time, at most about `most`, each as its first and its last moment. Gaps belong to none. */
  parts(site, most) {
    const moments = this.moments(site);
    if (moments.length < 2) return [];
    const least = (moments.at(-1).at - moments[0].at) / most;
    const parts = [];
    let before = moments[0];
    for (const [index, now] of moments.entries()) {
      const last = moments[index - 1];
      if (last && now.at - last.at > this.#gapMs) {
        if (last !== before) parts.push([before, last]);
        before = now;
      } else if (now.at - before.at >= least) {
        parts.push([before, now]);
        before = now;
      }
    }
    const end = moments.at(-1);
    // What is left at the end is too short for a rate of its own.
    if (end !== before && parts.at(-1)?.[1] === before) parts.at(-1)[1] = end;
    else if (end !== before) parts.push([before, end]);
    return parts;
  }
}

/** Removes moments before `until` that follow another one within `stepMs`. */
function thin(moments, until, stepMs) {
  let index = moments.findIndex((one) => one.at > until) - 1;
  while (index > 0 && moments[index].at - moments[index - 1].at < stepMs - 250) {
    moments.splice(index, 1);
    index -= 1;
  }
}

/** The requests for pages between two moments, by their result. Each is counted once, when it has its response. In a
 * trial, no response to a visitor is stored. */
export function results(before, now, isTrial) {
  const more = (name) => Math.max(0, now[name] - before[name]);
  const waiting = (moment) => moment.origin_places_taken + moment.origin_queue + moment.followers;
  let left = Math.max(0, more("requests") - more("files") - (waiting(now) - waiting(before)));
  const take = (value) => {
    const taken = Math.min(left, value);
    left -= taken;
    return taken;
  };
  const hits = take(more("hits") + more("private_hits") + more("collapsed"));
  const stale = take(more("stale_hits"));
  const own = more("own_errors");
  // The others that were deferred have got an expired page.
  const deferred = take(Math.min(own, Math.max(0, more("misses_deferred") - more("misses_deferred_stale"))));
  const errors = take(own - deferred);
  const refused = take(more("not_stored"));
  // The last but one, because pages are stored in the background, too.
  const misses = take(isTrial ? 0 : more("stored"));
  return { hits, stale, misses, deferred, errors, others: refused + left };
}

/** So many of a figure a second. */
export const rate = (name) => (before, now) => ((now[name] - before[name]) * 1000) / (now.at - before.at);

/** How many of the requests for pages did not need a render of their own. */
export function hitShare(before, now) {
  const more = (name) => now[name] - before[name];
  const asked = more("requests") - more("files");
  const answered = more("hits") + more("stale_hits") + more("private_hits") + more("collapsed");
  return asked > 0 ? Math.max(0, Math.min(1, answered / asked)) : null;
}

/** How long the origin took on average, in milliseconds. */
export function meanTime(before, now) {
  const answers = sum(now.counts) - sum(before.counts);
  return answers > 0 ? (now.sum_us - before.sum_us) / 1000 / answers : null;
}

/** The least of the bounds, in milliseconds, within which this share of the origin's answers came; one more than the last
 * bound for times beyond it. The answers are counted between the bounds, so no time between two is known. */
export const quantile = (bounds, share) => (before, now) => {
  const counts = now.counts.map((value, index) => value - (before.counts[index] ?? 0));
  let left = sum(counts) * share;
  if (left <= 0) return null;
  for (const [index, inside] of counts.entries()) {
    if (left <= inside) return bounds[index] ?? bounds.at(-1) + 1;
    left -= inside;
  }
  return null;
};

/** Such a time in words. */
export function below(bounds, time) {
  if (time === null) return "–";
  const last = bounds.at(-1);
  return time > last ? `over ${milliseconds(last)}` : `below ${milliseconds(time)}`;
}

const sum = (values) => values.reduce((all, value) => all + value, 0);
