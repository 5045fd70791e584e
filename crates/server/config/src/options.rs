//! The command line. Flags are the short form of configuration keys and override the file. Their
//! descriptions for `--help` are here, those for the manual in `config::table`. Only the syntax is
//! checked here.

use crate::config::raw::{File, OneOrMany};
use crate::config::shown::Flags;
use crate::config::written::with_place;
use crate::config::{Config, load, resolve};
use crate::log::LogLevel;
use crate::nginx_value as value;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

const SERVE_EXAMPLES: &str = "\
Examples:
  pagewell serve /var/www/site
  pagewell serve --listen :80 --php unix:/run/php/php-fpm.sock /var/www/site
  pagewell serve --config /etc/pagewell/pagewell.toml";
const INVALIDATE_EXAMPLES: &str = "\
Examples:
  pagewell invalidate --url /news/4
  pagewell invalidate --tag news:4 --tag news
  pagewell invalidate --prefix /news/ --soft";
const EXPLAIN_EXAMPLES: &str = "\
Examples:
  pagewell explain /news/4
  pagewell explain --cookie PHPSESSID=1 'https://example.org/news?page=2'
  pagewell explain --tag news:4";

/// The full-page cache that knows your data.
///
/// Stands in front of a PHP site, answers from memory, and wakes PHP only when the data behind a
/// page has changed.
#[derive(Parser, Debug)]
#[command(name = "pagewell", version, max_term_width = 100)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Serve a site
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// Read a configuration, say what is wrong with it, and what this machine lacks for it
    Check(CheckArgs),
    /// Print the configuration as it counts: every value, and where it comes from; those that are set first
    // Options that affect only the serving process are hidden here.
    #[command(mut_arg("take_over", |arg| arg.hide(true)), mut_arg("log", |arg| arg.hide(true)))]
    Config(Box<ConfigArgs>),
    /// Have a running Pagewell read its configuration again
    Reload(ControlArgs),
    /// Say whether visitors should be sent to a running Pagewell: status 0 if so, 1 if not, with the reasons
    Ready(ControlArgs),
    /// Drop pages from the memory of a running Pagewell
    #[command(visible_alias = "purge", after_help = INVALIDATE_EXAMPLES)]
    Invalidate(InvalidateArgs),
    /// Say why a page is answered as it is: stored or not, made from what, dropped by what
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// Show the top causes of cache misses: reasons, cookies, slow pages, pages purged for nothing
    #[command(alias = "offenders")]
    Misses(MissesArgs),
    /// Show the counters of a running Pagewell
    Stats(StatsArgs),
    /// Watch a running Pagewell in the terminal: q ends, s shows the next site
    Top(TopArgs),
    /// Rules that say which pages a changed row of a database concerns
    Changes(ChangesArgs),
    /// Print a configuration for an nginx that reads pages over the memcached port
    NginxConfig(NginxConfigArgs),
    /// Look at the machine, PHP and the site, and say what will hurt under load; changes nothing
    Doctor(DoctorArgs),
}

/// `pagewell serve`
#[derive(Args, Debug, Default, Clone)]
pub struct ServeArgs {
    /// The site's directory: the document root itself, or what has it as public, web, htdocs or
    /// pub [default: the working directory]
    pub dir: Option<PathBuf>,
    /// Where visitors are served: address:port or unix:path; may be given several times
    /// [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// Where the control interface is: address:port or unix:path [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<String>,
    /// The page budget, such as 256M: contents, headers and index together
    /// [default: a quarter of the machine's memory]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Configuration in TOML; flags win over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A FastCGI responder that is already running, instead of a private php-fpm:
    /// unix:/run/php/php8.2-fpm.sock or 127.0.0.1:9000
    #[arg(long, value_name = "ADDRESS", conflicts_with = "origin")]
    pub php: Option<String>,
    /// An environment variable for the scripts of the private php-fpm; may be given several times
    #[arg(long = "php-env", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub php_env: Vec<(String, String)>,
    /// An HTTP server that renders the pages, instead of PHP: http://127.0.0.1:8000
    #[arg(long, value_name = "URL")]
    pub origin: Option<String>,
    /// Where a line goes for each answer: a file, stdout, or syslog
    #[arg(long, value_name = "WHERE")]
    pub access_log: Option<String>,
    /// What is logged: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t, hide_possible_values = true)]
    pub log: LogLevel,
    /// Take over from the Pagewell that has its control interface at the same address, without a moment
    /// in which nobody serves; start as ever where there is none
    #[arg(long)]
    pub take_over: bool,
}

/// `pagewell config`
#[derive(Args, Debug)]
pub struct ConfigArgs {
    /// Only what is set, by the file or by flags
    #[arg(long)]
    pub set: bool,
    /// As `serve` has it.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// `pagewell check`
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// The site's directory, where `serve` is given one
    pub dir: Option<PathBuf>,
    /// The configuration to read
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Do not connect to the databases
    #[arg(long)]
    pub offline: bool,
    /// Ask the running Pagewell, too, which tags its pages have that no [[change]] could touch
    #[arg(long)]
    pub running: bool,
}

/// `pagewell changes`
#[derive(Args, Debug)]
pub struct ChangesArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ChangesCommand,
}

/// What to do about change rules.
#[derive(Subcommand, Debug)]
pub enum ChangesCommand {
    /// Read the tables of a database and print rules for them, to begin with
    Suggest(SuggestArgs),
}

/// `pagewell changes suggest`
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("where").required(true))]
pub struct SuggestArgs {
    /// The database, as in [[database]]: mysql://user:password@host/name
    #[arg(value_name = "URL", group = "where")]
    pub url: Option<String>,
    /// A configuration with [[database]]
    #[arg(long, value_name = "FILE", group = "where")]
    pub config: Option<PathBuf>,
    /// Print the rules for an application whose plugin for Pagewell names what its pages depend on
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

/// `pagewell doctor`
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// The site's directory, where Pagewell is given one
    pub dir: Option<PathBuf>,
    /// The configuration that Pagewell runs with
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A page of the site to ask for; may be given several times [default: the root at the first address
    /// of the configuration, by the host of each site]
    #[arg(long = "url", value_name = "URL")]
    pub urls: Vec<String>,
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
}

/// `pagewell nginx-config`
#[derive(Args, Debug)]
pub struct NginxConfigArgs {
    /// The site's host, with its port where that is not the one at which nginx listens: requests for
    /// others are refused, because a stored page is the same for all
    #[arg(long, value_name = "HOST", value_parser = value::server_name)]
    pub server_name: value::ServerName,
    /// The memcached port of Pagewell: address:port or unix:path
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:11211",
          value_parser = value::asked)]
    pub memcached: String,
    /// The FastCGI responder that renders what is not stored: address:port or unix:path
    #[arg(long, value_name = "ADDRESS", default_value = "unix:/run/php/php-fpm.sock",
          value_parser = value::asked)]
    pub php: String,
    /// The document root, with an index.php
    #[arg(long, value_name = "DIR", default_value = "/var/www/html", value_parser = value::root)]
    pub root: String,
    /// Where nginx listens: a port, address:port or unix:path
    #[arg(long, value_name = "ADDRESS", default_value = "80", value_parser = value::listen)]
    pub listen: String,
    /// A cookie of a session: whoever has it gets no stored page; * stands for anything, as in SESS*;
    /// may be given several times
    #[arg(long = "session-cookie", value_name = "NAME", default_value = "PHPSESSID",
          value_parser = value::cookie)]
    pub session_cookies: Vec<String>,
}

/// Where a running Pagewell is found.
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
    /// A file with the token that it asks for
    #[arg(long, value_name = "FILE", env = "PAGEWELL_TOKEN_FILE", hide_env_values = true)]
    pub token_file: Option<PathBuf>,
}

/// `pagewell stats`
#[derive(Args, Debug)]
pub struct StatsArgs {
    /// As one JSON object of numbers; of several sites with those of each
    #[arg(long)]
    pub json: bool,
    /// Where to call.
    #[command(flatten)]
    pub control: ControlArgs,
}

/// `pagewell explain`
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("about").required(true))]
pub struct ExplainArgs {
    /// The page: a path with its query, or a whole URL
    #[arg(value_name = "URL", group = "about")]
    pub url: Option<String>,
    /// Which pages are made from what this tag names, and what changed it last
    #[arg(long, value_name = "TAG", group = "about")]
    pub tag: Option<String>,
    /// The last changes: when, who, what they named, what they dropped
    #[arg(long, group = "about")]
    pub changes: bool,
    /// A cookie of the visitor who asks; may be given several times
    #[arg(long = "cookie", value_name = "NAME=VALUE", conflicts_with_all = ["tag", "changes"],
          value_parser = name_and_value)]
    pub cookies: Vec<(String, String)>,
    /// Another header line of the request; may be given several times
    #[arg(long = "header", value_name = "NAME: VALUE", conflicts_with_all = ["tag", "changes"],
          value_parser = header_line)]
    pub headers: Vec<(String, String)>,
    /// The method of the request [default: GET]
    #[arg(long, value_name = "METHOD", conflicts_with_all = ["tag", "changes"])]
    pub method: Option<String>,
    /// The site of this host
    #[arg(long, value_name = "HOST", conflicts_with = "changes")]
    pub site: Option<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Where to call.
    #[command(flatten)]
    pub control: ControlArgs,
}

/// `pagewell misses`
#[derive(Args, Debug)]
pub struct MissesArgs {
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Where to call.
    #[command(flatten)]
    pub control: ControlArgs,
}

/// `pagewell top`
#[derive(Args, Debug)]
pub struct TopArgs {
    /// Begin with the site of this host, instead of all together
    #[arg(long, value_name = "HOST")]
    pub site: Option<String>,
    /// Where to call.
    #[command(flatten)]
    pub control: ControlArgs,
}

/// `pagewell invalidate`
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct InvalidateArgs {
    /// Drop every page made from what this tag names; may be given several times; - reads tags from
    /// standard input, one to a line
    #[arg(long = "tag", value_name = "TAG", group = "what", value_parser = NonEmptyStringValueParser::new())]
    pub tags: Vec<String>,
    /// Drop the page at this URL or path, in all its variants; may be given several times
    #[arg(long = "url", value_name = "URL", group = "what")]
    pub urls: Vec<String>,
    /// Drop every page at or below this path, such as /news/; may be given several times
    #[arg(long = "prefix", value_name = "PATH", group = "what")]
    pub prefixes: Vec<String>,
    /// Only in the site of this host; without it in every site
    #[arg(long, value_name = "HOST")]
    pub site: Option<String>,
    /// Drop every page
    #[arg(long, group = "what", conflicts_with_all = ["tags", "urls", "prefixes"])]
    pub all: bool,
    /// Mark pages instead of dropping them: they are used as stale only, where they allow that
    #[arg(long)]
    pub soft: bool,
    /// Where to reach it.
    #[command(flatten)]
    pub control: ControlArgs,
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
        let config = resolve(&self.over(file)?).map_err(|error| {
            let error = error.to_string();
            let of_flag = |key: &str| error.strip_prefix(key).is_some_and(|at| at.starts_with(':'));
            match &self.config {
                // A value from a flag is not in the file.
                Some(path) if !self.given().iter().any(|(key, _)| of_flag(key)) => {
                    format!("{}: {}", path.display(), with_place(&text, &error))
                }
                _ => error,
            }
        })?;
        Ok((config, text))
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
        let single: [Flags; 5] = [
            one("admin", &self.admin),
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
            return Err("DIR, --origin, --php and --php-env are for a single site; with [[site]] \
                        the file says it"
                .into());
        }
        if !self.listen.is_empty() {
            file.listen = Some(OneOrMany::Many(self.listen.clone()));
        }
        set(&mut file.admin, &self.admin);
        set(&mut file.memory, &self.memory);
        set(&mut file.access_log.to, &self.access_log);
        let php = file.site.php.as_mut().unwrap_or(&mut file.php);
        set(&mut php.at, &self.php);
        set(&mut file.site.origin, &self.origin);
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
        CommandLine::command().debug_assert();
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
    }
}
