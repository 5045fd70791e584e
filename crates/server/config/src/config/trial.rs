//! `mode = "trial"` and `[trial]`: visitors get the origin's answers only, while Pagewell compares them with the pages
//! that it would have sent.
//!
//! Not here: the step of a request (`exchange::steps`), and the comparison (the crate `audit`).

use super::raw;
use super::resolve::LoadError;
use site_rules::plain_path;

/// The share of all visitors, in hundredths of a percent.
pub const ALL_VISITORS: u32 = 10_000;
/// Paths that `never` can name: each is compared for each page that is rendered.
const NEVER_MAX: usize = 100;
/// Differences that `accept` can name.
const ACCEPTED_MAX: usize = 100;

/// The settings of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The share of visitors that get hits all the same, in hundredths of a percent.
    pub serve: u32,
    /// The share of the origin's places that renders for comparison may use, in percent; `None`: the default.
    pub budget: Option<u32>,
    /// The accepted differences: the name of the class and the pattern of the paths.
    pub accepted: Vec<(String, String)>,
}

/// `trial.never`: paths that are never requested for a comparison, of a trial and of an audit; an asterisk at the end
/// stands for anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnrequestedPaths(Vec<String>);

impl UnrequestedPaths {
    /// Whether this path of a request is one of them, in any spelling that an application reads as such.
    pub fn has(&self, path: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let path = plain_path(path);
        self.0.iter().any(|named| match named.strip_suffix('*') {
            Some(begin) => path.starts_with(&plain_path(begin)),
            None => path == plain_path(named),
        })
    }
}

/// Returns the paths of `trial.never`, which also count without a trial. They are checked by [`resolve`].
pub(super) fn unrequested(keys: &raw::TrialKeys) -> UnrequestedPaths {
    UnrequestedPaths(keys.never.clone())
}

/// Checks `mode` and `[trial]`; `None` if the site is not in a trial.
pub(super) fn resolve(
    mode: Option<&str>,
    keys: &raw::TrialKeys,
) -> Result<Option<Trial>, LoadError> {
    let wrong = |key: &str, text: &str, wanted: &str| {
        Err(LoadError(format!("{key}: {text:?} must be {wanted}")))
    };
    let is_on = match mode {
        None | Some("serve") => false,
        Some("trial") => true,
        Some(other) => return wrong("mode", other, "serve or trial"),
    };
    let serve = keys.serve.as_deref().unwrap_or("0%");
    let Some(share) = percent(serve).filter(|share| *share <= ALL_VISITORS) else {
        return wrong("trial.serve", serve, "a share of the visitors, \"0%\" to \"100%\"");
    };
    let budget = match keys.budget.as_deref() {
        None => None,
        Some(text) => match percent(text).map(|share| share / 100) {
            Some(budget @ 1..=100) => Some(budget),
            _ => return wrong("trial.budget", text, "a share of the places, \"1%\" to \"100%\""),
        },
    };
    if let Some(path) = keys.never.iter().find(|path| !path.starts_with('/')) {
        return wrong("trial.never", path, "a path, such as \"/cart*\"");
    }
    if keys.never.len() > NEVER_MAX || keys.accept.len() > ACCEPTED_MAX {
        return Err(LoadError("trial: at most 100 paths in never, and 100 in accept".into()));
    }
    let mut accepted = Vec::new();
    for text in &keys.accept {
        match text.split_once(' ') {
            Some((class, path)) if path.starts_with('/') => {
                accepted.push((class.to_owned(), path.to_owned()));
            }
            _ => return wrong("trial.accept", text, "a class and a path: \"random /news/*\""),
        }
    }
    Ok(is_on.then_some(Trial { serve: share, budget, accepted }))
}

/// Reads a share such as `0.5%`, in hundredths of a percent.
fn percent(text: &str) -> Option<u32> {
    let number: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    (0.0..=100.0).contains(&number).then(|| (number * 100.0).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> raw::TrialKeys {
        toml::from_str(text).expect("keys")
    }

    #[test]
    fn a_trial_is_a_mode_with_shares() {
        let read = |mode, text| resolve(mode, &keys(text)).map_err(|error| error.0);
        assert_eq!(read(None, "serve = \"5%\"").unwrap(), None);
        assert_eq!(read(Some("serve"), "").unwrap(), None);
        let trial = read(
            Some("trial"),
            "serve = \"0.5%\"\nbudget = \"100%\"\naccept = [\"random /a/*\"]\nnever = [\"/cart*\", \"/b\"]",
        );
        let trial = trial.unwrap().expect("it is on");
        assert_eq!((trial.serve, trial.budget), (50, Some(100)));
        assert_eq!(trial.accepted, [("random".into(), "/a/*".into())]);
    }

    #[test]
    fn an_unrequested_path_is_found_in_any_spelling() {
        let never = unrequested(&keys("never = [\"/cart*\", \"/b\", \"/caf%C3%A9/*\"]"));
        for path in ["/cart/7", "/b", "/c%61rt/7", "//cart", "/x/../b", "/%62", "/caf\u{e9}/1"] {
            assert!(never.has(path), "{path}");
        }
        assert!(!never.has("/b/c") && !never.has("/") && !never.has("/x%2Fb"));
        assert!(!UnrequestedPaths::default().has("/"));
    }

    #[test]
    fn a_wrong_share_is_named_with_its_key() {
        for (text, key) in [
            ("serve = \"101%\"", "trial.serve"),
            ("serve = \"5\"", "trial.serve"),
            ("serve = \"NaN%\"", "trial.serve"),
            ("budget = \"0%\"", "trial.budget"),
            ("never = [\"cart\"]", "trial.never"),
            ("accept = [\"/news\"]", "trial.accept"),
        ] {
            let error = resolve(Some("trial"), &keys(text)).expect_err(text).0;
            assert!(error.starts_with(key), "{error}");
        }
        assert!(resolve(Some("on"), &keys("")).expect_err("a mode").0.starts_with("mode: "));
    }
}
