//! Which relayed connection belongs to which request: the books of the relay, without I/O.
//!
//! A **slot** is a socket for connections to the database. It is leased to a FastCGI connection, which has one
//! PHP worker for as long as it lives: a **tenancy**. So the connections that are accepted in a tenancy are
//! those of one worker, which answers one request at a time.
//!
//! | connection | its statements belong to |
//! |---|---|
//! | accepted in the present tenancy of its slot | the capture of the slot's present request, if there is one |
//! | accepted in an earlier tenancy (persistent, or of a script that outlives its request) | each capture in flight |
//! | accepted while its process has connections of another tenancy | each capture in flight |
//! | accepted on slot 0, or of an unknown process | each capture in flight |
//!
//! Invariant: a statement is counted for too many captures rather than for too few. Not here: what the
//! statements mean.

use crate::{CaptureReport, NotCaptured};
use footprint::{SqlCharset, SqlMode};
use mysql_relay::{RelayEvent, SessionCharset, SessionMode};
use std::collections::{HashMap, VecDeque};

/// Maximum number of statements of a request, and of their bytes.
const STATEMENTS_MAX: usize = 10_000;
const BYTES_MAX: usize = 4 << 20;
/// The slot that is leased when all others are.
pub const SHARED_SLOT: usize = 0;

/// The number of a capture, a connection or a tenancy; none is used twice.
pub type LedgerId = u64;

/// The slots, connections and captures of a relay.
#[derive(Debug)]
pub struct Ledger {
    slots: Vec<Slot>,
    /// The slots without a tenancy; the one that has been free longest is first.
    free: VecDeque<usize>,
    connections: HashMap<LedgerId, BookedConnection>,
    captures: HashMap<LedgerId, Recording>,
    next: LedgerId,
}

#[derive(Debug, Default)]
struct Slot {
    tenancy: Option<LedgerId>,
    capture: Option<LedgerId>,
}

#[derive(Debug)]
struct BookedConnection {
    slot: usize,
    tenancy: Option<LedgerId>,
    process: Option<i32>,
    is_shared: bool,
}

/// The statements that a capture has seen.
#[derive(Debug, Default)]
struct Recording {
    is_sent: bool,
    is_connected: bool,
    statements: Vec<Box<[u8]>>,
    bytes: usize,
    /// The mode of the statements whose meaning depends on it.
    mode: Option<SessionMode>,
    flaw: Option<NotCaptured>,
}

impl Ledger {
    /// Books for `slots` slots, and the one that is shared.
    pub fn new(slots: usize) -> Ledger {
        Ledger {
            slots: (0..=slots).map(|_| Slot::default()).collect(),
            free: (1..=slots).collect(),
            connections: HashMap::new(),
            captures: HashMap::new(),
            next: 0,
        }
    }

    fn number(&mut self) -> LedgerId {
        self.next += 1;
        self.next
    }

    /// Leases a slot to a new FastCGI connection: [`SHARED_SLOT`] if no other is free.
    pub fn lease(&mut self) -> usize {
        let Some(slot) = self.free.pop_front() else { return SHARED_SLOT };
        let tenancy = self.number();
        self.slots[slot] = Slot { tenancy: Some(tenancy), capture: None };
        slot
    }

    /// Ends a lease, before the FastCGI connection is closed.
    pub fn release(&mut self, slot: usize) {
        if slot == SHARED_SLOT {
            return;
        }
        let Slot { tenancy, .. } = std::mem::take(&mut self.slots[slot]);
        let of_tenancy = self.connections.values_mut().filter(|one| one.tenancy == tenancy);
        of_tenancy.for_each(|one| one.is_shared = true);
        self.free.push_back(slot);
    }

    /// Begins a capture, whose request is not sent yet.
    pub fn begin(&mut self) -> LedgerId {
        let id = self.number();
        self.captures.insert(id, Recording::default());
        id
    }

    /// A request is sent over the FastCGI connection of a slot, with or without a capture.
    pub fn send(&mut self, slot: usize, capture: Option<LedgerId>) {
        if let Some(recording) = capture.and_then(|id| self.captures.get_mut(&id)) {
            recording.is_sent = true;
            if slot == SHARED_SLOT {
                recording.fail("more PHP workers are in use than there are sockets for");
            }
        }
        if slot != SHARED_SLOT {
            self.slots[slot].capture = capture;
        }
    }

    /// Ends a capture, and returns what it has seen.
    pub fn end(&mut self, capture: LedgerId) -> Result<CaptureReport, NotCaptured> {
        for slot in self.slots.iter_mut().filter(|slot| slot.capture == Some(capture)) {
            slot.capture = None;
        }
        let recording = self.captures.remove(&capture).unwrap_or_default();
        match recording.flaw {
            Some(flaw) => Err(flaw),
            None if !recording.is_connected => Err(NotCaptured::NoConnection),
            None => Ok(CaptureReport {
                statements: recording.statements,
                mode: recording.mode.map(sql_mode).unwrap_or_default(),
                ..CaptureReport::default()
            }),
        }
    }

    /// A process has connected to the socket of a slot.
    pub fn accept(&mut self, slot: usize, process: Option<i32>) -> LedgerId {
        let tenancy = self.slots.get(slot).and_then(|slot| slot.tenancy);
        let others = self.connections.values_mut().filter(|other| {
            process.is_some() && other.process == process && other.tenancy != tenancy
        });
        let (mut is_shared, mut confused) = (process.is_none() || tenancy.is_none(), Vec::new());
        for other in others {
            is_shared = true;
            if !other.is_shared {
                // A process seems to answer two requests: one was taken for that of another process.
                other.is_shared = true;
                confused.extend([other.slot, slot]);
            }
        }
        for slot in confused {
            let capture = self.slots.get(slot).and_then(|slot| slot.capture);
            if let Some(recording) = capture.and_then(|id| self.captures.get_mut(&id)) {
                recording.fail("a PHP worker uses the sockets of two requests");
            }
        }
        let id = self.number();
        self.connections.insert(id, BookedConnection { slot, tenancy, process, is_shared });
        id
    }

    /// A connection has ended.
    pub fn close(&mut self, connection: LedgerId) {
        self.connections.remove(&connection);
    }

    /// A connection has done something.
    pub fn record(&mut self, connection: LedgerId, event: RelayEvent) {
        let Some(BookedConnection { slot, is_shared, .. }) = self.connections.get(&connection)
        else {
            return;
        };
        if !is_shared {
            let capture = self.slots.get(*slot).and_then(|slot| slot.capture);
            if let Some(recording) = capture.and_then(|id| self.captures.get_mut(&id)) {
                recording.add(event);
            }
            return;
        }
        for recording in self.captures.values_mut().filter(|recording| recording.is_sent) {
            recording.add(event.clone());
        }
    }
}

impl Recording {
    fn add(&mut self, event: RelayEvent) {
        self.is_connected = true;
        match event {
            RelayEvent::Connected => {}
            RelayEvent::Unknown(reason) => self.fail(reason),
            RelayEvent::Statement(..) if self.flaw.is_some() => {}
            RelayEvent::Statement(text, mode) => {
                self.bytes += text.len();
                if self.bytes > BYTES_MAX {
                    return self.fail_with(NotCaptured::TooLarge("4 MB"));
                }
                if self.statements.len() == STATEMENTS_MAX {
                    return self.fail_with(NotCaptured::TooLarge("10,000 statements"));
                }
                if depends_on_mode(&text, mode) {
                    match self.mode {
                        Some(other) if other != mode => {
                            return self.fail("the connection's sql_mode changes within the page");
                        }
                        _ => self.mode = Some(mode),
                    }
                }
                self.statements.push(text.into());
            }
        }
    }

    fn fail(&mut self, reason: &str) {
        self.fail_with(NotCaptured::Incomplete(reason.into()));
    }

    fn fail_with(&mut self, flaw: NotCaptured) {
        self.flaw.get_or_insert(flaw);
        self.statements = Vec::new();
    }
}

/// Whether a text may mean something else in another mode.
fn depends_on_mode(text: &[u8], mode: SessionMode) -> bool {
    mode.has_other_meanings
        || text.iter().any(|byte| !byte.is_ascii() || matches!(byte, b'"' | b'\\'))
}

fn sql_mode(mode: SessionMode) -> SqlMode {
    SqlMode {
        has_ansi_quotes: mode.has_ansi_quotes,
        has_plain_backslashes: mode.has_plain_backslashes,
        has_other_meanings: mode.has_other_meanings,
        charset: match mode.charset {
            SessionCharset::Utf8 => SqlCharset::Utf8,
            SessionCharset::Binary => SqlCharset::Binary,
            SessionCharset::Other => SqlCharset::Other,
        },
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
