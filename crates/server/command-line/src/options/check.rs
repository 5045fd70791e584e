//! The options of `pagewell check`, `pagewell status` and `pagewell trial`.
//!
//! The configuration that `check` reads is an argument, by default that of the package. A directory as the
//! argument is the site's, as for `serve`: no file is read then, unless `--config` names one.

use super::ControlArgs;
use clap::Args;
use std::path::PathBuf;

/// The servers that `check` connects to, and examples, printed below its help.
pub(super) const CHECK_CONNECTS: &str = "\
Connects to the databases, the cluster's stream, php-fpm (php.at) and HTTP
origins (site.origin). No code of the site runs. An unreachable database is
an error, with exit status 1; an unreachable origin is a warning, because it
may be started later. A port that another program has is a warning, because
the server that Pagewell replaces may still run. Root tests files,
directories and origins as the user that will serve.

Examples:
  sudo pagewell check
  pagewell check --offline pagewell.toml
  pagewell check --running";

/// The options of `pagewell check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// The configuration file to check (default: /etc/pagewell/pagewell.toml), or the site's directory, if `serve`
    /// gets one
    #[arg(value_name = "FILE")]
    pub place: Option<PathBuf>,
    /// The configuration file to check, beside the site's directory
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The user that will serve; without it, `user` of the configuration, else that of the installed systemd unit
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Do not connect to databases and origins
    #[arg(long)]
    pub offline: bool,
    /// Also list the tags of cached pages, in the running Pagewell, that no [[change]] rule covers
    #[arg(long)]
    pub running: bool,
}

/// The configuration of the package.
const CONFIG_FILE: &str = "/etc/pagewell/pagewell.toml";

impl CheckArgs {
    /// Returns the configuration file and the site's directory, at least one of them.
    ///
    /// # Errors
    /// Two configuration files are named: a sentence for the operator.
    pub fn places(&self) -> Result<(Option<PathBuf>, Option<PathBuf>), String> {
        let (config, place) = (self.config.clone(), self.place.clone());
        match place {
            Some(dir) if dir.is_dir() => Ok((config, Some(dir))),
            Some(file) => match config {
                None => Ok((Some(file), None)),
                Some(config) => Err(format!(
                    "two configuration files are named, {} and {}: name one",
                    config.display(),
                    file.display()
                )),
            },
            None => Ok((config.or_else(|| Some(CONFIG_FILE.into())), None)),
        }
    }
}

/// The options of `pagewell certificates`.
#[derive(Args, Debug)]
pub struct CertificatesArgs {
    /// Print one JSON object: the answer of `GET /v1/certificates`
    #[arg(long)]
    pub json: bool,
    /// The Pagewell to call.
    #[command(flatten)]
    pub control: ControlArgs,
}

/// The exit status of `trial`, and examples, printed below its help.
pub(super) const TRIAL_STATUS: &str = "\
Exit status: 0 safe to turn on, 1 not safe, 2 not enough compared, 3 no answer or no trial.

Examples:
  pagewell trial
  pagewell trial --restart";

/// The options of `pagewell trial`.
#[derive(Args, Debug)]
pub struct TrialArgs {
    /// Print one JSON object: the answer of `GET /v1/trial`
    #[arg(long, conflicts_with = "restart")]
    pub json: bool,
    /// Begin a new record, for example after a deployment
    #[arg(long)]
    pub restart: bool,
    /// Add the words that differ in Pagewell's own renders
    #[arg(long, conflicts_with = "restart")]
    pub text: bool,
    /// Only the site with this host
    #[arg(long, value_name = "HOST")]
    pub site: Option<String>,
    /// The Pagewell to call.
    #[command(flatten)]
    pub control: ControlArgs,
}

/// The options of `pagewell status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Print one JSON object: the answer of `GET /v1/status`
    #[arg(long)]
    pub json: bool,
    /// The Pagewell to call.
    #[command(flatten)]
    pub control: ControlArgs,
}
