//! The strict parser for a request's header section (RFC 9112): an accepted section is accepted again,
//! independently of the bytes after it, and an incomplete section is never accepted.
//!
//! If the beginning of a request is refused, the whole request must be refused. A request that the fast parser
//! accepts as plain must be well-formed for the strict parser, and end at the same byte.

use config::Limits;
use front::hit::read;
use front::request_head::{Inspection, inspect};
use reasons::refusal::Refusal;

/// Parses the data, its prefixes, and the result again.
pub fn run(data: &[u8]) {
    let limits = Limits::default();
    let whole = inspect(data, &limits);
    if let Inspection::Complete { head_bytes, .. } = whole {
        let head = &data[..head_bytes];
        assert!(head.ends_with(b"\r\n\r\n"));
        assert_eq!(inspect(head, &limits), whole, "what comes after it matters");
        assert_eq!(inspect(&[head, b"GET "].concat(), &limits), whole);
        assert_eq!(inspect(&head[..head_bytes - 1], &limits), Inspection::Incomplete);
    }
    if let Some(plain) = read::read(data, &limits, &mut Vec::new()) {
        match whole {
            Inspection::Complete { head_bytes, .. } => assert_eq!(head_bytes, plain.head_bytes),
            // The fast parser does not interpret the lines.
            Inspection::Refused(refusal) => {
                let by_form = [Refusal::Malformed, Refusal::BareLineFeed, Refusal::HeadTooLarge];
                assert!(!by_form.contains(&refusal), "{refusal:?}");
            }
            Inspection::Incomplete => panic!("the quick reader has found an end"),
        }
    }
    let step = (data.len() / 16).max(1);
    for end in (0..data.len()).step_by(step) {
        match inspect(&data[..end], &limits) {
            Inspection::Incomplete => {}
            Inspection::Complete { .. } => assert_eq!(inspect(&data[..end], &limits), whole),
            Inspection::Refused(_) => {
                assert!(matches!(whole, Inspection::Refused(_)), "refused too early: {end}");
            }
        }
    }
}
