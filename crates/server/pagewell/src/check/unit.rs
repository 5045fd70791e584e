//! The installed systemd unit of Pagewell, read as text: the user of the service, its configuration file, and the
//! directories that it creates, hides and may write.
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
    /// The words of its command: `ExecStart=`.
    command: Vec<String>,
    /// Whether `/home`, `/root` and `/run/user` are hidden (`ProtectHome=`).
    homes: Homes,
    /// Directories that are mounted for the service (`BindPaths=`, `BindReadOnlyPaths=`).
    bound: Vec<PathBuf>,
    /// The directories that the service cannot write (`ProtectSystem=`).
    protection: Protection,
    /// Directories that it can write nevertheless (`ReadWritePaths=`).
    writable: Vec<PathBuf>,
    /// Directories that systemd creates for the service, below `/run`, `/var/lib` and `/var/log`.
    created: Vec<PathBuf>,
}

/// How the service sees `/home`, `/root` and `/run/user`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Homes {
    /// As they are.
    #[default]
    Visible,
    /// Empty, but for what is mounted below them.
    Empty,
    /// Not at all.
    Hidden,
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
            "ExecStart" => {
                let words = value.split_whitespace().map(str::to_owned);
                return self.command = words.collect();
            }
            "ProtectHome" => {
                self.homes = match value {
                    "yes" | "true" | "on" | "1" => Homes::Hidden,
                    "tmpfs" => Homes::Empty,
                    _ => Homes::Visible,
                };
                return;
            }
            "BindPaths" | "BindReadOnlyPaths" if value.is_empty() => return self.bound.clear(),
            "BindPaths" | "BindReadOnlyPaths" => {
                return self.bound.extend(value.split_whitespace().map(bound_path));
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

    /// Whether the service reads this configuration file: a word of its command leads to it.
    pub fn reads(&self, file: &Path) -> bool {
        let Ok(file) = fs::canonicalize(file) else { return false };
        let path = |word: &String| word.rsplit('=').next().map(fs::canonicalize);
        self.command.iter().filter_map(path).flatten().any(|named| named == file)
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
        let setting = match self.homes {
            Homes::Visible => return None,
            Homes::Empty if self.bound.iter().any(|bound| path.starts_with(bound)) => return None,
            Homes::Empty => "tmpfs",
            Homes::Hidden => "yes",
        };
        is_home.then(|| {
            format!(
                "{0}: the unit {NAME} has ProtectHome={setting}, so the service cannot see it – run `systemctl edit \
                 pagewell` and set ProtectHome=tmpfs and BindReadOnlyPaths={0}, or a directory above it, below \
                 [Service]",
                path.display()
            )
        })
    }
}

/// The place of a bind mount: `[-]SOURCE[:DESTINATION[:OPTIONS]]`.
fn bound_path(value: &str) -> PathBuf {
    let mut parts = value.trim_start_matches('-').split(':');
    let source = parts.next().unwrap_or_default();
    PathBuf::from(parts.next().filter(|place| !place.is_empty()).unwrap_or(source))
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
        assert_eq!((unit.group.as_deref(), unit.homes), (None, Homes::Visible));
        assert!(unit.creates(Path::new("/var/lib/pagewell/snapshots")));
        assert!(unit.creates(Path::new("/var/lib/other/dir")));
        assert!(!unit.creates(Path::new("/var/lib/pagewell2")));
    }

    #[test]
    fn the_configuration_file_is_a_word_of_the_command() {
        let file = std::env::temp_dir().join(format!("pagewell-unit-{}.toml", std::process::id()));
        fs::write(&file, "").expect("written");
        let reads = |word: &str| {
            let text = format!("[Service]\nExecStart=/usr/bin/pagewell serve {word}\n");
            Unit::read([text.as_str()].into_iter()).reads(&file)
        };
        let shown = file.display();
        assert!(reads(&format!("--config {shown}")) && reads(&format!("--config={shown}")));
        assert!(!reads("--config /etc/hostname") && !reads(""));
        fs::remove_file(&file).expect("removed");
        assert!(!reads(&format!("--config {shown}")), "it is away");
    }

    #[test]
    fn a_directory_below_home_can_be_mounted() {
        let hides = |text: &str, path: &str| {
            let unit = Unit::read([format!("[Service]\n{text}").as_str()].into_iter());
            unit.hides(Path::new(path)).is_some()
        };
        let site = "/home/forge/example.org/current/public";
        assert!(!hides("", site) && hides("ProtectHome=tmpfs", site));
        let bound = "ProtectHome=tmpfs\nBindReadOnlyPaths=-/srv/x /home/forge/example.org\n";
        assert!(!hides(bound, site) && hides(bound, "/home/forge/example.org2"));
        assert!(hides(&format!("{bound}BindReadOnlyPaths=\n"), site));
        assert!(hides(&format!("{bound}ProtectHome=yes\n"), site), "it hides mounts, too");
        let elsewhere = "ProtectHome=tmpfs\nBindPaths=-/srv/site:/home/site:rbind\n";
        assert!(!hides(elsewhere, "/home/site/x") && hides(elsewhere, site));
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
        assert!(unit.command.iter().any(|word| word == "/etc/pagewell/pagewell.toml"));
        let hidden = unit.hides(Path::new("/home/me/site")).expect("it is hidden");
        let remedy = "ProtectHome=tmpfs and BindReadOnlyPaths=/home/me/site, or a directory";
        assert!(hidden.contains(remedy), "{hidden}");
        assert_eq!(unit.hides(Path::new("/var/www/html")), None);
        let protected = unit.protects(Path::new("/srv/snapshots")).expect("it is read-only");
        assert!(protected.contains("ReadWritePaths=/srv/snapshots below [Service]"), "{protected}");
        assert_eq!(unit.protects(Path::new("/var/lib/pagewell/snapshots")), None);
        for path in ["/run/pagewell", "/var/lib/pagewell/x", "/var/log/pagewell"] {
            assert!(unit.creates(Path::new(path)), "{path}");
        }
    }
}
