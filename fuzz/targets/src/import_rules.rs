//! Configurations of nginx and Apache: nothing panics, each directive has one line in the report, and no value adds a
//! line to the configuration that is written.
//!
//! The first byte chooses the server: an even one is nginx. The rest is the file.

use import_rules::{ConfigurationFile, ImportChoices, ImportedServer, NothingIncluded, import};

/// Imports the data as a configuration of nginx and of Apache.
pub fn run(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let server = if first % 2 == 0 { ImportedServer::Nginx } else { ImportedServer::Apache };
    let file = ConfigurationFile { path: "/srv/www/.htaccess".into(), text: text.to_owned() };
    let redirect_file = Some("/srv/redirects.tsv".as_ref());
    let choices = ImportChoices { redirect_file, ..ImportChoices::default() };
    let Ok(imported) = import(server, &[file], &choices, &mut NothingIncluded) else { return };
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
