//! Connections between a client and a server that are simulated packet by packet, and damaged ones.

use super::*;
use crate::login::samples;

/// A connection whose other ends are the test.
struct Stage {
    relay: Relay,
    events: Vec<RelayEvent>,
}

const OK_PACKET: &[u8] = b"\0\0\0\x02\0\0\0";
const SET: &[u8] = b"\x01\0\0\x01\x01";

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_packet(&mut out, sequence, payload);
    out
}

/// The check of a relay that runs as another user.
fn other_user() -> AccountCheck {
    AccountCheck::Password(Some("root".to_owned()))
}

impl Stage {
    fn new(check: AccountCheck) -> Stage {
        Stage { relay: Relay::new(check, b"shop"), events: Vec::new() }
    }

    fn logged_in() -> Stage {
        let mut stage = Stage::new(AccountCheck::None);
        stage.server(0, &samples::greeting()).expect("a greeting");
        stage.client(1, &samples::response(0)).expect("a response");
        stage.server(2, OK_PACKET).expect("OK");
        assert_eq!(stage.take(), [RelayEvent::Connected]);
        stage
    }

    fn server(&mut self, sequence: u8, payload: &[u8]) -> Result<Vec<u8>, RelayRefused> {
        let mut out = Vec::new();
        let bytes = packet(sequence, payload);
        self.relay.take_from_server(&bytes, &mut out, &mut self.events).map(|()| out)
    }

    fn client(&mut self, sequence: u8, payload: &[u8]) -> Result<Vec<u8>, RelayRefused> {
        let mut out = Vec::new();
        let bytes = packet(sequence, payload);
        self.relay.take_from_client(&bytes, &mut out, &mut self.events).map(|()| out)
    }

    /// Sends a command and its response, which pass unchanged, and returns the events.
    fn run(&mut self, command: &[u8], response: &[u8]) -> Vec<RelayEvent> {
        assert_eq!(self.client(0, command), Ok(packet(0, command)));
        if !response.is_empty() {
            assert_eq!(self.server(1, response), Ok(packet(1, response)));
        }
        self.take()
    }

    fn query(&mut self, text: &str, response: &[u8]) -> Vec<RelayEvent> {
        self.run(&[b"\x03", text.as_bytes()].concat(), response)
    }

    fn take(&mut self) -> Vec<RelayEvent> {
        std::mem::take(&mut self.events)
    }
}

fn statement(text: &str) -> RelayEvent {
    RelayEvent::Statement(text.as_bytes().to_vec(), SessionMode::default())
}

#[test]
fn queries_are_reported_and_settings_are_followed() {
    let mut stage = Stage::logged_in();
    assert_eq!(stage.query("SELECT 1", SET), [statement("SELECT 1")]);
    assert_eq!(stage.query("SET sql_mode = 'ANSI'", OK_PACKET), []);
    let mode = SessionMode { has_ansi_quotes: true, ..SessionMode::default() };
    assert_eq!(stage.query("SELECT 1", SET), [RelayEvent::Statement(b"SELECT 1".to_vec(), mode)]);
    assert_eq!(stage.run(b"\x1f", OK_PACKET), []);
    assert_eq!(stage.query("SELECT 1", SET), [statement("SELECT 1")]);
    // A setting that fails leaves the state unknown. A page may show that a statement has failed.
    let failed = [RelayEvent::Unknown("a statement failed")];
    assert_eq!(stage.query("SET NAMES latin1", b"\xff\x15\x04#HY000no"), failed);
    assert!(matches!(stage.query("SELECT 1", SET)[..], [RelayEvent::Unknown(_)]));
    assert!(stage.relay.is_idle());
}

/// Only a `SET` or `USE` whose effect is known is left out.
#[test]
fn settings_with_reads_are_reported() {
    let text = "SET STATEMENT max_statement_time = 1 FOR SELECT 1";
    assert_eq!(Stage::logged_in().query(text, SET), [statement(text)]);
    for text in [
        "SET STATEMENT sql_mode = 'ANSI' FOR SELECT 1",
        "SET a = 1; SELECT 1",
        "USE shop; SELECT 1",
        "SET sql_mode = (SELECT a FROM b)",
    ] {
        let events = Stage::logged_in().query(text, SET);
        assert!(matches!(events[..], [RelayEvent::Unknown(_)]), "{text}: {events:?}");
    }
    // A row of a cursor is no OK packet, whose status would change the mode.
    let mut stage = Stage::logged_in();
    stage.run(b"\x1c\x07\0\0\0\x01\0\0\0", b"\0\0\0\xff\xff\xff\xff");
    assert_eq!(stage.query("SELECT 1", SET), [statement("SELECT 1")]);
}

#[test]
fn another_schema_is_reported() {
    let mut stage = Stage::logged_in();
    for command in [&b"\x02other"[..], b"\x03USE other"] {
        stage.run(command, b"\xff\x19\x04#42000no");
        assert_eq!(stage.query("SELECT 1", SET), [statement("SELECT 1")]);
        stage.run(command, OK_PACKET);
        assert!(matches!(stage.query("SELECT 1", SET)[..], [RelayEvent::Unknown(_)]));
        stage.run(b"\x02shop", OK_PACKET);
        assert_eq!(stage.query("SELECT 1", SET), [statement("SELECT 1")]);
    }
}

#[test]
fn executions_are_reported_with_their_values() {
    let mut stage = Stage::logged_in();
    let prepare = b"\x16SELECT a FROM b WHERE c = ?";
    assert_eq!(stage.run(prepare, b"\0\x07\0\0\0\x01\0\x01\0\0\0\0"), []);
    let execute = b"\x17\x07\0\0\0\0\x01\0\0\0\0\x01\x08\0\x05\0\0\0\0\0\0\0";
    assert_eq!(stage.run(execute, SET), [statement("SELECT a FROM b WHERE c =  5 ")]);
    // A value in pieces, then a closed statement.
    assert_eq!(stage.run(b"\x18\x07\0\0\0\0\0abc", b""), []);
    assert!(matches!(stage.run(execute, SET)[..], [RelayEvent::Unknown(_)]));
    assert_eq!(stage.run(b"\x19\x07\0\0\0", b""), []);
    assert!(matches!(stage.run(execute, SET)[..], [RelayEvent::Unknown(_)]));
}

#[test]
fn the_content_of_a_local_file_is_no_command() {
    let mut stage = Stage::logged_in();
    let text = "LOAD DATA LOCAL INFILE 'x' INTO TABLE a";
    assert_eq!(stage.query(text, b"\xfbx"), [statement(text)]);
    assert_eq!(stage.client(2, b"\x03SELECT 1"), Ok(packet(2, b"\x03SELECT 1")));
    assert_eq!(stage.client(3, b""), Ok(packet(3, b"")));
    assert_eq!(stage.server(4, OK_PACKET), Ok(packet(4, OK_PACKET)));
    assert_eq!(stage.query("SELECT 2", SET), [statement("SELECT 2")]);
}

#[test]
fn an_account_without_a_password_is_refused() {
    let mut stage = Stage::new(other_user());
    stage.server(0, &samples::greeting()).expect("a greeting");
    stage.client(1, &samples::response(0)).expect("a response");
    let refused = stage.server(2, OK_PACKET).expect_err("it is refused");
    assert_eq!(refused, RelayRefused::SocketAccount("app".to_owned()));
    let farewell = stage.relay.farewell(&refused);
    assert_eq!(farewell[3..13], *b"\x02\xff\x51\x04#HY000");
    assert!(String::from_utf8_lossy(&farewell).contains("ALTER USER 'app'@'localhost'"));

    let mut stage = Stage::new(other_user());
    stage.server(0, &samples::greeting()).expect("a greeting");
    stage.client(1, &samples::response(0)).expect("a response");
    let switch = b"\xfemysql_native_password\0abcdefghijklmnopqrst\0";
    assert_eq!(stage.server(2, switch), Ok(packet(2, switch)));
    assert_eq!(stage.client(3, &[9; 20]), Ok(packet(3, &[9; 20])));
    assert_eq!(stage.server(4, OK_PACKET), Ok(packet(4, OK_PACKET)));
    assert!(stage.relay.is_logged_in());
    // The same account may be used again, another one may not.
    let change = |user: &str| [b"\x11", user.as_bytes(), b"\0\0shop\0\x2d\0x\0"].concat();
    assert_eq!(stage.client(0, &change("root")), Err(RelayRefused::OtherAccount));

    let mut stage = Stage::logged_in();
    stage.query("CALL p()", OK_PACKET);
    assert_eq!(stage.client(0, &change("app")), Ok(packet(0, &change("app"))));
    assert_eq!(stage.server(1, OK_PACKET), Ok(packet(1, OK_PACKET)));
    stage.take();
    assert_eq!(stage.query("SELECT 1", SET), [statement("SELECT 1")]);
}

#[test]
fn unsupported_commands_end_the_connection() {
    for (sequence, payload, refused) in [
        (0, &b"\x12binlog"[..], RelayRefused::Command(0x12)),
        (0, b"\x1egtid", RelayRefused::Command(0x1e)),
        (0, b"\xfabulk", RelayRefused::Command(0xfa)),
        (0, b"", RelayRefused::Protocol("a command is empty")),
        (7, b"\x03SELECT 1", RelayRefused::OutOfSequence),
    ] {
        assert_eq!(Stage::logged_in().client(sequence, payload), Err(refused));
    }
    let mut stage = Stage::logged_in();
    stage.client(0, b"\x03SELECT 1").expect("passed on");
    assert!(!stage.relay.is_idle());
    assert_eq!(stage.client(0, b"\x03SELECT 2"), Err(RelayRefused::Overlap));
    let mut stage = Stage::logged_in();
    stage.client(0, b"\x03SELECT 1").expect("passed on");
    assert!(stage.client(0, b"\x01").is_ok());
}

#[test]
fn a_long_statement_passes_and_is_unknown() {
    let mut stage = Stage::logged_in();
    let long = [&b"\x03INSERT INTO a VALUES ('"[..], &vec![b'x'; 20 << 20], b"')"].concat();
    let (wire, mut passed) = (packet(0, &long), Vec::new());
    for chunk in wire.chunks(30_000) {
        let Stage { relay, events } = &mut stage;
        relay.take_from_client(chunk, &mut passed, events).expect("passed on");
        assert!(relay.from_client.capacity() <= 2 * TEXT_MAX + 2);
    }
    assert_eq!(passed, wire);
    assert!(matches!(stage.take()[..], [RelayEvent::Unknown(_)]));
    stage.server(2, OK_PACKET).expect("OK");
    assert!(stage.relay.from_client.capacity() <= BUFFER_KEPT);
}

/// A conversation of every kind of packet: the side that sends, and the bytes.
fn conversation() -> Vec<(bool, Vec<u8>)> {
    let client = |sequence, payload: &[u8]| (true, packet(sequence, payload));
    let server = |sequence, payload: &[u8]| (false, packet(sequence, payload));
    vec![
        server(0, &samples::greeting()),
        client(1, &samples::response(0)),
        server(2, b"\xfemysql_native_password\0abcdefghijklmnopqrst\0"),
        client(3, &[9; 20]),
        server(4, OK_PACKET),
        client(0, b"\x03SET NAMES utf8mb4"),
        server(1, OK_PACKET),
        client(0, b"\x03SELECT `a` FROM \"b\" WHERE c = 'd''e' -- f"),
        server(1, SET),
        client(0, b"\x16SELECT ? + ?"),
        server(1, b"\0\x07\0\0\0\x01\0\x02\0\0\0\0"),
        client(0, b"\x17\x07\0\0\0\0\x01\0\0\0\0\x01\x08\0\xfd\0\x05\0\0\0\0\0\0\0\x02ab"),
        server(1, SET),
        client(0, b"\x11app\0\x02xyshop\0\x2d\0plugin\0"),
        server(1, OK_PACKET),
        client(0, b"\x03LOAD DATA LOCAL INFILE 'x' INTO TABLE a"),
        server(1, b"\xfbx"),
        client(2, b"content"),
        client(3, b""),
        server(4, OK_PACKET),
        client(0, b"\x01"),
    ]
}

/// Truncated and damaged conversations, and random bytes: no panic, and no more bytes than came in.
#[test]
fn damaged_conversations_end_or_pass() {
    let mut state: u64 = 7;
    let mut drawn = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let (mut refused, mut statements) = (0, 0);
    for round in 0..20_000 {
        let mut stage = Stage::new([AccountCheck::None, other_user()][round % 2].clone());
        let (mut sent, mut passed) = (0, 0);
        for (is_client, mut bytes) in conversation() {
            match drawn(40) {
                0 => bytes.truncate(drawn(bytes.len())),
                1 | 2 => {
                    let at = drawn(bytes.len());
                    bytes[at] = [0, 1, 0xfb, 0xfe, 0xff, drawn(256) as u8][drawn(6)];
                }
                3 => bytes = (0..drawn(64)).map(|_| drawn(256) as u8).collect(),
                _ => {}
            }
            let mut out = Vec::new();
            let Stage { relay, events } = &mut stage;
            let chunk = 1 + drawn(bytes.len().max(1));
            let done = bytes.chunks(chunk).try_for_each(|chunk| {
                if is_client {
                    relay.take_from_client(chunk, &mut out, events)
                } else {
                    relay.take_from_server(chunk, &mut out, events)
                }
            });
            sent += bytes.len();
            passed += out.len();
            // The name of the plugin without a server is longer than the real one.
            assert!(passed <= sent + 64, "{passed} > {sent}");
            if let Err(error) = done {
                refused += 1;
                assert!(relay.farewell(&error).len() < 1_000);
                break;
            }
        }
        let is_statement = |event: &&RelayEvent| matches!(event, RelayEvent::Statement(..));
        statements += stage.events.iter().filter(is_statement).count();
    }
    assert!((3_000..20_000).contains(&refused), "{refused}");
    assert!(statements > 10_000, "{statements}");
}
