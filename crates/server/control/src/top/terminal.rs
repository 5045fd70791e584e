//! Terminal mode: set at the start, and restored at the end.
//!
//! While a [`Terminal`] exists, echo is off, keys are read one by one, the alternate screen is active,
//! and the cursor is hidden. Dropping it restores the terminal: at the end, at an error, at SIGINT,
//! SIGTERM and SIGHUP, and after a panic. After SIGKILL, use `reset`. Each update draws the whole
//! screen, with basic control sequences (ECMA-48) that every terminal supports.

use super::picture::{Line, Size, Style};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use std::io::{Read, Write};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// The assumed size if the terminal does not report one.
const UNKNOWN: Size = Size { columns: 80, rows: 24 };

/// A key with a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Quits `pagewell top`.
    Quit,
    /// Shows the next site.
    NextSite,
}

/// The terminal in the mode for this program.
pub struct Terminal {
    before: Termios,
    has_colours: bool,
}

impl Terminal {
    /// Sets the mode.
    ///
    /// # Errors
    /// Standard input is not a terminal, or the mode cannot be set.
    pub fn take() -> Result<Terminal, String> {
        let wrong = |error| format!("the terminal cannot be set: {error}");
        let before = tcgetattr(std::io::stdin()).map_err(wrong)?;
        let mut ours = before.clone();
        ours.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        ours.special_codes[SpecialCodeIndex::VMIN] = 1;
        ours.special_codes[SpecialCodeIndex::VTIME] = 0;
        // Disables Ctrl-Z and Ctrl-\, which would stop or end the program without restoring the
        // terminal.
        for code in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
            ours.special_codes[code] = 0;
        }
        tcsetattr(std::io::stdin(), OptionalActions::Now, &ours).map_err(wrong)?;
        let has_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let terminal = Terminal { before, has_colours };
        write("\x1b[?1049h\x1b[?25l\x1b[2J")?;
        Ok(terminal)
    }

    /// The current size of the terminal.
    #[allow(clippy::unused_self, reason = "there is a size while the terminal is ours")]
    pub fn size(&self) -> Size {
        match tcgetwinsize(std::io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size { columns: size.ws_col.into(), rows: size.ws_row.into() }
            }
            _ => UNKNOWN,
        }
    }

    /// Draws the lines.
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
        // If the terminal is gone, errors do not matter.
        let _ = write("\x1b[m\x1b[?25h\x1b[?1049l");
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.before);
    }
}

/// Reports keys, from a thread that ends with the program.
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

/// Reports size changes, and the signals that end the program.
///
/// # Errors
/// A signal handler cannot be installed.
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

/// Whether the locale supports UTF-8.
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
