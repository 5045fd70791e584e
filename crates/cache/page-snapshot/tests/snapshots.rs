//! A snapshot is read exactly as it was written, or refused. It is refused if it is truncated, if any byte
//! was changed, and if pieces were moved or taken from another file.

mod common;

use common::{head, read, record, snapshot, usual};
use http_cache::{Forms, StoredResponse};
use page_snapshot::{
    ChangedName, Content, End, FRAME_BYTES, Journal, JournalContents, PREFIX_BYTES, PageStatements,
    Reader, SavedPage, SnapshotError, WriteOutcome, Writer, read_journal, read_page, write_page,
};
use proptest::prelude::*;

#[test]
fn a_snapshot_reads_as_it_was_written() {
    let all = snapshot(3_000, 1_000);
    let seen = read(&all).expect("it is whole");
    assert_eq!(seen.head, Some(head()));
    assert_eq!(seen.end, Some(End { pages: 3_000 }));
    assert!(seen.statements.iter().copied().eq(0..3_000));
    assert!(seen.keys.iter().enumerate().all(|(n, key)| *key == format!("http://a/{n}")));
    let none = read(&snapshot(0, 0)).expect("it is whole");
    assert_eq!((none.keys.len(), none.end), (0, Some(End { pages: 0 })));
}

#[test]
fn a_truncated_snapshot_is_refused() {
    let all = snapshot(3, 10);
    for length in 0..all.len() {
        assert_eq!(read(&all[..length]).err(), Some(SnapshotError::CutOff), "{length}");
    }
}

#[test]
fn a_snapshot_with_any_byte_changed_is_refused() {
    let all = snapshot(2, 10);
    for at in 0..all.len() {
        for bit in [1, 0x80] {
            let mut changed = all.clone();
            changed[at] ^= bit;
            assert!(read(&changed).is_err(), "{at}");
        }
    }
    let mut other = all.clone();
    other[0] = b'X';
    assert_eq!(read(&other).err(), Some(SnapshotError::Foreign));
    let mut other = all;
    other[8] += 1;
    assert_eq!(read(&other).err(), Some(SnapshotError::OtherVersion));
}

/// The byte ranges of the pieces.
fn pieces(all: &[u8]) -> Vec<std::ops::Range<usize>> {
    let (mut at, mut pieces) = (PREFIX_BYTES, Vec::new());
    while at < all.len() {
        let length = u32::from_le_bytes(all[at + 1..at + 5].try_into().expect("four bytes"));
        let end = at + FRAME_BYTES + length as usize;
        pieces.push(at..end);
        at = end;
    }
    pieces
}

#[test]
fn moved_pieces_are_refused() {
    let all = snapshot(4_000, 1_000);
    let pieces = pieces(&all);
    assert!(pieces.len() > 4, "several pieces of pages");
    let put = |order: &[usize]| {
        let mut out = all[..PREFIX_BYTES].to_vec();
        order.iter().for_each(|piece| out.extend_from_slice(&all[pieces[*piece].clone()]));
        read(&out).err()
    };
    let order: Vec<usize> = (0..pieces.len()).collect();
    assert_eq!(put(&order), None);
    let mut swapped = order.clone();
    swapped.swap(1, 2);
    assert_eq!(put(&swapped), Some(SnapshotError::Damaged));
    for left_out in 0..order.len() {
        let rest: Vec<usize> = order.iter().copied().filter(|at| *at != left_out).collect();
        assert!(put(&rest).is_some(), "{left_out}");
    }
    let twice = [&order[..2], &order[1..]].concat();
    assert_eq!(put(&twice), Some(SnapshotError::Damaged));
    // A piece from another file fails the check, although its pages are the same.
    let mut writer = Writer::new(&head(), 43);
    writer.end();
    let mut other = Vec::new();
    writer.take(|bytes| other.extend_from_slice(bytes)).expect("it is complete");
    other.truncate(PREFIX_BYTES);
    other.extend_from_slice(&all[PREFIX_BYTES..]);
    assert_eq!(read(&other).err(), Some(SnapshotError::Damaged));
}

#[test]
fn a_page_that_is_too_large_is_left_out() {
    let (stored, content) = (usual(), vec![0; 128 << 20]);
    let mut writer = Writer::new(&head(), 1);
    let large = SavedPage { content: Content::Kept(&content), ..record("a", &stored) };
    assert_eq!(writer.page(&large), WriteOutcome::TooLarge);
    assert_eq!(writer.page(&record("b", &stored)), WriteOutcome::Yes);
    writer.end();
    let mut all = Vec::new();
    writer.take(|bytes| all.extend_from_slice(bytes)).expect("it is complete");
    assert_eq!(read(&all).expect("it is whole").keys, ["b"]);
}

#[test]
fn statements_come_before_pages() {
    let stored = usual();
    let mut writer = Writer::new(&head(), 1);
    assert_eq!(writer.statement(1, &vec![0; 128 << 20]), WriteOutcome::TooLarge);
    assert_eq!(writer.statement(2, b"reads"), WriteOutcome::Yes);
    assert_eq!(writer.page(&record("b", &stored)), WriteOutcome::Yes);
    assert_eq!(writer.statement(3, b"reads"), WriteOutcome::TooLate);
    writer.end();
    let mut all = Vec::new();
    writer.take(|bytes| all.extend_from_slice(bytes)).expect("it is complete");
    let seen = read(&all).expect("it is whole");
    assert_eq!((seen.statements, seen.keys), (vec![2], vec!["b".to_owned()]));
    // A reader refuses them behind pages, whatever the checksum is.
    let pieces = pieces(&all);
    let kinds: Vec<u8> = pieces.iter().map(|piece| all[piece.start]).collect();
    assert_eq!(kinds, [1, 6, 2, 3]);
    all[pieces[3].start] = 6;
    assert_eq!(read(&all).err(), Some(SnapshotError::Damaged));
}

/// The debug output of a stored response, for comparison.
fn shown(stored: &StoredResponse) -> String {
    format!("{stored:?}")
}

#[test]
fn a_page_reads_as_it_was_written() {
    for forms in [Forms::ByCoding, Forms::One, Forms::Assembled] {
        reads_as_it_was_written(&of_forms(forms));
    }
}

fn of_forms(forms: Forms) -> StoredResponse {
    let mut stored = usual();
    stored.forms = forms;
    stored
}

fn reads_as_it_was_written(stored: &StoredResponse) {
    let written = record("http://a/", stored);
    let mut bytes = Vec::new();
    write_page(&written, &mut bytes);
    let page = read_page(&bytes).expect("it is whole");
    assert_eq!((page.key, page.worth, page.marked_at_ms), (&b"http://a/"[..], 5, Some(99)));
    assert_eq!((page.content, page.forms), (written.content, written.forms));
    assert_eq!(page.statements, written.statements);
    assert_eq!(shown(&page.stored), shown(stored));
    for length in 0..bytes.len() {
        assert!(read_page(&bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn a_page_without_statements_has_none() {
    let mut bytes = Vec::new();
    let stored = usual();
    write_page(&SavedPage { statements: None, ..record("a", &stored) }, &mut bytes);
    assert_eq!(read_page(&bytes).expect("it is whole").statements, None);
    let many = PageStatements { is_timed: false, keys: vec![1; 1_025] };
    let mut bytes = Vec::new();
    write_page(&SavedPage { statements: Some(many), ..record("a", &stored) }, &mut bytes);
    assert_eq!(read_page(&bytes).err(), Some(SnapshotError::TooLarge));
}

#[test]
fn a_private_page_is_refused() {
    let mut stored = usual();
    stored.directives = stored.directives.made_private();
    let mut bytes = Vec::new();
    write_page(&record("a", &stored), &mut bytes);
    assert_eq!(read_page(&bytes).err(), Some(SnapshotError::Invalid));
}

#[test]
fn a_journal_is_read_to_its_last_byte_or_refused() {
    let changes = [
        vec![ChangedName::Tag(b"news".to_vec()), ChangedName::Url(b"/a?b".to_vec())],
        vec![ChangedName::Path(b"/p".to_vec()), ChangedName::Prefix(b"/d/".to_vec())],
        vec![ChangedName::Everything],
    ];
    let (mut journal, mut bytes) = Journal::begin(7, 99);
    let mut ends = vec![bytes.len()];
    for change in &changes {
        bytes.extend(journal.change(change));
        ends.push(bytes.len());
    }
    bytes.extend(journal.set_in_flight(true));
    ends.push(bytes.len());
    let JournalContents { names, in_flight, mut journal } =
        read_journal(&bytes, 7).expect("it is whole");
    assert!(in_flight);
    assert_eq!(names.len(), 5);
    assert!(changes.iter().flatten().all(|name| names.contains(name)));
    assert_eq!(read_journal(&bytes, 8).err(), Some(SnapshotError::Foreign));
    for length in 0..bytes.len() {
        assert_eq!(read_journal(&bytes[..length], 7).is_ok(), ends.contains(&length), "{length}");
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 4;
        assert!(read_journal(&changed, 7).is_err(), "{at}");
    }
    // Writing continues where the journal ended.
    bytes.extend(journal.change(&[ChangedName::Tag(b"more".to_vec())]));
    assert!(read_journal(&bytes, 7).expect("it is whole").in_flight);
    bytes.extend(journal.set_in_flight(false));
    let JournalContents { names, in_flight, .. } = read_journal(&bytes, 7).expect("it is whole");
    assert!(!in_flight && names.contains(&ChangedName::Tag(b"more".to_vec())));
    // A change with too many names is written as a change of everything.
    let (mut journal, mut bytes) = Journal::begin(1, 1);
    let many: Vec<ChangedName> =
        (0..100_001_u32).map(|n| ChangedName::Tag(n.to_le_bytes().to_vec())).collect();
    bytes.extend(journal.change(&many));
    assert_eq!(read_journal(&bytes, 1).expect("it is whole").names, [ChangedName::Everything]);
}

fn any_stored() -> impl Strategy<Value = Option<StoredResponse>> {
    let name = prop::sample::select(vec![
        "content-type",
        "cache-control",
        "cache-groups",
        "surrogate-key",
        "vary",
        "etag",
        "last-modified",
        "date",
        "expires",
        "age",
        "x-litespeed-cache-control",
        "x-litespeed-vary",
        "x-litespeed-tag",
        "link",
    ]);
    let value = prop_oneof![
        "max-age=[0-9]{1,12}(, (public|no-cache|must-revalidate|s-maxage=9|stale-if-error=7))?",
        "\"[a-z]{1,5}\"(, \"[a-z]{1,5}\")?",
        "(accept-language|cookie|user-agent)(, accept-language)?",
        "(Sat, 08 Sep 2001 01:46:40 GMT|public,max-age=5,esi=on|cookie=a|W/\"1\")",
        "[ -~]{0,20}",
    ];
    prop::collection::vec((name, value), 0..8).prop_map(|lines| {
        let lines: Vec<(&str, &str)> = lines.iter().map(|(n, v)| (*n, v.as_str())).collect();
        common::stored(&[&lines[..], &[("cache-control", "max-age=60")]].concat())
    })
}

proptest! {
    #[test]
    fn any_stored_response_comes_back(stored in any_stored()) {
        let Some(stored) = stored else { return Ok(()) };
        let mut bytes = Vec::new();
        write_page(&record("k", &stored), &mut bytes);
        let page = read_page(&bytes).expect("it is whole");
        prop_assert_eq!(shown(&page.stored), shown(&stored));
    }

    #[test]
    fn nothing_panics_on_anything(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = read(&bytes);
        let _ = read_page(&bytes);
        let _ = read_journal(&bytes, 1);
    }

    #[test]
    fn a_damaged_page_is_refused_or_valid(
        at in 0_usize..1_000, to in any::<u8>(), cut in 0_usize..1_000
    ) {
        let stored = usual();
        let mut bytes = Vec::new();
        write_page(&record("k", &stored), &mut bytes);
        let at = at % bytes.len();
        bytes[at] = to;
        bytes.truncate(bytes.len().max(cut));
        if let Ok(page) = read_page(&bytes) {
            prop_assert!(!page.stored.is_private());
        }
    }

    #[test]
    fn a_reader_never_needs_more_than_a_piece(bytes in prop::collection::vec(any::<u8>(), 12)) {
        let mut all = snapshot(1, 1);
        let head_at = PREFIX_BYTES;
        all[head_at..head_at + 12].copy_from_slice(&bytes);
        let mut reader = Reader::default();
        let _ = reader.read(&all[..PREFIX_BYTES]);
        let _ = reader.read(&all[head_at..head_at + FRAME_BYTES]);
        prop_assert!(reader.wants().unwrap_or(0) <= page_snapshot::FRAME_BYTES_MAX);
    }
}
