//! The packets of a login, as far as a relay changes them.
//!
//! The greeting loses the capabilities that would hide the statements or change their form: TLS, compression,
//! query attributes, the extensions of MariaDB. The response of the client must not use them all the same.
//!
//! With [`AccountCheck::Password`], the response names a login plugin that no server has, and has no proof.
//! A server then asks again, by a switch of the plugin ("Protocol::AuthSwitchRequest"), for each account that
//! is identified by what the client sends. An account that is identified by the user of the process alone
//! (`unix_socket`, `auth_socket`) is accepted without a switch: such a login is refused. One that has both, a
//! password or the user, passes that check; its name is the user's. Not here: passwords.

use crate::RelayRefused;
use mysql_wire::Refusal;
use mysql_wire::capabilities::{
    CLIENT_MYSQL, COMPRESS, CONNECT_WITH_DB, MULTI_FACTOR, OPTIONAL_METADATA, PLUGIN_AUTH,
    PLUGIN_AUTH_LENENC, PROGRESS, PROTOCOL_41, QUERY_ATTRIBUTES, SECURE_CONNECTION, SSL, ZSTD,
};
use mysql_wire::reader::Reader;

/// Capabilities that no client gets, each with its name in messages.
const REMOVED: [(u32, &str); 7] = [
    (SSL, "TLS for the database (SSL)"),
    (COMPRESS, "compression of the connection (MYSQLI_CLIENT_COMPRESS)"),
    (ZSTD, "compression of the connection (zstd)"),
    (OPTIONAL_METADATA, "results without metadata"),
    (QUERY_ATTRIBUTES, "query attributes"),
    (MULTI_FACTOR, "multi-factor authentication"),
    (PROGRESS, "progress reports"),
];
/// The plugin in the response of a client whose account must have a password.
const NO_PLUGIN: &[u8] = b"pagewell_needs_a_password";

/// Whether an account may be identified by the user of the process that connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountCheck {
    /// The client is the same user as the relay, or the server cannot see users: nothing to check.
    None,
    /// The server sees the relay's user instead of the client's: the account must have a password, and
    /// another name than that user, which is `None` if it is not known.
    Password(Option<String>),
}

/// The facts of a login that a relay needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoginFacts {
    /// The name of the account.
    pub user: Vec<u8>,
    /// The schema; empty if there is none.
    pub schema: Vec<u8>,
    /// The number of the collation.
    pub collation: u16,
    /// The capabilities of the client.
    pub capabilities: u32,
}

fn invalid(_: Refusal) -> RelayRefused {
    RelayRefused::Protocol("a packet of the login is not valid")
}

/// The greeting of a server without the removed capabilities.
///
/// # Errors
/// The greeting is not valid, or of another version of the protocol than 10, or of a server that is too old.
pub fn reduced_greeting(payload: &[u8]) -> Result<Vec<u8>, RelayRefused> {
    let mut reader = Reader::new(payload);
    if reader.u8().map_err(invalid)? != 10 {
        return Err(RelayRefused::Protocol("the database has another version of the protocol"));
    }
    reader.nul_bytes();
    // Connection id, challenge, filler.
    reader.take(4 + 8 + 1).map_err(invalid)?;
    let low_at = payload.len() - reader.rest().len();
    let low = reader.u16().map_err(invalid)?;
    // Character set, status.
    reader.take(3).map_err(invalid)?;
    let high_at = payload.len() - reader.rest().len();
    let high = reader.u16().map_err(invalid)?;
    // Length of the challenge, then ten bytes; MariaDB uses the last four.
    reader.take(1 + 10).map_err(invalid)?;
    let capabilities = u32::from(high) << 16 | u32::from(low);
    let needed = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;
    if capabilities & needed != needed {
        return Err(RelayRefused::Protocol("the database has too old a protocol"));
    }
    let kept = REMOVED.iter().fold(capabilities, |kept, (flag, _)| kept & !flag);
    let mut greeting = payload.to_vec();
    greeting[low_at..low_at + 2].copy_from_slice(&kept.to_le_bytes()[..2]);
    greeting[high_at..high_at + 2].copy_from_slice(&kept.to_le_bytes()[2..]);
    if capabilities & CLIENT_MYSQL == 0 {
        greeting[high_at + 9..high_at + 13].fill(0);
    }
    Ok(greeting)
}

/// Reads the response of a client to the greeting, and returns what the server gets.
///
/// # Errors
/// The response is not valid, or uses a removed capability.
pub fn checked_response(
    payload: &[u8],
    check: &AccountCheck,
) -> Result<(LoginFacts, Vec<u8>), RelayRefused> {
    let mut reader = Reader::new(payload);
    let capabilities = reader.u32().map_err(invalid)?;
    if capabilities & PROTOCOL_41 == 0 {
        return Err(RelayRefused::Protocol("the client has too old a protocol"));
    }
    if let Some((_, name)) = REMOVED.iter().find(|(flag, _)| capabilities & flag != 0) {
        return Err(RelayRefused::Capability(name));
    }
    // Maximum length of packets.
    reader.take(4).map_err(invalid)?;
    let collation = u16::from(reader.u8().map_err(invalid)?);
    let filler = reader.take(23).map_err(invalid)?;
    if capabilities & CLIENT_MYSQL == 0 && filler[19..].iter().any(|byte| *byte != 0) {
        return Err(RelayRefused::Capability("an extension of MariaDB"));
    }
    let head = &payload[..payload.len() - reader.rest().len()];
    let user = reader.nul_bytes();
    if capabilities & PLUGIN_AUTH_LENENC != 0 {
        reader.lenenc_bytes().map_err(invalid)?;
    } else if capabilities & SECURE_CONNECTION != 0 {
        let length = usize::from(reader.u8().map_err(invalid)?);
        reader.take(length).map_err(invalid)?;
    } else {
        reader.nul_bytes();
    }
    let schema = if capabilities & CONNECT_WITH_DB != 0 { reader.nul_bytes() } else { b"" };
    let facts =
        LoginFacts { user: user.to_vec(), schema: schema.to_vec(), collation, capabilities };
    let AccountCheck::Password(own) = check else {
        return Ok((facts, payload.to_vec()));
    };
    if own.as_ref().is_none_or(|own| own.as_bytes() == user) {
        return Err(RelayRefused::OwnName(String::from_utf8_lossy(user).into_owned()));
    }
    if capabilities & PLUGIN_AUTH == 0 {
        return Err(RelayRefused::Protocol("the client has too old a protocol"));
    }
    reader.nul_bytes();
    let mut changed = head.to_vec();
    put_nul(&mut changed, user);
    // An empty proof is one byte of zero in each of the three forms.
    changed.push(0);
    if capabilities & CONNECT_WITH_DB != 0 {
        put_nul(&mut changed, schema);
    }
    put_nul(&mut changed, NO_PLUGIN);
    changed.extend_from_slice(reader.rest());
    Ok((facts, changed))
}

/// The name of a plugin in a switch, from the payload after its first byte.
pub fn switched_plugin(payload: &[u8]) -> &[u8] {
    Reader::new(payload).nul_bytes()
}

/// Whether a plugin identifies the user of the process that connects.
pub fn is_socket_plugin(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"unix_socket") || name.eq_ignore_ascii_case(b"auth_socket")
}

/// The name, schema and collation of a change of user, from the payload after its first byte
/// ("COM_CHANGE_USER").
///
/// # Errors
/// The payload is not valid.
pub fn changed_user(payload: &[u8], capabilities: u32) -> Result<LoginFacts, RelayRefused> {
    let mut reader = Reader::new(payload);
    let user = reader.nul_bytes().to_vec();
    if capabilities & SECURE_CONNECTION != 0 {
        let length = usize::from(reader.u8().map_err(invalid)?);
        reader.take(length).map_err(invalid)?;
    } else {
        reader.nul_bytes();
    }
    let schema = reader.nul_bytes().to_vec();
    let collation = if reader.is_empty() { 0 } else { reader.u16().map_err(invalid)? };
    Ok(LoginFacts { user, schema, collation, capabilities })
}

fn put_nul(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

/// A valid greeting and response for the tests of this crate.
#[cfg(test)]
pub mod samples {
    use super::*;
    use mysql_wire::reader::put_lenenc;

    /// A greeting of MariaDB with all capabilities.
    pub fn greeting() -> Vec<u8> {
        let mut payload = b"\x0a10.11.19-MariaDB\0\x07\0\0\0abcdefgh\0".to_vec();
        payload.extend_from_slice(&[0xfe, 0xff, 45, 2, 0, 0xff, 0xff, 21, 0, 0, 0, 0, 0, 0]);
        payload.extend_from_slice(&[0x1d, 0, 0, 0]);
        payload.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        payload
    }

    /// A response with a proof of 20 bytes and attributes.
    pub fn response(more: u32) -> Vec<u8> {
        let capabilities = CLIENT_MYSQL
            | CONNECT_WITH_DB
            | PROTOCOL_41
            | SECURE_CONNECTION
            | PLUGIN_AUTH
            | PLUGIN_AUTH_LENENC
            | more;
        let mut payload = capabilities.to_le_bytes().to_vec();
        payload.extend_from_slice(&[0, 0, 0, 1, 45]);
        payload.extend_from_slice(&[0; 23]);
        payload.extend_from_slice(b"app\0");
        put_lenenc(&mut payload, 20);
        payload.extend_from_slice(&[9; 20]);
        payload.extend_from_slice(b"shop\0mysql_native_password\0\x05attrs");
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_capabilities_are_removed_from_the_greeting() {
        let (before, after) =
            (samples::greeting(), reduced_greeting(&samples::greeting()).expect("valid"));
        let differs: Vec<usize> =
            (0..before.len()).filter(|at| before[*at] != after[*at]).collect();
        assert_eq!(after.len(), before.len());
        // Both halves of the capabilities, and those of MariaDB.
        assert_eq!(differs, [31, 32, 37, 45]);
        for length in 0..40 {
            assert!(reduced_greeting(&before[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn the_response_asks_for_a_switch_where_a_password_is_needed() {
        let payload = samples::response(0);
        let other = AccountCheck::Password(Some("root".to_owned()));
        let (facts, same) = checked_response(&payload, &AccountCheck::None).expect("valid");
        assert_eq!(
            (facts.user, facts.schema, facts.collation),
            (b"app".into(), b"shop".into(), 45)
        );
        assert_eq!(same, payload);
        let (_, changed) = checked_response(&payload, &other).expect("valid");
        assert_eq!(changed[..36], payload[..36]);
        assert_eq!(&changed[36..], b"\0shop\0pagewell_needs_a_password\0\x05attrs");
        for own in [None, Some("app".to_owned())] {
            let refused = checked_response(&payload, &AccountCheck::Password(own));
            assert_eq!(refused, Err(RelayRefused::OwnName("app".to_owned())));
        }
        for (flag, name) in REMOVED {
            let refused = checked_response(&samples::response(flag), &AccountCheck::None);
            assert_eq!(refused, Err(RelayRefused::Capability(name)));
        }
        for length in 0..57 {
            let _ = checked_response(&payload[..length], &other);
        }
        assert!(checked_response(&payload[..50], &other).is_err());
    }

    #[test]
    fn a_change_of_user_is_read() {
        let facts = changed_user(b"app\0\x02xyshop\0\x2d\0plugin\0", SECURE_CONNECTION);
        let facts = facts.expect("valid");
        assert_eq!(
            (facts.user, facts.schema, facts.collation),
            (b"app".into(), b"shop".into(), 45)
        );
        assert!(changed_user(b"app\0\x09xy", SECURE_CONNECTION).is_err());
    }
}
