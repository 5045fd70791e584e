//! The container file and the manifests for Kubernetes, without a container: every file that they name exists, and
//! the commands that they run work. `scripts/package-test` builds the image, which takes too long for this test.

use acceptance::{BOUND, Site, binary, until};
use harness::{Address, Client, Pagewell, PhpFpm, PoolOptions, PrivateDir, Request, Signal, Wait};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn text(path: &str) -> String {
    fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The instructions with their arguments, with continued lines joined.
fn instructions() -> Vec<(String, String)> {
    let text = text("contrib/container/Containerfile").replace("\\\n", " ");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let (word, rest) = line.split_once(' ').unwrap_or_else(|| panic!("alone: {line}"));
            (word.to_owned(), rest.trim().to_owned())
        })
        .collect()
}

fn all<'a>(instructions: &'a [(String, String)], word: &'a str) -> impl Iterator<Item = &'a str> {
    instructions.iter().filter(move |(found, _)| found == word).map(|(_, rest)| rest.as_str())
}

/// The command of an instruction in list form.
fn list(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn the_container_files_exist_and_the_user_is_unprivileged() {
    let all_of_it = instructions();
    let known = [
        "FROM",
        "WORKDIR",
        "COPY",
        "ARG",
        "RUN",
        "ENV",
        "USER",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    ];
    for (word, _) in &all_of_it {
        assert!(known.contains(&word.as_str()), "{word}");
    }
    // As in the systemd unit.
    let unit = text("contrib/systemd/pagewell.service");
    let set: Vec<&str> = all(&all_of_it, "ENV").collect();
    let known: Vec<&str> =
        unit.lines().filter_map(|line| line.strip_prefix("Environment=")).collect();
    assert_eq!(set, known);
    let rust = text("Cargo.toml");
    let version = rust.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = version.expect("it is said").trim_matches('"');
    let from: Vec<&str> = all(&all_of_it, "FROM").collect();
    assert!(from[0].contains(&format!("rust:{version}")), "{from:?}: {version}");
    assert_eq!(from.len(), 2);
    // One release of Debian, because the program would otherwise not find its libraries.
    assert!(from.iter().all(|from| from.contains("bookworm")), "{from:?}");
    for copied in all(&all_of_it, "COPY") {
        match copied.strip_prefix("--from=build ") {
            Some(built) => assert_eq!(built, "/src/target/release/pagewell /usr/bin/pagewell"),
            None => {
                let source = copied.split(' ').next().expect("a source");
                assert!(top().join(source).exists(), "{source}");
            }
        }
    }
    let runs: Vec<&str> = all(&all_of_it, "RUN").collect();
    assert!(runs[0].contains("cargo build --locked --release -p pagewell --bin pagewell"));
    let user = all(&all_of_it, "USER").next().expect("somebody");
    let (uid, gid) = user.split_once(':').expect("both");
    assert!(uid.parse::<u32>().is_ok_and(|uid| uid > 999) && uid == gid, "{user}");
    assert!(runs[1].contains(&format!("--uid {uid}")) && runs[1].contains(&format!("--gid {gid}")));
    for volume in list(all(&all_of_it, "VOLUME").next().expect("some")) {
        assert!(runs[1].contains(&volume), "{volume} is made");
    }
    assert_eq!(all(&all_of_it, "STOPSIGNAL").collect::<Vec<_>>(), ["SIGTERM"]);
    let ignored = text(".dockerignore");
    assert!(ignored.lines().any(|line| line == "target"), "{ignored}");
}

/// The configuration of the image, with paths and addresses replaced for this test.
fn configuration(site: &Site, changed: &BTreeMap<&str, String>) -> PathBuf {
    let mut text = text("contrib/container/pagewell.toml");
    for (from, to) in changed {
        assert!(text.contains(from), "{from} is not in\n{text}");
        text = text.replace(from, to);
    }
    let path = site.at("container.toml");
    fs::write(&path, text).expect("written");
    path
}

fn run(command: &[String], admin: &str) -> Output {
    assert_eq!(command[0], "/usr/bin/pagewell");
    Command::new(binary()).args(&command[1..]).args(["--admin", admin]).output().expect("it runs")
}

#[test]
fn the_container_command_serves_and_reports_ready() {
    let all_of_it = instructions();
    let only = |word: &'static str| all(&all_of_it, word).next().expect("it is there");
    let entry = list(only("ENTRYPOINT"));
    assert_eq!(entry, ["/usr/bin/pagewell"]);
    let command = list(only("CMD"));
    assert_eq!(command, ["serve", "--config", "/etc/pagewell/pagewell.toml"]);
    let copied = all(&all_of_it, "COPY").any(|copied| copied.ends_with(command[2].as_str()));
    assert!(copied, "the configuration is in the image");
    let exposed = only("EXPOSE");
    let site = Site::new(&[("index.php", "<?php echo 'by php';"), ("file.txt", "a file")]);
    let dir = PrivateDir::temporary("fpm").expect("a directory can be made");
    let php = PhpFpm::start(dir, &PoolOptions::default()).expect("php-fpm starts");
    let listen = format!("listen = \":{exposed}\"");
    let changed = BTreeMap::from([
        (listen.as_str(), "listen = \"127.0.0.1:0\"".to_owned()),
        ("admin = \"127.0.0.1:8081\"", "admin = \"127.0.0.1:0\"".to_owned()),
        ("\"/var/www/html\"", format!("{:?}", site.root())),
        ("\"php:9000\"", format!("\"unix:{}\"", php.socket().display())),
        ("\"/var/lib/pagewell\"", format!("{:?}", site.at("snapshots"))),
    ]);
    // The image has this directory.
    std::fs::create_dir(site.at("snapshots")).expect("a directory can be made");
    let file = configuration(&site, &changed);
    let mut serve = Command::new(binary());
    serve.arg(&command[0]).arg(&command[1]).arg(&file);
    let dir = PrivateDir::temporary("container").expect("a directory can be made");
    let mut pagewell = Pagewell::start_command(dir, &mut serve).expect("it starts");
    assert_eq!(acceptance::client(&pagewell).get("/").expect("an answer").text(), "by php");
    let health = only("HEALTHCHECK");
    let health = list(health.split_once("CMD ").expect("a command").1);
    let Address::Tcp(admin) = pagewell.admin().clone() else { panic!("TCP") };
    until("it is ready", || run(&health, &admin.to_string()).status.success());
    pagewell.signal(Signal::TERM);
    assert!(matches!(pagewell.wait(BOUND), Wait::Ended(status) if status.success()));
    let said = run(&health, &admin.to_string());
    assert_eq!(said.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&said.stderr).contains("no Pagewell answers"));
}

/// The image's file alone, with everything else from the environment (docs/operating/containers.md). Another container
/// calls the control interface by the name of the service.
#[test]
fn the_environment_configures_the_image() {
    const TOKEN: &str = "a token of 16 or more";
    let site = Site::new(&[("index.php", "<?php echo 'by php';")]);
    let dir = PrivateDir::temporary("fpm").expect("a directory can be made");
    let php = PhpFpm::start(dir, &PoolOptions::default()).expect("php-fpm starts");
    let (state, token, log) = (site.at("state"), site.at("token"), site.at("access.log"));
    fs::create_dir(&state).expect("a directory can be made");
    fs::write(&token, TOKEN).expect("written");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("can be set");
    let changed = BTreeMap::from([("\"/var/lib/pagewell\"", format!("{state:?}"))]);
    let mut serve = Command::new(binary());
    serve.args(["serve", "--config"]).arg(configuration(&site, &changed));
    serve.env("PAGEWELL_PHP", format!("unix:{}", php.socket().display()));
    serve.env("PAGEWELL_ROOT", site.root()).env("PAGEWELL_MEMORY", "48M");
    serve.env("PAGEWELL_LISTEN", "127.0.0.1:0").env("PAGEWELL_ADMIN_LISTEN", "0.0.0.0:0");
    serve.env("PAGEWELL_TOKEN_FILE", &token).env("PAGEWELL_ACCESS_LOG", &log);
    serve.env("PAGEWELL_LOG", "error");
    let dir = PrivateDir::temporary("container").expect("a directory can be made");
    let pagewell = Pagewell::start_command(dir, &mut serve).expect("it starts");
    assert_eq!(acceptance::client(&pagewell).get("/").expect("an answer").text(), "by php");
    until("the access log is written", || {
        fs::read_to_string(&log).is_ok_and(|log| log.contains("GET"))
    });
    let metrics = |fields: &[(&str, &str)]| {
        let request = Request::get("/metrics").header("Host", "pagewell:8081");
        let request = fields.iter().fold(request, |all, (name, value)| all.header(name, value));
        Client::new(pagewell.admin().clone()).send(&request).expect("an answer")
    };
    let right = format!("Bearer {TOKEN}");
    let answer = metrics(&[("Authorization", &right)]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let budget = "pagewell_memory_budget_bytes 50331648";
    assert!(answer.text().lines().any(|line| line == budget), "{}", answer.text());
    for fields in [&[][..], &[("Authorization", "Bearer another token of 16")]] {
        assert!((400..500).contains(&metrics(fields).status), "{fields:?}");
    }
    assert_eq!(pagewell.log(), "", "nothing below the level");
}

/// The lines below this line of a file that are indented further, without their indentation.
fn block_below(path: &str, line: &str) -> String {
    let text = text(path);
    let mut lines = text.lines().skip_while(|found| found.trim() != line);
    let depth = indentation(lines.next().unwrap_or_else(|| panic!("{path}: no {line}")));
    let is_below = |line: &&str| line.trim().is_empty() || indentation(line) > depth;
    let block: Vec<&str> = lines.take_while(is_below).map(str::trim).collect();
    block.join("\n")
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Kubernetes lets the group of a pod write to the top of its volumes, and may give it all files of an old one.
#[test]
fn the_manifest_starts_on_a_volume_to_which_a_group_may_write() {
    const MANIFESTS: &str = "examples/kubernetes/wordpress";
    let site = Site::new(&[("index.php", "<?php echo 'by php';")]);
    let dir = PrivateDir::temporary("fpm").expect("a directory can be made");
    let php = PhpFpm::start(dir, &PoolOptions::default()).expect("php-fpm starts");
    let volume = site.at("volume");
    for (directory, mode) in [(volume.clone(), 0o2775), (volume.join("pages"), 0o2770)] {
        fs::create_dir(&directory).expect("a directory can be made");
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).expect("can be set");
    }
    let here = |text: &str| {
        let places = [
            ("/usr/share/pagewell/prepend.php", top().join("php/capture/prepend.php")),
            ("/var/lib/pagewell", volume.clone()),
            ("/var/www/html", site.root()),
            ("/run/pagewell", site.at("run")),
        ];
        places
            .iter()
            .fold(text.to_owned(), |text, (from, to)| text.replace(from, &to.display().to_string()))
    };
    let script = here(&block_below(&format!("{MANIFESTS}/wordpress.yaml"), "- |"));
    let made = Command::new("sh").args(["-ec", &script]).output().expect("it runs");
    assert!(made.status.success(), "{script}: {}", String::from_utf8_lossy(&made.stderr));
    assert!(site.at("run/capture").is_dir() && site.at("run/prepend.php").is_file());
    assert!(site.root().join("wp-content/uploads").is_dir());
    let file = block_below(&format!("{MANIFESTS}/configuration.yaml"), "pagewell.toml: |");
    // The tables below need servers that are not started here, and pages may be reused only if one is followed.
    let (file, _) = file.split_once("[[database]]").expect("the database comes after the site");
    let file = here(file).replace("\":8080\"", "\"127.0.0.1:0\"");
    let file = file.replace("[snapshot]\n", "[snapshot]\nunwatched = \"drop\"\n");
    let path = site.at("kubernetes.toml");
    fs::write(&path, file).expect("written");
    let mut serve = Command::new(binary());
    serve.args(["serve", "--config"]).arg(&path);
    serve.env("PAGEWELL_PHP", format!("unix:{}", php.socket().display()));
    serve.env("PAGEWELL_ADMIN_LISTEN", "127.0.0.1:0");
    let dir = PrivateDir::temporary("container").expect("a directory can be made");
    let pagewell = Pagewell::start_command(dir, &mut serve).expect("it starts");
    assert_eq!(acceptance::client(&pagewell).get("/").expect("an answer").text(), "by php");
}
