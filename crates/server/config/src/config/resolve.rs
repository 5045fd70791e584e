//! Converts the configuration as written to the configuration as used: reads the file, applies the
//! flags, checks every value and adds defaults. Every error contains the key, the problem, and a
//! valid alternative. A configuration with an error has no effect.

use super::address::parse_address;
use super::machine::{default_budget_bytes, default_children};
use super::misread;
use super::raw::{self, File, OneOrMany};
use super::resolve_rules;
use super::resolve_sites::in_effect;
use super::table::LIMITS;
use super::units::{parse_bytes, parse_duration};
use super::{
    Address, Config, FilesConfig, HIDDEN, HitWatch, Limits, OriginConfig, OwnPhp, SiteConfig,
    TlsPair, audit,
};
use crate::accounts;
use http::StatusCode;
use http_cache::{FieldUse, Heuristic, Policy, RequestControl};
use request_values::networks::Networks;
use std::path::Path;

/// An error in a configuration, in one or two sentences for the operator.
#[derive(Debug)]
pub struct LoadError(pub String);

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

/// A smaller limit on header sections would reject every request.
const HEADER_BYTES_MIN: usize = 1 << 10;
/// The longest file with a token, a password or a secret, in bytes.
pub(super) const SECRET_BYTES_MAX: u64 = 64 << 10;

pub(super) fn wrong<T>(key: &str, why: impl std::fmt::Display) -> Result<T, LoadError> {
    Err(LoadError(format!("{key}: {why}")))
}

/// Reads a configuration file. Returns the parsed file and its text.
///
/// # Errors
/// The file cannot be read, is not valid TOML, or has an unknown key; with line and column.
pub fn load(path: &Path) -> Result<(File, String), LoadError> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| LoadError(format!("{} cannot be read: {e}", path.display())))?;
    match toml::from_str(&text) {
        Ok(file) => Ok((file, text)),
        Err(error) => {
            Err(LoadError(format!("{}: {}", path.display(), misread::message(&text, &error))))
        }
    }
}

/// Returns the address of the control interface, and its token.
fn resolve_admin(file: &File) -> Result<(Address, Option<String>), LoadError> {
    let admin = parse_address("admin", file.admin.as_deref().unwrap_or("127.0.0.1:8081"))?;
    let token = read_token("admin_token_file", file.admin_token_file.as_deref())?;
    if admin.is_local() || token.is_some() {
        Ok((admin, token))
    } else {
        wrong(
            "admin",
            format!(
                "{admin} can be reached from other machines; set admin_token_file, or use a loopback address or a unix: path"
            ),
        )
    }
}

/// Checks and completes the configuration of one site.
pub(super) fn resolve_one(file: &File, before: Option<&Config>) -> Result<Config, LoadError> {
    let limits = check_user(file).and_then(|()| resolve_limits(file))?;
    let ((admin, admin_token), memory_bytes) = (resolve_admin(file)?, memory_bytes(file)?);
    let trusted_proxies = resolve_rules::trusted_proxies(file)?;
    let (listen, listen_tls) = (resolve_listen(file)?, resolve_listen_tls(file)?);
    let (site, memcached) = (resolve_site(file)?, super::memcached::resolve(&file.memcached)?);
    check_all_addresses([&listen, &listen_tls], memcached.as_ref(), &admin)?;
    let dialects = super::dialects::resolve(&file.dialects)?;
    let (databases, hosts) = (super::database::resolve(file)?, resolve_rules::hosts(file)?);
    let automatic = super::automatic::resolve(&file.automatic, &site.origin, &databases)?;
    let mut policy = resolve_policy(file, &limits)?;
    policy.reads_lifetime_ms = automatic.as_ref().map(|one| one.lifetime_max.as_millis() as u64);
    let cluster = super::cluster::resolve(&file.cluster, hosts.canonical.as_deref(), &databases)?;
    let (audit, before) = (audit::resolve(file.audit.as_deref())?, in_effect(before, &hosts));
    let mut rules = resolve_rules::rules(file, &policy, &trusted_proxies, &site)?;
    let redirect_files = resolve_rules::redirect_files(file, &hosts, &mut rules, before)?;
    let error_pages = resolve_rules::error_pages(file, &site, before)?;
    Ok(Config {
        wakes: super::wake::resolve(&file.wake, hosts.canonical.as_deref(), &listen_tls, &site)?,
        watches_hits: HitWatch::of(rules.may_answer() || file.mode.is_some(), audit.is_some()),
        audit,
        trial: super::trial::resolve(file.mode.as_deref(), &file.trial)?,
        records: super::snapshot::record_files(file)?,
        unrequested: super::trial::unrequested(&file.trial)?,
        passwords: resolve_rules::passwords(&rules, before)?,
        rules,
        watched_files: redirect_files.watched().chain(error_pages.watched()).collect(),
        value_files: super::files_read::value_files(file),
        error_pages,
        redirect_files,
        proxied: resolve_proxied(file, [&listen, &listen_tls], &trusted_proxies)?,
        trusted_proxies,
        connections_exempt: resolve_rules::connections_exempt(file)?,
        policy,
        listen,
        listen_tls,
        tls: file.tls.iter().map(pair).collect(),
        https_redirect: resolve_redirect(file)?,
        admin,
        admin_token,
        admin_token_file: file.admin_token_file.clone(),
        user: file.user.clone(),
        group: file.group.clone(),
        memory_bytes,
        uploads: file.uploads.clone(),
        snapshot: super::snapshot::resolve(file, &site, memory_bytes)?,
        print: super::snapshot::print(file, &site, super::snapshot::Rewrites::Omitted),
        site,
        other_sites: Vec::new(),
        codings: super::codings::resolve(&file.codings)?,
        access_log: super::access_log::resolve(&file.access_log)?,
        server_timing: file.cache.server_timing.unwrap_or(false),
        esi: file.cache.esi.unwrap_or(false),
        inactive: super::inactive::resolve(&file.cache)?,
        rewarm: super::rewarm::resolve(&file.rewarm)?,
        misses: super::misses::resolve(&file.misses)?,
        traces: super::traces::resolve(&file.traces)?,
        acme: super::acme::resolve(file.acme.as_ref(), cluster.as_ref())?,
        cluster,
        automatic,
        databases,
        hosts,
        memcached,
        purging: super::purging::resolve(&file.purge)?,
        private: super::private::resolve(&file.private, &dialects)?,
        dialects,
        hits_in_front: file.hits_in_front.unwrap_or(true),
        limits,
    })
}

fn pair(files: &raw::Tls) -> TlsPair {
    TlsPair { certificate: files.certificate.clone(), key: files.key.clone() }
}

/// Checks that no address is used twice: of those for visitors, of the memcached port, of the control interface.
fn check_all_addresses(
    [listen, listen_tls]: [&[Address]; 2],
    memcached: Option<&super::Memcached>,
    admin: &Address,
) -> Result<(), LoadError> {
    let items = memcached.map_or(&[][..], |port| &port.listen);
    let listeners = [("listen", listen), ("listen_tls", listen_tls)];
    let admins = std::slice::from_ref(admin);
    check_addresses([listeners[0], listeners[1], ("memcached.listen", items), ("admin", admins)])
}

/// Checks that no address is used twice. Port 0 may be repeated, because each listener gets its own
/// port.
fn check_addresses(all: [(&str, &[Address]); 4]) -> Result<(), LoadError> {
    let mut seen: Vec<(&str, &Address)> = Vec::new();
    for (key, address) in all.into_iter().flat_map(|(key, all)| all.iter().map(move |a| (key, a))) {
        if matches!(address, Address::Tcp(tcp) if tcp.port() == 0) {
            continue;
        }
        match seen.iter().find(|(_, other)| *other == address) {
            Some((other, _)) if *other == key => {
                return wrong(key, format!("{address} is given twice"));
            }
            Some((other, _)) => {
                return wrong(key, format!("{other} and {key} are the same address, {address}"));
            }
            None => seen.push((key, address)),
        }
    }
    Ok(())
}

/// Trusts the files of the user that Pagewell will become. An account that does not exist is an error at the start.
fn trust_user(file: &File) {
    if let Some(Ok(account)) =
        file.user.as_ref().map(|user| accounts::of(user, file.group.as_deref()))
    {
        trusted_files::becomes(account.uid);
    }
}

/// Checks the settings for user and group, which are looked up at the start. To be called before a file is read that
/// may be the user's.
fn check_user(file: &File) -> Result<(), LoadError> {
    trust_user(file);
    let php = file.site.php.as_ref().unwrap_or(&file.php);
    match (&file.user, &file.group, &php.user) {
        (None, Some(_), _) => wrong("group", "needs user"),
        (Some(user), _, Some(of_php)) if user != of_php => wrong(
            "php.user",
            format!(
                "a php-fpm that Pagewell starts runs as {user:?}, whom it has become; to have PHP run as \
                 somebody else, let the system start php-fpm, and name it in php.at"
            ),
        ),
        _ => Ok(()),
    }
}

/// The page budget of all sites together.
pub(super) fn memory_bytes(file: &File) -> Result<usize, LoadError> {
    let bytes = match &file.memory {
        Some(text) => parse_bytes(text).or_else(|e| wrong("memory", e))? as usize,
        None => default_budget_bytes(),
    };
    if bytes < 1 << 20 { wrong("memory", "the page budget needs at least 1M") } else { Ok(bytes) }
}

fn resolve_limits(file: &File) -> Result<Limits, LoadError> {
    let mut limits = Limits::default();
    for (key, value) in &file.limits {
        let Some(row) = LIMITS.iter().find(|row| row.key == key) else {
            let known: Vec<&str> = LIMITS.iter().map(|row| row.key).collect();
            return Err(LoadError(misread::unknown(&format!("limits.{key}"), &known)));
        };
        let text = match value {
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(number) => number.to_string(),
            other => {
                let why =
                    format!("write a number, or a text such as {:?}, not {other}", row.default);
                return wrong(&format!("limits.{key}"), why);
            }
        };
        (row.set)(&mut limits, &text).or_else(|e| wrong(&format!("limits.{key}"), e))?;
    }
    if limits.header_bytes < HEADER_BYTES_MIN {
        let why = format!("{} bytes are too few: must be at least 1K", limits.header_bytes);
        return wrong("limits.header_bytes", why);
    }
    Ok(limits)
}

fn resolve_listen(file: &File) -> Result<Vec<Address>, LoadError> {
    let words = match file.listen {
        None => vec!["127.0.0.1:8080".to_owned()],
        Some(_) => words(&file.listen),
    };
    if words.is_empty() && file.listen_tls.is_none() {
        return wrong("listen", "the list is empty: no visitor could connect");
    }
    words.iter().map(|word| parse_address("listen", word)).collect()
}

fn resolve_listen_tls(file: &File) -> Result<Vec<Address>, LoadError> {
    let words = words(&file.listen_tls);
    match (words.is_empty(), file.tls.is_empty() && file.acme.is_none()) {
        (false, true) => {
            wrong("listen_tls", "needs [acme], or a certificate and its key in a [[tls]]")
        }
        (true, false) if file.acme.is_some() => wrong("acme", "needs listen_tls = \":443\""),
        (true, false) => wrong("tls", "there is a certificate, but no listen_tls"),
        _ => words.iter().map(|word| parse_address("listen_tls", word)).collect(),
    }
}

/// Returns the addresses that require the PROXY protocol. A client could send such a header itself,
/// so it is required from everybody at that address, and accepted only from trusted proxies.
fn resolve_proxied(
    file: &File,
    served: [&Vec<Address>; 2],
    trusted: &Networks,
) -> Result<Vec<Address>, LoadError> {
    const KEY: &str = "proxy_protocol";
    let words = words(&file.proxy_protocol);
    if !words.is_empty() && trusted.is_empty() {
        return wrong(KEY, "needs trusted_proxies: otherwise no proxy may connect");
    }
    let found = |word: &String| {
        let address = parse_address(KEY, word)?;
        if served.iter().any(|all| all.contains(&address)) {
            Ok(address)
        } else {
            wrong(KEY, format!("{word:?} is in neither listen nor listen_tls"))
        }
    };
    words.iter().map(found).collect()
}

pub(super) fn words(written: &Option<OneOrMany>) -> Vec<String> {
    match written {
        None => Vec::new(),
        Some(OneOrMany::One(word)) => vec![word.clone()],
        Some(OneOrMany::Many(words)) => words.clone(),
    }
}

fn resolve_redirect(file: &File) -> Result<Option<StatusCode>, LoadError> {
    match file.https_redirect {
        None => Ok(None),
        // Behind a proxy that terminates TLS, every request arrives over HTTP, so the redirect
        // would never end.
        Some(_) if file.listen_tls.is_none() => wrong(
            "https_redirect",
            "needs listen_tls; if a proxy terminates TLS, let that proxy redirect",
        ),
        Some(301) => Ok(Some(StatusCode::MOVED_PERMANENTLY)),
        Some(308) => Ok(Some(StatusCode::PERMANENT_REDIRECT)),
        Some(other) => wrong("https_redirect", format!("{other}: must be 301 or 308")),
    }
}

/// Reads the token from a file, if one is configured.
pub(super) fn read_token(key: &str, file: Option<&Path>) -> Result<Option<String>, LoadError> {
    let Some(path) = file else { return Ok(None) };
    let text = trusted_files::read_text(path, SECRET_BYTES_MAX)
        .or_else(|e| wrong(key, format!("{}: {e}", path.display())))?;
    match text.trim() {
        token if token.len() < 16 => {
            wrong(key, format!("{}: must have at least 16 characters", path.display()))
        }
        token => Ok(Some(token.to_owned())),
    }
}

fn resolve_site(file: &File) -> Result<SiteConfig, LoadError> {
    let files = &file.site;
    if let Some(servers) = super::origin_servers::resolve(files)? {
        if file.php.at.is_some() {
            return wrong("site.origin", "is set beside php.at: a site has one origin");
        }
        let origin = OriginConfig::Http(servers);
        let files = [
            ("site.root", files.root.is_some()),
            ("site.front_controller", files.front_controller.is_some()),
            ("site.hidden", files.hidden.is_some()),
            ("site.scripts", files.scripts.is_some()),
            ("site.allow_symlinks", files.allow_symlinks.is_some()),
            ("site.entry_points", files.entry_points.is_some()),
            ("site.internal_files", !files.internal_files.is_empty()),
        ];
        if let Some((key, _)) = files.iter().find(|(_, is_given)| *is_given) {
            return wrong(
                key,
                "is set beside site.origin: an HTTP origin serves its own files; remove one of them",
            );
        }
        return Ok(SiteConfig { origin, files: None });
    }
    let scripts = scripts(files)?;
    let own = files.front_controller.as_deref().map(|script| script.trim_start_matches('/'));
    let indexes = FilesConfig::indexes_of(&scripts);
    let mut looked_for = indexes.clone();
    looked_for.extend(own.map(str::to_owned));
    let root = super::document_root::root_of(files.root.as_deref(), &looked_for);
    let root = root.or_else(|why| wrong("site.root", why))?;
    let front_controller = match own {
        None => format!("index.{}", scripts[0]),
        Some(script) => front_controller(&root, script)?,
    };
    let internal = super::internal_files::resolve(&files.internal_files, &root)?;
    let files = FilesConfig {
        root,
        front_controller,
        hidden: match &files.hidden {
            Some(patterns) => hidden(patterns)?,
            None => HIDDEN.iter().map(|&pattern| pattern.to_owned()).collect(),
        },
        scripts,
        indexes,
        hides_libraries: files.hidden.is_none(),
        symlinks: super::symlinks::resolve(files.allow_symlinks.as_ref())?,
        internal,
    };
    Ok(SiteConfig { origin: resolve_php(file)?, files: Some(files) })
}

/// Checks `site.hidden`: patterns of names, not of paths.
fn hidden(patterns: &[String]) -> Result<Vec<String>, LoadError> {
    let is_path = |pattern: &&String| pattern.strip_prefix('/').unwrap_or(pattern).contains('/');
    let remedy =
        "is a path: write the pattern of a name, or a [[rule]] with this path and `deny = 404`";
    patterns.iter().find(is_path).map_or_else(
        || Ok(patterns.to_vec()),
        |path| wrong("site.hidden", format!("{path:?} {remedy}")),
    )
}

/// Returns the file name extensions of scripts without dots, at least one: the configured ones, and
/// that of the front controller.
fn scripts(site: &raw::Site) -> Result<Vec<String>, LoadError> {
    let mut scripts = Vec::new();
    for written in site.scripts.as_deref().unwrap_or(&[".php".to_owned()]) {
        let name = written.strip_prefix('.').unwrap_or(written);
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let example =
                format!("{written:?}: write a file name extension, such as \".php\" or \".pl\"");
            return wrong("site.scripts", example);
        }
        scripts.push(name.to_owned());
    }
    let own = site.front_controller.as_deref().map(Path::new).and_then(Path::extension);
    scripts.extend(own.and_then(|own| own.to_str()).map(str::to_owned));
    if scripts.is_empty() {
        wrong("site.scripts", "name at least one, such as \".php\"")
    } else {
        Ok(scripts)
    }
}

/// Returns the script for paths that are not files, relative to the root.
fn front_controller(root: &Path, below: &str) -> Result<String, LoadError> {
    if root.join(below).is_file() {
        Ok(below.to_owned())
    } else {
        wrong("site.front_controller", format!("there is no {below} in {}", root.display()))
    }
}

fn resolve_php(file: &File) -> Result<OriginConfig, LoadError> {
    let php = &file.php;
    if let Some(at) = &php.at {
        return Ok(OriginConfig::FastCgi(parse_address("php.at", at)?));
    }
    if php.children == Some(0) {
        return wrong("php.children", "must be at least 1");
    }
    let pairs = |map: &std::collections::BTreeMap<String, String>, key: &str| {
        let plain = |s: &str| !s.contains(['\n', '\r', '\0']);
        match map.iter().find(|(k, v)| !plain(k) || !plain(v) || k.contains(['[', ']', '='])) {
            Some((name, _)) => {
                wrong(key, format!("{name:?} contains a character that is not supported"))
            }
            None => Ok(map.iter().map(|(k, v)| (k.clone(), v.clone())).collect()),
        }
    };
    Ok(OriginConfig::OwnPhp(OwnPhp {
        binary: php.binary.clone(),
        children: php.children.unwrap_or_else(default_children),
        env: pairs(&php.env, "php.env")?,
        ini: pairs(&php.ini, "php.ini")?,
        user: php.user.clone().unwrap_or("www-data".into()),
        scripts: scripts(&file.site)?,
    }))
}

fn resolve_policy(file: &File, limits: &Limits) -> Result<Policy, LoadError> {
    let cache = &file.cache;
    let request_directives = match cache.request_directives.as_deref() {
        None | Some("ignore") => RequestControl::Ignore,
        Some("honour") => RequestControl::Honour,
        Some(other) => {
            return wrong(
                "cache.request_directives",
                format!("{other:?}: must be ignore or honour"),
            );
        }
    };
    // If Pagewell compresses content itself, the origin never gets the field, so no page depends on
    // it.
    let accept_encoding = if super::codings::resolve(&file.codings)?.are_made() {
        FieldUse::Ignore
    } else {
        FieldUse::Obey
    };
    let mut policy = Policy {
        request_directives,
        accept_encoding,
        content_max_bytes: limits.page_bytes as u64,
        ..Policy::default()
    };
    let dialects = super::dialects::resolve(&file.dialects)?;
    policy.litespeed = dialects.litespeed;
    policy.internal_fields.retain(|name| !dialects.pass_on.contains(name));
    let seconds = |key: &str, text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => parse_duration(text).map(Some).or_else(|e| wrong(key, e)),
    };
    if let Some(lifetime) = seconds("cache.default_lifetime", &cache.default_lifetime)? {
        policy.default_lifetime_ms = Some(lifetime.as_millis() as u64);
    }
    let heuristic_max = seconds("cache.heuristic_max", &cache.heuristic_max)?;
    policy.heuristic = cache.heuristic_percent.filter(|percent| *percent > 0).map(|percent| {
        let default = Heuristic::default();
        let max_seconds = heuristic_max.map_or(default.max_seconds, |d| d.as_secs() as _);
        Heuristic { percent, max_seconds, ..default }
    });
    if let Some(window) = seconds("cache.stale_while_revalidate", &cache.stale_while_revalidate)? {
        policy.stale_while_revalidate_seconds = window.as_secs() as _;
    }
    if let Some(window) = seconds("cache.soft_for", &cache.soft_for)? {
        policy.soft_seconds = window.as_secs() as _;
    }
    if let Some(window) = seconds("cache.stale_if_error", &cache.stale_if_error)? {
        policy.stale_if_error_seconds = window.as_secs() as _;
        policy.stale_if_disconnected_seconds = 0;
        policy.stale_if_deferred_seconds = window.as_secs() as _;
    }
    if let Some(window) = seconds("misses.stale", &file.misses.stale)? {
        policy.stale_if_deferred_seconds = window.as_secs() as _;
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::super::resolve;
    use super::*;

    fn error_of(text: &str) -> String {
        let file: File = toml::from_str(text).unwrap();
        resolve(&file).unwrap_err().0
    }

    #[test]
    fn an_unknown_key_suggests_the_right_one() {
        let dir = std::env::temp_dir().join(format!("pagewell-config-{}", std::process::id()));
        std::fs::write(&dir, "lisen = \"x\"\n").unwrap();
        let said = load(&dir).unwrap_err().0;
        std::fs::remove_file(&dir).unwrap();
        assert!(said.contains("did you mean `listen`?"), "{said}");
        assert!(error_of("[limits]\nuri_byte = 5\n").contains("`uri_bytes`"));
    }

    #[test]
    fn invalid_values_are_refused_with_a_reason() {
        assert!(error_of("listen = \"nowhere\"").contains("no address"));
        assert!(error_of("listen_tls = \":1\"").contains("[[tls]]"));
        assert!(
            error_of("https_redirect = 308\nsite.origin = \"http://127.0.0.1:1\"")
                .contains("listen_tls")
        );
        let proxied = "proxy_protocol = \":1\"\nsite.origin = \"http://127.0.0.1:1\"\n";
        assert!(error_of(proxied).contains("trusted_proxies"));
        let said = error_of(&format!("{proxied}trusted_proxies = [\"unix\"]"));
        assert!(said.contains("neither listen nor listen_tls"), "{said}");
        assert!(error_of("memory = \"much\"").contains("no size"));
        assert!(hidden(&["/a/**".into()]).is_err() && hidden(&["/a".into(), "*.x".into()]).is_ok());
        assert!(error_of("admin = \"0.0.0.0:1\"").contains("admin_token_file"));
        let said = error_of("[site]\norigin = \"unix:/x\"");
        assert!(said.contains("php.at") && said.contains("http://127.0.0.1:8000"), "{said}");
        assert!(error_of("[site]\norigin = \"a b\"").contains("http://127.0.0.1:8000"));
        assert!(error_of("[limits]\nidle_timeout = \"soon\"").contains("limits.idle_timeout"));
    }

    #[test]
    fn unusable_limits_and_addresses_are_refused() {
        let origin = "site.origin = \"http://127.0.0.1:1\"\n";
        for (text, right) in [
            ("limits.header_bytes = \"1\"", "limits.header_bytes: 1 bytes are too few"),
            ("listen = [\":80\", \"0.0.0.0:80\"]", "listen: 0.0.0.0:80 is given twice"),
            (
                "listen = \":80\"\nadmin = \"unix:/a\"\nmemcached.listen = \"unix:/a\"",
                "admin: memcached.listen and admin are the same address, unix:/a",
            ),
            ("listen = \"127.0.0.1:8081\"", "admin: listen and admin are the same address"),
            ("listen = \"8080\"", "write 127.0.0.1:8080, or :8080 for all"),
            ("memcached.listen = \"/run/m\"", "write unix:/run/m for a Unix socket"),
        ] {
            let said = error_of(&format!("{text}\n{origin}"));
            assert!(said.contains(right), "{text}: {said}");
        }
        // With port 0, each listener gets its own port.
        let any = format!("listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{origin}");
        assert!(resolve(&toml::from_str(&any).unwrap()).is_ok());
    }

    #[test]
    fn an_http_origin_needs_no_document_root() {
        let file: File = toml::from_str("[site]\norigin = \"http://127.0.0.1:8000\"").unwrap();
        let config = resolve(&file).unwrap();
        assert!(config.site.files.is_none());
        assert!(config.memory_bytes > 1 << 20);
    }
}
