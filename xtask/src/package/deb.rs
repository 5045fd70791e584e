//! Debian packages from directories: control files, checksums, times and `dpkg-deb`.
//!
//! The same files give the same bytes on every machine: owners are root, modes do not depend on the umask, and
//! all times are that of the newest entry in `contrib/debian/changelog` (or `SOURCE_DATE_EPOCH`). dpkg-deb
//! compresses with one thread, because the result depends on whether there are several.

use super::{error_text, output_of, write};
use crate::dist::glibc_of;
use harness::root::{self, Profile};
use std::env;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Version, author and time of the packages, and the machines that they are for.
pub struct PackageVersion {
    /// The version of the program and the revision of the package.
    pub version: String,
    pub architecture: String,
    maintainer: String,
    time: SystemTime,
}

impl PackageVersion {
    /// From the newest entry of `contrib/debian/changelog`, whose author is the maintainer of the packages.
    ///
    /// # Errors
    /// The entry cannot be read, or is not for the version of the program.
    pub fn read() -> Result<PackageVersion, String> {
        let file = root::repository().join("contrib/debian/changelog").display().to_string();
        let field = |name: &str| output_of("dpkg-parsechangelog", &["-l", &file, "-S", name]);
        let version = field("Version")?;
        let program = env!("CARGO_PKG_VERSION");
        if version.rsplit_once('-').map(|(before, _)| before) != Some(program) {
            return Err(format!(
                "package: {file}: the newest entry is for {version}, and the program has version {program}: \
                 add an entry for {program}-1"
            ));
        }
        let maintainer = field("Maintainer")?;
        let seconds = env::var("SOURCE_DATE_EPOCH").or_else(|_| field("Timestamp"))?;
        let seconds = seconds.parse().map_err(|_| {
            format!("package: SOURCE_DATE_EPOCH is {seconds:?}: it must be a number of seconds")
        })?;
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let architecture = output_of("dpkg", &["--print-architecture"])?;
        Ok(PackageVersion { version, architecture, maintainer, time })
    }

    /// The time in seconds since 1970.
    pub fn seconds(&self) -> u64 {
        self.time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
    }

    /// Builds the package `name` from the files below `tree`. `fields` are the lines of its control file apart from
    /// those that every package has. Returns the path of the package.
    ///
    /// # Errors
    /// A file that could not be written, or the reason of dpkg-deb.
    pub fn build(
        &self,
        name: &str,
        tree: &Path,
        fields: &str,
        profile: Profile,
    ) -> Result<PathBuf, String> {
        let PackageVersion { version, architecture, maintainer, .. } = self;
        let sums = checksums(tree)?;
        let kib = kib_below(tree);
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {maintainer}\n\
             Installed-Size: {kib}\nPriority: optional\n{fields}"
        );
        write(&tree.join("DEBIAN/control"), control.as_bytes(), 0o644)?;
        write(&tree.join("DEBIAN/md5sums"), sums.as_bytes(), 0o644)?;
        self.set_times(tree)?;
        let package = tree.with_file_name(format!("{name}_{version}_{architecture}.deb"));
        let mut build = Command::new("dpkg-deb");
        build.env("SOURCE_DATE_EPOCH", self.seconds().to_string());
        build.args(["--root-owner-group", "--threads-max=1"]);
        // A package that is only looked at need not be small: half a minute less.
        build.args(match profile {
            Profile::Dev => ["-Zgzip", "-z1"],
            Profile::Release => ["-Zxz", "-z6"],
        });
        let built = build.arg("--build").arg(tree).arg(&package).output();
        let built = built.map_err(|error| format!("package: dpkg-deb: {error}"))?;
        if !built.status.success() {
            let error = String::from_utf8_lossy(&built.stderr);
            return Err(format!("package: dpkg-deb: {error}"));
        }
        Ok(package)
    }

    /// Gives a directory with all in it the time of the package, and directories the usual mode.
    fn set_times(&self, directory: &Path) -> Result<(), String> {
        let fault = |error| error_text(directory, error);
        for entry in fs::read_dir(directory).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(fault)?);
            if kind.is_dir() {
                self.set_times(&path)?;
            } else if kind.is_file() {
                let file = File::open(&path).and_then(|file| file.set_modified(self.time));
                file.map_err(|error| error_text(&path, error))?;
            }
        }
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).map_err(fault)?;
        File::open(directory).and_then(|file| file.set_modified(self.time)).map_err(fault)
    }
}

/// Sections of other packages that the program needs, as the libraries of this machine say: `Depends`.
pub fn libraries(program: &Path, place: &Path) -> Result<String, String> {
    // dpkg-shlibdeps reads the control file of a source package.
    let source = place.join("source");
    let control = "Source: pagewell\n\nPackage: pagewell\nArchitecture: any\n";
    write(&source.join("debian/control"), control.as_bytes(), 0o644)?;
    let mut ask = Command::new("dpkg-shlibdeps");
    ask.current_dir(&source).args(["-O", "--warnings=0"]).arg(program);
    let answer = ask.output().map_err(|error| format!("package: dpkg-shlibdeps: {error}"))?;
    let text = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    let depends = text.strip_prefix("shlibs:Depends=").ok_or_else(|| {
        format!("package: dpkg-shlibdeps: {}", String::from_utf8_lossy(&answer.stderr).trim())
    })?;
    // dpkg-shlibdeps knows the versions of symbols, and not that of packed relocations.
    let (major, minor) = glibc_of(program)?;
    let own = format!("libc6 (>= {major}.{minor})");
    let others = depends.split(", ").filter(|one| !one.starts_with("libc6 "));
    Ok(others.chain([own.as_str()]).collect::<Vec<_>>().join(", "))
}

/// The checksum of each file below a directory, as `dpkg --verify` reads them.
fn checksums(tree: &Path) -> Result<String, String> {
    let mut paths = Vec::new();
    files(tree, "", &mut |path, _| paths.push(path));
    paths.retain(|path| !path.starts_with("DEBIAN/"));
    paths.sort();
    let mut sum = Command::new("md5sum");
    let sums = sum.current_dir(tree).args(&paths).output();
    let sums = sums.map_err(|error| format!("package: md5sum: {error}"))?;
    String::from_utf8(sums.stdout).map_err(|error| format!("package: md5sum: {error}"))
}

/// Each file in its blocks of 1 KiB, each directory and link as one, as Debian's policy (section 5.6.20) counts.
fn kib_below(tree: &Path) -> u64 {
    let mut kib = 0;
    files(tree, "", &mut |_, bytes| kib += bytes.div_ceil(1024));
    kib
}

/// Calls `each` with the path and size of every file below a directory; directories and links count as 1,024.
fn files(place: &Path, name: &str, each: &mut impl FnMut(String, u64)) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let own = entry.file_name().to_string_lossy().into_owned();
        let path = if name.is_empty() { own } else { format!("{name}/{own}") };
        match entry.metadata() {
            Ok(found) if found.is_dir() => files(&entry.path(), &path, each),
            Ok(found) if found.is_file() => each(path, found.len()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::PrivateDir;

    #[test]
    fn the_same_files_give_the_same_package() {
        let version = PackageVersion::read().expect("an entry of the change log");
        let build = |mode: u32| {
            let place = PrivateDir::temporary("deb").expect("a directory");
            let tree = place.path().join("tree");
            // Files are written at different times, and directories have different modes.
            write(&tree.join("usr/share/doc/one/copyright"), b"a text", 0o644).expect("written");
            write(&tree.join("usr/share/doc/one/other"), &[0; 1025], 0o644).expect("written");
            let directory = fs::Permissions::from_mode(mode);
            fs::set_permissions(tree.join("usr"), directory).expect("its mode");
            let package = version.build("one", &tree, "Description: one\n", Profile::Release);
            let package = package.expect("it can be built");
            let control = output_of("dpkg-deb", &["--field", &package.display().to_string()]);
            let control = control.expect("a package");
            assert!(control.contains("Installed-Size: 3\n"), "1 and 2 blocks: {control}");
            fs::read(package).expect("it is there")
        };
        assert!(build(0o755) == build(0o700));
    }
}
