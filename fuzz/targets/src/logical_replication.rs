//! PostgreSQL's logical replication, as a hostile or broken server could send it.
//!
//! The data is a recorded stream: the payloads of its frames, preceded by their lengths (two bytes). For any
//! input, nothing panics, memory stays within the limits, every row and value can be read, and the position
//! never decreases. The same bytes are also decoded as the frames of a connection (the split makes no
//! difference), a login, a result, a log position and a snapshot.

use bytes::{Bytes, BytesMut};
use postgres_replication::position::Lsn;
use postgres_replication::snapshot::Snapshot;
use postgres_replication::wire::error::ServerError;
use postgres_replication::wire::frame::{Frame, FrameReader};
use postgres_replication::wire::login::{Account, Channel, Login, Purpose};
use postgres_replication::wire::query::{Query, QueryLimits};
use postgres_replication::wire::stream;
use postgres_replication::{
    Cell, ChangeScope, Interest, Limits, Step, Transaction, Transactions, Watch,
};

const LIMITS: Limits = Limits { transaction_bytes: 4096, tables: 8, known_bytes: 64 << 10 };

/// Decodes the data in every way.
pub fn run(data: &[u8]) {
    transactions(data);
    connection(data);
    let text = String::from_utf8_lossy(data);
    if let Ok(lsn) = text.parse::<Lsn>() {
        assert_eq!(lsn.to_string().parse(), Ok(lsn));
        assert!(lsn.before_header() <= lsn);
    }
    if let Ok(snapshot) = text.parse::<Snapshot>() {
        let _ = (snapshot.has_finished(0), snapshot.has_finished(u32::MAX));
    }
}

/// Reports the rows of most tables.
struct Curious;

impl Watch for Curious {
    fn interest(&mut self, _: &str, table: &str) -> Interest {
        match table.len() % 7 {
            0 => Interest::None,
            1 => Interest::Table,
            _ => Interest::Rows,
        }
    }
}

fn transactions(mut data: &[u8]) {
    let mut transactions = Transactions::new(Lsn(0), LIMITS, Curious);
    let mut place = Lsn(0);
    while let Some((len, rest)) = data.split_first_chunk::<2>() {
        let (payload, after) = rest.split_at(rest.len().min(usize::from(u16::from_be_bytes(*len))));
        data = after;
        let (mut payload, wire_bytes) = (payload, payload.len() as u64);
        // Some are cut, like those over the limit.
        if wire_bytes % 61 == 60 {
            payload = &payload[..50];
        }
        let payload = Bytes::copy_from_slice(payload);
        match transactions.read(&Frame { tag: b'd', payload, wire_bytes }) {
            Ok(Step::Transaction(transaction)) => look_at(&transaction),
            Ok(_) => {}
            Err(_) => break,
        }
        assert!(transactions.position() >= place, "it went back");
        place = transactions.position();
    }
}

fn look_at(transaction: &Transaction) {
    let (mut bytes, mut tables) = (0, 0);
    for change in &transaction.changes {
        let ChangeScope::Rows(rows) = change else {
            tables += 1;
            continue;
        };
        bytes += rows.bytes();
        for change in rows.changes().flatten() {
            for place in 0..rows.table.columns.len() + 1 {
                let (before, after) = (change.before(place), change.after(place));
                let is_known = before != Cell::Unknown && after != Cell::Unknown;
                if is_known && before != after {
                    assert!(change.changed(place));
                }
            }
        }
    }
    assert!(bytes <= LIMITS.transaction_bytes, "{bytes} bytes of rows are held");
    // Each table for each reason, and the changes of everything.
    assert!(tables <= 2 * LIMITS.tables + 16, "{tables} tables are held");
}

fn connection(data: &[u8]) {
    let read = |pieces: usize| {
        let (mut reader, mut input, mut frames) =
            (FrameReader::new(1000), BytesMut::new(), Vec::new());
        for piece in data.chunks(pieces) {
            input.extend_from_slice(piece);
            loop {
                match reader.read(&mut input) {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break,
                    Err(refused) => return (frames, Some(refused)),
                }
            }
        }
        (frames, None)
    };
    let whole = read(data.len().max(1));
    assert_eq!(whole, read(1 + data.len() % 7), "the cuts matter");
    for channel in [Channel::Plain, Channel::Local] {
        let account = Account { user: "u".into(), password: String::new(), database: "d".into() };
        let Ok((mut login, _)) = Login::begin(account, channel, Purpose::Replication) else {
            panic!("an account without zero bytes")
        };
        let _ = whole.0.iter().try_for_each(|frame| login.read(frame).map(drop));
    }
    let limits = QueryLimits { rows: 10, bytes: 1000 };
    let mut query = Query::new(limits);
    for frame in &whole.0 {
        let _ = (stream::started(frame), stream::error(frame), ServerError::read(&frame.payload));
        match query.read(frame) {
            Ok(Some(rows)) => {
                assert!(rows.rows.len() <= limits.rows);
                query = Query::new(limits);
            }
            Ok(None) => {}
            Err(_) => break,
        }
    }
}
