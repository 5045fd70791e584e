//! `[acme]`: certificates from a certificate authority. The table is the agreement to the authority's terms.
//! Invariant: secrets are not shown by `Debug`. The names of certificates are those of the sites; who obtains them,
//! and when, is decided in the crate `acme`. No connection is made here.

use super::raw;
use super::resolve::{LoadError, SECRET_BYTES_MAX, wrong};
use super::{Database, DatabaseKind, DatabaseServer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The default certificate authority: Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// The directory that keeps certificates and keys by default.
const STORAGE: &str = "/var/lib/pagewell/acme";
/// The directory for a node's copy of certificates in Valkey by default.
const COPY: &str = "/var/lib/pagewell/acme-copy";
/// Maximum number of further certificate authorities.
const FALLBACK_MAX: usize = 4;

/// The settings of automatic certificates.
#[derive(Clone, Debug)]
pub struct Acme {
    /// The address that the certificate authority may write to.
    pub email: Option<String>,
    /// The URL of the certificate authority's directory (RFC 8555 section 7.1.1).
    pub directory: String,
    /// Further certificate authorities, used after failures of the first.
    pub fallback: Vec<String>,
    /// The profile of certificates; `None`: the default of the authority.
    pub profile: Option<String>,
    /// The account at the first authority to which ours is bound.
    pub eab: Option<ExternalAccount>,
    /// Where certificates, keys and accounts are stored.
    pub storage: AcmeStorage,
    /// The directory of this node's copy of the certificates, if it has one.
    pub copy: Option<PathBuf>,
    /// The files that secrets were read from, each with the name of its key in the configuration.
    pub secret_files: Vec<(&'static str, PathBuf)>,
}

/// The key for the file of the external account's key.
const EAB_KEY_FILE: &str = "acme.eab.key_file";
/// The key for the file of the key that seals values in Valkey.
const SEAL_KEY_FILE: &str = "acme.seal_key_file";

/// An account that was made outside of ACME (RFC 8555 section 7.3.4).
#[derive(Clone, Debug)]
pub struct ExternalAccount {
    /// The identifier of the account's key.
    pub key_id: String,
    /// The secret key of the account.
    pub key: SecretBytes,
}

/// A secret, which is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretBytes(pub Vec<u8>);

impl std::fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} secret bytes", self.0.len())
    }
}

/// Where certificates, keys and accounts are stored.
#[derive(Clone, Debug)]
pub enum AcmeStorage {
    /// A directory, of this machine or shared by several.
    Directory(PathBuf),
    /// The server of the cluster.
    Valkey {
        /// The server, as `[cluster]` names it.
        server: Box<DatabaseServer>,
        /// The first part of all keys.
        prefix: String,
        /// The key that seals all values: 32 bytes.
        seal_key: SecretBytes,
    },
}

/// Checks and completes `[acme]`; `None` if the file has no such table.
pub(super) fn resolve(
    raw: Option<&raw::AcmeKeys>,
    cluster: Option<&Arc<Database>>,
) -> Result<Option<Acme>, LoadError> {
    let Some(raw) = raw else { return Ok(None) };
    let directory = raw.directory.clone().unwrap_or_else(|| LETS_ENCRYPT.into());
    check_url("acme.directory", &directory)?;
    if raw.fallback.len() > FALLBACK_MAX {
        return wrong("acme.fallback", format!("at most {FALLBACK_MAX} authorities"));
    }
    for url in &raw.fallback {
        check_url("acme.fallback", url)?;
    }
    if let Some(email) = &raw.email {
        let is_plain = email.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'?');
        if !is_plain || email.len() > 254 || !email.contains('@') || email.starts_with("mailto:") {
            return wrong(
                "acme.email",
                format!("{email:?}: write an address, as admin@example.org"),
            );
        }
    }
    if raw.profile.as_ref().is_some_and(|profile| profile.is_empty()) {
        return wrong("acme.profile", "is empty: write a name such as tlsserver, or remove it");
    }
    let eab = raw.eab.as_ref().map(external_account).transpose()?;
    let storage = storage(raw, cluster)?;
    let copy = copy(raw, &storage)?;
    let (email, profile) = (raw.email.clone(), raw.profile.clone());
    let of_account = raw.eab.iter().map(|eab| (EAB_KEY_FILE, eab.key_file.clone()));
    let of_seal = raw.seal_key_file.iter().map(|file| (SEAL_KEY_FILE, file.clone()));
    let secret_files = of_account.chain(of_seal).collect();
    let fallback = raw.fallback.clone();
    Ok(Some(Acme { email, directory, fallback, profile, eab, storage, copy, secret_files }))
}

/// The directory of the copy. A storage in a directory has one only if it is named: mostly that is this machine's.
fn copy(raw: &raw::AcmeKeys, storage: &AcmeStorage) -> Result<Option<PathBuf>, LoadError> {
    let (default, is_same) = match storage {
        AcmeStorage::Directory(path) => (None, Some(path) == raw.copy.as_ref()),
        AcmeStorage::Valkey { .. } => (Some(PathBuf::from(COPY)), false),
    };
    let copy = raw.copy.clone().or(default);
    match copy {
        Some(path) if !path.is_absolute() || is_same => {
            wrong("acme.copy", format!("{path:?}: write an absolute path other than acme.storage"))
        }
        copy => Ok(copy),
    }
}

fn check_url(key: &str, url: &str) -> Result<(), LoadError> {
    let is_https = url.strip_prefix("https://").is_some_and(|rest| !rest.is_empty());
    let is_uri = url.parse::<http::Uri>().is_ok_and(|uri| uri.host().is_some());
    if is_https && is_uri {
        Ok(())
    } else {
        wrong(key, format!("{url:?}: must be an https:// URL, such as {LETS_ENCRYPT}"))
    }
}

fn external_account(raw: &raw::EabKeys) -> Result<ExternalAccount, LoadError> {
    if raw.key_id.is_empty() || raw.key_file.as_os_str().is_empty() {
        return wrong(
            "acme.eab",
            "needs key_id and key_file: the certificate authority shows them",
        );
    }
    let text = secret_text(EAB_KEY_FILE, &raw.key_file)?;
    match base64(text.trim()) {
        Some(key) if !key.is_empty() => {
            Ok(ExternalAccount { key_id: raw.key_id.clone(), key: SecretBytes(key) })
        }
        _ => wrong(EAB_KEY_FILE, format!("{}: must be the key in base64", raw.key_file.display())),
    }
}

fn storage(raw: &raw::AcmeKeys, cluster: Option<&Arc<Database>>) -> Result<AcmeStorage, LoadError> {
    let place = raw.storage.clone().unwrap_or_else(|| STORAGE.into());
    if place != Path::new("valkey") {
        if raw.seal_key_file.is_some() {
            return wrong(SEAL_KEY_FILE, "is only for storage = \"valkey\"");
        }
        if !place.is_absolute() {
            let why = format!("{place:?}: write an absolute path, or \"valkey\"");
            return wrong("acme.storage", why);
        }
        return Ok(AcmeStorage::Directory(place));
    }
    let Some(cluster) = cluster else {
        return wrong("acme.storage", "\"valkey\" needs cluster.url, whose server is used");
    };
    let DatabaseKind::Valkey(stream) = &cluster.server.kind else {
        return wrong("acme.storage", "\"valkey\" needs cluster.url, whose server is used");
    };
    let Some(file) = &raw.seal_key_file else {
        return wrong(
            SEAL_KEY_FILE,
            "is required for storage = \"valkey\": keys are not sent there in clear text. \
             Make one, the same for all nodes: openssl rand -hex 32 > /etc/pagewell/seal.key",
        );
    };
    let text = secret_text(SEAL_KEY_FILE, file)?;
    let Some(seal_key) = hexadecimal(text.trim()) else {
        let why = "must be 64 hexadecimal digits: openssl rand -hex 32";
        return wrong(SEAL_KEY_FILE, format!("{}: {why}", file.display()));
    };
    // The nodes of a cluster have one key of the stream in common.
    let prefix = format!("{}:acme:", stream.key);
    let server = Box::new(cluster.server.clone());
    Ok(AcmeStorage::Valkey { server, prefix, seal_key: SecretBytes(seal_key) })
}

fn secret_text(key: &str, path: &Path) -> Result<String, LoadError> {
    trusted_files::read_text(path, SECRET_BYTES_MAX)
        .or_else(|error| wrong(key, format!("{}: {error}", path.display())))
}

/// 32 bytes from hexadecimal digits.
fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len() == 64)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Bytes from base64, in the usual alphabet or that for URLs, with or without padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    (count < 6).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Acme>, String> {
        let file: raw::File = toml::from_str(text).map_err(|error| error.to_string())?;
        resolve(file.acme.as_ref(), None).map_err(|error| error.0)
    }

    #[test]
    fn the_table_alone_is_enough() {
        assert!(read("").expect("valid").is_none());
        let acme = read("[acme]").expect("valid").expect("a table");
        assert_eq!(acme.directory, LETS_ENCRYPT);
        assert!(matches!(acme.storage, AcmeStorage::Directory(path) if path == Path::new(STORAGE)));
        assert_eq!(acme.copy, None);
        let acme = read("[acme]\ncopy = \"/x\"").expect("valid").expect("a table");
        assert_eq!(acme.copy.as_deref(), Some(Path::new("/x")));
    }

    #[test]
    fn a_wrong_value_is_named() {
        let of = |text: &str| read(&format!("[acme]\n{text}")).expect_err(text);
        assert!(of("directory = \"http://a.test/\"").contains("must be an https:// URL"));
        assert!(of("fallback = [\"ca\"]").starts_with("acme.fallback: "));
        assert!(of("email = \"admin\"").starts_with("acme.email: "));
        assert!(of("storage = \"acme\"").contains("absolute path"));
        assert!(of("storage = \"valkey\"").contains("needs cluster.url"));
        assert!(of("seal_key_file = \"/x\"").contains("only for storage"));
        assert!(of("copy = \"acme\"").starts_with("acme.copy: "));
        assert!(of("storage = \"/x\"\ncopy = \"/x\"").contains("other than acme.storage"));
        assert!(of("mail = \"a@b\"").contains("unknown field"));
    }

    #[test]
    fn keys_are_read_from_text() {
        assert_eq!(base64("AQID_-8"), Some(vec![1, 2, 3, 255, 239]));
        assert_eq!(base64("AQID/+8="), Some(vec![1, 2, 3, 255, 239]));
        assert_eq!(base64("a b"), None);
        assert_eq!(hexadecimal(&"0f".repeat(32)), Some(vec![15; 32]));
        assert_eq!(hexadecimal("0f"), None);
        assert_eq!(format!("{:?}", SecretBytes(vec![7; 32])), "32 secret bytes");
    }
}
