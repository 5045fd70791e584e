//! Imports of small configurations, and their rules as lines. Shared by the tests of the translation.
//!
//! Not here: whole documents (`documents.rs`).

use import_rules::{
    ConfigurationFile, ImportChoices, ImportedConfiguration, ImportedServer, NothingIncluded,
    import,
};

/// Imports this text, which must become a configuration that can be read.
pub fn imported(server: ImportedServer, path: &str, text: &str) -> ImportedConfiguration {
    let file = ConfigurationFile { path: path.into(), text: text.to_owned() };
    let choices = ImportChoices { root: Some("/srv".as_ref()), ..ImportChoices::default() };
    let imported = import(server, &[file], &choices, &mut NothingIncluded)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let parsed: Result<toml::Table, _> = toml::from_str(&imported.text);
    parsed.unwrap_or_else(|error| panic!("{error}\n{}", imported.text));
    imported
}

/// The rules, without comments and headings, one rule on a line.
pub fn rules(imported: &ImportedConfiguration) -> Vec<String> {
    let rules = imported.text.split("[[rule]]\n").skip(1);
    let lines = |rule: &str| {
        let lines = rule.lines().take_while(|line| !line.is_empty() && !line.starts_with('['));
        lines.collect::<Vec<_>>().join("; ")
    };
    rules.map(lines).collect()
}
