//! Debian's MediaWiki as a wiki of a test: a document root of its own, and a database on a private MariaDB.
//!
//! The package is in `/usr/share`, and is shared by all tests. MediaWiki finds its settings beside the script that
//! runs, so each wiki needs scripts of its own. Tests add their settings.

use harness::{MariaDb, MariaDbOptions, PrivateDir};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

const PACKAGE: &str = "/usr/share/mediawiki";
/// The directories that are the package's own.
const LINKED: [&str; 7] =
    ["includes", "languages", "vendor", "resources", "maintenance", "skins", "extensions-core"];

/// The host of the wiki's URLs.
pub const HOST: &str = "wiki.test";

/// The password of the wiki's administrator, `Admin`.
pub const PASSWORD: &str = "secret-of-admin-1";

/// Lays out the document root of a wiki: copies of the package's scripts, and links to its large directories.
///
/// # Panics
/// The package is not installed, or the directory cannot be written.
pub fn lay_out(root: &Path) {
    let package = Path::new(PACKAGE);
    let is_installed = package.join("index.php").is_file();
    assert!(is_installed, "scripts/setup test installs the package mediawiki");
    fs::create_dir_all(root).expect("a directory");
    for entry in fs::read_dir(package).expect("the package").flatten() {
        let name = entry.file_name();
        let is_program = name.to_string_lossy().ends_with(".php") && entry.path().is_file();
        if is_program && name != "LocalSettings.php" {
            fs::copy(entry.path(), root.join(name)).expect("copied");
        }
    }
    for name in LINKED {
        symlink(package.join(name), root.join(name)).expect("a link");
    }
    // A directory of its own, to which extensions can be added.
    fs::create_dir(root.join("extensions")).expect("a directory");
    for entry in fs::read_dir(package.join("extensions-core")).expect("extensions").flatten() {
        let link = root.join("extensions").join(entry.file_name());
        symlink(entry.path(), link).expect("a link");
    }
}

/// A MediaWiki with its database.
pub struct Wiki {
    /// The server of its database, which is named `wiki`.
    pub database: MariaDb,
    dir: PrivateDir,
}

impl Wiki {
    /// Installs a wiki. `settings` are additional lines of LocalSettings.php.
    ///
    /// # Panics
    /// MediaWiki or the database server cannot be installed.
    pub fn start(options: MariaDbOptions, settings: &str) -> Wiki {
        let dir = PrivateDir::temporary("wiki").expect("a directory");
        let database = PrivateDir::temporary("wikidb").expect("a directory");
        let database = MariaDb::start_with(database, options).expect("it starts");
        database.create_database("wiki", "wiki", "secret").expect("a database");
        let wiki = Wiki { database, dir };
        let root = wiki.root();
        lay_out(Path::new(&root));
        for (name, mode) in [("", 0o755), ("images", 0o777), ("cache", 0o777)] {
            let path = Path::new(&root).join(name);
            fs::create_dir_all(&path).expect("a directory");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
        }
        wiki.install();
        wiki.set(&format!("$wgCacheDirectory = '{root}/cache';\n{settings}"));
        wiki
    }

    fn install(&self) {
        let config = format!("--confpath={}", self.root());
        let server = format!("--server=http://{HOST}");
        let password = format!("--pass={PASSWORD}");
        let account = ["--dbtype=mysql", "--dbserver=localhost", "--dbname=wiki", "--dbuser=wiki"];
        let wiki = [&server, "--scriptpath=", &config, &password, "A wiki", "Admin"];
        self.maintain("install.php", &[&account[..], &["--dbpass=secret"], &wiki].concat(), "");
    }

    /// The path of the document root, in which LocalSettings.php is.
    pub fn root(&self) -> String {
        self.dir.path().join("root").display().to_string()
    }

    /// Appends lines to LocalSettings.php. PHP may notice them only after some seconds, if it has read the file.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn set(&self, settings: &str) {
        let file = format!("{}/LocalSettings.php", self.root());
        let text = fs::read_to_string(&file).expect("it is there") + settings + "\n";
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("set");
    }

    /// Lines of `[php.ini]` by which PHP finds the database.
    pub fn ini(&self) -> String {
        let socket = self.database.socket().display().to_string();
        format!("\"mysqli.default_socket\" = {socket:?}\n")
    }

    /// Runs a maintenance script with a text as its input.
    ///
    /// # Panics
    /// It fails.
    pub fn maintain(&self, script: &str, args: &[&str], input: &str) {
        let root = self.root();
        let socket = self.database.socket().display();
        let mut command = Command::new("php");
        command.arg("-d").arg(format!("mysqli.default_socket={socket}"));
        command.arg(format!("{root}/maintenance/{script}")).args(args);
        command.env("MW_INSTALL_PATH", &root).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("php runs");
        let mut stdin = child.stdin.take().expect("it is piped");
        stdin.write_all(input.as_bytes()).expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{script} {args:?}: {text}");
    }
}

/// The text of a response without the parts that differ between two renders of the same data: times and numbers
/// of the render, which are in comments and in a script, and the number of jobs.
pub fn comparable(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("<!--") {
        text.push_str(before);
        rest = after.split_once("-->").map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let is_report = |line: &&str| line.contains("wgPageParseReport");
    let lines = text.lines().filter(|line| !is_report(line));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    for name in ["\"wgRequestId\":", "\"jobs\":"] {
        if let Some((before, after)) = text.split_once(name) {
            let rest = after.split_once([',', '}']).map_or("", |(_, rest)| rest);
            text = format!("{before}{rest}");
        }
    }
    text
}
