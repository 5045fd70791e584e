//! `[memcached]`: the addresses of the memcached port, the maximum size of an item, and the assumed
//! duration of a render whose beginning is unknown. Disabled if there is no address. The protocol
//! has no authentication, so only local addresses are allowed.

use super::Address;
use super::address::parse_address;
use super::raw;
use super::resolve::{LoadError, words, wrong};
use super::units::{parse_bytes, parse_duration};
use std::time::Duration;

/// The default maximum size of an item in bytes, as in memcached.
const ITEM_BYTES: usize = 1 << 20;
/// The default permissions of a Unix socket: every local user, as for a local port.
const SOCKET_MODE: u32 = 0o666;
/// The default maximum duration of a render.
const RENDER_TIME: Duration = Duration::from_secs(60);

/// The settings of the memcached port.
#[derive(Clone, Debug)]
pub struct Memcached {
    /// The addresses of the port.
    pub listen: Vec<Address>,
    /// The permission bits of its Unix sockets.
    pub socket_mode: u32,
    /// Maximum size of an item in bytes, as memcached counts them.
    pub item_bytes_max: usize,
    /// Maximum time between the beginning of a page's render and its storing.
    pub render_time: Duration,
}

/// Checks and completes `[memcached]`; `None` if it is disabled.
pub(super) fn resolve(raw: &raw::Memcached) -> Result<Option<Memcached>, LoadError> {
    const LISTEN: &str = "memcached.listen";
    let words = words(&raw.listen);
    let listen: Vec<_> =
        words.iter().map(|word| parse_address(LISTEN, word)).collect::<Result<_, _>>()?;
    if let Some(open) = listen.iter().find(|address| !address.is_local()) {
        return wrong(
            LISTEN,
            format!(
                "{open} can be reached from other machines, and memcached's protocol has no authentication; use a loopback address or a unix: path"
            ),
        );
    }
    let item_bytes_max = match &raw.item_bytes {
        None => ITEM_BYTES,
        Some(text) => parse_bytes(text).or_else(|e| wrong("memcached.item_bytes", e))? as usize,
    };
    if !(1_024..=1 << 30).contains(&item_bytes_max) {
        return wrong("memcached.item_bytes", "must be 1K to 1G");
    }
    let render_time = match &raw.render_time {
        None => RENDER_TIME,
        Some(text) => parse_duration(text).or_else(|e| wrong("memcached.render_time", e))?,
    };
    if !(Duration::from_secs(1)..=Duration::from_secs(3_600)).contains(&render_time) {
        return wrong("memcached.render_time", "must be 1s to 1h");
    }
    let socket_mode = socket_mode(raw.socket_mode.as_deref())?;
    Ok((!listen.is_empty()).then_some(Memcached {
        listen,
        socket_mode,
        item_bytes_max,
        render_time,
    }))
}

/// Parses permission bits in the syntax of `chmod`.
fn socket_mode(text: Option<&str>) -> Result<u32, LoadError> {
    let Some(text) = text else { return Ok(SOCKET_MODE) };
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 && mode & 0o200 != 0 => Ok(mode),
        _ => wrong(
            "memcached.socket_mode",
            format!(
                "{text:?}: write permission bits as for chmod, such as \"660\" or \"666\"; the owner must be able to write"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Memcached>, String> {
        resolve(&toml::from_str(text).unwrap()).map_err(|error| error.0)
    }

    #[test]
    fn it_is_off_unless_it_has_an_address() {
        assert!(read("").unwrap().is_none());
        let on = read("listen = \"127.0.0.1:11211\"").unwrap().unwrap();
        assert_eq!(on.socket_mode, 0o666);
        assert_eq!((on.item_bytes_max, on.render_time), (1 << 20, Duration::from_secs(60)));
    }

    #[test]
    fn invalid_values_are_refused_with_a_reason() {
        assert!(read("listen = \"0.0.0.0:11211\"").unwrap_err().contains("loopback"));
        for mode in ["rw", "999", "1777", "044"] {
            let error = read(&format!("socket_mode = \"{mode}\"")).unwrap_err();
            assert!(error.contains("chmod"), "{mode}: {error}");
        }
        assert!(read("item_bytes = \"1\"").unwrap_err().contains("1K to 1G"));
        assert!(read("render_time = \"2h\"").unwrap_err().contains("1s to 1h"));
    }
}
