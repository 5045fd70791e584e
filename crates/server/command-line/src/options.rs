//! The command line. Flags are the short form of configuration keys and override the file. Their
//! descriptions for `--help` are here, those for the manual in `config::table`. Only the syntax is
//! checked here.

mod check;
mod import;
mod init;

use check::{CHECK_CONNECTS, TRIAL_STATUS};
pub use check::{CertificatesArgs, CheckArgs, StatusArgs, TrialArgs};
pub use import::{ImportArgs, ImportCommand, ImportFiles};
pub use init::{InitArgs, SiteKind};

use crate::help::{
    DOCTOR_EXAMPLES, EXPLAIN_EXAMPLES, IMPORT_EXAMPLES, INIT_EXAMPLES, PURGE_EXAMPLES,
    SERVE_EXAMPLES, grouped,
};
use crate::nginx_value as value;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, CommandFactory, Parser, Subcommand};
use config::raw::{File, OneOrMany};
use config::shown::Flags;
use config::written::with_place;
use config::{Config, load, resolve_after};
use event_log::LogLevel;
use std::convert::Infallible;
use std::path::PathBuf;

/// A full-page cache for PHP sites, invalidated by changes of the data.
///
/// Pagewell runs in front of a PHP site, caches its pages in memory, and sends a request to PHP only
/// when the data of a page has changed.
#[derive(Parser, Debug)]
#[command(name = "pagewell", version, max_term_width = 100)]
pub struct CommandLine {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

impl CommandLine {
    /// The program with its commands in groups.
    pub fn program() -> clap::Command {
        let program = CommandLine::command();
        let list = grouped(&program);
        program.help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}"
        ))
    }
}

/// The commands of the program.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Serve a site
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// Write a configuration for a site from its machine; verify the running site
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitArgs),
    /// Translate the configuration of nginx or Apache into one of Pagewell
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArgs),
    /// Check a configuration file, and whether this machine meets its requirements
    #[command(after_help = CHECK_CONNECTS)]
    Check(CheckArgs),
    /// Print the effective configuration and the source of each value
    // Options that affect only the serving process are hidden here.
    #[command(mut_arg("take_over", |arg| arg.hide(true)), mut_arg("log", |arg| arg.hide(true)))]
    Config(Box<ConfigArgs>),
    /// Reload the configuration of a running Pagewell
    Reload(ControlArgs),
    /// Check whether a running Pagewell is ready for visitors
    #[command(after_help = "Exit status: 0 ready, 1 not ready; the reasons are printed.")]
    Ready(ControlArgs),
    /// Show what needs attention in a running Pagewell
    #[command(after_help = "Exit status: 0 all is well, 1 there are problems, or nothing answers.")]
    Status(StatusArgs),
    /// Show what a trial has found, and whether it is safe to turn Pagewell on
    #[command(after_help = TRIAL_STATUS)]
    Trial(TrialArgs),
    /// Show the certificates that Pagewell obtains: issuer, end, next try, last error
    Certificates(CertificatesArgs),
    /// Purge pages from the cache of a running Pagewell
    #[command(name = "purge", visible_alias = "invalidate", after_help = PURGE_EXAMPLES)]
    Purge(PurgeArgs),
    /// Explain how a page is answered: cached or not, dependencies, last purge
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// Show what PHP works for: URLs, clients, and the top causes of misses
    #[command(alias = "offenders")]
    Misses(MissesArgs),
    /// Show the counters of a running Pagewell
    Stats(StatsArgs),
    /// Create rules that purge pages when rows of a database change
    Changes(ChangesArgs),
    /// Print an nginx configuration that reads pages over the memcached port
    NginxConfig(NginxConfigArgs),
    /// Check machine, PHP and site for problems under load, without changes
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Print the completions of a shell: bash, zsh, fish, elvish or powershell
    Completions(CompletionsArgs),
}

/// The options of `pagewell completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell whose completions are printed
    pub shell: clap_complete::Shell,
}

impl CompletionsArgs {
    /// The script for the shell. It has the commands of the program, with the name `pagewell`.
    pub fn script(&self) -> String {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut CommandLine::command(), "pagewell", &mut script);
        String::from_utf8_lossy(&script).into_owned()
    }
}

/// The options of `pagewell serve`.
#[derive(Args, Debug, Default, Clone)]
pub struct ServeArgs {
    /// The site's directory: the document root, or a directory with it as public, web, htdocs, pub or
    /// html [default: the working directory]
    #[arg(env = "PAGEWELL_ROOT", hide_env_values = true)]
    pub dir: Option<PathBuf>,
    /// Address for visitors' requests: address:port or unix:path; may be given several times
    /// [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", env = "PAGEWELL_LISTEN", hide_env_values = true)]
    pub listen: Vec<String>,
    /// Address of the control interface: address:port or unix:path [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS", env = "PAGEWELL_ADMIN_LISTEN", hide_env_values = true)]
    pub admin: Option<String>,
    /// A file with the token that the control interface requires; needed if `--admin` can be reached
    /// from other machines
    #[arg(long, value_name = "FILE", env = "PAGEWELL_TOKEN_FILE", hide_env_values = true)]
    pub admin_token_file: Option<PathBuf>,
    /// The page budget, such as 256M: contents, header fields and index together
    /// [default: a quarter of the machine's memory]
    #[arg(long, value_name = "SIZE", env = "PAGEWELL_MEMORY", hide_env_values = true)]
    pub memory: Option<String>,
    /// Configuration file (TOML); flags override it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A FastCGI server that is already running, instead of a private php-fpm:
    /// unix:/run/php/php8.2-fpm.sock or 127.0.0.1:9000
    #[arg(
        long,
        value_name = "ADDRESS",
        conflicts_with = "origin",
        env = "PAGEWELL_PHP",
        hide_env_values = true
    )]
    pub php: Option<String>,
    /// An environment variable for the scripts of the private php-fpm; may be given several times
    #[arg(long = "php-env", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub php_env: Vec<(String, String)>,
    /// An HTTP server that renders the pages, instead of PHP: http://127.0.0.1:8000
    #[arg(long, value_name = "URL", env = "PAGEWELL_ORIGIN", hide_env_values = true)]
    pub origin: Option<String>,
    /// Destination of the access log: a file, stdout, or syslog
    #[arg(long, value_name = "WHERE", env = "PAGEWELL_ACCESS_LOG", hide_env_values = true)]
    pub access_log: Option<String>,
    /// Log level: error, warn, info or debug
    #[arg(
        long,
        value_name = "LEVEL",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        env = "PAGEWELL_LOG",
        hide_env_values = true
    )]
    pub log: LogLevel,
    /// Visitors get the origin's answers only, and Pagewell compares them with its pages (`mode = "trial"`)
    #[arg(long)]
    pub trial: bool,
    /// Restart without downtime: take over from the Pagewell whose control interface has the same
    /// address; without one, start normally
    #[arg(long)]
    pub take_over: bool,
}

/// The options of `pagewell config`.
#[derive(Args, Debug)]
pub struct ConfigArgs {
    /// Only values that are set, by the file or by flags
    #[arg(long)]
    pub set: bool,
    /// The options of `serve`.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// The options of `pagewell changes`.
#[derive(Args, Debug)]
pub struct ChangesArgs {
    /// The subcommand to run.
    #[command(subcommand)]
    pub command: ChangesCommand,
}

/// The subcommands about change rules.
#[derive(Subcommand, Debug)]
pub enum ChangesCommand {
    /// Print initial rules for the tables of a database
    Suggest(SuggestArgs),
}

/// The options of `pagewell changes suggest`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("where").required(true))]
pub struct SuggestArgs {
    /// The database, as in [[database]]: mysql://user:password@host/name
    #[arg(value_name = "URL", group = "where")]
    pub url: Option<String>,
    /// A configuration with [[database]]
    #[arg(long, value_name = "FILE", group = "where")]
    pub config: Option<PathBuf>,
    /// Print the rules for an application whose Pagewell plugin sets the tags of its pages
    #[arg(long = "for", value_name = "APPLICATION")]
    pub application: Option<Application>,
}

/// An application whose tables and tags are known.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// WordPress with the plugin that comes with Pagewell
    #[value(name = "wordpress")]
    WordPress,
}

/// The options of `pagewell doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// The site's directory, if Pagewell gets one
    pub dir: Option<PathBuf>,
    /// The configuration file of Pagewell
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A page of the site to request; may be given several times [default: the root of each site, at the
    /// first address of the configuration]
    #[arg(long = "url", value_name = "URL")]
    pub urls: Vec<String>,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// The options of `pagewell nginx-config`.
#[derive(Args, Debug)]
pub struct NginxConfigArgs {
    /// The site's host, with its port if that differs from nginx's port. Requests for other hosts are
    /// rejected, because a stored page is the same for all
    #[arg(long, value_name = "HOST", value_parser = value::server_name)]
    pub server_name: value::ServerName,
    /// The memcached port of Pagewell: address:port or unix:path
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:11211",
          value_parser = value::asked)]
    pub memcached: String,
    /// The FastCGI server that renders pages that are not stored: address:port or unix:path
    #[arg(long, value_name = "ADDRESS", default_value = "unix:/run/php/php-fpm.sock",
          value_parser = value::asked)]
    pub php: String,
    /// The document root, with an index.php
    #[arg(long, value_name = "DIR", default_value = "/var/www/html", value_parser = value::root)]
    pub root: String,
    /// Address of nginx: a port, address:port or unix:path
    #[arg(long, value_name = "ADDRESS", default_value = "80", value_parser = value::listen)]
    pub listen: String,
    /// A session cookie: a request with it gets no stored page; * stands for anything, as in SESS*; may
    /// be given several times
    #[arg(long = "session-cookie", value_name = "NAME", default_value = "PHPSESSID",
          value_parser = value::cookie)]
    pub session_cookies: Vec<String>,
}

/// The address of a running Pagewell, and its token.
#[derive(Args, Debug, Clone)]
pub struct ControlArgs {
    /// The control interface of the running Pagewell: address:port or unix:path
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8081",
        env = "PAGEWELL_ADMIN",
        hide_env_values = true
    )]
    pub admin: String,
    /// A file with the token for the control interface
    #[arg(long, value_name = "FILE", env = "PAGEWELL_TOKEN_FILE", hide_env_values = true)]
    pub token_file: Option<PathBuf>,
}

/// The options of `pagewell stats`.
#[derive(Args, Debug)]
pub struct StatsArgs {
    /// Print one JSON object of numbers, with the numbers of each site if there are several
    #[arg(long)]
    pub json: bool,
    /// Print a line of rates each second until you press Ctrl-C; with --json, the counters as one line
    #[arg(long)]
    pub watch: bool,
    /// With --watch: only the site with this host
    #[arg(long, value_name = "HOST", requires = "watch", conflicts_with = "json")]
    pub site: Option<String>,
    /// The Pagewell to call.
    #[command(flatten)]
    pub control: ControlArgs,
}

/// The options of `pagewell explain`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("about").required(true))]
pub struct ExplainArgs {
    /// The page: a path with its query, or a complete URL
    #[arg(value_name = "URL", group = "about")]
    pub url: Option<String>,
    /// List the pages with this tag, and its last invalidation
    #[arg(long, value_name = "TAG", group = "about")]
    pub tag: Option<String>,
    /// List the last invalidations: time, source, tags and URLs, number of pages
    #[arg(long, group = "about")]
    pub changes: bool,
    /// A cookie of the request; may be given several times
    #[arg(long = "cookie", value_name = "NAME=VALUE", conflicts_with_all = ["tag", "changes"],
          value_parser = name_and_value)]
    pub cookies: Vec<(String, String)>,
    /// A header line of the request; may be given several times
    #[arg(long = "header", value_name = "NAME: VALUE", conflicts_with_all = ["tag", "changes"],
          value_parser = header_line)]
    pub headers: Vec<(String, String)>,
    /// The method of the request [default: GET]
    #[arg(long, value_name = "METHOD", conflicts_with_all = ["tag", "changes"])]
    pub method: Option<String>,
    /// The address of the client: for rules with `from`, and to show its level at the origin
    #[arg(long = "client", visible_alias = "from", value_name = "ADDRESS",
          conflicts_with_all = ["tag", "changes"])]
    pub from: Option<std::net::IpAddr>,
    /// The site with this host
    #[arg(long, value_name = "HOST", conflicts_with = "changes")]
    pub site: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// The Pagewell to call.
    #[command(flatten)]
    pub control: ControlArgs,
}

/// The options of `pagewell misses`.
#[derive(Args, Debug)]
pub struct MissesArgs {
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// The Pagewell to call.
    #[command(flatten)]
    pub control: ControlArgs,
}

/// The options of `pagewell purge`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct PurgeArgs {
    /// Purge every page with this tag; may be given several times; - reads tags from standard input,
    /// one per line
    #[arg(long = "tag", value_name = "TAG", group = "what", value_parser = NonEmptyStringValueParser::new())]
    pub tags: Vec<String>,
    /// Purge the page at this URL or path, in all its variants; may be given several times
    #[arg(long = "url", value_name = "URL", group = "what")]
    pub urls: Vec<String>,
    /// Purge every page at or below this path, such as /news/; may be given several times
    #[arg(long = "prefix", value_name = "PATH", group = "what")]
    pub prefixes: Vec<String>,
    /// Not an argument: a page or tag without its option is an error that names the option.
    #[arg(hide = true, value_name = "PAGE", value_parser = without_option)]
    pub without_option: Option<Infallible>,
    /// Purge only in the site with this host [default: every site]
    #[arg(long, value_name = "HOST")]
    pub site: Option<String>,
    /// Purge every page, of all sites unless --site is given
    #[arg(long, group = "what", conflicts_with_all = ["tags", "urls", "prefixes"])]
    pub all: bool,
    /// Soft purge: mark pages stale instead of removing them; they may be served stale if they allow it
    #[arg(long)]
    pub soft: bool,
    /// The Pagewell to call.
    #[command(flatten)]
    pub control: ControlArgs,
}

/// Refuses a page or tag that is not the value of an option.
fn without_option(text: &str) -> Result<Infallible, String> {
    let is_url = text.starts_with('/') || text.contains("://");
    let option = if is_url { "--url" } else { "--tag" };
    Err(format!("a name needs its option; write {option} {text}"))
}

/// Parses `NAME=VALUE`.
fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".into()),
    }
}

/// Parses `NAME: VALUE`; the name in lower case.
fn header_line(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    match pair {
        Some((name, value)) if !name.is_empty() => {
            Ok((name.to_ascii_lowercase(), value.to_owned()))
        }
        _ => Err("write NAME: VALUE".into()),
    }
}

impl ServeArgs {
    /// Returns the configuration from file and flags, and the text of the file.
    ///
    /// # Errors
    /// The error, and its position in the file.
    pub fn read(&self) -> Result<(Config, String), String> {
        let (file, text) = match &self.config {
            Some(path) => load(path).map_err(|error| error.to_string())?,
            None => (File::default(), String::new()),
        };
        Ok((self.resolved(file, &text, None)?, text))
    }

    /// Returns the configuration from a file as written, with this text, and flags. It follows `before`, the one in
    /// effect.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn resolved(
        &self,
        file: File,
        text: &str,
        before: Option<&Config>,
    ) -> Result<Config, String> {
        resolve_after(&self.over(file)?, before).map_err(|error| match &self.config {
            Some(path) if !self.is_about_flag(&error.to_string()) => {
                format!("{}: {}", path.display(), with_place(text, &error.to_string()))
            }
            _ => error.to_string(),
        })
    }

    /// Adds the file and the position in it to an error that begins with a key of the file `text`. Other
    /// errors are returned unchanged.
    pub fn placed(&self, text: &str, error: &str) -> String {
        match &self.config {
            Some(path) if !self.is_about_flag(error) => match with_place(text, error) {
                placed if placed == error => placed,
                placed => format!("{}: {placed}", path.display()),
            },
            _ => error.to_owned(),
        }
    }

    /// Whether an error concerns a value from a flag, which is not in the file.
    fn is_about_flag(&self, error: &str) -> bool {
        let is_it = |key: &str| error.strip_prefix(key).is_some_and(|at| at.starts_with(':'));
        self.given().iter().any(|(key, _)| is_it(key))
    }

    /// Returns the values of the flags by the corresponding keys.
    pub fn given(&self) -> Flags {
        let one =
            |key, value: &Option<String>| value.iter().map(|v| (key, format!("{v:?}"))).collect();
        let listen = (!self.listen.is_empty()).then(|| ("listen", format!("{:?}", self.listen)));
        let root =
            self.dir.iter().map(|dir| ("site.root", format!("{:?}", dir.display().to_string())));
        // Environment variables of scripts may be secret.
        let env = self.php_env.iter().map(|_| ("php.env", "(not shown)".to_owned()));
        let token = self.admin_token_file.iter();
        let token =
            token.map(|file| ("admin_token_file", format!("{:?}", file.display().to_string())));
        let trial = self.trial.then(|| ("mode", "\"trial\"".to_owned()));
        let single: [Flags; 7] = [
            trial.into_iter().collect(),
            one("admin", &self.admin),
            token.collect(),
            one("memory", &self.memory),
            one("php.at", &self.php),
            one("site.origin", &self.origin),
            one("access_log.to", &self.access_log),
        ];
        listen.into_iter().chain(root).chain(env).chain(single.into_iter().flatten()).collect()
    }

    /// Applies the flags to the configuration of the file.
    ///
    /// # Errors
    /// The value of a flag is invalid.
    pub fn over(&self, mut file: File) -> Result<File, String> {
        let set = |to: &mut Option<String>, from: &Option<String>| {
            if from.is_some() {
                to.clone_from(from);
            }
        };
        let one_site = self.dir.is_some()
            || self.origin.is_some()
            || self.php.is_some()
            || !self.php_env.is_empty();
        if one_site && !file.site.list.is_empty() {
            return Err("DIR, --origin, --php and --php-env are for a single site; with \
                        several ([[site]]), set them in the file"
                .into());
        }
        if self.dir.is_some() && self.origin.is_some() {
            return Err("DIR and --origin are both given: an HTTP origin serves its own files; \
                        leave one of them out"
                .into());
        }
        if !self.listen.is_empty() {
            file.listen = Some(OneOrMany::Many(self.listen.clone()));
        }
        set(&mut file.admin, &self.admin);
        if self.admin_token_file.is_some() {
            file.admin_token_file.clone_from(&self.admin_token_file);
        }
        set(&mut file.memory, &self.memory);
        if self.trial {
            file.mode = Some("trial".into());
            file.site.mode = None;
            file.site.list.iter_mut().for_each(|site| site.mode = None);
        }
        set(&mut file.access_log.to, &self.access_log);
        let php = file.site.php.as_mut().unwrap_or(&mut file.php);
        set(&mut php.at, &self.php);
        if let Some(url) = &self.origin {
            file.site.origin = Some(vec![url.clone()]);
        }
        if self.dir.is_some() {
            file.site.root.clone_from(&self.dir);
        }
        php.env.extend(self.php_env.iter().cloned());
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::program().debug_assert();
    }

    #[test]
    fn the_help_lists_each_command_once_and_on_one_line() {
        let help = CommandLine::program().term_width(96).render_help().to_string();
        for command in CommandLine::command().get_subcommands() {
            let line = format!("  {:<13} ", command.get_name());
            assert_eq!(help.matches(&line).count(), 1, "{line} in\n{help}");
        }
        assert!(help.lines().all(|line| line.len() <= 96), "{help}");
        assert!(help.contains("\nPurge and find problems:\n  "), "{help}");
    }

    #[test]
    fn flags_win_over_the_file() {
        let line = ["pagewell", "serve", "/srv", "--listen", ":80", "--php-env", "A=b=c"];
        let Command::Serve(args) = CommandLine::parse_from(line).command else { panic!() };
        let file: File = toml::from_str("listen = \"x\"\nmemory = \"1G\"").unwrap();
        let file = args.over(file).unwrap();
        assert_eq!(file.memory.as_deref(), Some("1G"));
        assert_eq!(file.php.env["A"], "b=c");
        assert!(matches!(file.listen, Some(OneOrMany::Many(all)) if all == [":80"]));
        let line = ["pagewell", "serve", "/srv", "--origin", "http://a"];
        let Command::Serve(args) = CommandLine::parse_from(line).command else { panic!() };
        assert!(args.over(File::default()).unwrap_err().starts_with("DIR and --origin "));
    }

    #[test]
    fn the_flag_begins_a_trial_of_every_site() {
        let line = ["pagewell", "serve", "--config", "x", "--trial"];
        let Command::Serve(args) = CommandLine::parse_from(line).command else { panic!() };
        for text in [
            "[site]\nmode = \"serve\"",
            "[[site]]\nhost = \"a\"\nmode = \"serve\"\n[[site]]\nhost = \"b\"",
        ] {
            let file = args.over(toml::from_str(text).unwrap()).unwrap();
            assert_eq!((file.mode.as_deref(), file.site.mode), (Some("trial"), None), "{text}");
            assert!(file.site.list.iter().all(|site| site.mode.is_none()), "{text}");
        }
    }
}
