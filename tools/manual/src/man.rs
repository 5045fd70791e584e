//! The manual pages for `man` (`contrib/man`), made from the same tables as the pages in `docs/operating`: pagewell(1) from
//! the command line, pagewell.toml(5) from the options and limits.
//!
//! Plain roff of the `man` macros; what comes from the tables is escaped, so that no text is a command.

use crate::docs::EXIT_STATUSES;
use clap::{Command, CommandFactory};
use config::options::CommandLine;
use config::table::{LIMITS, OPTIONS};
use std::fmt::Write as _;

const COLUMNS: usize = 76;

/// The manual page pagewell(1).
pub fn command() -> String {
    let mut line = CommandLine::command().term_width(COLUMNS);
    line.build();
    let about = line.get_about().map(ToString::to_string).unwrap_or_default();
    let mut page = head("PAGEWELL", 1, "Commands");
    let _ = writeln!(page, ".SH NAME\npagewell \\- {}", text(about.trim_end_matches('.')));
    page.push_str(".SH SYNOPSIS\n.B pagewell\n.I COMMAND\n[\\fIOPTION\\fR ...]\n.SH DESCRIPTION\n");
    let long = line.get_long_about().map(ToString::to_string).unwrap_or_default();
    for paragraph in long.split("\n\n").skip(1) {
        let _ = writeln!(page, "{}\n.PP", text(paragraph));
    }
    page.push_str(".SH COMMANDS\n");
    for command in line.get_subcommands_mut().filter(|command| command.get_name() != "help") {
        help_of(command, &mut page);
    }
    page.push_str(".SH EXIT STATUS\n");
    for (status, meaning) in EXIT_STATUSES {
        let _ = writeln!(page, ".TP\n.B {status}\n{}", text(&meaning.replace('`', "")));
    }
    page.push_str(
        ".SH FILES\n.TP\n.I /etc/pagewell/pagewell.toml\nThe configuration of the service.\n\
         .SH SEE ALSO\n.BR pagewell.toml (5)\n",
    );
    page
}

fn help_of(command: &mut Command, page: &mut String) {
    let called = command.get_bin_name().unwrap_or("pagewell").to_owned();
    let help = command.clone().term_width(COLUMNS).render_help().to_string();
    let _ = writeln!(page, ".SS {}\n.nf", text(&called));
    for line in help.trim_end().lines() {
        let _ = writeln!(page, "{}", text(line.trim_end()));
    }
    page.push_str(".fi\n");
}

/// The manual page pagewell.toml(5).
pub fn file() -> String {
    let mut page = head("PAGEWELL.TOML", 5, "Configuration");
    page.push_str(
        ".SH NAME\npagewell.toml \\- what is to be different about Pagewell\n.SH DESCRIPTION\n\
         Pagewell needs no configuration. What is to be different stands in a TOML file, given by\n\
         .BR \\-\\-config .\nKeys are written here with their table: \\fIsite.root\\fR is \\fIroot\\fR in \
         \\fI[site]\\fR.\n.SH OPTIONS\n",
    );
    for row in OPTIONS {
        option(&mut page, row.key, row.default, row.help);
    }
    page.push_str(
        ".SH LIMITS\nEverything that comes in is bounded. Sizes are written 64K, 8M, 2G (powers of 1,024), \
         durations 500ms, 10s, 2m, 1h.\n",
    );
    for row in LIMITS {
        option(&mut page, &format!("limits.{}", row.key), row.default, row.help);
    }
    page.push_str(".SH SEE ALSO\n.BR pagewell (1)\n");
    page
}

fn option(page: &mut String, key: &str, default: &str, help: &str) {
    let (default, help) = (text(&default.replace('`', "")), text(&help.replace('`', "")));
    let _ = writeln!(page, ".TP\n.B {}\n{help}\n(Default: {default}.)", text(key));
}

fn head(name: &str, section: u8, title: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        ".\\\" Made by `cargo xtask gen-docs` from the code; changes here are lost.\n\
         .TH {name} {section} \"\" \"Pagewell {version}\" \"{title}\"\n.nh\n"
    )
}

/// A text that is nothing but text to roff. Long addresses may be broken after a slash or question mark, so that
/// the lines before them can be adjusted.
fn text(plain: &str) -> String {
    let escaped = plain.replace('\\', "\\e").replace('-', "\\-");
    let word = |word: &str| {
        let is_long = word.len() > 30;
        if is_long { word.replace('/', "/\\:").replace('?', "?\\:") } else { word.to_owned() }
    };
    let lines = escaped.lines().map(|line| {
        let line = line.split(' ').map(word).collect::<Vec<_>>().join(" ");
        if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_and_command_is_there_and_nothing_is_a_command_of_roffs() {
        let (file, command) = (file(), command());
        for row in OPTIONS {
            assert!(file.contains(&format!(".B {}\n", text(row.key))), "{}", row.key);
        }
        for known in CommandLine::command().get_subcommands() {
            let heading = format!(".SS pagewell {}", text(known.get_name()));
            assert!(command.contains(&heading), "{heading}");
        }
        for line in file.lines().chain(command.lines()).filter(|line| line.starts_with('.')) {
            let known = [
                ".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".BR", ".I", ".nf", ".fi", ".nh", ".\\\"",
            ];
            let name = line.split(' ').next().unwrap_or_default();
            assert!(known.contains(&name), "{line}");
        }
        assert_eq!(text("-a\n.b\\c"), "\\-a\n\\&.b\\ec");
    }
}
