//! The binary log of MariaDB and MySQL, as a hostile or broken server could send it.
//!
//! The data is a recorded stream: packets preceded by their lengths (two bytes), without checksums, so that
//! damage reaches the decoders behind them; each event's length is corrected for the same reason. For any
//! input, nothing panics, memory stays within the limits, and every row and value can be read. Positions
//! survive a conversion to text and back. The same bytes are also decoded as the packets of a connection (the
//! split makes no difference), a login, a result, a statement and a document.

use bytes::{Bytes, BytesMut};
use mysql_replication::position::{FilePosition, GtidList, GtidSet, Start};
use mysql_replication::schema::{ColumnShape, TableShape};
use mysql_replication::value::json;
use mysql_replication::{
    ChangeScope, Interest, Limits, Step, Transaction, Transactions, Watch, statement,
};
use mysql_wire::login::{Account, Channel, Login};
use mysql_wire::packet::{Packet, PacketReader};
use mysql_wire::query::{Query, QueryLimits};
use std::sync::Arc;

/// The limits for memory.
pub const LIMITS: Limits =
    Limits { transaction_bytes: 4096, tables: 8, event_bytes: 64 << 10, prepared_bytes: 4096 };

/// Decodes the data in every way.
pub fn run(data: &[u8]) {
    for start in [
        Start::MariaDb(GtidList::default()),
        Start::MySql(GtidSet::default()),
        Start::File(FilePosition { file: "bin.000001".into(), offset: 4 }),
    ] {
        stream(data, &start);
    }
    connection(data);
    let _ = statement::read(data, "news");
    if let Ok(text) = json::text(data, json::Limits::default()) {
        assert!(text.len() <= 2 << 20, "a text of {} bytes", text.len());
    }
    if let Ok(set) = GtidSet::decode(data) {
        assert_eq!(GtidSet::decode(&set.encode()), Ok(set.clone()));
        assert_eq!(set.to_string().parse(), Ok(set));
    }
    if let Ok(list) = String::from_utf8_lossy(data).parse::<GtidList>() {
        assert_eq!(list.to_string().parse(), Ok(list));
    }
}

/// A column that is the primary key if it is named `id`.
pub fn column(name: &str, declared: &str) -> ColumnShape {
    ColumnShape {
        name: name.into(),
        declared: declared.to_owned(),
        charset: None,
        collation: None,
        key: if name == "id" { "PRI".to_owned() } else { String::new() },
        is_generated: false,
    }
}

/// Reports the rows of most tables, and knows the schema of some.
struct Curious;

impl Watch for Curious {
    fn interest(&mut self, _: &str, table: &str) -> Interest {
        match table.len() % 5 {
            0 => Interest::Table,
            _ => Interest::Rows,
        }
    }

    fn follows(&mut self, schema: &str) -> bool {
        schema.len().is_multiple_of(2)
    }

    fn shape(&mut self, _: &str, table: &str) -> Option<Arc<TableShape>> {
        let columns = vec![column("id", "int(10) unsigned"), column("a", "enum('x','y')")];
        (table.len() == 2).then(|| Arc::new(TableShape::new(columns)))
    }
}

fn stream(data: &[u8], start: &Start) {
    let mut transactions = Transactions::new(start, LIMITS, Curious);
    for packet in packets(data) {
        let Ok(step) = transactions.read(&packet) else { break };
        if let Step::Transaction(transaction) = step {
            look_at(&transaction);
        }
    }
    let again = transactions.position().start();
    if let (Start::MariaDb(_) | Start::MySql(_), None) = (start, again) {
        panic!("a stream by GTID can always be resumed");
    }
}

fn look_at(transaction: &Transaction) {
    let mut bytes = 0;
    for change in &transaction.changes {
        let ChangeScope::Rows(rows) = &change.what else { continue };
        bytes += rows.rows.len_bytes();
        for change in rows.changes() {
            let Ok(change) = change else { break };
            for row in [&change.before, &change.after].into_iter().flatten() {
                row.values().iter().flatten().for_each(|value| drop(value.tag_text()));
            }
            for column in 0..3 {
                let _ = change.changed(column);
            }
        }
    }
    // The rows of a prepared transaction may be added to those of the one that commits it.
    let most = LIMITS.transaction_bytes + LIMITS.prepared_bytes;
    assert!(bytes <= most, "{bytes} bytes of rows are held");
}

/// The packets of a recording, with corrected event lengths.
pub fn packets(mut data: &[u8]) -> Vec<Packet> {
    let mut packets = Vec::new();
    while let Some((len, rest)) = data.split_first_chunk::<2>() {
        let (payload, after) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*len))));
        data = after;
        let mut payload = payload.to_vec();
        let event_bytes = payload.len().saturating_sub(1) as u32;
        if let Some(len) = payload.get_mut(10..14) {
            len.copy_from_slice(&event_bytes.to_le_bytes());
        }
        // Some are cut, like those over the limit.
        let len = payload.len() as u64;
        if len % 61 == 60 {
            payload.truncate(100);
        }
        packets.push(Packet::head_of(Bytes::from(payload), len));
    }
    packets
}

fn connection(data: &[u8]) {
    let read = |pieces: usize| {
        let (mut reader, mut input, mut packets) =
            (PacketReader::new(1000), BytesMut::new(), Vec::new());
        for piece in data.chunks(pieces) {
            input.extend_from_slice(piece);
            loop {
                match reader.read(&mut input) {
                    Ok(Some(packet)) => packets.push(packet),
                    Ok(None) => break,
                    Err(refused) => return (packets, Some(refused)),
                }
            }
        }
        (packets, None)
    };
    let whole = read(data.len().max(1));
    assert_eq!(whole, read(1 + data.len() % 7), "the cuts matter");
    let account = Account { user: "u".into(), password: "p".into(), database: "d".into() };
    for channel in [Channel::Plain, Channel::Local, Channel::Tls] {
        let mut login = Login::new(account.clone(), channel, 1 << 24);
        let _ = whole.0.iter().try_for_each(|packet| login.read(packet).map(drop));
    }
    let limits = QueryLimits { rows: 10, bytes: 1000 };
    let mut query = Query::new(limits);
    for packet in &whole.0 {
        match query.read(packet) {
            Ok(Some(rows)) => {
                assert!(rows.rows.len() <= limits.rows);
                let _ = TableShape::read_all(&rows);
                query = Query::new(limits);
            }
            Ok(None) => {}
            Err(_) => break,
        }
    }
}
