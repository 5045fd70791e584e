//! The private machine on which a guide is followed: a directory with `etc`, `var`, `run` and `opt`, a php-fpm,
//! and the services that the guide starts. Everything that differs from the guide's machine is in this file and
//! in `machine.sh`:
//!
//! | In the guide | Here |
//! |---|---|
//! | a path below `/etc`, `/var`, `/run`, `/opt`, `/root`, `/usr/local` | the same below the private directory (`mapped`) |
//! | port 80, 443, 8000, 8080, 8081, 8443 of this machine, in a file | a reserved port (`mapped`) |
//! | the same in a URL for `curl` | unchanged: `curl` connects to the reserved port |
//! | `systemctl` | the real server, started and stopped by this test; a reload is a restart |
//! | `sudo`, and the users of the guide | as root the real users, but `nobody` for `pagewell`; otherwise this user |
//! | `apt install NAMES` | the packages are installed or known; `machine.sh` has the other programs |

use acceptance::{BOUND, binary};
use harness::{
    Deadline, MariaDb, MariaDbOptions, Pagewell, PhpFpm, PoolOptions, Port, PrivateDir, Process,
    Wait, am_root,
};
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The bound of a block of commands, which may install an application.
const BLOCK_BOUND: Duration = Duration::from_secs(300);
/// The ports that the guides use.
const PORTS: [u16; 6] = [80, 443, 8000, 8080, 8081, 8443];
/// The directories of the guides that are private here.
const PREFIXES: [&str; 6] = ["/etc/", "/var/", "/run/", "/opt/", "/root/", "/usr/local/"];
/// The programs that are not, or not directly, those of this machine.
const PROGRAMS: [&str; 16] = [
    "sudo",
    "apt",
    "apt-get",
    "systemctl",
    "adduser",
    "id",
    "pagewell",
    "nginx",
    "mariadb",
    "curl",
    "chown",
    "chgrp",
    "install",
    "php",
    "setfacl",
    "tar",
];
/// The configuration of nginx around the sites.
const NGINX: &str = "daemon off;\nerror_log stderr warn;\nworker_processes 1;\nevents {}\nhttp {\naccess_log off;\n";

/// A private machine.
pub struct Machine {
    services: BTreeMap<&'static str, Service>,
    php: PhpFpm,
    database: Option<MariaDb>,
    ports: BTreeMap<u16, Port>,
    dir: PrivateDir,
}

/// A service that runs.
enum Service {
    Pagewell(Box<Pagewell>),
    Nginx { _process: Process },
}

/// A command that runs until the end of the test, or until it is dropped.
pub struct Foreground {
    _process: Process,
}

impl Machine {
    /// A machine with php-fpm and nginx (which is not started), and without a site. `prepended` is PHP code that
    /// runs before each script.
    pub fn new(prepended: &str) -> Machine {
        let dir = PrivateDir::temporary("g").expect("a directory");
        let ports = PORTS.map(|port| (port, Port::take().expect("a port")));
        let ports = BTreeMap::from(ports);
        let admin = ports[&8081].address().to_string();
        let prepend = dir.path().join("state/prepend.php").display().to_string();
        let options = PoolOptions {
            children: 4,
            env: vec![("PAGEWELL_ADMIN".into(), admin), ("PATH".into(), "/usr/bin:/bin".into())],
            ini: vec![
                ("auto_prepend_file".into(), prepend),
                // A change of a script takes effect at once, and not two seconds later.
                ("opcache.revalidate_freq".into(), "0".into()),
                ("opcache.revalidate_path".into(), "1".into()),
                ("opcache.validate_permission".into(), "1".into()),
                // No mail leaves this machine.
                ("sendmail_path".into(), "/bin/true".into()),
            ],
        };
        let php = PhpFpm::start(PrivateDir::temporary("gp").expect("a directory"), &options);
        let machine = Machine {
            services: BTreeMap::new(),
            php: php.expect("php-fpm starts"),
            database: None,
            ports,
            dir,
        };
        machine.lay_out();
        machine.write("/state/prepend.php", &format!("<?php {prepended}\n"));
        machine
    }

    fn lay_out(&self) {
        for name in [
            "bin",
            "state/temp",
            "state/logs",
            "etc/pagewell",
            "etc/nginx/sites-enabled",
            "etc/ssl",
            "etc/cron.d",
            "var/www",
            "var/lib",
            "run/php",
            "run/pagewell",
            "run/mysqld",
            "opt",
            "root",
            "usr/local/bin",
        ] {
            fs::create_dir_all(self.at("/").join(name)).expect("a directory");
        }
        let script = self.at("/bin/machine.sh");
        harness::write_script(&script, include_str!("machine.sh")).expect("written");
        for name in PROGRAMS {
            symlink("machine.sh", self.at("/bin").join(name)).expect("a link");
        }
        // The unit gives its runtime directory to the user.
        if am_root() {
            let nobody = harness::Account::named("nobody").expect("a user of every system");
            chown(self.at("/run/pagewell"), Some(nobody.uid), Some(nobody.gid)).expect("given");
        }
        // Debian names the socket by version, and the default version without one.
        for name in ["php8.2-fpm.sock", "php-fpm.sock"] {
            symlink(self.php.socket(), self.at("/run/php").join(name)).expect("a link");
        }
        symlink(repository(), self.at("/opt/pagewell")).expect("a link");
        // The package adds the user pagewell to this group.
        fs::write(self.at("/state/groups"), "www-data\n").expect("written");
        let temp = self.at("/state/temp");
        let mut nginx = if am_root() { "user www-data;\n".to_owned() } else { String::new() };
        nginx += &format!("pid {};\n{NGINX}", self.at("/state/nginx.pid").display());
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            nginx += &format!("{kind}_temp_path {}/{kind};\n", temp.display());
        }
        nginx += &format!("include {}/*;\n}}\n", self.at("/etc/nginx/sites-enabled").display());
        fs::write(self.at("/etc/nginx/nginx.conf"), nginx).expect("written");
        fs::write(self.at("/etc/nginx/fastcgi_params"), FASTCGI_PARAMS).expect("written");
        fs::write(self.at("/state/ca.pem"), "").expect("written");
    }

    /// A file of the machine, by its path on the guide's machine.
    pub fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    /// A text of the guide with the paths and ports of this machine.
    pub fn mapped(&self, text: &str) -> String {
        let mut text = self.with_paths(text);
        for (port, reserved) in self.ports.iter().rev() {
            let here = reserved.address();
            for end in ["\"", "'", ";", "\n", "/", " "] {
                text = text.replace(&format!("127.0.0.1:{port}{end}"), &format!("{here}{end}"));
                text = text.replace(&format!("\":{port}{end}"), &format!("\"{here}{end}"));
            }
            text = text.replace(&format!("listen {port}"), &format!("listen {here}"));
        }
        text
    }

    fn with_paths(&self, text: &str) -> String {
        let mut mapped = String::with_capacity(text.len());
        let mut before = ' ';
        for (at, c) in text.char_indices() {
            let is_start = !before.is_ascii_alphanumeric() && !"._-*}/%".contains(before);
            if is_start && PREFIXES.iter().any(|prefix| text[at..].starts_with(prefix)) {
                mapped.push_str(&self.dir.path().display().to_string());
            }
            mapped.push(c);
            before = c;
        }
        mapped
    }

    /// Writes a block to the file that the guide names.
    pub fn write(&self, path: &str, block: &str) {
        let file = self.at(path);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, self.mapped(block)).expect("written");
    }

    /// Appends a block to the file that the guide names.
    pub fn append(&self, path: &str, block: &str) {
        let before = fs::read_to_string(self.at(path)).expect("it is there");
        fs::write(self.at(path), before + "\n" + &self.mapped(block)).expect("written");
    }

    /// Runs a block of commands, and returns their output. The directory is the checkout.
    pub fn run(&mut self, block: &str) -> String {
        self.run_in(&repository(), block)
    }

    /// Runs a block of commands in a directory. Each command must succeed.
    pub fn run_in(&mut self, directory: &Path, block: &str) -> String {
        let log = self.at("/state/output");
        let _ = fs::remove_file(&log);
        let mut process = self.spawn(directory, &format!("set -e\n{block}"), &log);
        let deadline = Deadline::after(BLOCK_BOUND);
        let status = loop {
            if let Wait::Ended(status) = process.wait(Duration::from_millis(5)) {
                break status;
            }
            assert!(!deadline.passed(), "not within {BLOCK_BOUND:?}:\n{block}");
            self.serve_systemctl();
        };
        let output = fs::read_to_string(&log).expect("text");
        assert!(status.success(), "{status}:\n{block}\n{output}\n{}", self.logs());
        output
    }

    /// Starts a command that does not end, and waits until Pagewell answers on port 8080.
    pub fn start(&self, block: &str) -> Foreground {
        let log = self.at("/state/foreground");
        let mut process = self.spawn(&repository(), block, &log);
        let address = self.ports[&8080].address();
        let ready = process.wait_ready(BOUND, || TcpStream::connect(address).is_ok());
        ready.unwrap_or_else(|error| panic!("{block}: {error}"));
        Foreground { _process: process }
    }

    fn spawn(&self, directory: &Path, commands: &str, log: &Path) -> Process {
        let path = std::env::var("PATH").unwrap_or_default();
        let outside = format!("{path}:/usr/sbin:/sbin");
        let connect = self.ports.iter().map(|(port, reserved)| {
            let at = reserved.address();
            format!("--connect-to :{port}:{at}")
        });
        let address = |port| self.ports[&port].address().to_string();
        let mut command = Command::new("bash");
        command.arg("-c").arg(self.with_paths(commands)).current_dir(directory);
        command.env("PATH", format!("{}:{outside}", self.at("/bin").display()));
        command.env("OUTSIDE", outside).env("MACHINE", self.dir.path());
        command.env("CONNECT", connect.collect::<Vec<_>>().join(" "));
        command.env("PAGEWELL_ADMIN", address(8081)).env("VISITORS", address(8080));
        command.env("PAGEWELL_BIN", binary()).env("HOME", self.at("/root"));
        // Composer looks for newer versions of packages otherwise, and refuses to run as root.
        command.env("COMPOSER_DISABLE_NETWORK", "1").env("COMPOSER_ALLOW_SUPERUSER", "1");
        Process::spawn("bash", &mut command, log).expect("bash runs")
    }

    /// Carries out a call of `systemctl`, if there is one.
    fn serve_systemctl(&mut self) {
        let request = self.at("/state/systemctl");
        let Ok(call) = fs::read_to_string(&request) else { return };
        fs::remove_file(&request).expect("removed");
        let status = match self.systemctl(call.trim()) {
            Ok(()) => 0,
            Err(why) => {
                fs::write(self.at("/state/systemctl.error"), format!("{call}{why}"))
                    .expect("written");
                1
            }
        };
        fs::write(self.at("/state/status"), format!("{status}\n")).expect("written");
        fs::rename(self.at("/state/status"), self.at("/state/systemctl.done")).expect("renamed");
    }

    fn systemctl(&mut self, call: &str) -> Result<(), String> {
        let words: Vec<&str> = call.split(' ').filter(|word| *word != "--now").collect();
        let [action, service] = words[..] else { return Err("one action and one service".into()) };
        let service = match service {
            "pagewell" => "pagewell",
            "nginx" => "nginx",
            "php8.2-fpm" if action == "reload" => {
                self.php.stop();
                return self.php.start_again().map_err(|error| error.to_string());
            }
            _ => return Err("no such service".into()),
        };
        let was_running = self.services.remove(service).is_some();
        match action {
            "enable" | "start" | "restart" => self.start_service(service),
            "reload" | "try-restart" if was_running => self.start_service(service),
            "try-restart" | "disable" | "stop" => Ok(()),
            _ => Err("what is that?".into()),
        }
    }

    fn start_service(&mut self, service: &'static str) -> Result<(), String> {
        let started = match service {
            "pagewell" => {
                let unit =
                    "exec sudo -u pagewell pagewell serve --config /etc/pagewell/pagewell.toml";
                self.pagewell(unit).map(Service::Pagewell)
            }
            _ => self.nginx().map(|process| Service::Nginx { _process: process }),
        };
        self.services.insert(service, started?);
        Ok(())
    }

    fn pagewell(&self, unit: &str) -> Result<Box<Pagewell>, String> {
        let mut command = Command::new("bash");
        command.arg("-c").arg(self.with_paths(unit)).current_dir("/");
        command.env("PATH", format!("{}:/usr/bin:/bin:/usr/sbin", self.at("/bin").display()));
        command.env("OUTSIDE", "/usr/bin:/bin").env("MACHINE", self.dir.path());
        command.env("PAGEWELL_BIN", binary());
        command.env("PAGEWELL_ADMIN", self.ports[&8081].address().to_string());
        let dir = PrivateDir::temporary("gs").expect("a directory");
        let started = Pagewell::start_command(dir, &mut command);
        started.map(Box::new).map_err(|error| error.to_string())
    }

    fn nginx(&self) -> Result<Process, String> {
        let program = harness::program(&["nginx"]).map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(["-e", "stderr", "-p"]).arg(self.at("/state")).arg("-c");
        command.arg(self.at("/etc/nginx/nginx.conf"));
        let log = self.at("/state/nginx.log");
        let mut process =
            Process::spawn("nginx", &mut command, &log).map_err(|error| error.to_string())?;
        let pid = self.at("/state/nginx.pid");
        let address = self.nginx_address();
        let ready =
            process.wait_ready(BOUND, || pid.exists() && TcpStream::connect(address).is_ok());
        ready.map_err(|error| error.to_string())?;
        Ok(process)
    }

    /// The first address of nginx's sites.
    fn nginx_address(&self) -> std::net::SocketAddr {
        let sites = fs::read_dir(self.at("/etc/nginx/sites-enabled")).expect("sites").flatten();
        let text: String = sites.map(|one| fs::read_to_string(one.path()).expect("text")).collect();
        let listen = text.split("listen ").nth(1).expect("a site that listens");
        let address = listen.split([';', ' ']).next().unwrap_or_default();
        address.parse().unwrap_or_else(|_| panic!("listen {address}"))
    }

    /// Starts MariaDB with a binary log, at the socket of the guide's machine.
    pub fn start_mariadb(&mut self) {
        let dir = PrivateDir::temporary("gd").expect("a directory");
        let database =
            MariaDb::start_with(dir, MariaDbOptions::followed(&[])).expect("MariaDB starts");
        symlink(database.socket(), self.at("/run/mysqld/mysqld.sock")).expect("a link");
        self.database = Some(database);
    }

    /// The database that was started.
    pub fn mariadb(&self) -> &MariaDb {
        self.database.as_ref().expect("it was started")
    }

    /// Makes a certificate and its key for a host, which `curl` trusts.
    pub fn certificate(&self, host: &str, certificate: &str, key: &str) {
        let made = rcgen::generate_simple_self_signed([host.to_owned()]).expect("a certificate");
        fs::write(self.at(certificate), made.cert.pem()).expect("written");
        fs::write(self.at(key), made.signing_key.serialize_pem()).expect("written");
        fs::set_permissions(self.at(key), fs::Permissions::from_mode(0o600)).expect("set");
        fs::write(self.at("/state/ca.pem"), made.cert.pem()).expect("written");
    }

    /// The ends of all logs, for a message.
    pub fn logs(&self) -> String {
        let text = |path: &str| fs::read_to_string(self.at(path)).unwrap_or_default();
        let mut all = text("/state/systemctl.error") + &text("/state/nginx.log");
        all += &(text("/state/foreground") + &self.php.log());
        if let Some(Service::Pagewell(pagewell)) = self.services.get("pagewell") {
            all += &pagewell.log();
        }
        all
    }
}

/// The root of the checkout.
pub fn repository() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    path.canonicalize().expect("a checkout")
}

/// The part of Debian's `fastcgi_params` that PHP needs.
const FASTCGI_PARAMS: &str = "fastcgi_param QUERY_STRING $query_string;\nfastcgi_param REQUEST_METHOD $request_method;\n\
    fastcgi_param CONTENT_TYPE $content_type;\nfastcgi_param CONTENT_LENGTH $content_length;\n\
    fastcgi_param REQUEST_URI $request_uri;\nfastcgi_param SCRIPT_NAME $fastcgi_script_name;\n\
    fastcgi_param SERVER_PROTOCOL $server_protocol;\nfastcgi_param REMOTE_ADDR $remote_addr;\n\
    fastcgi_param SERVER_NAME $server_name;\nfastcgi_param SERVER_PORT $server_port;\n";
