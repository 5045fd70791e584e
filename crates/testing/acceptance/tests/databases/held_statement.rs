//! A TCP proxy between Pagewell and a database that holds one statement of a connection before the server has it, so
//! that a test can change the database between any two statements.
//!
//! A message of the client is a statement. Each connection has its own count. Threads end with their connections.

use crate::paper::{shows, stored};
use acceptance::until;
use harness::Pagewell;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// The statements of one connection are fewer.
const STATEMENTS_MAX: usize = 100;

/// The statements of a connection that count.
#[derive(Clone, Copy)]
pub enum CountedStatements {
    /// The first that contains this text, and all after it.
    From(&'static str),
    /// Those that contain this text.
    With(&'static str),
}

/// The proxy, and the number of the statement that it holds.
pub struct StatementHold {
    counted: CountedStatements,
    state: Mutex<HoldState>,
    released: Condvar,
}

#[derive(Default)]
struct HoldState {
    number: Option<usize>,
    has_one: bool,
}

impl StatementHold {
    /// Starts a proxy for a port of this machine. Returns its own port.
    pub fn before(server: u16, counted: CountedStatements) -> (u16, Arc<StatementHold>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (state, released) = (Mutex::default(), Condvar::new());
        let hold = Arc::new(StatementHold { counted, state, released });
        let own = hold.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else {
                    continue;
                };
                let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
                let (from, to) =
                    (client.try_clone().expect("one more"), server.try_clone().expect("so"));
                let hold = own.clone();
                std::thread::spawn(move || {
                    let mut count = 0;
                    pump(from, to, |message| {
                        if hold.counts(message, count) {
                            hold.pass(count);
                            count += 1;
                        }
                    });
                });
                std::thread::spawn(move || pump(server, client, |_| {}));
            }
        });
        (port, hold)
    }

    /// Holds the statement with this number, counted from 0, from now on. Forwards another one that is held.
    pub fn hold(&self, number: usize) {
        *self.lock() = HoldState { number: Some(number), has_one: false };
        self.released.notify_all();
    }

    /// Whether a statement is held now.
    pub fn has_one(&self) -> bool {
        self.lock().has_one
    }

    /// Forwards the statement that is held, and holds none from now on.
    pub fn release(&self) {
        *self.lock() = HoldState::default();
        self.released.notify_all();
    }

    /// Whether a message counts after this number of others.
    fn counts(&self, message: &[u8], count: usize) -> bool {
        let has = |text: &str| message.windows(text.len()).any(|part| part == text.as_bytes());
        match self.counted {
            CountedStatements::From(text) => count > 0 || has(text),
            CountedStatements::With(text) => has(text),
        }
    }

    fn pass(&self, number: usize) {
        let mut state = self.lock();
        while state.number == Some(number) {
            state.has_one = true;
            state = self.released.wait(state).expect("it is never poisoned");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HoldState> {
        self.state.lock().expect("it is never poisoned")
    }
}

/// Forwards each piece after `before` has returned.
fn pump(mut from: TcpStream, mut to: TcpStream, mut before: impl FnMut(&[u8])) {
    let mut piece = vec![0; 64 << 10];
    while let Ok(len @ 1..) = from.read(&mut piece) {
        before(&piece[..len]);
        if to.write_all(&piece[..len]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Replaces the rows of `news` before each statement of a connection that follows the database, and once after the
/// last. The page of the first article shows them, and each change after it. `cut` ends the connection, and
/// `replaced` returns the statements for rows with a title.
pub fn replaced_at_each_statement(
    pagewell: &Pagewell,
    hold: &StatementHold,
    cut: &dyn Fn(),
    sql: &dyn Fn(&str),
    replaced: impl Fn(&str) -> String,
) {
    const PATH: &str = "/show.php?id=1";
    let followed = || pagewell.times_logged("database-followed");
    for number in 0..STATEMENTS_MAX {
        stored(pagewell, PATH);
        let before = followed();
        hold.hold(number);
        cut();
        until("a statement is held, or was the last", || hold.has_one() || followed() > before);
        let is_over = followed() > before;
        sql(&replaced(&format!("made{number}")));
        hold.release();
        shows(pagewell, PATH, &format!("title=made{number}"));
        stored(pagewell, PATH);
        sql(&format!("UPDATE news SET title = 'told{number}' WHERE id = 1"));
        shows(pagewell, PATH, &format!("title=told{number}"));
        if is_over {
            assert!(number > 0, "no statement was held: {}", pagewell.log());
            return;
        }
    }
    panic!("a connection has no end: {}", pagewell.log());
}
