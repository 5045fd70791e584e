//! Sends one answer according to its rule: holds, interim response, header section, content in its framing (RFC
//! 9112 section 6), and the faults.
//!
//! If the peer closes the connection, this is noted in the transcript. It does not fail the scenario, which may
//! intend it.

use super::script::ScriptState;
use crate::blanks;
use crate::codings;
use crate::story::{Answer, AnswerKind, Framing, Text};
use crate::transcript::shorten;
use harness::wire::{HttpConnection, MessageFields, MessageHead, chunk, head_bytes};

/// Finds the answer to a request and sends it. Returns whether the connection may be used for another request.
pub(super) fn answer(
    connection: &mut HttpConnection,
    shared: &ScriptState,
    epoch: u64,
    head: MessageHead,
    body: Vec<u8>,
) -> bool {
    let first = head.first.clone();
    let is_head = first.starts_with("HEAD ");
    let asked_to_close = head.lists("connection", "close");
    let taken = shared.lock().take(head, body);
    shared.changed.notify_all();
    let Some((line, answer)) = taken else {
        shared.transcript.add(format!("  origin: {first}: no rule fits"));
        let text = "HTTP/1.1 500 No Rule\r\ncontent-length: 20\r\ncache-control: no-store\r\nconnection: close\r\n\r\nno rule of the story";
        let _ = connection.write(text.as_bytes());
        return false;
    };
    shared.transcript.add(format!("  origin: {first}: answered by line {line}"));
    if let Some(gate) = &answer.hold
        && !shared.wait_at(gate, epoch)
    {
        return false;
    }
    let given = match &answer.kind {
        AnswerKind::Refuse => Ok(false),
        AnswerKind::Hang => {
            shared.wait_for_end(epoch);
            Ok(false)
        }
        AnswerKind::Raw(text) => fill(shared, text).and_then(|bytes| {
            connection.write(&bytes).map_err(|e| e.to_string())?;
            Ok(false)
        }),
        AnswerKind::Response { status, fields, body } => {
            let response = Response { status: *status, fields, body, is_head };
            give(connection, shared, epoch, &answer, &response)
        }
    };
    match given {
        Ok(stays_open) => stays_open && !asked_to_close,
        Err(why) => {
            shared.transcript.add(format!("  origin: the answer of line {line} failed: {why}"));
            false
        }
    }
}

/// A normal answer, and whether the request was HEAD.
struct Response<'r> {
    status: u16,
    fields: &'r [(String, Text)],
    body: &'r Text,
    is_head: bool,
}

fn give(
    connection: &mut HttpConnection,
    shared: &ScriptState,
    epoch: u64,
    answer: &Answer,
    response: &Response,
) -> Result<bool, String> {
    let mut content = fill(shared, response.body)?;
    if answer.encoded {
        let named = response.fields.iter().find(|(name, _)| name == "content-encoding");
        let named = named.map_or(Ok(Vec::new()), |(_, value)| fill(shared, value))?;
        content = codings::encode(&named, &content)?;
    }
    let (fields, stays_open) = fields(shared, answer, response, content.len())?;
    let mut bytes = Vec::new();
    if answer.interim {
        bytes.extend_from_slice(
            b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n",
        );
    }
    let first = format!("HTTP/1.1 {} {}", response.status, reason(response.status));
    bytes.extend(head_bytes(&first, &fields));
    if let Some(gate) = &answer.hold_body {
        connection.write(&bytes).map_err(|e| e.to_string())?;
        bytes.clear();
        if !shared.wait_at(gate, epoch) {
            return Ok(false);
        }
    }
    let has_content = !response.is_head && !has_no_content(response.status);
    let pieces = if has_content { pieces(answer, &content) } else { Vec::new() };
    // In one write with the head: Pagewell holds it back for a moment only, and on a busy machine the content is later.
    for piece in pieces {
        if answer.trickle {
            connection.write(&bytes).map_err(|e| e.to_string())?;
            bytes.clear();
        }
        bytes.extend_from_slice(&piece);
    }
    connection.write(&bytes).map_err(|e| e.to_string())?;
    Ok(stays_open && !(has_content && answer.cut))
}

/// RFC 9112 section 6.3: responses with these statuses never have content.
fn has_no_content(status: u16) -> bool {
    matches!(status, 204 | 304)
}

/// The header lines, and whether the connection stays open after them. A length given by the scenario is not
/// changed; a wrong one ends the connection.
fn fields(
    shared: &ScriptState,
    answer: &Answer,
    response: &Response,
    length: usize,
) -> Result<(MessageFields, bool), String> {
    let mut lines = MessageFields::new();
    for (name, value) in response.fields {
        lines.push((name.clone(), fill(shared, value)?));
    }
    let given = lines.iter().find(|(name, _)| name == "content-length");
    let honest = given.is_none_or(|(_, value)| *value == length.to_string().into_bytes());
    let without_length = given.is_some() || has_no_content(response.status);
    match answer.framing {
        Framing::Length if !without_length => {
            lines.push(("content-length".into(), length.to_string().into_bytes()));
        }
        Framing::Chunked => lines.push(("transfer-encoding".into(), b"chunked".to_vec())),
        Framing::Length | Framing::UntilClose => {}
    }
    let ends = answer.close || answer.framing == Framing::UntilClose;
    if ends {
        lines.push(("connection".into(), b"close".to_vec()));
    }
    Ok((lines, honest && !ends))
}

/// The content, divided into the pieces of an answer that trickles.
fn pieces(answer: &Answer, content: &[u8]) -> Vec<Vec<u8>> {
    let chunked = answer.framing == Framing::Chunked;
    if answer.cut {
        let half = content.len() / 2;
        let mut piece = Vec::new();
        if chunked {
            piece.extend_from_slice(format!("{:x}\r\n", content.len()).as_bytes());
        }
        piece.extend_from_slice(&content[..half]);
        return vec![piece];
    }
    let size = if answer.trickle { 1 } else { content.len().max(1) };
    let frame = |piece: &[u8]| if chunked { chunk(piece) } else { piece.to_vec() };
    let mut pieces: Vec<_> = content.chunks(size).map(frame).collect();
    if chunked {
        pieces.push(b"0\r\n\r\n".to_vec());
    }
    pieces
}

fn fill(shared: &ScriptState, text: &Text) -> Result<Vec<u8>, String> {
    let filled = blanks::fill(&text.0, &shared.lock().blanks);
    filled.map_err(|why| format!("{why} in {}", shorten(&text.0, 80)))
}

/// A reason phrase, which a cache must ignore (RFC 9112 section 4).
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        404 => "Not Found",
        410 => "Gone",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Scripted",
    }
}
