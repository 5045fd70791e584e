//! `pagewell check`, `pagewell config` and `pagewell changes suggest`: examine a configuration without
//! serving.
//!
//! Errors go to standard error and set the exit status to 1; warnings are printed and do not. An
//! unreachable database is an error, because its tables cannot be checked then. An unreachable origin is
//! a warning, because nothing of the configuration depends on it. `--offline` skips both. A port that another program
//! has is a warning, because the server that Pagewell replaces may still run (docs/guide/mediawiki.md).

mod of_machine;
mod of_origins;
mod of_service;
mod unit;

pub use of_origins::warn_of_sockets;

use crate::{answers, once, once_with, say};
use certificates::{Certificates, unnamed_hosts};
use change_sources::check as database;
use cli::client;
use command_line::options::{CheckArgs, ConfigArgs, ControlArgs, ServeArgs, SuggestArgs};
use config::raw::File;
use config::shown::shown;
use config::written::with_place;
use config::{Config, accounts, database_servers, load, shares_without_trial};
use init::plan::shell_path;
use of_service::ServiceUser;
use rustix::process::geteuid;
use std::cell::Cell;
use std::io::Write as _;
use unit::Unit;

/// Reads a configuration and prints warnings about it.
///
/// # Errors
/// The configuration is invalid: sentences for the operator.
pub fn check(args: &CheckArgs) -> Result<(), String> {
    let (file, dir) = args.places()?;
    let name = file.as_ref().or(dir.as_ref()).map(|path| path.display().to_string());
    let name = name.unwrap_or_default();
    let unit = unit_of_service(args.user.as_deref(), file.is_some());
    let read = ServeArgs { config: file.clone(), dir, ..Default::default() }.read();
    let is_user_known = args.user.is_some() || unit.user.is_some();
    let (config, text) = read.map_err(|error| with_user_hint(error, is_user_known, args))?;
    let warnings = Cell::new(0);
    let warn = |warning: &str| {
        warnings.set(warnings.get() + 1);
        say(&format!("{name}: {warning}"))
    };
    for warning in of_machine::warnings(&config) {
        warn(&format!("on this machine: {warning}"))?;
    }
    let written = match &file {
        Some(file) => load(file).map_err(|error| error.to_string())?.0,
        None => File::default(),
    };
    let of_sites = of_sites(&config).map_err(|error| format!("{name}: {error}"))?;
    for warning in of_sites.into_iter().chain(shares_without_trial(&written)) {
        warn(&warning)?;
    }
    let mut user = ServiceUser::of(&config, args.user.as_deref(), &unit)?;
    user.check_command = command_of(args);
    user.account.iter().for_each(|account| trusted_files::becomes(account.uid));
    let has_user = args.user.is_some() || config.user.is_some();
    let file = file.as_deref().filter(|file| has_user || unit.reads(file));
    let token_file = written.admin_token_file;
    let control = ControlArgs { admin: config.admin.to_string(), token_file };
    let tested = of_service::report(&config, file, &user, &unit, &|| answers(&control));
    if user.is_assumed {
        say(&format!("{name}: tested as root: --user NAME tests as the user of the service"))?;
    }
    for warning in &tested.warnings {
        warn(&format!("warning: {warning}"))?;
    }
    for error in &tested.errors {
        // Standard error may be closed; the exit status reports the errors, too.
        let _ = writeln!(std::io::stderr(), "{name}: {error}");
    }
    if !config.tls.is_empty() && user.can_read_keys(&config) {
        let loaded = Certificates::of_files(&config.tls)
            .map_err(|error| format!("{name}: {}", with_place(&text, &error)))?;
        for warning in without_certificate(&config, |host| loaded.is_given(host)) {
            warn(&format!("warning: {warning}"))?;
        }
    }
    if !args.offline {
        print_connections(&config, &user, &name, &warn)?;
    }
    if args.running {
        once(print_uncovered_tags(&control))?;
    }
    let warnings = match warnings.get() {
        0 => String::new(),
        1 => ", 1 warning".to_owned(),
        more => format!(", {more} warnings"),
    };
    match tested.errors.len() {
        0 => say(&format!("{name}: no errors{warnings}")),
        1 => Err(format!("{name}: 1 error{warnings}")),
        more => Err(format!("{name}: {more} errors{warnings}")),
    }
}

/// Connects to the origins and databases, and prints what answers. `name`: the configuration; `warn`: prints a warning.
///
/// # Errors
/// A database cannot be followed, or a test could not run: a sentence for the operator.
fn print_connections(
    config: &Config,
    user: &ServiceUser,
    name: &str,
    warn: &dyn Fn(&str) -> Result<(), String>,
) -> Result<(), String> {
    for tested in of_origins::report(config, user.account.as_ref())? {
        match tested {
            Ok(answers) => say(&format!("{name}: {answers}"))?,
            Err(warning) => warn(&format!("warning: {warning}"))?,
        }
    }
    let checked = once_with(database::all(config));
    let (followable, warnings) = checked.map_err(|why| format!("{name}: {why}"))?;
    for database in followable {
        say(&format!("{name}: {database}"))?;
    }
    warnings.iter().try_for_each(|warning| warn(warning))
}

/// Returns the warnings about the rules and redirect files of each site, with its host.
///
/// # Errors
/// A redirect file leads in a circle: a sentence for the operator.
fn of_sites(config: &Config) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for site in config.all_sites() {
        let host = site.hosts.all().next().map(String::as_str).unwrap_or_default();
        let prefix = site.warning_prefix();
        if let Some(error) = &site.redirect_files.endless {
            return Err(format!("{prefix}site.redirect_files: {error}"));
        }
        let noted = [site.rules.unusual_methods(), &site.redirect_files.repeated[..]];
        let lines = noted.into_iter().flatten().cloned().chain(site.rules.denied_lines(host));
        all.extend(site.rule_warnings());
        all.extend(lines.map(|warning| format!("{prefix}{warning}")));
    }
    Ok(all)
}

/// Returns a warning for each host that no certificate of the files names.
fn without_certificate(config: &Config, is_given: impl Fn(&str) -> bool) -> Vec<String> {
    let warning = |name: &str| {
        format!(
            "tls.certificate: no certificate names {name}, so browsers refuse https://{name}/: name it in the \
             certificate, or add a [[tls]] for it"
        )
    };
    unnamed_hosts(config, is_given).into_iter().map(warning).collect()
}

/// Adds to the refusal of a file of another user (`trusted_files`) that this may be the user of the service.
fn with_user_hint(error: String, is_user_known: bool, args: &CheckArgs) -> String {
    if is_user_known || !geteuid().is_root() || !error.contains("it belongs to the user") {
        return error;
    }
    let command = command_of(args);
    format!("{error}; if the service runs as this user, name it: {command} --user NAME")
}

/// The command line of a check, without `--user`.
fn command_of(args: &CheckArgs) -> String {
    let flags = [("--offline", args.offline), ("--running", args.running)];
    let flags = flags.iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| (*flag).to_owned());
    let config = args.config.iter().map(|file| format!("--config {}", shell_path(file)));
    let place = args.place.iter().map(|place| shell_path(place));
    let words = ["pagewell check".to_owned()].into_iter().chain(flags).chain(config).chain(place);
    words.collect::<Vec<_>>().join(" ")
}

/// Reads the installed unit, which serves a configuration file. From now on, the files of the user that will serve are
/// trusted.
fn unit_of_service(given: Option<&str>, has_file: bool) -> Unit {
    let unit = if has_file { Unit::installed() } else { Unit::default() };
    let name = given.or(unit.user.as_deref());
    if let Some(Ok(account)) = name.map(|name| accounts::of(name, None)) {
        trusted_files::becomes(account.uid);
    }
    unit
}

/// Reads the certificates and keys of a configuration as the user of the service, as far as this process can become
/// that user.
///
/// # Errors
/// A sentence for each file that the service cannot read.
pub fn read_certificates(config: &Config) -> Result<(), Vec<String>> {
    let unit = Unit::installed();
    let user = ServiceUser::of(config, None, &unit).map_err(|why| vec![why])?;
    let problems = of_service::unreadable_certificates(config, &user, &unit);
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Prints the effective configuration: first the values that are set, then the defaults.
///
/// # Errors
/// The configuration is invalid.
pub fn config(args: &ConfigArgs) -> Result<(), String> {
    let (config, text) = args.serve.read()?;
    let (set, default) = shown(&config, &text, &args.serve.given());
    match (args.set, set.is_empty()) {
        (true, _) => say(set.trim_end()),
        (false, true) => say(default.trim_end()),
        (false, false) => say(&format!("{set}\n{}", default.trim_end())),
    }
}

/// Prints the tags in the running Pagewell's cache that no `[[change]]` rule can invalidate.
async fn print_uncovered_tags(control: &ControlArgs) -> Result<(), String> {
    for tag in client::uncovered_tags(control).await? {
        say(&format!("no [[change]] touches the tag {tag}, which pages depend on"))?;
    }
    Ok(())
}

/// Connects to the databases and prints proposed `[[change]]` rules.
///
/// # Errors
/// There is no database, or its tables cannot be read.
pub fn suggest(args: &SuggestArgs) -> Result<(), String> {
    let servers = match (&args.url, &args.config) {
        (Some(url), _) => database_servers(&[], Some(url)),
        (None, Some(path)) => {
            let (file, _) = load(path).map_err(|error| error.to_string())?;
            let of_sites = file.site.list.iter().filter_map(|site| site.database.as_deref());
            let all: Vec<_> = of_sites.fold(file.database.clone(), |mut all, own| {
                all.extend_from_slice(own);
                all
            });
            database_servers(&all, None)
        }
        (None, None) => Ok(Vec::new()),
    };
    let servers = servers.map_err(|error| error.to_string())?;
    if servers.is_empty() {
        return Err("the configuration has no [[database]]".into());
    }
    once(async {
        for (name, server) in &servers {
            let name = (servers.len() > 1).then_some(name.as_str());
            let rules = database::suggest(server, name, args.application).await?;
            say(rules.trim_end())?;
            say("")?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_without_a_certificate_are_named() {
        let site = "[site]\norigin = \"http://127.0.0.1:1\"\nhost = \"a.test\"\naliases = [\"www.a.test:8443\", \"127.0.0.1\"]\n";
        let read = |lines: &str| {
            let file = toml::from_str(&format!("{lines}\n{site}")).expect("a configuration");
            config::resolve(&file).expect("it can be used")
        };
        let config = read(
            "listen_tls = \"127.0.0.1:1\"\n[[tls]]\ncertificate = \"/no/such\"\nkey = \"/no/such\"",
        );
        let found = without_certificate(&config, |host| host == "a.test");
        assert!(found.len() == 1 && found[0].contains("names www.a.test,"), "{found:?}");
        assert_eq!(without_certificate(&config, |_| true), [""; 0]);
        let config = read("listen_tls = \"127.0.0.1:1\"\n[acme]");
        assert_eq!(without_certificate(&config, |_| false), [""; 0], "they are obtained");
    }
}
