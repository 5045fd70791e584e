//! The configurations that fourteen applications document, in our own words: each is imported, and nearly all of its
//! directives have a counterpart. `acceptance --test operations` compares the answers with nginx and Apache.

use import_rules::{
    ConfigurationFile, DirectiveFate, ImportChoices, ImportedConfiguration, ImportedServer,
    NothingIncluded, import,
};
use std::fs;
use std::path::Path;

/// All documents: the name of the application, its server, and the import.
fn documents() -> Vec<(String, ImportedServer, ImportedConfiguration)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents");
    let entries = fs::read_dir(directory).expect("the documents");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let server = match path.extension().and_then(|end| end.to_str()) {
            Some("nginx") => ImportedServer::Nginx,
            Some("htaccess") => ImportedServer::Apache,
            _ => continue,
        };
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a document");
        let text = text.replace("@root@", "/srv/www").replace("@php@", "/run/php.sock");
        let file = ConfigurationFile { path: "/srv/www/.htaccess".into(), text };
        let choices = ImportChoices::default();
        let imported = import(server, &[file], &choices, &mut NothingIncluded)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        all.push((name, server, imported));
    }
    assert_eq!(all.len(), 14);
    all
}

#[test]
fn nearly_all_directives_have_a_counterpart() {
    let (mut total, mut missing) = (0, 0);
    let mut counts = DirectiveFate::ALL.map(|fate| (fate, 0));
    for (name, _, imported) in documents() {
        let report = &imported.report;
        println!("==== {name}\n{}\n---- {name}\n{}", imported.text, report.text());
        total += report.directives.len();
        missing += report.count(DirectiveFate::NotTranslated);
        for (fate, count) in &mut counts {
            *count += report.count(*fate);
        }
        let parsed: Result<toml::Table, _> = toml::from_str(&imported.text);
        parsed.unwrap_or_else(|error| panic!("{name}: {error}\n{}", imported.text));
    }
    println!("{total} directives: {counts:?}");
    assert!(missing * 20 <= total, "{missing} of {total} are not translated");
}
