//! Whether a script may run: by the rules with `php`, and `site.entry_points`.
//!
//! Invariant: no script reaches the origin without passing here: neither one of a route, nor one to which the origin
//! redirects within the site. Not here: which script a path leads to (`origin::routes`).

use delivery::site::Site;
use origin::routes::Script;
use request_values::target::TargetUri;
use site_rules::{Rewrite, ScriptPath, ScriptRefusal};

/// Why the script to which this target leads does not run, if so.
pub(crate) fn refusal(
    site: &Site,
    target: &TargetUri,
    rewrite: Option<&Rewrite>,
    script: &Script,
) -> Option<ScriptRefusal> {
    let of_path = |path: &str| refusal_at(site, (&target.host, path), script);
    let written = || of_path(target.written.as_deref()?);
    of_path(target.path()).or_else(written).or_else(|| of_path(&rewrite?.path))
}

/// The same for a host and a path as it was sent.
pub(crate) fn refusal_at(
    site: &Site,
    (host, path): (&str, &str),
    script: &Script,
) -> Option<ScriptRefusal> {
    let rules = &site.config.rules;
    if !rules.has_script_rules() {
        return None;
    }
    let below = site.root().and_then(|root| script.filename.strip_prefix(&root.files.root).ok());
    let real = below.and_then(|below| below.to_str()).map(|below| format!("/{below}"));
    let script = ScriptPath { name: &script.name, real: real.as_deref() };
    rules.script_refusal(host, path, Some(script))
}
