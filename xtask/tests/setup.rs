//! `scripts/setup` on machines that lack things: what it says, and with which status it ends.
//!
//! The machine is a directory of stand-ins that is the script's whole path. Nothing can really be
//! installed: the stand-in for sudo runs nothing but the stand-in for apt, by its full path, and only
//! notes all else; the user is never root, so that nothing goes round sudo.

use harness::PrivateDir;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The programs that the script itself runs.
const TOOLS: [&str; 17] = [
    "bash", "sh", "env", "dirname", "sed", "sort", "paste", "grep", "cut", "head", "cat", "awk",
    "tee", "rm", "chmod", "true", "sleep",
];
const FOUND: &str = "exit 0";
const RUST: &str = "echo 'cargo 99.1.0 (0123456 2030-01-01)'";

struct Machine {
    dir: PrivateDir,
}

impl Machine {
    /// A machine with a user who is not root, a compiler and Rust, and nothing else.
    fn new() -> Machine {
        let machine = Machine { dir: PrivateDir::temporary("setup").expect("can be made") };
        for tool in TOOLS {
            let real = harness::program(&[tool]).expect("a tool of every system");
            symlink(real, machine.dir.path().join(tool)).expect("can be linked");
        }
        machine.has("id", "echo 1000");
        machine.has("cc", FOUND);
        machine.has("cargo", RUST);
        machine
    }

    fn has(&self, program: &str, does: &str) {
        let path = self.dir.path().join(program);
        harness::write_script(&path, &format!("#!/bin/sh\n{does}\n")).expect("can be written");
    }

    /// Everything that the demo needs.
    fn has_demo_parts(&self) {
        for program in ["curl", "php-fpm9.1", "mariadbd", "mariadb-install-db", "mariadb"] {
            self.has(program, FOUND);
        }
        self.has("php", "echo '[PHP Modules]'; echo PDO; echo pdo_mysql");
    }

    /// A sudo that asks nothing, and an apt-get that notes what it is called with.
    fn has_apt(&self, install: &str, update: &str) {
        let (place, log) = (self.dir.path().display(), self.dir.path().join("apt.log"));
        let sudo = format!(
            "while [ $# -gt 0 ]; do case $1 in\n\
             -n|env|*=*) shift ;;\n\
             true) exit 0 ;;\n\
             apt-get) shift; exec {place}/apt-get \"$@\" ;;\n\
             tee) exec cat >/dev/null ;;\n\
             *) echo \"$*\" >>{log}; exit 0 ;;\n\
             esac; done",
            log = log.display()
        );
        self.has("sudo", &sudo);
        self.has(
            "apt-get",
            &format!(
                "echo \"$*\" >>{}\ncase \"$*\" in *update*) {update} ;; *) {install} ;; esac",
                log.display()
            ),
        );
    }

    fn apt_log(&self) -> String {
        fs::read_to_string(self.dir.path().join("apt.log")).unwrap_or_default()
    }

    fn setup(&self, args: &[&str]) -> (i32, String) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/setup");
        let mut command = Command::new(self.dir.path().join("bash"));
        command.arg(script).args(args).env_clear().env("SETUP_PATH", self.dir.path());
        command.env("SETUP_SHARE", self.dir.path());
        command.env("CARGO_TARGET_DIR", self.dir.path().join("target"));
        command.env("PATH", self.dir.path());
        let Output { status, stdout, stderr } = command.output().expect("bash runs");
        let printed = [stdout, stderr].concat();
        (status.code().unwrap_or(-1), String::from_utf8_lossy(&printed).into_owned())
    }
}

#[test]
fn a_machine_that_has_everything_is_left_alone() {
    let machine = Machine::new();
    machine.has_demo_parts();
    assert_eq!(machine.setup(&["demo"]), (0, String::new()));
    assert_eq!(machine.setup(&["--list", "demo"]), (0, String::new()));
}

#[test]
fn missing_programs_are_listed_by_package() {
    let machine = Machine::new();
    let all = "curl mariadb-client mariadb-server php-cli php-fpm php-mysql\n";
    assert_eq!(machine.setup(&["--list", "demo"]), (1, all.to_owned()));
    let package = (1, "binutils dpkg-dev\n".to_owned());
    assert_eq!(machine.setup(&["--list", "package"]), package);
    let dist = (1, "binutils dpkg-dev minisign python3 python3-venv\n".to_owned());
    assert_eq!(machine.setup(&["--list", "dist"]), dist);
    machine.has("dpkg-shlibdeps", FOUND);
    machine.has("objcopy", FOUND);
    machine.has_demo_parts();
    let wordpress = "wordpress wordpress-theme-twentytwentyone wordpress-theme-twentytwentythree";
    let rest = format!(
        "apache2-bin chromium chromium-driver composer fcgiwrap libnginx-mod-stream mediawiki memcached minisign nghttp2-client nginx-light openssl pebble php php-apcu php-mbstring \
         php-memcache php-memcached php-pgsql php-sqlite3 php-xml phpunit postgresql python3 python3-prometheus-client python3-venv python3-yaml redis-server \
         systemd valgrind {wordpress}\n"
    );
    assert_eq!(machine.setup(&["--list", "test"]), (1, rest));
    machine.has("nginx", "echo 'configure arguments: --with-stream --with-stream_ssl_module' >&2");
    machine.has("h2load", FOUND);
    machine.has("chromium", FOUND);
    let rest = format!(
        "apache2-bin chromium-driver composer fcgiwrap mediawiki memcached minisign openssl pebble php php-apcu php-mbstring php-memcache php-memcached php-pgsql php-sqlite3 php-xml phpunit \
         postgresql python3 python3-prometheus-client python3-venv python3-yaml redis-server systemd valgrind {wordpress}\n"
    );
    assert_eq!(machine.setup(&["--list", "test"]), (1, rest));
    // Its libraries are asked for with `php -r`.
    machine.has("chromedriver", FOUND);
    machine.has("php", "[ \"$1\" != -r ] && echo pdo_mysql && echo mbstring && echo dom");
    let rest = format!(
        "apache2-bin composer fcgiwrap mediawiki memcached minisign openssl pebble php php-apcu php-doctrine-dbal php-doctrine-orm php-laravel-framework php-memcache php-memcached \
         php-nyholm-psr7 php-pgsql php-psr-http-client php-sqlite3 php-symfony-dependency-injection php-symfony-expression-language \
         php-symfony-framework-bundle php-symfony-http-kernel php-symfony-messenger php-symfony-security-bundle \
         php-symfony-twig-bundle php-symfony-web-profiler-bundle php-symfony-yaml php-twig phpunit postgresql \
         python3 python3-prometheus-client python3-venv python3-yaml redis-server \
         systemd valgrind {wordpress}\n"
    );
    assert_eq!(machine.setup(&["--list", "test"]), (1, rest));
    machine.has("php", FOUND);
    assert_eq!(machine.setup(&["--list", "demo"]), (1, "php-mysql\n".to_owned()));
}

#[test]
fn benchmarks_need_other_caches_to_compare_with() {
    let machine = Machine::new();
    machine.has_demo_parts();
    let all = "apache2 fcgiwrap h2o haproxy memcached nghttp2-client nginx-light openssl trafficserver \
               valgrind varnish varnish-modules\n";
    assert_eq!(machine.setup(&["--list", "bench"]), (1, all.to_owned()));
    machine.has("nginx", FOUND);
    machine.has("varnishd", FOUND);
    for program in ["apache2", "fcgiwrap", "h2o", "h2load", "haproxy", "memcached", "openssl"] {
        machine.has(program, FOUND);
    }
    machine.has("traffic_server", FOUND);
    machine.has("valgrind", FOUND);
    let modules = machine.dir.path().join("varnish/vmods");
    fs::create_dir_all(&modules).expect("can be made");
    assert_eq!(machine.setup(&["--list", "bench"]), (1, "varnish-modules\n".to_owned()));
    fs::write(modules.join("libvmod_xkey.so"), "").expect("can be written");
    assert_eq!(machine.setup(&["--list", "bench"]), (0, String::new()));
}

#[test]
fn a_rival_that_no_package_has_is_done_without() {
    let machine = Machine::new();
    machine.has_demo_parts();
    machine.has_apt(FOUND, FOUND);
    machine.has("apt-cache", "[ \"$2\" != h2o ]");
    let (status, printed) = machine.setup(&["bench"]);
    assert_eq!(status, 0, "{printed}");
    assert!(printed.contains("no package h2o here"), "{printed}");
    let log = machine.apt_log();
    let installed = log.lines().find(|line| line.contains("install -y")).expect("it installed");
    assert!(installed.contains(" haproxy ") && !installed.contains(" h2o"), "{log}");
}

#[test]
fn without_rust_it_says_where_to_get_it() {
    let machine = Machine::new();
    machine.has_demo_parts();
    machine.has("cargo", "exit 127");
    let (status, printed) = machine.setup(&["demo"]);
    assert_eq!(status, 3, "{printed}");
    assert!(printed.contains("https://rustup.rs"), "{printed}");
    machine.has("cargo", "echo 'cargo 1.63.0'");
    let (status, printed) = machine.setup(&["demo"]);
    assert_eq!(status, 3, "{printed}");
    assert!(printed.contains("1.63.0 is too old"), "{printed}");
}

#[test]
fn a_user_without_permission_gets_the_command() {
    let machine = Machine::new();
    machine.has_apt(FOUND, FOUND);
    machine.has("sudo", "exit 1");
    let (status, printed) = machine.setup(&["demo"]);
    assert_eq!(status, 4, "{printed}");
    assert!(printed.contains("sudo apt-get update && sudo apt-get install -y"), "{printed}");
    assert!(printed.contains("mariadb-server"), "{printed}");
    assert_eq!(machine.apt_log(), "");
}

#[test]
fn another_system_gets_the_list_of_requirements() {
    let (status, printed) = Machine::new().setup(&["demo"]);
    assert_eq!(status, 4, "{printed}");
    assert!(printed.contains("no apt-get here") && printed.contains("php-fpm"), "{printed}");
}

#[test]
fn only_missing_packages_are_installed() {
    let machine = Machine::new();
    machine.has_demo_parts();
    machine.has("php", FOUND);
    machine.has_apt(FOUND, FOUND);
    let (status, printed) = machine.setup(&["demo"]);
    assert_eq!(status, 0, "{printed}");
    let log = machine.apt_log();
    let installed = log.lines().find(|line| line.contains("install")).expect("it installed");
    assert!(installed.ends_with("install -y --no-install-recommends php-mysql"), "{log}");
}

#[test]
fn cargo_deny_is_installed_for_the_lints_only_if_it_is_missing() {
    let machine = Machine::new();
    let log = machine.dir.path().join("cargo.log");
    let cargo = |installs: &str| {
        let log = log.display();
        let notes = format!("echo \"$*\" >>{log}; {installs}");
        format!("case $1 in --version) {RUST} ;; *) {notes} ;; esac")
    };
    machine.has("phpcs", FOUND);
    machine.has("cargo", &cargo("exit 101"));
    let (status, printed) = machine.setup(&["lint"]);
    assert_eq!(status, 5, "{printed}");
    assert!(printed.contains("cargo install --locked cargo-deny"), "{printed}");
    machine.has("cargo", &cargo(FOUND));
    assert_eq!(machine.setup(&["lint"]).0, 0);
    let installed = fs::read_to_string(&log).expect("it installed");
    let lines: Vec<&str> = installed.lines().collect();
    let [first, second] = lines[..] else { panic!("{installed}") };
    assert!(first.starts_with("install --locked cargo-deny@") && first == second, "{installed}");
    machine.has("cargo-deny", FOUND);
    assert_eq!(machine.setup(&["lint"]), (0, String::new()));
}

#[test]
fn the_tools_of_a_release_are_installed_beside_the_build_if_they_are_missing() {
    let machine = Machine::new();
    for program in ["dpkg-shlibdeps", "objcopy", "minisign"] {
        machine.has(program, FOUND);
    }
    let log = machine.dir.path().join("tools.log");
    let notes = format!("echo \"$0 $*\" >>{}", log.display());
    machine.has("cargo", &format!("case $1 in --version) {RUST} ;; *) {notes} ;; esac"));
    // A Python that makes a directory with a pip.
    let mkdir = harness::program(&["mkdir"]).expect("a tool of every system");
    let pip =
        format!("printf '%s\\n' '#!/bin/sh' '{notes}' >\"$3/bin/pip\"; chmod 755 \"$3/bin/pip\"");
    let venv = format!("{} -p \"$3/bin\"; {pip}", mkdir.display());
    machine.has("python3", &format!("case $2 in venv) {venv} ;; esac"));
    let (status, printed) = machine.setup(&["dist"]);
    assert_eq!(status, 0, "{printed}");
    let installed = fs::read_to_string(&log).expect("it installed");
    let place = machine.dir.path().join("target/dist-tools");
    let (into, lines) = (format!(" --root {} ", place.display()), installed.lines());
    let ends: Vec<_> = lines.filter_map(|line| line.rsplit_once(' ')).collect();
    let [book, linker, bill] = ends[..] else { panic!("{installed}") };
    assert!(
        book.1.starts_with("mdbook@") && format!("{} ", book.0).ends_with(&into),
        "{installed}"
    );
    assert!(linker.1.starts_with("ziglang==") && linker.0.contains("/bin/pip "), "{installed}");
    assert!(bill.1.starts_with("cargo-cyclonedx@"), "{installed}");
    assert!(format!("{} ", bill.0).ends_with(&into), "{installed}");
    for program in ["mdbook", "cargo-zigbuild", "cargo-cyclonedx"] {
        machine.has(&format!("target/dist-tools/bin/{program}"), FOUND);
    }
    assert_eq!(machine.setup(&["dist"]), (0, String::new()));
    assert_eq!(fs::read_to_string(&log).expect("text"), installed, "nothing more");
    // Without a network.
    fs::remove_file(place.join("bin/cargo-cyclonedx")).expect("removed");
    machine.has("cargo", &format!("case $1 in --version) {RUST} ;; *) exit 101 ;; esac"));
    let (status, printed) = machine.setup(&["dist"]);
    assert!(status == 5 && printed.contains("cargo install --locked cargo-cyclonedx"), "{printed}");
}

/// A download or a build of minutes is not silent, also on a terminal; and each tool has a version.
#[test]
fn tools_from_elsewhere_show_their_progress_and_have_versions() {
    let mut found = 0;
    for script in ["setup", "check-deployments"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(script);
        let text = fs::read_to_string(path).expect("a script").replace("\\\n", "");
        for line in text.lines().filter(|line| !line.contains("fail 5")) {
            let by_pip = line.contains("pip\" install") || line.contains("pip\" download");
            let by_cargo = line.contains(" cargo install ");
            let by_go = line.contains("go install ") && !by_cargo;
            found += usize::from(by_pip || by_go || by_cargo);
            assert!(!by_pip || line.contains("==") && !line.contains("--quiet"), "{line}");
            assert!(!by_go || line.contains("go install -v "), "{line}");
            assert!(!by_cargo || line.contains('@'), "{line}");
            assert!(!line.contains("@latest"), "{line}");
        }
    }
    assert_eq!(found, 10);
}

#[test]
fn new_services_are_not_left_enabled() {
    let machine = Machine::new();
    machine.has_apt(FOUND, FOUND);
    let log = machine.dir.path().join("apt.log");
    // A service is known once its package has been installed.
    machine.has(
        "systemctl",
        &format!(
            "case $1 in list-unit-files) echo cron.service enabled; \
             grep -q install {0} && echo mariadb.service enabled; true ;; esac",
            log.display()
        ),
    );
    let (status, printed) = machine.setup(&["demo"]);
    assert_eq!(status, 0, "{printed}");
    assert!(printed.contains("neither started nor enabled: mariadb.service"), "{printed}");
    assert!(machine.apt_log().contains("systemctl disable --quiet mariadb.service"));
    assert!(!machine.apt_log().contains("disable --quiet cron"));
}

#[test]
fn without_a_network_it_says_so() {
    let machine = Machine::new();
    machine.has_apt("exit 100", "exit 100");
    let (status, printed) = machine.setup(&["demo"]);
    assert_eq!(status, 5, "{printed}");
    assert!(printed.contains("Is there a network?"), "{printed}");
    // The lists are there, but apt fails.
    machine.has_apt("exit 100", FOUND);
    assert_eq!(machine.setup(&["demo"]).0, 6);
    // Another list cannot be had, but the packages can.
    machine.has_apt(FOUND, "exit 100");
    assert_eq!(machine.setup(&["demo"]).0, 0);
}

#[test]
fn wrong_usage_is_refused() {
    for args in [&[][..], &["everything"], &["demo", "test"], &["--list"]] {
        assert_eq!(Machine::new().setup(args).0, 2, "{args:?}");
    }
}

/// The lines on standard error, and the exit status, of `scripts/phase` with these arguments.
fn phase(args: &[&str]) -> (Option<i32>, Vec<String>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/phase");
    let mut command = Command::new(script);
    command.args(args).env_remove("PHASE_TABLE").env("PHASE", "../scripts/phase");
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), text.lines().map(str::to_owned).collect())
}

#[test]
fn a_phase_says_its_name_and_duration_and_keeps_the_exit_status() {
    let (status, lines) = phase(&["a name", "sh", "-c", "exit 7"]);
    assert_eq!(status, Some(7));
    assert_eq!(lines[0], "== a name");
    assert!(lines[1].starts_with("== a name failed after "), "{lines:?}");
    let (status, lines) = phase(&["a name", "true"]);
    assert_eq!(status, Some(0));
    assert!(lines[1].starts_with("== a name: ") && lines[1].ends_with(" s"), "{lines:?}");
    assert_eq!(phase(&["a name"]).0, Some(2));
}

#[test]
fn the_table_has_each_phase_also_after_a_failure() {
    let inner = "$PHASE one true && $PHASE two false";
    let (status, lines) = phase(&["--table", "all", "sh", "-c", inner]);
    assert_eq!(status, Some(1));
    let at = lines.iter().position(|line| line.starts_with("== all: the time of each phase"));
    let rows: Vec<&String> = lines[at.expect("a table") + 1..].iter().take(2).collect();
    assert!(rows[0].contains(" one ") && rows[0].ends_with(" s"), "{lines:?}");
    assert!(rows[1].contains(" two ") && rows[1].ends_with(", failed"), "{lines:?}");
}

/// Without a terminal, a command that prints nothing is not silent. It ends when the line has been read.
#[test]
fn a_silent_phase_says_that_it_still_runs() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/phase");
    let mut command = Command::new(script);
    command.args(["waiting", "cat"]).env_remove("PHASE_TABLE").env("PHASE_SECONDS", "0.05");
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let input = child.stdin.take().expect("a pipe");
    let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut lines = lines.map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("== waiting"));
    let line = lines.next().expect("a line");
    assert!(line.starts_with("== waiting: ") && line.ends_with(" s so far"), "{line}");
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

/// The exit status of `scripts/beside` with these arguments.
fn beside(args: &[&str]) -> Option<i32> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/beside");
    Command::new(script).args(args).output().expect("it runs").status.code()
}

#[test]
fn commands_run_beside_each_other_and_a_failure_may_end_the_others() {
    assert_eq!(beside(&["true", "--", "true"]), Some(0));
    assert_eq!(beside(&["true", "--", "sh", "-c", "exit 7"]), Some(7));
    assert_eq!(beside(&["--together", "true", "--", "true"]), Some(0));
    assert_eq!(beside(&["--together", "true"]), Some(2));
    // The endless command is ended by the failure of the other, whose status is returned.
    let endless = ["timeout", "--foreground", "60", "tail", "-f", "/dev/null"];
    let fails = ["sh", "-c", "exit 7"];
    let together =
        |one: &[&str], other: &[&str]| beside(&[&["--together"][..], one, &["--"], other].concat());
    assert_eq!(together(&endless, &fails), Some(7));
    assert_eq!(together(&fails, &endless), Some(7));
    let all = [&fails[..], &["--"], &endless].concat();
    assert_eq!(together(&endless, &all), Some(7));
    assert_eq!(together(&endless, &["sh", "-c", "kill -TERM $$"]), Some(143), "killed by another");
}
