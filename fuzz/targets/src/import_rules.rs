//! Configurations of nginx and Apache: nothing panics, each directive has one line in the report, and no value adds a
//! line to the configuration that is written. What nginx refuses by its choice of a location, the import refuses or
//! reports as lost.
//!
//! The first byte chooses: from `f` on, the rest makes locations; otherwise the rest is a file, of nginx if the byte is
//! even.

use http::Method;
use http_cache::Policy;
use import_rules::{
    ConfigurationFile, ImportChoices, ImportedConfiguration, ImportedServer, NothingIncluded,
    import,
};
use site_rules::{AccessRequest, RequestView, Secret, SiteRules, Surroundings, raw};

/// Imports the data as a configuration of nginx or of Apache.
pub fn run(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    if *first >= b'f' {
        return restrictions(rest);
    }
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let server = if first % 2 == 0 { ImportedServer::Nginx } else { ImportedServer::Apache };
    let Some(imported) = imported(server, text) else { return };
    for line in imported.text.lines() {
        let key = line.split(" = ").next().unwrap_or_default();
        let is_key = key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'"'));
        assert!(line.is_empty() || line.starts_with(['#', '[']) || is_key, "{line:?}");
    }
    for line in imported.redirects.iter().flat_map(|lines| lines.lines()) {
        let fields: Vec<&str> = line.split('\t').collect();
        assert!(matches!(fields[..], [path, _, _] if path.starts_with('/')), "{line:?}");
    }
    for one in &imported.report.directives {
        assert!(one.line > 0 && !one.directive.contains('\n'), "{one:?}");
    }
}

fn imported(server: ImportedServer, text: &str) -> Option<ImportedConfiguration> {
    let file = ConfigurationFile { path: "/srv/www/.htaccess".into(), text: text.to_owned() };
    let redirect_file = Some("/srv/redirects.tsv".as_ref());
    let choices = ImportChoices { redirect_file, ..ImportChoices::default() };
    import(server, &[file], &choices, &mut NothingIncluded).ok()
}

/// The paths of locations that are no expressions.
const PATHS: [&str; 8] = ["/", "/a", "/a/", "/a/b", "/a/b/", "/a/b/x.sql", "/c/", "/b.sql"];

/// Whether an expression matches a path.
type Matches = fn(&str) -> bool;

/// The expressions of locations.
const EXPRESSIONS: [(&str, Matches); 6] = [
    (r"\.sql$", |path| path.ends_with(".sql")),
    ("^/a/", |path| path.starts_with("/a/")),
    ("/b", |path| path.contains("/b")),
    ("^/a/(b|c)/x", |path| path.starts_with("/a/b/x") || path.starts_with("/a/c/x")),
    ("x$", |path| path.ends_with('x')),
    ("^/[a-z]+/$", |path| {
        let name = path.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        name.is_some_and(|name| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase())
        })
    }),
];

/// The paths that are requested.
const REQUESTED: [&str; 14] = [
    "/",
    "/a",
    "/a/",
    "/a/x",
    "/a/b",
    "/a/b/",
    "/a/b/x",
    "/a/b/x.sql",
    "/a/c/x",
    "/A/x",
    "/b.SQL",
    "/b.sql",
    "/c/",
    "/c/x.sql",
];

/// What a location does with its requests: they are refused or not, or that is inherited.
const ACTIONS: [(&str, Option<bool>); 6] = [
    ("deny all;", Some(true)),
    ("return 403;", Some(true)),
    ("allow all;", Some(false)),
    ("", None),
    ("expires 1d;", None),
    ("deny all; expires 1d;", Some(true)),
];

/// A generated location.
struct GeneratedLocation {
    modifier: &'static str,
    path: &'static str,
    matches: Option<Matches>,
    is_refused: Option<bool>,
}

impl GeneratedLocation {
    fn is_expression_for(&self, path: &str) -> bool {
        let lower = path.to_ascii_lowercase();
        let path = if self.modifier == "~*" { &lower } else { path };
        self.matches.is_some_and(|matches| matches(path))
    }
}

/// Whether nginx refuses a path: its choice among the locations (ngx_http_core_module, `location`).
fn is_refused(locations: &[GeneratedLocation], by_server: bool, path: &str) -> bool {
    let plain = || locations.iter().filter(|location| location.matches.is_none());
    let exact = plain().find(|location| location.modifier == "=" && location.path == path);
    let prefixes =
        plain().filter(|location| location.modifier != "=" && path.starts_with(location.path));
    let longest = prefixes.max_by_key(|location| location.path.len());
    let expression = || locations.iter().find(|location| location.is_expression_for(path));
    let chosen = exact.or_else(|| match longest {
        Some(longest) if longest.modifier == "^~" => Some(longest),
        longest => expression().or(longest),
    });
    chosen.and_then(|location| location.is_refused).unwrap_or(by_server)
}

/// Makes locations of the data: three bytes for each, after one for the server.
fn restrictions(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let by_server = first % 4 == 0;
    let mut text = String::from("server {\nroot /srv;\n");
    text.push_str(if by_server { "deny all;\n" } else { "" });
    let mut locations: Vec<GeneratedLocation> = Vec::new();
    for bytes in rest.chunks_exact(3).take(6) {
        let modifier = ["", "=", "^~", "~", "~*"][usize::from(bytes[0]) % 5];
        let (path, matches) = if modifier.starts_with('~') {
            let (text, matches) = EXPRESSIONS[usize::from(bytes[1]) % EXPRESSIONS.len()];
            (text, Some(matches))
        } else {
            (PATHS[usize::from(bytes[1]) % PATHS.len()], None)
        };
        let (action, is_refused) = ACTIONS[usize::from(bytes[2]) % ACTIONS.len()];
        // nginx refuses two locations of one path, and of a prefix with and without `^~`.
        let is_same = |other: &GeneratedLocation| {
            other.path == path && (other.modifier == "=") == (modifier == "=")
        };
        if locations.iter().any(is_same) {
            continue;
        }
        text.push_str(&format!("location {modifier} {path} {{ {action} }}\n"));
        locations.push(GeneratedLocation { modifier, path, matches, is_refused });
    }
    text.push_str("}\n");
    let imported = imported(ImportedServer::Nginx, &text).expect("a valid configuration");
    if imported.report.lacks_restrictions() {
        return;
    }
    let rules = rules(&imported.text);
    for path in REQUESTED {
        let view = RequestView::of_url(&Method::GET, "http", "a.test", path);
        let asked = AccessRequest { sent: view, normal: None };
        let is_denied = rules.denial(&asked).is_some();
        let original = is_refused(&locations, by_server, path);
        assert!(is_denied || !original, "{path} is narrower:\n{text}\n{}", imported.text);
    }
}

/// The rules of a configuration.
fn rules(text: &str) -> SiteRules {
    let table: toml::Table = toml::from_str(text).expect("TOML");
    let all = table.get("rule").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let all: Vec<raw::Rule> =
        all.into_iter().map(|rule| rule.try_into().expect("a rule")).collect();
    let around = Surroundings {
        base: Policy::default(),
        secret: Secret::new([7; 32]),
        has_trusted_proxies: false,
        files: None,
    };
    SiteRules::read(&all, &raw::Keys::default(), &raw::Cookies::default(), around).expect("rules")
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::Random;

    #[test]
    fn generated_locations_are_never_narrower() {
        let mut random = Random::new(0x5eed);
        for _ in 0..20_000 {
            let data: Vec<u8> = (0..19).map(|_| random.below(256) as u8).collect();
            restrictions(&data);
        }
    }
}
