//! The files that a configuration names and that Pagewell reads: certificates, secrets, password files, redirects,
//! error pages, networks. `pagewell check` tests them as the user of the service, and so does a start as root.
//!
//! Invariant: every option that names such a file is here. A test compares with the types of the file as written, but
//! for those that its function `fields` does not see.
//! Not here: the configuration file, whose path the configuration does not have; directories, sockets and programs;
//! files that are sent to clients.

use super::raw::File;
use super::{Config, Database, OriginConfig};
use std::path::PathBuf;
use std::sync::Arc;

/// A file that the configuration of a site names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredFile {
    /// The key that names it.
    pub key: &'static str,
    /// The path as configured.
    pub path: PathBuf,
    /// When it is read.
    pub is_for: FileUse,
}

/// When Pagewell reads a file that the configuration names. The uses are in the order of their
/// consequences if the file cannot be read, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileUse {
    /// At the start, before root becomes another user, and at each reload, which fails if it cannot be read.
    Reload,
    /// At the start in the same way, and when it has changed: a certificate or its key.
    Renewal,
    /// As the user that serves: the certificates of authorities for connections to other servers.
    Connection,
}

impl FileUse {
    /// The consequence if the user that serves cannot read the file after a start as root, as the end of a sentence.
    #[must_use]
    pub fn consequence(self) -> &'static str {
        match self {
            FileUse::Reload => "a reload that cannot read it fails",
            FileUse::Renewal => "a renewed file is not used until the next restart",
            FileUse::Connection => "without it, no certificate of the server is trusted",
        }
    }
}

impl Config {
    /// The files that this site's configuration names; those of the top of the file are in each site.
    pub fn files_read(&self) -> impl Iterator<Item = ConfiguredFile> {
        let file = |is_for| {
            move |(key, path): (&'static str, PathBuf)| ConfiguredFile { key, path, is_for }
        };
        let redirects = self.redirect_files.watched().map(|one| ("site.redirect_files", one));
        let pages = self.error_pages.watched().map(|one| ("error_pages", one));
        let watched = redirects.chain(pages).map(|(key, one)| (key, one.path().to_owned()));
        let passwords = self.rules.auth_rules();
        let passwords = passwords.map(|rule| ("rule.auth_file", PathBuf::from(&*rule.file)));
        let of_acme = self.acme.iter().flat_map(|acme| acme.secret_files.iter().cloned());
        let values = self.value_files.iter().cloned().chain(of_acme);
        let pairs = self.tls.iter();
        let pairs = pairs
            .flat_map(|pair| [("tls.certificate", &pair.certificate), ("tls.key", &pair.key)])
            .map(|(key, path)| (key, path.clone()));
        let origin = match &self.site.origin {
            OriginConfig::Http(servers) => servers.ca_file.clone(),
            OriginConfig::FastCgi(_) | OriginConfig::OwnPhp(_) => None,
        };
        let origin = origin.map(|path| ("site.origin_tls.ca_file", path));
        let databases = self.databases.iter().map(|one| ("database.url", one));
        let cluster = self.cluster.iter().map(|one| ("cluster.url", one));
        let authorities = databases.chain(cluster).filter_map(|(key, one)| authorities(key, one));
        let reloaded = watched.chain(passwords).chain(values).map(file(FileUse::Reload));
        let connections = origin.into_iter().chain(authorities).map(file(FileUse::Connection));
        reloaded.chain(pairs.map(file(FileUse::Renewal))).chain(connections)
    }
}

/// The file of the authorities that a database's URL names (`ssl-ca`).
fn authorities(key: &'static str, database: &Arc<Database>) -> Option<(&'static str, PathBuf)> {
    let path = database.server.tls.as_ref()?.authorities.clone()?;
    Some((key, path))
}

/// The files with a value of the configuration, as written for one site. Those of `[acme]` are in
/// [`super::Acme::secret_files`].
pub(super) fn value_files(file: &File) -> Vec<(&'static str, PathBuf)> {
    let one = [
        ("admin_token_file", &file.admin_token_file),
        ("purge.token_file", &file.purge.token_file),
        ("cookies.secret_file", &file.cookies.secret_file),
        ("cluster.password_file", &file.cluster.password_file),
    ];
    let databases = file.database.iter();
    let databases = databases.map(|one| ("database.password_file", &one.password_file));
    let crawlers = file.misses.crawlers.iter().map(|one| ("misses.crawlers.ranges", &one.ranges));
    let all = one.into_iter().chain(databases).chain(crawlers);
    all.filter_map(|(key, path)| Some((key, path.clone()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;

    /// The fields of the file as written that have a path, or the word `file` in their name, each with the key under
    /// which `files_read` has the file; `None`: Pagewell reads no such file.
    const FIELDS: [(&str, Option<&str>); 26] = [
        ("File.admin_token_file", Some("admin_token_file")),
        ("File.uploads", None),
        ("File.error_pages", Some("error_pages")),
        ("AcmeKeys.storage", None),
        ("AcmeKeys.seal_key_file", Some("acme.seal_key_file")),
        ("AcmeKeys.copy", None),
        ("EabKeys.key_file", Some("acme.eab.key_file")),
        ("Database.password_file", Some("database.password_file")),
        ("AutomaticKeys.capture_directory", None),
        ("ClusterKeys.password_file", Some("cluster.password_file")),
        ("Tls.certificate", Some("tls.certificate")),
        ("Tls.key", Some("tls.key")),
        ("Site.root", None),
        ("Site.internal_files", None),
        ("Site.redirect_files", Some("site.redirect_files")),
        ("Site.error_pages", Some("error_pages")),
        ("OriginTls.ca_file", Some("site.origin_tls.ca_file")),
        ("Php.binary", None),
        ("CrawlerKeys.ranges", Some("misses.crawlers.ranges")),
        ("Snapshot.directory", None),
        ("Codings.files_beside", None),
        ("Purge.token_file", Some("purge.token_file")),
        ("Cookies.secret_file", Some("cookies.secret_file")),
        ("Rule.file", None),
        ("Rule.auth_file", Some("rule.auth_file")),
        ("Rule.file_cache", None),
    ];
    /// Keys whose value is a URL with the name of a file in its query.
    const URLS: [&str; 2] = ["database.url", "cluster.url"];

    /// The fields of the types in this source that have a path, or the word `file` in their name, as `Type.field`. It
    /// does not see the fields of an enum's variant, nor a path that is a `String` under another name.
    fn fields(source: &str) -> Vec<String> {
        let (mut of, mut all) = ("", Vec::new());
        for line in source.lines().take_while(|line| !line.starts_with("#[cfg(test)]")) {
            if let Some(name) = line.strip_prefix("pub struct ") {
                of = name.trim_end_matches(" {");
            }
            let field = line.strip_prefix("    pub ").and_then(|field| field.split_once(": "));
            if let Some((name, kind)) = field
                && !name.contains(' ')
                && (kind.contains("PathBuf")
                    || name.split('_').any(|word| matches!(word, "file" | "files")))
            {
                all.push(format!("{of}.{name}"));
            }
        }
        all
    }

    #[test]
    fn every_option_that_names_a_file_is_known_here() {
        let rules = include_str!("../../../../cache/site-rules/src/raw.rs");
        let found: BTreeSet<String> =
            fields(include_str!("raw.rs")).into_iter().chain(fields(rules)).collect();
        let known: BTreeSet<String> = FIELDS.iter().map(|(field, _)| (*field).to_owned()).collect();
        assert_eq!(found, known, "a new option: add it to files_read, and to FIELDS");
    }

    #[test]
    fn each_of_them_is_named_with_its_path() {
        let dir = std::env::temp_dir().join(format!("pagewell-files-read-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let at = |name: &str| dir.join(name).display().to_string();
        let secret = "0f".repeat(32);
        for (name, text) in [
            ("index.php", "<?php"),
            ("404.html", "four"),
            ("moved", "/a\t/b\n"),
            ("users", "anna:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n"),
            ("ranges", "192.0.2.0/24\n"),
            ("eab", "AQID\n"),
            ("secret", &secret),
        ] {
            fs::write(at(name), text).expect("written");
        }
        let secret = at("secret");
        let text = format!(
            "listen_tls = \"127.0.0.1:1\"\nadmin_token_file = {secret:?}\n\
             purge.token_file = {secret:?}\ncookies.secret_file = {secret:?}\n\
             [[tls]]\ncertificate = \"/x/tls.pem\"\nkey = \"/x/tls.key\"\n\
             [acme]\nstorage = \"valkey\"\nseal_key_file = {secret:?}\n\
             eab = {{ key_id = \"k\", key_file = {eab:?} }}\n\
             [cluster]\nurl = \"rediss://localhost?ssl-ca=/x/cluster.pem\"\npassword_file = {secret:?}\n\
             [[misses.crawlers]]\nname = \"mine\"\nranges = {ranges:?}\n\
             [[database]]\nurl = \"mysql://p@db.test/shop?ssl-mode=verify-ca&ssl-ca=/x/database.pem\"\n\
             password_file = {secret:?}\n\
             [[change]]\ntable = \"x\"\ntags = [\"y\"]\n\
             [[rule]]\npath = \"/staff/*\"\nauth_file = {users:?}\n\
             [[site]]\nhost = \"a.test\"\norigin = \"https://127.0.0.1:1\"\n\
             origin_tls = {{ ca_file = \"/x/origin.pem\" }}\n\
             [[site]]\nhost = \"b.test\"\nroot = {dir:?}\nphp = {{ at = \"127.0.0.1:1\" }}\n\
             redirect_files = [{moved:?}]\nerror_pages = {{ 404 = \"404.html\" }}\n",
            eab = at("eab"),
            ranges = at("ranges"),
            users = at("users"),
            moved = at("moved"),
        );
        let config = super::super::resolve(&toml::from_str(&text).expect("a configuration"));
        let config = config.expect("it can be used");
        let found: Vec<ConfiguredFile> = config.all_sites().flat_map(Config::files_read).collect();
        let of = |key: &'static str| found.iter().filter(move |file| file.key == key);
        for key in FIELDS.iter().filter_map(|(_, key)| *key).chain(URLS) {
            assert!(of(key).next().is_some(), "{key}: {found:?}");
        }
        let uses = |key: &'static str, path: &str, is_for| {
            let file = of(key).find(|file| file.path.ends_with(path));
            assert_eq!(file.map(|file| file.is_for), Some(is_for), "{key}: {found:?}");
        };
        uses("database.password_file", "secret", FileUse::Reload);
        uses("rule.auth_file", "users", FileUse::Reload);
        uses("error_pages", "404.html", FileUse::Reload);
        uses("tls.key", "tls.key", FileUse::Renewal);
        for (key, path) in [
            ("database.url", "database.pem"),
            ("cluster.url", "cluster.pem"),
            ("site.origin_tls.ca_file", "origin.pem"),
        ] {
            uses(key, path, FileUse::Connection);
        }
        fs::remove_dir_all(&dir).expect("removed");
    }
}
