//! `cargo xtask package`: a package for Debian and its relatives, built by dpkg-deb from what is in
//! `contrib` and what the code says of itself (manual pages, completions). And the zip archive of the WordPress
//! plugin (`plugin`).
//!
//! It is built in a directory of its own below `target/package`; nothing is installed, and root is not
//! needed: the files in the package are root's, also when another user builds it.

mod plugin;
#[cfg(test)]
mod upgrade;

use crate::man;
use clap::CommandFactory;
use clap_complete::{Shell, generate_to};
use config::options::CommandLine;
use harness::root::{self, Profile};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// Files that an operator may have changed, and an upgrade leaves alone.
const CONFIGURATION: [&str; 2] = ["/etc/pagewell/pagewell.toml", "/etc/logrotate.d/pagewell"];

/// Builds the package and the archives of the plugins, and prints their paths.
///
/// # Errors
/// A file that could not be built or written.
pub fn run(profile: Profile) -> Result<(), String> {
    let package = build(profile)?;
    println!("{}", package.display());
    for one in plugin::PLUGINS {
        let archive = plugin::build(one, &root::repository(), &root::target().join("package"))?;
        println!("{}", archive.display());
    }
    Ok(())
}

/// Builds the package; where it is.
pub fn build(profile: Profile) -> Result<PathBuf, String> {
    let binary = root::pagewell(profile)?;
    let place = root::target().join("package");
    let tree = place.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(|error| told(&tree, error))?;
    }
    files(&tree, &binary)?;
    let architecture = said("dpkg", &["--print-architecture"])?;
    control(&tree, &architecture)?;
    let version = env!("CARGO_PKG_VERSION");
    let package = place.join(format!("pagewell_{version}_{architecture}.deb"));
    let (from, to) = (tree.display().to_string(), package.display().to_string());
    // A package that is only looked at need not be small: half a minute less.
    let pressed: &[&str] = match profile {
        Profile::Dev => &["-Zgzip", "-z1"],
        Profile::Release => &[],
    };
    said("dpkg-deb", &[pressed, &["--root-owner-group", "--build", &from, &to]].concat())?;
    Ok(package)
}

fn files(tree: &Path, binary: &Path) -> Result<(), String> {
    let contrib = root::repository().join("contrib");
    let docs = "usr/share/doc/pagewell";
    for (from, to, mode) in [
        (binary.to_owned(), "usr/bin/pagewell", 0o755),
        (contrib.join("systemd/pagewell.service"), "lib/systemd/system/pagewell.service", 0o644),
        (contrib.join("systemd/pagewell.socket"), "lib/systemd/system/pagewell.socket", 0o644),
        (contrib.join("debian/pagewell.toml"), "etc/pagewell/pagewell.toml", 0o644),
        (contrib.join("debian/logrotate"), "etc/logrotate.d/pagewell", 0o644),
        (contrib.join("grafana/pagewell.json"), &format!("{docs}/grafana.json"), 0o644),
        (root::repository().join("LICENSE-MIT"), &format!("{docs}/copyright"), 0o644),
    ] {
        let content = fs::read(&from).map_err(|error| told(&from, error))?;
        write(&tree.join(to), &content, mode)?;
    }
    let changes = fs::read(root::repository().join("CHANGELOG.md")).unwrap_or_default();
    for (to, content) in [
        ("usr/share/man/man1/pagewell.1.gz".to_owned(), man::command().into_bytes()),
        ("usr/share/man/man5/pagewell.toml.5.gz".to_owned(), man::file().into_bytes()),
        (format!("{docs}/changelog.gz"), changes),
    ] {
        write(&tree.join(to), &gzipped(&content)?, 0o644)?;
    }
    completions(tree)
}

fn completions(tree: &Path) -> Result<(), String> {
    let made = tree.with_file_name("completions");
    fs::create_dir_all(&made).map_err(|error| told(&made, error))?;
    for (shell, to) in [
        (Shell::Bash, "usr/share/bash-completion/completions/pagewell"),
        (Shell::Zsh, "usr/share/zsh/vendor-completions/_pagewell"),
        (Shell::Fish, "usr/share/fish/vendor_completions.d/pagewell.fish"),
    ] {
        let mut line = CommandLine::command();
        let file = generate_to(shell, &mut line, "pagewell", &made);
        let content = file.and_then(fs::read).map_err(|error| told(&made, error))?;
        write(&tree.join(to), &content, 0o644)?;
    }
    Ok(())
}

fn control(tree: &Path, architecture: &str) -> Result<(), String> {
    let (version, kib) = (env!("CARGO_PKG_VERSION"), bytes_below(tree) / 1024);
    let control = format!(
        "Package: pagewell\nVersion: {version}\nArchitecture: {architecture}\nSection: httpd\n\
         Priority: optional\nInstalled-Size: {kib}\nMaintainer: The Pagewell authors <pagewell@localhost>\n\
         Depends: adduser, libc6 (>= 2.36), libgcc-s1\nRecommends: php-fpm\nSuggests: logrotate\n\
         Description: full-page cache that knows your data\n \
         Stands in front of a PHP site, answers from memory, and wakes PHP only when the\n \
         data behind a page has changed.\n"
    );
    let place = tree.join("DEBIAN");
    write(&place.join("control"), control.as_bytes(), 0o644)?;
    let configuration = CONFIGURATION.map(|path| format!("{path}\n")).concat();
    write(&place.join("conffiles"), configuration.as_bytes(), 0o644)?;
    for script in SCRIPTS {
        let from = root::repository().join("contrib/debian").join(script);
        let content = fs::read(&from).map_err(|error| told(&from, error))?;
        write(&place.join(script), &content, 0o755)?;
    }
    Ok(())
}

fn bytes_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => bytes_below(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}

fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), String> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| told(parent, error))?;
    }
    fs::write(path, content).map_err(|error| told(path, error))?;
    let mode = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, mode).map_err(|error| told(path, error))
}

/// Without a name and a time in it, so that the same gives the same.
fn gzipped(content: &[u8]) -> Result<Vec<u8>, String> {
    let fault = |error| format!("package: gzip: {error}");
    let mut gzip = Command::new("gzip")
        .args(["-9", "-n", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(fault)?;
    let mut input = gzip.stdin.take().ok_or("package: gzip has no input")?;
    let content = content.to_owned();
    let writing = std::thread::spawn(move || input.write_all(&content));
    let output = gzip.wait_with_output().map_err(fault)?;
    match (writing.join(), output.status.success()) {
        (Ok(Ok(())), true) => Ok(output.stdout),
        _ => Err("package: gzip has failed".into()),
    }
}

/// Runs a program, and returns what it says.
fn said(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(args).output();
    let output = output.map_err(|error| format!("package: {program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("package: {program}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

fn told(path: &Path, error: impl std::fmt::Display) -> String {
    format!("package: {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_has_what_it_should_and_its_program_runs() {
        let package = build(Profile::Dev).expect("it can be built").display().to_string();
        let listed = said("dpkg-deb", &["--contents", &package]).expect("a package");
        for (mode, path) in [
            ("-rwxr-xr-x root/root", "./usr/bin/pagewell"),
            ("-rw-r--r-- root/root", "./lib/systemd/system/pagewell.service"),
            ("-rw-r--r-- root/root", "./lib/systemd/system/pagewell.socket"),
            ("-rw-r--r-- root/root", "./etc/pagewell/pagewell.toml"),
            ("-rw-r--r-- root/root", "./etc/logrotate.d/pagewell"),
            ("-rw-r--r-- root/root", "./usr/share/man/man1/pagewell.1.gz"),
            ("-rw-r--r-- root/root", "./usr/share/man/man5/pagewell.toml.5.gz"),
            ("-rw-r--r-- root/root", "./usr/share/bash-completion/completions/pagewell"),
            ("-rw-r--r-- root/root", "./usr/share/zsh/vendor-completions/_pagewell"),
            ("-rw-r--r-- root/root", "./usr/share/fish/vendor_completions.d/pagewell.fish"),
        ] {
            let line = listed.lines().find(|line| line.ends_with(&format!(" {path}")));
            assert!(line.is_some_and(|line| line.starts_with(mode)), "{path} in:\n{listed}");
        }
        let place = root::target().join("package/unpacked");
        let _ = fs::remove_dir_all(&place);
        let into = place.display().to_string();
        said("dpkg-deb", &["--extract", &package, &into]).expect("it can be unpacked");
        let program = place.join("usr/bin/pagewell").display().to_string();
        let version = said(&program, &["--version"]).expect("it runs");
        assert_eq!(version, format!("pagewell {}", env!("CARGO_PKG_VERSION")));
        let conffiles =
            said("dpkg-deb", &["--info", &package, "conffiles"]).expect("there are some");
        assert_eq!(conffiles, CONFIGURATION.join("\n"));
        for script in SCRIPTS {
            let path = root::repository().join("contrib/debian").join(script);
            said("sh", &["-n", &path.display().to_string()]).expect("a script");
        }
    }
}
