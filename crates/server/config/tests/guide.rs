//! Checks the guides to rules, cookies, proxies and WordPress against the code. Every example in them is a
//! valid configuration. Every key of a rule and every option for keys and cookies occurs in one. Cookies and
//! parameters named as examples are on the built-in lists.

use config::raw::File;
use config::resolve;
use site_rules::raw::RULE_KEYS;
use site_rules::{SCRIPT_COOKIES, SESSION_COOKIES, TRACKING};

const GUIDE: &str = include_str!("../../../../docs/guide/rules.md");
const COOKIES: &str = include_str!("../../../../docs/guide/cookies.md");
const CACHE_KEY: &str = include_str!("../../../../docs/guide/cache-key.md");
const MANY_SITES: &str = include_str!("../../../../docs/guide/many-sites.md");
const WORDPRESS: &str = include_str!("../../../../docs/guide/wordpress.md");
const LITESPEED: &str = include_str!("../../../../docs/guide/litespeed.md");
const OTHER_CACHES: &str = include_str!("../../../../docs/guide/other-caches.md");
const RESTART: &str = include_str!("../../../../docs/guide/restart.md");
const BEHIND_NGINX: &str = include_str!("../../../../docs/guide/behind-nginx.md");
const APACHE: &str = include_str!("../../../../docs/guide/in-front-of-apache.md");
const ESI: &str = include_str!("../../../../docs/guide/esi.md");
const CLASSIC_NGINX: &str = include_str!("../../../../docs/guide/classic-nginx.md");
const LOAD_BALANCER: &str = include_str!("../../../../docs/guide/load-balancer.md");
const TLS: &str = include_str!("../../../../docs/guide/tls.md");
const SMALL_MACHINE: &str = include_str!("../../../../docs/guide/small-machine.md");
const FROM_NGINX: &str = include_str!("../../../../docs/guide/from-nginx.md");
const FROM_LITESPEED: &str = include_str!("../../../../docs/guide/from-litespeed.md");

fn examples(guide: &'static str) -> Vec<&'static str> {
    let blocks = guide.split("```toml\n").skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn every_example_can_be_used() {
    let others = [
        COOKIES,
        CACHE_KEY,
        BEHIND_NGINX,
        MANY_SITES,
        WORDPRESS,
        LITESPEED,
        OTHER_CACHES,
        APACHE,
        FROM_NGINX,
        FROM_LITESPEED,
        RESTART,
        SMALL_MACHINE,
        ESI,
        CLASSIC_NGINX,
        LOAD_BALANCER,
        TLS,
    ];
    assert!(examples(GUIDE).len() > 10 && others.iter().all(|guide| !examples(guide).is_empty()));
    let all = others.into_iter().chain([GUIDE]).flat_map(examples);
    for example in all {
        let mut file: File = toml::from_str(example).unwrap_or_else(|e| panic!("{example}\n{e}"));
        let site = &mut file.site;
        if site.list.is_empty() && site.origin.is_none() {
            // Their directories do not exist on this machine.
            site.origin = Some("http://127.0.0.1:8000".into());
            file.php.at = None;
            (site.root, site.front_controller, site.allow_symlinks) = (None, None, None);
            (site.hidden, site.scripts) = (None, None);
        }
        if !file.wake.is_empty() {
            // Such an excerpt of a configuration assumes that the host was set before.
            file.site.host.get_or_insert("blog.example".into());
        }
        if let Err(error) = resolve(&file) {
            panic!("{example}\n{error}");
        }
    }
}

#[test]
fn every_key_occurs() {
    let all = examples(GUIDE).join("\n");
    let said =
        |key: &str| all.lines().any(|line| line.trim_start().starts_with(&format!("{key} =")));
    for key in RULE_KEYS {
        assert!(said(key), "no example of `{key}`");
        assert!(GUIDE.contains(&format!("`{key}`")), "`{key}` is not explained");
    }
}

#[test]
fn the_names_given_as_examples_are_on_the_lists() {
    let quoted = |text: &str| -> Vec<String> {
        text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let row = |start: &str| {
        let line = COOKIES.lines().find(|line| line.starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no row {start}"));
        line.split('|').nth(2).unwrap_or_default()
    };
    let covered = |list: &[&str], name: &String| {
        list.iter().any(|entry| {
            let (entry, name) = (entry.to_lowercase(), name.to_lowercase());
            entry == name
                || entry.strip_suffix('*').is_some_and(|start| name.starts_with(start))
                || entry == "*session*" && name.contains("session")
        })
    };
    for name in quoted(row("| for scripts |")) {
        assert!(covered(SCRIPT_COOKIES, &name), "{name}");
    }
    for name in quoted(row("| of a session")) {
        assert!(covered(SESSION_COOKIES, &name), "{name}");
    }
    let tracking = |line: &&str| line.starts_with("- **Tracking");
    let line = CACHE_KEY.lines().find(tracking).unwrap_or_default();
    let names = quoted(line.split("; the whole").next().unwrap_or_default());
    assert!(names.len() > 20);
    for name in names {
        assert!(covered(TRACKING, &name), "{name}");
    }
}
