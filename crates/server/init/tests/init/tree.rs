//! A machine as a tree of files in a temporary directory, and the sites that the tests put on it.

use command_line::options::{InitArgs, SiteKind};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A machine; its directory is removed at the end.
pub struct Tree {
    root: PathBuf,
    /// Sockets exist as long as they are listened on.
    sockets: Vec<UnixListener>,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Tree {
    /// A machine of 2 GB without any server.
    pub fn empty() -> Tree {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("pw-init-{}-{number}", std::process::id()));
        fs::create_dir_all(&root).expect("the tree of the test");
        let tree = Tree { root, sockets: Vec::new() };
        tree.file("/proc/meminfo", "MemTotal:        2097152 kB\nMemFree: 1 kB\n")
            .file("/etc/pagewell/README", "")
    }

    /// A machine with php-fpm 8.2 and 8.1, the service's user, and MariaDB.
    pub fn with_php() -> Tree {
        let pool = |version: &str| {
            format!(
                "[www]\nuser = www-data\ngroup = www-data\nlisten = /run/php/php{version}-fpm.sock\n\
                 pm.max_children = 5\n"
            )
        };
        Tree::empty()
            .file("/etc/php/8.1/fpm/pool.d/www.conf", &pool("8.1"))
            .file("/etc/php/8.2/fpm/pool.d/www.conf", &pool("8.2"))
            .file("/etc/passwd", "root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:/bin/sh\npagewell:x:998:998::/:/bin/sh\n")
            .file("/etc/group", "root:x:0:\nwww-data:x:33:\npagewell:x:998:\n")
            .file("/usr/sbin/mariadbd", "")
            .file("/etc/mysql/my.cnf", "[client]\nsocket = x\n!includedir /etc/mysql/mariadb.conf.d/\n")
            .file("/etc/mysql/mariadb.conf.d/50-server.cnf", "[mysqld]\nbind-address = 127.0.0.1\n")
            .socket("/run/php/php8.2-fpm.sock")
    }

    /// MariaDB with a change stream that can be followed, and the account's password.
    pub fn with_followed_database(self) -> Tree {
        self.file(
            "/etc/mysql/mariadb.conf.d/60-pagewell.cnf",
            "[mariadb]\nlog-bin\nserver_id = 1\nbinlog_format=row\n",
        )
        .file("/etc/pagewell/database-password", "secret\n")
    }

    /// nginx with one site on port 443, and the redirect on port 80.
    pub fn with_nginx(self, root: &str, names: &str) -> Tree {
        let site = format!(
            "server {{ listen 80; server_name {names}; return 301 https://$host$request_uri; }}\n\
             server {{\n  listen 443 ssl; server_name {names};\n  root {root}; # the site\n\
             ssl_certificate /etc/ssl/site.pem; ssl_certificate_key /etc/ssl/site.key;\n\
             location ~* /uploads/.*\\.php$ {{ deny all; }}\n\
             location ~ \\.php$ {{ include snippets/fastcgi-php.conf; fastcgi_pass unix:/run/php/php8.2-fpm.sock; }}\n}}\n"
        );
        self.file(
            "/etc/nginx/nginx.conf",
            "events { } http { include /etc/nginx/sites-enabled/*; }",
        )
        .file("/etc/nginx/sites-enabled/site", &site)
        .file(
            "/etc/nginx/sites-enabled/other",
            "server { listen 80; root /var/www/other; server_name other.example; }",
        )
        .port(80, "nginx", 11)
        .port(443, "nginx", 12)
    }

    /// A program that listens on a port.
    pub fn port(self, port: u16, program: &str, inode: u32) -> Tree {
        let path = self.real("/proc/net/tcp");
        let mut table = fs::read_to_string(path)
            .unwrap_or_else(|_| "  sl  local_address rem_address st\n".into());
        table.push_str(&format!(
            " 0: 00000000:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 {inode} 1\n"
        ));
        let pid = 4_000 + inode;
        let tree = self
            .file("/proc/net/tcp", &table)
            .file(&format!("/proc/{pid}/comm"), &format!("{program}\n"));
        fs::create_dir_all(tree.real(&format!("/proc/{pid}/fd"))).expect("the tree of the test");
        tree.link(&format!("/proc/{pid}/fd/7"), &format!("socket:[{inode}]"))
    }

    pub fn wordpress(self) -> Tree {
        let config = "<?php\ndefine( 'DB_NAME', 'blog' );\ndefine( 'DB_USER', 'blog' );\n\
             define( 'DB_PASSWORD', 'very-secret' );\ndefine( 'DB_HOST', 'localhost' );\n\
             // $table_prefix = 'old_';\n$table_prefix = 'wp_';\nrequire_once ABSPATH . 'wp-settings.php';\n";
        self.file("/var/www/blog/wp-includes/version.php", "<?php\n$wp_version = '6.8.1';\n")
            .file("/var/www/blog/index.php", "<?php require 'wp-blog-header.php';")
            .file("/var/www/blog/wp-config.php", config)
    }

    /// A minimal site of this kind, with its directory.
    pub fn site(self, kind: SiteKind) -> (Tree, &'static str) {
        match kind {
            SiteKind::WordPress => (self.wordpress(), "/var/www/blog"),
            SiteKind::MediaWiki => (
                self.file("/var/www/wiki/includes/WebStart.php", "")
                    .file("/var/www/wiki/index.php", "")
                    .file("/var/www/wiki/includes/Defines.php", "<?php define( 'MW_VERSION', '1.39.7' );")
                    .file(
                        "/var/www/wiki/LocalSettings.php",
                        "<?php\n$wgServer = \"https://wiki.example\";\n$wgDBtype = \"mysql\";\n$wgDBserver = \"localhost\";\n\
                         $wgDBname = \"wiki\";\n$wgDBuser = \"wiki\";\n$wgDBpassword = \"very-secret\";\n$wgDBprefix = \"mw_\";\n",
                    ),
                "/var/www/wiki",
            ),
            SiteKind::Laravel => (
                self.file("/var/www/app/artisan", "").file("/var/www/app/public/index.php", "").file(
                    "/var/www/app/.env",
                    "APP_URL=https://app.example\nDB_CONNECTION=mysql\nDB_HOST=127.0.0.1\nDB_PORT=3306\n\
                     DB_DATABASE=app\nDB_USERNAME=app\nDB_PASSWORD=very-secret\n",
                ),
                "/var/www/app",
            ),
            SiteKind::Symfony => (
                self.file("/var/www/app/config/bundles.php", "").file("/var/www/app/public/index.php", "").file(
                    "/var/www/app/.env",
                    "DATABASE_URL=\"mysql://app:very-secret@127.0.0.1:3306/app?serverVersion=8\"\n",
                ),
                "/var/www/app",
            ),
            SiteKind::Drupal => (
                self.file("/var/www/drupal/web/core/lib/Drupal.php", "<?php class Drupal { const VERSION = '10.3.1'; }")
                    .file("/var/www/drupal/web/index.php", "")
                    .file(
                        "/var/www/drupal/web/sites/default/settings.php",
                        "<?php /* $databases = []; */\n$databases['default']['default'] = array (\n'database' => 'drupal',\n\
                         'username' => 'drupal', 'password' => 'very-secret', 'prefix' => '', 'host' => 'localhost',\n\
                         'driver' => 'mysql');\n",
                    ),
                "/var/www/drupal",
            ),
            SiteKind::Magento => (
                self.file("/var/www/shop/bin/magento", "").file("/var/www/shop/pub/index.php", "").file(
                    "/var/www/shop/app/etc/env.php",
                    "<?php return ['db' => ['table_prefix' => '', 'connection' => ['default' => ['host' => 'localhost', \
                     'dbname' => 'shop', 'username' => 'shop', 'password' => 'very-secret']]]];",
                ),
                "/var/www/shop",
            ),
            SiteKind::Php => (self.file("/var/www/site/index.php", "<?php echo 1;"), "/var/www/site"),
        }
    }

    pub fn file(self, path: &str, text: &str) -> Tree {
        let real = self.real(path);
        fs::create_dir_all(real.parent().expect("the tree of the test"))
            .expect("the tree of the test");
        fs::write(real, text).expect("the tree of the test");
        self
    }

    pub fn link(self, path: &str, target: &str) -> Tree {
        let real = self.real(path);
        fs::create_dir_all(real.parent().expect("the tree of the test"))
            .expect("the tree of the test");
        symlink(target, real).expect("the tree of the test");
        self
    }

    pub fn socket(mut self, path: &str) -> Tree {
        let real = self.real(path);
        fs::create_dir_all(real.parent().expect("the tree of the test"))
            .expect("the tree of the test");
        self.sockets.push(UnixListener::bind(real).expect("the tree of the test"));
        self
    }

    pub fn real(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The arguments of `pagewell init --yes DIR` on this machine.
    pub fn args(&self, dir: &str) -> InitArgs {
        InitArgs {
            dir: Some(dir.into()),
            application: None,
            name: None,
            yes: true,
            dry_run: false,
            output: None,
            verify: false,
            url: None,
            ca: None,
            machine: self.root.clone(),
        }
    }

    /// Runs it, and returns what it said and what it wrote.
    pub fn init(&self, dir: &str) -> (String, String) {
        self.init_with(&self.args(dir))
    }

    pub fn init_with(&self, args: &InitArgs) -> (String, String) {
        let said = init::run(args, None).expect("the tree of the test");
        let output = args.output.clone().unwrap_or_else(|| "/etc/pagewell/pagewell.toml".into());
        let text = fs::read_to_string(self.real(&output.display().to_string()))
            .expect("the tree of the test");
        (said, text)
    }

    /// Checks that a configuration is valid. Files that it names are those of this machine.
    pub fn check(&self, text: &str) -> config::Config {
        let secret = self.real("/etc/pagewell/database-password").display().to_string();
        let text = text.replace("/etc/pagewell/database-password", &secret);
        let text = text.replace("root = \"", &format!("root = \"{}", self.root.display()));
        let file = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        config::resolve(&file).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

/// The lines of a configuration that are neither empty nor comments.
pub fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// The names in a directory, for a test that nothing half-written is left.
pub fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .expect("the tree of the test")
        .map(|entry| {
            entry
                .expect("the tree of the test")
                .file_name()
                .into_string()
                .expect("the tree of the test")
        })
        .collect();
    names.sort();
    names
}
