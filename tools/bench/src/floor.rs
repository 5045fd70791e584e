//! The floor under every figure: a bare epoll loop that parses, looks up, and sends a prebuilt answer.
//!
//! No server over sockets can cost less on the same machine in the same minute, so the others are
//! stated relative to it, which takes the machine's moods out. One thread, level-triggered, one read
//! and one write for each request; who wants one answer is never waited for. It decides nothing: no
//! freshness, no conditions, no limits worth the name. Never use it for anything else.

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, listen, sockopt};
use sockets::accept::defer;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

/// The listener's mark among the events; connections have their place in the table.
const LISTENER: u64 = u64::MAX;
const READ_BYTES: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;
/// Connections that may wait in the kernel's queue.
const BACKLOG: i32 = 4096;

/// Serves these answers, by target, for ever. Prints where.
///
/// # Errors
/// Those of the system.
pub fn serve(pages: &HashMap<Vec<u8>, Vec<u8>>) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    // Each connection has it from the listening socket.
    sockopt::set_tcp_nodelay(&listener, true)?;
    defer(&listener)?;
    listen(&listener, BACKLOG)?;
    println!("listening on http://{}", listener.local_addr()?);
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mark = epoll::EventData::new_u64(LISTENER);
    epoll::add(&epoll, &listener, mark, epoll::EventFlags::IN)?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut events = Vec::with_capacity(256);
    let mut buffer = Vec::with_capacity(READ_BYTES);
    loop {
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let mark = event.data.u64();
            if mark == LISTENER {
                accept(&listener, &epoll, &mut connections, |connection| {
                    answer(connection, &mut buffer, pages)
                })?;
                continue;
            }
            let place = usize::try_from(mark).unwrap_or(usize::MAX);
            let Some(Some(connection)) = connections.get_mut(place) else { continue };
            if answer(connection, &mut buffer, pages).is_none() {
                connections[place] = None;
            }
        }
    }
}

struct Connection {
    socket: OwnedFd,
    /// The beginning of a request whose end has not come.
    begun: Vec<u8>,
}

/// Accepts all waiting connections; one whose first request is not answered at once is watched.
fn accept(
    listener: &TcpListener,
    epoll: &OwnedFd,
    connections: &mut Vec<Option<Connection>>,
    mut answer: impl FnMut(&mut Connection) -> Option<()>,
) -> io::Result<()> {
    while let Ok(socket) = accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        let mut connection = Connection { socket, begun: Vec::new() };
        if answer(&mut connection).is_none() {
            continue;
        }
        let place = connections.iter().position(Option::is_none).unwrap_or(connections.len());
        if place == connections.len() {
            connections.push(None);
        }
        let mark = epoll::EventData::new_u64(place as u64);
        epoll::add(epoll, &connection.socket, mark, epoll::EventFlags::IN)?;
        connections[place] = Some(connection);
    }
    Ok(())
}

/// Reads once and answers every whole request; `None` closes the connection.
fn answer(
    connection: &mut Connection,
    buffer: &mut Vec<u8>,
    pages: &HashMap<Vec<u8>, Vec<u8>>,
) -> Option<()> {
    buffer.clear();
    buffer.append(&mut connection.begun);
    match rustix::io::read(&connection.socket, spare_capacity(buffer)) {
        Ok(0) => return None,
        Ok(_) => {}
        Err(Errno::AGAIN | Errno::INTR) => return Some(()),
        Err(_) => return None,
    }
    let mut at = 0;
    while at < buffer.len() {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(length) = request.parse(&buffer[at..]).ok()? else { break };
        let page = pages.get(request.path?.as_bytes())?;
        // A page fits into an empty send buffer: a client that does not read is let go.
        if rustix::io::write(&connection.socket, page).ok()? != page.len() {
            return None;
        }
        let is_last = |line: &httparse::Header<'_>| {
            line.name.eq_ignore_ascii_case("connection") && line.value == b"close"
        };
        if request.headers.iter().any(is_last) {
            return None;
        }
        at += length;
    }
    connection.begun.extend_from_slice(&buffer[at..]);
    (connection.begun.len() < READ_BYTES).then_some(())
}
