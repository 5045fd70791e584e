// Purges pages or marks them stale, after a confirmation, and shows the result.

import { amount, at, say } from "./page.js";
import { open, post } from "./api.js";

/** For each kind: the label of its name, an example, the text of the confirmation, and what no page has
 * if none was purged. */
const KINDS = {
  tags: ["Tag", "news:4", (name) => `every page with the tag ${name}`, "has this tag"],
  urls: ["URL or path", "/news/4/", (name) => `the page at ${name}, in all its variants`, "has this path and query"],
  prefixes: ["Path", "/news/", (name) => `every page at or below ${name}`, "is below this path"],
  all: ["", "", () => "every page"],
};

let chosen = () => "";
let after = () => {};

/** Answers the form; `site` returns the chosen site, `done` is called after a purge. */
export function start(site, done) {
  [chosen, after] = [site, done];
  at("kind").addEventListener("change", fit);
  at("drop").addEventListener("submit", (event) => {
    event.preventDefault();
    dropBy(at("kind").value, at("name").value.trim());
  });
  fit();
}

/** Asks for confirmation, and purges. */
export async function dropBy(kind, name) {
  if (name === "" && kind !== "all") return;
  const [soft, site] = [at("soft").checked, chosen()];
  const where = site === "" ? "" : ` of ${site}`;
  const verb = soft ? "Mark" : "Purge";
  say(at("confirm-title"), `${verb} pages?`);
  say(at("confirm-text"), `${verb} ${KINDS[kind][2](name)}${where}. ${consequence(soft)}`);
  say(at("confirm-yes"), verb);
  if ((await open(at("confirm"))) !== "yes") return;
  const what = { ...(kind === "all" ? { all: true } : { [kind]: [name] }), ...(site === "" ? {} : { site }) };
  try {
    const done = await post("/v1/invalidate", soft ? { ...what, soft } : what);
    const many = soft ? done.marked : done.dropped;
    tell(`${soft ? "Marked" : "Purged"} ${amount(many, "page")} (invalidation ${done.number}).${many > 0 || kind === "all" ? "" : ` No stored page ${KINDS[kind][3]}.`}`);
    after();
  } catch (error) {
    tell(`No page was purged: ${error.message}`);
  }
}

const consequence = (soft) =>
  soft ? "They are served stale if they allow it, while they are refreshed." : "Their next request is sent to the origin.";

function tell(text) {
  say(at("dropped"), text);
  at("dropped").scrollIntoView({ block: "nearest" });
}

/** Makes the field fit what is chosen. */
function fit() {
  const [label, example] = KINDS[at("kind").value];
  const field = at("name");
  field.hidden = field.disabled = label === "";
  field.setAttribute("aria-label", label || "Name");
  field.placeholder = example;
}
