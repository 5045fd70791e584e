//! Rules for access, scripts and redirects, with the path of a request in any spelling: what a plain path is refused is
//! refused in every spelling, no script of an upload directory runs, and no redirect leads to another host.
//!
//! Nothing is read or written.

use http::Method;
use http_cache::Policy;
use rule_conditions::RequestView;
use site_rules::{
    AccessRequest, FileSurroundings, ScriptPath, Secret, SiteRules, Surroundings, raw,
};
use std::sync::LazyLock;

static RULES: LazyLock<SiteRules> = LazyLock::new(|| {
    let rule = |text: &str| -> raw::Rule { toml::from_str(text).expect("a rule") };
    let rules = [
        rule("path = ['/admin', '/admin/**']\ndeny = 403"),
        rule("path = '/uploads/**'\nphp = false"),
        rule("path_regex = '^/go(.*)$'\nredirect = '/$1'"),
        rule("path = '/out/**'\nredirect = 'https://b.test/$1?q=$1'"),
        rule("slash = 'remove'"),
    ];
    let front_controller = "index.php".into();
    let around = Surroundings {
        base: Policy::default(),
        secret: Secret::new([7; 32]),
        has_trusted_proxies: false,
        files: Some(FileSurroundings { front_controller, scripts: Vec::new(), entry_points: None }),
    };
    SiteRules::read(&rules, &raw::Keys::default(), &raw::Cookies::default(), around).expect("rules")
});

/// Reads the data as path and query.
pub fn run(data: &[u8]) {
    let Ok(url) = std::str::from_utf8(data) else { return };
    if !url.starts_with('/') || url.contains('#') {
        return;
    }
    let view = RequestView::of_url(&Method::GET, "http", "a.test", url);
    let asked = AccessRequest::new(&RULES, view, None);
    let path = url.split('?').next().unwrap_or_default();
    let plain = plain(path);
    let is_below = |directory: &str| plain.iter().any(|path| path.starts_with(directory));
    let is_denied = RULES.denial(&asked).is_some();
    assert!(is_denied || !is_below("/admin/"), "{url}");
    assert!(!is_denied || RULES.page_access(view).is_none(), "{url}");
    if let Some(redirect) = RULES.redirect(&asked) {
        let location = redirect.location.expect("not gone");
        let stays = location.starts_with('/') && !location[1..].starts_with(['/', '\\']);
        assert!(stays || location.starts_with("https://b.test/"), "{url}: {location}");
        assert!(location.bytes().all(|byte| byte.is_ascii_graphic()), "{url}: {location}");
        assert!(RULES.page_access(view).is_none(), "{url}");
    }
    // The script that a router would find for it, at any of its readings.
    for name in &plain {
        let script = ScriptPath { name, real: None };
        let refused = RULES.script_refusal("a.test", path, Some(script)).is_some();
        assert!(refused || !name.starts_with("/uploads/"), "{url}");
    }
}

/// The path as applications may read it: decoded once, with `%2F` and `\` as slashes, and without dot segments.
fn plain(path: &str) -> Vec<String> {
    let bytes = path.as_bytes();
    let (mut decoded, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let digits =
            path.get(at + 1..at + 3).filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte =
            digits.filter(|_| bytes[at] == b'%').and_then(|two| u8::from_str_radix(two, 16).ok());
        at += if byte.is_some() { 3 } else { 1 };
        decoded.push(byte.unwrap_or(bytes[at - 1]));
    }
    let decoded = String::from_utf8_lossy(&decoded).into_owned();
    [decoded.clone(), decoded.replace('\\', "/")].iter().map(|path| without_dots(path)).collect()
}

fn without_dots(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}
