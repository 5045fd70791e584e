//! `cargo xtask package`: packages for Debian and its relatives, built by dpkg-deb from what is in `contrib`
//! and what the program prints (completions). And the zip archives of the plugins (`plugin`).
//!
//! The program's package has no debug symbols; they are in a package of their own (`symbols`). Both are built in
//! directories below `target/package`; nothing is installed, and root is not needed: the files in the packages
//! are root's, also when another user builds them. The same files give the same packages (`deb`).
//! `scripts/package-test` installs them.

mod deb;
mod libraries;
pub mod plugin;
mod symbols;
#[cfg(test)]
mod upgrade;

use crate::book;
use deb::PackageVersion;
use harness::root::{self, Profile};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// The shells, and where their completions are.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/pagewell"),
    ("zsh", "usr/share/zsh/vendor-completions/_pagewell"),
    ("fish", "usr/share/fish/vendor_completions.d/pagewell.fish"),
];
/// The place in `postinst` of the file that PHP runs.
const PREPEND: &str = "@prepend.php@";
/// Files that an operator may have changed, and an upgrade leaves alone.
const CONFIGURATION: [&str; 3] =
    ["/etc/pagewell/pagewell.toml", "/etc/pagewell/php-fpm.conf", "/etc/logrotate.d/pagewell"];
/// The fields of the program's package, apart from those that every package has.
const FIELDS: &str = "Section: httpd\nRecommends: php-fpm\nSuggests: logrotate\n\
    Description: full-page cache for PHP sites\n \
    Stands in front of a PHP site and answers from memory. Pages name the data that\n \
    they depend on, or Pagewell reads it from their SQL statements. A change of the\n \
    data purges exactly the pages that depend on it.\n .\n \
    Write the configuration before you start the service:\n \
    /usr/share/doc/pagewell/README.Debian\n";
/// Programs that `postinst` calls.
const USER_TOOLS: &str = "systemd | systemd-standalone-sysusers | systemd-sysusers";

/// The packages of one version.
pub struct DebianPackages {
    /// The program, without debug symbols.
    pub program: PathBuf,
    pub symbols: PathBuf,
}

/// Builds the packages and the archives of the plugins, and prints their paths.
///
/// # Errors
/// A file that could not be built or written.
pub fn run(profile: Profile) -> Result<(), String> {
    let packages = build(profile)?;
    println!("{}\n{}", packages.program.display(), packages.symbols.display());
    for one in plugin::PLUGINS {
        let archive = plugin::build(one, &root::repository(), &root::target().join("package"))?;
        println!("{}", archive.display());
    }
    Ok(())
}

/// Builds the packages. Returns their paths.
pub fn build(profile: Profile) -> Result<DebianPackages, String> {
    build_from(&root::pagewell(profile)?, profile)
}

/// Builds the packages from a program that is built. Returns their paths; `pagewell` beside them is the program
/// without debug symbols.
pub fn build_from(binary: &Path, profile: Profile) -> Result<DebianPackages, String> {
    let version = PackageVersion::read()?;
    let place = root::target().join("package");
    let tree = place.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(|error| error_text(&tree, error))?;
    }
    fs::create_dir_all(&place).map_err(|error| error_text(&place, error))?;
    let stripped = symbols::strip(binary, &place)?;
    let symbols = stripped.package(&version, profile)?;
    files(&tree, &stripped.program)?;
    scripts(&tree)?;
    book::install(&place, &tree.join("usr/share/doc/pagewell/html"), profile)?;
    let libraries = deb::libraries(&stripped.program, &place)?;
    let fields = format!("Depends: {USER_TOOLS}, {libraries}\n{FIELDS}");
    let program = version.build("pagewell", &tree, &fields, profile)?;
    Ok(DebianPackages { program, symbols })
}

fn files(tree: &Path, binary: &Path) -> Result<(), String> {
    let contrib = root::repository().join("contrib");
    let docs = "usr/share/doc/pagewell";
    for (from, to, mode) in [
        (binary.to_owned(), "usr/bin/pagewell", 0o755),
        (
            contrib.join("systemd/pagewell.service"),
            "usr/lib/systemd/system/pagewell.service",
            0o644,
        ),
        (
            contrib.join("systemd/pagewell-php.service"),
            "usr/lib/systemd/system/pagewell-php.service",
            0o644,
        ),
        (contrib.join("systemd/pagewell.socket"), "usr/lib/systemd/system/pagewell.socket", 0o644),
        (contrib.join("debian/sysusers.conf"), "usr/lib/sysusers.d/pagewell.conf", 0o644),
        (contrib.join("debian/pagewell.toml"), "etc/pagewell/pagewell.toml", 0o644),
        (contrib.join("debian/php-fpm.conf"), "etc/pagewell/php-fpm.conf", 0o644),
        (contrib.join("debian/logrotate"), "etc/logrotate.d/pagewell", 0o644),
        (contrib.join("debian/lintian-overrides"), "usr/share/lintian/overrides/pagewell", 0o644),
        (contrib.join("debian/README.Debian"), &format!("{docs}/README.Debian"), 0o644),
        (contrib.join("grafana/pagewell.json"), &format!("{docs}/grafana.json"), 0o644),
        (contrib.join("grafana/alerts.yml"), &format!("{docs}/alerts.yml"), 0o644),
    ] {
        write(&tree.join(to), &read(&from)?, mode)?;
    }
    for (to, content) in [
        ("usr/share/man/man1/pagewell.1.gz".to_owned(), read(&contrib.join("man/pagewell.1"))?),
        (
            "usr/share/man/man5/pagewell.toml.5.gz".to_owned(),
            read(&contrib.join("man/pagewell.toml.5"))?,
        ),
        (format!("{docs}/changelog.gz"), read(&root::repository().join("CHANGELOG.md"))?),
        (format!("{docs}/changelog.Debian.gz"), read(&contrib.join("debian/changelog"))?),
    ] {
        write(&tree.join(to), &gzipped(&content)?, 0o644)?;
    }
    write(&tree.join(format!("{docs}/copyright")), &copyright()?, 0o644)?;
    completions(tree, binary)
}

/// The licences of Pagewell and of the libraries in the program.
fn copyright() -> Result<Vec<u8>, String> {
    let repository = root::repository();
    let mut text = read(&repository.join("contrib/debian/copyright"))?;
    text.extend(read(&repository.join("LICENSE-MIT"))?);
    text.extend(libraries::section(&repository)?.into_bytes());
    Ok(text)
}

/// The time of the release, in seconds since 1970.
pub fn time_of_release() -> Result<u64, String> {
    Ok(PackageVersion::read()?.seconds())
}

/// The licences of the libraries in the program.
pub fn licences_of_libraries() -> Result<Vec<u8>, String> {
    Ok(libraries::section(&root::repository())?.into_bytes())
}

/// The names and versions of the libraries in the program.
pub fn names_of_libraries() -> Result<Vec<(String, String)>, String> {
    libraries::names(&root::repository())
}

/// As the program itself prints them.
fn completions(tree: &Path, binary: &Path) -> Result<(), String> {
    let program = binary.display().to_string();
    for (shell, to) in COMPLETIONS {
        let mut content = output_of(&program, &["completions", shell])?;
        content.push('\n');
        write(&tree.join(to), content.as_bytes(), 0o644)?;
    }
    Ok(())
}

fn scripts(tree: &Path) -> Result<(), String> {
    let place = tree.join("DEBIAN");
    let configuration = CONFIGURATION.map(|path| format!("{path}\n")).concat();
    write(&place.join("conffiles"), configuration.as_bytes(), 0o644)?;
    for script in SCRIPTS {
        let text = text_of("contrib/debian", script)?;
        let text = text.replace(PREPEND, text_of("php/capture", "prepend.php")?.trim_end());
        write(&place.join(script), text.as_bytes(), 0o755)?;
    }
    Ok(())
}

/// A text file of the repository.
fn text_of(directory: &str, name: &str) -> Result<String, String> {
    let path = root::repository().join(directory).join(name);
    fs::read_to_string(&path).map_err(|error| error_text(&path, error))
}

pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| error_text(path, error))
}

pub fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), String> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| error_text(parent, error))?;
    }
    fs::write(path, content).map_err(|error| error_text(path, error))?;
    set_mode(path, mode)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    let mode = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, mode).map_err(|error| error_text(path, error))
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
pub fn output_of(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(args).output();
    let output = output.map_err(|error| format!("package: {program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("package: {program}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

pub fn error_text(path: &Path, error: impl std::fmt::Display) -> String {
    format!("package: {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_has_its_files_and_its_program_runs() {
        let packages = build(Profile::Dev).expect("they can be built");
        let package = packages.program.display().to_string();
        let listed = output_of("dpkg-deb", &["--contents", &package]).expect("a package");
        for (mode, path) in [
            ("-rwxr-xr-x root/root", "./usr/bin/pagewell"),
            ("-rw-r--r-- root/root", "./usr/lib/systemd/system/pagewell.service"),
            ("-rw-r--r-- root/root", "./usr/lib/systemd/system/pagewell-php.service"),
            ("-rw-r--r-- root/root", "./usr/lib/systemd/system/pagewell.socket"),
            ("-rw-r--r-- root/root", "./usr/lib/sysusers.d/pagewell.conf"),
            ("-rw-r--r-- root/root", "./usr/share/doc/pagewell/copyright"),
            ("-rw-r--r-- root/root", "./usr/share/doc/pagewell/changelog.Debian.gz"),
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
        let depends = output_of("dpkg-deb", &["--field", &package, "Depends"]).expect("a field");
        let (major, minor) =
            crate::dist::glibc_of(&root::target().join("package/pagewell")).expect("a version");
        assert!(depends.contains(&format!("libc6 (>= {major}.{minor})")), "{depends}");
        if fs::read_to_string("/etc/debian_version").is_ok_and(|found| found.starts_with("12")) {
            let page = text_of("docs", "install.md").expect("the manual");
            let named = format!("or {major}.{minor} (a package that was built on Debian 12)");
            assert!(page.contains(&named), "docs/install.md: {named}");
        }
        assert_eq!(depends.matches("libc6 (").count(), 1, "{depends}");
        let symbols = packages.symbols.display().to_string();
        let symbols = output_of("dpkg-deb", &["--contents", &symbols]).expect("a package");
        assert!(symbols.contains(" ./usr/lib/debug/.build-id/"), "{symbols}");
        let place = root::target().join("package/unpacked");
        let _ = fs::remove_dir_all(&place);
        let into = place.display().to_string();
        output_of("dpkg-deb", &["--extract", &package, &into]).expect("it can be unpacked");
        let program = place.join("usr/bin/pagewell").display().to_string();
        let version = output_of(&program, &["--version"]).expect("it runs");
        assert!(version.starts_with(concat!("pagewell ", env!("CARGO_PKG_VERSION"))), "{version}");
        let sections =
            output_of("readelf", &["--wide", "--sections", &program]).expect("a program");
        assert!(sections.contains(".gnu_debuglink") && !sections.contains(".symtab"), "{sections}");
        let conffiles =
            output_of("dpkg-deb", &["--info", &package, "conffiles"]).expect("there are some");
        assert_eq!(conffiles, CONFIGURATION.join("\n"));
        let script = output_of("dpkg-deb", &["--info", &package, "postinst"]).expect("a script");
        let prepended = text_of("php/capture", "prepend.php").expect("it is there");
        assert!(script.contains(&format!("<<'PHP'\n{prepended}PHP\n")), "{script}");
        for script in SCRIPTS {
            let path = root::repository().join("contrib/debian").join(script);
            output_of("sh", &["-n", &path.display().to_string()]).expect("a script");
        }
    }
}
