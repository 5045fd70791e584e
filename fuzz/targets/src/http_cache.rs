//! An exchange of arbitrary bytes through storing, deciding, answering, validating, freshening and invalidating
//! (RFC 9111, RFC 9110 sections 13 and 14).
//!
//! The data are three header sections, each ended by an empty line: the request, the response, the response to
//! a validation. A line `:status 404` sets the response's status, `:after 60` the seconds until the next
//! request, `:honour` enables the client's directives.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_cache::{
    Answer, Candidate, Policy, RequestControl, RequestFacts, StoredResponse, Timestamp, Verdict,
    answer, decide, freshen, freshen_by_head, invalidates, make_conditional, not_modified_fields,
    parts, range, storable, tags,
};

const NOW: Timestamp = Timestamp::from_seconds(784_111_777);

/// Runs the whole path.
pub fn run(data: &[u8]) {
    let mut read = ReadResponse { status: 200, after: 0, policy: Policy::default() };
    let sections: [HeaderMap; 3] = read.sections(data);
    let [asked, response, newer] = &sections;
    let lines = || asked.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    let facts = RequestFacts::read(&Method::GET, lines());
    let later = NOW.plus(read.after * 1000);
    let _ = (tags::read_tags(response), tags::read_invalidated_groups(response));
    resolve_ranges(asked);
    invalidated(response);
    let status = StatusCode::from_u16(read.status).unwrap_or(StatusCode::OK);
    let policy = &read.policy;
    parts_of(&facts, asked, response, policy);
    let Ok(stored) = storable(&facts, asked, status, response, NOW, NOW, policy) else { return };
    check(&stored, later);
    let for_all = |sections: &[&HeaderMap]| sections.iter().any(|s| s.contains_key("lsc-cookie"));
    assert!(!stored.headers.contains_key("set-cookie") || for_all(&[response]));
    for marked in [None, Some(NOW)] {
        let candidates = [Candidate { stored: &stored, marked }].into_iter();
        match decide(&facts, asked, candidates, policy, later) {
            Verdict::Forward { validate: Some(_), .. } => assert!(stored.can_be_validated()),
            Verdict::Reuse { candidate, .. } => assert_eq!(candidate, 0),
            _ => {}
        }
    }
    for length in [None, Some(0), Some(1), Some(1000), Some(u64::MAX)] {
        if let (Answer::Ranges(ranges), Some(length)) = (answer(&facts, &stored, length), length) {
            bounded(ranges.as_slice(), length);
        }
    }
    let mut forwarded = asked.clone();
    make_conditional(&mut forwarded, Some(&stored));
    assert!(!forwarded.contains_key("range") && !forwarded.contains_key("if-match"));
    assert!(not_modified_fields(&stored).count() <= stored.headers.len());
    let head = (status, newer);
    let _ = freshen_by_head(&stored, &facts, asked, head, later, later, policy);
    if let Ok(new) = freshen(&stored, &facts, asked, newer, later, later, policy) {
        check(&new, later);
        assert!(!new.headers.contains_key("set-cookie") || for_all(&[response, newer]));
        assert_eq!(new.content_length(), stored.content_length());
    }
}

/// Checks that a stored response is allowed to be stored.
fn check(stored: &StoredResponse, now: Timestamp) {
    let most = (1u64 << 31) * 1000;
    assert!(stored.lifetime_ms() <= most && stored.age_ms(now) <= most);
    for name in ["connection", "age", "content-length"] {
        assert!(!stored.headers.contains_key(name), "{name}");
    }
    let said = stored.directives.unpacked();
    assert!(!said.private && (!said.no_store || said.must_understand));
    assert!(stored.tags().len() <= tags::TAGS_MAX);
}

/// A stored part is within the whole, and joined with itself it is unchanged.
fn parts_of(facts: &RequestFacts<'_>, asked: &HeaderMap, response: &HeaderMap, policy: &Policy) {
    let Ok((stored, part)) = parts::storable_part(facts, asked, response, NOW, NOW, policy) else {
        return;
    };
    check(&stored, NOW);
    bounded(&[part.range], part.complete_length);
    if let Some((range, at)) = parts::range_inside(facts, &stored) {
        assert!(part.range.first <= range.first && range.last <= part.range.last);
        assert_eq!(at.len() as u64, range.length());
    }
    if part.range.length() > 1 << 16 {
        return;
    }
    let content = vec![b'x'; part.range.length() as usize];
    let held = || parts::StoredPart { stored: &stored, content: &content };
    let (_, bytes) = parts::joined(&held(), &held(), 1 << 20).expect("both are of one whole");
    assert_eq!(bytes.len(), content.len());
}

fn resolve_ranges(asked: &HeaderMap) {
    let Some(field) = asked.get("range") else { return };
    for length in [0, 1, 1000, u64::MAX] {
        let _ = range::resolve(field.as_bytes(), length);
    }
}

fn bounded(ranges: &[range::ByteRange], length: u64) {
    assert!(!ranges.is_empty() && ranges.len() <= range::RANGES_MAX);
    assert!(ranges.iter().all(|range| range.first <= range.last && range.last < length));
}

fn invalidated(response: &HeaderMap) {
    let target = "http://a.test/dir/page?x".parse().expect("a URI");
    let method = http_cache::Method::Unsafe;
    for page in invalidates(method, "a.test", &target, StatusCode::OK, response) {
        assert!(page.starts_with('/') && !page.contains('#'), "{page}");
    }
}

struct ReadResponse {
    status: u16,
    after: u64,
    policy: Policy,
}

impl ReadResponse {
    fn sections(&mut self, data: &[u8]) -> [HeaderMap; 3] {
        let mut sections: [HeaderMap; 3] = Default::default();
        let mut at = 0;
        for line in data.split(|b| *b == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                at += 1;
            } else if line.starts_with(b":") {
                self.setting(&String::from_utf8_lossy(line));
            } else if let (Some(section), Some(colon)) =
                (sections.get_mut(at), line.iter().position(|b| *b == b':'))
                && let Ok(name) = HeaderName::from_bytes(&line[..colon])
                && let Ok(value) = HeaderValue::from_bytes(line[colon + 1..].trim_ascii())
                && section.len() < 200
            {
                section.append(name, value);
            }
        }
        sections
    }

    fn setting(&mut self, line: &str) {
        match line.split_once(' ') {
            Some((":status", text)) => self.status = text.parse().unwrap_or(200),
            Some((":after", text)) => {
                self.after = text.parse::<u64>().unwrap_or(0).min(u64::from(u32::MAX));
            }
            _ => self.policy.request_directives = RequestControl::Honour,
        }
    }
}
