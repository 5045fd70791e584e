//! Rules as they are read for a site, and requests. Shared by the tests of access and of redirects.
//!
//! Not here: caching rules (`planning.rs`).

use http::Method;
use http_cache::Policy;
use rule_conditions::RequestView;
use site_rules::{FileSurroundings, Secret, SiteRules, Surroundings, raw};

#[derive(serde::Deserialize)]
struct Written {
    rule: Vec<raw::Rule>,
}

/// Reads rules, for a site with these files.
pub fn read_with(text: &str, files: Option<FileSurroundings>) -> Result<SiteRules, String> {
    let written: Written = toml::from_str(text).map_err(|error| error.to_string())?;
    let (keys, cookies) = (raw::Keys::default(), raw::Cookies::default());
    let around = Surroundings {
        base: Policy::default(),
        secret: Secret::new([7; 32]),
        has_trusted_proxies: false,
        files,
    };
    SiteRules::read(&written.rule, &keys, &cookies, around).map_err(|error| error.to_string())
}

/// A document root with a front controller.
pub fn files(entry_points: Option<&[&str]>) -> Option<FileSurroundings> {
    let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect();
    let front_controller = "index.php".to_owned();
    let (scripts, entry_points) = (vec!["php".to_owned()], entry_points.map(words));
    Some(FileSurroundings { front_controller, scripts, entry_points })
}

/// Reads rules that are right.
pub fn read(text: &str) -> SiteRules {
    read_with(text, files(None)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A request for this host and path.
pub fn view<'a>(method: &'a Method, url: &'a str) -> RequestView<'a> {
    let (host, path) = url.split_at(url.find('/').expect("a path"));
    RequestView::of_url(method, "http", host, path)
}
