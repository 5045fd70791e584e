//! Sends a plain hit to the client. It consists of the status line and the lines that differ from
//! hit to hit, the stored header lines, and the content. As many writes are made as the client's
//! socket needs. A redirect has no stored lines.
//!
//! The response has the HTTP version of the request. A `Connection` field is sent only if the
//! version does not imply its option (RFC 9112 section 9.3).

use super::read::PlainVersion;
use delivery::redirect_forms::RedirectForm;
use delivery::serve;
use exchange::{PlainRedirect, write_private_lines};
use http::StatusCode;
use http_cache::Timestamp;
use http_cache::codings::Coding;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use stored_pages::page::{EncodedForm, ReadPage, Section, SharedPage, WireForm};
use telemetry::access_log::{FILE, HIT, Outcome};
use tokio::io::AsyncWrite;

/// The index of the minor version in a status line.
const MINOR: usize = "HTTP/1.".len();

/// The source of a hit: a stored page, a file or a redirect.
pub(super) enum HitSource {
    Page(SharedPage),
    File(SharedPage),
    Redirect(Arc<RedirectForm>),
}

impl HitSource {
    fn page(&self) -> Option<&SharedPage> {
        match self {
            HitSource::Page(page) | HitSource::File(page) => Some(page),
            HitSource::Redirect(_) => None,
        }
    }
}

/// The answer that was found for a plain request.
pub(super) enum FoundHit {
    Page(SharedPage),
    File(SharedPage),
    Redirect(PlainRedirect),
}

/// A plain hit that is being sent to the client.
pub struct Hit {
    source: HitSource,
    head: Section,
    /// The content coding of the response; none: not compressed.
    coding: Option<Coding>,
    /// The status line, and the lines that differ from hit to hit or can be written as fast as
    /// copied. All lines, if only some clients get the page.
    first: Vec<u8>,
    /// Whether the stored lines are sent as they are.
    with_lines: bool,
    with_content: bool,
    /// The total length, and the length before the content, in bytes.
    length: usize,
    before_content: usize,
    written: usize,
    /// The time of the decision.
    instant: Instant,
    version: PlainVersion,
    ends_connection: bool,
}

/// The parameters of a hit: the selected form, and the request's properties.
pub(super) struct HitParts {
    pub(super) form: HitForm,
    pub(super) is_get: bool,
    /// Whether only some clients get the page: those that have a password.
    pub(super) is_for_some: bool,
    pub(super) version: PlainVersion,
    pub(super) ends_connection: bool,
    /// The time of the decision: the `Age` that is sent is the one on which the decision was based.
    pub(super) now: Timestamp,
    pub(super) instant: Instant,
}

/// The selected form of a page.
#[derive(Clone, Copy)]
pub(super) struct HitForm {
    pub(super) head: Section,
    pub(super) coding: Option<Coding>,
    /// The length of its header lines and the empty line, in bytes.
    pub(super) lines_bytes: usize,
    /// The length of its content in bytes, if the whole page is sent.
    pub(super) length: usize,
}

impl Hit {
    /// Creates the answer from its parameters. `first` is a reusable buffer.
    pub(super) fn new(found: FoundHit, parts: HitParts, mut first: Vec<u8>) -> Hit {
        let HitParts { form, is_get, is_for_some, version, ends_connection, now, instant } = parts;
        let HitForm { head, coding, lines_bytes, length } = form;
        first.clear();
        let source = match found {
            FoundHit::Page(page) => {
                write_begin(&page, (head, length), &mut first);
                let stored = &page.payload().stored;
                let (age, ttl) = (stored.age_seconds(now), stored.ttl_seconds(now));
                first.extend_from_slice(b"\r\nage: ");
                first.extend_from_slice(itoa::Buffer::new().format(age).as_bytes());
                first.extend_from_slice(b"\r\ncache-status: pagewell; hit; ttl=");
                first.extend_from_slice(itoa::Buffer::new().format(ttl).as_bytes());
                HitSource::Page(page)
            }
            FoundHit::File(file) => {
                write_begin(&file, (head, length), &mut first);
                first.extend_from_slice(b"\r\ncache-status: ");
                first.extend_from_slice(serve::FILE_STATUS.as_bytes());
                write_date(now, &mut first);
                HitSource::File(file)
            }
            FoundHit::Redirect(PlainRedirect { form, location }) => {
                form.write_lines(location.as_deref(), &mut first);
                write_date(now, &mut first);
                HitSource::Redirect(form)
            }
        };
        if version == PlainVersion::Http10 {
            first[MINOR] = b'0';
        }
        // The `Connection` option, if the version does not imply it.
        match (version, ends_connection) {
            (PlainVersion::Http11, true) => first.extend_from_slice(b"\r\nconnection: close"),
            (PlainVersion::Http10, false) => {
                first.extend_from_slice(b"\r\nconnection: keep-alive");
            }
            _ => {}
        }
        first.extend_from_slice(b"\r\n");
        match source.page() {
            None => first.extend_from_slice(b"\r\n"),
            Some(page) if is_for_some => {
                write_private_lines(lines_of(page, head, coding), &mut first);
            }
            Some(_) => {}
        }
        let with_content = is_get && head == Section::Whole;
        let with_lines = !is_for_some && !matches!(source, HitSource::Redirect(_));
        let before_content = first.len() + if with_lines { lines_bytes } else { 0 };
        let length = before_content + if with_content { length } else { 0 };
        Hit {
            source,
            head,
            coding,
            first,
            with_lines,
            with_content,
            length,
            before_content,
            written: 0,
            instant,
            version,
            ends_connection,
        }
    }

    fn pieces(&self) -> [&[u8]; 3] {
        match self.stored_form() {
            Some(form) => match self.head {
                Section::Whole => [&self.first, form.head(), self.content_in(form)],
                Section::NotModified => [&self.first, form.not_modified(), &[]],
            },
            None => [&self.first, &[], self.content()],
        }
    }

    /// The form of the page, if its stored lines are sent as they are.
    #[inline]
    fn stored_form(&self) -> Option<WireForm<'_>> {
        let page = self.source.page().filter(|_| self.with_lines);
        page.map(|page| form_of(page, self.coding))
    }

    /// Returns the header section in pieces that end at line ends: status line, lines, empty line.
    pub fn head(&self) -> [&[u8]; 3] {
        match (self.stored_form(), self.head) {
            (None, _) => [&self.first, &[], &[]],
            (Some(form), Section::Whole) => [&self.first, form.head(), &[]],
            (Some(_), Section::NotModified) => self.pieces(),
        }
    }

    /// Returns the content that is sent.
    pub fn content(&self) -> &[u8] {
        match (&self.source, self.head) {
            (_, Section::NotModified) => &[],
            (HitSource::Redirect(form), _) if self.with_content => form.content(),
            (HitSource::Redirect(_), _) => &[],
            (HitSource::Page(page) | HitSource::File(page), _) => {
                self.content_in(form_of(page, self.coding))
            }
        }
    }

    fn content_in<'s>(&self, form: WireForm<'s>) -> &'s [u8] {
        if self.with_content { form.content().unwrap_or_default() } else { &[] }
    }

    /// Writes the rest to the client's socket. Returns the number of bytes written, or `None` when
    /// the whole hit has been written and flushed.
    ///
    /// # Errors
    /// Errors of the socket.
    #[inline]
    pub fn poll_write<IO: AsyncWrite + Unpin>(
        &self,
        io: &mut IO,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<usize>>> {
        let mut slices = [IoSlice::new(&[]); 3];
        if self.left(&mut slices) {
            // TLS buffers data that the socket did not accept; for a plain socket, flushing does
            // nothing.
            Pin::new(io).poll_flush(cx).map_ok(|()| None)
        } else {
            Pin::new(io).poll_write_vectored(cx, &slices).map_ok(Some)
        }
    }

    /// Sets `slices` to the bytes not yet written; returns true if there are none.
    fn left<'s>(&'s self, slices: &mut [IoSlice<'s>; 3]) -> bool {
        if self.written >= self.length {
            return true;
        }
        let mut skip = self.written;
        for (slice, piece) in slices.iter_mut().zip(self.pieces()) {
            let from = skip.min(piece.len());
            skip -= from;
            *slice = IoSlice::new(&piece[from..]);
        }
        false
    }

    /// The page that the hit keeps in memory. A file returns `None`: files are few and belong to
    /// the site.
    pub fn page(&self) -> Option<&SharedPage> {
        match &self.source {
            HitSource::Page(page) => Some(page),
            HitSource::File(_) | HitSource::Redirect(_) => None,
        }
    }

    /// Whether it is a redirect, which is no evidence about the client.
    pub fn is_redirect(&self) -> bool {
        matches!(self.source, HitSource::Redirect(_))
    }

    /// The time of the decision.
    pub fn instant(&self) -> Instant {
        self.instant
    }

    /// The HTTP version of the request and of the response.
    pub fn version(&self) -> PlainVersion {
        self.version
    }

    /// Whether the connection is closed after this hit, as the client requested (RFC 9112 section 9.6).
    pub fn ends_connection(&self) -> bool {
        self.ends_connection
    }

    /// The status code of the response.
    pub fn status(&self) -> u16 {
        match (&self.source, self.head) {
            (_, Section::NotModified) => 304,
            (HitSource::Redirect(form), _) => form.status().as_u16(),
            (HitSource::Page(page) | HitSource::File(page), _) => {
                page.payload().stored.status.as_u16()
            }
        }
    }

    /// The outcome for the access log.
    pub fn outcome(&self) -> Outcome<'_> {
        match &self.source {
            HitSource::Page(_) => HIT,
            HitSource::File(_) => FILE,
            HitSource::Redirect(form) => form.outcome(),
        }
    }

    /// The number of content bytes written.
    pub fn content_written(&self) -> u64 {
        self.written.saturating_sub(self.before_content) as u64
    }

    /// The length of the whole response, in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Records that `count` more bytes were written.
    pub fn wrote(&mut self, count: usize) {
        self.written += count;
    }

    /// Returns the buffer for reuse.
    pub fn into_buffer(self) -> Vec<u8> {
        self.first
    }
}

/// Writes the beginning of a response with a page, without the end of its last line.
fn write_begin(page: &SharedPage, (head, length): (Section, usize), out: &mut Vec<u8>) {
    match head {
        Section::NotModified => out.extend_from_slice(b"HTTP/1.1 304 Not Modified"),
        Section::Whole => write_status_and_length(page.payload().stored.status, length, out),
    }
}

fn write_date(now: Timestamp, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\ndate: ");
    out.extend_from_slice(&http_cache::date::format(now));
}

/// The form of a page with this content coding.
fn form_of(page: &SharedPage, coding: Option<Coding>) -> WireForm<'_> {
    let form = coding.and_then(|coding| page.payload().forms().get(coding));
    form.map_or_else(|| page.plain(), EncodedForm::form)
}

/// The header lines of a page in this form, and the empty line.
fn lines_of(page: &SharedPage, head: Section, coding: Option<Coding>) -> &[u8] {
    let form = form_of(page, coding);
    match head {
        Section::Whole => form.head(),
        Section::NotModified => form.not_modified(),
    }
}

/// Writes the beginning of a response with content of this length, without the end of its last
/// line.
fn write_status_and_length(status: StatusCode, length: usize, out: &mut Vec<u8>) {
    match status {
        StatusCode::OK => out.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-length: "),
        _ => {
            let reason = status.canonical_reason().unwrap_or("Unknown");
            for piece in ["HTTP/1.1 ", status.as_str(), " ", reason] {
                out.extend_from_slice(piece.as_bytes());
            }
            // RFC 9110 section 8.6.
            if status == StatusCode::NO_CONTENT {
                return;
            }
            out.extend_from_slice(b"\r\ncontent-length: ");
        }
    }
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_begins_with_its_status_and_has_a_length_but_for_a_204() {
        let begin = |status| {
            let mut out = Vec::new();
            write_status_and_length(status, 2042, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        assert_eq!(begin(StatusCode::OK), "HTTP/1.1 200 OK\r\ncontent-length: 2042");
        let not_found = "HTTP/1.1 404 Not Found\r\ncontent-length: 2042";
        assert_eq!(begin(StatusCode::NOT_FOUND), not_found);
        assert_eq!(begin(StatusCode::NO_CONTENT), "HTTP/1.1 204 No Content");
        let unnamed = StatusCode::from_u16(299).expect("a status");
        assert_eq!(begin(unnamed), "HTTP/1.1 299 Unknown\r\ncontent-length: 2042");
    }
}
