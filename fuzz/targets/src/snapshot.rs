//! A page of a snapshot, a whole snapshot, a journal: nothing panics, and a page that can be decoded is the
//! same after encoding and decoding it again.
//!
//! The data is used as each of the three. Checksums stop nearly all damage in the second and third, so the
//! content is also passed to the page decoder directly.

use page_snapshot::{Content, JournalContents, Piece, Reader, read_journal, read_page, write_page};

/// Decodes the data as each of the three.
pub fn run(data: &[u8]) {
    if let Some(bytes) = again(data) {
        assert_eq!(again(&bytes).as_ref(), Some(&bytes), "a page changes with each writing");
    }
    if let Ok(JournalContents { names, in_flight, mut journal }) = read_journal(data, 1) {
        let more = [data, &journal.change(&names), &journal.set_in_flight(!in_flight)].concat();
        let same = read_journal(&more, 1).expect("it goes on where it ended");
        assert_eq!((same.names, same.in_flight), (names, !in_flight));
    }
    let (mut reader, mut rest) = (Reader::default(), data);
    while let Some(count) = reader.wants() {
        let Some((taken, left)) = rest.split_at_checked(count) else { return };
        rest = left;
        match reader.read(taken) {
            Ok(Piece::Statements(statements)) => statements.iter().for_each(drop),
            Ok(Piece::Pages(pages)) => pages.iter().for_each(drop),
            Ok(_) => {}
            Err(unreadable) => {
                assert!(!unreadable.as_str().is_empty());
                return;
            }
        }
    }
}

/// The page, if the data is one, encoded again.
fn again(data: &[u8]) -> Option<Vec<u8>> {
    let page = read_page(data).ok()?;
    assert!(!page.stored.is_private());
    assert!(matches!(page.content, Content::Kept(_)) || !page.forms.is_empty());
    let mut bytes = Vec::new();
    write_page(&page, &mut bytes);
    Some(bytes)
}
