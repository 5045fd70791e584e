//! Pagewell with the imported configuration. Keys that the program does not know yet are found by `pagewell check`, and
//! the rules with them are left out.

use acceptance::{Site, binary};
use harness::Pagewell;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Keys that an import writes, each with an example.
const KEYS: [(&str, &str); 9] = [
    ("redirect", "[[rule]]\npath = \"/x\"\nredirect = \"/y\""),
    ("slash", "[[rule]]\npath = \"/x\"\nslash = \"add\""),
    ("rewrite", "[[rule]]\npath = \"/x\"\nrewrite = \"/index.php\""),
    ("file", "[[rule]]\npath = \"/x\"\nfile = \"missing\"\nrewrite = \"/index.php\""),
    ("auth_file", "[[rule]]\npath = \"/x\"\nauth_file = false"),
    ("limit", "[[rule]]\npath = \"/x\"\nlimit = false"),
    ("internal_files", "site.internal_files = { \"/x/\" = \"/srv/x\" }"),
    ("canonical_redirect", "site.canonical_redirect = 301"),
    ("error_pages", "[error_pages]\n404 = \"404.html\""),
];

/// Pagewell with an import.
pub struct Imported {
    pub pagewell: Pagewell,
    pub text: String,
    pub report: String,
    /// The keys of the import that the program does not know.
    pub lacking: Vec<&'static str>,
}

impl Imported {
    /// Imports a file and starts Pagewell.
    pub fn start(file: &Path, site: &Site, socket: &Path) -> Imported {
        let server =
            if file.extension().is_some_and(|end| end == "conf") { "nginx" } else { "htaccess" };
        let output =
            Command::new(binary()).args(["import", server]).arg(file).output().expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let report = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 2)), "{report}");
        let mut text = text.replace("[site]\n", "[site]\nallow_symlinks = true\n");
        if !text.contains("\nhost = ") {
            text = text.replace("[site]\n", "[site]\nhost = \"example.org\"\n");
        }
        if !text.contains("\n[php]\n") {
            text.push_str(&format!("\n[php]\nat = \"unix:{}\"\n", socket.display()));
        }
        let lacking: Vec<&'static str> = KEYS
            .iter()
            .filter(|(key, _)| has(&text, key) && !is_known(site, key))
            .map(|(key, _)| *key)
            .collect();
        let known = without(&text, &lacking);
        let config = site.at("imported.toml");
        fs::write(&config, &known).expect("a file");
        let config = config.display().to_string();
        let pagewell = Pagewell::start(binary(), &["--config", &config, "--memory", "64M"])
            .unwrap_or_else(|error| panic!("{error}\n{known}"));
        Imported { pagewell, text, report, lacking }
    }

    pub fn lacks_keys(&self) -> bool {
        !self.lacking.is_empty()
    }
}

fn has(text: &str, key: &str) -> bool {
    text.lines().any(|line| line.starts_with(&format!("{key} = ")) || line == format!("[{key}]"))
}

/// Whether the program reads a key.
fn is_known(site: &Site, key: &str) -> bool {
    let example = KEYS.iter().find(|(known, _)| *known == key).map_or("", |(_, example)| example);
    let config = site.at("key.toml");
    fs::write(&config, format!("{example}\n")).expect("a file");
    let output =
        Command::new(binary()).args(["check", "--config"]).arg(&config).output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    !said.contains("there is no such key")
}

/// The configuration without the blocks that have one of these keys.
fn without(text: &str, keys: &[&'static str]) -> String {
    let blocks = text.split("\n\n").filter_map(|block| {
        let is_rule = block.contains("[[rule]]");
        let has = |key: &&&str| block.lines().any(|line| line.starts_with(&format!("{key} = ")));
        if keys.iter().any(|key| block.contains(&format!("[{key}]")))
            || is_rule && keys.iter().any(|key| has(&key))
        {
            return None;
        }
        let lines = block
            .lines()
            .filter(|line| !keys.iter().any(|key| line.starts_with(&format!("{key} = "))));
        Some(lines.collect::<Vec<_>>().join("\n"))
    });
    blocks.collect::<Vec<_>>().join("\n\n") + "\n"
}
