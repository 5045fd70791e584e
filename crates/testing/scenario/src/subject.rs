//! The interface of the cache under test, and its start parameters.
//!
//! A subject is started for each scenario and lives until the scenario ends. One thread uses it; several
//! threads use its two addresses.

use std::net::SocketAddr;
use std::time::Duration;

/// A running cache under test.
pub trait Subject {
    /// The address for clients.
    fn address(&self) -> SocketAddr;

    /// The address of the control API over HTTP.
    fn admin_address(&self) -> SocketAddr;

    /// Advances the subject's clock by `by`. When this returns, the new time applies to every request sent from
    /// then on.
    fn advance(&self, by: Duration);

    /// Stops the subject. When this returns, everything that it started has ended.
    ///
    /// # Errors
    /// A sentence that describes a fault at the end (a crash, a leak, a bad exit status). It fails the
    /// scenario.
    fn finish(self: Box<Self>) -> Result<(), String>;

    /// The subject's clock in milliseconds since the Unix epoch, for dates in the scenario. `None` (the
    /// default) means the system clock plus the total of all calls of [`Subject::advance`].
    fn now_ms(&self) -> Option<u64> {
        None
    }

    /// How far the subject's clock may advance on its own during a scenario. `ttl` may be lower and `Age`
    /// higher than expected by this time, in whole seconds. It is zero (the default) for an injected clock, and
    /// a second or two for a running clock.
    fn clock_slack(&self) -> Duration {
        Duration::ZERO
    }

    /// The text before the name of each reason, if the subject has renamed them. It is removed from answers before
    /// they are compared, so that scenarios need no other expectations.
    fn reason_prefix(&self) -> Option<&str> {
        None
    }

    /// Whether the subject is asked before a request how it would answer it (`POST /v1/explain`), and the two are
    /// compared.
    fn explains(&self) -> bool {
        false
    }
}

/// The start parameters of a subject.
#[derive(Clone, Debug)]
pub struct Config {
    /// The path of the scenario below its directory, such as `freshness/max-age.scn`, for names and logs.
    pub story: String,
    /// The lines after `config |`, joined: TOML for the subject's configuration file.
    pub toml: String,
    /// The address of the scripted origin, which uses HTTP/1.1.
    pub origin: SocketAddr,
    /// The words after `flags`: further command line flags.
    pub flags: Vec<String>,
    /// Whether the scenario advances the clock. A subject that does not support this may refuse at once.
    pub moves_clock: bool,
}

/// Starts a subject for one scenario, ready to answer when this returns. It is called from several threads
/// concurrently. The error is a sentence that describes what could not be started; it fails the scenario.
pub type StartSubject<'a> = dyn Fn(&Config) -> Result<Box<dyn Subject>, String> + Sync + 'a;
