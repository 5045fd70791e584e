//! `[cluster]`: the Valkey or Redis stream through which nodes exchange invalidations. It is
//! followed like a database ([`Database`]), but has no rules: its entries contain names. Disabled
//! if there is no URL. No connection is made here.

use super::database::url::{DatabaseUrl, read_stream};
use super::database::{BARRIER, WAIT_MAX, on_lag, password, wait};
use super::raw;
use super::resolve::{LoadError, wrong};
use super::{Database, DatabaseKind, DatabaseServer, SharedStream, UnpublishedWrites};
use change_feed::Rules;
use std::sync::Arc;
use std::time::Duration;

/// Its name in the log and in a snapshot, in place of a database's name.
pub const CLUSTER: &str = "cluster";
/// The default key of the stream, without the host.
const KEY: &str = "pagewell";
/// Maximum length of the configured key, in bytes.
const KEY_MAX: usize = 256;
/// The default number of entries: about 20 MB in Valkey, if changes are short.
const KEEP: u64 = 100_000;

/// Checks and completes `[cluster]`; `None` if it is disabled. `host` is the site's.
pub(super) fn resolve(
    raw: &raw::ClusterKeys,
    host: Option<&str>,
    databases: &[Arc<Database>],
) -> Result<Option<Arc<Database>>, LoadError> {
    let raw::ClusterKeys { url, password_file, key, keep, on_lag: lag, .. } = raw;
    let raw::ClusterKeys { lag_max, barrier, unpublished, .. } = raw;
    let Some(url) = url else {
        let texts = [key, lag, lag_max, barrier, unpublished];
        let others = texts.iter().any(|text| text.is_some()) || keep.is_some();
        return if others || password_file.is_some() {
            wrong("cluster.url", "is required, because it turns the cluster on")
        } else {
            Ok(None)
        };
    };
    if databases.iter().any(|database| database.name == CLUSTER) {
        return wrong("database.name", "\"cluster\" is reserved for [cluster]");
    }
    let DatabaseUrl { place, mut account, tls, by, .. } =
        read_stream(url).or_else(|why| wrong("cluster.url", why))?;
    if let Some(path) = password_file {
        account.password = password("cluster.password_file", path)?;
    }
    if !account.user.is_empty() && account.password.is_empty() {
        return wrong("cluster.url", "a user without a password: redis://user:password@host:port");
    }
    let mut key = key.clone().unwrap_or_else(|| KEY.into());
    if key.is_empty() || key.len() > KEY_MAX {
        return wrong("cluster.key", format!("must have 1 to {KEY_MAX} bytes"));
    }
    if let Some(host) = host {
        key = format!("{key}:{host}");
    }
    let keep = keep.unwrap_or(KEEP);
    if !(1_000..=1_000_000_000).contains(&keep) {
        return wrong("cluster.keep", format!("{keep}: must be 1000 to 1000000000"));
    }
    let unpublished = match unpublished.as_deref() {
        None | Some("accept") => UnpublishedWrites::Accept,
        Some("refuse") => UnpublishedWrites::Refuse,
        Some(other) => {
            return wrong("cluster.unpublished", format!("{other:?}: must be accept or refuse"));
        }
    };
    let kind = DatabaseKind::Valkey(SharedStream { key, keep, unpublished });
    Ok(Some(Arc::new(Database {
        name: CLUSTER.into(),
        server: DatabaseServer { kind, place, account, tls, by },
        rules: Rules::default(),
        on_lag: on_lag("cluster", lag, lag_max)?,
        barrier: wait("cluster.barrier", barrier, BARRIER, WAIT_MAX)?,
        // Published changes have been committed, and every reader sees them.
        settle: Duration::ZERO,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, host: Option<&str>) -> Result<Option<Arc<Database>>, String> {
        let file: raw::File = toml::from_str(text).map_err(|error| error.to_string())?;
        resolve(&file.cluster, host, &[]).map_err(|error| error.0)
    }

    fn key(text: &str, host: Option<&str>) -> String {
        let found = read(text, host).expect("it can be used").expect("there is one");
        let DatabaseKind::Valkey(SharedStream { key, .. }) = &found.server.kind else {
            panic!("a stream")
        };
        key.clone()
    }

    #[test]
    fn its_key_has_the_site_in_it() {
        let url = "cluster.url = \"redis://localhost\"\n";
        assert_eq!(key(url, None), "pagewell");
        assert_eq!(key(url, Some("a.example")), "pagewell:a.example");
        assert_eq!(key(&format!("{url}cluster.key = \"x\""), Some("a")), "x:a");
        assert!(read("", Some("a")).expect("nothing").is_none());
    }

    #[test]
    fn an_invalid_value_is_refused_with_a_reason() {
        let url = "cluster.url = \"redis://localhost\"\n";
        for (text, part) in [
            ("cluster.key = \"x\"".to_owned(), "cluster.url"),
            ("cluster.keep = 5000".to_owned(), "cluster.url"),
            ("cluster.url = \"http://a\"".to_owned(), "write redis://"),
            ("cluster.url = \"redis://me@a\"".to_owned(), "a user without a password"),
            (format!("{url}cluster.key = \"\""), "1 to 256"),
            (format!("{url}cluster.keep = 1"), "1000 to"),
            (format!("{url}cluster.on_lag = \"x\""), "cluster.on_lag"),
            (format!("{url}cluster.unpublished = \"x\""), "accept or refuse"),
            (format!("{url}cluster.barrier = \"2m\""), "at most"),
            (format!("{url}cluster.password_file = \"/no/such\""), "/no/such"),
            (format!("{url}stream.slot = \"a\""), "unknown field"),
        ] {
            let said = read(&text, None).expect_err("refused");
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
