//! The installed systemd unit of Pagewell, read as text: the user of the service, and the directories that it
//! creates, hides and may write.
//!
//! Only what `pagewell check` needs is read: assignments of `[Service]`, drop-ins after the unit, an empty value
//! as a reset. Specifiers (`%i`) are not replaced, and of `ReadOnlyPaths=` and `InaccessiblePaths=` nothing is read.

use std::fs;
use std::path::{Path, PathBuf};

/// Where systemd looks for units, the first match counts.
const DIRECTORIES: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
const NAME: &str = "pagewell.service";
/// The longest file that is read, in bytes.
const BYTES_MAX: u64 = 64 << 10;

/// The parts of a unit; all empty without one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// The user of the service: `User=`.
    pub user: Option<String>,
    /// The group of the service: `Group=`.
    pub group: Option<String>,
    /// Whether `/home`, `/root` and `/run/user` are hidden (`ProtectHome=`).
    hides_home: bool,
    /// The directories that the service cannot write (`ProtectSystem=`).
    protection: Protection,
    /// Directories that it can write nevertheless (`ReadWritePaths=`).
    writable: Vec<PathBuf>,
    /// Directories that systemd creates for the service, below `/run`, `/var/lib` and `/var/log`.
    created: Vec<PathBuf>,
}

/// What `ProtectSystem=` makes read-only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Protection {
    /// Nothing.
    #[default]
    No,
    /// `/usr` and the boot loader.
    Programs,
    /// `/etc` as well.
    ProgramsAndSettings,
    /// Everything but `/dev`, `/proc`, `/sys`.
    All,
}

impl Unit {
    /// Reads the installed unit and its drop-ins.
    pub fn installed() -> Unit {
        let text = |path: &Path| trusted_files::read_text(path, BYTES_MAX).ok();
        let Some(first) = DIRECTORIES.iter().find_map(|dir| text(&Path::new(dir).join(NAME)))
        else {
            return Unit::default();
        };
        let mut drop_ins: Vec<PathBuf> = Vec::new();
        for directory in DIRECTORIES {
            let inside = fs::read_dir(format!("{directory}/{NAME}.d"));
            let paths = inside.into_iter().flatten().flatten().map(|entry| entry.path());
            drop_ins.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "conf")));
        }
        drop_ins.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
        let texts: Vec<String> = drop_ins.iter().filter_map(|path| text(path)).collect();
        Unit::read(std::iter::once(&first).chain(&texts).map(String::as_str))
    }

    fn read<'a>(texts: impl Iterator<Item = &'a str>) -> Unit {
        let mut unit = Unit::default();
        for text in texts {
            let mut section = "";
            for line in text.lines().map(str::trim) {
                if line.starts_with('[') {
                    section = line;
                }
                if let ("[Service]", Some((key, value))) = (section, line.split_once('=')) {
                    unit.assign(key.trim(), value.trim());
                }
            }
        }
        unit
    }

    fn assign(&mut self, key: &str, value: &str) {
        let text = || Some(value.to_owned()).filter(|value| !value.is_empty());
        let base = match key {
            "User" => return self.user = text(),
            "Group" => return self.group = text(),
            "ProtectHome" => {
                return self.hides_home = matches!(value, "yes" | "true" | "on" | "1" | "tmpfs");
            }
            "ProtectSystem" => {
                self.protection = match value {
                    "yes" | "true" | "on" | "1" => Protection::Programs,
                    "full" => Protection::ProgramsAndSettings,
                    "strict" => Protection::All,
                    _ => Protection::No,
                };
                return;
            }
            "ReadWritePaths" if value.is_empty() => return self.writable.clear(),
            "ReadWritePaths" => {
                let paths =
                    value.split_whitespace().map(|path| path.trim_start_matches(['-', '+']));
                return self.writable.extend(paths.map(PathBuf::from));
            }
            "RuntimeDirectory" => "/run",
            "StateDirectory" => "/var/lib",
            "CacheDirectory" => "/var/cache",
            "LogsDirectory" => "/var/log",
            _ => return,
        };
        self.created.extend(value.split_whitespace().map(|name| Path::new(base).join(name)));
    }

    /// Whether systemd creates this directory, or one above it, for the service.
    pub fn creates(&self, path: &Path) -> bool {
        self.created.iter().any(|created| path.starts_with(created))
    }

    /// A sentence if the service cannot write below this path, whatever its owner and mode are.
    pub fn protects(&self, path: &Path) -> Option<String> {
        let below = |all: &[&str]| all.iter().any(|one| path.starts_with(one));
        let (setting, is_protected) = match self.protection {
            Protection::No => return None,
            Protection::Programs => ("yes", below(&["/usr", "/boot", "/efi"])),
            Protection::ProgramsAndSettings => ("full", below(&["/usr", "/boot", "/efi", "/etc"])),
            // systemd mounts private directories for the temporary files.
            Protection::All => ("strict", !below(&["/dev", "/proc", "/sys", "/tmp", "/var/tmp"])),
        };
        let is_writable = self.writable.iter().any(|one| path.starts_with(one));
        (is_protected && !is_writable && !self.creates(path)).then(|| {
            format!(
                "{0}: the unit {NAME} has ProtectSystem={setting}, so the service cannot write to it – run `systemctl \
                 edit pagewell` and add ReadWritePaths={0} below [Service]",
                path.display()
            )
        })
    }

    /// A sentence if the service cannot see this path.
    pub fn hides(&self, path: &Path) -> Option<String> {
        let is_home = ["/home", "/root", "/run/user"].iter().any(|home| path.starts_with(home));
        (self.hides_home && is_home).then(|| {
            format!(
                "{}: the unit {NAME} has ProtectHome=yes, so the service cannot see it – run `systemctl edit \
                 pagewell` and set ProtectHome=read-only below [Service]",
                path.display()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_lines_and_drop_ins_count() {
        let unit = Unit::read(
            [
                "[Unit]\nUser=x\n[Service]\nUser=pagewell\nGroup = pagewell\nProtectHome=yes\n\
                 StateDirectory=pagewell other/dir\n# User=y\n[Install]\nUser=z\n",
                "[Service]\nProtectHome=read-only\nGroup=\n",
            ]
            .into_iter(),
        );
        assert_eq!(unit.user.as_deref(), Some("pagewell"));
        assert_eq!((unit.group.as_deref(), unit.hides_home), (None, false));
        assert!(unit.creates(Path::new("/var/lib/pagewell/snapshots")));
        assert!(unit.creates(Path::new("/var/lib/other/dir")));
        assert!(!unit.creates(Path::new("/var/lib/pagewell2")));
    }

    #[test]
    fn a_protected_directory_can_be_made_writable() {
        let unit = |text: &str| Unit::read([format!("[Service]\n{text}").as_str()].into_iter());
        let protects = |text: &str, path: &str| unit(text).protects(Path::new(path)).is_some();
        assert!(!protects("", "/usr/x") && !protects("ProtectSystem=no", "/usr/x"));
        assert!(
            protects("ProtectSystem=yes", "/usr/x") && !protects("ProtectSystem=true", "/etc/x")
        );
        assert!(
            protects("ProtectSystem=full", "/etc/x") && !protects("ProtectSystem=full", "/srv/x")
        );
        let strict = "ProtectSystem=strict\nReadWritePaths=-/srv/a /data\n";
        assert!(protects(strict, "/srv/x") && !protects(strict, "/srv/a/x"));
        assert!(!protects(strict, "/data") && !protects(strict, "/var/tmp/x"));
        assert!(protects(&format!("{strict}ReadWritePaths=\n"), "/data"));
    }

    #[test]
    fn the_unit_of_the_package_is_understood() {
        let text = include_str!("../../../../../contrib/systemd/pagewell.service");
        let unit = Unit::read([text].into_iter());
        assert_eq!(unit.user.as_deref(), Some("pagewell"));
        let hidden = unit.hides(Path::new("/home/me/site")).expect("it is hidden");
        assert!(hidden.contains("ProtectHome=read-only"), "{hidden}");
        assert_eq!(unit.hides(Path::new("/var/www/html")), None);
        let protected = unit.protects(Path::new("/srv/snapshots")).expect("it is read-only");
        assert!(protected.contains("ReadWritePaths=/srv/snapshots below [Service]"), "{protected}");
        assert_eq!(unit.protects(Path::new("/var/lib/pagewell/snapshots")), None);
        for path in ["/run/pagewell", "/var/lib/pagewell/x", "/var/log/pagewell"] {
            assert!(unit.creates(Path::new(path)), "{path}");
        }
    }
}
