//! Pages made from the tables of the `pagewell` crate: options and limits, commands, counters.
//!
//! Each function returns a whole page in Markdown. The same code gives the same bytes on every
//! machine: nothing is read from the environment, and the width of the terminal does not count.

use clap::{Command, CommandFactory};
use config::HIDDEN;
use config::options::CommandLine;
use config::table::{LIMITS, OPTIONS, OptionRow};
use control::metrics_table::{FIGURES, KERNEL, PROCESS};
use control::reload::may_change;
use site_state::counters::Counters;
use std::fmt::Write as _;

pub(super) const MADE: &str =
    "<!-- Made by `cargo xtask gen-docs` from the code; changes here are lost. -->\n";
/// Of what can be changed without a restart.
pub(super) const RELOAD: &str = " ↻";
const HELP_COLUMNS: usize = 96;

/// The heading of a table of the file, and where to read on.
fn heading_of(table: &str) -> &'static str {
    match table {
        "" => {
            "\n## At the top of the file\n\nBefore the first `[table]`: what stands below one belongs to it.\n"
        }
        "site" => "\n## `[site]`\n\nFor several: [Several sites](../guide/many-sites.md).\n",
        "php" => "\n## `[php]`\n",
        "cache" => "\n## `[cache]`\n",
        "access_log" => "\n## `[access_log]`\n\nSee [The access log](access-log.md).\n",
        "codings" => {
            "\n## `[codings]`\n\nSee [HTTP caching](../http-caching.md#content-codings).\n"
        }
        "keys" => "\n## `[keys]`\n\nSee [Rules, keys and cookies](../guide/rules.md).\n",
        "cookies" => "\n## `[cookies]`\n\nSee [Rules, keys and cookies](../guide/rules.md).\n",
        "tls" => {
            "\n## `[[tls]]`\n\nA certificate and its key; as many as there are names. See [TLS](../guide/tls.md).\n"
        }
        "snapshot" => "\n## `[snapshot]`\n\nSee [Restarting](../guide/restart.md).\n",
        "private" => "\n## `[private]`\n\nSee [Private copies](../guide/private-copies.md).\n",
        "memcached" => {
            "\n## `[memcached]`\n\nSee [nginx with memcached_pass](../guide/classic-nginx.md).\n"
        }
        "purge" => "\n## `[purge]`\n\nSee [Purging](../guide/purging.md).\n",
        "dialects" => "\n## `[dialects]`\n\nSee [Other caches](../guide/other-caches.md).\n",
        "traces" => "\n## `[traces]`\n\nSee [Traces](traces.md).\n",
        "wake" => {
            "\n## `[[wake]]`\n\nSee [WordPress: a timer](../guide/wordpress.md#scheduled-posts-wp-cron).\n"
        }
        "rewarm" => "\n## `[rewarm]`\n\nSee [After a large change](../guide/rewarm.md).\n",
        "database" => {
            "\n## `[[database]]`\n\nSee [The database says what changed](../guide/database.md).\n"
        }
        "change" => {
            "\n## `[[change]]`\n\nSee [The database says what changed](../guide/database.md).\n"
        }
        "cluster" => "\n## `[cluster]`\n\nSee [Several machines](../guide/several-machines.md).\n",
        _ => "\n## Others\n",
    }
}

/// The text of `docs/operating/options.md`.
pub fn options() -> String {
    let mut page = format!(
        "{MADE}# Options\n\n\
         Pagewell needs no configuration. What is to be different stands in a TOML file \
         (`pagewell serve --config FILE`); the flags are the short form of some of its keys and win \
         over it. `pagewell check --config FILE` says what is wrong with a file; a key that is not \
         known is an error that suggests the right one. `pagewell config` prints every value and where it \
         comes from, with `--set` those alone that are set. Where a list of texts is wanted, one may stand alone. What is marked ↻ can change while Pagewell runs ([reload](reload.md)).\n\n{EXAMPLE}"
    );
    let mut heading = None;
    let (top, tables): (Vec<&OptionRow>, Vec<&OptionRow>) =
        OPTIONS.iter().partition(|row| !row.key.contains('.'));
    for row in top.into_iter().chain(tables) {
        let table = row.key.split_once('.').map_or("", |(table, _)| table);
        if heading != Some(table) {
            heading = Some(table);
            page.push_str(heading_of(table));
            page.push_str("\n| key | flag | default | |\n|---|---|---|---|\n");
        }
        page.push_str(&option_row(row));
    }
    page.push_str(
        "\n## `[limits]`\n\nEverything that comes in is bounded; [Limits](limits.md) says how it is told that a bound was reached. Sizes are written `64K`, `8M`, \
         `2G` (powers of 1,024), durations `500ms`, `10s`, `2m`, `1h`.\n\n\
         | key | default | |\n|---|---|---|\n",
    );
    for row in LIMITS {
        let mark = if may_change(&format!("limits.{}", row.key)) { RELOAD } else { "" };
        let _ = writeln!(page, "| `{}` | {} | {}{mark} |", row.key, row.default, cell(row.help));
    }
    page.push_str(
        "\n## File names that are never served\n\nWhat holds when `site.hidden` is not given; how \
         the patterns are read stands in [Files and scripts](files.md).\n\n",
    );
    let quoted: Vec<String> = HIDDEN.iter().map(|pattern| format!("`{pattern}`")).collect();
    for line in quoted.chunks(10) {
        page.push_str(&line.join(" "));
        page.push('\n');
    }
    page
}

const EXAMPLE: &str = "\
```toml
listen = [\"0.0.0.0:80\", \"unix:/run/pagewell.sock\"]
memory = \"512M\"

[site]
root = \"/var/www/site/public\"

[php]
children = 16
ini = { memory_limit = \"256M\" }

[cache]
stale_if_error = \"1h\"

[limits]
body_bytes = \"128M\"
```
";

fn option_row(row: &OptionRow) -> String {
    let key = row.key.split_once('.').map_or(row.key, |(_, key)| key);
    let flag = if row.flag.is_empty() { String::new() } else { format!("`{}`", row.flag) };
    let mark = if may_change(row.key) { RELOAD } else { "" };
    format!("| `{key}` | {flag} | {} | {}{mark} |\n", cell(row.default), cell(row.help))
}

/// The text of `docs/operating/commands.md`.
pub fn commands() -> String {
    let mut page = format!(
        "{MADE}# Commands\n\n\
         What each command does is in its own help: `pagewell help`, `pagewell help serve`. Exit \
         status: 0 done, 1 it could not be done (a sentence on standard error says why), 2 wrong \
         usage. Commands that speak to a running Pagewell find it by `PAGEWELL_ADMIN` and \
         `PAGEWELL_TOKEN_FILE` of the environment, too, as the PHP library does.\n"
    );
    let mut line = CommandLine::command().term_width(HELP_COLUMNS);
    line.build();
    page.push_str(&help_of(&mut line));
    for command in line.get_subcommands_mut().filter(|command| command.get_name() != "help") {
        page.push_str(&help_of(command));
    }
    page
}

fn help_of(command: &mut Command) -> String {
    let called = command.get_bin_name().unwrap_or("pagewell").to_owned();
    let help = command.clone().term_width(HELP_COLUMNS).render_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    format!("\n## {called}\n\n```text\n{}\n```\n", lines.join("\n").trim_end())
}

/// The text of `docs/operating/counters.md`.
pub fn counters() -> String {
    let mut page = format!(
        "{MADE}# Counters\n\n\
         `pagewell stats` shows them; `pagewell stats --json`, or `curl -s \
         http://127.0.0.1:8081/v1/stats`, as one JSON object of numbers; `/metrics` as [Prometheus \
         reads them](control.md#metrics). They start at zero with Pagewell and only grow, but for those that say \
         \"now\". Of several sites they are the sums, and `sites` has those of each by its host; \
         connections, and what is refused on them, count for the first of these.\n\n## What was done\n\n| | |\n|---|---|\n"
    );
    for (name, help, _) in Counters::default().rows() {
        let _ = writeln!(page, "| `{name}` | {} |", cell(help));
    }
    page.push_str("\n## What there is\n\n| | |\n|---|---|\n");
    for figure in &FIGURES {
        let _ = writeln!(page, "| `{}` | {} |", figure.name, cell(figure.help));
    }
    for row in &KERNEL {
        let _ = writeln!(page, "| `{}` | {} |", row.name, cell(row.help));
    }
    for row in &PROCESS {
        let _ = writeln!(page, "| `{}` | {} |", row.name, cell(row.help));
    }
    page.push_str(READING);
    page
}

const READING: &str = "
## Reading them

| question | |
|---|---|
| How many visitors are answered from memory? | (`hits` + `stale_hits` + `collapsed`) of `requests` − `files` |
| Why does PHP work so much? | `renders` against `stored`: if few are stored, look at `Cache-Status` of the pages ([why a page is not stored](../http-caching.md#why-was-my-page-not-stored)). `forwards` are writes and what is passed on for them |
| Is there enough memory? | `evicted` grows while `memory_bytes` stays near `memory_budget_bytes`: pages leave before their time |
| Is too much dropped? | `dropped` against `invalidations`: so many pages a change |
| Is the site at its limit? | `origin_queue` over 0 for long; `origin_failures` growing |
| Do changes and renders meet? | `store_refused`, `joins_refused`: so often a page was made from data that changed meanwhile, and was not kept or not shared |
";

/// A text as it may stand in a table.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_its_page() {
        let page = options();
        for row in LIMITS {
            assert!(page.contains(&format!("| `{}` | {} |", row.key, row.default)), "{}", row.key);
        }
        for row in OPTIONS {
            let key = row.key.rsplit('.').next().unwrap_or_default();
            assert!(page.contains(&format!("| `{key}` |")), "{}", row.key);
        }
        assert!(HIDDEN.iter().all(|pattern| page.contains(&format!("`{pattern}`"))));
        assert!(!page.contains("## Others"), "a table of the file without a heading");
    }

    #[test]
    fn the_example_is_a_configuration() {
        let toml = EXAMPLE.trim_start_matches("```toml\n").trim_end_matches("```\n");
        let file: Result<config::raw::File, _> = toml::from_str(toml);
        assert!(file.is_ok(), "{file:?}");
    }

    #[test]
    fn every_command_is_shown() {
        let page = commands();
        for command in ["serve", "check", "invalidate", "stats"] {
            assert!(page.contains(&format!("## pagewell {command}\n")), "{command}");
        }
    }
}
