//! `[access_log]` as used: whether, where and in which format responses are logged.
//!
//! All sites of a process share one log: lines contain the host. `access_log_format::Format` parses
//! the format; no file is opened here.

use super::raw;
use super::resolve::{LoadError, wrong};
use super::units::parse_bytes;
use access_log_format::{BUFFER_BYTES_MIN, Format, Masks};
use std::path::PathBuf;

/// The default size of all buffers together.
const BUFFER_BYTES: usize = 4 << 20;
/// The maximum size of all buffers together.
const BUFFER_BYTES_MAX: usize = 1 << 30;
/// The socket of the system's log daemon.
const DEV_LOG: &str = "/dev/log";

/// The settings of the access log.
#[derive(Clone, Debug)]
pub struct AccessLog {
    /// The destination of the lines.
    pub to: AccessLogTo,
    /// The format of the lines.
    pub format: Format,
    /// Maximum size of unwritten lines, in bytes.
    pub buffer_bytes: usize,
}

/// The destination of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLogTo {
    /// Lines are appended to a file.
    File(PathBuf),
    /// Lines go to standard output.
    Stdout,
    /// Lines go to the daemon that listens at this socket.
    Syslog(PathBuf),
}

/// Checks and completes `[access_log]`; `None` if there is no access log.
pub(super) fn resolve(raw: &raw::AccessLog) -> Result<Option<AccessLog>, LoadError> {
    let Some(to) = &raw.to else {
        let said = raw.format.is_some() || raw.buffer.is_some();
        return if said || raw.mask_addresses.is_some() || raw.mask_queries.is_some() {
            wrong("access_log.to", "the destination is missing: write a file, stdout or syslog")
        } else {
            Ok(None)
        };
    };
    let masks = Masks {
        addresses: raw.mask_addresses.unwrap_or(false),
        queries: raw.mask_queries.unwrap_or(false),
    };
    let format = Format::read(raw.format.as_deref().unwrap_or("combined"), masks)
        .or_else(|why| wrong("access_log.format", why.0))?;
    let buffer_bytes = match &raw.buffer {
        None => BUFFER_BYTES,
        Some(text) => parse_bytes(text).or_else(|e| wrong("access_log.buffer", e))? as usize,
    };
    if !(BUFFER_BYTES_MIN..=BUFFER_BYTES_MAX).contains(&buffer_bytes) {
        return wrong("access_log.buffer", "must be 384K to 1G");
    }
    Ok(Some(AccessLog { to: destination(to)?, format, buffer_bytes }))
}

fn destination(to: &str) -> Result<AccessLogTo, LoadError> {
    match (to, to.strip_prefix("syslog:")) {
        ("stdout", _) => Ok(AccessLogTo::Stdout),
        ("syslog", _) => Ok(AccessLogTo::Syslog(DEV_LOG.into())),
        (_, Some(path)) if path.starts_with('/') => Ok(AccessLogTo::Syslog(path.into())),
        (path, None) if path.starts_with('/') => Ok(AccessLogTo::File(path.into())),
        _ => wrong(
            "access_log.to",
            format!(
                "{to:?}: the path of a file, beginning with /; stdout; syslog, or syslog:/its/socket"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<AccessLog>, String> {
        resolve(&toml::from_str(text).unwrap()).map_err(|error| error.0)
    }

    #[test]
    fn where_lines_go() {
        assert!(read("").unwrap().is_none());
        for (to, right) in [
            ("/var/log/a", AccessLogTo::File("/var/log/a".into())),
            ("stdout", AccessLogTo::Stdout),
            ("syslog", AccessLogTo::Syslog("/dev/log".into())),
            ("syslog:/run/log", AccessLogTo::Syslog("/run/log".into())),
        ] {
            let log = read(&format!("to = {to:?}")).unwrap().unwrap();
            assert_eq!((log.to, log.buffer_bytes), (right, 4 << 20));
        }
    }

    #[test]
    fn invalid_values_are_refused_with_a_reason() {
        for (text, part) in [
            ("to = \"access.log\"", "beginning with /"),
            ("to = \"syslog:x\"", "syslog:/its/socket"),
            ("format = \"json\"", "access_log.to"),
            ("to = \"stdout\"\nformat = \"{x}\"", "access_log.format: there is no field {x}"),
            ("to = \"stdout\"\nbuffer = \"1K\"", "384K to 1G"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
