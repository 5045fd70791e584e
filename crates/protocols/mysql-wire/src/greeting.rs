//! The server's greeting and the client's response: handshake version 10, capability flags.
//!
//! Source: "Protocol::HandshakeV10", "Protocol::HandshakeResponse41", "Protocol::SSLRequest", "Capability
//! Flags". Only capabilities that a replica needs are requested: no compression, no local files, no multiple
//! statements, EOF packets as in older versions.

use crate::Refusal;
use crate::capabilities::{
    CLIENT_MYSQL, CONNECT_WITH_DB, PLUGIN_AUTH, PLUGIN_AUTH_LENENC, PROTOCOL_41, SECURE_CONNECTION,
    SSL, TRANSACTIONS,
};
use crate::reader::{Reader, put_lenenc};

/// `utf8mb4_general_ci`: the collation of statements and names.
const UTF8MB4: u8 = 45;
const VERSION_MAX: usize = 256;

/// The kind of the server, which determines its protocol variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// MariaDB.
    MariaDb,
    /// MySQL and its derivatives.
    MySql,
}

impl Flavour {
    /// The kind of a server with this version, as stated in its greeting or its log.
    #[must_use]
    pub fn of_version(version: &str) -> Flavour {
        if version.to_ascii_lowercase().contains("mariadb") {
            Flavour::MariaDb
        } else {
            Flavour::MySql
        }
    }
}

/// The first packet of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// The version of the server, such as `5.5.5-10.11.6-MariaDB-log` or `8.0.36`.
    pub version: String,
    /// The id of this connection.
    pub connection_id: u32,
    /// Random bytes for the login, usually 20.
    pub challenge: Vec<u8>,
    /// The server's default login plugin; empty if it names none.
    pub plugin: String,
    capabilities: u32,
}

impl Greeting {
    /// Decodes the greeting.
    ///
    /// # Errors
    /// `UnexpectedPacket` for another version of the protocol; `Truncated`, `BadLength`.
    pub fn read(payload: &[u8]) -> Result<Greeting, Refusal> {
        let mut reader = Reader::new(payload);
        if reader.u8()? != 10 {
            return Err(Refusal::UnexpectedPacket);
        }
        let version = reader.nul_bytes();
        if version.len() > VERSION_MAX {
            return Err(Refusal::BadLength);
        }
        let version = String::from_utf8_lossy(version).into_owned();
        let connection_id = reader.u32()?;
        let mut challenge = reader.take(8)?.to_vec();
        reader.take(1)?;
        let mut capabilities = u32::from(reader.u16()?);
        // Character set, status.
        reader.take(3)?;
        capabilities |= u32::from(reader.u16()?) << 16;
        let challenge_len = usize::from(reader.u8()?);
        reader.take(10)?;
        if capabilities & SECURE_CONNECTION != 0 {
            let more = challenge_len.saturating_sub(8).max(13);
            challenge.extend_from_slice(reader.take(more.min(reader.rest().len()))?);
            // The trailing NUL is not part of the challenge.
            if challenge.last() == Some(&0) {
                challenge.pop();
            }
        }
        let plugin = if capabilities & PLUGIN_AUTH != 0 { reader.nul_bytes() } else { b"" };
        let plugin = String::from_utf8_lossy(plugin).into_owned();
        Ok(Greeting { version, connection_id, challenge, plugin, capabilities })
    }

    /// Whether the server supports TLS.
    #[must_use]
    pub fn offers_tls(&self) -> bool {
        self.capabilities & SSL != 0
    }

    /// The kind of the server.
    #[must_use]
    pub fn flavour(&self) -> Flavour {
        Flavour::of_version(&self.version)
    }

    /// The version without the prefix `5.5.5-`, which MariaDB 10 sends for old replicas.
    #[must_use]
    pub fn plain_version(&self) -> &str {
        match self.flavour() {
            Flavour::MariaDb => self.version.strip_prefix("5.5.5-").unwrap_or(&self.version),
            Flavour::MySql => &self.version,
        }
    }

    /// Whether the server is recent enough: protocol 4.1 with login plugins.
    #[must_use]
    pub fn is_recent(&self) -> bool {
        let needed = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;
        self.capabilities & needed == needed
    }

    fn wanted(&self, database: &str, with_tls: bool) -> u32 {
        let mut wanted = CLIENT_MYSQL
            | PROTOCOL_41
            | TRANSACTIONS
            | SECURE_CONNECTION
            | PLUGIN_AUTH
            | PLUGIN_AUTH_LENENC;
        if !database.is_empty() {
            wanted |= CONNECT_WITH_DB;
        }
        if with_tls {
            wanted |= SSL;
        }
        wanted & (self.capabilities | CLIENT_MYSQL)
    }

    /// The packet that requests TLS, sent before the login ("Protocol::SSLRequest").
    #[must_use]
    pub fn tls_request(&self, database: &str, packet_max: u32) -> Vec<u8> {
        opening(self.wanted(database, true), packet_max)
    }

    /// The login packet ("Protocol::HandshakeResponse41"). `proof` is the response of the plugin.
    #[must_use]
    pub fn login(&self, who: &LoginAs<'_>, proof: &[u8]) -> Vec<u8> {
        let wanted = self.wanted(who.database, who.with_tls);
        let mut out = opening(wanted, who.packet_max);
        out.extend_from_slice(who.user.as_bytes());
        out.push(0);
        if wanted & PLUGIN_AUTH_LENENC != 0 {
            put_lenenc(&mut out, proof.len() as u64);
        } else {
            out.push(proof.len().min(255) as u8);
        }
        out.extend_from_slice(proof);
        if wanted & CONNECT_WITH_DB != 0 {
            out.extend_from_slice(who.database.as_bytes());
            out.push(0);
        }
        if wanted & PLUGIN_AUTH != 0 {
            out.extend_from_slice(who.plugin.as_bytes());
            out.push(0);
        }
        out
    }
}

/// The data of a login packet.
#[derive(Debug, Clone, Copy)]
pub struct LoginAs<'a> {
    /// The name of the account.
    pub user: &'a str,
    /// The default database; may be empty.
    pub database: &'a str,
    /// The plugin that computed the response.
    pub plugin: &'a str,
    /// Whether the connection uses TLS.
    pub with_tls: bool,
    /// The maximum packet length that the client accepts, in bytes.
    pub packet_max: u32,
}

fn opening(capabilities: u32, packet_max: u32) -> Vec<u8> {
    let mut out = capabilities.to_le_bytes().to_vec();
    out.extend_from_slice(&packet_max.to_le_bytes());
    out.push(UTF8MB4);
    out.extend_from_slice(&[0; 23]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn greeting() -> Vec<u8> {
        let mut payload = b"\x0a5.5.5-10.11.6-MariaDB\0".to_vec();
        payload.extend_from_slice(&7u32.to_le_bytes());
        payload.extend_from_slice(b"abcdefgh\0");
        payload.extend_from_slice(&0xf7ffu16.to_le_bytes());
        payload.extend_from_slice(&[45, 2, 0]);
        payload.extend_from_slice(&0x81ffu16.to_le_bytes());
        payload.push(21);
        payload.extend_from_slice(&[0; 10]);
        payload.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        payload
    }

    #[test]
    fn a_greeting_is_read() {
        let greeting = Greeting::read(&greeting()).expect("a greeting");
        assert_eq!(greeting.challenge, b"abcdefghijklmnopqrst");
        assert_eq!(greeting.plugin, "mysql_native_password");
        assert_eq!((greeting.flavour(), greeting.connection_id), (Flavour::MariaDb, 7));
        assert_eq!(greeting.plain_version(), "10.11.6-MariaDB");
        assert!(greeting.is_recent() && !greeting.offers_tls());
    }

    #[test]
    fn a_cut_greeting_is_refused() {
        let whole = greeting();
        for len in 0..33 {
            assert!(Greeting::read(&whole[..len]).is_err(), "{len}");
        }
        assert_eq!(Greeting::read(b"\x09x"), Err(Refusal::UnexpectedPacket));
    }

    #[test]
    fn the_answer_carries_user_proof_database_and_plugin() {
        let greeting = Greeting::read(&greeting()).expect("a greeting");
        let who =
            LoginAs { user: "u", database: "d", plugin: "p", with_tls: false, packet_max: 1 << 24 };
        let packet = greeting.login(&who, b"xyz");
        assert_eq!(&packet[32..], b"u\0\x03xyzd\0p\0");
        assert_eq!(greeting.tls_request("d", 1 << 24).len(), 32);
    }
}
