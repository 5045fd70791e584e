//! `pagewell import`: the configuration of nginx or Apache as one of Pagewell.
//!
//! Start at [`import`]. Both syntaxes become the same tree of directives (`source`); `nginx` and `apache` translate what
//! it intends into a site and its rules (`draft`); `report` says what became of each line. Files are read by the caller
//! and never executed.
//!
//! Invariant: a restriction (denial, password, network) that has no exact translation becomes wider, never narrower, or
//! is reported as missing. All input is bounded (`source`).
//!
//! Not here: whether Pagewell accepts the text (`pagewell check`).

mod apache;
mod draft;
mod fields;
mod nginx;
mod pattern;
mod report;
mod source;
mod target;

pub use nginx::FASTCGI_PARAMETERS;
pub use report::{DirectiveFate, DirectiveReport, ImportReport};
pub use source::{ConfigurationError, ConfigurationFile, IncludedFiles, NothingIncluded};

use report::Judgements;
use source::{SourceLine, Sources};
use std::path::Path;

/// The server whose configuration is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportedServer {
    /// nginx.
    Nginx,
    /// Apache, with `.htaccess`.
    Apache,
}

/// The choices of the operator.
#[derive(Debug, Clone, Default)]
pub struct ImportChoices<'a> {
    /// The site with this host, if the files have several.
    pub host: Option<&'a str>,
    /// The document root, if the files do not name it.
    pub root: Option<&'a Path>,
    /// The path of a redirect file that the caller can write; without one, all redirects become rules.
    pub redirect_file: Option<&'a Path>,
}

/// A translated configuration with its report.
#[derive(Debug, Clone)]
pub struct ImportedConfiguration {
    /// The configuration of Pagewell.
    pub text: String,
    /// The text of the redirect file, if the configuration names it.
    pub redirects: Option<String>,
    /// The fate of each directive.
    pub report: ImportReport,
}

/// Translates the configuration files of a server.
///
/// # Errors
/// A file is no configuration, is too large, or has no site: the place, and what is wrong.
pub fn import(
    server: ImportedServer,
    files: &[ConfigurationFile],
    choices: &ImportChoices<'_>,
    included: &mut dyn IncludedFiles,
) -> Result<ImportedConfiguration, ConfigurationError> {
    let (mut sources, mut judgements) = (Sources::default(), Judgements::default());
    let (name, mut site) = match server {
        ImportedServer::Nginx => {
            let mut all = Vec::new();
            for file in files {
                all.extend(nginx::syntax::read(file, &mut sources, included, 0)?);
            }
            ("nginx", nginx::translate(&all, choices, &sources, &mut judgements)?)
        }
        ImportedServer::Apache => {
            let mut all = Vec::new();
            for file in files {
                all.push((file.path.clone(), apache::syntax::read(file, &mut sources)?));
            }
            ("htaccess", apache::translate(&all, choices, &mut judgements))
        }
    };
    if let Some(root) = choices.root {
        site.root = Some(root.display().to_string());
    }
    if site.rules.len() > RULES_MAX {
        let message = format!(
            "{} rules; Pagewell has {RULES_MAX} at most: use site.redirect_files",
            site.rules.len()
        );
        return Err(sources.error(SourceLine { file: 0, line: 1 }, &message));
    }
    let redirects = site.redirects();
    site.redirect_file = choices.redirect_file.filter(|_| redirects.is_some()).map(Path::to_owned);
    let text = site.text(name, &sources);
    Ok(ImportedConfiguration { text, redirects, report: judgements.report(&sources) })
}

/// The maximum number of rules of a site.
const RULES_MAX: usize = 500;

/// Reads a text as a configuration without translating it, for fuzzers: whether it is one.
pub fn is_readable(server: ImportedServer, text: &str) -> bool {
    let file = ConfigurationFile { path: "x".into(), text: text.to_owned() };
    let choices = ImportChoices::default();
    import(server, &[file], &choices, &mut NothingIncluded).is_ok()
}
