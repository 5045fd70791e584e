//! The strict reading of a request's header section (RFC 9112): what has passed passes again, does
//! not depend on what comes after it, and is not judged before its end except to refuse it.
//!
//! A refusal of the beginning of a request has to be a refusal of the whole of it. And what the quick
//! reader takes for a plain request, the strict one takes for well-formed, and ends at the same byte.

use config::Limits;
use pagewell::hit::read;
use pagewell::refusal::Refusal;
use pagewell::request_head::{Inspection, inspect};

/// Reads the data, its beginnings, and what it found once more.
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
            // What the lines mean is not the quick reader's to judge.
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
