//! The terminal: taken when it begins, given back as it was when it ends, whatever ended it.
//!
//! States: ours (no echo, each key at once, the other screen, no cursor) → as it was, when [`Terminal`] is
//! dropped, which it is at the end, at an error, at SIGINT, SIGTERM and SIGHUP, and when the program
//! panics. SIGKILL is nobody's to hear: `reset` mends that. Drawn are whole pictures, from the upper left
//! corner, in the few sequences that every terminal of the last thirty years knows (ECMA-48).

use super::picture::{Line, Size, Style};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use std::io::{Read, Write};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// The room where a terminal does not say.
const UNKNOWN: Size = Size { columns: 80, rows: 24 };

/// A key that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// End it.
    Quit,
    /// Show the next site.
    NextSite,
}

/// The terminal, while it is ours.
pub struct Terminal {
    before: Termios,
    has_colours: bool,
}

impl Terminal {
    /// Takes it.
    ///
    /// # Errors
    /// Standard input is no terminal, or the other screen cannot be had.
    pub fn take() -> Result<Terminal, String> {
        let wrong = |error| format!("the terminal cannot be set: {error}");
        let before = tcgetattr(std::io::stdin()).map_err(wrong)?;
        let mut ours = before.clone();
        ours.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        ours.special_codes[SpecialCodeIndex::VMIN] = 1;
        ours.special_codes[SpecialCodeIndex::VTIME] = 0;
        // Stopped (Ctrl-Z) or ended by Ctrl-\, it could not give the terminal back.
        for code in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
            ours.special_codes[code] = 0;
        }
        tcsetattr(std::io::stdin(), OptionalActions::Now, &ours).map_err(wrong)?;
        let has_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let terminal = Terminal { before, has_colours };
        write("\x1b[?1049h\x1b[?25l\x1b[2J")?;
        Ok(terminal)
    }

    /// The room there is now.
    #[allow(clippy::unused_self, reason = "there is a size while the terminal is ours")]
    pub fn size(&self) -> Size {
        match tcgetwinsize(std::io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size { columns: size.ws_col.into(), rows: size.ws_row.into() }
            }
            _ => UNKNOWN,
        }
    }

    /// Draws a picture.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn draw(&mut self, lines: &[Line]) -> Result<(), String> {
        let columns = self.size().columns;
        let mut text = String::from("\x1b[H");
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                text.push_str("\r\n");
            }
            for (style, piece) in line.pieces(columns) {
                text.push_str(self.begin(style));
                text.push_str(&piece);
                text.push_str("\x1b[m");
            }
            text.push_str("\x1b[K");
        }
        text.push_str("\x1b[J");
        write(&text)
    }

    fn begin(&self, style: Style) -> &'static str {
        match style {
            Style::Plain => "",
            Style::Strong => "\x1b[1m",
            Style::Faint => "\x1b[2m",
            Style::Alarm if self.has_colours => "\x1b[1;31m",
            Style::Alarm | Style::Heading => "\x1b[7m",
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Where it has gone there is nothing to give back.
        let _ = write("\x1b[m\x1b[?25h\x1b[?1049l");
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.before);
    }
}

/// Tells of keys, from a thread of its own that ends with the program.
pub fn keys<T: Send + 'static>(sender: mpsc::Sender<T>, pressed: fn(Key) -> T) {
    std::thread::spawn(move || {
        for byte in std::io::stdin().lock().bytes() {
            let key = match byte {
                Ok(b'q' | b'Q') | Err(_) => Key::Quit,
                Ok(b's' | b'\t') => Key::NextSite,
                Ok(_) => continue,
            };
            if sender.blocking_send(pressed(key)).is_err() {
                return;
            }
        }
        let _ = sender.blocking_send(pressed(Key::Quit));
    });
}

/// Tells of another size, and of the signals that end it.
///
/// # Errors
/// The system does not let them be heard.
pub fn signals<T: Send + 'static>(
    sender: &mpsc::Sender<T>,
    resized: fn() -> T,
    over: fn() -> T,
) -> Result<(), String> {
    let ends = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let all =
        ends.map(|kind| (kind, over)).into_iter().chain([(SignalKind::window_change(), resized)]);
    for (kind, what) in all {
        let (mut heard, sender) =
            (signal(kind).map_err(|error| error.to_string())?, sender.clone());
        tokio::spawn(async move {
            while heard.recv().await.is_some() && sender.send(what()).await.is_ok() {}
        });
    }
    Ok(())
}

/// Whether the terminal is said to show more than ASCII.
pub fn speaks_utf8() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let said = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
    let said = said.to_ascii_lowercase();
    said.ends_with("utf-8") || said.ends_with("utf8")
}

fn write(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| format!("standard output cannot be written: {error}"))
}
