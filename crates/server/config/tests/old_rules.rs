//! Rules without the keys for access, scripts and response fields mean the same as before these keys were there: each
//! of them is a rule about the cache, in its order. Checked with the configuration of every scenario.

use config::raw::File;
use config::{Config, resolve};
use std::fs;
use std::path::{Path, PathBuf};

/// Keys of rules that do not concern the cache.
const OTHER_KEYS: [&str; 13] = [
    "deny =",
    "retry_after =",
    "limit =",
    "auth_file =",
    "redirect =",
    "slash =",
    "rewrite =",
    "php =",
    "set_headers =",
    "add_headers =",
    "remove_headers =",
    "file_cache =",
    "entry_points =",
];

fn scenarios(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            scenarios(&path, found);
        } else if path.extension().is_some_and(|end| end == "scn") {
            found.push(path);
        }
    }
}

fn check(config: &Config, rules: usize, path: &Path) {
    let path = path.display();
    let all: Vec<usize> = config.rules.caching_rules().collect();
    assert_eq!(all, (1..=rules).collect::<Vec<_>>(), "{path}");
    let has_others = config.rules.has_access_rules()
        || config.rules.has_response_fields()
        || config.rules.has_checks()
        || config.rules.has_script_rules()
        || config.rules.may_answer()
        || config.rules.has_rewrites();
    assert!(!has_others, "{path}");
}

#[test]
fn every_old_rule_is_a_rule_about_the_cache() {
    let mut files = Vec::new();
    scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/scenarios"), &mut files);
    let (mut checked, mut rules_checked) = (0, 0);
    for path in &files {
        let text = fs::read_to_string(path).expect("a scenario");
        let lines = text.lines().filter_map(|line| line.strip_prefix("config | "));
        let mut toml = lines.collect::<Vec<_>>().join("\n").replace("{origin}", "127.0.0.1:1");
        if !toml.contains("[rule]") && !toml.contains(".rule]")
            || OTHER_KEYS.iter().any(|key| toml.contains(key))
        {
            continue;
        }
        if !toml.contains("origin =") {
            toml.insert_str(0, "site.origin = \"http://127.0.0.1:1\"\n");
        }
        // Some scenarios are about wrong configurations, or need files that are not there.
        let Ok(file) = toml::from_str::<File>(&toml) else { continue };
        let Ok(config) = resolve(&file) else { continue };
        let of_site = |at: usize| {
            let own = file.site.list.get(at).and_then(|site| site.rule.as_ref());
            own.unwrap_or(&file.rule).len()
        };
        check(&config, of_site(0), path);
        for (at, other) in config.other_sites.iter().enumerate() {
            check(other, of_site(at + 1), path);
        }
        checked += 1;
        rules_checked += of_site(0);
    }
    assert!(checked >= 25 && rules_checked >= 30, "{checked} scenarios, {rules_checked} rules");
}
