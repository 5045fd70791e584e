//! The steps that let Pagewell follow the site's database: the change stream, its account, and the file that PHP
//! loads before each script.
//!
//! A step has either commands or statements, and each command can be run as it is printed. No part that exists is
//! made a second time: a second password would lock Pagewell out.

use super::{NextStep, add_setting, append_to_setting, has_in_setting, step};
use crate::change_stream::ChangeStream;
use crate::facts::{CONFIG, PASSWORD_FILE, SERVICE_USER};
use crate::file_text::CAPTURE_DIRECTORY;
use crate::php_pools::{PREPEND_FILE, PhpPool};
use crate::plan::{
    DatabaseFollowing, FollowedDatabase, FrontServer, SetupPlan, plain_name, shell_path,
};
use std::path::Path;

/// The host of Pagewell's account at a database on another machine, which the operator fills in.
const THIS_MACHINE: &str = "'ADDRESS OF THIS MACHINE'";
/// The setting of a pool that has PHP load a file before each script.
const PREPEND_KEY: &str = "php_value[auto_prepend_file]";

/// Turns on the change stream, and creates the account that reads it.
pub(super) fn database_steps(
    database: &FollowedDatabase,
    has_password_file: bool,
) -> Vec<NextStep> {
    let Some(stream) = &database.stream else { return distant_steps(database) };
    let mut all = Vec::new();
    if !stream.missing.is_empty() {
        let group = format!("'[{}]'", stream.group());
        let options = stream.missing.iter().map(|option| format!(" '{option}'"));
        let options: String = std::iter::once(group).chain(options).collect();
        let (product, file) = (stream.product(), shell_path(&stream.file));
        all.push(step(
            format!(
                "Optional: let Pagewell read {product}'s change stream. The server restarts, and \
                 the site waits for it."
            ),
            &[
                // The file may have the other options, from the first time.
                &format!("printf '%s\\n' {options} | sudo tee -a {file}"),
                &format!("sudo systemctl restart {}", stream.service),
            ],
        ));
    }
    // With a password, the account exists: another password would lock Pagewell out.
    if has_password_file {
        all.push(grant_step(database));
    } else {
        let [secret, made] = password_lines();
        let password = format!("$(sudo cat {PASSWORD_FILE})");
        let sql = account(database, "localhost", &password, stream.is_mysql).join(" ");
        all.push(step(
            "Create the account that reads it, with a password that only the service can read.",
            &[&secret, &made, &run_statements(&sql, stream)],
        ));
    }
    all
}

/// Lets the account that exists read the database of this site: it may be that of another one.
pub(super) fn grant_step(database: &FollowedDatabase) -> NextStep {
    match &database.stream {
        Some(stream) => step(
            "Allow Pagewell's account to read this site's database (safe to repeat).",
            &[&run_statements(&grant(database, "localhost"), stream)],
        ),
        None => step(
            "On the database's machine, allow Pagewell's account to read this site's database (safe to repeat).",
            &[&grant(database, THIS_MACHINE)],
        ),
    }
}

/// The command that runs statements in a server on this machine.
fn run_statements(sql: &str, stream: &ChangeStream) -> String {
    format!("echo \"{}\" | sudo {}", sql.replace('`', "\\`"), stream.client())
}

/// The steps for a database on another machine: the statements are run there.
fn distant_steps(database: &FollowedDatabase) -> Vec<NextStep> {
    let [secret, made] = password_lines();
    let show = format!("sudo cat {PASSWORD_FILE}");
    let statements = account(database, THIS_MACHINE, "THAT PASSWORD", false);
    vec![
        step(
            "Optional: on the database's machine, run this statement. The answer must be 1, ROW, FULL.",
            &["SELECT @@log_bin, @@binlog_format, @@binlog_row_image;"],
        ),
        step(
            "Make a password that only the service can read. The next step needs it.",
            &[&secret, &made, &show],
        ),
        NextStep {
            title: "On the database's machine, create the account that reads the change stream. MySQL also needs \
                    REPLICATION CLIENT and XA_RECOVER_ADMIN."
                .into(),
            lines: statements,
        },
    ]
}

/// The commands that write a new password.
fn password_lines() -> [String; 2] {
    [
        format!("sudo install -m 640 -o root -g {SERVICE_USER} /dev/null {PASSWORD_FILE}"),
        format!(
            "head -c 24 /dev/urandom | base64 | tr -d '/+=\\n' | sudo tee {PASSWORD_FILE} > /dev/null"
        ),
    ]
}

/// The statements that create Pagewell's account, for connections from a host.
fn account(database: &FollowedDatabase, from: &str, password: &str, is_mysql: bool) -> Vec<String> {
    let of_server = if is_mysql { ", REPLICATION CLIENT, XA_RECOVER_ADMIN" } else { "" };
    vec![
        format!("CREATE USER pagewell@{from} IDENTIFIED BY '{password}';"),
        format!("GRANT REPLICATION SLAVE{of_server} ON *.* TO pagewell@{from};"),
        grant(database, from),
    ]
}

/// The statement that lets Pagewell's account read the database of the site.
fn grant(database: &FollowedDatabase, from: &str) -> String {
    let name = database.name.replace('_', "\\_");
    format!("GRANT SELECT ON `{name}`.* TO pagewell@{from};")
}

/// Lets php-fpm report the statements of a render, and turns on the lines of a database that is not followed yet; with
/// `has_others`, the operator does that in the file of several sites.
pub(super) fn capture_step(plan: &SetupPlan, has_others: bool) -> NextStep {
    let known = plan.pool.as_ref().filter(|pool| plain_name(&pool.name));
    let directories = captured_directories().map(|dir| dir.display().to_string()).join(" and ");
    let (mut title, mut lines) = match (known, known.and_then(|pool| file_to_edit(plan, pool))) {
        (Some(pool), Some(file)) => (title_by_hand(pool, file, &directories), Vec::new()),
        (Some(pool), None) => (title_with_commands(pool), prepend_lines(pool)),
        (None, _) => (
            format!(
                "Add `{PREPEND_KEY} = {PREPEND_FILE}` to the pool of php-fpm that runs the site, and reload it. Add \
                 {directories} to its `open_basedir`, if it has one."
            ),
            Vec::new(),
        ),
    };
    let is_prepared = matches!(plan.following, DatabaseFollowing::Prepared(_));
    if is_prepared && has_others {
        title.push_str(&format!(
            " Then, in this site's part of {CONFIG}, remove `database = []` and `automatic = {{ enabled = false }}`, and \
             the first # of the lines from [[site.database]] on. The record of a trial then begins again."
        ));
    } else if is_prepared {
        title.push_str(
            " The last `sed` turns on [[database]] and [automatic]: the record of a trial begins again.",
        );
        lines
            .push(format!("sudo sed -i '/^#\\[\\[database/,/^#capture_directory/s/^#//' {CONFIG}"));
    }
    lines.push(format!("sudo pagewell check --config {CONFIG} && sudo systemctl restart pagewell"));
    NextStep { title, lines }
}

/// The title of the step with commands for a pool. `open_basedir` may be set where nobody looks, so it has a way back.
fn title_with_commands(pool: &PhpPool) -> String {
    let mut title = format!(
        "Let the pool {} report the statements of each page: Pagewell's file runs before each script and any \
         `auto_prepend_file` of php.ini, and does nothing for other servers.",
        pool.name
    );
    if pool.prepend != PREPEND_FILE {
        title.push_str(&format!(
            " If PHP then answers no request, another file sets `open_basedir`. To undo this step: `sudo sed -i \
             '\\#{PREPEND_FILE}#d' {} && sudo systemctl reload {}`.",
            shell_path(&pool.file),
            pool.service()
        ));
    }
    title
}

/// The title of the step without commands for a pool. `basedir`: the file that sets `open_basedir`.
fn title_by_hand(pool: &PhpPool, basedir: &Path, directories: &str) -> String {
    let (name, basedir, file) = (&pool.name, basedir.display(), pool.file.display());
    format!(
        "First add {directories} to `open_basedir` in {basedir}: otherwise PHP answers no request. Then add \
         `{PREPEND_KEY} = {PREPEND_FILE}` to the pool {name} in {file}, and reload php-fpm."
    )
}

/// The file with an `open_basedir` that may lack the directories, and that no command changes: not the pool's, or not a
/// plain list.
fn file_to_edit<'a>(plan: &'a SetupPlan, pool: &'a PhpPool) -> Option<&'a Path> {
    let is_closed = captured_directories().iter().any(|dir| !pool.may_open(dir));
    if is_closed && (pool.basedir_file != pool.file || !pool.has_plain_basedir()) {
        return Some(&pool.basedir_file);
    }
    // A pool that loads the file already may open it, or `pagewell check` names it.
    if pool.prepend == PREPEND_FILE {
        return None;
    }
    let of_server = match &plan.front {
        FrontServer::Nginx(served) if served.sets_basedir => Some(served.file.as_path()),
        _ => None,
    };
    plan.site.basedir_setting.as_deref().or(of_server)
}

/// The directories from which the scripts of a pool load files of Pagewell.
fn captured_directories() -> [&'static Path; 2] {
    let of_prepend = Path::new(PREPEND_FILE).parent().unwrap_or(Path::new("/"));
    [of_prepend, Path::new(CAPTURE_DIRECTORY)]
}

/// The commands that have a pool load Pagewell's file. Without access to it, PHP would answer no request.
fn prepend_lines(pool: &PhpPool) -> Vec<String> {
    let mut lines = Vec::new();
    let closed = captured_directories().into_iter().filter(|dir| !pool.may_open(dir));
    let closed: String = closed.map(|dir| format!(":{}", dir.display())).collect();
    let mut may_open = String::new();
    if !closed.is_empty() {
        lines.push(append_to_setting(pool, "php(_admin)?_value\\[open_basedir\\]", &closed));
        may_open = format!("{} && ", has_in_setting(pool, "open_basedir", &closed));
    }
    if pool.prepend != PREPEND_FILE {
        let add = add_setting(pool, &format!("{PREPEND_KEY} = {PREPEND_FILE}"));
        lines.push(format!("{may_open}test -r {PREPEND_FILE} && {add}"));
    }
    lines.push(format!("sudo systemctl reload {}", pool.service()));
    lines
}
