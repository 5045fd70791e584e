//! The real `pagewell`, started like an operator would start it.
//!
//! It is ready when it has printed the lines `listening on …` and `control on …` on its standard output. They
//! contain the real addresses, so that tests can use port 0. Its output is kept; its standard error goes to a
//! log that is shown if the start fails.

use crate::address::Address;
use crate::client::{Client, Request};
use crate::clock::Deadline;
use crate::process::{Output, Process, READY_WITHIN, StopResult, Wait};
use crate::reply::Response;
use crate::wire::ClientError;
use crate::{PrivateDir, StartError, StartReason, cpu};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// The interval of the check whether the process is alive, while no line arrives.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The timeout for a stop by signal: on a busy machine, a computing thread receives the signal late.
const FROZEN_WITHIN: Duration = Duration::from_secs(60);

/// A Pagewell process that is running.
#[derive(Debug)]
pub struct Pagewell {
    process: Process,
    address: Address,
    admin: Address,
    dir: PrivateDir,
}

impl Pagewell {
    /// Starts `binary serve` with these arguments. Without addresses in them, it listens on free ports.
    ///
    /// # Errors
    /// `Ended` or `NotReady`, with the end of its log; `PortTaken` if it reports that.
    pub fn start<S: AsRef<str>>(binary: &Path, args: &[S]) -> Result<Pagewell, StartError> {
        let mut command = Command::new(binary);
        command.arg("serve").args(args.iter().map(AsRef::as_ref));
        for option in ["--listen", "--admin"] {
            if !args.iter().any(|arg| arg.as_ref().starts_with(option)) {
                command.args([option, "127.0.0.1:0"]);
            }
        }
        Self::start_command(PrivateDir::temporary("serve")?, &mut command)
    }

    /// Starts a command prepared by the caller. Its log is kept in `dir`.
    ///
    /// # Errors
    /// As for [`Pagewell::start`].
    pub fn start_command(dir: PrivateDir, command: &mut Command) -> Result<Pagewell, StartError> {
        let log = dir.path().join("pagewell.log");
        let mut process = Process::spawn_with("pagewell", command, &log, Output::Piped)?;
        let lines = process.take_stdout().map(follow);
        let Some(lines) = lines else {
            return Err(process.fault(StartReason::CannotSpawn, "no standard output"));
        };
        let (address, admin) = wait_for_addresses(&mut process, &lines)?;
        Ok(Pagewell { process, address, admin, dir })
    }

    /// The address on which it serves pages.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The address of its control API.
    #[must_use]
    pub fn admin(&self) -> &Address {
        &self.admin
    }

    /// The process id of Pagewell.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The private directory, which contains its log.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Its counters by name, from the control API.
    ///
    /// # Errors
    /// The control API does not answer with counters.
    pub fn stats(&self) -> Result<BTreeMap<String, u64>, ClientError> {
        let answer = Client::new(self.admin.clone()).get("/v1/stats")?;
        let all: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&answer.content)
            .map_err(|error| ClientError::Malformed(format!("{error}: {}", answer.text())))?;
        // Values that are not numbers are the tables of each site.
        Ok(all.into_iter().filter_map(|(name, value)| Some((name, value.as_u64()?))).collect())
    }

    /// Invalidates pages through the control API, with a body such as `{"tags":["news:4"]}` or `{"all":true}`.
    /// Returns the response.
    ///
    /// # Errors
    /// The control API does not answer.
    pub fn invalidate(&self, what: &str) -> Result<Response, ClientError> {
        let request = Request::new("POST", "/v1/invalidate")
            .header("Content-Type", "application/json")
            .content(what.as_bytes());
        Client::new(self.admin.clone()).send(&request)
    }

    /// The control API's explanation of a URL or a tag.
    ///
    /// # Errors
    /// The control API does not answer, or not with JSON.
    pub fn explain(&self, what: &str) -> Result<serde_json::Value, ClientError> {
        let request = Request::new("POST", "/v1/explain")
            .header("Content-Type", "application/json")
            .content(what.as_bytes());
        let told = Client::new(self.admin.clone()).send(&request)?.text();
        serde_json::from_str(&told)
            .map_err(|error| ClientError::Malformed(format!("{error}: {told}")))
    }

    /// The CPU time of Pagewell and its child processes (php-fpm), in seconds.
    #[must_use]
    pub fn cpu_seconds(&self) -> f64 {
        cpu::seconds(self.pid())
    }

    /// The resident memory of Pagewell without its child processes, in bytes.
    #[must_use]
    pub fn rss_bytes(&self) -> u64 {
        cpu::rss_bytes_alone(self.pid())
    }

    /// The number of open file descriptors.
    #[must_use]
    pub fn open_fds(&self) -> usize {
        cpu::open_fds(self.pid())
    }

    /// The end of its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// How often its whole log contains a text.
    #[must_use]
    pub fn times_logged(&self, text: &str) -> usize {
        self.process.times_logged(text)
    }

    /// Sends a signal to Pagewell.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Stops all its threads (SIGSTOP) until it is sent SIGCONT.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        let bound = Deadline::after(FROZEN_WITHIN);
        while !cpu::is_stopped(self.pid()) && !bound.passed() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the process ends, at most `within`.
    pub fn wait(&mut self, within: Duration) -> Wait {
        self.process.wait(within)
    }

    /// Requests a graceful shutdown, and waits for it.
    pub fn stop(&mut self) -> StopResult {
        self.process.stop()
    }

    /// Kills the process like a crash.
    pub fn kill(&mut self) {
        self.process.kill();
    }
}

/// The arguments for `pagewell serve`: the directory of a site, and the environment of its scripts.
pub(crate) fn serve_args(directory: &Path, env: &[(String, String)]) -> Vec<String> {
    let mut args = vec![directory.display().to_string()];
    for (name, value) in env {
        args.extend(["--php-env".to_owned(), format!("{name}={value}")]);
    }
    args
}

/// Reads all lines of its output, so that it never blocks on a full pipe.
fn follow(stdout: ChildStdout) -> Receiver<String> {
    let (sender, receiver): (Sender<String>, Receiver<String>) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // When the receiver is gone, lines are read and discarded.
            let _ = sender.send(line);
        }
    });
    receiver
}

fn wait_for_addresses(
    process: &mut Process,
    lines: &Receiver<String>,
) -> Result<(Address, Address), StartError> {
    let deadline = Deadline::after(READY_WITHIN);
    let (mut address, mut admin) = (None, None);
    loop {
        if let (Some(address), Some(admin)) = (&address, &admin) {
            return Ok((Address::clone(address), Address::clone(admin)));
        }
        match lines.recv_timeout(LOOK_EVERY) {
            Ok(line) => {
                address = address.or_else(|| named(&line, "listening on "));
                admin = admin.or_else(|| named(&line, "control on "));
            }
            Err(RecvTimeoutError::Disconnected) => {
                process.wait(LOOK_EVERY);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Wait::Ended(status) = process.wait(Duration::ZERO) {
            return Err(ended(process, &status.to_string()));
        }
        if deadline.passed() {
            return Err(process.fault(StartReason::NotReady, "it has not said where it listens"));
        }
    }
}

fn ended(process: &Process, status: &str) -> StartError {
    let taken = process.log().to_ascii_lowercase().contains("in use");
    let reason = if taken { StartReason::PortTaken } else { StartReason::Ended };
    process.fault(reason, status)
}

fn named(line: &str, start: &str) -> Option<Address> {
    line.trim().strip_prefix(start)?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_lines_name_its_addresses() {
        let address = named("listening on http://127.0.0.1:4711", "listening on ");
        assert_eq!(address.and_then(|address| address.port()), Some(4711));
        let unix = named("control on unix:/run/a.sock (0600)", "control on ");
        assert_eq!(unix, Some(Address::Unix("/run/a.sock".into())));
        assert_eq!(named("control on http://127.0.0.1:1", "listening on "), None);
    }
}
