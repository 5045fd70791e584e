// Dropping and marking pages, each time after a question, and with what came of it.

import { at, count, say } from "./page.js";
import { open, post } from "./api.js";

/** For each kind: what its name is called, an example, and how it is asked about. */
const KINDS = {
  tags: ["Tag", "news:4", (name) => `every page made from ${name}`],
  urls: ["URL or path", "/news/4/", (name) => `the page at ${name}, in all its variants`],
  prefixes: ["Path", "/news/", (name) => `every page at or below ${name}`],
  all: ["", "", () => "every page"],
};

let chosen = () => "";
let after = () => {};

/** Answers the form; `site` says which site is chosen, `done` is told when something was dropped. */
export function start(site, done) {
  [chosen, after] = [site, done];
  at("kind").addEventListener("change", fit);
  at("drop").addEventListener("submit", (event) => {
    event.preventDefault();
    dropBy(at("kind").value, at("name").value.trim());
  });
  fit();
}

/** Asks, and drops. */
export async function dropBy(kind, name) {
  if (name === "" && kind !== "all") return;
  const [soft, site] = [at("soft").checked, chosen()];
  const where = site === "" ? "" : ` of ${site}`;
  const verb = soft ? "Mark" : "Drop";
  say(at("confirm-title"), `${verb} pages?`);
  say(at("confirm-text"), `${verb} ${KINDS[kind][2](name)}${where}. ${consequence(soft)}`);
  say(at("confirm-yes"), verb);
  if ((await open(at("confirm"))) !== "yes") return;
  const what = { ...(kind === "all" ? { all: true } : { [kind]: [name] }), ...(site === "" ? {} : { site }) };
  try {
    const done = await post("/v1/invalidate", soft ? { ...what, soft } : what);
    const many = soft ? done.marked : done.dropped;
    tell(`${soft ? "Marked" : "Dropped"} ${count(many)} ${many === 1 ? "page" : "pages"} (change ${done.number}).`);
    after();
  } catch (error) {
    tell(`Nothing was dropped: ${error.message}`);
  }
}

const consequence = (soft) =>
  soft ? "They are used as stale ones only, where they allow that." : "They are rendered anew when they are asked for.";

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
