//! nginx: chooses the site's `server` blocks, and translates them.
//!
//! | module | contents |
//! |---|---|
//! | `syntax` | words and blocks |
//! | `known` | directives without a translation of their own |
//! | `scope` | the directives of one `server` or `location` |
//! | `locations` | `location` as a condition, and the order in which nginx chooses |
//! | `access` | denials, networks, passwords, limits, scripts |
//! | `conditions` | `if` |
//! | `moves`, `tries`, `maps` | `return`, `rewrite`; `try_files`; `map` of paths |
//! | `answers` | response fields, lifetimes, error pages |

mod access;
mod answers;
mod conditions;
mod known;
mod locations;
mod maps;
mod moves;
mod scope;
pub(crate) mod syntax;
mod tries;

use crate::ImportChoices;
use crate::draft::{RuleConditions, RuleDraft, SiteDraft};
use crate::report::Judgements;
use crate::source::{ConfigurationError, Directive, SourceLine, Sources};
use scope::{Scope, read_scope};
use std::collections::HashMap;

pub use scope::FASTCGI_PARAMETERS;

/// The state of a translation.
pub(crate) struct Translation<'a> {
    pub(crate) site: SiteDraft,
    pub(crate) judgements: &'a mut Judgements,
    /// Constants of `set`.
    pub(crate) constants: HashMap<String, String>,
    /// The rates of `limit_req_zone`.
    pub(crate) zones: HashMap<String, String>,
    /// The first server of each `upstream`.
    pub(crate) upstreams: HashMap<String, String>,
    /// Blocks of `map`, by the variable that they set.
    pub(crate) maps: HashMap<String, &'a Directive>,
    /// The names of the server that is being translated, without patterns.
    pub(crate) server_names: Vec<String>,
    /// Whether it has names that are patterns.
    pub(crate) has_open_names: bool,
    /// The redirects to HTTPS.
    pub(crate) https: Vec<Directive>,
    /// Whether the caller can write a redirect file.
    pub(crate) has_redirect_file: bool,
}

impl Translation<'_> {
    /// A word with the constants of `set` in it.
    pub(crate) fn expanded(&self, word: &str) -> String {
        if !word.contains('$') || self.constants.is_empty() {
            return word.to_owned();
        }
        let mut text = word.to_owned();
        // Longer names first, so that `$a` does not replace the begin of `$ab`.
        let mut names: Vec<&String> = self.constants.keys().collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        for name in names {
            let value = &self.constants[name];
            text = text.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
            if text.len() > 8 << 10 {
                return word.to_owned();
            }
        }
        text
    }
}

/// Translates all directives of all files.
pub(crate) fn translate(
    all: &[Directive],
    choices: &ImportChoices<'_>,
    sources: &Sources,
    judgements: &mut Judgements,
) -> Result<SiteDraft, ConfigurationError> {
    let mut translation = Translation {
        site: SiteDraft::default(),
        judgements,
        constants: HashMap::new(),
        zones: HashMap::new(),
        upstreams: HashMap::new(),
        maps: HashMap::new(),
        server_names: Vec::new(),
        has_open_names: false,
        https: Vec::new(),
        has_redirect_file: choices.redirect_file.is_some(),
    };
    let mut servers = Vec::new();
    let mut around = Vec::new();
    for one in all {
        match one.name.as_str() {
            "http" => {
                translation.judgements.built_in(one);
                collect(one.inner(), &mut servers, &mut around);
            }
            _ => collect(std::slice::from_ref(one), &mut servers, &mut around),
        }
    }
    let has_servers = !servers.is_empty();
    if has_servers {
        global(&mut translation, &around);
    }
    // Without a server block, the files are part of one.
    let chosen = if has_servers { choose(&mut translation, servers, choices) } else { Vec::new() };
    if has_servers && chosen.is_empty() {
        let message = "no server block has this host".to_owned();
        return Err(sources.error(SourceLine { file: 0, line: 1 }, &message));
    }
    if !has_servers {
        let (own, outer): (Vec<_>, Vec<_>) =
            around.into_iter().partition(|one| !known::is_global(&one.name));
        global(&mut translation, &outer);
        serve(&mut translation, &own);
    }
    serve_all(&mut translation, &chosen);
    https_without_certificate(&mut translation);
    let Translation { site, maps, judgements, .. } = translation;
    for map in maps.into_values() {
        if !judgements.has(map) {
            let why = "only a map of paths whose values are redirects is translated";
            judgements.not_translated(map, why);
        }
    }
    judgements.complete(all, known::restricts);
    Ok(site)
}

/// Translates the servers of the site, the main one first.
fn serve_all<'a>(translation: &mut Translation<'a>, chosen: &[&'a Directive]) {
    let mut main_names: Option<Vec<String>> = None;
    for &server in chosen {
        translation.judgements.built_in(server);
        let inner: Vec<&Directive> = server.inner().iter().collect();
        let known = std::mem::take(&mut translation.site.rules);
        let scripts = translation.site.entry_points.clone();
        serve(translation, &inner);
        let own = std::mem::replace(&mut translation.site.rules, known);
        match &main_names {
            None => {
                translation.site.rules = own;
                main_names = Some(translation.server_names.clone());
            }
            Some(main) => {
                if translation.site.entry_points != scripts {
                    let why = "other scripts run in it than in the main server";
                    translation.judgements.lost_restriction(server, why);
                    translation.site.entry_points = scripts;
                }
                further_rules(translation, server, own, main);
            }
        }
    }
}

/// The rules of a server beside the main one. Its restrictions stand first, for its own hosts if the main server has
/// none of them; nothing of it exempts, because the servers are one site here.
fn further_rules(
    translation: &mut Translation<'_>,
    server: &Directive,
    own: Vec<RuleDraft>,
    main: &[String],
) {
    let same = |one: &RuleDraft, other: &RuleDraft| {
        one.conditions == other.conditions && one.actions == other.actions
    };
    let main_rules = &translation.site.rules;
    if own.len() == main_rules.len()
        && own.iter().zip(main_rules).all(|(one, other)| same(one, other))
    {
        return;
    }
    let names = translation.server_names.clone();
    let is_apart = !names.is_empty()
        && !translation.has_open_names
        && !names.iter().any(|name| main.contains(name));
    let hosts = RuleConditions::default().with("host", names);
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for mut rule in own {
        if rule.exempts() {
            let why = "restrictions of other locations apply to its exemptions, too";
            translation.judgements.translated_but(server, why);
            continue;
        }
        if is_apart && let Some(both) = rule.conditions.and(&hosts) {
            rule.conditions = both;
        }
        if rule.restricts() { first.push(rule) } else { last.push(rule) }
    }
    let is_for_all =
        |rule: &RuleDraft| rule.has("auth_file") && rule.conditions.get("host").is_none();
    if first.iter().any(is_for_all)
        && translation.site.rules.iter().any(|rule| rule.has("auth_file") && !rule.exempts())
    {
        let why = "its passwords replace those of the other server";
        translation.judgements.lost_restriction(server, why);
    }
    first.append(&mut translation.site.rules);
    first.append(&mut last);
    translation.site.rules = first;
}

/// Without a certificate, a redirect to HTTPS is only a comment.
fn https_without_certificate(translation: &mut Translation<'_>) {
    if translation.site.certificate.is_none() {
        for one in std::mem::take(&mut translation.https) {
            let why = "it needs a certificate and listen_tls: it is a comment";
            translation.judgements.not_translated(&one, why);
        }
    }
}

fn collect<'a>(
    all: &'a [Directive],
    servers: &mut Vec<&'a Directive>,
    around: &mut Vec<&'a Directive>,
) {
    for one in all {
        if one.name == "server" && one.block.is_some() {
            servers.push(one);
        } else {
            around.push(one);
        }
    }
}

/// Reads the directives around the server blocks.
fn global<'a>(translation: &mut Translation<'a>, all: &[&'a Directive]) {
    for one in all {
        match one.name.as_str() {
            "limit_req_zone" => {
                let value = |key: &str| {
                    one.words.iter().find_map(|word| word.strip_prefix(key).map(str::to_owned))
                };
                let name = value("zone=")
                    .map(|zone| zone.split(':').next().unwrap_or_default().to_owned());
                let by_address = one.word(0).contains("remote_addr");
                match (name, value("rate=").and_then(|rate| rate_of(&rate))) {
                    (Some(name), Some(rate)) if by_address => {
                        translation.zones.insert(name, rate);
                        translation.judgements.translated(one);
                    }
                    _ => {
                        translation.judgements.not_translated(one, "limits count by client address")
                    }
                }
            }
            "upstream" => {
                let servers: Vec<_> =
                    one.inner().iter().filter(|inner| inner.name == "server").collect();
                if let Some(first) = servers.first() {
                    translation.upstreams.insert(one.word(0).to_owned(), first.word(0).to_owned());
                }
                for inner in one.inner() {
                    translation.judgements.built_in(inner);
                }
                if servers.len() > 1 {
                    translation.judgements.not_translated(one, "only its first server is used");
                } else {
                    translation.judgements.translated(one);
                }
            }
            "map" => {
                // Its entries are no directives.
                for entry in one.inner() {
                    translation.judgements.built_in(entry);
                }
                translation.maps.insert(one.word(1).trim_start_matches('$').to_owned(), one);
            }
            _ => known::judge(translation.judgements, one),
        }
    }
}

/// nginx's rate (`10r/s`) as Pagewell's.
fn rate_of(rate: &str) -> Option<String> {
    let (number, unit) = rate.split_once("r/")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && matches!(unit, "s" | "m")).then(|| format!("{number}/{unit}"))
}

/// The server blocks of the site: the chosen one, those that share a host or the root with it, and those that only
/// redirect.
fn choose<'a>(
    translation: &mut Translation<'a>,
    servers: Vec<&'a Directive>,
    choices: &ImportChoices<'_>,
) -> Vec<&'a Directive> {
    let names = |server: &'a Directive| -> Vec<&'a str> {
        let all = server.inner().iter().filter(|one| one.name == "server_name");
        all.flat_map(|one| one.words.iter().map(String::as_str)).collect()
    };
    let root = |server: &'a Directive| {
        server.inner().iter().find(|one| one.name == "root").map(|one| one.word(0))
    };
    let main = servers.iter().copied().find(|server| match choices.host {
        Some(host) => names(server).contains(&host) && !moves::only_redirects(server),
        None => !moves::only_redirects(server),
    });
    let Some(main) = main.or_else(|| servers.first().copied().filter(|_| choices.host.is_none()))
    else {
        return Vec::new();
    };
    let mut chosen = vec![main];
    for server in servers {
        if std::ptr::eq(server, main) {
            continue;
        }
        let shares = names(server).iter().any(|name| names(main).contains(name));
        if moves::only_refuses(server) {
            refused_server(translation, server, shares);
            continue;
        }
        let belongs = moves::only_redirects(server)
            || shares
            || root(server).is_some() && root(server) == root(main);
        if belongs {
            chosen.push(server);
        } else {
            let why = "another site: import it with --host into a configuration of its own";
            let inner = std::slice::from_ref(server);
            for one in inner.iter().flat_map(Directive::inner).chain(inner) {
                translation.judgements.not_needed_because(one, why);
                ignore(translation, one, why);
            }
        }
    }
    chosen
}

/// A server beside the site that only refuses. That of certbot redirects each of its names to HTTPS before.
fn refused_server(translation: &mut Translation<'_>, server: &Directive, shares: bool) {
    let why = "Pagewell refuses unknown hosts (421)";
    translation.site.refuses_others = true;
    translation.judgements.not_needed_because(server, why);
    let tests: Vec<&Directive> = server.inner().iter().filter(|one| one.name == "if").collect();
    let to_https = |one: &&Directive| {
        let all = one.inner();
        !all.is_empty() && all.iter().all(|one| one.word(1) == "https://$host$request_uri")
    };
    if !tests.is_empty() && tests.iter().all(to_https) {
        translation.site.https_redirect = Some(301);
        for test in tests {
            translation.judgements.translated_but(test, "as https_redirect");
            for one in test.inner() {
                translation.judgements.translated_but(one, "as https_redirect");
                translation.https.push(one.clone());
            }
        }
    } else if shares {
        let why = "the site serves a name that is refused here, such as by plain HTTP";
        translation.judgements.lost_restriction(server, why);
    }
    ignore(translation, server, why);
}

fn ignore(translation: &mut Translation<'_>, of: &Directive, why: &str) {
    for one in of.inner() {
        translation.judgements.not_needed_because(one, why);
        ignore(translation, one, why);
    }
}

/// Translates the content of one server block.
fn serve<'a>(translation: &mut Translation<'a>, all: &[&'a Directive]) {
    for one in all {
        let value = one.word(1);
        if one.name == "set" && !value.contains('$') {
            translation
                .constants
                .insert(one.word(0).trim_start_matches('$').to_owned(), value.to_owned());
        }
    }
    let names = all.iter().filter(|one| one.name == "server_name").flat_map(|one| &one.words);
    let (plain, open): (Vec<_>, Vec<_>) = names
        .filter(|name| !matches!(name.as_str(), "_" | ""))
        .partition(|name| !name.starts_with('.') && !name.contains(['*', '~', '$']));
    translation.server_names = plain.iter().map(|name| name.to_ascii_lowercase()).collect();
    translation.has_open_names = !open.is_empty();
    let scope = read_scope(translation, all, true);
    let locations = locations::read(translation, &scope);
    server_names(translation, &scope, all);
    moves::server(translation, &scope);
    // The conditions of `if` restrict before a location's exemption.
    moves::emit(translation, &scope, &locations);
    access::emit(translation, &scope, &locations);
    answers::emit(translation, &scope, &locations);
}

fn server_names(translation: &mut Translation<'_>, scope: &Scope<'_>, all: &[&Directive]) {
    let redirects = moves::canonical_target(translation, scope);
    for one in all.iter().filter(|one| one.name == "server_name") {
        let mut is_complete = true;
        for name in &one.words {
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'));
            match name.as_str() {
                "_" | "" | "localhost" => {}
                name if name.starts_with('.') => {
                    translation.site.host(&name[1..]);
                    is_complete = false;
                }
                name if is_name => translation.site.host(name),
                _ => is_complete = false,
            }
        }
        if is_complete {
            translation.judgements.translated(one);
        } else {
            translation.site.has_open_names = true;
            let why = "aliases have no patterns: write each name";
            translation.judgements.translated_but(one, why);
        }
    }
    if let Some((host, status)) = redirects {
        translation.site.canonical(&host);
        translation.site.canonical_redirect = Some(status);
    }
}
