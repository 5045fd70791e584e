// What needs attention: the problems of this moment, each with its remedy and for how long it has lasted. It is the
// list of `pagewell status`. Below it, what to do next after the first start, as far as it has not been done.

import { at, duration, el, prose } from "./page.js";
import { get } from "./api.js";
import { showProof } from "./proof.js";

let shown = "";

/** Shows the problems, or that there are none. What has not changed is not shown again, so that a screen reader
 * reads each problem once. The trial and the audit of the chosen site are in the same answer. */
export async function showAttention(site) {
  const answer = await get("/v1/status").catch((error) => ({ error: error.message }));
  showProof(answer, site);
  const parts = answer.error ? [el("p", {}, `It is not known: ${answer.error}`)] : problems(answer);
  const text = JSON.stringify([answer.summary, answer.findings?.map((one) => [one.name, one.subject, lasting(one)]) ?? answer, answer.next]);
  if (text === shown) return;
  shown = text;
  at("attention").dataset.well = String(answer.well === true);
  at("attention").replaceChildren(...parts);
  const steps = (answer.next ?? []).map((one) => el("li", {}, el("strong", {}, prose(one.what)), " ", prose(one.how)));
  at("next").hidden = steps.length === 0;
  at("next").replaceChildren(el("h3", {}, "What to do next"), el("ol", { class: "steps" }, ...steps));
}

/** A trial is listed, too, and is no problem. */
function problems({ summary, findings }) {
  const item = (one) =>
    el("li", {}, el("p", {}, el("strong", {}, named(one)), ` (for ${lasting(one)})`), el("p", {}, one.remedy));
  const parts = summary ? [el("p", { class: "well" }, summary)] : [];
  if (findings.length > 0) parts.push(el("ul", { class: "attention" }, ...findings.map(item)));
  return parts;
}

/** Of a trial the first sentence: its report is below. */
const named = ({ name, what }) => (name === "trial-running" ? what.replace(/\. .*/s, ".") : what);

const lasting = ({ lasting_seconds: seconds }) => (seconds < 60 ? "less than a minute" : duration(seconds - (seconds % 60)));
