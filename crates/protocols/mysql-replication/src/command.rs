//! The commands of a replica: those that prepare its session, and the one that starts the stream.
//!
//! MariaDB receives the start position in session variables (its manual, "Replication protocol: connecting"),
//! MySQL in `COM_BINLOG_DUMP_GTID`; both support file and offset in `COM_BINLOG_DUMP`.
//!
//! **Choose the server id at random: a second replica with the same id disconnects the first**
//! ([`mysql_wire::response::ServerErrorKind::ServerIdTaken`]). Not here: semi-synchronous replication, filters
//! on the server.

use crate::position::{GtidList, GtidSet, Start};
use mysql_wire::commands::{COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID, COM_REGISTER_SLAVE};
use mysql_wire::greeting::Flavour;
use mysql_wire::query::command;

/// The flag for a set of GTIDs in the command.
const THROUGH_GTID: u16 = 0x04;

/// The statements that prepare a session, in order; the server answers each with OK. `heartbeat_seconds` is the
/// interval of heartbeats while there are no events; 0 keeps the server's default.
#[must_use]
pub fn prepare(flavour: Flavour, start: &Start, heartbeat_seconds: u32) -> Vec<String> {
    let nanoseconds = u64::from(heartbeat_seconds) * 1_000_000_000;
    // MySQL 8.0.26 and later prefer the second name, other servers know the first.
    let mut statements = match flavour {
        Flavour::MariaDb => vec!["SET @master_binlog_checksum=@@global.binlog_checksum".to_owned()],
        Flavour::MySql => vec![
            "SET @master_binlog_checksum=@@global.binlog_checksum, \
             @source_binlog_checksum=@@global.binlog_checksum"
                .to_owned(),
        ],
    };
    if nanoseconds > 0 {
        statements.push(match flavour {
            Flavour::MariaDb => format!("SET @master_heartbeat_period={nanoseconds}"),
            Flavour::MySql => format!(
                "SET @master_heartbeat_period={nanoseconds}, @source_heartbeat_period={nanoseconds}"
            ),
        });
    }
    if flavour == Flavour::MariaDb {
        // 4: the replica supports GTIDs and everything else that MariaDB 10 sends.
        statements.push("SET @mariadb_slave_capability=4".to_owned());
        if let Start::MariaDb(list) = start {
            statements.push(format!("SET @slave_connect_state='{list}'"));
            statements.push("SET @slave_gtid_strict_mode=1".to_owned());
            statements.push("SET @slave_gtid_ignore_duplicates=0".to_owned());
        }
    }
    statements
}

/// `COM_REGISTER_SLAVE`: the replica appears in `SHOW REPLICA HOSTS`. The stream does not need it. `host` is
/// cut to 60 bytes.
#[must_use]
pub fn register(server_id: u32, host: &str, port: u16) -> Vec<u8> {
    let mut payload = server_id.to_le_bytes().to_vec();
    let host = &host.as_bytes()[..host.len().min(60)];
    payload.push(host.len() as u8);
    payload.extend_from_slice(host);
    // No user, no password.
    payload.extend_from_slice(&[0, 0]);
    payload.extend_from_slice(&port.to_le_bytes());
    payload.extend_from_slice(&[0; 8]);
    command(COM_REGISTER_SLAVE, &payload)
}

/// The command that starts the stream at `start`.
#[must_use]
pub fn dump(server_id: u32, start: &Start) -> Vec<u8> {
    match start {
        Start::File(place) => dump_file(server_id, &place.file, place.offset),
        // The session variables contain the position.
        Start::MariaDb(GtidList { .. }) => dump_file(server_id, "", 4),
        Start::MySql(set) => dump_gtid(server_id, set),
    }
}

fn dump_file(server_id: u32, file: &str, offset: u64) -> Vec<u8> {
    // The command has 32 bits for the offset; larger offsets only occur within one huge transaction.
    let offset = u32::try_from(offset).unwrap_or(u32::MAX);
    let mut payload = offset.to_le_bytes().to_vec();
    payload.extend_from_slice(&0u16.to_le_bytes());
    payload.extend_from_slice(&server_id.to_le_bytes());
    payload.extend_from_slice(file.as_bytes());
    command(COM_BINLOG_DUMP, &payload)
}

fn dump_gtid(server_id: u32, set: &GtidSet) -> Vec<u8> {
    let encoded = set.encode();
    let mut payload = THROUGH_GTID.to_le_bytes().to_vec();
    payload.extend_from_slice(&server_id.to_le_bytes());
    // No file name; 4 is the offset of the first event of a file.
    payload.extend_from_slice(&0u32.to_le_bytes());
    payload.extend_from_slice(&4u64.to_le_bytes());
    payload.extend_from_slice(&(encoded.len() as u32).to_le_bytes());
    payload.extend_from_slice(&encoded);
    command(COM_BINLOG_DUMP_GTID, &payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::FilePosition;

    #[test]
    fn a_dump_by_file() {
        let start = Start::File(FilePosition { file: "bin.000007".into(), offset: 342 });
        let packet = dump(9, &start);
        assert_eq!(packet, b"\x15\0\0\0\x12\x56\x01\0\0\0\0\x09\0\0\0bin.000007");
    }

    #[test]
    fn mariadb_is_prepared_by_variables() {
        let start = Start::MariaDb("0-1-5,2-3-7".parse().expect("a list"));
        let statements = prepare(Flavour::MariaDb, &start, 2);
        assert!(statements.contains(&"SET @slave_connect_state='0-1-5,2-3-7'".to_owned()));
        assert!(statements.contains(&"SET @master_heartbeat_period=2000000000".to_owned()));
        assert_eq!(dump(9, &start), b"\x0b\0\0\0\x12\x04\0\0\0\0\0\x09\0\0\0");
    }

    #[test]
    fn mysql_is_prepared_by_a_set() {
        let set: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".parse().expect("a set");
        let packet = dump(9, &Start::MySql(set));
        // Header, code, flags, id, name length, position, set length; one id, one interval.
        assert_eq!(packet.len(), 4 + 1 + 2 + 4 + 4 + 8 + 4 + 8 + 16 + 8 + 16);
        assert_eq!(packet[4..7], [0x1e, 4, 0]);
    }
}
