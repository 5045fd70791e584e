//! `cargo xtask dist`: the files of a release in `target/dist`, from one program that runs on every glibc from
//! [`GLIBC`] on: an archive with an installer, the Debian packages, the archives of the plugins, and the bill of
//! materials. `scripts/sign-release` writes the sums and their signature.
//!
//! cargo-zigbuild links the program for the old C library; `scripts/setup dist` installs it. The archive is the
//! same for the same files: owners are root, names are sorted, and times are that of the change log.

use crate::book;
use crate::package::{self, error_text, output_of, plugin, read, write};
use harness::PrivateDir;
use harness::root::{self, Profile};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest release of glibc that the program needs: Debian 11 and Ubuntu 20.04 have it. `docs/install.md` says so.
const GLIBC: (u32, u32) = (2, 31);
/// The end of the name of an archive for musl. `docs/install.md` has it, too.
const MUSL: &str = "-musl";
/// The table `[php]` in the archive's configuration. That of the package names pagewell-php.service, which the archive
/// does not have.
const PHP_OF_THE_SYSTEM: &str = "[php]
# The socket of the system's php-fpm. The user pagewell must be in its group:
#   usermod --append --groups www-data pagewell    (Alpine: addgroup pagewell www-data)
# INSTALL.md has the names in RHEL.
at = \"unix:/run/php/php-fpm.sock\"
";

/// Builds the files of a release, and prints their paths. With a `program` that is built already they are for tests,
/// and in a directory of their own.
///
/// # Errors
/// A tool that is missing or has failed, a file that cannot be written, or a program that needs a newer glibc.
pub fn run(program: Option<&Path>) -> Result<(), String> {
    // An archive that is only tried never takes the place of a release.
    let place = root::target().join(if program.is_some() { "dist-to-test" } else { "dist" });
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).map_err(|error| error_text(&place, error))?;
    let (binary, profile) = match program {
        Some(program) => (program.to_owned(), Profile::Dev),
        None => (compile("gnu")?, Profile::Release),
    };
    let needed = glibc_of(&binary)?;
    if program.is_none() && needed > GLIBC {
        let (found, wanted) = (shown(needed), shown(GLIBC));
        return Err(format!("dist: the program needs glibc {found}, and {wanted} is promised"));
    }
    let packages = package::build_from(&binary, profile)?;
    let mut files = vec![packages.program, packages.symbols];
    for one in plugin::PLUGINS {
        files.push(plugin::build(one, &root::repository(), &root::target().join("package"))?);
    }
    for file in &files {
        let to = place.join(file.file_name().unwrap_or_default());
        fs::copy(file, &to).map_err(|error| error_text(&to, error))?;
    }
    archive(&place, &release_name(), &root::target().join("package/pagewell"), profile)?;
    if program.is_none() {
        bill_of_materials(&place)?;
    }
    for file in fs::read_dir(&place).map_err(|error| error_text(&place, error))?.flatten() {
        println!("{}", file.path().display());
    }
    println!("dist: the program needs glibc {} or newer", shown(needed));
    if program.is_none() {
        println!("dist: not signed: scripts/sign-release {}", place.display());
    }
    Ok(())
}

/// Builds only the archive, with a program for musl (Alpine) that needs no shared library, and prints its path. What
/// else a release has does not depend on the C library; `run` writes it.
///
/// # Errors
/// A tool that is missing or has failed, or a file that cannot be written.
pub fn run_musl() -> Result<(), String> {
    let place = root::target().join("dist");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).map_err(|error| error_text(&place, error))?;
    let built = compile("musl")?;
    let work = PrivateDir::temporary("dist-musl").map_err(|error| format!("dist: {error}"))?;
    let program = work.path().join("pagewell");
    let (from, to) = (built.display().to_string(), program.display().to_string());
    output_of("strip", &["-o", &to, &from])?;
    let name = release_name() + MUSL;
    let packed = archive(&place, &name, &program, Profile::Release)?;
    println!("{}", packed.display());
    Ok(())
}

/// Builds the program for another C library than that of this machine: "gnu" (from [`GLIBC`] on), or "musl".
fn compile(library: &str) -> Result<PathBuf, String> {
    let target = format!("{}-unknown-linux-{library}", std::env::consts::ARCH);
    let mut cargo = cargo("zigbuild");
    cargo.args(["--release", "--locked", "-p", "pagewell", "--target"]);
    if library == "gnu" {
        cargo.arg(format!("{target}.{}", shown(GLIBC))).env("PAGEWELL_GLIBC", shown(GLIBC));
    } else {
        cargo.arg(&target);
    }
    // The same program also where the tests are built with notes for later builds.
    cargo.env("CARGO_INCREMENTAL", "0");
    match cargo.status() {
        Ok(status) if status.success() => Ok(root::target().join(target).join("release/pagewell")),
        Ok(_) => Err("dist: cargo zigbuild has failed; scripts/setup dist installs it".into()),
        Err(error) => Err(format!("dist: cargo cannot be run: {error}")),
    }
}

/// A command of cargo, in the repository. Its program may be one that scripts/setup has installed.
fn cargo(name: &str) -> Command {
    let mut cargo = root::cargo();
    let tools = root::target().join("dist-tools/bin");
    let path = std::env::var("PATH").unwrap_or_default();
    cargo.arg(name).env("PATH", format!("{}:{path}", tools.display()));
    cargo
}

/// The newest release of glibc whose symbols a program needs.
///
/// # Errors
/// readelf has failed, or the program needs no glibc.
pub fn glibc_of(program: &Path) -> Result<(u32, u32), String> {
    let versions =
        output_of("readelf", &["--wide", "--version-info", &program.display().to_string()])?;
    newest(&versions).ok_or_else(|| format!("dist: {}: no version of glibc", program.display()))
}

fn newest(versions: &str) -> Option<(u32, u32)> {
    // Packed relocations: glibc 2.36 is the first that reads them.
    let packed = versions.contains("GLIBC_ABI_DT_RELR").then_some((2, 36));
    let named = versions.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let mut parts = rest[..end].split('.').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    });
    named.chain(packed).max()
}

fn shown((major, minor): (u32, u32)) -> String {
    format!("{major}.{minor}")
}

/// The beginning of the names of files that are for this kind of machine.
fn release_name() -> String {
    format!("pagewell-{}-linux-{}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH)
}

/// The archive of this name that `install.sh` installs from.
fn archive(place: &Path, name: &str, program: &Path, profile: Profile) -> Result<PathBuf, String> {
    let above = PrivateDir::temporary("dist-tree").map_err(|error| format!("dist: {error}"))?;
    let (above, repository) = (above.path(), root::repository());
    let tree = above.join(name);
    for (from, to, mode) in [
        ("contrib/dist/install.sh", "install.sh", 0o755),
        ("contrib/man/pagewell.1", "man/pagewell.1", 0o644),
        ("contrib/man/pagewell.toml.5", "man/pagewell.toml.5", 0o644),
        ("contrib/systemd/pagewell.service", "systemd/pagewell.service", 0o644),
        ("contrib/systemd/pagewell.socket", "systemd/pagewell.socket", 0o644),
        ("php/capture/prepend.php", "php/prepend.php", 0o644),
        ("LICENSE-MIT", "LICENSE-MIT", 0o644),
        ("LICENSE-APACHE", "LICENSE-APACHE", 0o644),
        ("CHANGELOG.md", "CHANGELOG.md", 0o644),
        ("docs/install.md", "INSTALL.md", 0o644),
    ] {
        write(&tree.join(to), &read(&repository.join(from))?, mode)?;
    }
    let configuration = configuration(&repository.join("contrib/debian/pagewell.toml"))?;
    write(&tree.join("etc/pagewell.toml"), configuration.as_bytes(), 0o644)?;
    write(&tree.join("bin/pagewell"), &read(program)?, 0o755)?;
    book::install(above, &tree.join("doc"), profile)?;
    write(&tree.join("LICENSES-OF-LIBRARIES"), &package::licences_of_libraries()?, 0o644)?;
    for (shell, file) in
        [("bash", "pagewell.bash"), ("zsh", "_pagewell"), ("fish", "pagewell.fish")]
    {
        let script = output_of(&program.display().to_string(), &["completions", shell])? + "\n";
        write(&tree.join("completions").join(file), script.as_bytes(), 0o644)?;
    }
    let (packed, time) = (place.join(format!("{name}.tar.gz")), package::time_of_release()?);
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=root:0", "--group=root:0", "--format=ustar"]);
    // Directories have modes that depend on the umask.
    tar.arg(format!("--mtime=@{time}")).arg("--mode=u+rw,go=rX");
    // The program of a test has its debug symbols, and would take a minute.
    let gzip = if profile == Profile::Dev { "gzip -1 -n" } else { "gzip -9 -n" };
    tar.args(["--use-compress-program", gzip]);
    tar.arg("--create").arg("--file").arg(&packed).arg("--directory").arg(above).arg(name);
    let made = tar.output().map_err(|error| format!("dist: tar: {error}"))?;
    if made.status.success() {
        Ok(packed)
    } else {
        Err(format!("dist: tar: {}", String::from_utf8_lossy(&made.stderr)))
    }
}

/// The configuration of the archive: that of the package, with the system's php-fpm.
///
/// # Errors
/// The file cannot be read, or has no table `[php]`.
fn configuration(of_package: &Path) -> Result<String, String> {
    let text = fs::read_to_string(of_package).map_err(|error| error_text(of_package, error))?;
    let php = text.split_once("[php]\n").and_then(|(before, php)| {
        let (_, after) = php.split_once("\n\n")?;
        Some(format!("{before}{PHP_OF_THE_SYSTEM}\n{after}"))
    });
    php.ok_or_else(|| format!("dist: {}: no table [php]", of_package.display()))
}

/// The libraries in the program, in CycloneDX's format. cargo-cyclonedx writes a file beside each `Cargo.toml`.
fn bill_of_materials(place: &Path) -> Result<(), String> {
    const NAME: &str = "bill-of-materials.cdx";
    let mut cargo = cargo("cyclonedx");
    cargo.args(["--format", "json", "--spec-version", "1.5", "--override-filename", NAME]);
    cargo.args(["--manifest-path", "crates/server/pagewell/Cargo.toml"]);
    // Without it, the time of the build would be in the file.
    cargo.env("SOURCE_DATE_EPOCH", package::time_of_release()?.to_string());
    let made = cargo.output().map_err(|error| format!("dist: cargo: {error}"))?;
    if !made.status.success() {
        let error = String::from_utf8_lossy(&made.stderr);
        return Err(format!("dist: cargo cyclonedx ({error}): scripts/setup dist installs it"));
    }
    let repository = root::repository();
    let from = repository.join("crates/server/pagewell").join(format!("{NAME}.json"));
    let text = fs::read_to_string(&from).map_err(|error| error_text(&from, error))?;
    remove_named(&repository, &format!("{NAME}.json"));
    // The references of our crates are their directories, which are others on another machine.
    let text = text.replace(&format!("file://{}", repository.display()), "file:///pagewell");
    is_complete(&text, &package::names_of_libraries()?)?;
    write(&place.join(format!("{}.cdx.json", release_name())), text.as_bytes(), 0o644)
}

/// Checks that a bill of materials is one of this version, and names each of these libraries with its version.
fn is_complete(bill: &str, libraries: &[(String, String)]) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("dist: the bill of materials {why}"));
    let Ok(bill) = serde_json::from_str::<Value>(bill) else { return wrong("is no JSON") };
    let of_program = &bill["metadata"]["component"];
    if bill["bomFormat"] != "CycloneDX" || of_program["version"] != env!("CARGO_PKG_VERSION") {
        return wrong("is not in CycloneDX's format, or of another version");
    }
    let named = bill["components"].as_array().map_or(&[][..], Vec::as_slice);
    let is_named = |(name, version): &&(String, String)| {
        named.iter().any(|one| one["name"] == name.as_str() && one["version"] == version.as_str())
    };
    match libraries.iter().find(|one| !is_named(one)) {
        None if libraries.is_empty() => wrong("cannot be compared: no library is known"),
        None => Ok(()),
        Some((name, version)) => wrong(&format!("does not name {name} {version}")),
    }
}

/// Removes files of this name below a directory, but for `target` and hidden directories.
fn remove_named(directory: &Path, name: &str) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, own) = (entry.path(), entry.file_name());
        if own == name {
            let _ = fs::remove_file(path);
        } else if path.is_dir() && own != "target" && !own.to_string_lossy().starts_with('.') {
            remove_named(&path, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Output;

    /// The files below a directory.
    fn files_below(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
        entries.flat_map(|entry| below(entry.path())).collect()
    }

    #[test]
    fn the_newest_symbol_counts_and_packed_relocations_need_2_36() {
        assert_eq!(newest("Name: GLIBC_2.9 Name: GLIBC_2.31  Name: GLIBC_2.2.5"), Some((2, 31)));
        assert_eq!(newest("Name: GLIBC_2.34 Name: GLIBC_ABI_DT_RELR"), Some((2, 36)));
        assert_eq!(newest("Name: GCC_3.0"), None);
    }

    #[test]
    fn the_manual_names_the_c_libraries_of_the_release() {
        let page = fs::read_to_string(root::repository().join("docs/install.md")).expect("text");
        assert!(page.contains(&format!("glibc {} or newer", shown(GLIBC))), "docs/install.md");
        assert!(page.contains(&format!("-x86_64{MUSL}.tar.gz")), "docs/install.md");
        let workflow = root::repository().join(".github/workflows/release.yaml");
        let workflow = fs::read_to_string(workflow).expect("text");
        assert!(workflow.contains(&format!("machine: x86_64{MUSL}, make: dist-musl")));
    }

    /// An emulated machine compiles for hours, and the release waits for its image.
    #[test]
    fn each_machine_builds_its_own_image() {
        let workflow = root::repository().join(".github/workflows/release.yaml");
        let workflow = fs::read_to_string(workflow).expect("text");
        for machine in ["os: ubuntu-24.04, machine: amd64", "os: ubuntu-24.04-arm, machine: arm64"]
        {
            assert!(workflow.contains(machine), "{machine}");
        }
        assert!(!workflow.contains("setup-qemu-action"));
    }

    /// An unpacked archive, and beside it an empty system to install it in.
    struct UnpackedArchive {
        place: PrivateDir,
        tree: PathBuf,
    }

    impl UnpackedArchive {
        fn new(program: &Path) -> UnpackedArchive {
            let place = PrivateDir::temporary("dist").expect("a directory");
            let packed = archive(place.path(), &release_name(), program, Profile::Dev);
            let packed = packed.expect("it can be built");
            let into = place.path().display().to_string();
            output_of("tar", &["-xf", &packed.display().to_string(), "-C", &into])
                .expect("it is unpacked");
            let tree = packed.with_extension("").with_extension("");
            UnpackedArchive { place, tree }
        }

        fn system(&self, path: &str) -> PathBuf {
            self.place.path().join("system").join(path)
        }

        /// Runs the installer with a umask that hides new files from other users.
        fn run(&self, arguments: &str) -> Output {
            self.run_after("umask 077", arguments)
        }

        /// Runs the installer in a shell that has run another command before.
        fn run_after(&self, before: &str, arguments: &str) -> Output {
            let mut sh = Command::new("sh");
            sh.args(["-c", &format!("{before} && exec ./install.sh {arguments}")]);
            sh.current_dir(&self.tree).env("DESTDIR", self.system(""));
            sh.output().expect("it runs")
        }

        fn install(&self, arguments: &str) {
            let output = self.run(arguments);
            assert!(output.status.success(), "{output:?}");
        }
    }

    #[test]
    fn the_archive_installs_and_its_program_runs() {
        let unpacked = UnpackedArchive::new(&root::pagewell(Profile::Dev).expect("it is built"));
        unpacked.install("--prefix /opt/pagewell");
        for (path, mode) in [
            ("bin", 0o755),
            ("bin/pagewell", 0o755),
            ("share/man/man1/pagewell.1", 0o644),
            ("share/man/man5/pagewell.toml.5", 0o644),
            ("share/bash-completion/completions/pagewell", 0o644),
            ("share/zsh/site-functions/_pagewell", 0o644),
            ("share/fish/vendor_completions.d/pagewell.fish", 0o644),
            ("share/doc/pagewell/LICENSE-MIT", 0o644),
            ("share/doc/pagewell/LICENSE-APACHE", 0o644),
            ("share/doc/pagewell/LICENSES-OF-LIBRARIES", 0o644),
            ("../../etc/systemd/system/pagewell.socket", 0o644),
            ("../../etc/systemd/system/pagewell.service", 0o644),
            ("../../etc/pagewell/pagewell.toml", 0o644),
        ] {
            let file = fs::metadata(unpacked.system("opt/pagewell").join(path));
            let file = file.unwrap_or_else(|error| panic!("{path}: {error}"));
            assert!(file.len() > 0 && file.permissions().mode() & 0o777 == mode, "{path}");
        }
        let html = |top: &Path| top.join("index.html").exists();
        let manual = unpacked.system("opt/pagewell/share/doc/pagewell/html");
        assert_eq!(html(&manual), html(&unpacked.tree.join("doc")), "the manual, where mdbook is");
        let program = unpacked.system("opt/pagewell/bin/pagewell").display().to_string();
        assert!(output_of(&program, &["--version"]).expect("it runs").starts_with("pagewell "));
        let unit = fs::read_to_string(unpacked.system("etc/systemd/system/pagewell.service"));
        assert!(unit.expect("a unit").contains("ExecStart=/opt/pagewell/bin/pagewell serve"));
    }

    /// With a small program, because only the installer is tested.
    #[test]
    fn an_installation_keeps_what_is_there() {
        let program = harness::program(&["echo"]).expect("a tool of every system");
        let unpacked = UnpackedArchive::new(&program);
        let again = PrivateDir::temporary("dist").expect("a directory");
        let packed = archive(again.path(), &release_name(), &program, Profile::Dev);
        let packed = packed.expect("it can be built");
        let name = packed.file_name().expect("a name");
        let same = |path: &Path| fs::read(path).expect("it is there");
        assert!(same(&packed) == same(&unpacked.place.path().join(name)), "the same archive");
        for arguments in ["--prefix opt", "--prefix '/opt/my site'", "--no-such-option"] {
            assert_eq!(unpacked.run(arguments).status.code(), Some(2), "{arguments}");
        }
        assert!(!unpacked.system("").exists(), "nothing is written");
        unpacked.install("");
        let config = unpacked.system("etc/pagewell/pagewell.toml");
        let text = fs::read_to_string(&config).expect("text");
        let settings: toml::Table = text.parse().expect("TOML");
        assert_eq!(settings["php"]["at"].as_str(), Some("unix:/run/php/php-fpm.sock"));
        assert!(!text.contains("pagewell-php") && text.contains("#[snapshot]"), "{text}");
        fs::write(&config, "# changed\n").expect("written");
        unpacked.install("");
        assert_eq!(fs::read_to_string(&config).expect("text"), "# changed\n");
        let elsewhere = unpacked.system("pagewell.toml");
        fs::rename(&config, &elsewhere).expect("renamed");
        symlink("/nowhere/pagewell.toml", &config).expect("a link");
        unpacked.install("");
        assert!(config.is_symlink(), "also one that leads nowhere is kept");
        // Beside the Debian package it would hide the unit of the package, and stop its service.
        let packaged = unpacked.system("usr/lib/systemd/system/pagewell.service");
        write(&packaged, b"[Service]\n", 0o644).expect("written");
        for arguments in ["", "--uninstall"] {
            let output = unpacked.run(arguments);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code() == Some(4) && error.contains("apt remove"), "{error}");
        }
        fs::remove_file(&packaged).expect("removed");
        assert!(unpacked.system("usr/local/bin/pagewell").exists(), "nothing was removed");
        unpacked.install("--uninstall");
        let left = files_below(&unpacked.system("usr"));
        assert!(left.is_empty() && config.is_symlink(), "{left:?}");
        assert!(unpacked.system("var/lib/pagewell-php/prepend.php").exists(), "PHP may need it");
    }

    /// A limit for the size of files stands in for a full disk, and a file in the way for one that is read-only.
    #[test]
    fn an_installation_that_fails_changes_no_file() {
        let program = harness::program(&["echo"]).expect("a tool of every system");
        let unpacked = UnpackedArchive::new(&program);
        unpacked.install("");
        let installed = unpacked.system("usr/local/bin/pagewell");
        fs::write(&installed, "before").expect("written");
        let fails = |before: &str, says: &str| {
            let output = unpacked.run_after(before, "");
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{before}: {error}");
            assert!(error.contains(says), "{before}: {error}");
            assert_eq!(fs::read_to_string(&installed).expect("text"), "before");
            let files = files_below(&unpacked.system(""));
            let is_new = |path: &&PathBuf| path.to_string_lossy().contains(".new");
            assert_eq!(files.iter().find(is_new), None, "{before}");
            let licence = unpacked.system("usr/local/share/doc/pagewell/LICENSE-MIT");
            assert!(licence.exists(), "{before}: the documents of the version before");
        };
        let is_full = "no file is changed. Free space (df -h ";
        fails("ulimit -c 0 && ulimit -f 8", is_full);
        let stand_ins = unpacked.place.path().join("stand-ins");
        let path = format!("PATH={}:$PATH", stand_ins.display());
        for (tool, does, says) in [
            ("install", "kill -TERM $PPID", "no file is changed. Run this again"),
            ("mv", "exit 1", "only some files are of this version. Free space"),
        ] {
            fs::create_dir(&stand_ins).expect("a directory");
            let script = format!("#!/bin/sh\n{does}\n");
            harness::write_script(&stand_ins.join(tool), &script).expect("can be written");
            fails(&path, says);
            fs::remove_dir_all(&stand_ins).expect("removed");
        }
        let in_the_way = unpacked.system("usr/local/share/fish");
        fs::remove_dir_all(&in_the_way).expect("removed");
        fs::write(&in_the_way, "").expect("written");
        fails("true", is_full);
        fs::remove_file(&in_the_way).expect("removed");
        // The remains of a killed installer are no obstacle.
        let left = unpacked.system("usr/local/share/doc/pagewell.new/html");
        fs::create_dir_all(&left).expect("a directory");
        unpacked.install("");
        assert!(!left.exists() && fs::metadata(&installed).expect("a file").len() > 6);
    }

    /// Runs the part of the installer that creates the user, and its last lines, where there are only these programs
    /// and no systemd. Returns the exit status, and what the programs and the installer print.
    fn user_of(programs: &[&str], is_known: bool) -> (Option<i32>, String) {
        let script = root::repository().join("contrib/dist/install.sh");
        let script = fs::read_to_string(script).expect("text");
        let from = script.find("\nhas() {").expect("the functions for the user");
        let to = script.find("# ---- the files").expect("the end of the functions");
        let place = PrivateDir::temporary("user").expect("a directory");
        let stand_in = |name: &str, does: &str| {
            let text = format!("#!/bin/sh\n{does}\n");
            harness::write_script(&place.path().join(name), &text).expect("can be written");
        };
        for name in ["getent", "grep"] {
            stand_in(name, if is_known { "true" } else { "false" });
        }
        for name in programs {
            stand_in(name, &format!("echo {name} $*"));
        }
        let set = format!("PATH={}\nset -eu\nroot= prefix=/usr/local", place.path().display());
        let rest = "config=/etc/pagewell/pagewell.toml\nhas_systemd() { false; }";
        let functions = &script[from..to];
        let text = format!("{set}\n{rest}\n{functions}\ncreate_user\nprint_next_steps\n");
        let output = Command::new("sh").args(["-c", &text]).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    #[test]
    fn the_user_is_created_with_the_commands_that_are_there() {
        let (status, printed) = user_of(&["groupadd", "useradd", "usermod"], false);
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!((status, lines[0]), (Some(0), "groupadd --system pagewell"));
        assert!(lines[1].starts_with("useradd --system --gid pagewell "), "{printed}");
        assert!(printed.contains("  usermod --append --groups GROUP pagewell  "), "{printed}");
        // Alpine's busybox.
        let (status, printed) = user_of(&["addgroup", "adduser"], false);
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!((status, lines[0]), (Some(0), "addgroup -S pagewell"));
        assert!(
            lines[1].starts_with("adduser -S -D -H ")
                && lines[1].ends_with(" -G pagewell pagewell")
        );
        assert!(printed.contains("  addgroup pagewell GROUP  "), "{printed}");
        assert!(printed.contains("supervisor") && !printed.contains("systemctl"), "{printed}");
        let (status, printed) = user_of(&["addgroup", "adduser"], true);
        assert!(status == Some(0) && printed.starts_with("Installed in /usr/local."), "{printed}");
        assert_eq!(user_of(&[], false), (Some(5), String::new()), "nothing is installed");
    }

    #[test]
    fn the_bill_of_materials_names_every_library_of_the_program() {
        let libraries = package::names_of_libraries().expect("cargo knows them");
        assert!(libraries.iter().any(|(name, _)| name == "tokio"), "{libraries:?}");
        let bill = |named: &[(String, String)], format: &str| {
            let named =
                named.iter().map(|(name, version)| json!({"name": name, "version": version}));
            let program = json!({"name": "pagewell", "version": env!("CARGO_PKG_VERSION")});
            let named: Vec<Value> = named.collect();
            json!({"bomFormat": format, "metadata": {"component": program}, "components": named})
                .to_string()
        };
        assert_eq!(is_complete(&bill(&libraries, "CycloneDX"), &libraries), Ok(()));
        let fault = is_complete(&bill(&libraries[1..], "CycloneDX"), &libraries)
            .expect_err("one is missing");
        assert!(fault.ends_with(&format!("name {} {}", libraries[0].0, libraries[0].1)), "{fault}");
        let mut newer = libraries.clone();
        newer[0].1.push('1');
        assert!(is_complete(&bill(&libraries, "CycloneDX"), &newer).is_err(), "another version");
        assert!(is_complete(&bill(&libraries, "SPDX"), &libraries).is_err());
        assert!(is_complete("no JSON", &libraries).is_err());
        assert!(is_complete(&bill(&[], "CycloneDX"), &[]).is_err(), "nothing was compared");
    }

    #[test]
    fn the_signature_covers_every_file() {
        let place = PrivateDir::temporary("signed").expect("a directory");
        let at = |name: &str| place.path().join(name).display().to_string();
        let script = root::repository().join("scripts/sign-release");
        fs::create_dir(place.path().join("dist")).expect("a directory");
        fs::write(place.path().join("dist/one"), "1").expect("written");
        let sign = |key: &str| {
            let mut command = Command::new(&script);
            command.arg(at("dist")).env("MINISIGN_KEY", key).env("MINISIGN_PASSWORD", "");
            command.env("PUBLIC_KEY", at("known.pub")).output().expect("it runs").status.code()
        };
        assert_eq!(sign(""), Some(3), "no release without a key");
        // -W: a key without a password.
        output_of("minisign", &["-G", "-W", "-p", &at("key.pub"), "-s", &at("key")])
            .expect("a key");
        let key = fs::read_to_string(at("key")).expect("text");
        fs::write(at("known.pub"), "untrusted comment: another key\nRWR4\n").expect("written");
        assert_eq!(sign(&key), Some(4), "the key is that of the checkout");
        assert!(!place.path().join("dist/SHA256SUMS.minisig").exists());
        fs::copy(at("key.pub"), at("known.pub")).expect("copied");
        assert_eq!(sign(&key), Some(0));
        let public = |name: &str| {
            fs::read_to_string(at(name)).expect("text").lines().nth(1).map(str::to_owned)
        };
        assert_eq!(
            public("dist/pagewell.pub"),
            public("key.pub"),
            "the release has its public key"
        );
        fs::remove_file(at("known.pub")).expect("removed");
        assert_eq!(sign(&key), Some(0), "the first release is signed by the first key");
        let verify = ["-V", "-m", &at("dist/SHA256SUMS"), "-p", &at("key.pub")];
        output_of("minisign", &verify).expect("it is signed");
        // The command of the manual.
        let page = fs::read_to_string(root::repository().join("docs/install.md")).expect("text");
        let command = page.lines().find(|line| line.starts_with("minisign -V"));
        let by_page = || {
            let mut sh = Command::new("sh");
            sh.args(["-c", command.expect("a command")]).current_dir(place.path().join("dist"));
            sh.output().expect("it runs").status.success()
        };
        assert!(by_page());
        fs::write(at("dist/one"), "2").expect("written");
        assert!(!by_page(), "a changed file is noticed");
        let sums = fs::read_to_string(at("dist/SHA256SUMS")).expect("text");
        assert!(sums.lines().count() == 1 && sums.ends_with("  one\n"), "{sums}");
        fs::write(at("dist/SHA256SUMS"), sums.replace("one", "two")).expect("written");
        assert!(output_of("minisign", &verify).is_err(), "a changed list is noticed");
    }
}
