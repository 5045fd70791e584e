//! The zip archives of the plugins: one directory with the plugin, as `php/build-plugin` installs it, and the licences. WordPress's page
//! "Add Plugins" takes the first; the second is unpacked in MediaWiki's directory `extensions`.
//!
//! The same files give the same bytes: entries are sorted, and times, modes and owners are fixed. The
//! format is APPNOTE.TXT 6.3 of PKWARE, without extensions: 32-bit sizes, DEFLATE, ASCII names.

use super::read;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use harness::PrivateDir;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Files at the top of the repository that belong into the archive.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// The version of the format that is needed to extract: 2.0, for DEFLATE.
const VERSION: u16 = 20;
/// Made by version 2.0 on Unix, so that modes count.
const MADE_BY: u16 = 3 << 8 | VERSION;
const DEFLATED: u16 = 8;
/// 1 January 1980, 00:00, the first time of the format.
const DATE: u16 = 1 << 5 | 1;
/// A regular file of mode 644.
const MODE: u32 = 0o100_644 << 16;

/// A plugin, as it is in the repository.
#[derive(Clone, Copy)]
pub struct PluginArchive {
    /// The application, in the name of the archive.
    application: &'static str,
    /// The directory in the archive.
    directory: &'static str,
    /// Lines with the version: a file, and the text before and after the version.
    versions: &'static [(&'static str, &'static str, &'static str)],
}

/// All plugins that have an archive.
pub const PLUGINS: [PluginArchive; 2] = [
    PluginArchive {
        application: "wordpress",
        directory: "pagewell",
        versions: &[("readme.txt", "Stable tag:", ""), ("pagewell.php", " * Version:", "")],
    },
    PluginArchive {
        application: "mediawiki",
        directory: "Pagewell",
        versions: &[("extension.json", "\t\"version\": \"", "\",")],
    },
];

/// Writes `pagewell-APPLICATION-VERSION.zip` into the directory `place`. `repository` is the root of the
/// checkout. Returns the path of the archive.
///
/// # Errors
/// A file that could not be read or written, or a version in the plugin that is not this version.
pub fn build(plugin: PluginArchive, repository: &Path, place: &Path) -> Result<PathBuf, String> {
    let version = env!("CARGO_PKG_VERSION");
    let own = plugin.directory;
    let built = PrivateDir::temporary("plugin").map_err(|error| format!("package: {error}"))?;
    harness::install_plugin(repository, plugin.application, built.path())
        .map_err(|error| format!("package: {error}"))?;
    let mut files = BTreeMap::new();
    collect(&built.path().join(own), own, &mut files)?;
    for name in LICENCES {
        files.insert(format!("{own}/{name}"), read(&repository.join(name))?);
    }
    for (name, start, end) in plugin.versions {
        let text = files.get(&format!("{own}/{name}")).map(|text| String::from_utf8_lossy(text));
        let text = text.unwrap_or_default();
        let found = text.lines().find_map(|one| one.strip_prefix(start)?.strip_suffix(end));
        let found = found.map(str::trim);
        if found != Some(version) {
            let found = found.unwrap_or("none");
            return Err(format!(
                "package: {name} of the plugin: `{start}` is {found}, not {version}"
            ));
        }
    }
    fs::create_dir_all(place).map_err(|error| super::error_text(place, error))?;
    let path = place.join(format!("pagewell-{}-{version}.zip", plugin.application));
    fs::write(&path, zipped(&files)?).map_err(|error| super::error_text(&path, error))?;
    Ok(path)
}

/// The files below a directory, with their names in the archive.
fn collect(
    directory: &Path,
    name: &str,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), String> {
    let fault = |error| super::error_text(directory, error);
    for entry in fs::read_dir(directory).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let (own, kind) = (entry.file_name(), entry.file_type().map_err(fault)?);
        let own = own.to_str().filter(|own| own.is_ascii() && !own.starts_with('.'));
        let Some(own) = own.filter(|_| !kind.is_symlink()) else {
            let path = entry.path();
            return Err(format!(
                "package: {} is not a file of the plugin: remove it",
                path.display()
            ));
        };
        let name = format!("{name}/{own}");
        if kind.is_dir() {
            collect(&entry.path(), &name, files)?;
        } else {
            files.insert(name, read(&entry.path())?);
        }
    }
    Ok(())
}

/// The archive: each file with its header, then the directory of all files, then its end record.
fn zipped(files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, String> {
    let too_large = |_| "package: the plugin is too large for a zip archive".to_owned();
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let offset = u32::try_from(archive.len()).map_err(too_large)?;
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        let pressed = encoder.write_all(content).and_then(|()| encoder.finish());
        let pressed = pressed.map_err(|error| format!("package: {name}: {error}"))?;
        let mut crc = Crc::new();
        crc.update(content);
        let mut common = Vec::new();
        for half in [VERSION, 0, DEFLATED, 0, DATE] {
            common.extend(half.to_le_bytes());
        }
        let sizes = [pressed.len(), content.len()].map(u32::try_from);
        for whole in [crc.sum(), sizes[0].map_err(too_large)?, sizes[1].map_err(too_large)?] {
            common.extend(whole.to_le_bytes());
        }
        common.extend(u16::try_from(name.len()).map_err(too_large)?.to_le_bytes());
        common.extend(0u16.to_le_bytes());
        archive.extend(b"PK\x03\x04");
        archive.extend(&common);
        archive.extend(name.as_bytes());
        archive.extend(pressed);
        directory.extend(b"PK\x01\x02");
        directory.extend(MADE_BY.to_le_bytes());
        directory.extend(common);
        directory.extend([0; 6]);
        directory.extend(MODE.to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let count = u16::try_from(files.len()).map_err(too_large)?.to_le_bytes();
    let sizes = [directory.len(), archive.len()].map(u32::try_from);
    archive.extend(directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend([count, count].concat());
    for size in sizes {
        archive.extend(size.map_err(too_large)?.to_le_bytes());
    }
    archive.extend([0; 2]);
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::root;
    use std::process::Command;

    /// Extracts like WordPress where PHP has no zip extension.
    const EXTRACT: &str = "define('ABSPATH', '/usr/share/wordpress/');
        require ABSPATH . 'wp-admin/includes/class-pclzip.php';
        $archive = new PclZip($argv[1]);
        if ($archive->extract(PCLZIP_OPT_PATH, $argv[2]) === 0) { fwrite(STDERR, $archive->errorInfo(true)); exit(1); }
        foreach ($archive->listContent() as $file) { echo $file['filename'], ' ', $file['mtime'], PHP_EOL; }";

    #[test]
    fn wordpress_can_extract_the_archive_and_finds_the_plugin() {
        let dir = PrivateDir::temporary("zip").expect("a directory");
        let [plugin, _] = PLUGINS;
        let zip = build(plugin, &root::repository(), dir.path()).expect("it can be built");
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(zip, dir.path().join(format!("pagewell-wordpress-{version}.zip")));
        let first = fs::read(&zip).expect("written");
        build(plugin, &root::repository(), dir.path()).expect("it can be built again");
        assert!(fs::read(&zip).expect("written") == first, "the same bytes");
        let out = dir.path().join("plugins");
        let mut php = Command::new(harness::program(&["php"]).expect("php"));
        let output = php.args(["-r", EXTRACT]).arg(&zip).arg(&out).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        let entries: Vec<_> = listed.lines().filter_map(|line| line.rsplit_once(' ')).collect();
        assert!(entries.len() > 20 && entries.is_sorted(), "{listed}");
        assert!(entries.iter().all(|(name, _)| name.starts_with("pagewell/")), "{listed}");
        assert!(entries.iter().all(|(_, time)| *time == entries[0].1), "{listed}");
        assert!(!listed.contains("test"), "{listed}");
        // The header by which WordPress finds a plugin, and the file that its directory of plugins reads.
        let text = |name: &str| fs::read_to_string(out.join("pagewell").join(name)).expect(name);
        let main = text("pagewell.php");
        assert!(main.contains(" * Plugin Name:       Pagewell\n"), "{main}");
        assert!(text("readme.txt").contains(&format!("\nStable tag: {version}\n")));
        assert_eq!(
            text("LICENSE-MIT"),
            fs::read_to_string(root::repository().join("LICENSE-MIT")).expect("it is there")
        );
        for name in ["LICENSE-APACHE", "README.md", "uninstall.php", "src/Purge/Changes.php"] {
            let source = root::repository().join("php/wordpress/pagewell").join(name);
            let same = fs::read_to_string(&source).map_or(true, |source| source == text(name));
            assert!(same && !text(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn the_archive_for_mediawiki_has_the_extension() {
        let dir = PrivateDir::temporary("zip").expect("a directory");
        let [_, plugin] = PLUGINS;
        let zip = build(plugin, &root::repository(), dir.path()).expect("it can be built");
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(zip, dir.path().join(format!("pagewell-mediawiki-{version}.zip")));
        let out = dir.path().join("extensions");
        let mut php = Command::new(harness::program(&["php"]).expect("php"));
        let output = php.args(["-r", EXTRACT]).arg(&zip).arg(&out).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        let text = |name: &str| fs::read_to_string(out.join("Pagewell").join(name)).expect(name);
        for name in ["extension.json", "i18n/en.json", "src/Core/Tag.php", "LICENSE-MIT"] {
            assert!(!text(name).is_empty(), "{name}");
        }
        let tag = text("src/Core/Tag.php");
        assert!(tag.contains("\nnamespace Pagewell\\MediaWiki\\Core;\n"), "{tag}");
    }
}
