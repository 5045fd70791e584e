//! The texts of `--help` that are not descriptions of options: the groups of commands, and examples.
//!
//! `options` has the commands and their options. A command that no group names is listed last, so that none is
//! left out.

/// The commands in groups, as `--help` lists them. A command without a group is listed last.
const GROUPS: [(&str, &[&str]); 3] = [
    ("Serve", &["serve", "reload", "ready"]),
    (
        "Configure and check",
        &["init", "import", "check", "config", "doctor", "changes", "nginx-config"],
    ),
    (
        "Purge and find problems",
        &["trial", "status", "certificates", "purge", "explain", "misses", "stats"],
    ),
];

/// Below the help of `serve`.
pub(crate) const SERVE_EXAMPLES: &str = "\
Examples:
  pagewell serve /var/www/site
  pagewell serve --listen :80 --php unix:/run/php/php-fpm.sock /var/www/site
  pagewell serve --config /etc/pagewell/pagewell.toml";

/// Below the help of `init`.
pub(crate) const INIT_EXAMPLES: &str = "\
Examples:
  sudo pagewell init /var/www/blog
  pagewell init /var/www/blog --dry-run
  pagewell init --verify";

/// Below the help of `import`.
pub(crate) const IMPORT_EXAMPLES: &str = "\
Exit status: 0 done, 1 a file cannot be read or written, 2 a restriction (deny, password, network) was not translated.

Examples:
  pagewell import nginx /etc/nginx/sites-enabled/example.org --output example.toml
  pagewell import htaccess /var/www/site/.htaccess --report report.txt";

/// Below the help of `purge`.
pub(crate) const PURGE_EXAMPLES: &str = "\
Examples:
  pagewell purge --url /news/4
  pagewell purge --tag news:4 --tag news
  pagewell purge --prefix /news/ --soft";
/// Below the help of `explain`.
pub(crate) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  pagewell explain /news/4
  pagewell explain --cookie PHPSESSID=1 'https://example.org/news?page=2'
  pagewell explain --tag news:4";
/// Below the help of `doctor`.
pub(crate) const DOCTOR_EXAMPLES: &str = "\
Exit status: 0 no problem, 1 the check could not run, 3 a problem.

Examples:
  pagewell doctor /var/www/site
  pagewell doctor --config /etc/pagewell/pagewell.toml --url https://example.org/news/";

/// The commands with their descriptions, group by group.
pub(crate) fn grouped(program: &clap::Command) -> String {
    let known: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
    let others = program.get_subcommands().map(clap::Command::get_name);
    let others: Vec<&str> = others.filter(|name| !known.contains(name)).collect();
    let groups = GROUPS.iter().copied().chain([("Other commands", others.as_slice())]);
    let mut list = String::new();
    for (group, names) in groups {
        list.push_str(&format!("{group}:\n"));
        for command in names.iter().filter_map(|name| program.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let aliases: Vec<&str> = command.get_visible_aliases().collect();
            let alias = match aliases.as_slice() {
                [] => String::new(),
                names => format!(" [alias: {}]", names.join(", ")),
            };
            list.push_str(&format!("  {:<13} {about}{alias}\n", command.get_name()));
        }
        list.push('\n');
    }
    list
}
