//! `mode = "trial"` and `[trial]`: visitors get the origin's answers only, while Pagewell compares them with the pages
//! that it would have sent.
//!
//! Not here: the step of a request (`exchange::steps`), and the comparison (the crate `audit`).

use super::raw;
use super::resolve::LoadError;
use page_comparison::{AcceptedDifference, DifferenceClass};
use rule_conditions::{PathGlob, plain_path};

/// The share of all visitors, in hundredths of a percent.
pub const ALL_VISITORS: u32 = 10_000;
/// Paths that `never` can name: each is compared for each page that is rendered.
const NEVER_MAX: usize = 100;
/// The values of `budget`.
const BUDGET_WANTED: &str =
    "a share of the time of the origin's connections, \"1%\" to \"100%\", such as \"50%\"";
/// Differences that `accept` can name.
const ACCEPTED_MAX: usize = 100;

/// The settings of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The share of visitors that get hits all the same, in hundredths of a percent.
    pub serve: u32,
    /// The share of the origin's places that renders for comparison may use, in percent; `None`: the default.
    pub budget: Option<u32>,
    /// The differences that are no problem, by the operator's word.
    pub accepted: Vec<AcceptedDifference>,
}

/// `trial.never`: patterns of paths that are never requested for a comparison, of a trial and of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnrequestedPaths(Vec<PathGlob>);

impl UnrequestedPaths {
    /// Whether this path of a request is one of them, in any spelling that an application reads as such.
    pub fn has(&self, path: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let path = plain_path(path);
        self.0.iter().any(|named| named.fits(&path))
    }
}

/// Returns the paths of `trial.never`, which also count without a trial.
pub(super) fn unrequested(keys: &raw::TrialKeys) -> Result<UnrequestedPaths, LoadError> {
    if keys.never.len() > NEVER_MAX {
        return Err(LoadError(format!("trial.never: at most {NEVER_MAX} paths")));
    }
    let read = |path: &String| {
        // A pattern is compared with decoded paths.
        let plain = plain_path(path);
        match str::from_utf8(&plain) {
            Ok(plain) if path.starts_with('/') => pattern("trial.never", plain),
            _ => wrong("trial.never", path, "a path, such as \"/cart/**\""),
        }
    };
    keys.never.iter().map(read).collect::<Result<_, _>>().map(UnrequestedPaths)
}

/// Reads a pattern of paths.
fn pattern(key: &str, path: &str) -> Result<PathGlob, LoadError> {
    PathGlob::read(path).map_err(|why| LoadError(format!("{key}: {why}")))
}

fn wrong<T>(key: &str, text: &str, wanted: &str) -> Result<T, LoadError> {
    Err(LoadError(format!("{key}: {text:?} must be {wanted}")))
}

/// Checks `mode` and `[trial]`; `None` if the site is not in a trial.
pub(super) fn resolve(
    mode: Option<&str>,
    keys: &raw::TrialKeys,
) -> Result<Option<Trial>, LoadError> {
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
            _ => return wrong("trial.budget", text, BUDGET_WANTED),
        },
    };
    if keys.accept.len() > ACCEPTED_MAX {
        return Err(LoadError(format!("trial.accept: at most {ACCEPTED_MAX} differences")));
    }
    let mut accepted = Vec::new();
    for text in &keys.accept {
        let Some((class, path)) = text.split_once(' ').filter(|(_, path)| path.starts_with('/'))
        else {
            return wrong("trial.accept", text, "a class and a path: \"random /news/**\"");
        };
        let Some(class) = DifferenceClass::of_name(class) else {
            let names = DifferenceClass::ALL.map(DifferenceClass::name).join(", ");
            return wrong("trial.accept", class, &format!("one of the classes: {names}"));
        };
        accepted.push(AcceptedDifference { class, pattern: pattern("trial.accept", path)? });
    }
    Ok(is_on.then_some(Trial { serve: share, budget, accepted }))
}

/// Returns a warning for each key of the file that has no effect because its site is not in a trial. Those of
/// `trial.never` also count for the audit, and those of `trial.accept` for the next trial.
pub fn shares_without_trial(file: &raw::File) -> Vec<String> {
    let site = &file.site;
    let sites = if site.list.is_empty() { std::slice::from_ref(site) } else { &site.list[..] };
    let is_in_trial = |site: &raw::Site| {
        site.mode.as_ref().or(file.mode.as_ref()).is_some_and(|mode| mode == "trial")
    };
    let of_all = (!sites.iter().any(is_in_trial)).then_some((None, &file.trial));
    let own = sites.iter().filter(|site| !is_in_trial(site));
    let own = own.filter_map(|site| Some((site.host.as_ref(), site.trial.as_ref()?)));
    let mut warnings = Vec::new();
    for (host, keys) in of_all.into_iter().chain(own) {
        let of = host.map(|host| format!("{host}: ")).unwrap_or_default();
        for (name, value) in [("serve", &keys.serve), ("budget", &keys.budget)] {
            if value.is_some() {
                let hits = if name == "serve" { ". All visitors get hits" } else { "" };
                warnings.push(format!(
                    "{of}trial.{name} has no effect, because no trial is on: one begins with `mode = \"trial\"`, or \
                     with pagewell serve --trial{hits}"
                ));
            }
        }
    }
    warnings
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
        let trial =
            read(Some("trial"), "serve = \"0.5%\"\nbudget = \"100%\"\naccept = [\"random /a/*\"]");
        let trial = trial.unwrap().expect("it is on");
        assert_eq!((trial.serve, trial.budget), (50, Some(100)));
        let (class, pattern) = (DifferenceClass::Random, pattern("", "/a/*").expect("a pattern"));
        assert_eq!(trial.accepted, [AcceptedDifference { class, pattern }]);
    }

    #[test]
    fn shares_without_a_trial_are_named() {
        let named = |text: &str| {
            let warnings = shares_without_trial(&toml::from_str(text).expect("a file")).into_iter();
            let key = |warning: String| warning.split(" has no effect").next().map(str::to_owned);
            warnings.filter_map(key).collect::<Vec<_>>()
        };
        assert_eq!(named("trial = { serve = \"5%\", never = [\"/a\"] }"), ["trial.serve"]);
        assert_eq!(named("trial = { never = [\"/a\"], accept = [\"random /a\"] }"), [""; 0]);
        assert_eq!(named("mode = \"trial\"\ntrial.budget = \"50%\""), [""; 0]);
        let both = "trial.budget = \"50%\"\n[[site]]\nhost = \"a\"\n[[site]]\nhost = \"b\"\n";
        assert_eq!(named(both), ["trial.budget"]);
        assert_eq!(named(&format!("{both}mode = \"trial\"")), [""; 0], "one site is in a trial");
        assert_eq!(
            named(&format!("mode = \"trial\"\n{both}mode = \"serve\"\ntrial.serve = \"5%\"")),
            ["b: trial.serve"]
        );
    }

    #[test]
    fn an_unrequested_path_is_found_in_any_spelling() {
        let text = "never = [\"/cart**\", \"/b\", \"/caf%C3%A9/*\", \"/**/edit\"]";
        let never = unrequested(&keys(text)).expect("patterns");
        for path in [
            "/cart/7/8",
            "/b",
            "/c%61rt/7",
            "//cart",
            "/x/../b",
            "/%62",
            "/caf\u{e9}/1",
            "/a/b/edit",
        ] {
            assert!(never.has(path), "{path}");
        }
        for path in ["/b/c", "/", "/x%2Fb", "/caf\u{e9}/1/2", "/a/edits"] {
            assert!(!never.has(path), "{path}");
        }
        let all = unrequested(&keys("never = [\"/**\"]")).expect("patterns");
        assert!(all.has("/") && all.has("/a/b"));
        assert!(!UnrequestedPaths::default().has("/"));
        for refused in ["cart", "!/cart", "**"] {
            let error = unrequested(&keys(&format!("never = [{refused:?}]"))).expect_err(refused).0;
            assert!(error.starts_with("trial.never: "), "{error}");
        }
    }

    #[test]
    fn a_wrong_share_is_named_with_its_key() {
        for (text, key) in [
            ("serve = \"101%\"", "trial.serve"),
            ("serve = \"5\"", "trial.serve"),
            ("serve = \"NaN%\"", "trial.serve"),
            ("budget = \"0%\"", "trial.budget"),
            (
                "budget = \"quick\"",
                "trial.budget: \"quick\" must be a share of the time of the origin's",
            ),
            ("accept = [\"/news\"]", "trial.accept"),
            (
                "accept = [\"stale /x\"]",
                "trial.accept: \"stale\" must be one of the classes: broken",
            ),
        ] {
            let error = resolve(Some("trial"), &keys(text)).expect_err(text).0;
            assert!(error.starts_with(key), "{error}");
        }
        assert!(resolve(Some("on"), &keys("")).expect_err("a mode").0.starts_with("mode: "));
    }
}
