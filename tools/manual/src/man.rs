//! The manual pages for `man` (`contrib/man`), made from the same tables as the pages in `docs/operating`: pagewell(1) from
//! the command line, pagewell.toml(5) from the options and limits.
//!
//! Plain roff of the `man` macros; what comes from the tables is escaped, so that no text is a command.

use crate::docs::{EXAMPLE, EXIT_STATUSES, rows_by_table};
use clap::Command;
use command_line::options::CommandLine;
use config::table::LIMITS;
use std::fmt::Write as _;

const COLUMNS: usize = 76;

/// The manual page pagewell(1).
pub fn command() -> String {
    let mut line = CommandLine::program().term_width(COLUMNS);
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
        let _ = writeln!(page, ".TP\n.B {status}\n{}", prose(meaning));
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
        ".SH NAME\npagewell.toml \\- configuration file of Pagewell\n.SH DESCRIPTION\n\
         Pagewell works without a configuration file. To change a default, write a TOML file and name it by\n\
         .BR \\-\\-config .\nKeys before the first table belong to the top of the file; all others belong to \
         the table above them.\n.B pagewell check\nreports errors,\n.B pagewell config\nprints the value of \
         every key and its source.\n.SH EXAMPLE\n.nf\n",
    );
    for line in EXAMPLE.lines().filter(|line| !line.starts_with("```")) {
        let _ = writeln!(page, "{}", text(line));
    }
    page.push_str(".fi\n.SH OPTIONS\n");
    for (table, rows) in rows_by_table() {
        let title = match table {
            "" => "Top of the file".to_owned(),
            "tls" | "database" | "change" | "wake" => format!("[[{table}]]"),
            _ => format!("[{table}]"),
        };
        let _ = writeln!(page, ".SS {}", text(&title));
        for row in rows {
            let key = row.key.split_once('.').map_or(row.key, |(_, key)| key);
            option(&mut page, key, row.default, row.help);
        }
    }
    page.push_str(
        ".SS [limits]\nBounds on everything that comes in. Sizes are written 64K, 8M, 2G (powers of 1,024), \
         durations 500ms, 10s, 2m, 1h.\n",
    );
    for row in LIMITS {
        option(&mut page, row.key, row.default, row.help);
    }
    page.push_str(".SH SEE ALSO\n.BR pagewell (1)\n");
    page
}

fn option(page: &mut String, key: &str, default: &str, help: &str) {
    let (key, help, default) = (text(key), prose(help), prose(default));
    let _ = writeln!(page, ".TP\n.B {key}\n{help}\n(Default: {default}.)");
}

/// Markdown as roff: code is bold, a link is its text.
fn prose(markdown: &str) -> String {
    let mut links = markdown.split("](");
    let mut plain = links.next().unwrap_or_default().replace('[', "\u{1}");
    for link in links {
        // The bracket that belongs to this link is the last one.
        if let Some(at) = plain.rfind('\u{1}') {
            plain.remove(at);
        }
        plain.push_str(&link.split_once(')').map_or(link, |(_, rest)| rest).replace('[', "\u{1}"));
    }
    let plain = plain.replace('\u{1}', "[");
    let parts = plain.split('`').enumerate();
    let parts = parts.map(|(number, part)| match number % 2 {
        0 => text(part),
        _ => format!("\\fB{}\\fR", text(part)),
    });
    parts.collect()
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
        for (table, rows) in rows_by_table() {
            for row in rows {
                let key = row.key.strip_prefix(table).unwrap_or(row.key).trim_start_matches('.');
                assert!(file.contains(&format!(".B {}\n", text(key))), "{}", row.key);
            }
        }
        for known in CommandLine::program().get_subcommands() {
            let heading = format!(".SS pagewell {}", text(known.get_name()));
            assert!(command.contains(&heading), "{heading}");
        }
        for (status, _) in EXIT_STATUSES {
            assert!(command.contains(&format!(".TP\n.B {status}\n")), "{status}");
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

    #[test]
    fn the_file_has_tables_and_no_markdown() {
        let file = file();
        for table in ["Top of the file", "[site]", "[[database]]", "[limits]"] {
            assert!(file.contains(&format!(".SS {table}\n")), "{table}");
        }
        let is_comment = |line: &str| line.starts_with(".\\\"");
        let is_markdown =
            |line: &&str| !is_comment(line) && (line.contains('`') || line.contains("]("));
        assert_eq!(file.lines().find(is_markdown), None);
        assert_eq!(prose("a `b` ([guide](../c.md)), `[d]`"), "a \\fBb\\fR (guide), \\fB[d]\\fR");
    }
}
