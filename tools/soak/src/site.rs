//! The site that is soaked: scripts, a MariaDB that they read and Pagewell follows, an origin that
//! misbehaves under a host of its own, and the configuration of it all.
//!
//! A page of an item says its number and value, and is long enough to come in several pieces. All of it
//! is in private directories, on Unix sockets and ports of loopback, and goes when it is dropped.

use super::{bad_origin, error_text};
use harness::{MariaDb, MariaDbOptions, Port, PrivateDir, TestServer, numbers};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How many items there are; an even number, for two writers.
pub const ITEMS: usize = 40;
/// The name of the site with PHP.
pub const HOST: &str = "soak.test";
/// The name of the one whose origin misbehaves.
pub const BAD_HOST: &str = "bad.test";

/// How many letters stand between the first line and the last of an item's page.
pub fn filler(item: usize) -> usize {
    700 + item * 371
}

/// Run before each script.
const PRELUDE: &str = r#"<?php
function db(): PDO
{
    return new PDO(getenv('SOAK_DSN'), 'writer', getenv('SOAK_PASSWORD'),
        [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_TIMEOUT => 2]);
}
function item(int $id): void
{
    $statement = db()->prepare('SELECT value FROM item WHERE id = ?');
    $statement->execute([$id]);
    $value = $statement->fetchColumn();
    echo "item $id $value\n", str_repeat('x', 700 + $id * 371), "\nend $id $value\n";
}
"#;

const SCRIPTS: [(&str, &str); 7] = [
    (
        "item.php",
        r#"<?php $id = (int) $_GET['id'];
header('Cache-Control: max-age=3600'); header("Cache-Groups: \"item:$id\""); item($id);"#,
    ),
    ("fresh.php", "<?php header('Cache-Control: no-store'); item((int) $_GET['id']);"),
    (
        "write.php",
        r#"<?php $id = (int) $_GET['id']; $value = (int) $_GET['value'];
$statement = db()->prepare('UPDATE item SET value = GREATEST(value, ?) WHERE id = ?');
$statement->execute([$value, $id]);
header("Cache-Group-Invalidation: \"item:$id\""); echo "written $id $value\n";"#,
    ),
    (
        "me.php",
        "<?php header('Cache-Control: private, no-cache'); header('X-Pagewell-Refusal: signed-in');
         echo 'me ', $_COOKIE['PHPSESSID'], \"\\n\";",
    ),
    (
        "big.php",
        "<?php header('Cache-Control: max-age=3600'); echo str_repeat('0123456789abcdef', 131072);",
    ),
    (
        "hog.php",
        r#"<?php header('Cache-Control: no-store'); $kept = [];
for ($i = 0; $i < (int) $_GET['mb']; $i++) { $kept[] = str_repeat(chr($i % 255), 1 << 20); }
echo count($kept), "\n";"#,
    ),
    ("index.php", "<?php http_response_code(404); echo 'no such page';"),
];

/// Its addresses, kept for all of Pagewell's lives.
pub struct Ports {
    /// Where visitors are served.
    pub visitors: Port,
    /// The same behind the PROXY protocol.
    pub proxied: Port,
    /// The same over TLS.
    pub secure: Port,
    /// The port of the control interface.
    pub admin: Port,
}

/// The site. Fields are dropped in this order.
pub struct Site {
    /// The ports of all its servers.
    pub ports: Ports,
    /// The origin that misbehaves.
    pub bad: TestServer,
    /// The database of the site.
    pub database: MariaDb,
    /// Where its files are.
    pub dir: PrivateDir,
}

impl Site {
    /// Starts its database and its bad origin, and writes its files.
    ///
    /// # Errors
    /// The reason why it did not start.
    pub fn start() -> Result<Site, String> {
        let take = || Port::take().map_err(error_text);
        let ports = Ports { visitors: take()?, proxied: take()?, secure: take()?, admin: take()? };
        let dir = PrivateDir::temporary("soak").map_err(error_text)?;
        let database = database()?;
        let bad = bad_origin::start().map_err(error_text)?;
        let site = Site { ports, bad, database, dir };
        site.write().map_err(error_text)?;
        certify(site.dir.path())?;
        Ok(site)
    }

    /// Where the access log and the snapshots are: what can be full.
    pub fn disk(&self) -> PathBuf {
        self.dir.path().join("disk")
    }

    /// The path of Pagewell's configuration.
    pub fn config(&self) -> PathBuf {
        self.dir.path().join("pagewell.toml")
    }

    fn write(&self) -> std::io::Result<()> {
        let root = self.dir.path().join("root");
        for dir in [&root, &self.disk()] {
            fs::create_dir(dir)?;
            fs::set_permissions(dir, fs::Permissions::from_mode(0o755))?;
        }
        fs::write(self.dir.path().join("prelude.php"), PRELUDE)?;
        for (name, script) in SCRIPTS {
            fs::write(root.join(name), script)?;
        }
        self.configure("observe")
    }

    /// Writes the configuration, with this order of requests for the origin (`misses.mode`).
    ///
    /// # Errors
    /// It cannot be written.
    pub fn configure(&self, mode: &str) -> std::io::Result<()> {
        fs::write(self.config(), self.text(&self.dir.path().join("root"), mode))
    }

    fn text(&self, root: &Path, mode: &str) -> String {
        let at = |name: &str| self.dir.path().join(name).display().to_string();
        let [visitors, proxied, secure, admin] =
            [&self.ports.visitors, &self.ports.proxied, &self.ports.secure, &self.ports.admin]
                .map(|port| port.address().to_string());
        let (socket, bad) = (self.database.socket().display(), self.bad.address());
        format!(
            "listen = [{visitors:?}, {proxied:?}]\nlisten_tls = {secure:?}\n\
             proxy_protocol = {proxied:?}\nadmin = {admin:?}\n\
             trusted_proxies = [\"127.0.0.1\"]\nmemory = \"32M\"\naudit = \"1 in 10\"\n\
             [[tls]]\ncertificate = {certificate:?}\nkey = {key:?}\n\
             [misses]\nmode = {mode:?}\n\
             [purge]\nfrom = []\n\
             [php]\nchildren = 4\n\
             [php.env]\nSOAK_DSN = \"mysql:unix_socket={socket};dbname=items\"\n\
             SOAK_PASSWORD = \"secret\"\n\
             [php.ini]\nauto_prepend_file = {prelude:?}\ndisplay_errors = \"0\"\n\
             log_errors = \"0\"\nmemory_limit = \"-1\"\n\
             [access_log]\nto = {log:?}\n\
             [snapshot]\ndirectory = {snapshots:?}\nevery = \"1s\"\nunwatched = \"drop\"\n\
             [[site]]\nhost = {HOST:?}\nroot = {root:?}\n\
             [[site.database]]\n\
             url = \"mysql://follower:secret@localhost/items?socket={socket}\"\n\
             [[site.change]]\ntable = \"item\"\ntags = [\"item:{{id}}\"]\n\
             [[site]]\nhost = {BAD_HOST:?}\norigin = \"http://{bad}\"\n",
            certificate = at("cert.pem"),
            key = at("key.pem"),
            prelude = at("prelude.php"),
            log = at("disk/access.log"),
            snapshots = at("disk/snapshots"),
            root = root.display().to_string(),
        )
    }
}

fn database() -> Result<MariaDb, String> {
    let dir = PrivateDir::temporary("soak-db").map_err(error_text)?;
    // Each commit is with the system before it is acknowledged: what is killed is the server alone.
    let options = ["--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=16M"];
    let options = MariaDbOptions::followed(&options);
    let database = MariaDb::start_with(dir, options).map_err(error_text)?;
    database.create_database("items", "writer", "secret").map_err(error_text)?;
    database.create_follower("localhost", "items").map_err(error_text)?;
    let sql = format!(
        "USE items;
         CREATE TABLE item (id INT UNSIGNED PRIMARY KEY, value BIGINT UNSIGNED NOT NULL);
         INSERT INTO item SELECT seq - 1, 1 FROM {};",
        numbers(1, ITEMS as u64)
    );
    database.sql(&sql).map_err(error_text)?;
    Ok(database)
}

fn certify(dir: &Path) -> Result<(), String> {
    let mut command = Command::new(harness::program(&["openssl"]).map_err(error_text)?);
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    command.args(["-nodes", "-days", "30", "-subj", "/CN=soak.test", "-addext"]);
    command.arg("subjectAltName=DNS:soak.test,DNS:bad.test");
    command.arg("-keyout").arg(dir.join("key.pem")).arg("-out").arg(dir.join("cert.pem"));
    let output = command.output().map_err(|error| format!("openssl: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("openssl: {}", String::from_utf8_lossy(&output.stderr)))
    }
}
