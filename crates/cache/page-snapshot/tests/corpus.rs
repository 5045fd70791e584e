//! Writes the seed inputs for the fuzz target `snapshot`: `CORPUS=DIR cargo test -p page-snapshot --test
//! corpus`. Without `CORPUS` the test only checks that the inputs can be read.

mod common;

use common::{record, snapshot, usual};
use page_snapshot::{
    ChangedName, Content, Journal, SavedPage, read_journal, read_page, write_page,
};

#[test]
fn inputs_that_can_be_read() {
    let stored = usual();
    let (mut page, mut coded) = (Vec::new(), Vec::new());
    write_page(&record("http://a/?b", &stored), &mut page);
    let content = Content::InCodings(5);
    let marked_at_ms = None;
    let other = SavedPage {
        content,
        marked_at_ms,
        statements: None,
        ..record("http://a/\nvary x", &stored)
    };
    write_page(&other, &mut coded);
    let (mut journal, mut bytes) = Journal::begin(1, 7);
    bytes.extend(
        journal.change(&[ChangedName::Tag(b"news".to_vec()), ChangedName::Prefix(b"/a/".to_vec())]),
    );
    bytes.extend(journal.set_in_flight(true));
    bytes.extend(journal.change(&[ChangedName::Everything]));
    assert!(read_page(&page).is_ok() && read_page(&coded).is_ok());
    assert!(read_journal(&bytes, 1).is_ok());
    let whole = snapshot(2, 20);
    assert!(common::read(&whole).is_ok());
    let Ok(directory) = std::env::var("CORPUS") else { return };
    for (name, input) in
        [("page", page), ("page-coded", coded), ("journal", bytes), ("snapshot", whole)]
    {
        std::fs::write(format!("{directory}/{name}"), input).expect("it can be written");
    }
}
