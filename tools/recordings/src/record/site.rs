//! The blog that is recorded: Debian's WordPress without a plugin, php-fpm and the capture file.
//!
//! Each request is made as a web server without a cache makes it. The requests of visitors are captured, those of
//! the administrator are not.

use super::super::recording::RecordedColumn;
use super::capture::{CaptureSocket, CapturedRequest};
use super::responder;
use harness::{PhpFpm, PoolOptions, PrivateDir, Response, WordPress, root};
use serde::Deserialize;
use serde_json::Value as Json;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Prints the columns and rows of all tables as JSON. Dates of zeros are null, as in recordings.
const DUMP: &str = r#"require 'wp-load.php';
$schema = $initial = [];
foreach ($wpdb->get_results('SELECT TABLE_NAME, COLUMN_NAME, COLUMN_KEY, COLUMN_TYPE, COLLATION_NAME
    FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1, ORDINAL_POSITION', ARRAY_N) as $row) {
    $schema[$row[0]][] = array_slice($row, 1);
}
foreach ($schema as $table => $columns) {
    $isDate = array_map(fn ($column) => $column[2] === 'datetime', $columns);
    $value = fn ($value, $isDate) => $isDate && $value === '0000-00-00 00:00:00' ? null : $value;
    $rows = $wpdb->get_results("SELECT * FROM `$table`", ARRAY_N);
    $initial[$table] = array_map(fn ($row) => array_map($value, $row, $isDate), $rows);
}
echo json_encode(['schema' => $schema, 'initial' => $initial], JSON_INVALID_UTF8_SUBSTITUTE);"#;

/// A blog with its database and its php-fpm, which end when it is dropped.
#[derive(Debug)]
pub struct Blog {
    wordpress: WordPress,
    fpm: PhpFpm,
    captures: CaptureSocket,
    visits: Cell<u64>,
    _dir: PrivateDir,
}

/// Whether the blog shows the widgets of a new WordPress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sidebar {
    /// Search, recent posts, recent comments, archives and categories.
    Default,
    /// None.
    Empty,
}

/// A request of the administrator.
#[derive(Debug, Clone, Copy, Default)]
pub struct AdminRequest<'r> {
    /// The request method, `GET` or `POST`.
    pub method: &'r str,
    /// The path with its query.
    pub target: &'r str,
    /// The media type of the content.
    pub media_type: &'r str,
    /// The request content; empty for none.
    pub content: &'r str,
    /// The value of `Cookie`.
    pub cookies: &'r str,
    /// The value of `X-WP-Nonce`, which the REST API expects.
    pub nonce: &'r str,
}

/// The tables of the blog.
#[derive(Debug, Deserialize)]
pub struct TableDump {
    /// For each table its columns: name, key, type and collation.
    pub schema: BTreeMap<String, Vec<RecordedColumn>>,
    /// For each table its rows.
    pub initial: BTreeMap<String, Vec<Vec<Json>>>,
}

impl Blog {
    /// The host name of the blog.
    pub const HOST: &str = "blog.test";

    /// Creates the blog and starts its servers.
    ///
    /// # Errors
    /// A message, if a program is not installed or a server does not start.
    pub fn start(sidebar: Sidebar) -> Result<Blog, String> {
        let repository = root::repository();
        let script = repository.join("tests/footprints/site/fill.php");
        let widgets = if sidebar == Sidebar::Default { "1" } else { "0" };
        let wordpress = WordPress::start_plain(&repository, &script, &[("WP_WIDGETS", widgets)])
            .map_err(text)?;
        // Without this the log has neither the names of columns nor their signs.
        wordpress.database().sql("SET GLOBAL binlog_row_metadata = FULL").map_err(text)?;
        let dir = PrivateDir::temporary("capture").map_err(text)?;
        let captures = CaptureSocket::open(dir.path())?;
        let prepended = copy_capture(dir.path())?;
        let ini = [("auto_prepend_file", prepended.display().to_string())];
        let fpm = start_php(&wordpress, &ini)?;
        Ok(Blog { wordpress, fpm, captures, visits: Cell::new(0), _dir: dir })
    }

    /// The files and the database of the blog.
    pub fn wordpress(&self) -> &WordPress {
        &self.wordpress
    }

    /// The process ids of php-fpm and of the database.
    pub fn pids(&self) -> Option<[u32; 2]> {
        Some([self.fpm.pid()?, self.wordpress.database().pid()?])
    }

    /// The tables as they are now.
    ///
    /// # Errors
    /// A message, if PHP or the database refuses.
    pub fn dump(&self) -> Result<TableDump, String> {
        let json = self.wordpress.command(DUMP).map_err(text)?;
        serde_json::from_str(&json).map_err(|error| format!("the tables of the blog: {error}"))
    }

    /// Requests a page as a visitor, and returns it with its statements.
    ///
    /// # Errors
    /// A message, if the page or its complete list of statements does not arrive.
    pub fn visit(&self, target: &str) -> Result<(Response, CapturedRequest), String> {
        let request = AdminRequest { method: "GET", target, ..AdminRequest::default() };
        self.visits.set(self.visits.get() + 1);
        let token = self.visits.get().to_string();
        let mut variables = variables(&self.wordpress, &request);
        let mut add = |name: &str, value: String| variables.push((name.to_owned(), value));
        add("PAGEWELL_CAPTURE", self.captures.path().display().to_string());
        add("PAGEWELL_CAPTURE_TOKEN", token.clone());
        let response = responder::ask(self.fpm.socket(), &variables, &[])?;
        let captured = self.captures.take(&token).map_err(|error| format!("{target}: {error}"))?;
        match &captured.incomplete {
            Some(reason) => Err(format!("{target}: incomplete statements: {reason}")),
            None => Ok((response, captured)),
        }
    }

    /// Sends a request that is not captured.
    ///
    /// # Errors
    /// A message, if no response arrives.
    pub fn send(&self, request: &AdminRequest<'_>) -> Result<Response, String> {
        let variables = variables(&self.wordpress, request);
        responder::ask(self.fpm.socket(), &variables, request.content.as_bytes())
    }

    /// Requests a page from a php-fpm that does not have the capture file.
    #[cfg(test)]
    pub fn send_without_capture_file(&self, target: &str) -> Result<Response, String> {
        let fpm = start_php(&self.wordpress, &[])?;
        let request = AdminRequest { method: "GET", target, ..AdminRequest::default() };
        responder::ask(fpm.socket(), &variables(&self.wordpress, &request), &[])
    }

    /// Whether a capture has arrived that nobody has taken.
    #[cfg(test)]
    pub fn has_capture(&self) -> bool {
        self.captures.has_capture()
    }
}

fn start_php(wordpress: &WordPress, ini: &[(&str, String)]) -> Result<PhpFpm, String> {
    let mut settings = vec![("sendmail_path".to_owned(), "/bin/true".to_owned())];
    settings.extend(ini.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let options = PoolOptions { children: 2, env: wordpress.env().to_vec(), ini: settings };
    PhpFpm::start(PrivateDir::temporary("fpm").map_err(text)?, &options).map_err(text)
}

/// The CGI variables (RFC 3875, section 4.1). A path without a PHP file is answered by `index.php`.
fn variables(wordpress: &WordPress, request: &AdminRequest<'_>) -> Vec<(String, String)> {
    let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
    let script = match path.strip_suffix('/') {
        Some(dir)
            if wordpress.root().join(dir.trim_start_matches('/')).join("index.php").is_file() =>
        {
            format!("{dir}/index.php")
        }
        _ if wordpress.root().join(path.trim_start_matches('/')).is_file() => path.to_owned(),
        _ => "/index.php".to_owned(),
    };
    let root = wordpress.root().display().to_string();
    let length = match request.content.len() {
        0 => String::new(),
        length => length.to_string(),
    };
    let variables = [
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SERVER_SOFTWARE", "recorder"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("SERVER_NAME", Blog::HOST),
        ("SERVER_ADDR", "127.0.0.1"),
        ("SERVER_PORT", "80"),
        ("REMOTE_ADDR", "127.0.0.1"),
        ("REQUEST_SCHEME", "http"),
        ("REQUEST_METHOD", request.method),
        ("REQUEST_URI", request.target),
        ("QUERY_STRING", query),
        ("DOCUMENT_ROOT", &root),
        ("SCRIPT_NAME", &script),
        ("SCRIPT_FILENAME", &format!("{root}{script}")),
        ("CONTENT_TYPE", request.media_type),
        ("CONTENT_LENGTH", &length),
        ("HTTP_HOST", Blog::HOST),
        ("HTTP_USER_AGENT", "recorder"),
        ("HTTP_COOKIE", request.cookies),
        ("HTTP_X_WP_NONCE", request.nonce),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let is_header = |name: &str| name.starts_with("HTTP_") || name.starts_with("CONTENT_");
    let mut variables = variables.to_vec();
    variables.retain(|(name, value)| !(is_header(name) && value.is_empty()));
    variables
}

fn text(error: harness::StartError) -> String {
    error.to_string()
}

/// Copies the capture file, and those that it loads, into one directory: php-fpm's user cannot read every checkout.
/// Returns the path of the copy.
///
/// # Errors
/// A message, if one cannot be copied.
pub fn copy_capture(directory: &Path) -> Result<PathBuf, String> {
    const SHARED: &str = "php/client/src/Capture";
    let copied = |from: &str, name: &str| {
        let (from, to) = (root::repository().join(from).join(name), directory.join(name));
        fs::copy(&from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
        Ok(to)
    };
    for name in ["report.php", "session-rules.php"] {
        copied(SHARED, name)?;
    }
    copied("php/capture", "statement-count.php")?;
    copied("php/capture", "wordpress.php")
}
