//! Converts the configuration as written to the configuration as used: rules, keys, cookies, hosts
//! and trusted proxies.
//!
//! `site_rules` validates the rules. This module does what needs a file or randomness: the secret
//! that signs the cookies of clients that have sent a write.

use super::purging::LOOPBACK;
use super::raw::File;
use super::resolve::{LoadError, SECRET_BYTES_MAX, wrong};
use super::{Config, SOURCES, SiteConfig};
use http::StatusCode;
use http_cache::Policy;
use passwords::PasswordFiles;
use request_values::hosts::{Hosts, OtherHosts};
use request_values::networks::Networks;
use request_values::steering_fields::is_from_clients;
use request_values::target::normal_host;
use site_files::{ErrorPages, RedirectFiles};
use site_rules::{FileSurroundings, KeyForm, Secret, SiteRules, Surroundings};
use std::ffi::OsStr;
use std::io::Read;
use std::sync::OnceLock;

/// Parses the rules of the site.
pub(super) fn rules(
    file: &File,
    policy: &Policy,
    trusted: &Networks,
    site: &SiteConfig,
) -> Result<SiteRules, LoadError> {
    let files = site.files.as_ref().map(|files| FileSurroundings {
        front_controller: files.front_controller.clone(),
        scripts: files.scripts.clone(),
        entry_points: file.site.entry_points.clone(),
    });
    let around = Surroundings {
        files,
        base: policy.clone(),
        secret: secret(file)?,
        has_trusted_proxies: !trusted.is_empty(),
    };
    let is_read = |name: &&String| is_from_clients(&name.to_ascii_lowercase());
    if let Some(bad) = file.keys.fields.iter().find(|name| !is_read(name)) {
        let why = "only Pagewell and trusted proxies set this field; a client's value never reaches the origin";
        return wrong("keys.fields", format!("{bad:?}: {why}"));
    }
    if let Some(bad) =
        file.keys.harmless_fields.iter().find(|name| !is_read(&&name.replace('*', "x")))
    {
        let why = "only Pagewell and trusted proxies set this field; a client's value never reaches the origin";
        return wrong("keys.harmless_fields", format!("{bad:?}: {why}"));
    }
    check_headers(&file.rule)?;
    // A cookie that identifies an owner is a session cookie.
    let mut cookies = file.cookies.clone();
    cookies.session.extend_from_slice(super::private::named(&file.private));
    if file.misses.challenge.is_some() {
        // Only Anubis reads its cookies. As logins, which they look like, they would keep visitors from the cache.
        cookies.ignore.push("*anubis*".to_owned());
    }
    SiteRules::read(&file.rule, &file.keys, &cookies, around).map_err(|error| LoadError(error.0))
}

/// Reads the redirect files into the rules, and refuses redirects of rules that never end. Those of lines are noted.
pub(super) fn redirect_files(
    file: &File,
    hosts: &Hosts,
    rules: &mut SiteRules,
    before: Option<&Config>,
) -> Result<RedirectFiles, LoadError> {
    let mut files = RedirectFiles::default();
    if !file.site.redirect_files.is_empty() {
        let form = KeyForm::read(&file.keys).or_else(|error| wrong("keys", error))?;
        let before = before.map(|before| (before.rules.redirect_map(), &before.redirect_files));
        let (map, read) = RedirectFiles::read(&file.site.redirect_files, &form, before)
            .or_else(|error| wrong("site.redirect_files", error))?;
        rules.set_redirect_map(map);
        files = read;
    }
    let hosts: Vec<&str> = hosts.all().map(String::as_str).collect();
    if let Some(fault) = rules.loops_of_rules(&hosts).into_iter().next() {
        return Err(LoadError(files.places.with_place(&fault)));
    }
    let endless = rules.loops_of_lines(&hosts).into_iter().next();
    files.endless = endless.map(|fault| files.places.with_place(&fault));
    Ok(files)
}

/// Reads the pages for errors: `[error_pages]`.
pub(super) fn error_pages(
    file: &File,
    site: &SiteConfig,
    before: Option<&Config>,
) -> Result<ErrorPages, LoadError> {
    let files = site.files.as_ref();
    let is_script = |extension: &OsStr| {
        let scripts = files.map_or(&[][..], |files| &files.scripts);
        let scripts = scripts.iter().map(String::as_str);
        scripts.chain(SOURCES).any(|one| extension.eq_ignore_ascii_case(one))
    };
    let root = files.map(|files| files.root.as_path());
    let before = before.map(|before| &before.error_pages);
    ErrorPages::read(&file.error_pages, root, &is_script, before).map_err(LoadError)
}

/// Refuses conditions on header fields that no rule can see: those that only trusted proxies may set, and those that
/// a check before removes.
fn check_headers(rules: &[site_rules::raw::Rule]) -> Result<(), LoadError> {
    let has_passwords = rules.iter().any(|rule| rule.auth_file.is_some());
    for (at, rule) in rules.iter().enumerate() {
        for word in rule.header.as_slice() {
            let name = word.trim_start_matches('!').split(':').next().unwrap_or_default().trim();
            let name = name.to_ascii_lowercase();
            let why = if !is_from_clients(&name) {
                "only trusted proxies set this field, and rules do not see it; for addresses, use from \
                 (with trusted_proxies)"
            } else if has_passwords
                && name == "authorization"
                && (rule.auth_file.is_some() || rule.clone().without_access().is_some())
            {
                "auth_file checks this field and removes it before caching, so it can be a condition of deny, \
                 limit and redirect only"
            } else {
                continue;
            };
            return wrong(
                &format!("rule {}: header", rule.named(at + 1)),
                format!("{word:?}: {why}"),
            );
        }
    }
    Ok(())
}

/// Reads the password files that rules name.
pub(super) fn passwords(
    rules: &SiteRules,
    before: Option<&Config>,
) -> Result<PasswordFiles, LoadError> {
    let before = before.map(|before| &before.passwords);
    PasswordFiles::load(rules.auth_rules().map(|auth| (auth.rule, &*auth.file)), before)
        .map_err(LoadError)
}

/// Returns the configured secret, or a random one for the lifetime of this process.
fn secret(file: &File) -> Result<Secret, LoadError> {
    // A reload must not invalidate the cookies of clients that have just sent a write.
    static OF_THE_PROCESS: OnceLock<[u8; 32]> = OnceLock::new();
    let mut bytes = [0; 32];
    match &file.cookies.secret_file {
        None => {
            let random =
                std::fs::File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut bytes));
            random.or_else(|e| wrong("cookies.secret_file", format!("no randomness: {e}")))?;
            bytes = *OF_THE_PROCESS.get_or_init(|| bytes);
        }
        Some(path) => {
            let given = trusted_files::read(path, SECRET_BYTES_MAX)
                .or_else(|e| wrong("cookies.secret_file", format!("{}: {e}", path.display())))?;
            let given = given.trim_ascii();
            if given.len() < bytes.len() {
                let why =
                    format!("{}: must have at least {} characters", path.display(), bytes.len());
                return wrong("cookies.secret_file", why);
            }
            bytes.copy_from_slice(&given[..32]);
        }
    }
    Ok(Secret::new(bytes))
}

/// Parses the hosts of the site.
pub(super) fn hosts(file: &File) -> Result<Hosts, LoadError> {
    let site = &file.site;
    let host = |key: &str, text: &String| {
        normal_host(text, "http")
            .or_else(|_| wrong(key, format!("{text:?} is no host; write for example example.org")))
    };
    let others = match site.other_hosts.as_deref() {
        None | Some("serve") => OtherHosts::Serve,
        Some("refuse") => OtherHosts::Refuse,
        Some(other) => {
            return wrong("site.other_hosts", format!("{other:?}: must be serve or refuse"));
        }
    };
    let canonical = site.host.as_ref().map(|text| host("site.host", text)).transpose()?;
    if canonical.is_none() && (!site.aliases.is_empty() || others == OtherHosts::Refuse) {
        return wrong("site.host", "is required with site.aliases and other_hosts = \"refuse\"");
    }
    let aliases = site
        .aliases
        .iter()
        .map(|text| host("site.aliases", text))
        .collect::<Result<Vec<_>, _>>()?;
    const REDIRECT: &str = "site.canonical_redirect";
    let redirect = match site.canonical_redirect {
        None => None,
        Some(_) if aliases.is_empty() => {
            return wrong(REDIRECT, "needs site.aliases: those are redirected to site.host");
        }
        Some(301) => Some(StatusCode::MOVED_PERMANENTLY),
        Some(308) => Some(StatusCode::PERMANENT_REDIRECT),
        Some(other) => return wrong(REDIRECT, format!("{other}: must be 301 or 308")),
    };
    Ok(Hosts { canonical, aliases, others, redirect })
}

/// Parses the networks whose connections are not counted. The default is loopback: programs on the
/// machine itself.
pub(super) fn connections_exempt(file: &File) -> Result<Networks, LoadError> {
    let loopback = || LOOPBACK.map(str::to_owned).to_vec();
    let named = file.connections_exempt.clone().unwrap_or_else(loopback);
    Networks::read(&named).or_else(|error| wrong("connections_exempt", error))
}

/// Parses the networks of trusted proxies.
pub(super) fn trusted_proxies(file: &File) -> Result<Networks, LoadError> {
    Networks::read(&file.trusted_proxies).or_else(|error| wrong("trusted_proxies", error))
}

#[cfg(test)]
mod tests {
    use super::super::resolve;

    fn error_of(text: &str) -> String {
        let text = format!("site.origin = \"http://127.0.0.1:8000\"\n{text}");
        resolve(&toml::from_str(&text).unwrap()).unwrap_err().0
    }

    #[test]
    fn files_of_a_site_are_read_and_watched() {
        let root = std::env::temp_dir().join(format!("pagewell-files-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        for (name, text) in [("index.php", "<?php"), ("404.html", "four"), ("moved", "/a\t/b\n")] {
            std::fs::write(root.join(name), text).unwrap();
        }
        let read = |page: &str, rule: &str| {
            let text = format!(
                "php.at = \"127.0.0.1:1\"\nerror_pages.404 = {page:?}\n[site]\nroot = {root:?}\nredirect_files = {:?}\n{rule}",
                root.join("moved")
            );
            resolve(&toml::from_str(&text).unwrap()).map_err(|error| error.0)
        };
        assert_eq!(read("404.html", "").unwrap().watched_files.len(), 2);
        assert!(read("index.php", "").unwrap_err().contains("a script cannot"));
        // A rule and a line lead to each other.
        std::fs::write(root.join("moved"), "# lines\n/b/x\t/a/x\n").unwrap();
        let rule = "[[rule]]\npath = \"/a/**\"\nredirect = \"/b/$1\"";
        let error = read("404.html", rule).unwrap_err();
        let place = format!(" ({}, line 2)", root.join("moved").display());
        assert!(error.starts_with("rule 1: ") && error.ends_with(&place), "{error}");
        std::fs::remove_dir_all(&root).unwrap();
        let error = error_of("error_pages.404 = \"x\"");
        assert!(error.contains("needs site.root"), "{error}");
        let error = error_of("site.redirect_files = \"/nowhere\"");
        assert!(error.starts_with("site.redirect_files: /nowhere: "), "{error}");
    }

    #[test]
    fn the_secret_is_long_enough_or_refused() {
        let path = std::env::temp_dir().join(format!("pagewell-secret-{}", std::process::id()));
        let text = format!("cookies.secret_file = {:?}", path.display().to_string());
        std::fs::write(&path, "short\n").unwrap();
        let said = error_of(&text);
        std::fs::write(&path, "0123456789abcdef0123456789abcdef\n").unwrap();
        let text = format!("site.origin = \"http://127.0.0.1:8000\"\n{text}");
        let resolved = resolve(&toml::from_str(&text).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(said.contains("at least 32 characters"), "{said}");
        assert!(resolved.is_ok());
    }

    #[test]
    fn the_cookies_of_the_challenge_are_no_sessions() {
        let left = |text: &str| {
            let text = format!("site.origin = \"http://127.0.0.1:8000\"\n{text}");
            let config = resolve(&toml::from_str(&text).unwrap()).unwrap();
            let line = b"techaro.lol-anubis-auth-347ddb4a=jwt; my_auth=1";
            config.rules.cookies_without_sessions(line, |_| false)
        };
        assert_eq!(left(""), None);
        let anubis = b"techaro.lol-anubis-auth-347ddb4a=jwt".to_vec();
        assert_eq!(left("misses.challenge = \"http://127.0.0.1:8923\""), Some(anubis));
    }

    #[test]
    fn an_invalid_value_is_refused_with_a_reason() {
        for (text, part) in [
            ("[[rule]]\npath = \"x\"", "rule 1: path"),
            ("site.aliases = [\"a\"]", "site.host"),
            ("site.host = \"a b\"", "no host"),
            ("site.other_hosts = \"maybe\"", "serve or refuse"),
            ("trusted_proxies = [\"10.0.0.0/33\"]", "trusted_proxies"),
            ("site.canonical_redirect = 301", "site.aliases"),
            (
                "site.host = \"a\"\nsite.aliases = [\"b\"]\nsite.canonical_redirect = 302",
                "301 or 308",
            ),
            ("[[rule]]\npath = \"/a\"\nredirect = \"/a\"", "never ends"),
            ("[[rule]]\ncountry_header = \"x\"", "trusted_proxies"),
            ("cookies.secret_file = \"/nowhere\"", "/nowhere"),
        ] {
            let said = error_of(text);
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    #[test]
    fn a_condition_on_a_field_that_rules_do_not_see_is_refused() {
        let said = |rule: &str| {
            let text = format!("[site]\norigin = \"http://127.0.0.1:1\"\n[[rule]]\n{rule}\n");
            super::super::resolve(&toml::from_str(&text).unwrap())
                .err()
                .map(|error| error.to_string())
        };
        for field in ["!x-forwarded-for", "X-Real-IP: 10.*", "x-forwarded-proto: http"] {
            let why = said(&format!("header = {field:?}\ndeny = 403")).unwrap();
            assert!(why.starts_with("rule 1: header: "), "{field}: {why}");
            assert!(why.contains("trusted_proxies"), "{field}: {why}");
        }
        assert_eq!(said("header = \"x-requested-with\"\nbypass = true"), None);
        assert_eq!(said("header = \"authorization\"\nbypass = true"), None);
        let both = |actions: &str| {
            said(&format!("auth_file = false\n[[rule]]\nheader = \"!Authorization\"\n{actions}"))
        };
        assert_eq!(both("deny = 404"), None);
        for actions in ["bypass = true", "deny = 404\nstore = \"1s\"", "auth_file = false", ""] {
            assert!(both(actions).unwrap().contains("removes it"), "{actions}");
        }
    }
}
