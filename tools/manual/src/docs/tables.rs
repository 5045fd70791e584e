//! Pages made from the tables of the `pagewell` crate: options and limits, commands, counters.
//!
//! Each function returns a whole page in Markdown. The same code gives the same bytes on every
//! machine: nothing is read from the environment, and the width of the terminal does not count.

use clap::Command;
use command_line::options::CommandLine;
use config::HIDDEN;
use config::table::{OPTIONS, OptionRow};
use control::metrics_table::{FIGURES, KERNEL, PROCESS};
use control::reload::may_change;
use std::fmt::Write as _;
use telemetry::counters::Counters;

pub(super) const MADE: &str =
    "<!-- Made by `cargo xtask gen-docs` from the code; changes here are lost. -->\n";
/// Of what can be changed without a restart.
pub(super) const RELOAD: &str = " ↻";
const HELP_COLUMNS: usize = 96;

/// The heading of a table of the file, and where to read on.
fn heading_of(table: &str) -> &'static str {
    match table {
        "" => "\n## At the top of the file\n\nWrite these keys before the first `[table]`.\n",
        "site" => "\n## `[site]`\n\nSeveral sites: [guide](../guide/many-sites.md).\n",
        "php" => "\n## `[php]`\n",
        "cache" => "\n## `[cache]`\n",
        "access_log" => "\n## `[access_log]`\n\n[The access log](access-log.md).\n",
        "codings" => "\n## `[codings]`\n\n[HTTP caching](../http-caching.md#content-codings).\n",
        "keys" => "\n## `[keys]`\n\n[Cache key](../guide/cache-key.md).\n",
        "cookies" => "\n## `[cookies]`\n\n[Cookies](../guide/cookies.md).\n",
        "tls" => "\n## `[[tls]]`\n\nOne table for each certificate: [TLS](../guide/tls.md).\n",
        "acme" => "\n## `[acme]`\n\n[Automatic certificates](../guide/tls.md#certificates).\n",
        "snapshot" => "\n## `[snapshot]`\n\n[Restart](../guide/restart.md).\n",
        "private" => "\n## `[private]`\n\n[Private copies](../guide/private-copies.md).\n",
        "memcached" => {
            "\n## `[memcached]`\n\n[nginx with memcached_pass](../guide/classic-nginx.md).\n"
        }
        "purge" => "\n## `[purge]`\n\n[Purging](../guide/purging.md).\n",
        "dialects" => {
            "\n## `[dialects]`\n\nCompatibility headers. See [tags made for other caches](../guide/purging.md#tags-made-for-other-caches).\n"
        }
        "traces" => "\n## `[traces]`\n\n[Traces](access-log.md#traces).\n",
        "wake" => {
            "\n## `[[wake]]`\n\n[WordPress: a timer](../guide/wordpress.md#scheduled-posts-wp-cron).\n"
        }
        "trial" => "\n## `[trial]`\n\nSee [Try it on your site](../guide/trial.md).\n",
        "misses" => "\n## `[misses]`\n\nSee [Crawlers](../guide/crawlers.md).\n",
        "rewarm" => {
            "\n## `[rewarm]`\n\n[Cache warming](../guide/purging.md#cache-warming-after-a-large-purge).\n"
        }
        "automatic" => {
            "\n## `[automatic]`\n\n[Automatic dependencies](../guide/automatic.md). `ignore` is a list of tables, `[[automatic.ignore]]`.\n"
        }
        "database" => {
            "\n## `[[database]]`\n\n[Database-driven invalidation](../guide/database.md).\n"
        }
        "change" => "\n## `[[change]]`\n\n[Database-driven invalidation](../guide/database.md).\n",
        "cluster" => "\n## `[cluster]`\n\n[Clusters](../guide/several-machines.md).\n",
        _ => "\n## Others\n",
    }
}

/// The text of `docs/operating/options.md`.
pub fn options() -> String {
    let mut page = format!(
        "{MADE}# Options\n\n\
         Pagewell works without a configuration file. To change a default, write a TOML file and start \
         `pagewell serve --config FILE`. Flags override the file.\n\n\
         - `pagewell check --config FILE` reports errors, also unknown keys.\n\
         - `pagewell config` prints the effective value of every key and its source; `--set` prints only the keys that are set.\n\
         - Where a key takes a list, a single string is accepted too.\n\
         - Keys marked ↻ can be changed while Pagewell runs ([reload](reload.md)).\n\n{EXAMPLE}"
    );
    for (table, rows) in rows_by_table() {
        page.push_str(heading_of(table));
        let (replaced, rows): (Vec<&OptionRow>, Vec<&OptionRow>) =
            rows.into_iter().partition(|row| replaces_a_table(row));
        let has_flags = rows.iter().any(|row| !row.flag.is_empty());
        page.push_str(if has_flags {
            "\n| Key | Flag | Default | Meaning |\n|---|---|---|---|\n"
        } else {
            "\n| Key | Default | Meaning |\n|---|---|---|\n"
        });
        for row in rows {
            page.push_str(&option_row(row, has_flags));
        }
        if !replaced.is_empty() {
            let mark = |row: &&OptionRow| if may_change(row.key) { RELOAD } else { "" };
            let named = replaced.iter().map(|row| format!("`{}`{}", key_of(row), mark(row)));
            let named = named.collect::<Vec<_>>().join(", ");
            page.push_str(&format!(
                "\nA site can have tables of its own, such as `[site.cache]` or `[[site.rule]]`, instead of \
                 those of the file: {named}.\n"
            ));
        }
    }
    page.push_str(
        "\n## `[limits]`\n\nBounds on everything that comes in: [Limits](limits.md). Sizes are written `64K`, \
         `8M`, `2G` (powers of 1,024), durations `500ms`, `10s`, `2m`, `1h`.\n",
    );
    page.push_str(
        "\n## File names that are never served\n\nThe patterns that apply if `site.hidden` is not set. \
         [Files and scripts](files.md) describes how they are matched.\n\n",
    );
    let quoted: Vec<String> = HIDDEN.iter().map(|pattern| format!("`{pattern}`")).collect();
    for line in quoted.chunks(10) {
        page.push_str(&line.join(" "));
        page.push('\n');
    }
    page
}

/// A configuration file, in Markdown.
pub const EXAMPLE: &str = "\
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

/// The options, table by table; those at the top of the file first.
pub fn rows_by_table() -> Vec<(&'static str, Vec<&'static OptionRow>)> {
    let table = |row: &OptionRow| row.key.split_once('.').map_or("", |(table, _)| table);
    let (top, tables): (Vec<&OptionRow>, Vec<&OptionRow>) =
        OPTIONS.iter().partition(|row| table(row).is_empty());
    let mut all: Vec<(&str, Vec<&OptionRow>)> = vec![("", top)];
    for row in tables {
        match all.last_mut().filter(|(name, _)| *name == table(row)) {
            Some((_, rows)) => rows.push(row),
            None => all.push((table(row), vec![row])),
        }
    }
    all
}

/// Whether a key of a site is a table that replaces one at the top of the file.
fn replaces_a_table(row: &OptionRow) -> bool {
    row.key.starts_with("site.") && row.default.starts_with("the table")
}

/// The key without its table.
fn key_of(row: &OptionRow) -> &'static str {
    row.key.split_once('.').map_or(row.key, |(_, key)| key)
}

fn option_row(row: &OptionRow, has_flags: bool) -> String {
    let (key, default, help) = (key_of(row), cell(row.default), cell(row.help));
    let mark = if may_change(row.key) { RELOAD } else { "" };
    let flag = match row.flag {
        "" => String::new(),
        flag => format!("`{flag}`"),
    };
    let flag = if has_flags { format!(" {flag} |") } else { String::new() };
    format!("| `{key}` |{flag} {default} | {help}{mark} |\n")
}

/// The exit statuses of `pagewell`, each with its meaning in Markdown.
pub const EXIT_STATUSES: [(u8, &str); 5] = [
    (
        0,
        "The command succeeded. `serve`: a signal stopped it. `ready`: visitors can be served. `status`: all is well. `doctor`: no problem.",
    ),
    (
        1,
        "The command failed; a sentence on standard error gives the reason. `check`: the file has an error, the user of the service cannot use what it names, or a database cannot be reached. `ready`: not ready. `status`: there are problems. `purge`: another node of the cluster is late.",
    ),
    (2, "The command line is wrong."),
    (3, "`doctor`: there is a problem."),
    (
        70,
        "`serve`: a bug has damaged the page store, and the process has ended, so that its service manager restarts it.",
    ),
];

/// The text of `docs/operating/commands.md`.
pub fn commands() -> String {
    let mut page = format!(
        "{MADE}# Commands\n\n\
         The help of every command, as `pagewell help COMMAND` prints it.\n\n\
         | Exit status | Meaning |\n|---|---|\n"
    );
    for (status, meaning) in EXIT_STATUSES {
        let _ = writeln!(page, "| {status} | {meaning} |");
    }
    page.push_str(
        "\nCommands that call a running Pagewell (`reload`, `ready`, `status`, `certificates`, `purge`, `explain`, `misses`, `stats`) \
         have two more options, which are left out below:\n\n| Option | Variable | Default |\n|---|---|---|\n\
         | `--admin ADDRESS` | `PAGEWELL_ADMIN` | 127.0.0.1:8081 |\n\
         | `--token-file FILE` | `PAGEWELL_TOKEN_FILE` | none |\n\n\
         The PHP library reads the same variables.\n",
    );
    let mut program = CommandLine::program().term_width(HELP_COLUMNS);
    program.build();
    page.push_str(&help_of(&program));
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        // The list above says all of a command without arguments.
        if command
            .get_arguments()
            .any(|arg| !matches!(arg.get_id().as_str(), "admin" | "token_file" | "help"))
        {
            page.push_str(&help_of(command));
        }
        let nested = command.get_subcommands().filter(|nested| nested.get_name() != "help");
        page.extend(nested.map(help_of));
    }
    page
}

/// The section of a command, without the options that many commands have.
fn help_of(command: &Command) -> String {
    let called = command.get_bin_name().unwrap_or("pagewell").to_owned();
    let mut shown = command.clone().term_width(HELP_COLUMNS).disable_help_flag(true);
    let ids: Vec<String> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
    let hidden: &[&str] = match command.get_name() {
        "config" => &[
            "dir",
            "listen",
            "admin",
            "admin_token_file",
            "memory",
            "config",
            "php",
            "php_env",
            "origin",
            "access_log",
        ],
        _ if ids.iter().any(|id| id == "token_file") => &["admin", "token_file"],
        _ => &[],
    };
    for id in hidden.iter().chain(&["help"]).filter(|id| ids.iter().any(|known| known == *id)) {
        shown = shown.mut_arg(*id, |arg| arg.hide(true));
    }
    let help = shown.render_help().to_string();
    let mut lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    if command.get_name() == "config" {
        lines.extend(["", "The other options are those of serve."]);
    }
    format!("\n## {called}\n\n```text\n{}\n```\n", lines.join("\n").trim_end())
}

/// The text of `docs/operating/counters.md`.
pub fn counters() -> String {
    let mut page = format!(
        "{MADE}# Counters\n\n\
         ```sh\n\
         pagewell stats                               # as a table\n\
         curl -s http://127.0.0.1:8081/v1/stats       # as JSON\n\
         curl -s http://127.0.0.1:8081/metrics        # for Prometheus\n\
         ```\n\n\
         Counters start at zero when Pagewell starts. With several sites each number is the sum, and `sites` has the \
         numbers of each site by its host; connections, and requests rejected before their host is known, count for the \
         first site. In [`/metrics`](control.md#metrics) each name has the prefix `pagewell_`.\n\n\
         ## Requests and events\n\n| Counter | Meaning |\n|---|---|\n"
    );
    for (name, help, _) in Counters::default().rows() {
        let _ = writeln!(page, "| `{name}` | {} |", cell(help));
    }
    page.push_str("\n## Sizes and states\n\n| Name | Meaning |\n|---|---|\n");
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
## Read the counters

| Question | Counters |
|---|---|
| How high is the hit ratio? | (`hits` + `stale_hits` + `private_hits` + `collapsed`) ÷ (`requests` − `files`) |
| Why is PHP busy? | Compare `renders` with `stored`. If few pages are stored, run `pagewell misses`. `forwards` are writes and bypassed requests. |
| Is there enough memory? | No, if `evicted` grows while `memory_bytes` is near `memory_budget_bytes`. |
| Are too many pages purged? | `dropped` ÷ `invalidations` is the number of pages for each invalidation. |
| Is the origin overloaded? | Yes, if `origin_queue` stays above 0, or `misses_overload_seconds` grows. |
| Do changes collide with renders? | `store_refused` and `joins_refused` count pages whose data changed during their render. |
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
        for row in OPTIONS {
            let key = key_of(row);
            let is_there = page.contains(&format!("| `{key}` |"));
            assert!(
                is_there || replaces_a_table(row) && page.contains(&format!("`{key}`")),
                "{}",
                row.key
            );
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
        for command in ["serve", "check", "purge", "changes suggest", "stats"] {
            assert!(page.contains(&format!("## pagewell {command}\n")), "{command}");
        }
    }
}
