//! Started as root, Pagewell binds its ports, reads its files, and continues as an unprivileged user: every
//! thread of it, and the php-fpm that it starts. Only root can test this; otherwise the tests report that they
//! were skipped.

use acceptance::{BOUND, Site, binary, client, counter, is_hit, until};
use harness::{Address, Client, Pagewell, PrivateDir, Signal, Wait, cpu};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

/// A user that exists on every Debian system.
const USER: &str = "www-data";

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("not run: only root can become somebody else");
    }
    is_root
}

/// The user id and the primary group id of a user.
fn numbers(user: &str) -> (u32, u32) {
    let all = fs::read_to_string("/etc/passwd").expect("it is there");
    let line = all.lines().find(|line| line.starts_with(&format!("{user}:"))).expect("a user");
    let mut fields = line.split(':').skip(2).map(|field| field.parse().expect("a number"));
    (fields.next().expect("his"), fields.next().expect("his group's"))
}

/// This line of every thread in a process: real, effective, saved and file-system id.
fn of_threads(pid: u32, line: &str) -> Vec<String> {
    let all = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let status = all.map(|one| fs::read_to_string(one.path().join("status")).unwrap_or_default());
    let value = |text: String| {
        let found = text.lines().find_map(|one| one.strip_prefix(line).map(str::trim));
        found.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    status.map(value).filter(|value| !value.is_empty()).collect()
}

/// A site that the user can read.
fn site() -> Site {
    let site =
        Site::new(&[("index.php", "<?php keep(); echo posix_geteuid();"), ("file.txt", "a file")]);
    let mode = fs::Permissions::from_mode(0o755);
    let top = site.root().parent().expect("above it").to_owned();
    fs::set_permissions(top, mode).expect("can be set");
    site
}

#[test]
fn every_thread_and_php_run_as_the_unprivileged_user() {
    if !is_root() {
        return;
    }
    let (uid, gid) = numbers(USER);
    let site = site();
    let (snapshots, log) = (site.at("snapshots"), site.at("access.log"));
    fs::create_dir(&snapshots).expect("a directory");
    let config = format!(
        "user = {USER:?}\n[snapshot]\ndirectory = {snapshots:?}\nunwatched = \"serve\"\n\
         [access_log]\nto = {log:?}\n"
    );
    let mut pagewell = site.serve(&config);
    let mut visitor = client(&pagewell);
    let page = visitor.get("/").expect("an answer");
    assert_eq!(page.text(), uid.to_string(), "a script of its php-fpm");
    until("it is stored", || is_hit(&visitor.get("/").expect("an answer")));
    let (users, groups) = (of_threads(pagewell.pid(), "Uid:"), of_threads(pagewell.pid(), "Gid:"));
    assert!(users.len() > 1, "{users:?}");
    assert!(users.iter().all(|four| *four == format!("{uid} {uid} {uid} {uid}")), "{users:?}");
    assert!(groups.iter().all(|four| *four == format!("{gid} {gid} {gid} {gid}")), "{groups:?}");
    let all = of_threads(pagewell.pid(), "Groups:");
    assert!(all.iter().all(|all| !all.split(' ').any(|group| group == "0")), "{all:?}");
    for line in ["CapEff:", "CapPrm:"] {
        let all = of_threads(pagewell.pid(), line);
        assert!(all.iter().all(|value| value.bytes().all(|digit| digit == b'0')), "{all:?}");
    }
    for event in ["privileges-dropped", "php-shares-user"] {
        assert!(pagewell.log().contains(event), "{}", pagewell.log());
    }
    // Files created by root now belong to the user, so that the process can continue to use them.
    let owner = |path: &Path| fs::metadata(path).expect("it is there").uid();
    assert_eq!((owner(&snapshots), owner(&log)), (uid, uid));
    fs::rename(&log, site.at("access.log.1")).expect("moved");
    let parent = site.root().parent().expect("above it").to_owned();
    chown(&parent, Some(uid), Some(gid)).expect("given");
    pagewell.signal(Signal::HUP);
    until("another file is written", || log.exists());
    pagewell.stop();
    assert!(matches!(pagewell.wait(BOUND), Wait::Ended(status) if status.success()));
    assert!(
        fs::read_dir(&snapshots)
            .expect("a list")
            .flatten()
            .any(|one| { one.file_name().to_string_lossy().ends_with(".snapshot") })
    );
    let again = site.serve(&config);
    until("the pages are put in", || counter(&again, "snapshot_pages") == 1);
}

#[test]
fn a_privileged_port_is_passed_to_the_successor() {
    if !is_root() {
        return;
    }
    let site = site();
    let path = site.at("listen.sock");
    // The old process runs as the user, whose word alone is no proof.
    let token = site.at("token");
    fs::write(&token, "a token of more than thirty-two characters").expect("written");
    let config = format!("user = {USER:?}\nadmin_token_file = {token:?}\n");
    let file = site.config(&config, "").display().to_string();
    let start = |more: &[&str], admin: &str| {
        let mut command = Command::new(binary());
        command.arg("serve").arg(site.root()).args(["--memory", "64M", "--config", &file]);
        command
            .args(["--listen", &format!("unix:{}", path.display()), "--admin", admin])
            .args(more);
        let dir = PrivateDir::temporary("dropped").expect("a directory can be made");
        Pagewell::start_command(dir, &mut command).expect("it starts")
    };
    let mut first = start(&[], "127.0.0.1:0");
    assert_eq!(fs::metadata(&path).expect("a socket").uid(), numbers(USER).0);
    let Address::Tcp(admin) = first.admin().clone() else { panic!("TCP") };
    // A process started by root takes over from one that was started by root.
    let mut next = start(&["--take-over"], &admin.to_string());
    assert!(matches!(first.wait(BOUND), Wait::Ended(status) if status.success()));
    let served = || {
        let mut visitor = Client::new(Address::Unix(path.clone())).within(BOUND);
        assert_eq!(visitor.get("/file.txt").expect("an answer").text(), "a file");
    };
    served();
    // The unprivileged process also replaces itself, on a signal.
    next.signal(Signal::USR2);
    // `wait` would also end the rest of its process group, so the end is observed without it.
    until("it has ended", || !cpu::is_running(next.pid()));
    served();
    let log = next.log();
    let pid = log.split("event=\"successor-started\" pid=").nth(1);
    let pid = pid.and_then(|rest| rest.split_whitespace().next()).and_then(|pid| pid.parse().ok());
    let pid: u32 = pid.unwrap_or_else(|| panic!("who is it? {log}"));
    let id = rustix::process::Pid::from_raw(pid as i32).expect("a process");
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
    until("its successor has ended", || !cpu::is_running(pid));
    assert!(matches!(next.wait(BOUND), Wait::Ended(status) if status.success()), "{}", next.log());
}

/// The output of a start that must fail.
fn fails(config: &str, more: &[&str]) -> String {
    let site = site();
    let file = site.config(config, "").display().to_string();
    let mut command = match more {
        [] => Command::new(binary()),
        [program, rest @ ..] => {
            let mut command = Command::new(program);
            command.args(rest).arg(binary());
            command
        }
    };
    command.arg("serve").arg(site.root()).args(["--config", &file, "--admin", "127.0.0.1:0"]);
    let said = command.args(["--listen", "127.0.0.1:0"]).output().expect("it runs");
    assert_eq!(said.status.code(), Some(1));
    String::from_utf8_lossy(&said.stderr).into_owned()
}

#[test]
fn unknown_users_and_users_without_access_to_the_site_are_refused() {
    for (config, part) in [
        ("user = \"nobody-of-this-name\"\n", "no such user"),
        ("user = \"www-data\"\ngroup = \"none-of-this-name\"\n", "no such group"),
        ("user = \"root\"\n", "that is root"),
        ("group = \"www-data\"\n", "needs user"),
        ("user = \"www-data\"\n[php]\nuser = \"nobody\"\n", "php.user"),
    ] {
        let said = fails(config, &[]);
        assert!(said.contains(part), "{config}: {said}");
    }
    if !is_root() {
        return;
    }
    let said = fails(
        "user = \"www-data\"\n",
        &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
    );
    assert!(said.contains("only root can become somebody else"), "{said}");
    let site = site();
    fs::set_permissions(site.root(), fs::Permissions::from_mode(0o700)).expect("can be set");
    let file = site.config("user = \"www-data\"\n", "").display().to_string();
    let mut command = Command::new(binary());
    command.arg("serve").arg(site.root()).args(["--config", &file, "--admin", "127.0.0.1:0"]);
    let said = command.args(["--listen", "127.0.0.1:0"]).output().expect("it runs");
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    let remedy =
        ": let this user enter the directories and read the files (a group, or chmod o+rx)";
    assert!(error.contains("cannot read it") && error.contains(remedy), "{error}");
}

#[test]
fn running_as_root_is_reported() {
    if !is_root() {
        return;
    }
    let site = site();
    let pagewell = site.serve("");
    assert!(pagewell.log().contains("runs-as-root"), "{}", pagewell.log());
    assert!(pagewell.log().contains("remedy="), "{}", pagewell.log());
}

/// The file, or the directory above it, is closed to the user.
#[test]
fn a_configuration_that_cannot_be_read_again_is_reported() {
    if !is_root() {
        return;
    }
    let (site, mode) = (site(), fs::Permissions::from_mode);
    let closed = site.at("closed");
    fs::create_dir(&closed).expect("a directory");
    let file = closed.join("pagewell.toml");
    let written = site.config(&format!("user = {USER:?}\n"), "");
    fs::rename(written, &file).expect("moved");
    let path = file.display().to_string();
    for (directory, of_file, is_reported) in
        [(0o755, 0o644, false), (0o755, 0o600, true), (0o700, 0o644, true)]
    {
        fs::set_permissions(&closed, mode(directory)).expect("can be set");
        fs::set_permissions(&file, mode(of_file)).expect("can be set");
        let log = site.serve_with_args(&["--config", &path]).log();
        let is_it = |line: &str| line.contains("not-read-again") && line.contains(&path);
        assert_eq!(log.lines().any(is_it), is_reported, "{directory:o} {of_file:o}: {log}");
    }
}

/// Tries what a hostile script would: to get the listening sockets, and to read the memory of Pagewell.
const HOSTILE: &str = r#"<?php
preg_match_all('#@(pagewell/take-over/\w+)#', file_get_contents('/proc/net/unix'), $names);
$answers = [];
foreach ($names[1] as $name) {
    // Those of other processes end at any time.
    $socket = @stream_socket_client("unix://\0$name");
    if ($socket === false) {
        continue;
    }
    foreach (['3', '2'] as $version) {
        @fwrite($socket, "pagewell take-over $version\n");
        $answers[] = @fgets($socket);
    }
}
$pid = (int) $_GET['pid'];
$files = ['mem', 'environ', 'maps', 'fd/0', 'auxv'];
$open = array_filter($files, fn ($file) => @fopen("/proc/$pid/$file", 'r') !== false);
echo json_encode([posix_geteuid(), implode($answers), array_values($open), @scandir("/proc/$pid/fd")]);
"#;

#[test]
fn a_script_gets_neither_the_sockets_nor_the_memory() {
    if !is_root() {
        return;
    }
    let site = site();
    site.file("hostile.php", HOSTILE);
    // The configuration that root has started, and the one that stays root.
    for (config, user) in [(format!("user = {USER:?}\n"), USER), (String::new(), "www-data")] {
        let pagewell = site.serve(&config);
        let answer = client(&pagewell).get(&format!("/hostile.php?pid={}", pagewell.pid()));
        let text = answer.expect("an answer").text();
        let found: serde_json::Value = serde_json::from_str(&text).expect(&text);
        assert_eq!(found[0], numbers(user).0, "{config}{text}");
        assert!(!text.contains("sockets") && !text.contains("welcome"), "{config}{text}");
        assert_eq!((&found[2], &found[3]), (&serde_json::json!([]), &serde_json::json!(false)));
    }
}

#[test]
fn a_process_of_the_same_user_takes_over_only_with_the_token() {
    if !is_root() {
        return;
    }
    let site = site();
    // A program that the user can run, wherever the tests' own one is.
    let program = site.at("pagewell");
    harness::copy_program(binary(), &program).expect("copied");
    let token = site.at("token");
    fs::write(&token, "a token of some length").expect("written");
    let (uid, gid) = numbers(USER);
    for file in [site.at("token"), site.root()] {
        chown(file, Some(uid), Some(gid)).expect("given");
    }
    let shown = |address: &Address| match address {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(_) => panic!("a TCP address"),
    };
    let command = |first: Option<&Pagewell>, more: &str| {
        let of = |address: fn(&Pagewell) -> &Address| {
            first.map_or("127.0.0.1:0".to_owned(), |first| shown(address(first)))
        };
        let (listen, admin) = (of(Pagewell::address), of(Pagewell::admin));
        let text = format!(
            "listen = {listen:?}\nadmin = {admin:?}\n{more}\nsite.origin = \"http://127.0.0.1:1\"\n"
        );
        let file = site.at("same-user.toml");
        fs::write(&file, text).expect("written");
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={uid}"), &format!("--regid={gid}"), "--clear-groups"]);
        command.arg(&program).args(["serve", "--memory", "64M", "--take-over", "--config"]);
        command.arg(file);
        command
    };
    let start = |mut command: Command| {
        let dir = PrivateDir::temporary("same-user").expect("a directory can be made");
        Pagewell::start_command(dir, &mut command).expect("it starts")
    };
    let with_token = format!("admin_token_file = {token:?}");
    let first = start(command(None, ""));
    for more in ["", &with_token] {
        let refused = command(Some(&first), more).output().expect("it runs");
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(error.contains("needs a secret") && error.contains("SIGUSR2"), "{error}");
    }
    until("it is said", || first.log().contains("take-over-refused"));
    drop(first);
    let mut first = start(command(None, &with_token));
    let wrong = site.at("wrong");
    fs::write(&wrong, "another token of some length").expect("written");
    for more in [String::new(), format!("admin_token_file = {wrong:?}")] {
        let refused = command(Some(&first), &more).output().expect("it runs");
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(error.contains("cannot be taken over"), "{error}");
    }
    let next = start(command(Some(&first), &with_token));
    assert!(matches!(first.wait(BOUND), Wait::Ended(status) if status.success()));
    until("the next says so", || next.log().contains("taken-over"));
}
