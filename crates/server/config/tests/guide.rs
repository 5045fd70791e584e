//! Checks the manual against the code. Every TOML block of its pages is a valid configuration. Every key
//! of a rule and every option for keys and cookies occurs in one. Cookies and parameters named as
//! examples are on the built-in lists.

use config::raw::File;
use config::resolve;
use known_names::{SCRIPT_COOKIES, SESSION_COOKIES, TRACKING, names_of};
use site_rules::raw::{AuthFile, RULE_KEYS, Rule};
use std::fs;
use std::path::{Path, PathBuf};

const GUIDE: &str = include_str!("../../../../docs/guide/rules.md");
const COOKIES: &str = include_str!("../../../../docs/guide/cookies.md");
const CACHE_KEY: &str = include_str!("../../../../docs/guide/cache-key.md");

/// Rules of changes need one.
const DATABASE: &str = "[[database]]\nurl = \"mysql://a:b@localhost/c\"\n";

/// The pages of the manual with their paths, without the decision records.
fn pages() -> Vec<(PathBuf, String)> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
    let directories = [docs.clone(), docs.join("guide"), docs.join("operating")];
    let entries = directories.iter().flat_map(|one| fs::read_dir(one).expect("pages").flatten());
    let paths = entries.map(|entry| entry.path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|end| end == "md");
    let mut pages: Vec<_> = paths
        .filter(is_page)
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a page");
            (path, text)
        })
        .collect();
    pages.sort();
    pages
}

fn examples(guide: &str) -> Vec<&str> {
    let blocks = guide.split("```toml\n").skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn every_example_can_be_used() {
    let pages = pages();
    let all = pages
        .iter()
        .flat_map(|(path, text)| examples(text).into_iter().map(move |one| (path, one)));
    let all: Vec<_> = all.collect();
    assert!(examples(GUIDE).len() > 10 && all.len() > 60, "{}", all.len());
    let token = Path::new(env!("CARGO_TARGET_TMPDIR")).join("token");
    fs::write(&token, "0123456789abcdef").expect("written");
    let mut wrong = Vec::new();
    for (path, example) in all {
        let path = path.display();
        let mut file: File =
            toml::from_str(example).unwrap_or_else(|e| panic!("{path}: {example}\n{e}"));
        let site = &mut file.site;
        if site.list.is_empty() && site.origin.is_none() {
            // Their directories do not exist on this machine.
            site.origin = Some(vec!["http://127.0.0.1:8000".into()]);
            file.php.at = None;
            (site.root, site.front_controller, site.allow_symlinks) = (None, None, None);
            (site.hidden, site.scripts) = (None, None);
        }
        // An excerpt may have the certificates without the address, or the address without them.
        if file.tls.is_empty() && file.acme.is_none() {
            (file.listen_tls, file.https_redirect) = (None, None);
        } else if file.listen_tls.is_none() {
            let with_address = toml::from_str::<File>("listen_tls = ':443'").expect("an address");
            file.listen_tls = with_address.listen_tls;
        }
        if !file.wake.is_empty() {
            // Such an excerpt of a configuration assumes that the host was set before.
            file.site.host.get_or_insert("blog.example".into());
        }
        for token_file in [&mut file.admin_token_file, &mut file.purge.token_file] {
            *token_file = token_file.as_ref().map(|_| token.clone());
        }
        file.site.redirect_files.clear();
        file.error_pages.clear();
        let passwords = Path::new(env!("CARGO_TARGET_TMPDIR")).join("passwords");
        fs::write(&passwords, "anna:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n").expect("written");
        for auth_file in file.rule.iter_mut().filter_map(|rule| rule.auth_file.as_mut()) {
            if let AuthFile::Path(path) = auth_file {
                *path = passwords.display().to_string();
            }
        }
        file.site.internal_files.values_mut().for_each(|directory| *directory = "/tmp".into());
        let is_of_files =
            |rule: &Rule| rule.php.is_some() || rule.file_cache.is_some() || rule.rewrite.is_some();
        let needs_files = file.site.entry_points.is_some()
            || !file.site.internal_files.is_empty()
            || file.rule.iter().any(is_of_files);
        if file.automatic.enabled == Some(true) || needs_files {
            // It needs PHP over FastCGI, and a document root that exists.
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../php/capture");
            let site = &mut file.site;
            (site.origin, site.root) = (None, Some(root));
            site.front_controller = Some("wordpress.php".into());
            file.php.at =
                file.automatic.capture_directory.is_some().then(|| "unix:/php.sock".into());
        }
        let needs_database = !file.change.is_empty() || file.automatic.enabled == Some(true);
        if needs_database && file.database.is_empty() {
            file.database = toml::from_str::<File>(DATABASE).expect("a database").database;
        }
        if let Err(error) = resolve(&file) {
            wrong.push(format!("{path}: {error}\n{example}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
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
    let scripts: Vec<_> = names_of(SCRIPT_COOKIES).collect();
    let sessions: Vec<_> = names_of(SESSION_COOKIES).collect();
    for name in quoted(row("| for scripts |")) {
        assert!(covered(&scripts, &name), "{name}");
    }
    for name in quoted(row("| of a session")) {
        assert!(covered(&sessions, &name), "{name}");
    }
    let tracking = |line: &&str| line.starts_with("- **Tracking");
    let line = CACHE_KEY.lines().find(tracking).unwrap_or_default();
    let names = quoted(line.split("; the whole").next().unwrap_or_default());
    assert!(names.len() > 20);
    for name in names {
        assert!(covered(TRACKING, &name), "{name}");
    }
}
