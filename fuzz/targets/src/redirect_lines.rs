//! Lines of redirect files: a line that is accepted is found by its old path, and its target is one address in visible
//! ASCII, with a host only if the line names one.
//!
//! The data are lines of fields that are separated by tabs: old path, target, status.

use http::Method;
use http_cache::Policy;
use rule_conditions::RequestView;
use site_rules::{
    AccessRequest, AddedLine, KeyForm, RedirectMap, Secret, SiteRules, Surroundings, raw,
};
use std::sync::LazyLock;

static RULES: LazyLock<SiteRules> = LazyLock::new(|| {
    let around = Surroundings {
        base: Policy::default(),
        secret: Secret::new([7; 32]),
        has_trusted_proxies: false,
        files: None,
    };
    SiteRules::read(&[], &raw::Keys::default(), &raw::Cookies::default(), around).expect("rules")
});

/// Reads the data as the lines of a file, and requests each old path.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let form = KeyForm::read(&raw::Keys::default()).expect("defaults");
    let (mut map, mut added) = (RedirectMap::default(), Vec::new());
    for (line, number) in text.lines().take(100).zip(1..) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (old, target, status) = match fields[..] {
            [old, target] => (old, target, None),
            [old, target, status] => (old, target, Some(status)),
            _ => continue,
        };
        map.begin_line(number);
        if map.add(&form, old, target, status) == Ok(AddedLine::Added) {
            added.push((number, old, target));
        }
    }
    assert_eq!(map.len(), added.len(), "{text:?}");
    let mut rules = RULES.clone();
    rules.set_redirect_map(map);
    for (number, old, target) in added {
        let view = RequestView::of_url(&Method::GET, "http", "a.test", old);
        let normal = rules.form().normal(old);
        let page = RequestView::of_url(&Method::GET, "http", "a.test", &normal.page);
        let asked = AccessRequest::new(&rules, view, Some(page));
        let redirect = rules.redirect(&asked).expect("the line is found");
        assert_eq!(redirect.source.line, Some(number), "{old:?}");
        let Some(location) = redirect.location else { continue };
        assert!(location.bytes().all(|byte| byte.is_ascii_graphic()), "{target:?}: {location}");
        let is_path = location.starts_with('/') && !location[1..].starts_with(['/', '\\']);
        let names_host = target.starts_with("http://") || target.starts_with("https://");
        assert!(is_path != names_host, "{target:?}: {location}");
    }
}
