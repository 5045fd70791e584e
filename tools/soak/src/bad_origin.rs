//! An origin that misbehaves: hangs, trickles, lies about its length, sends garbage; and the clients that
//! ask for that, and know which answers are allowed. An answer that is complete and successful has to be
//! one that the origin really gave; in all other cases the client has to see that something failed.

use super::error_text;
use super::site::BAD_HOST;
use super::tally::name_of;
use harness::wire::HttpConnection;
use harness::{Client, ClientError, Response, TestServer};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// How long it hangs, and between two bytes when it trickles.
const HANGS: Duration = Duration::from_millis(1_500);
const TRICKLES: Duration = Duration::from_millis(20);
/// How long those who ask for it wait; and for the good page, which must come.
const PATIENCE: Duration = Duration::from_secs(1);
const GOOD_WITHIN: Duration = Duration::from_secs(30);

/// Its paths, each with the content that may arrive complete with status 200.
pub const PATHS: [(&str, Option<&str>); 14] = [
    ("/hang", None),
    ("/hang-in-the-head", None),
    ("/hang-in-the-content", None),
    ("/trickle", None),
    ("/short", None),
    ("/long", Some("hello")),
    ("/garbage", None),
    ("/close", None),
    ("/two-lengths", None),
    ("/bad-chunk", None),
    ("/cut-chunks", None),
    ("/huge-head", None),
    ("/control-character", None),
    ("/good", Some("a good page")),
];

/// Starts the origin that misbehaves.
///
/// # Errors
/// Those of the system.
pub fn start() -> io::Result<TestServer> {
    // The client may leave at any time.
    TestServer::start(|accepted| drop(serve(&accepted.stream)))
}

fn serve(stream: &TcpStream) -> io::Result<()> {
    let mut connection = HttpConnection::of(stream.try_clone()?);
    while let Ok((head, _)) = connection.read_request() {
        let (_, target) = head.method_and_target();
        misbehave(target.split('?').next().unwrap_or_default(), &mut connection)?;
    }
    Ok(())
}

/// An answer as it should be, of one that goes wrong from here on.
const KEPT: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";

/// Answers; an error is its way to hang up.
fn misbehave(path: &str, to: &mut HttpConnection) -> io::Result<()> {
    let hang_up = || Err(io::ErrorKind::ConnectionAborted.into());
    let mut say = |text: String| to.write(text.as_bytes());
    match path {
        "/good" => return say(format!("{KEPT}Content-Length: 11\r\n\r\na good page")),
        "/websocket" => {
            say("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                 Upgrade: websocket\r\n\r\n"
                .into())?;
            thread::park_timeout(HANGS);
        }
        "/hang" => thread::park_timeout(HANGS),
        "/hang-in-the-head" => {
            say("HTTP/1.1 200 OK\r\nCache-Con".into())?;
            thread::park_timeout(HANGS);
        }
        "/hang-in-the-content" => {
            say(format!("{KEPT}Content-Length: 100\r\n\r\nhalf"))?;
            thread::park_timeout(HANGS);
        }
        "/trickle" => {
            say(format!("{KEPT}Content-Length: 1000\r\n\r\n"))?;
            for _ in 0..100 {
                say("x".into())?;
                thread::park_timeout(TRICKLES);
            }
        }
        "/short" => say(format!("{KEPT}Content-Length: 1000\r\n\r\nfar too short"))?,
        "/long" => return say(format!("{KEPT}Content-Length: 5\r\n\r\nhello, and more than that")),
        "/garbage" => say("\u{1}\u{2}garbage\r\n\r\nof no use".repeat(50))?,
        "/two-lengths" => {
            say(format!("{KEPT}Content-Length: 4\r\nContent-Length: 9\r\n\r\nfourandmore"))?;
        }
        "/bad-chunk" => {
            say(format!("{KEPT}Transfer-Encoding: chunked\r\n\r\nzz\r\nnone\r\n0\r\n\r\n"))?
        }
        "/cut-chunks" => say(format!("{KEPT}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"))?,
        "/huge-head" => {
            say(format!("{KEPT}X-Huge: {}\r\nContent-Length: 1\r\n\r\nx", "x".repeat(600_000)))?
        }
        "/control-character" => say(format!("{KEPT}X-Odd: a\0b\r\nContent-Length: 1\r\n\r\nx"))?,
        _ => {}
    }
    hang_up()
}

/// Asks for one of [`PATHS`]; whether something was answered.
///
/// # Errors
/// An answer that should never have been given.
pub fn ask(at: SocketAddr, turn: usize) -> Result<bool, String> {
    let (path, good) = PATHS[turn % PATHS.len()];
    let within = if path == "/good" { GOOD_WITHIN } else { PATIENCE };
    let mut client = Client::new(at).host(BAD_HOST).within(within);
    let answer = client.get(&format!("{path}?{}", turn / PATHS.len() % 5));
    judge(path, good, &answer).map_err(error_text)
}

fn judge(
    path: &str,
    good: Option<&str>,
    answer: &Result<Response, ClientError>,
) -> Result<bool, String> {
    match answer {
        Ok(response) if response.status == 200 && good == Some(response.text().as_ref()) => {
            Ok(true)
        }
        Ok(response) if response.status == 200 => {
            Err(format!("whole, and not what {path} gave: {} bytes", response.content.len()))
        }
        Ok(response) if path == "/good" => Err(format!("{} for a good page", response.status)),
        // A header section of over 64 KiB is passed on where the operator allows it; ours refuses.
        Ok(response) if matches!(response.status, 502..=504) => Ok(true),
        Ok(response) => Err(format!("{} for {path}", response.status)),
        Err(error) if path == "/good" => Err(format!("{error} for a good page")),
        Err(error) => match name_of(error) {
            Some(_) => Ok(false),
            None => Err(format!("unreadable, of {path}: {error}")),
        },
    }
}
