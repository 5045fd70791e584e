// Calls the control interface. Where it asks for a token, the page asks for it and keeps it for as long
// as the tab is open (sessionStorage), nowhere else.

import { at, say } from "./page.js";

const KEPT = "pagewell-token";
let asking = null;

/** Why a call was not carried out: its name, and a sentence. */
export class Refused extends Error {
  constructor(status, told) {
    super(told.explanation ?? `the answer is ${status}`);
    this.status = status;
    this.name = told.error ?? "refused";
  }
}

/** The answer to a call; asks for the token where it is wanted. */
export async function call(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(KEPT);
    const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const answer = await sent(path, { cache: "no-store", ...options, headers });
    if (answer.ok) return answer;
    const told = await answer.json().catch(() => ({}));
    if (answer.status !== 401) throw new Refused(answer.status, told);
    // Somebody else may have given it meanwhile.
    if (sessionStorage.getItem(KEPT) === token) await ask(token !== null);
  }
}

/** The answer to a request. The browser's own message for a failed connection is of no use. */
async function sent(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new Error(`nothing answers at ${location.host}. Is Pagewell running?`);
  }
}

export async function get(path) {
  return (await call(path)).json();
}

export async function post(path, what) {
  const headers = { "Content-Type": "application/json" };
  return (await call(path, { method: "POST", headers, body: JSON.stringify(what) })).json();
}

/** Opens a dialog, and is done when it is closed: with the value of the button that closed it. */
export function open(dialog) {
  return new Promise((done) => {
    dialog.returnValue = "";
    dialog.addEventListener("close", () => done(dialog.returnValue), { once: true });
    dialog.showModal();
  });
}

/** Asks for the token, once however many calls want it. */
function ask(wasWrong) {
  asking ??= (async () => {
    say(at("ask-wrong"), wasWrong ? "That token was refused." : "");
    let given = "";
    while (given === "") {
      at("token").value = "";
      await open(at("ask"));
      given = at("token").value.trim();
    }
    at("token").value = "";
    // What is no header value would only make the call fail.
    sessionStorage.setItem(KEPT, given.replace(/[^\x21-\x7e]/g, ""));
    asking = null;
  })();
  return asking;
}
