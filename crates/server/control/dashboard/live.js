// The stream of figures: server-sent events, read by fetch, for an EventSource cannot send a token. It is
// taken up again when it breaks, and given up while nobody looks at the page.

import { call } from "./api.js";

const AGAIN_MS = 2000;
const UNSEEN_MS = 60000;
const EVENT_CHARACTERS_MAX = 8 << 20;

/** Hands each event to `each`, for ever; `told` hears whether the stream is there, and why not. */
export async function follow(each, told) {
  for (;;) {
    const stream = new AbortController();
    const unwatch = giveUpUnseen(stream);
    try {
      const answer = await call("/v1/live", { signal: stream.signal });
      for await (const event of events(answer.body)) each(event);
      told("lost", "Pagewell has ended the stream");
    } catch (error) {
      if (stream.signal.aborted) told("paused", "Paused");
      else told("lost", error.status ? error.message : "Pagewell does not answer");
    }
    unwatch();
    await pause();
  }
}

/** The events of a stream, one after the other. */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const ended = text.split("\n\n");
    text = ended.pop();
    for (const event of ended) {
      const lines = event.split("\n").filter((line) => line.startsWith("data: "));
      if (lines.length > 0) yield JSON.parse(lines.map((line) => line.slice(6)).join("\n"));
    }
    if (text.length > EVENT_CHARACTERS_MAX) throw new Error("an event has no end");
  }
}

/** Aborts a stream when nobody has looked at the page for a while, until the returned function is called. */
export function giveUpUnseen(stream) {
  let timer = 0;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => stream.abort(), UNSEEN_MS);
  };
  document.addEventListener("visibilitychange", look);
  look();
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

/** A moment; if nobody looks, until somebody does. */
function pause() {
  return new Promise((done) => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      setTimeout(done, AGAIN_MS);
    };
    document.addEventListener("visibilitychange", look);
    look();
  });
}
