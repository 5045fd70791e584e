//! Programs that connect to the socket: none of them can use the report of another, block it, or stay.

use super::{PATIENCE, report, token};
use capture::{CaptureAccess, CaptureReporter, Captures, NotCaptured, OptionNames};
use harness::PrivateDir;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

fn open(access: CaptureAccess) -> (PrivateDir, Arc<Captures>) {
    let dir = PrivateDir::temporary("capture").expect("a directory");
    let captures =
        Captures::open(dir.path(), access, CaptureReporter::WordPress).expect("a socket");
    (dir, Arc::new(captures))
}

async fn connect(captures: &Captures) -> UnixStream {
    UnixStream::connect(captures.socket()).await.expect("it accepts")
}

/// Sends bytes, and waits until Pagewell has closed the connection.
async fn send(captures: &Captures, bytes: &[u8]) {
    let mut stream = connect(captures).await;
    // Pagewell may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    ended(stream).await;
}

/// Waits until Pagewell has closed the connection. It never answers.
async fn ended(mut stream: UnixStream) {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert_eq!(answer, b"");
}

#[tokio::test]
async fn a_report_reaches_its_capture_and_no_other() {
    let (_dir, captures) = open(CaptureAccess::Owner);
    let (one, other) = (captures.begin(), captures.begin());
    assert_ne!(token(&one), token(&other));
    let records =
        |sql| report(&token(&other), &[(b'S', sql), (b'O', b"home"), (b'P', b"late"), (b'E', b"")]);
    send(&captures, &records(b"SELECT 1")).await;
    // A second report with a token is not even read.
    send(&captures, &records(b"SELECT 2")).await;
    let got = other.report(PATIENCE).await.expect("a report");
    assert_eq!(got.statements, [Box::from(*b"SELECT 1")]);
    assert_eq!(got.late_statements, [Box::from(*b"late")]);
    assert_eq!(got.options, OptionNames::Complete(vec![Box::from(*b"home")]));
    assert_eq!(one.report(std::time::Duration::ZERO).await, Err(NotCaptured::NoReport));
}

#[tokio::test]
async fn an_unknown_or_forgotten_token_is_disconnected() {
    let (_dir, captures) = open(CaptureAccess::Owner);
    let forgotten = token(&captures.begin());
    for token in ["", "1", &"0".repeat(32), &"0".repeat(64), &forgotten] {
        // The peer does not end the connection: Pagewell does.
        let mut stream = connect(&captures).await;
        let _ = stream.write_all(&report(token, &[(b'S', b"SELECT 1")])).await;
        ended(stream).await;
    }
    for garbage in
        [b"GET / HTTP/1.1\r\n\r\n".as_slice(), b"\0", b"pagewell-capture 2\n", &[255; 99]]
    {
        let mut stream = connect(&captures).await;
        let _ = stream.write_all(garbage).await;
        ended(stream).await;
    }
}

#[tokio::test]
async fn a_bad_report_fails_its_capture_with_the_reason() {
    let (_dir, captures) = open(CaptureAccess::Owner);
    let malformed = |flaw| Err(NotCaptured::Malformed(flaw));
    let statements = vec![(b'S', b"SELECT 1".as_slice()); 10_001];
    let options = vec![(b'O', b"home".as_slice()); 10_001];
    let too_long = vec![b'x'; 5 << 20];
    for (records, wanted) in [
        (vec![], Err(NotCaptured::CutOff)),
        (vec![(b'S', b"SELECT 1".as_slice())], Err(NotCaptured::CutOff)),
        (vec![(b'E', b"".as_slice()), (b'E', b"")], malformed("an unknown record")),
        (vec![(b'X', b""), (b'E', b"")], malformed("an unknown record")),
        (statements, Err(NotCaptured::TooLarge("10,000 statements"))),
        (options, Err(NotCaptured::TooLarge("10,000 options"))),
        (vec![(b'S', too_long.as_slice())], Err(NotCaptured::TooLarge("4 MB"))),
        (
            vec![(b'I', b"an\nobject"), (b'E', b"")],
            Err(NotCaptured::Incomplete("an object".into())),
        ),
        (
            vec![(b'I', b"x"), (b'S', b"SELECT 1"), (b'E', b"")],
            malformed("a list after the reason why it is incomplete"),
        ),
        (
            vec![(b'S', b"SELECT 1"), (b'I', b"x"), (b'E', b"")],
            malformed("a list before the reason why it is incomplete"),
        ),
    ] {
        let capture = captures.begin();
        let bytes = report(&token(&capture), &records);
        let sent = send(&captures, &bytes);
        let (got, ()) = tokio::join!(capture.report(PATIENCE), sent);
        assert_eq!(got, wanted);
    }
    let capture = captures.begin();
    let mut lie = report(&token(&capture), &[]);
    lie.extend_from_slice(b"S\xff\xff\xff\xffSELECT 1");
    send(&captures, &lie).await;
    assert_eq!(capture.report(PATIENCE).await, Err(NotCaptured::CutOff));
}

#[tokio::test]
async fn a_peer_that_stops_half_way_is_disconnected() {
    let (_dir, captures) = open(CaptureAccess::Owner);
    let capture = captures.begin();
    let mut half = connect(&captures).await;
    half.write_all(&report(&token(&capture), &[(b'S', b"SELECT 1")])).await.expect("sent");
    let silent = connect(&captures).await;
    assert_eq!(capture.report(PATIENCE).await, Err(NotCaptured::CutOff));
    ended(half).await;
    ended(silent).await;
}

#[tokio::test]
async fn a_connection_beyond_the_limit_is_closed_unread() {
    // The silent connections may end before the last one comes if the machine is busy: then once more.
    for _ in 0..20 {
        let (_dir, captures) = open(CaptureAccess::Owner);
        let capture = captures.begin();
        let sent = |sql| report(&token(&capture), &[(b'S', sql), (b'E', b"")]);
        let (beyond, within) = (sent(b"beyond".as_slice()), sent(b"within".as_slice()));
        let mut silent = Vec::new();
        for _ in 0..256 {
            silent.push(connect(&captures).await);
        }
        send(&captures, &beyond).await;
        drop(silent);
        let repeated = async {
            loop {
                send(&captures, &within).await;
            }
        };
        let got = tokio::select! {
            got = capture.report(PATIENCE) => got.expect("a report"),
            () = repeated => unreachable!("it has no end"),
        };
        if got.statements == [Box::from(*b"within")] {
            return;
        }
    }
    panic!("the connection beyond the limit was read");
}

#[tokio::test]
async fn the_files_have_the_mode_of_their_readers_and_can_be_restored() {
    for (access, file_mode, socket_mode) in
        [(CaptureAccess::Owner, 0o600, 0o600), (CaptureAccess::Everyone, 0o644, 0o666)]
    {
        let (dir, captures) = open(access);
        let mode = |path: &std::path::Path| {
            path.metadata().expect("it exists").permissions().mode() & 0o777
        };
        assert_eq!(mode(&captures.file().expect("a file")), file_mode);
        assert_eq!(mode(captures.socket()), socket_mode);
        let capture = captures.begin();
        for entry in std::fs::read_dir(dir.path()).expect("a directory").flatten() {
            assert!(captures.are_there());
            std::fs::remove_file(entry.path()).expect("can be removed");
            assert!(!captures.are_there(), "{entry:?}");
            captures.restore().expect("can be restored");
        }
        send(&captures, &report(&token(&capture), &[(b'E', b"")])).await;
        assert!(capture.report(PATIENCE).await.is_ok());
        let (socket, begun) = (captures.socket().to_owned(), captures.begin());
        // The capture holds the socket open; without both it ends.
        drop(captures);
        assert!(UnixStream::connect(&socket).await.is_ok());
        drop(begun);
        let refused = async {
            while UnixStream::connect(&socket).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, refused).await.expect("the socket is closed");
    }
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_named() {
    let nowhere = std::path::Path::new("/proc/nowhere");
    let error = Captures::open(nowhere, CaptureAccess::Owner, CaptureReporter::WordPress).err();
    assert!(error.expect("an error").contains("/proc/nowhere"));
}

#[tokio::test]
async fn the_library_needs_a_socket_and_the_name_of_the_database() {
    let dir = PrivateDir::temporary("capture").expect("a directory");
    let reporter = CaptureReporter::Library { schema: "shop".into() };
    let captures = Captures::open(dir.path(), CaptureAccess::Owner, reporter).expect("a socket");
    let captures = Arc::new(captures);
    assert_eq!(captures.file(), None);
    let names = std::fs::read_dir(dir.path()).expect("a directory").flatten();
    assert_eq!(names.map(|entry| entry.file_name()).collect::<Vec<_>>(), ["capture.sock"]);
    let capture = captures.begin();
    let parameters = capture.parameters();
    let pairs: Vec<_> = parameters.pairs().collect();
    assert_eq!(pairs.len(), 3);
    assert_eq!(pairs[2], ("PAGEWELL_CAPTURE_DATABASE", &b"shop"[..]));
}
