//! MySQL's events, encoded by hand according to its source. Those of a real MySQL: `tests/mysql_recorded.rs`.
//!
//! Rows of version 2, a compressed transaction, JSON changed in part, GTIDs with and without a tag. Each stream
//! is encoded as the server would send it, including checksums.

use bytes::Bytes;
use mysql_replication::event::RowChange;
use mysql_replication::position::{GtidSet, Gtids, Start};
use mysql_replication::schema::TableShape;
use mysql_replication::{
    ChangeScope, Ending, FallbackReason, Interest, Limits, Step, StreamRefused, Transaction,
    Transactions, Value, Watch,
};
use mysql_wire::Refusal;
use mysql_wire::packet::Packet;
use std::sync::Arc;

struct All;

impl Watch for All {
    fn interest(&mut self, _: &str, _: &str) -> Interest {
        Interest::Rows
    }

    fn follows(&mut self, _: &str) -> bool {
        true
    }

    fn shape(&mut self, _: &str, _: &str) -> Option<Arc<TableShape>> {
        None
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}

/// An event without checksum: header and body.
fn inner(code: u8, body: &[u8], more: usize) -> Vec<u8> {
    let mut event = 1_700_000_000u32.to_le_bytes().to_vec();
    event.push(code);
    event.extend_from_slice(&7u32.to_le_bytes());
    event.extend_from_slice(&((19 + body.len() + more) as u32).to_le_bytes());
    event.extend_from_slice(&1234u32.to_le_bytes());
    event.extend_from_slice(&[0, 0]);
    event.extend_from_slice(body);
    event
}

/// A packet of the stream, with its checksum.
fn packet(code: u8, body: &[u8]) -> Packet {
    let mut event = inner(code, body, 4);
    event.extend_from_slice(&crc32(&event).to_le_bytes());
    event.insert(0, 0);
    let len = event.len() as u64;
    Packet::head_of(Bytes::from(event), len)
}

fn format() -> Packet {
    let mut body = vec![4, 0];
    let mut version = b"8.0.36".to_vec();
    version.resize(50, 0);
    body.extend_from_slice(&version);
    body.extend_from_slice(&[0, 0, 0, 0, 19]);
    let mut fixed = vec![0; 42];
    fixed[18] = 8;
    body.extend_from_slice(&fixed);
    body.push(1);
    packet(15, &body)
}

const UUID: [u8; 16] = *b"\x3e\x11\xfa\x47\x71\xca\x11\xe1\x9e\x33\xc8\x0a\xa9\x42\x95\x62";

fn gtid(number: u64) -> Packet {
    let mut body = vec![1];
    body.extend_from_slice(&UUID);
    body.extend_from_slice(&number.to_le_bytes());
    body.extend_from_slice(&[2; 17]);
    packet(33, &body)
}

fn query(sql: &str) -> Vec<u8> {
    let mut body = vec![0; 8];
    body.extend_from_slice(&[4, 0, 0, 0, 0]);
    body.extend_from_slice(b"news\0");
    body.extend_from_slice(sql.as_bytes());
    body
}

/// `t (id INT UNSIGNED, a VARCHAR(20), j JSON)`, with signs and a collation.
fn table_map() -> Vec<u8> {
    let mut body = vec![9, 0, 0, 0, 0, 0, 1, 0];
    body.extend_from_slice(b"\x04news\0\x01t\0\x03\x03\x0f\xf5");
    body.extend_from_slice(&[3, 20, 0, 4, 6]);
    // Numbers are unsigned; the collation is utf8mb4_0900_ai_ci.
    body.extend_from_slice(&[1, 1, 0x80, 2, 3, 0xfc, 255, 0]);
    body
}

fn rows_head(body: &mut Vec<u8>) {
    body.extend_from_slice(&[9, 0, 0, 0, 0, 0, 1, 0]);
    // Version 2: extra data of the server.
    body.extend_from_slice(&[5, 0, 1, 2, 3, 3]);
}

fn insert(id: u32, text: &str) -> Vec<u8> {
    let mut body = Vec::new();
    rows_head(&mut body);
    body.extend_from_slice(&[0b111, 0b100]);
    body.extend_from_slice(&id.to_le_bytes());
    body.push(text.len() as u8);
    body.extend_from_slice(text.as_bytes());
    body
}

fn follow(start: &str, packets: &[Packet]) -> (Vec<Transaction>, Gtids, Option<StreamRefused>) {
    let start = Start::MySql(start.parse().expect("a set"));
    let mut transactions = Transactions::new(&start, Limits::default(), All);
    let mut read = Vec::new();
    for packet in packets {
        match transactions.read(packet) {
            Ok(Step::Transaction(transaction)) => read.push(transaction),
            Ok(_) => {}
            Err(refused) => {
                return (read, transactions.position().gtids.clone(), Some(refused));
            }
        }
    }
    (read, transactions.position().gtids.clone(), None)
}

fn ids(transaction: &Transaction) -> Vec<String> {
    let mut ids = Vec::new();
    for change in &transaction.changes {
        let ChangeScope::Rows(rows) = &change.what else { panic!("{change:?}") };
        for change in rows.changes() {
            let change = change.expect("it can be read");
            let row = change.after.or(change.before).expect("a row");
            let text = |at| row.get(at).expect("a value").tag_text().expect("a text").into_owned();
            ids.push(format!("{}={}", text(0), text(1)));
        }
    }
    ids
}

fn number(text: &str) -> String {
    format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:{text}")
}

#[test]
fn rows_of_version_2() {
    let (read, position, refused) = follow(
        &number("1-4"),
        &[
            format(),
            gtid(5),
            packet(2, &query("BEGIN")),
            packet(19, &table_map()),
            packet(30, &insert(u32::MAX, "straße")),
            packet(16, &7u64.to_le_bytes()),
            gtid(6),
            packet(2, &query("ALTER TABLE t ADD b INT")),
            // The transaction ended without a commit.
            gtid(7),
            packet(2, &query("BEGIN")),
        ],
    );
    assert_eq!(refused, None);
    assert_eq!(ids(&read[0]), ["4294967295=straße"]);
    assert_eq!((read[0].ending, read[0].seconds), (Ending::Committed, 1_700_000_000));
    let why = |change: &ChangeScope| {
        matches!(change, ChangeScope::Table { why: FallbackReason::Defined, .. })
    };
    assert!(why(&read[1].changes[0].what));
    assert_eq!(position, Gtids::MySql(number("1-6").parse().expect("a set")));
}

/// The name of the file that is sent, as the server announces it without an event in the file.
fn rotate(file: &str) -> Packet {
    let mut body = 4u64.to_le_bytes().to_vec();
    body.extend_from_slice(file.as_bytes());
    let mut event = inner(4, &body, 4);
    event[13..17].copy_from_slice(&[0; 4]);
    event.extend_from_slice(&crc32(&event).to_le_bytes());
    event.insert(0, 0);
    let len = event.len() as u64;
    Packet::head_of(Bytes::from(event), len)
}

/// MySQL removes the creation time of files from a stream that starts behind the first GTID of one.
#[test]
fn a_file_after_the_servers_stop_or_with_the_gtids_that_were_read_goes_on() {
    let previous =
        |text: &str| packet(35, &number(text).parse::<GtidSet>().expect("a set").encode());
    let read = [
        rotate("bin.000001"),
        format(),
        gtid(1),
        packet(2, &query("BEGIN")),
        packet(16, &7u64.to_le_bytes()),
    ];
    let next = [rotate("bin.000002"), format()];
    let run = |more: &[Packet]| follow("", &[&read, more].concat()).2;
    let stop = [packet(3, &[])];
    assert_eq!(run(&[&stop[..], &next, &[previous("1-7")]].concat()), None);
    assert_eq!(run(&[&next[..], &[previous("1")]].concat()), None);
    assert_eq!(run(&[&next[..], &[previous("1-7")]].concat()), Some(StreamRefused::Replaced));
    // It counts for one file only.
    let again = [&stop[..], &next, &[rotate("bin.000003"), format(), previous("1-7")]].concat();
    assert_eq!(run(&again), Some(StreamRefused::Replaced));
}

fn payload(compression: u64, events: &[u8]) -> Packet {
    let mut body = vec![2, 1, compression as u8];
    if compression == 255 {
        body = vec![2, 3, 0xfc, 255, 0];
    }
    body.extend_from_slice(&[1, 1, events.len().min(250) as u8, 0]);
    body.extend_from_slice(events);
    packet(40, &body)
}

fn compressed_events() -> Vec<u8> {
    let mut events = inner(2, &query("BEGIN"), 0);
    events.extend(inner(19, &table_map(), 0));
    events.extend(inner(30, &insert(1, "a"), 0));
    events.extend(inner(30, &insert(2, "b"), 0));
    events.extend(inner(16, &7u64.to_le_bytes(), 0));
    events
}

#[test]
fn a_compressed_transaction() {
    let events = compressed_events();
    let zstd = zstd::bulk::compress(&events, 3).expect("memory");
    for packed in [payload(0, &zstd), payload(255, &events)] {
        let (read, position, refused) = follow("", &[format(), gtid(1), packed]);
        assert_eq!((refused, read.len()), (None, 1));
        assert_eq!(ids(&read[0]), ["1=a", "2=b"]);
        assert_eq!(position, Gtids::MySql(number("1").parse().expect("a set")));
    }
}

#[test]
fn a_damaged_compressed_transaction_is_everything() {
    let zstd = zstd::bulk::compress(&compressed_events(), 3).expect("memory");
    for events in [&zstd[..zstd.len() / 2], b"rubbish"] {
        let (read, position, refused) = follow("", &[format(), gtid(1), payload(0, events)]);
        assert_eq!(refused, None);
        let last = read.last().and_then(|transaction| transaction.changes.last());
        let last = &last.expect("a change").what;
        assert!(matches!(last, ChangeScope::Everything(FallbackReason::Unreadable(_))), "{last:?}");
        assert_eq!(position, Gtids::MySql(number("1").parse().expect("a set")));
    }
}

#[test]
fn json_changed_in_part() {
    let mut body = Vec::new();
    rows_head(&mut body);
    // Before: id and j; after: j.
    body.extend_from_slice(&[0b101, 0b100]);
    body.extend_from_slice(&[0, 1, 0, 0, 0, 2, 0, 0, 0, 4, 1]);
    // Options, one partial JSON column, no NULL; the changes are not decoded.
    body.extend_from_slice(&[1, 1, 0, 3, 0, 0, 0, 9, 9, 9]);
    let packets = [
        format(),
        gtid(1),
        packet(2, &query("BEGIN")),
        packet(19, &table_map()),
        packet(39, &body),
        packet(16, &7u64.to_le_bytes()),
    ];
    let (read, _, refused) = follow("", &packets);
    assert_eq!(refused, None);
    let ChangeScope::Rows(rows) = &read[0].changes[0].what else { panic!("{read:?}") };
    let all: Vec<RowChange<'_>> = rows.changes().map(|change| change.expect("a row")).collect();
    let [RowChange { before: Some(before), after: Some(after) }] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(before.get(2).expect("a value").tag_text().as_deref(), Ok("true"));
    assert_eq!((after.get(0), after.get(2)), (None, Some(&Value::JsonInPart)));
}

#[test]
fn unknown_events_change_everything_and_ignorable_ones_nothing() {
    let mut ignorable = packet(99, b"");
    let mut bytes = ignorable.payload.to_vec();
    bytes[18] = 0x80;
    let end = bytes.len() - 4;
    let sum = crc32(&bytes[1..end]).to_le_bytes();
    bytes[end..].copy_from_slice(&sum);
    ignorable.payload = bytes.into();
    let (read, _, refused) = follow("", &[format(), ignorable, packet(98, b"")]);
    assert_eq!((refused, read.len()), (None, 1));
    assert!(matches!(
        read[0].changes[0].what,
        ChangeScope::Everything(FallbackReason::UnknownEvent)
    ));
    let (read, _, _) = follow("", &[format(), packet(26, &[1, 0])]);
    assert!(matches!(read[0].changes[0].what, ChangeScope::Everything(FallbackReason::Incident)));
    // Rows of a table that was never described.
    let rows = packet(30, &insert(1, "a"));
    let (read, _, _) = follow("", &[format(), rows, packet(16, &[0; 8])]);
    let what = &read[0].changes[0].what;
    assert!(
        matches!(what, ChangeScope::Everything(FallbackReason::Unreadable(Refusal::UnknownTable))),
        "{what:?}"
    );
}

#[test]
fn formats_that_cannot_be_read_end_the_stream() {
    let mut old = format().payload.to_vec();
    old[20] = 3;
    let end = old.len() - 4;
    let sum = crc32(&old[1..end]).to_le_bytes();
    old[end..].copy_from_slice(&sum);
    let len = old.len() as u64;
    let (_, _, refused) = follow("", &[Packet::head_of(old.into(), len)]);
    assert_eq!(refused, Some(StreamRefused::Event(Refusal::OldFormat)));
}

/// A recording for the fuzzer, without checksums except for the first event.
#[test]
#[ignore = "writes into fuzz/corpus"]
fn record() {
    let zstd = zstd::bulk::compress(&compressed_events(), 3).expect("memory");
    let mut first = format().payload.to_vec();
    let kind = first.len() - 5;
    first[kind] = 0;
    let mut recording = Vec::new();
    for packet in [
        gtid(1),
        payload(0, &zstd),
        gtid(2),
        packet(2, &query("BEGIN")),
        packet(19, &table_map()),
        packet(30, &insert(3, "c")),
        packet(16, &[0; 8]),
    ] {
        if recording.is_empty() {
            recording.extend_from_slice(&(first.len() as u16).to_le_bytes());
            recording.extend_from_slice(&first);
        }
        let payload = &packet.payload[..packet.payload.len() - 4];
        recording.extend_from_slice(&(payload.len() as u16).to_le_bytes());
        recording.extend_from_slice(payload);
    }
    let corpus =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/change_stream");
    std::fs::write(corpus.join("mysql"), recording).expect("a recording");
}
