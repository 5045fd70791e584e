//! Terminal mode: set at the start, and restored at the end.
//!
//! While a [`Terminal`] exists, the terminal is in raw mode, the alternate screen is active, and the
//! cursor is hidden. Dropping it restores the terminal: at the end, at an error, at SIGINT, SIGTERM and
//! SIGHUP, and after a panic. After SIGKILL, use `reset`. Drawing is ratatui's; keys and sizes are
//! crossterm's. The size is read for each update, because some terminals do not report one.

use super::picture::Size;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::{TerminalOptions, Viewport};
use std::io::{self, Stdout, stdout};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// The assumed size in columns and rows if the terminal does not report one.
const UNKNOWN: (u16, u16) = (80, 24);

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
    screen: ratatui::Terminal<CrosstermBackend<Stdout>>,
    area: Rect,
}

impl Terminal {
    /// Sets the mode.
    ///
    /// # Errors
    /// Standard input is not a terminal, or the mode cannot be set.
    pub fn take() -> Result<Terminal, String> {
        let wrong = |error| format!("the terminal cannot be set: {error}");
        enable_raw_mode().map_err(wrong)?;
        let area = area();
        let screen = execute!(stdout(), EnterAlternateScreen, Hide).and_then(|()| screen(area));
        match screen {
            Ok(screen) => Ok(Terminal { screen, area }),
            Err(error) => {
                restore();
                Err(wrong(error))
            }
        }
    }

    /// The current size of the terminal.
    #[allow(clippy::unused_self, reason = "the size is valid while the terminal is in use")]
    pub fn size(&self) -> Size {
        let area = area();
        Size { columns: area.width.into(), rows: area.height.into() }
    }

    /// Draws the lines.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn draw(&mut self, lines: &[Line<'_>]) -> Result<(), String> {
        self.draw_in(area(), lines)
            .map_err(|error| format!("standard output cannot be written: {error}"))
    }

    fn draw_in(&mut self, area: Rect, lines: &[Line<'_>]) -> io::Result<()> {
        if area != self.area {
            (self.screen, self.area) = (screen(area)?, area);
        }
        self.screen.draw(|frame| {
            for (line, row) in lines.iter().zip(frame.area().rows()) {
                frame.render_widget(line, row);
            }
        })?;
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// An empty screen of this size. Its area is fixed, because ratatui would otherwise fail on a terminal
/// that does not report its size.
fn screen(area: Rect) -> io::Result<ratatui::Terminal<CrosstermBackend<Stdout>>> {
    execute!(stdout(), Clear(ClearType::All))?;
    let options = TerminalOptions { viewport: Viewport::Fixed(area) };
    ratatui::Terminal::with_options(CrosstermBackend::new(stdout()), options)
}

fn area() -> Rect {
    let known = size().ok().filter(|(columns, rows)| *columns > 0 && *rows > 0);
    let (columns, rows) = known.unwrap_or(UNKNOWN);
    Rect::new(0, 0, columns, rows)
}

/// Restores the terminal. If it is gone, errors do not matter.
fn restore() {
    let _ = execute!(stdout(), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

/// Reports keys and size changes, from a thread that ends with the program.
pub fn events<T: Send + 'static>(
    sender: mpsc::Sender<T>,
    pressed: fn(Key) -> T,
    resized: fn() -> T,
) {
    std::thread::spawn(move || {
        loop {
            let happened = match event::read() {
                Ok(Event::Key(event)) => key(event).map(pressed),
                Ok(Event::Resize(..)) => Some(resized()),
                Ok(_) => None,
                Err(_) => Some(pressed(Key::Quit)),
            };
            if let Some(happened) = happened
                && sender.blocking_send(happened).is_err()
            {
                return;
            }
        }
    });
}

/// The function of a key. In raw mode, Ctrl-C is a key and not a signal.
fn key(event: KeyEvent) -> Option<Key> {
    let has_control = event.modifiers.contains(KeyModifiers::CONTROL);
    match event.code {
        _ if event.kind == KeyEventKind::Release => None,
        KeyCode::Char('c') if has_control => Some(Key::Quit),
        KeyCode::Char('q' | 'Q') => Some(Key::Quit),
        KeyCode::Char('s') | KeyCode::Tab => Some(Key::NextSite),
        _ => None,
    }
}

/// Reports the signals that end the program.
///
/// # Errors
/// A signal handler cannot be installed.
pub fn signals<T: Send + 'static>(sender: &mpsc::Sender<T>, over: fn() -> T) -> Result<(), String> {
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let (mut received, sender) =
            (signal(kind).map_err(|error| error.to_string())?, sender.clone());
        tokio::spawn(async move {
            while received.recv().await.is_some() && sender.send(over()).await.is_ok() {}
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
