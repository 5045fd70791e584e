//! The settings of MariaDB or MySQL that decide whether its change stream can be followed, from its option
//! files as text. Defaults are those of each product: MySQL has a change stream by default, MariaDB none.
//!
//! The running server is not asked, because that needs an account: `pagewell check` asks it later.

use crate::machine::ExaminedMachine;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The main option files, in the order in which they are read.
const MAIN: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
/// The maximum number of option files, and the depth of `!include`.
const FILES_MAX: usize = 300;
const DEPTH_MAX: usize = 8;

/// A database server on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeStream {
    /// Whether it is MySQL. Otherwise it is MariaDB.
    pub is_mysql: bool,
    /// The path of its Unix socket.
    pub socket: PathBuf,
    /// The lines that its configuration lacks; none if it can be followed.
    pub missing: Vec<&'static str>,
    /// The option file for the missing lines: of those that the server reads, the last.
    pub file: PathBuf,
    /// The service of the server.
    pub service: &'static str,
}

impl ChangeStream {
    /// The name of the product.
    #[must_use]
    pub fn product(&self) -> &'static str {
        if self.is_mysql { "MySQL" } else { "MariaDB" }
    }

    /// The group of the option file for the missing lines.
    #[must_use]
    pub fn group(&self) -> &'static str {
        if self.is_mysql { "mysqld" } else { "mariadb" }
    }

    /// The client of the server, for root at its socket.
    #[must_use]
    pub fn client(&self) -> &'static str {
        if self.is_mysql { "mysql" } else { "mariadb" }
    }
}

/// The database server of this machine; `None` if none is installed.
#[must_use]
pub fn change_stream(machine: &ExaminedMachine) -> Option<ChangeStream> {
    let has = |paths: &[&str]| paths.iter().any(|path| machine.is_file(Path::new(path)));
    let is_mariadb =
        has(&["/usr/sbin/mariadbd", "/usr/libexec/mariadbd", "/etc/mysql/mariadb.cnf"]);
    if !is_mariadb && !has(&["/usr/sbin/mysqld", "/usr/libexec/mysqld"]) {
        return None;
    }
    let mut options = Options { machine, values: BTreeMap::new(), directory: None, files: 0 };
    for file in MAIN {
        options.file(Path::new(file), 0);
    }
    let socket = options.values.get("socket").map_or("/run/mysqld/mysqld.sock", String::as_str);
    let socket = PathBuf::from(socket);
    // MySQL's is `mysqld` on RHEL, and `mysql` on Debian.
    let has_mysqld = has(&["/usr/lib/systemd/system/mysqld.service"]);
    let of_mysql = if has_mysqld { "mysqld" } else { "mysql" };
    let service = if is_mariadb { "mariadb" } else { of_mysql };
    Some(ChangeStream {
        is_mysql: !is_mariadb,
        socket,
        missing: options.missing(!is_mariadb),
        file: options.last_file(),
        service,
    })
}

struct Options<'a> {
    machine: &'a ExaminedMachine,
    values: BTreeMap<String, String>,
    /// The directory that was included last.
    directory: Option<PathBuf>,
    files: usize,
}

impl Options<'_> {
    fn file(&mut self, path: &Path, depth: usize) {
        self.files += 1;
        if self.files > FILES_MAX || depth > DEPTH_MAX {
            return;
        }
        let Some(text) = self.machine.text_or_none(path) else { return };
        let mut is_of_server = false;
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            if let Some(dir) = line.strip_prefix("!includedir").map(str::trim) {
                for file in self.machine.matching(&format!("{dir}/*.cnf")) {
                    self.file(&file, depth + 1);
                }
                if self.machine.is_dir(Path::new(dir)) {
                    self.directory = Some(dir.into());
                }
            } else if let Some(file) = line.strip_prefix("!include") {
                self.file(Path::new(file.trim()), depth + 1);
            } else if let Some(group) = line.strip_prefix('[') {
                is_of_server = is_server_group(group.trim_end_matches(']'));
            } else if is_of_server && !line.is_empty() {
                let (name, value) = line.split_once('=').unwrap_or((line, ""));
                let value = value.split(" #").next().unwrap_or_default().trim();
                let name = name.trim().trim_start_matches("loose").trim_start_matches(['-', '_']);
                let value = value.trim_matches(['"', '\'']);
                self.values.insert(name.replace('-', "_"), value.to_owned());
            }
        }
    }

    /// The file whose options count more than those of the others: Debian's server reads another directory than RHEL's.
    fn last_file(&self) -> PathBuf {
        match &self.directory {
            // Files are read in the order of their names, and Debian's begin with a number.
            Some(dir) if dir.ends_with("mariadb.conf.d") => dir.join("60-pagewell.cnf"),
            Some(dir) => dir.join("zz-pagewell.cnf"),
            None => {
                let mut there = MAIN.iter().rev().map(Path::new);
                there.find(|file| self.machine.is_file(file)).unwrap_or(Path::new(MAIN[0])).into()
            }
        }
    }

    fn missing(&self, is_mysql: bool) -> Vec<&'static str> {
        let is = |name: &str, wanted: &[&str], default: bool| {
            self.values
                .get(name)
                .map_or(default, |value| wanted.iter().any(|one| value.eq_ignore_ascii_case(one)))
        };
        let is_off =
            self.values.contains_key("skip_log_bin") || self.values.contains_key("disable_log_bin");
        let logs = self.values.contains_key("log_bin") || is_mysql;
        let has_id = self.values.get("server_id").map_or(is_mysql, |id| id != "0");
        let on = ["ON", "1", "TRUE"];
        let needed = [
            (logs && !is_off, "log_bin"),
            // The default of MariaDB is 1, too; it is written because replicas need a number of their own.
            (has_id || logs, "server_id = 1"),
            (is("binlog_format", &["ROW"], is_mysql), "binlog_format = ROW"),
            (is("binlog_row_image", &["FULL"], true), "binlog_row_image = FULL"),
            (!is_mysql || is("gtid_mode", &on, false), "gtid_mode = ON"),
            (
                !is_mysql || is("enforce_gtid_consistency", &on, false),
                "enforce_gtid_consistency = ON",
            ),
        ];
        needed.into_iter().filter(|(is_set, _)| !is_set).map(|(_, line)| line).collect()
    }
}

/// Whether the server reads this group of an option file.
fn is_server_group(group: &str) -> bool {
    matches!(group, "mysqld" | "server" | "mariadb" | "mariadbd")
        || ["mysqld-", "mariadb-", "mariadbd-"].iter().any(|start| group.starts_with(start))
}
