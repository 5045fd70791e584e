//! The options of `pagewell init`, and the applications that it knows.
//!
//! Only the syntax of the command line is here. The crate `init` has the recognition of each application
//! and everything that the command does.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The options of `pagewell init`.
#[derive(Args, Debug)]
pub struct InitArgs {
    /// The site's directory: the application, or its document root
    #[arg(required_unless_present = "verify")]
    pub dir: Option<PathBuf>,
    /// The application, if it is not recognised
    #[arg(long, value_name = "NAME", value_enum)]
    pub application: Option<SiteKind>,
    /// The site's host, such as example.org [default: the one in the configuration of the application or of the
    /// web server]
    #[arg(long, value_name = "HOST")]
    pub name: Option<String>,
    /// Ask nothing: take the default of each question
    #[arg(long)]
    pub yes: bool,
    /// Print the file instead of writing it
    #[arg(long)]
    pub dry_run: bool,
    /// The file to write; with --verify, the file to read [default: /etc/pagewell/pagewell.toml; if it exists, the
    /// new file is pagewell.new.toml beside it]
    #[arg(long, alias = "config", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Check the running site by requests: hits, PURGE (no change of data), signed-in visitors, PHP below uploads, the
    /// certificate
    #[arg(long, conflicts_with_all = ["application", "name", "yes", "dry_run"])]
    pub verify: bool,
    /// With --verify: the address that visitors use, such as https://example.org/ [default: by the configuration]
    #[arg(long, value_name = "URL", requires = "verify")]
    pub url: Option<String>,
    /// With --verify: trust the authorities in this file (PEM) [default: those of the system]
    #[arg(long, value_name = "FILE", requires = "verify")]
    pub ca: Option<PathBuf>,
    /// The root directory of the machine that is examined, for tests.
    #[arg(long, hide = true, default_value = "/")]
    pub machine: PathBuf,
}

/// An application that `pagewell init` recognises, in the order in which it looks for them.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SiteKind {
    /// WordPress, also with WooCommerce
    #[value(name = "wordpress")]
    WordPress,
    /// MediaWiki
    #[value(name = "mediawiki")]
    MediaWiki,
    /// Magento 2
    Magento,
    /// Drupal
    Drupal,
    /// Laravel
    Laravel,
    /// Symfony
    Symfony,
    /// Any other PHP site
    #[default]
    Php,
}

impl SiteKind {
    /// All applications, in the order in which they are looked for. Plain PHP is last, because all have its sign.
    pub const ALL: [SiteKind; 7] = [
        SiteKind::WordPress,
        SiteKind::MediaWiki,
        SiteKind::Magento,
        SiteKind::Drupal,
        SiteKind::Laravel,
        SiteKind::Symfony,
        SiteKind::Php,
    ];

    /// The name for readers.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            SiteKind::WordPress => "WordPress",
            SiteKind::MediaWiki => "MediaWiki",
            SiteKind::Magento => "Magento",
            SiteKind::Drupal => "Drupal",
            SiteKind::Laravel => "Laravel",
            SiteKind::Symfony => "Symfony",
            SiteKind::Php => "a PHP site",
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::options::{Command, CommandLine};
    use clap::Parser;
    use std::path::Path;

    /// As for each other command that reads the configuration.
    #[test]
    fn the_configuration_to_verify_is_named_by_config_as_well() {
        for option in ["--config", "--output"] {
            let line = ["pagewell", "init", "--verify", option, "/x.toml"];
            let Command::Init(args) = CommandLine::parse_from(line).command else { panic!() };
            assert_eq!(args.output.as_deref(), Some(Path::new("/x.toml")), "{option}");
        }
    }
}
