//! A pseudo-terminal that runs a program and is its controlling terminal, so that the program receives changes
//! of size and the keys that send signals.
//!
//! The program's output is kept, up to a limit, and drawn on the screen of a terminal emulator (`vt100`). A change
//! of the size clears that screen, so a test then sees only what was drawn for the new size. The program is ended
//! when the terminal is dropped.

use crate::clock::Deadline;
use crate::{StartError, StartReason, find, keeper};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// The number of bytes that are kept of the latest output.
const KEPT_BYTES: usize = 1 << 20;
/// The interval of the check whether the program has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A terminal that runs a program.
pub struct Terminal {
    master: OwnedFd,
    // Kept open, so that the terminal can be read after its program has ended.
    _own: File,
    child: Child,
    ended: Option<ExitStatus>,
    written: Vec<u8>,
    /// The emulator that draws what the program writes.
    emulator: vt100::Parser,
    /// The terminal settings before the program started.
    before: String,
}

impl Terminal {
    /// Runs a program in a terminal of this size.
    ///
    /// # Errors
    /// `NotInstalled` (`setsid`), `CannotPrepare`, `CannotSpawn`.
    pub fn run(
        program: &Path,
        args: &[&str],
        columns: u16,
        rows: u16,
    ) -> Result<Terminal, StartError> {
        let fault = |reason| move |error: io::Error| StartError::new("terminal", reason, error);
        let setsid = find::program(&["setsid"])?;
        let (master, own) = open().map_err(fault(StartReason::CannotPrepare))?;
        let sized = tcsetwinsize(&master, window(columns, rows)).map_err(io::Error::from);
        sized.map_err(fault(StartReason::CannotPrepare))?;
        let before = set(&master).map_err(fault(StartReason::CannotPrepare))?;
        let copy = || own.try_clone().map_err(fault(StartReason::CannotPrepare));
        // The first terminal opened by a new session becomes its controlling terminal.
        let mut command = Command::new(setsid);
        command.arg("--ctty").arg(program).args(args).env("LC_ALL", "C.UTF-8").env("TERM", "xterm");
        command.stdin(copy()?).stdout(copy()?).stderr(copy()?);
        let child = command.spawn().map_err(fault(StartReason::CannotSpawn))?;
        keeper::watch(child.id());
        let emulator = vt100::Parser::new(rows, columns, 0);
        let (ended, written) = (None, Vec::new());
        Ok(Terminal { master, _own: own, child, ended, written, emulator, before })
    }

    /// Reads until the screen satisfies `holds`, at most `within`. Returns its lines.
    ///
    /// # Errors
    /// The timeout passed: the current screen.
    pub fn until(
        &mut self,
        within: Duration,
        holds: impl Fn(&[String]) -> bool,
    ) -> Result<Vec<String>, String> {
        let deadline = Deadline::after(within);
        loop {
            let lines = self.picture();
            if holds(&lines) {
                return Ok(lines);
            }
            if deadline.passed() || (self.has_ended() && !self.read(LOOK)) {
                return Err(lines.join("\n"));
            }
            self.read(LOOK);
        }
    }

    /// The complete output, including escape sequences.
    #[must_use]
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }

    /// Presses keys.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn press(&self, keys: &str) -> io::Result<()> {
        rustix::io::write(&self.master, keys.as_bytes()).map(|_| ()).map_err(io::Error::from)
    }

    /// Changes the size of the terminal, in characters, and clears its screen.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn resize(&mut self, columns: u16, rows: u16) -> io::Result<()> {
        while self.read(Duration::ZERO) {}
        self.emulator = vt100::Parser::new(rows, columns, 0);
        tcsetwinsize(&self.master, window(columns, rows)).map_err(io::Error::from)
    }

    /// Sends a signal to the program.
    pub fn signal(&mut self, signal: Signal) {
        if !self.has_ended() {
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }

    /// The terminal settings, such as echo and the keys that send signals, as text for comparison.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn settings(&self) -> io::Result<String> {
        set(&self.master)
    }

    /// The terminal settings before the program started.
    pub fn settings_before(&self) -> &str {
        &self.before
    }

    /// Waits until the program ends, and reads its remaining output.
    ///
    /// # Errors
    /// The program did not end in time: the current screen.
    pub fn wait(&mut self, within: Duration) -> Result<ExitStatus, String> {
        let deadline = Deadline::after(within);
        while !self.has_ended() {
            if deadline.passed() {
                return Err(self.picture().join("\n"));
            }
            self.read(LOOK);
        }
        while self.read(Duration::ZERO) {}
        self.ended.ok_or_else(|| "it has ended, and nobody knows how".to_owned())
    }

    /// The lines on the screen, down to the last one with text.
    fn picture(&self) -> Vec<String> {
        let screen = self.emulator.screen();
        let mut lines: Vec<String> = screen.rows(0, screen.size().1).collect();
        let used = lines.iter().rposition(|line| !line.trim_end().is_empty());
        lines.truncate(used.map_or(0, |last| last + 1));
        lines
    }

    fn has_ended(&mut self) -> bool {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            keeper::forget(self.child.id());
            self.ended = Some(status);
        }
        self.ended.is_some()
    }

    /// Reads the output that arrives within a time; false if there was none.
    fn read(&mut self, within: Duration) -> bool {
        let mut watched = [PollFd::new(&self.master, PollFlags::IN)];
        let ready = poll(&mut watched, Timespec::try_from(within).ok().as_ref());
        if !matches!(ready, Ok(1)) {
            return false;
        }
        let mut buffer = [0; 16 << 10];
        let Ok(count) = rustix::io::read(&self.master, &mut buffer) else { return false };
        self.written.extend_from_slice(&buffer[..count]);
        self.emulator.process(&buffer[..count]);
        let over = self.written.len().saturating_sub(KEPT_BYTES);
        self.written.drain(..over);
        count > 0
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
            keeper::forget(self.child.id());
        }
    }
}

fn open() -> io::Result<(OwnedFd, File)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    // It becomes the controlling terminal of the program, not of this process.
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let own = rustix::fs::open(name, flags, Mode::empty())?;
    Ok((master, own.into()))
}

fn set(terminal: &OwnedFd) -> io::Result<String> {
    let set = tcgetattr(terminal)?;
    Ok(format!("{:?} {:?} {:?}", set.local_modes, set.output_modes, set.special_codes))
}

fn window(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_it_for_its_own() {
        let sh = find::program(&["sh"]).expect("a shell");
        let script = "printf '\\033[H'; stty size; printf 'x\\033[J'; read -r line; exit 7";
        let mut terminal = Terminal::run(&sh, &["-c", script], 61, 17).expect("it runs");
        let within = Duration::from_secs(20);
        let lines = terminal.until(within, |lines| lines.len() == 2).expect("it draws");
        assert_eq!(lines, ["17 61", "x"]);
        terminal.press("go\n").expect("keys");
        assert_eq!(terminal.wait(within).expect("it ends").code(), Some(7));
    }
}
