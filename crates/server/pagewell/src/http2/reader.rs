//! What the client sends, read frame by frame in front of hyper: requests are offered to whoever answers
//! plain hits, and everything else is made ready for hyper.
//!
//! Header blocks build on each other (RFC 7541), and hyper sees some of them only. So each is read here, and
//! handed on as a block that stands by itself: hyper's table stays empty. Frames of streams that were
//! answered here hyper has never heard of, and does not get to see; their numbers it takes for passed over
//! (RFC 9113 section 5.1.1). Of what a client allows to be sent hyper is told its share (see `windows`). All
//! other frames go on byte for byte.
//!
//! | state | what the next byte is | next state |
//! |---|---|---|
//! | `Preface` | of the client's preface, for hyper | `Frame` |
//! | `Frame` | of a frame's head | `Pass`; `Block`; `Frame`, when the frame was for the front |
//! | `Pass` | of a frame, for hyper | `Frame` |
//! | `Block` | of a CONTINUATION frame, and of nothing else (section 6.10) | `Block`, `Frame` |
//!
//! Here is no input and no output, and nothing is decided about pages.

use super::fields::{Block, Fields};
use super::frame::{
    ErrorCode, FrameHead, HEAD_BYTES, PAYLOAD_BYTES_MAX, WINDOW_BYTES, WINDOW_BYTES_MAX, flag,
    kind, write_block, write_number,
};
use super::streams::{FIELD, Streams, field_value};
use super::windows::Windows;
use hpack::{Decoder, TABLE_BYTES, write_field};
use std::sync::Arc;

/// The length of the client's preface, without its settings.
const PREFACE_BYTES: usize = super::PREFACE.len();
/// SETTINGS_HEADER_TABLE_SIZE (section 6.5.2).
const SETTING_TABLE: u16 = 1;
/// SETTINGS_INITIAL_WINDOW_SIZE.
const SETTING_WINDOW: u16 = 4;
/// Memory that is kept for what comes next, in bytes.
const KEPT_BYTES: usize = 16 << 10;

/// A request that may be a plain hit: without content, and all there.
pub struct Request<'a> {
    /// What it says.
    pub fields: &'a Fields,
    /// Its stream.
    pub stream: u32,
    /// So much content may be sent, in bytes.
    pub room: usize,
}

/// What came of a look at what has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There may be more to be seen, or something for hyper.
    On,
    /// More has to arrive.
    Starved,
}

enum State {
    Preface { left: usize },
    Frame,
    Pass { left: usize },
    Block(Begun),
}

/// A header block that goes on in the next frame.
struct Begun {
    head: FrameHead,
    priority: Vec<u8>,
    block: Vec<u8>,
    frames: usize,
}

/// See the module.
pub struct Reader {
    arrived: Vec<u8>,
    /// How many of `arrived`, from its start, have been read.
    at: usize,
    state: State,
    decoder: Decoder,
    fields: Fields,
    /// A block as it is handed on: used again.
    again: Vec<u8>,
    /// What is to be handed on, and how much of it was.
    forward: Vec<u8>,
    forwarded: usize,
    /// The highest stream that has come.
    last: u32,
    /// The highest that hyper has been told of.
    last_behind: u32,
    stream_window: StreamWindow,
    /// Every block may be told that the client's table has become smaller, which only hyper can (RFC 7541
    /// section 4.2).
    small_table: bool,
    header_bytes_max: usize,
    /// Streams that hyper answers.
    streams: Arc<Streams>,
}

impl Reader {
    /// Of a connection of which `arrived` has come already; a request's header list may count so many bytes.
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
            last: 0,
            last_behind: 0,
            stream_window: StreamWindow::default(),
            small_table: false,
            header_bytes_max,
            streams: Arc::default(),
        }
    }

    /// Counts the streams that hyper answers.
    pub fn streams(&self) -> &Arc<Streams> {
        &self.streams
    }

    /// The highest stream that has come.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// So many settings of the client's were acknowledged to it.
    pub fn acknowledged(&mut self, count: u32) {
        self.stream_window.acknowledged(count);
    }

    /// Tells hyper of more that it may send on the connection, when it has little left; whether there is
    /// something to hand on. Not in the middle of a frame.
    pub fn lend(&mut self, windows: &mut Windows) -> bool {
        let more = if self.is_between() { windows.lend() } else { 0 };
        if more > 0 {
            write_number(kind::WINDOW_UPDATE, 0, more, &mut self.forward);
        }
        more > 0
    }

    /// Whether the next byte that hyper gets is not in the middle of a frame.
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Frame | State::Block(_))
    }

    /// Whether hyper has got all that is ready for it.
    pub fn has_handed_all(&self) -> bool {
        self.forward.is_empty()
    }

    /// Tells hyper that the client has given a stream up. Not in the middle of a frame.
    pub fn reset(&mut self, stream: u32) {
        write_number(kind::RST_STREAM, stream, ErrorCode::Cancel as u32, &mut self.forward);
    }

    /// Takes in what has arrived.
    pub fn arrive(&mut self, bytes: &[u8]) {
        self.arrived.drain(..std::mem::take(&mut self.at));
        self.arrived.extend_from_slice(bytes);
    }

    /// Hands hyper what is for it, at most `most` bytes, by `take`; returns how many there were.
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
        // As it has arrived.
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

    /// Looks at one frame. `answer` is offered each request that may be a plain hit, and returns how much
    /// content it has sent, in bytes, if it has answered it.
    ///
    /// # Errors
    /// The client breaks the protocol, or is immoderate: the connection is to be given up.
    pub fn step(
        &mut self,
        windows: &mut Windows,
        answer: impl FnOnce(Request<'_>) -> Option<usize>,
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
            if head.kind == kind::DATA && self.is_ours(head.stream) {
                return Err(ErrorCode::StreamClosed);
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

    /// Lets go of what has been read.
    fn tidy(&mut self) {
        if self.at == self.arrived.len() {
            self.at = 0;
            self.arrived.clear();
            self.arrived.shrink_to(KEPT_BYTES);
        }
    }

    /// Whether a stream was answered here, and hyper has heard of none since.
    fn is_ours(&self, stream: u32) -> bool {
        stream % 2 == 1 && stream > self.last_behind && stream <= self.last
    }

    /// SETTINGS, WINDOW_UPDATE and RST_STREAM.
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
                self.streams.forget(head.stream);
            }
        }
        self.forward.extend_from_slice(&self.arrived[from - HEAD_BYTES..to]);
        Ok(())
    }

    /// Section 6.5. Whether they may be as they are is for hyper to say.
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

    /// Section 6.2.
    fn headers(
        &mut self,
        head: FrameHead,
        (mut from, mut to): (usize, usize),
        windows: &mut Windows,
        answer: impl FnOnce(Request<'_>) -> Option<usize>,
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
        self.state = State::Block(Begun { head, priority, block, frames: 0 });
        Ok(())
    }

    /// Section 6.10.
    fn continuation(
        &mut self,
        head: FrameHead,
        (from, to): (usize, usize),
        windows: &mut Windows,
        answer: impl FnOnce(Request<'_>) -> Option<usize>,
    ) -> Result<(), ErrorCode> {
        let State::Block(mut begun) = std::mem::replace(&mut self.state, State::Frame) else {
            return Err(ErrorCode::Protocol);
        };
        if head.stream != begun.head.stream {
            return Err(ErrorCode::Protocol);
        }
        begun.block.extend_from_slice(&self.arrived[from..to]);
        begun.frames += 1;
        // A list that is not too long takes fewer bytes than it counts, and no more frames than these.
        let frames_max = self.header_bytes_max / PAYLOAD_BYTES_MAX + 5;
        if begun.block.len() > self.header_bytes_max + PAYLOAD_BYTES_MAX
            || begun.frames > frames_max
        {
            return Err(ErrorCode::EnhanceYourCalm);
        }
        match head.has(flag::END_HEADERS) {
            true => self.block(begun.head, &begun.priority, &begun.block, windows, answer),
            false => {
                self.state = State::Block(begun);
                Ok(())
            }
        }
    }

    /// A whole header block.
    fn block(
        &mut self,
        head: FrameHead,
        priority: &[u8],
        block: &[u8],
        windows: &mut Windows,
        answer: impl FnOnce(Request<'_>) -> Option<usize>,
    ) -> Result<(), ErrorCode> {
        let read = self.fields.read(&mut self.decoder, block, self.header_bytes_max);
        read.map_err(|_| ErrorCode::Compression)?;
        let stream = head.stream;
        if self.is_ours(stream) {
            return Err(ErrorCode::StreamClosed);
        }
        let is_new = stream % 2 == 1 && stream > self.last;
        if is_new {
            self.last = stream;
            let is_whole = head.has(flag::END_STREAM) && !self.small_table;
            // A stream that waits for itself is hyper's to refuse.
            let waits_for = priority.first_chunk().copied().map_or(0, u32::from_be_bytes);
            if is_whole && waits_for & WINDOW_BYTES_MAX != stream {
                let room = self.stream_window.room().min(windows.ours()) as usize;
                if let Some(sent) = answer(Request { fields: &self.fields, stream, room }) {
                    windows.sent(sent as u32);
                    return Ok(());
                }
            }
            self.last_behind = stream;
        }
        self.again.clear();
        let kind = if is_new { Block::Request } else { Block::Trailers };
        self.fields.write_block(kind, &mut self.again);
        if is_new {
            write_field(FIELD.as_bytes(), field_value(stream).as_bytes(), &mut self.again);
        }
        let flags = head.flags & (flag::END_STREAM | flag::PRIORITY);
        write_block(stream, flags, priority, &self.again, &mut self.forward);
        self.again.shrink_to(KEPT_BYTES);
        Ok(())
    }
}

/// What the client allows to be sent on each stream, in bytes. It may count by what it allowed before until
/// its settings are acknowledged (RFC 9113 section 6.5.3): till then the least of all that may count.
struct StreamWindow {
    /// As set last.
    last: u32,
    /// The least of what was set since the last acknowledgement of all, and what counted then.
    least: u32,
    /// How many settings have come.
    came: u32,
}

impl Default for StreamWindow {
    fn default() -> StreamWindow {
        StreamWindow { last: WINDOW_BYTES, least: WINDOW_BYTES, came: 0 }
    }
}

impl StreamWindow {
    /// Settings have come, with a window or without.
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
