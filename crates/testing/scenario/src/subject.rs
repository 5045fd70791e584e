//! What the engine asks of the cache under test, and what it tells it at the start.
//!
//! A subject is started once for each story and lives until the story ends. It is used from one
//! thread; its two addresses are used from several.

use std::net::SocketAddr;
use std::time::Duration;

/// A cache under test, running.
pub trait Subject {
    /// Where clients are served.
    fn address(&self) -> SocketAddr;

    /// Where the control interface answers over HTTP.
    fn admin_address(&self) -> SocketAddr;

    /// Moves the subject's clock forward by `by`. When this returns, every request sent from then
    /// on is judged by the new time.
    fn advance(&self, by: Duration);

    /// Ends the subject: everything that it started is gone when this returns.
    ///
    /// # Errors
    /// A sentence about what did not end well (a crash, a leak, a bad exit status); it fails the
    /// story.
    fn finish(self: Box<Self>) -> Result<(), String>;

    /// The subject's clock in milliseconds since the Unix epoch, for dates in the story. `None`
    /// (the default) means the machine's clock, moved by what [`Subject::advance`] was told.
    fn now_ms(&self) -> Option<u64> {
        None
    }

    /// How far the subject's clock may have run on by itself during a story: `ttl` may be lower and
    /// `Age` higher than the story says by this much, in whole seconds. Zero (the default) for an
    /// injected clock that stands still; a second or two for one that runs.
    fn clock_slack(&self) -> Duration {
        Duration::ZERO
    }
}

/// What a subject is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The story's path below its directory, such as `freshness/max-age.scn`: for names and logs.
    pub story: String,
    /// The lines after `config |`, joined: TOML in the words of the subject's configuration file.
    pub toml: String,
    /// Where the scripted origin listens; it speaks HTTP/1.1.
    pub origin: SocketAddr,
    /// The words after `flags`: further command line flags.
    pub flags: Vec<String>,
    /// Whether the story moves the clock; a subject that cannot may refuse at once.
    pub moves_clock: bool,
}

/// Starts a subject for one story, ready to answer when it returns; called from several threads at
/// once. An error is a sentence that says what could not be started; it fails the story.
pub type StartSubject<'a> = dyn Fn(&Config) -> Result<Box<dyn Subject>, String> + Sync + 'a;
