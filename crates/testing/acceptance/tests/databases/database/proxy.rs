//! A TCP proxy between Pagewell and the database that can hold or cut the stream. It can also hold the answers
//! to the query for the visible transactions.
//!
//! A connection counts as a stream once its client has sent the dump command, and as a snapshot connection once
//! it has queried a snapshot (MySQL: the executed GTIDs). Other connections are forwarded unchanged. Threads end with their connections.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// `COM_BINLOG_DUMP` and `COM_BINLOG_DUMP_GTID`, which follow the packet's length and the sequence number 0.
const DUMPS: [u8; 2] = [0x12, 0x1e];
/// Parts of the queries for what is visible, of MariaDB and of MySQL.
const VISIBLE: [&[u8; 8]; 2] = [b"SNAPSHOT", b"gtid_exe"];

/// The kinds of connections.
const STREAM: u8 = 1;
const SNAPSHOTS: u8 = 2;

/// The actions of the proxy.
#[derive(Default)]
pub struct Control {
    /// The kind of connection that is held; 0 for none.
    held: Mutex<u8>,
    released: Condvar,
    /// The number of bytes after which a stream is cut; 0 disables this.
    cut_after: AtomicUsize,
    /// The number of streams that were cut.
    pub cuts: AtomicUsize,
}

impl Control {
    /// Holds the data of the stream.
    pub fn hold(&self) {
        *self.held.lock().expect("it is never poisoned") = STREAM;
    }

    /// Holds the answers to queries for snapshots.
    pub fn hold_snapshots(&self) {
        *self.held.lock().expect("it is never poisoned") = SNAPSHOTS;
    }

    /// Releases all connections.
    pub fn release(&self) {
        *self.held.lock().expect("it is never poisoned") = 0;
        self.released.notify_all();
    }

    /// Cuts the stream after this number of bytes.
    pub fn cut_after(&self, bytes: usize) {
        self.cut_after.store(bytes, Ordering::SeqCst);
    }

    /// The number of bytes of a piece that may be forwarded. Waits while the connection is held.
    fn pass(&self, what: u8, len: usize) -> usize {
        let mut held = self.held.lock().expect("it is never poisoned");
        while *held == what && what != 0 {
            held = self.released.wait(held).expect("it is never poisoned");
        }
        let left = self.cut_after.load(Ordering::SeqCst);
        if left == 0 || what != STREAM {
            return len;
        }
        if left <= len {
            self.cut_after.store(0, Ordering::SeqCst);
            self.cuts.fetch_add(1, Ordering::SeqCst);
            return left - 1;
        }
        self.cut_after.store(left - len, Ordering::SeqCst);
        len
    }
}

/// Starts a proxy for a port of this machine. Returns its own port.
pub fn before(server: u16) -> (u16, Arc<Control>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let control = Arc::new(Control::default());
    let own = control.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else { continue };
            // As the two would have it without this between them.
            let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
            let what = Arc::new(AtomicU8::new(0));
            let (seen, control) = (what.clone(), own.clone());
            let (from, to) =
                (client.try_clone().expect("one more"), server.try_clone().expect("so"));
            std::thread::spawn(move || {
                pump(from, to, |piece| {
                    let asks = |part: &&[u8; 8]| piece.windows(8).any(|window| window == *part);
                    let asks = VISIBLE.iter().any(asks);
                    match piece.get(3..5) {
                        Some([0, command]) if DUMPS.contains(command) => {
                            seen.store(STREAM, Ordering::SeqCst)
                        }
                        _ if asks => seen.store(SNAPSHOTS, Ordering::SeqCst),
                        _ => {}
                    }
                    piece.len()
                });
            });
            std::thread::spawn(move || {
                let what = || what.load(Ordering::SeqCst);
                pump(server, client, |piece| control.pass(what(), piece.len()));
            });
        }
    });
    (port, control)
}

/// Forwards as much of each piece as `through` returns. If that is not all of it, both connections are closed.
fn pump(mut from: TcpStream, mut to: TcpStream, mut through: impl FnMut(&[u8]) -> usize) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(len @ 1..) = from.read(&mut piece) {
        let passed = through(&piece[..len]);
        if to.write_all(&piece[..passed]).is_err() || passed < len {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
