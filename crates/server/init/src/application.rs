//! Recognises the application in a directory: by files that only it has. Its document root, database and
//! host are read from its configuration as text.
//!
//! No password leaves this module. A setting that is not a literal is unknown, and is said to be.
//! Not here: what Pagewell does with each application ([`crate::plan`]).

mod dotenv;
mod settings;

use crate::machine::ExaminedMachine;
use crate::php_source::Setting;
use command_line::options::SiteKind;
use config::DOCUMENT_ROOTS;
use std::path::{Path, PathBuf};

/// A site: the application in a directory.
#[derive(Debug, Clone, Default)]
pub struct FoundSite {
    /// The application that was recognised.
    pub kind: SiteKind,
    /// The document root of the site.
    pub root: PathBuf,
    /// The version, if a file names it.
    pub version: Option<String>,
    /// The host in the application's own configuration.
    pub host: Option<String>,
    /// The application's database; `None` if it names none.
    pub database: Option<SiteDatabase>,
    /// Whether WooCommerce is installed.
    pub has_shop: bool,
    /// Whether an object cache outlives the requests of WordPress.
    pub has_persistent_cache: bool,
    /// Whether it is a network of several blogs (multisite).
    pub is_network: bool,
    /// The file of the site that sets `auto_prepend_file`, if one does.
    pub prepend_setting: Option<PathBuf>,
    /// The file of the site that sets `open_basedir`, if one does.
    pub basedir_setting: Option<PathBuf>,
    /// Whether Pagewell's plugin or extension is installed.
    pub has_plugin: bool,
    /// Files that could not be read, and settings that are unknown: sentences.
    pub doubts: Vec<String>,
}

/// The database that an application uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteDatabase {
    /// The protocol of its server.
    pub product: DatabaseProduct,
    /// The server: a host with an optional port, or a host, a colon and a socket.
    pub host: Setting,
    /// The name of the database.
    pub name: Setting,
    /// The application's account at the server.
    pub user: Setting,
    /// The text before the name of each table.
    pub prefix: Setting,
}

/// The kind of a database server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DatabaseProduct {
    /// MariaDB or MySQL.
    #[default]
    MySql,
    /// PostgreSQL.
    Postgres,
    /// SQLite, or an unknown one: it cannot be followed.
    Other,
}

/// Recognises the application in `dir`, or takes the one that the operator has named.
///
/// # Errors
/// There is no such directory, or no application in it: what is missing, where, and what to do.
pub fn recognise(
    machine: &ExaminedMachine,
    dir: &Path,
    named: Option<SiteKind>,
) -> Result<FoundSite, String> {
    let shown = dir.display();
    match machine.metadata(dir) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(format!("{shown} is a file: name the directory of the site")),
        Err(error) => {
            let is_loop = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
            let why =
                if is_loop { "it is a loop of symbolic links".into() } else { error.to_string() };
            return Err(format!("{shown} cannot be opened: {why}; name the directory of the site"));
        }
    }
    let candidates = [Some(dir), dir.parent().filter(|_| is_document_root(dir))];
    let kinds = named.map_or_else(|| SiteKind::ALL.to_vec(), |kind| vec![kind]);
    for kind in kinds {
        for project in candidates.iter().flatten() {
            if let Some(root) = root_of(machine, project, kind) {
                let mut site = FoundSite { kind, root, ..FoundSite::default() };
                settings::read(machine, project, &mut site);
                return Ok(site);
            }
        }
    }
    Err(match named {
        Some(kind) => format!(
            "{shown}: there is no {} here: {} is missing; name the directory in which it is installed, or leave \
             --application out",
            kind.title(),
            sign_of(kind)
        ),
        None => format!(
            "{shown}: no PHP site was recognised: neither it nor its public, web, htdocs, pub or html has an \
             index.php; name the directory of the site"
        ),
    })
}

fn is_document_root(dir: &Path) -> bool {
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    DOCUMENT_ROOTS.contains(&name)
}

/// The file by which an application is recognised, relative to its document root or project.
fn sign_of(kind: SiteKind) -> &'static str {
    match kind {
        SiteKind::WordPress => "wp-includes/version.php",
        SiteKind::MediaWiki => "includes/WebStart.php",
        SiteKind::Magento => "bin/magento",
        SiteKind::Drupal => "core/lib/Drupal.php",
        SiteKind::Laravel => "artisan",
        SiteKind::Symfony => "config/bundles.php",
        SiteKind::Php => "index.php",
    }
}

/// The document root of this application in a project's directory, if it is there.
fn root_of(machine: &ExaminedMachine, project: &Path, kind: SiteKind) -> Option<PathBuf> {
    let sign = sign_of(kind);
    let has = |dir: &Path| machine.is_file(&dir.join(sign));
    match kind {
        SiteKind::Magento => (has(project)).then(|| project.join("pub")),
        SiteKind::Laravel | SiteKind::Symfony => has(project).then(|| project.join("public")),
        _ => {
            let below = DOCUMENT_ROOTS.iter().map(|name| project.join(name));
            let root = std::iter::once(project.to_owned()).chain(below).find(|dir| has(dir));
            // WordPress in a directory of its own below the document root, as Bedrock installs it.
            let inner = || {
                let web = project.join("web");
                (kind == SiteKind::WordPress && has(&web.join("wp"))).then_some(web)
            };
            root.or_else(inner)
        }
    }
}
