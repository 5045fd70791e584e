//! The origin: HTTP/1.1, or FastCGI if it reports its statements; a thread and a database connection for each
//! kept connection.
//!
//! | | |
//! |---|---|
//! | `GET /p/K` | the page K: `id=n` of each of its items, as the database has them now |
//! | `GET /k/K` | the page K of the item K, without asking the database |
//! | `POST /w/I` | the item I is one more; the answer is how many |
//! | `GET /s/K` | the number of notes that a search finds |
//! | `POST /c/` | one more long note; the answer is how many the search 0 finds |
//! | `POST /sync` | nothing |
//!
//! It is held a little before it answers with a page, now and then: so that changes come between.

use super::fastcgi::ScriptRequest;
use super::sql::Sql;
use super::{Kind, OF_A_PAGE, items_of};
use harness::TestServer;
use harness::wire::HttpConnection;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The letters of a note.
const NOTE_LETTERS: usize = 60_000;

/// How the server in front knows which page is made from what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependencySource {
    /// The response has tags, and a lifetime.
    Tags,
    /// The origin reports its statements. The response has neither tags nor a lifetime.
    Statements,
}

/// A running origin; it ends when it is dropped.
pub struct Origin {
    shared: Arc<OriginState>,
    server: TestServer,
}

struct OriginState {
    kind: Kind,
    socket: PathBuf,
    items: usize,
    renders: AtomicU64,
}

impl Origin {
    /// Starts it on a free port.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(
        kind: Kind,
        socket: &Path,
        items: usize,
        dependencies: DependencySource,
    ) -> Result<Origin, String> {
        let socket = socket.to_owned();
        let shared = Arc::new(OriginState { kind, socket, items, renders: AtomicU64::new(0) });
        let own = shared.clone();
        let server = TestServer::start(move |accepted| {
            let Ok(stream) = accepted.stream.try_clone() else { return };
            match dependencies {
                DependencySource::Tags => serve(&own, stream),
                DependencySource::Statements => serve_scripts(&own, stream),
            }
        });
        Ok(Origin { shared, server: server.map_err(|error| format!("origin: {error}"))? })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The URL of the origin, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// How many pages it has made.
    pub fn renders(&self) -> u64 {
        self.shared.renders.load(Ordering::SeqCst)
    }
}

fn serve(shared: &OriginState, stream: TcpStream) {
    let (mut connection, mut sql) = (HttpConnection::of(stream), None);
    while let Ok((head, _)) = connection.read_request() {
        let (method, path) = head.method_and_target();
        let answer = answer(shared, &mut sql, method, path).unwrap_or_else(|error| {
            format!("HTTP/1.1 500 x\r\ncontent-length: {}\r\n\r\n{error}", error.len())
        });
        if connection.write(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Serves FastCGI requests, and reports the statements of each.
fn serve_scripts(shared: &OriginState, mut stream: TcpStream) {
    let mut sql = None;
    while let Ok(Some(request)) = ScriptRequest::read(&mut stream) {
        let (method, path) = (request.param("REQUEST_METHOD"), request.param("REQUEST_URI"));
        let number =
            |start: &str| path.strip_prefix(start).and_then(|rest| rest.parse::<usize>().ok());
        let page = number("/p/").map(|page| statement(shared, page));
        let statements: Vec<String> =
            page.or_else(|| number("/s/").map(search)).into_iter().collect();
        let answer = answer(shared, &mut sql, method, path);
        let response = match answer.as_deref().map(|answer| answer.split_once("\r\n\r\n")) {
            Ok(Some((_, body))) => format!("Content-Type: text/plain\r\n\r\n{body}"),
            Ok(None) => "Status: 500\r\n\r\n".to_owned(),
            Err(error) => format!("Status: 500\r\n\r\n{error}"),
        };
        if !matches!(request.answer(&mut stream, &statements, &response), Ok(true)) {
            return;
        }
    }
}

/// The statement that a page is made by. Pages use it in several forms.
fn statement(shared: &OriginState, page: usize) -> String {
    let items = items_of(page, shared.items);
    let condition = match page % 3 {
        0 => format!("id IN ({})", items.map(|item| item.to_string()).join(", ")),
        1 => items.map(|item| format!("id = {item}")).join(" OR "),
        _ => items.map(|item| format!("(id >= {item} AND id < {})", item + 1)).join(" OR "),
    };
    format!("SELECT id, n FROM item WHERE {condition}")
}

/// The statement of a search: the number of notes with a text. The first finds every note; the others find none, and
/// were slow to compare with one.
fn search(number: usize) -> String {
    let letters = if number == 0 { String::new() } else { "a".repeat(1_400) };
    let end = if number == 0 { String::new() } else { number.to_string() };
    format!("SELECT 0, COUNT(*) FROM note WHERE body LIKE '%{letters}ab{end}%'")
}

fn answer(
    shared: &OriginState,
    sql: &mut Option<Sql>,
    method: &str,
    path: &str,
) -> Result<String, String> {
    let mut connection = || match sql.take() {
        Some(connection) => Ok(connection),
        None => Sql::open(shared.kind, &shared.socket),
    };
    let number = |start: &str| path.strip_prefix(start).and_then(|rest| rest.parse::<usize>().ok());
    if let (Some(page), "GET") = (number("/p/"), method) {
        let mut own = connection()?;
        let text = page_of(shared, &mut own, page);
        *sql = Some(own);
        return text;
    }
    if let (Some(page), "GET") = (number("/k/"), method) {
        shared.renders.fetch_add(1, Ordering::SeqCst);
        return Ok(stored(&format!("\"item:{page}\", \"items\""), &format!("page {page}")));
    }
    let mut body = String::new();
    if let (Some(found), "GET") = (number("/s/"), method) {
        let mut own = connection()?;
        let found = own.numbers(&search(found))?;
        *sql = Some(own);
        body = found.first().map(|(_, n)| n.to_string()).unwrap_or_default();
    } else if (path, method) == ("/c/", "POST") {
        let mut own = connection()?;
        own.run(&format!("INSERT INTO note (body) VALUES ('{}b')", "a".repeat(NOTE_LETTERS)))?;
        let now = own.numbers(&search(0))?;
        *sql = Some(own);
        body = now.first().map(|(_, n)| n.to_string()).unwrap_or_default();
    } else if let (Some(item), "POST") = (number("/w/"), method) {
        let mut own = connection()?;
        own.run(&format!("UPDATE item SET n = n + 1 WHERE id = {item}"))?;
        let now = own.numbers(&format!("SELECT id, n FROM item WHERE id = {item}"))?;
        *sql = Some(own);
        body = now.first().map(|(_, n)| n.to_string()).unwrap_or_default();
    }
    Ok(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

fn page_of(shared: &OriginState, sql: &mut Sql, page: usize) -> Result<String, String> {
    let made = shared.renders.fetch_add(1, Ordering::SeqCst);
    let found = sql.numbers(&statement(shared, page))?;
    let (mut tags, mut text) = (String::from("\"items\""), String::new());
    for (id, n) in found {
        // Writing to a string does not fail.
        let _ = (write!(tags, ", \"item:{id}\""), write!(text, "{id}={n};"));
    }
    // Of every few one is slow: something changes while it is made.
    if made.is_multiple_of(OF_A_PAGE as u64) {
        thread::sleep(Duration::from_millis(made % 7));
    }
    Ok(stored(&tags, &text))
}

fn stored(tags: &str, text: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncache-control: max-age=3600\r\ncontent-type: text/plain\r\n\
         cache-groups: {tags}\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    )
}
