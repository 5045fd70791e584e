//! The work of the origin for a request: it reads versions or commits them, then answers in steps.
//!
//! A render reads its versions first, one after the other like the queries of a script, and then
//! takes up to [`Site::render_micros`]. A write commits, continues for up to two, and reports its
//! changes in its response (RFC 9875 section 3, or LiteSpeed's fields). With faults a response may
//! be truncated anywhere, or be a 503. This module uses no sockets; the pauses are real.

use super::publication::By;
use super::site::{Kind, Page, Site, tag};
use super::stamp::Stamp;
use harness::Chance;
use std::fmt::Write;
use std::thread::sleep;
use std::time::Duration;

/// How long a write goes on after its commit, in microseconds.
const WRITE_MICROS: usize = 2000;
/// The additional time of a slow page, in each of its pauses.
const SLOW: Duration = Duration::from_millis(80);
/// With faults, one answer in so many is cut.
const CUT_ONE_IN: usize = 120;
/// With faults, one render in so many ends in 503.
const FAIL_ONE_IN: usize = 300;
const PIECES: usize = 4;

/// The parts of a request that the origin reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// The method of the request.
    pub method: String,
    /// The path and query of the request.
    pub target: String,
    /// The value of `If-None-Match`, if any.
    pub condition: Option<String>,
    /// The value of `X-Variant`, if any.
    pub variant: Option<char>,
}

/// A step of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// These bytes are sent.
    Send(Vec<u8>),
    /// Nothing is sent for so long.
    Pause(Duration),
    /// The connection is closed, and nothing more is sent.
    Cut,
}

/// Whether things go wrong by intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    /// They do.
    On,
    /// They do not.
    Off,
}

/// Does what is asked for, and says how it is answered.
pub fn perform(
    site: &Site,
    asked: &ReceivedRequest,
    faults: Faults,
    chance: &mut Chance,
) -> Vec<Step> {
    let cut = faults == Faults::On && chance.one_in(CUT_ONE_IN);
    if cut && chance.one_in(4) {
        // Before anything is done.
        return vec![Step::Cut];
    }
    let steps = match (asked.method.as_str(), site.page_at(&asked.target)) {
        ("GET", Some(_)) if faults == Faults::On && chance.one_in(FAIL_ONE_IN) => {
            vec![Step::Send(head("503 Service Unavailable", "Content-Length: 0\r\n"))]
        }
        ("GET", Some(page)) => render(site, page, asked, chance),
        ("POST", Some(page)) => write(site, &[page.own()], chance),
        ("POST" | "GET", None) => written(site, &asked.target, chance),
        _ => vec![Step::Send(head("404 Not Found", "Content-Length: 0\r\n"))],
    };
    if cut { shorten(steps, chance) } else { steps }
}

fn head(status: &str, fields: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{fields}\r\n").into_bytes()
}

/// Reads what the page is made from, and makes it.
fn render(site: &Site, page: &Page, asked: &ReceivedRequest, chance: &mut Chance) -> Vec<Step> {
    let micros = chance.below(site.render_micros);
    let query = Duration::from_micros(micros as u64 / 16);
    let versions = page.reads.map(|cell| {
        let version = site.read(cell);
        sleep(query);
        version
    });
    let known = asked.variant.filter(|variant| page.variants().contains(variant));
    let variant = known.unwrap_or(page.variants()[0]);
    let stamp = Stamp { page: page.number, variant, versions };
    let rest = Duration::from_micros(micros as u64 * 11 / 16);
    let (mut fields, validator) = (fields(site, page, &stamp), etag(&stamp));
    if page.kind == Kind::Validated {
        let _ = write!(fields, "ETag: {validator}\r\n");
        if asked.condition.as_deref().is_some_and(|condition| condition.contains(&validator)) {
            return vec![Step::Pause(rest), Step::Send(head("304 Not Modified", &fields))];
        }
    }
    let content = stamp.content(page.shape);
    match page.kind {
        Kind::Streamed | Kind::Slow => in_chunks(page, &fields, &content, rest),
        // Half of the large pages say how long they are.
        Kind::Large if page.number.is_multiple_of(2) => in_pieces(fields, &content, rest),
        Kind::Large => in_chunks(page, &fields, &content, rest),
        _ => {
            let _ = write!(fields, "Content-Length: {}\r\n", content.len());
            let whole = [head("200 OK", &fields), content].concat();
            vec![Step::Pause(rest), Step::Send(whole)]
        }
    }
}

fn etag(stamp: &Stamp) -> String {
    format!("\"{}\"", stamp.to_string().replace(' ', "-"))
}

/// The fields by which the page describes itself: TTL and dependencies, in two kinds of headers in turn.
fn fields(site: &Site, page: &Page, stamp: &Stamp) -> String {
    let by = site.by;
    let lifetime = page.cache_control(by);
    let tags: Vec<String> = page.items().iter().map(|item| tag(*item)).collect();
    let tags = match (page.number % 2, by) {
        (0, By::Litespeed) => format!("X-LiteSpeed-Tag: {}", tags.join(",")),
        (0, _) => format!("Surrogate-Key: {}", tags.join(" ")),
        _ => format!("Cache-Groups: \"{}\"", tags.join("\", \"")),
    };
    let mut fields = format!(
        "Content-Type: text/plain\r\nCache-Control: {lifetime}\r\n{tags}\r\nX-Made-From: {stamp}\r\n"
    );
    if page.kind == Kind::Varying {
        fields.push_str("Vary: X-Variant\r\n");
    }
    // By the data: the samples of an audit may agree by chance about a page that draws.
    let is_even =
        |stamp: &Stamp| stamp.to_string().bytes().fold(0, u8::wrapping_add).is_multiple_of(2);
    if page.kind == Kind::Personal && is_even(stamp) {
        fields.push_str("Set-Cookie: visit=1\r\n");
    }
    fields
}

/// The head at once, then the content in chunks while it is made.
fn in_chunks(page: &Page, fields: &str, content: &[u8], time: Duration) -> Vec<Step> {
    let pause = if page.kind == Kind::Slow { SLOW } else { time / PIECES as u32 };
    let chunked = format!("{fields}Transfer-Encoding: chunked\r\n");
    let mut steps = vec![Step::Send(head("200 OK", &chunked))];
    for piece in content.chunks(content.len().div_ceil(PIECES).max(1)) {
        let size = format!("{:x}\r\n", piece.len());
        steps.push(Step::Pause(pause));
        steps.push(Step::Send([size.as_bytes(), piece, b"\r\n"].concat()));
    }
    steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
    steps
}

/// The head with the length at once, then the content in pieces.
fn in_pieces(fields: String, content: &[u8], time: Duration) -> Vec<Step> {
    let long = format!("{fields}Content-Length: {}\r\n", content.len());
    let mut steps = vec![Step::Send(head("200 OK", &long))];
    for piece in content.chunks(content.len().div_ceil(PIECES).max(1)) {
        steps.push(Step::Pause(time / PIECES as u32));
        steps.push(Step::Send(piece.to_vec()));
    }
    steps
}

/// `/write?items=3,17` changes items; `/write?page=12` changes what that page has of its own and
/// sends the client there. By GET as well, as the scheduled tasks of some software do.
fn written(site: &Site, target: &str, chance: &mut Chance) -> Vec<Step> {
    if let Some(items) = target.strip_prefix("/write?items=") {
        let items = items.split('&').next().unwrap_or_default();
        let cells = items.split(',').filter_map(|item| item.parse().ok());
        let cells: Vec<usize> = cells.filter(|item| *item < site.items).collect();
        return write(site, &cells, chance);
    }
    let page = target.strip_prefix("/write?page=").and_then(|number| number.parse().ok());
    match page.and_then(|number: usize| site.pages.get(number)) {
        Some(page) => {
            let committed = commit(site, &[page.own()]);
            let fields = format!("{committed}Location: {}\r\nContent-Length: 0\r\n", page.target);
            vec![after(chance), Step::Send(head("303 See Other", &fields))]
        }
        None => vec![Step::Send(head("404 Not Found", "Content-Length: 0\r\n"))],
    }
}

fn write(site: &Site, cells: &[usize], chance: &mut Chance) -> Vec<Step> {
    let committed = commit(site, cells);
    let fields = format!("{committed}Cache-Control: no-store\r\nContent-Length: 3\r\n");
    vec![after(chance), Step::Send([head("200 OK", &fields), b"ok\n".to_vec()].concat())]
}

fn after(chance: &mut Chance) -> Step {
    Step::Pause(Duration::from_micros(chance.below(WRITE_MICROS) as u64))
}

/// Commits, and says what: which versions, and what they invalidate.
fn commit(site: &Site, cells: &[usize]) -> String {
    let versions: Vec<String> =
        cells.iter().map(|cell| format!("{cell}:{}", site.commit(*cell))).collect();
    let mut fields = format!("X-Committed: {}\r\n", versions.join(" "));
    let groups: Vec<String> =
        cells.iter().filter(|cell| **cell < site.items).map(|item| tag(*item)).collect();
    // Changes that another request publishes are not published twice.
    let _ = match site.by {
        By::Litespeed => write!(fields, "X-LiteSpeed-Purge: {}\r\n", announced(site, cells)),
        By::Mixed | By::Headers if !groups.is_empty() => {
            write!(fields, "Cache-Group-Invalidation: \"{}\"\r\n", groups.join("\", \""))
        }
        _ => Ok(()),
    };
    fields
}

/// Tags of items with or without `tag=` before them, addresses of pages.
fn announced(site: &Site, cells: &[usize]) -> String {
    let name = |cell: &usize| match cell.checked_sub(site.items) {
        Some(page) => site.pages[page].target.clone(),
        None if cell.is_multiple_of(2) => tag(*cell),
        None => format!("tag={}", tag(*cell)),
    };
    cells.iter().map(name).collect::<Vec<_>>().join(",")
}

/// The same answer, cut: somewhere in its head or content, or of its last few bytes.
fn shorten(mut steps: Vec<Step>, chance: &mut Chance) -> Vec<Step> {
    let bytes = |step: &Step| if let Step::Send(bytes) = step { bytes.len() } else { 0 };
    let total: usize = steps.iter().map(bytes).sum();
    let lost = if chance.one_in(2) { 1 + chance.below(5) } else { 1 + chance.below(total) };
    let mut left = total.saturating_sub(lost);
    for at in 0..steps.len() {
        let length = bytes(&steps[at]);
        if length > left {
            if let Step::Send(bytes) = &mut steps[at] {
                bytes.truncate(left);
            }
            steps.truncate(at + 1);
            break;
        }
        left -= length;
    }
    steps.push(Step::Cut);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(steps: &[Step]) -> String {
        let bytes = |step: &Step| match step {
            Step::Send(bytes) => bytes.clone(),
            _ => Vec::new(),
        };
        String::from_utf8(steps.iter().flat_map(bytes).collect()).expect("text")
    }

    fn ask(site: &Site, method: &str, target: &str, condition: Option<&str>) -> String {
        let asked = ReceivedRequest {
            method: method.into(),
            target: target.into(),
            condition: condition.map(str::to_owned),
            variant: Some('c'),
        };
        sent(&perform(site, &asked, Faults::Off, &mut Chance::new(1, 1)))
    }

    #[test]
    fn pages_name_the_versions_of_their_cells() {
        let site = Site::new(1, 60, 50);
        site.commit(site.pages[6].own());
        let varying = ask(&site, "GET", "/page/6", None);
        assert!(varying.contains("Vary: X-Variant\r\n"));
        assert!(varying.contains("X-Made-From: 6 c 0.0.0.0.1\r\n"));
        assert!(varying.contains("6 c 0.0.0.0.1 line 32 of 32"));
        let item = tag(site.pages[1].items()[0]);
        let plain = ask(&site, "GET", "/page/1", None);
        assert!(plain.contains(&format!("Cache-Groups: \"{item}\"")));
        assert!(ask(&site, "GET", "/page/5", None).ends_with("0\r\n\r\n"));
        assert!(ask(&site, "GET", "/page/99", None).starts_with("HTTP/1.1 404"));
    }

    #[test]
    fn a_page_that_has_not_changed_is_304() {
        let site = Site::new(1, 60, 50);
        let page = ask(&site, "GET", "/page/7", None);
        let etag = page.lines().find_map(|line| line.strip_prefix("ETag: ")).expect("it has one");
        assert!(ask(&site, "GET", "/page/7", Some(etag)).starts_with("HTTP/1.1 304"));
        site.commit(site.pages[7].items()[2]);
        assert!(ask(&site, "GET", "/page/7", Some(etag)).starts_with("HTTP/1.1 200"));
    }

    #[test]
    fn writes_commit_and_name_their_changes() {
        let site = Site::new(1, 60, 50);
        let items = ask(&site, "POST", "/write?items=3,17", None);
        assert!(items.contains("X-Committed: 3:1 17:1\r\n"));
        assert!(items.contains("Cache-Group-Invalidation: \"item:3\", \"item:17\"\r\n"));
        let own = ask(&site, "POST", "/page/1", None);
        assert!(own.contains("X-Committed: 61:1\r\n") && !own.contains("Cache-Group"));
        let elsewhere = ask(&site, "POST", "/write?page=3", None);
        assert!(elsewhere.contains("Location: /page/3?part=2&of=3\r\n"));
        assert_eq!((site.read(17), site.read(61), site.read(63)), (1, 1, 1));
    }

    #[test]
    fn litespeeds_way_to_say_the_same() {
        let site = Site::new(1, 60, 50).by(By::Litespeed);
        let items = ask(&site, "GET", "/write?items=3,4", None);
        assert!(items.contains("X-LiteSpeed-Purge: tag=item:3,item:4\r\n"));
        let own = ask(&site, "POST", "/write?page=3", None);
        assert!(own.contains("X-LiteSpeed-Purge: /page/3?part=2&of=3\r\n"));
        assert!(ask(&site, "GET", "/page/2", None).contains("X-LiteSpeed-Tag: item:"));
        assert!(ask(&site, "GET", "/page/1", None).contains("Cache-Groups: "));
    }

    #[test]
    fn a_cut_answer_lacks_its_end() {
        let steps = vec![Step::Send(vec![1; 10]), Step::Pause(SLOW), Step::Send(vec![2; 10])];
        let whole = sent(&steps);
        for stream in 0..100 {
            let cut = shorten(steps.clone(), &mut Chance::new(1, stream));
            assert_eq!(cut.last(), Some(&Step::Cut));
            assert!(sent(&cut).len() < whole.len() && whole.starts_with(&sent(&cut)));
        }
    }
}
