//! The program without its debug symbols, and the symbols as a package of their own: `pagewell-dbgsym`, laid out
//! as Debian's debhelper does.
//!
//! gdb, addr2line and the program's own backtraces find them by the program's build ID.

use super::deb::PackageVersion;
use super::{error_text, output_of};
use harness::root::Profile;
use std::fs;
use std::path::{Path, PathBuf};

/// A program that has been taken apart.
pub struct StrippedProgram {
    /// A copy of the program without symbols.
    pub program: PathBuf,
    /// The directory with the files of the package of symbols.
    tree: PathBuf,
    build_id: String,
}

/// Takes the symbols out of a copy of `binary`, in the directory `place`.
///
/// # Errors
/// The program has no build ID, or binutils have failed.
pub fn strip(binary: &Path, place: &Path) -> Result<StrippedProgram, String> {
    let (program, tree) = (place.join("pagewell"), place.join("tree-dbgsym"));
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(|error| error_text(&tree, error))?;
    }
    let from = binary.display().to_string();
    let build_id = build_id(&from)?;
    let (directory, name) = build_id.split_at(2);
    let symbols = tree.join(format!("usr/lib/debug/.build-id/{directory}/{name}.debug"));
    let parent = symbols.parent().unwrap_or(&tree);
    fs::create_dir_all(parent).map_err(|error| error_text(parent, error))?;
    let (to, apart) = (program.display().to_string(), symbols.display().to_string());
    let only = ["--only-keep-debug", "--compress-debug-sections=zlib", &from, &apart];
    output_of("objcopy", &only)?;
    super::set_mode(&symbols, 0o644)?;
    output_of("strip", &["--remove-section=.comment", "--remove-section=.note", "-o", &to, &from])?;
    output_of("objcopy", &["--add-gnu-debuglink", &apart, &to])?;
    Ok(StrippedProgram { program, tree, build_id })
}

fn build_id(binary: &str) -> Result<String, String> {
    let notes = output_of("readelf", &["--notes", binary])?;
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    let is_id = |id: &&str| id.len() > 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    id.filter(is_id).map(str::to_owned).ok_or_else(|| {
        format!("package: {binary} has no build ID: link it with -C link-arg=-Wl,--build-id")
    })
}

impl StrippedProgram {
    /// Builds the package of symbols. Returns its path.
    ///
    /// # Errors
    /// A file that could not be written.
    pub fn package(&self, version: &PackageVersion, profile: Profile) -> Result<PathBuf, String> {
        let docs = self.tree.join("usr/share/doc");
        fs::create_dir_all(&docs).map_err(|error| error_text(&docs, error))?;
        let link = docs.join("pagewell-dbgsym");
        std::os::unix::fs::symlink("pagewell", &link).map_err(|error| error_text(&link, error))?;
        let fields = format!(
            "Source: pagewell\nAuto-Built-Package: debug-symbols\nSection: debug\n\
             Depends: pagewell (= {})\nDescription: debug symbols for pagewell\nBuild-Ids: {}\n",
            version.version, self.build_id
        );
        version.build("pagewell-dbgsym", &self.tree, &fields, profile)
    }
}
