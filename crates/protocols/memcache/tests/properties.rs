//! Properties for arbitrary bytes: the split into reads makes no difference, memory is bounded, nothing panics,
//! and a stored value is the value that was sent.

mod memory;

use bytes::BytesMut;
use memcache::{Command, ConnectionRefusal, Decoder, Limits, Moment, Step};
use memory::{Connection, Memory};
use proptest::prelude::*;

const NOW: Moment = Moment(1_700_000_000_000);
const SMALL: Limits = Limits { item_bytes_max: 200 };

/// Bytes that are often valid commands.
fn conversation() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(
        &[
            "get",
            "gets",
            "gat",
            "set",
            "add",
            "cas",
            "append",
            "incr",
            "decr",
            "touch",
            "delete",
            "ms",
            "verbosity",
            "version",
            "flush_all",
            "noreply",
            "a",
            "b",
            "0",
            "1",
            "-1",
            "99",
            "300",
            "b",
            "\r\n",
            "\r\n",
            "\n",
            "\0",
            "x\r\n",
            "1\r\n",
        ][..],
    );
    let word = prop_oneof![
        20 => words.prop_map(|word| format!("{word} ").replace("\n ", "\n").into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..300),
    ];
    prop::collection::vec(word, 0..60).prop_map(|words| words.concat())
}

fn answers(bytes: &[u8], cuts: &[usize], limits: Limits) -> (Vec<u8>, bool) {
    let memory = Memory::default();
    let mut connection = Connection::new(&memory, limits);
    let (mut heard, mut from) = (Vec::new(), 0);
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.push(bytes.len());
    cuts.sort_unstable();
    for to in cuts {
        heard.extend(connection.send(&bytes[from..to], NOW));
        from = to;
    }
    (heard, connection.open)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn how_bytes_are_cut_makes_no_difference(
        bytes in conversation(),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        prop_assert_eq!(answers(&bytes, &cuts, SMALL), answers(&bytes, &[], SMALL));
    }

    #[test]
    fn any_bytes_leave_no_more_behind_than_a_line_or_a_value(
        bytes in prop_oneof![conversation(), prop::collection::vec(any::<u8>(), 0..5_000)],
    ) {
        let memory = Memory::default();
        let mut connection = Connection::new(&memory, SMALL);
        for byte in bytes {
            connection.send(&[byte], NOW);
            let most = if connection.open { 2_048 } else { 2_049 };
            prop_assert!(connection.held() <= most);
            // The connection is closed, so nothing more is read from it.
            if !connection.open {
                break;
            }
        }
    }

    #[test]
    fn a_stored_value_is_returned_unchanged(
        key in "[!-~]{1,250}",
        value in prop::collection::vec(any::<u8>(), 0..3_000),
        flags in any::<u32>(),
    ) {
        let memory = Memory::default();
        let mut connection = Connection::new(&memory, Limits::default());
        let mut said = format!("set {key} {flags} 0 {}\r\n", value.len()).into_bytes();
        said.extend_from_slice(&value);
        said.extend_from_slice(format!("\r\nget {key}\r\n").as_bytes());
        let mut heard = format!("STORED\r\nVALUE {key} {flags} {}\r\n", value.len()).into_bytes();
        heard.extend_from_slice(&value);
        heard.extend_from_slice(b"\r\nEND\r\n");
        prop_assert_eq!(connection.send(&said, NOW), heard);
    }
}

#[test]
fn a_line_that_does_not_end_ends_the_connection() {
    for (start, most) in
        [("set a", 2_048), ("gat 1 a", 2_048), ("get a", 256 << 10), ("gets a", 256 << 10)]
    {
        let mut decoder = Decoder::new(Limits::default());
        let mut input = BytesMut::from(start);
        input.resize(most, b' ');
        assert_eq!(decoder.next(&mut input), Step::More(1), "{start}");
        input.resize(most + 1, b' ');
        assert!(matches!(decoder.next(&mut input), Step::Close(_)), "{start}");
    }
}

#[test]
fn a_value_that_is_too_large_is_forgotten_as_it_comes() {
    let mut decoder = Decoder::new(SMALL);
    let mut input = BytesMut::from("set a 0 0 100000\r\n");
    assert!(matches!(decoder.next(&mut input), Step::Request(_)));
    for _ in 0..100 {
        input.resize(1_000, b'x');
        assert_eq!(decoder.next(&mut input), Step::More(1));
        assert!(input.is_empty());
    }
    input.extend_from_slice(b"\r\nversion\r\n");
    let Step::Request(request) = decoder.next(&mut input) else { panic!("a request") };
    assert_eq!(request.command, Command::Version);
}

#[test]
fn how_much_is_missing_of_a_value_is_known() {
    let mut decoder = Decoder::new(Limits::default());
    let mut input = BytesMut::from("set a 0 0 5000\r\nabc");
    assert_eq!(decoder.next(&mut input), Step::More(4_999));
}

#[test]
fn times_are_counted_from_the_moment_given() {
    let memory = Memory::default();
    let mut connection = Connection::new(&memory, Limits::default());
    let at = |seconds: u64| Moment(NOW.0 + seconds * 1_000);
    // A number above thirty days is a time since 1970.
    let said = format!("set a 0 60 1\r\nx\r\nset b 0 {} 1\r\nx\r\n", NOW.0 / 1_000 + 60);
    connection.send(said.as_bytes(), NOW);
    let found = |key: char| format!("VALUE {key} 0 1\r\nx\r\nEND\r\n").into_bytes();
    let get_both = b"get a\r\nget b\r\n";
    assert_eq!(connection.send(get_both, at(59)), [found('a'), found('b')].concat());
    assert_eq!(connection.send(get_both, at(60)), b"END\r\nEND\r\n");
    connection.send(b"set c 0 0 1\r\nx\r\nflush_all 10\r\n", at(60));
    assert_eq!(connection.send(b"get c\r\n", at(69)), found('c'));
    let again = b"get c\r\nset c 0 0 1\r\nx\r\nget c\r\n";
    let answer = [b"END\r\nSTORED\r\n", &found('c')[..]].concat();
    assert_eq!(connection.send(again, at(70)), answer);
}

/// The value after an `ms` line would otherwise be parsed as commands.
#[test]
fn a_meta_command_ends_the_connection() {
    let mut decoder = Decoder::new(Limits::default());
    let mut input = BytesMut::from("version\r\nms a 13\r\nset b 0 0 1\r\n");
    assert!(matches!(decoder.next(&mut input), Step::Request(_)));
    assert_eq!(decoder.next(&mut input), Step::Close(ConnectionRefusal::Meta));
    assert_eq!(ConnectionRefusal::Meta.as_str(), "meta-commands");
}
