//! The decisions of `pagewell init`: which server is in front, where Pagewell listens, which php-fpm it uses,
//! and how pages are purged. Pure: facts and answers in, a plan out.
//!
//! Values of the site's own files are hostile: they get into a file of root and into commands that root
//! copies. So only plain names are used ([`plain_name`]); any other is unknown.

use crate::application::{DatabaseProduct, FoundSite};
use crate::change_stream::ChangeStream;
use crate::facts::MachineFacts;
use crate::memory::page_budget;
use crate::php_pools::{PREPEND_FILE, PhpPool};
use crate::web_server::{ServedSite, WebServer, accepted_bytes};
use command_line::options::SiteKind;
use config::Limits;
use std::path::{Path, PathBuf};

/// The address of an HTTP origin behind Pagewell: Apache, or nginx for Magento.
pub const HTTP_ORIGIN: &str = "http://127.0.0.1:8000";
/// Maximum length of a printed value or sentence.
const TEXT_MAX: usize = 1_000;
/// The socket of the system's php-fpm if no pool was found.
const DEFAULT_PHP: &str = "unix:/run/php/php-fpm.sock";

/// A complete decision about one site.
#[derive(Debug, Clone)]
pub struct SetupPlan {
    /// The site that was recognised.
    pub site: FoundSite,
    /// The canonical host of the site.
    pub host: Option<String>,
    /// The other hosts of the site.
    pub aliases: Vec<String>,
    /// The server in front of Pagewell, or the origin behind it.
    pub front: FrontServer,
    /// Pagewell's address for visitors.
    pub listen: String,
    /// The address of the control interface, if it is not the default.
    pub admin: Option<String>,
    /// The address of php-fpm.
    pub php: String,
    /// The pool at this address.
    pub pool: Option<PhpPool>,
    /// The page budget in megabytes.
    pub memory: Option<u64>,
    /// Whether and how the database is followed.
    pub following: DatabaseFollowing,
}

impl SetupPlan {
    /// The address of php-fpm in the configuration of the web server, and the file that names it.
    #[must_use]
    pub fn php_of_server(&self) -> Option<(&str, &Path)> {
        match &self.front {
            FrontServer::Nginx(served) | FrontServer::Apache(served) => {
                served.php.as_deref().map(|at| (at, served.file.as_path()))
            }
            FrontServer::Other(_) | FrontServer::Nobody => None,
        }
    }

    /// The address at which another program of this machine reaches Pagewell.
    #[must_use]
    pub fn reached_at(&self) -> String {
        match self.listen.rsplit_once(':') {
            Some(("" | "0.0.0.0" | "[::]", port)) => format!("127.0.0.1:{port}"),
            _ => self.listen.clone(),
        }
    }

    /// Whether nginx passes the requests of this host to Pagewell already.
    #[must_use]
    pub fn has_nginx_in_front(&self) -> bool {
        let at = self.reached_at();
        matches!(&self.front, FrontServer::Nginx(served) if served.passes_to.contains(&at))
    }

    /// The size of a request's content that nginx in front accepts, as its configuration has it. `None`: its default.
    #[must_use]
    pub fn body_size(&self) -> Option<&str> {
        match &self.front {
            FrontServer::Nginx(served) => served.body_size.as_deref(),
            FrontServer::Apache(_) | FrontServer::Other(_) | FrontServer::Nobody => None,
        }
    }

    /// The value of `limits.body_bytes` with which Pagewell accepts as much as nginx in front, if its default is
    /// smaller. nginx may also have no limit: Pagewell always has one.
    #[must_use]
    pub fn body_bytes(&self) -> Option<String> {
        let size = self.body_size()?;
        let is_larger = |bytes: &u64| *bytes > Limits::default().body_bytes && *bytes < u64::MAX;
        accepted_bytes(size).filter(is_larger).map(|_| size.to_ascii_uppercase())
    }

    /// Whether the database is on another machine, as far as it can be followed.
    #[must_use]
    pub fn has_distant_database(&self) -> bool {
        match &self.following {
            DatabaseFollowing::Ready(database) | DatabaseFollowing::Prepared(database) => {
                database.stream.is_none()
            }
            DatabaseFollowing::Not(_) => false,
        }
    }
}

/// The server that visitors connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrontServer {
    /// nginx serves this host, and stays in front.
    Nginx(ServedSite),
    /// Apache serves this host, and moves behind Pagewell.
    Apache(ServedSite),
    /// Another program uses port 80 or 443.
    Other(String),
    /// No other server: Pagewell itself.
    Nobody,
}

/// Whether the database of the site is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseFollowing {
    /// All is set up: it is written into the configuration.
    Ready(FollowedDatabase),
    /// It is written as a comment, until its commands have been run.
    Prepared(FollowedDatabase),
    /// It is not recommended, with the reason as a sentence.
    Not(String),
}

/// A database that Pagewell can follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedDatabase {
    /// The URL, without a password.
    pub url: String,
    /// The name of the database.
    pub name: String,
    /// The text before the name of each table.
    pub prefix: String,
    /// The server, if it is on this machine.
    pub stream: Option<ChangeStream>,
}

/// The answers of the operator, by options or at the terminal.
#[derive(Debug, Clone, Default)]
pub struct OperatorAnswers {
    /// The canonical host of the site.
    pub host: Option<String>,
    /// The address of php-fpm.
    pub php: Option<String>,
}

/// Makes the plan. `owner` is the user to whom the document root belongs.
#[must_use]
pub fn plan(
    site: FoundSite,
    facts: &MachineFacts,
    answers: &OperatorAnswers,
    owner: Option<&str>,
) -> SetupPlan {
    let served = served(&site, facts, answers.host.as_deref());
    let names = served.as_ref().map_or(&[][..], |served| &served.names);
    let host = answers.host.clone().or(site.host.clone()).or(names.first().cloned());
    let has_default_port = served.as_ref().is_none_or(ServedSite::has_default_port);
    let port = host.as_ref().and_then(|host| host.split_once(':')).filter(|_| !has_default_port);
    let with_port = |name: &String| match port {
        Some((_, port)) => format!("{name}:{port}"),
        None => name.clone(),
    };
    let names = names.iter().map(with_port);
    let aliases = names.filter(|name| host.as_ref().is_some_and(|host| host != name)).collect();
    let of_server = served.as_ref().and_then(|served| served.php.clone());
    let pool = match answers.php.as_ref().or(of_server.as_ref()) {
        Some(at) => facts.pools.iter().find(|pool| pool.is_at(at)),
        None => likely_pool(facts, owner),
    };
    let php = answers.php.clone().or(of_server).or(pool.map(|pool| pool.at.clone()));
    let front = front(served, facts);
    let listen = listen(&front, &site, facts);
    let following = following(&site, &front, pool, facts);
    SetupPlan {
        host,
        aliases,
        listen,
        admin: admin(facts),
        php: php.unwrap_or_else(|| DEFAULT_PHP.into()),
        pool: pool.cloned(),
        memory: facts.memory.map(page_budget),
        following,
        front,
        site,
    }
}

/// The pool that probably runs this site: that of the owner of its files, or the newest.
#[must_use]
pub fn likely_pool<'a>(facts: &'a MachineFacts, owner: Option<&str>) -> Option<&'a PhpPool> {
    let of_owner = facts.pools.iter().find(|pool| Some(pool.user.as_str()) == owner);
    of_owner.or(facts.pools.first())
}

/// The site of a web server with this document root, or else with this host.
fn served(site: &FoundSite, facts: &MachineFacts, host: Option<&str>) -> Option<ServedSite> {
    let host = host.or(site.host.as_deref()).and_then(|host| host.split(':').next());
    let has_root =
        |served: &&ServedSite| served.root.as_deref().is_some_and(|root| same(root, &site.root));
    let has_host =
        |served: &&ServedSite| served.names.iter().any(|name| Some(name.as_str()) == host);
    let both = |served: &&ServedSite| has_root(served) && has_host(served);
    let all = || facts.sites.iter();
    let mut found = all().find(both).or(all().find(has_root)).or(all().find(has_host))?.clone();
    // Certificates, names and Pagewell's address may be in a second block: that of port 443.
    for other in facts.sites.iter().filter(|other| other.server == found.server) {
        if other.names.iter().any(|name| found.names.contains(name)) {
            found.certificate = found.certificate.or(other.certificate.clone());
            found.passes_to.extend(other.passes_to.iter().cloned());
            found.listens.extend(&other.listens);
            let more: Vec<_> =
                other.names.iter().filter(|name| !found.names.contains(name)).cloned().collect();
            found.names.extend(more);
        }
    }
    Some(found)
}

fn same(one: &Path, other: &Path) -> bool {
    one.components().eq(other.components())
}

fn front(served: Option<ServedSite>, facts: &MachineFacts) -> FrontServer {
    let program = facts.other_program(80).or(facts.other_program(443));
    match (served, program) {
        (Some(served), _) if served.server == WebServer::Nginx => FrontServer::Nginx(served),
        (Some(served), _) => FrontServer::Apache(served),
        (None, Some(program)) => FrontServer::Other(plain_text(program)),
        (None, None) => FrontServer::Nobody,
    }
}

/// Port 80 if it is free and no server stays in front, otherwise a free port of this machine alone.
fn listen(front: &FrontServer, site: &FoundSite, facts: &MachineFacts) -> String {
    if *front == FrontServer::Nobody && site.kind != SiteKind::Magento {
        return ":80".into();
    }
    format!("127.0.0.1:{}", free_port(facts, [8080, 8180, 8280]))
}

/// The address of the control interface, if the default one is in use.
fn admin(facts: &MachineFacts) -> Option<String> {
    let port = free_port(facts, [8081, 8181, 8281]);
    (port != 8081).then(|| format!("127.0.0.1:{port}"))
}

fn free_port(facts: &MachineFacts, ports: [u16; 3]) -> u16 {
    ports.into_iter().find(|port| facts.other_program(*port).is_none()).unwrap_or(ports[0])
}

fn following(
    site: &FoundSite,
    front: &FrontServer,
    pool: Option<&PhpPool>,
    facts: &MachineFacts,
) -> DatabaseFollowing {
    let not = |why: &str| DatabaseFollowing::Not(why.to_owned());
    if let Some(why) = not_automatic(site, front) {
        return not(why);
    }
    if let Some(file) = prepend_setting(site, front, pool) {
        return DatabaseFollowing::Not(format!(
            "Automatic dependencies are left out: {} sets auto_prepend_file to another file, and PHP loads only one.",
            plain_text(&file.display().to_string())
        ));
    }
    let Some(database) = &site.database else {
        return not("The database is unknown, so it is not followed.");
    };
    let known = |setting: &crate::php_source::Setting| {
        setting.known().filter(|name| plain_name(name)).map(str::to_owned)
    };
    let prefix = database.prefix.known().filter(|prefix| prefix.is_empty() || plain_name(prefix));
    let (Some(name), Some(prefix), Some(host)) =
        (known(&database.name), prefix, database.host.known())
    else {
        return not(
            "The name, host or table prefix of the database is unknown, so it is not followed.",
        );
    };
    let Some((place, is_here)) = place(host, facts) else {
        return not("The host of the database is unusual, so it is not followed.");
    };
    if is_here && facts.stream.is_none() {
        return not(
            "Neither MariaDB nor MySQL was found on this machine, so the database is not followed.",
        );
    }
    let (host, query) = place;
    let stream = if is_here { facts.stream.clone() } else { None };
    let is_ready = facts.has_password_file
        && (!is_here || stream.as_ref().is_some_and(|stream| stream.missing.is_empty()));
    let url = format!("mysql://pagewell@{host}/{name}{query}");
    let followed = FollowedDatabase { url, name, prefix: prefix.to_owned(), stream };
    if is_ready {
        DatabaseFollowing::Ready(followed)
    } else {
        DatabaseFollowing::Prepared(followed)
    }
}

/// The file that has PHP load another file before each script than Pagewell's. That of the site has precedence. The
/// setting of php.ini is none of these: Pagewell's file loads it.
fn prepend_setting<'a>(
    site: &'a FoundSite,
    front: &'a FrontServer,
    pool: Option<&'a PhpPool>,
) -> Option<&'a Path> {
    let is_other = |pool: &&PhpPool| !pool.prepend.is_empty() && pool.prepend != PREPEND_FILE;
    let of_pool = || pool.filter(is_other).map(|pool| pool.file.as_path());
    let of_server = || match front {
        FrontServer::Nginx(served) if served.sets_prepend => Some(served.file.as_path()),
        _ => None,
    };
    site.prepend_setting.as_deref().or_else(of_pool).or_else(of_server)
}

/// The reason why automatic dependencies are not recommended for this site.
fn not_automatic(site: &FoundSite, front: &FrontServer) -> Option<&'static str> {
    let is_mysql =
        site.database.as_ref().is_none_or(|database| database.product == DatabaseProduct::MySql);
    match site.kind {
        SiteKind::WordPress if site.has_persistent_cache => Some(
            "Automatic dependencies are left out: the object cache (object-cache.php) answers reads without \
             SQL, so they would not be seen.",
        ),
        SiteKind::WordPress if site.is_network => Some(
            "Automatic dependencies are left out: a network of blogs (multisite) is not covered.",
        ),
        SiteKind::WordPress if matches!(front, FrontServer::Apache(_)) => Some(
            "Automatic dependencies are left out: they need PHP over FastCGI, and Apache calls PHP here.",
        ),
        SiteKind::WordPress if !is_mysql => {
            Some("Automatic dependencies are left out: they need MariaDB or MySQL.")
        }
        SiteKind::WordPress => None,
        SiteKind::Php => Some(
            "Automatic dependencies are the other way, if the code connects to MariaDB or MySQL at localhost: \
             they need no call in the code.",
        ),
        _ => Some("Automatic dependencies are not needed beside it."),
    }
}

/// The host and the query of a database's URL, and whether it is on this machine.
fn place(host: &str, facts: &MachineFacts) -> Option<((String, String), bool)> {
    let (name, behind) = host.split_once(':').unwrap_or((host, ""));
    let plain_path = |path: &str| path.starts_with('/') && path[1..].split('/').all(plain_name);
    match (name, behind) {
        ("localhost" | "127.0.0.1" | "", behind)
            if behind.parse::<u16>().is_err() || behind == "3306" =>
        {
            let default =
                || facts.stream.as_ref().map(|stream| stream.socket.display().to_string());
            let socket = if behind.starts_with('/') { Some(behind.to_owned()) } else { default() };
            let socket = socket.unwrap_or_else(|| "/run/mysqld/mysqld.sock".into());
            plain_path(&socket).then(|| (("localhost".into(), format!("?socket={socket}")), true))
        }
        (_, "") if plain_name(name) => Some(((name.to_owned(), String::new()), false)),
        (_, port) if plain_name(name) && port.parse::<u16>().is_ok() => {
            Some(((host.to_owned(), String::new()), false))
        }
        _ => None,
    }
}

/// Whether a name has only letters, digits, `_`, `-` and `.`, so that it means itself in SQL, URLs, TOML and
/// the shell.
#[must_use]
pub fn plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !name.is_empty() && name.len() <= 255 && !name.starts_with('-') && name.chars().all(is_plain)
}

/// A text for a terminal or a comment: one line, without control characters.
#[must_use]
pub fn plain_text(text: &str) -> String {
    text.chars().take(TEXT_MAX).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A path as the shell reads it.
#[must_use]
pub fn shell_path(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@' | ',');
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The directory of WordPress's plugins.
#[must_use]
pub fn plugins(root: &Path) -> PathBuf {
    root.join("wp-content/plugins")
}
