//! Answers plain hits over HTTP/2. The request is converted to HTTP/1.1 and looked up as such, and the
//! result is written in frames.
//!
//! hyper answers everything else: requests that are not plain hits, and content that is long or exceeds
//! the client's windows.

use super::frame::{flag, write_block, write_content};
use super::reader::{LeftRequest, Request};
use crate::front::logged::{Lines, LoggedRequest, show_hit};
use crate::hit::{Hit, HitFinder};
use delivery::site::Site;
use hpack::{write_field, write_status};
use std::sync::Arc;
use telemetry::client::ClientConnection;
use telemetry::evidence::ClientEvidence;

/// Maximum content length, in bytes. Longer content is left to hyper, which sends it in pieces without
/// copying it.
const CONTENT_BYTES_MAX: usize = 128 << 10;

/// The state for answering the plain hits of one connection.
pub struct Answers {
    site: Arc<Site>,
    hits: HitFinder,
    scheme: &'static str,
    /// Reused buffers: the request as HTTP/1.1, the variable header lines of a hit, and the header
    /// block.
    text: Vec<u8>,
    tail: Vec<u8>,
    block: Vec<u8>,
    /// The access log's writer, if there is an access log.
    lines: Option<Box<Lines>>,
    /// The hits that are not recorded as evidence yet.
    hits_sent: u32,
    evidence: Option<ClientEvidence>,
}

impl Answers {
    /// For a client's connection. `None` if hyper has to answer every request.
    pub fn new(site: &Arc<Site>, client: &Arc<ClientConnection>) -> Option<Answers> {
        let redirected = exchange::is_redirected(site, client.scheme);
        (site.config.hits_in_front && !redirected && site.answers_from_cache()).then(|| Answers {
            site: site.clone(),
            hits: HitFinder::new(site.clone(), client),
            scheme: client.scheme,
            text: Vec::new(),
            tail: Vec::new(),
            block: Vec::new(),
            lines: Lines::of(site, client),
            hits_sent: 0,
            evidence: client.evidence.clone(),
        })
    }

    /// Answers a request if it is a plain hit whose content fits. Writes the frames to `out`, and
    /// returns the content's length in bytes.
    ///
    /// # Errors
    /// hyper has to answer it.
    pub fn answer(
        &mut self,
        request: &Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, LeftRequest> {
        // The same limit as over HTTP/1.1; each cookie field counts.
        if request.fields.lines() > self.site.limits.headers {
            return Err(LeftRequest::default());
        }
        let written = request.fields.write_plain(self.scheme, &mut self.text);
        written.ok_or(LeftRequest::default())?;
        self.hits.bound(request.room.min(CONTENT_BYTES_MAX));
        match self.hits.find(&self.text, std::mem::take(&mut self.tail)) {
            Ok((mut hit, head_bytes)) => {
                debug_assert_eq!(head_bytes, self.text.len());
                self.hits_sent += u32::from(!hit.is_redirect());
                let sent = self.write(&hit, request.stream, out);
                if self.site.request_tap.is_watched() {
                    show_hit(&self.site, &self.text, &self.hits.lines(&self.text), &hit);
                }
                if let Some(lines) = &mut self.lines {
                    let (head, protocol) = (&self.text[..], b"HTTP/2.0");
                    hit.wrote(hit.length());
                    let said = LoggedRequest { head, lines: self.hits.lines(head), protocol };
                    lines.write_hit(&self.site, &said, &hit, true);
                }
                self.tail = hit.into_buffer();
                Ok(sent)
            }
            Err(unanswered) => {
                self.tail = unanswered.buffer;
                if let Some(evidence) = &self.evidence {
                    evidence.add_hits(std::mem::take(&mut self.hits_sent));
                }
                Err(LeftRequest { unredirected: unanswered.unredirected })
            }
        }
    }

    fn write(&mut self, hit: &Hit, stream: u32, out: &mut Vec<u8>) -> usize {
        self.block.clear();
        write_status(hit.status(), &mut self.block);
        hit.head().iter().for_each(|piece| write_lines(piece, &mut self.block));
        let content = hit.content();
        let flags = if content.is_empty() { flag::END_STREAM } else { 0 };
        write_block(stream, flags, &[], &self.block, out);
        write_content(stream, content, out);
        content.len()
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        if let Some(evidence) = &self.evidence {
            evidence.add_last_hits(self.hits_sent);
        }
    }
}

/// Writes header lines, whose names are in lower case, as fields of a header block. Skips the status
/// line, which has no colon before its first space, and the empty line.
fn write_lines(mut lines: &[u8], block: &mut Vec<u8>) {
    while let Some(end) = memchr::memchr(b'\n', lines) {
        let line = lines[..end].strip_suffix(b"\r").unwrap_or(&lines[..end]);
        lines = &lines[end + 1..];
        let Some(colon) = memchr::memchr2(b':', b' ', line) else { continue };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if line[colon] == b':' && !is_of_the_connection(name) {
            write_field(name, value.strip_prefix(b" ").unwrap_or(value), block);
        }
    }
}

/// Whether a field is connection-specific (RFC 9113 section 8.2.2).
fn is_of_the_connection(name: &[u8]) -> bool {
    super::OF_THE_CONNECTION.iter().any(|known| known.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_fields() {
        let mut block = Vec::new();
        let head = "HTTP/1.1 404 Not: Found\r\ncontent-type: text/html\r\nx-empty:\r\n\
             keep-alive: timeout=5\r\netag: \"a: b\"\r\n";
        write_lines(head.as_bytes(), &mut block);
        write_lines(b"age: 7\r\n\r\n", &mut block);
        let mut seen = Vec::new();
        let mut see = |name: &[u8], value: &[u8]| {
            seen.push(String::from_utf8([name, b"=", value].concat()).unwrap());
        };
        hpack::Decoder::default().decode(&block, &mut see).unwrap();
        assert_eq!(seen, ["content-type=text/html", "x-empty=", "etag=\"a: b\"", "age=7"]);
    }
}
