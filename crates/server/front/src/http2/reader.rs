//! Parses the client's frames before hyper: offers requests to the handler for plain hits, and converts
//! everything else for hyper.
//!
//! Header blocks depend on earlier ones (RFC 7541), and hyper sees only some of them. So each is
//! decoded here and passed on as a block that does not use the dynamic table. hyper never sees frames
//! of streams that were answered here; it regards their numbers as skipped (RFC 9113 section 5.1.1).
//! hyper is granted a share of the client's connection window (see `windows`). All other frames are
//! forwarded unchanged.
//!
//! | state | the next byte belongs to | next state |
//! |---|---|---|
//! | `Preface` | the client's preface, for hyper | `Frame` |
//! | `Frame` | a frame header | `Pass`; `Block`; `Frame`, if the frame was for the front |
//! | `Pass` | a frame for hyper | `Frame` |
//! | `Block` | a CONTINUATION frame; nothing else is allowed (section 6.10) | `Block`, `Frame` |
//!
//! This module does no I/O, and decides nothing about pages.

use super::fields::{Block, Fields};
use super::frame::{
    ErrorCode, FrameHead, HEAD_BYTES, PAYLOAD_BYTES_MAX, WINDOW_BYTES, WINDOW_BYTES_MAX, flag,
    kind, write_block, write_number,
};
use super::opened::OpenedStreams;
use super::streams::{FIELD, Streams, field_value};
use super::windows::Windows;
use hpack::{Decoder, TABLE_BYTES, write_field};
use std::sync::Arc;

/// The length of the client's preface without its SETTINGS frame, in bytes.
const PREFACE_BYTES: usize = super::PREFACE.len();
/// The identifier of SETTINGS_HEADER_TABLE_SIZE (RFC 9113 section 6.5.2).
const SETTING_TABLE: u16 = 1;
/// The identifier of SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 section 6.5.2).
const SETTING_WINDOW: u16 = 4;
/// Maximum buffer capacity that is retained between frames, in bytes.
const KEPT_BYTES: usize = 16 << 10;

/// A complete request without content, which may be a plain hit.
pub struct Request<'a> {
    /// The fields of the request.
    pub fields: &'a Fields,
    /// The identifier of the request's stream.
    pub stream: u32,
    /// How many bytes of content the flow-control windows allow.
    pub room: usize,
}

/// A request that is left to hyper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftRequest {
    /// The number of the site's configuration by which it is not redirected; 0 if that is not known.
    pub unredirected: u64,
}

/// The result of processing the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Call again: there may be another frame, or bytes for hyper.
    On,
    /// No complete frame is left; more bytes have to arrive.
    Starved,
}

enum State {
    Preface { left: usize },
    Frame,
    Pass { left: usize },
    Block(PartialHeaderBlock),
}

/// A header block that continues in the next frame.
struct PartialHeaderBlock {
    head: FrameHead,
    priority: Vec<u8>,
    block: Vec<u8>,
    frames: usize,
}

/// The parser's state for one connection; see the module.
pub struct Reader {
    arrived: Vec<u8>,
    /// How many bytes at the start of `arrived` have been processed.
    at: usize,
    state: State,
    decoder: Decoder,
    fields: Fields,
    /// Reused buffer for a re-encoded header block.
    again: Vec<u8>,
    /// Converted frames for hyper, and how many bytes of them hyper has read.
    forward: Vec<u8>,
    forwarded: usize,
    opened: OpenedStreams,
    /// The highest stream that hyper knows.
    last_behind: u32,
    stream_window: StreamWindow,
    /// Whether the client has announced a smaller header table. Then each block might have to begin
    /// with a table size update, which only hyper can write (RFC 7541 section 4.2).
    small_table: bool,
    header_bytes_max: usize,
    /// The progress of the streams that hyper answers.
    streams: Arc<Streams>,
}

impl Reader {
    /// A parser for a connection from which `arrived` has been read. A request's field list may have
    /// `header_bytes_max` bytes.
    pub fn new(arrived: Vec<u8>, header_bytes_max: usize) -> Reader {
        Reader {
            arrived,
            at: 0,
            state: State::Preface { left: PREFACE_BYTES },
            decoder: Decoder::default(),
            fields: Fields::default(),
            again: Vec::new(),
            forward: Vec::new(),
            forwarded: 0,
            opened: OpenedStreams::default(),
            last_behind: 0,
            stream_window: StreamWindow::default(),
            small_table: false,
            header_bytes_max,
            streams: Arc::default(),
        }
    }

    /// The progress of the streams that hyper answers.
    pub fn streams(&self) -> &Arc<Streams> {
        &self.streams
    }

    /// The highest stream that the client has opened.
    pub fn last(&self) -> u32 {
        self.opened.last()
    }

    /// `count` SETTINGS frames of the client have been acknowledged so far.
    pub fn acknowledged(&mut self, count: u32) {
        self.stream_window.acknowledged(count);
    }

    /// Increases hyper's connection window if it is nearly used up, unless hyper is in the middle of a
    /// frame. Returns whether a frame for hyper was produced.
    pub fn lend(&mut self, windows: &mut Windows) -> bool {
        let more = if self.is_between() { windows.lend() } else { 0 };
        if more > 0 {
            write_number(kind::WINDOW_UPDATE, 0, more, &mut self.forward);
        }
        more > 0
    }

    /// Whether the next byte for hyper starts a frame.
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Frame | State::Block(_))
    }

    /// Whether hyper has read all converted frames.
    pub fn has_handed_all(&self) -> bool {
        self.forward.is_empty()
    }

    /// Writes a reset for hyper, as if the client had reset `stream`. Not allowed in the middle of a
    /// frame.
    pub fn reset(&mut self, stream: u32) {
        write_number(kind::RST_STREAM, stream, ErrorCode::Cancel as u32, &mut self.forward);
    }

    /// Appends bytes that were read from the client.
    pub fn arrive(&mut self, bytes: &[u8]) {
        self.arrived.drain(..std::mem::take(&mut self.at));
        self.arrived.extend_from_slice(bytes);
    }

    /// Passes at most `most` bytes for hyper to `take`. Returns the number of bytes.
    pub fn hand_on(&mut self, most: usize, take: impl FnOnce(&[u8])) -> usize {
        let ready = &self.forward[self.forwarded..];
        if !ready.is_empty() {
            let count = ready.len().min(most);
            take(&ready[..count]);
            self.forwarded += count;
            if self.forwarded == self.forward.len() {
                self.forward.clear();
                self.forward.shrink_to(KEPT_BYTES);
                self.forwarded = 0;
            }
            return count;
        }
        // Forwarded unchanged.
        let (State::Preface { left } | State::Pass { left }) = &mut self.state else { return 0 };
        let waiting = &self.arrived[self.at..];
        let count = waiting.len().min(most).min(*left);
        take(&waiting[..count]);
        self.at += count;
        *left -= count;
        if *left == 0 {
            self.state = State::Frame;
        }
        self.tidy();
        count
    }

    /// Processes one frame. `answer` is called for a request that may be a plain hit. If it answers the
    /// request, it returns how many bytes of content it has sent; otherwise, what it has found out about it.
    ///
    /// # Errors
    /// The client violates the protocol or causes excessive load; the connection has to end.
    pub fn step(
        &mut self,
        windows: &mut Windows,
        answer: impl FnOnce(Request<'_>) -> Result<usize, LeftRequest>,
    ) -> Result<Step, ErrorCode> {
        match &self.state {
            State::Preface { .. } | State::Pass { .. } => return Ok(Step::Starved),
            State::Frame | State::Block(_) => {}
        }
        let Some(head) = FrameHead::read(&self.arrived[self.at..]) else {
            return Ok(Step::Starved);
        };
        if head.length > PAYLOAD_BYTES_MAX {
            return Err(ErrorCode::FrameSize);
        }
        let in_block = matches!(self.state, State::Block(_));
        if in_block != (head.kind == kind::CONTINUATION) || head.kind == kind::PUSH_PROMISE {
            return Err(ErrorCode::Protocol);
        }
        let is_read = matches!(
            head.kind,
            kind::HEADERS
                | kind::CONTINUATION
                | kind::SETTINGS
                | kind::WINDOW_UPDATE
                | kind::RST_STREAM
        );
        if !is_read {
            if head.kind == kind::DATA {
                if self.is_ours(head.stream) {
                    return Err(ErrorCode::StreamClosed);
                }
                if head.has(flag::END_STREAM) {
                    self.opened.end(head.stream);
                }
            }
            self.state = State::Pass { left: HEAD_BYTES + head.length };
            return Ok(Step::On);
        }
        let from = self.at + HEAD_BYTES;
        let to = from + head.length;
        if self.arrived.len() < to {
            return Ok(Step::Starved);
        }
        match head.kind {
            kind::HEADERS => self.headers(head, (from, to), windows, answer)?,
            kind::CONTINUATION => self.continuation(head, (from, to), windows, answer)?,
            _ => self.control(head, (from, to), windows)?,
        }
        self.at = to;
        self.tidy();
        Ok(Step::On)
    }

    /// Discards the processed bytes once all are processed.
    fn tidy(&mut self) {
        if self.at == self.arrived.len() {
            self.at = 0;
            self.arrived.clear();
            self.arrived.shrink_to(KEPT_BYTES);
        }
    }

    /// Whether a stream was answered here, and hyper has received no higher stream.
    fn is_ours(&self, stream: u32) -> bool {
        stream % 2 == 1 && stream > self.last_behind && stream <= self.last()
    }

    /// Processes SETTINGS, WINDOW_UPDATE and RST_STREAM.
    fn control(
        &mut self,
        head: FrameHead,
        (from, to): (usize, usize),
        windows: &mut Windows,
    ) -> Result<(), ErrorCode> {
        if head.kind == kind::SETTINGS {
            if head.stream == 0 && !head.has(flag::ACK) {
                self.settings((from, to));
            }
        } else {
            let number = self.arrived[from..to].first_chunk().copied().map(u32::from_be_bytes);
            let number = number.filter(|_| head.length == 4).ok_or(ErrorCode::FrameSize)?;
            if self.is_ours(head.stream) {
                return Ok(());
            }
            if head.kind == kind::WINDOW_UPDATE && head.stream == 0 {
                return self.allow(number & WINDOW_BYTES_MAX, windows);
            }
            if head.kind == kind::RST_STREAM {
                self.opened.end(head.stream);
                self.streams.forget(head.stream);
            }
        }
        self.forward.extend_from_slice(&self.arrived[from - HEAD_BYTES..to]);
        Ok(())
    }

    /// Processes SETTINGS (section 6.5). hyper validates them.
    fn settings(&mut self, (from, to): (usize, usize)) {
        let mut window = None;
        for setting in self.arrived[from..to].chunks_exact(6) {
            let [a, b, value @ ..] = setting else { continue };
            let value = value.first_chunk().copied().map_or(0, u32::from_be_bytes);
            match u16::from_be_bytes([*a, *b]) {
                SETTING_WINDOW => window = Some(value.min(WINDOW_BYTES_MAX)),
                SETTING_TABLE if (value as usize) < TABLE_BYTES => self.small_table = true,
                _ => {}
            }
        }
        self.stream_window.set(window);
    }

    fn allow(&mut self, more: u32, windows: &mut Windows) -> Result<(), ErrorCode> {
        if more == 0 {
            return Err(ErrorCode::Protocol);
        }
        let told = windows.allow(more).ok_or(ErrorCode::FlowControl)?;
        if told > 0 {
            write_number(kind::WINDOW_UPDATE, 0, told, &mut self.forward);
        }
        Ok(())
    }

    /// Processes a HEADERS frame (section 6.2), whose payload is at `from..to`.
    fn headers(
        &mut self,
        head: FrameHead,
        (mut from, mut to): (usize, usize),
        windows: &mut Windows,
        answer: impl FnOnce(Request<'_>) -> Result<usize, LeftRequest>,
    ) -> Result<(), ErrorCode> {
        if head.has(flag::PADDED) {
            let padding = *self.arrived[from..to].first().ok_or(ErrorCode::FrameSize)?;
            from += 1;
            to = to
                .checked_sub(padding.into())
                .filter(|to| *to >= from)
                .ok_or(ErrorCode::Protocol)?;
        }
        let mut priority = Vec::new();
        if head.has(flag::PRIORITY) {
            let bytes = self.arrived[from..to].get(..5).ok_or(ErrorCode::FrameSize)?;
            priority.extend_from_slice(bytes);
            from += 5;
        }
        if head.has(flag::END_HEADERS) {
            let block = std::mem::take(&mut self.arrived);
            let done = self.block(head, &priority, &block[from..to], windows, answer);
            self.arrived = block;
            return done;
        }
        let block = self.arrived[from..to].to_vec();
        self.state = State::Block(PartialHeaderBlock { head, priority, block, frames: 0 });
        Ok(())
    }

    /// Processes a CONTINUATION frame (section 6.10), whose payload is at `from..to`.
    fn continuation(
        &mut self,
        head: FrameHead,
        (from, to): (usize, usize),
        windows: &mut Windows,
        answer: impl FnOnce(Request<'_>) -> Result<usize, LeftRequest>,
    ) -> Result<(), ErrorCode> {
        let State::Block(mut begun) = std::mem::replace(&mut self.state, State::Frame) else {
            return Err(ErrorCode::Protocol);
        };
        if head.stream != begun.head.stream {
            return Err(ErrorCode::Protocol);
        }
        begun.block.extend_from_slice(&self.arrived[from..to]);
        begun.frames += 1;
        // A list within the limit is shorter as a block than the size counted for it, and needs at most
        // this many frames.
        let frames_max = self.header_bytes_max / PAYLOAD_BYTES_MAX + 5;
        if begun.block.len() > self.header_bytes_max + PAYLOAD_BYTES_MAX
            || begun.frames > frames_max
        {
            return Err(ErrorCode::EnhanceYourCalm);
        }
        if head.has(flag::END_HEADERS) {
            self.block(begun.head, &begun.priority, &begun.block, windows, answer)
        } else {
            self.state = State::Block(begun);
            Ok(())
        }
    }

    /// Processes a complete header block: offers it to `answer`, or converts it for hyper.
    fn block(
        &mut self,
        head: FrameHead,
        priority: &[u8],
        block: &[u8],
        windows: &mut Windows,
        answer: impl FnOnce(Request<'_>) -> Result<usize, LeftRequest>,
    ) -> Result<(), ErrorCode> {
        let read = self.fields.read(&mut self.decoder, block, self.header_bytes_max);
        read.map_err(|_| ErrorCode::Compression)?;
        let stream = head.stream;
        let kind = self.opened.headers(stream, head.has(flag::END_STREAM))?;
        let is_new = kind == Block::Request;
        let mut left = LeftRequest::default();
        if is_new {
            let is_whole = head.has(flag::END_STREAM) && !self.small_table;
            // A stream that depends on itself is an error; hyper handles it.
            let waits_for = priority.first_chunk().copied().map_or(0, u32::from_be_bytes);
            if is_whole && waits_for & WINDOW_BYTES_MAX != stream {
                let room = self.stream_window.room().min(windows.ours()) as usize;
                match answer(Request { fields: &self.fields, stream, room }) {
                    Ok(sent) => {
                        windows.sent(sent as u32);
                        return Ok(());
                    }
                    Err(request) => left = request,
                }
            }
            self.last_behind = stream;
        }
        self.again.clear();
        self.fields.write_block(kind, &mut self.again);
        if is_new {
            let value = field_value(stream, left.unredirected);
            write_field(FIELD.as_bytes(), value.as_bytes(), &mut self.again);
        }
        let flags = head.flags & (flag::END_STREAM | flag::PRIORITY);
        write_block(stream, flags, priority, &self.again, &mut self.forward);
        self.again.shrink_to(KEPT_BYTES);
        Ok(())
    }
}

/// The client's initial window for streams, in bytes. Until a SETTINGS frame is acknowledged, the
/// client may still apply its earlier value (RFC 9113 section 6.5.3). So the least value that may apply
/// is used.
struct StreamWindow {
    /// The value in the latest settings.
    last: u32,
    /// The least value since all settings were last acknowledged, including the value that applied
    /// then.
    least: u32,
    /// How many SETTINGS frames have been received.
    came: u32,
}

impl Default for StreamWindow {
    fn default() -> StreamWindow {
        StreamWindow { last: WINDOW_BYTES, least: WINDOW_BYTES, came: 0 }
    }
}

impl StreamWindow {
    /// Records a SETTINGS frame, with a window size or without.
    fn set(&mut self, window: Option<u32>) {
        self.came += 1;
        self.last = window.unwrap_or(self.last);
        self.least = self.least.min(self.last);
    }

    fn acknowledged(&mut self, count: u32) {
        if self.came == count {
            self.least = self.last;
        }
    }

    fn room(&self) -> u32 {
        self.least
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
