//! The address of the repository, which `[workspace.package]` in the root's `Cargo.toml` names. Pages and examples
//! that show it must show the same one: in `git clone ADDRESS`, in `REPOSITORY=ADDRESS`, and in the name of the image,
//! which the release workflow pushes to `ghcr.io` below the same path. Each crate inherits it.

use super::files::SourceFile;
use super::{Finding, finding};
use toml::{Table, Value};

/// Places that name another address than the workspace's manifest, and crates that do not inherit it.
pub fn addresses(files: &[SourceFile]) -> Vec<Finding> {
    let root = files.iter().find(|file| file.path == "Cargo.toml");
    let Some(repository) = root.and_then(|file| repository(&file.text)) else { return Vec::new() };
    let mut found = Vec::new();
    for file in files {
        if file.text.contains("\nlicense.workspace = true\n")
            && file.path.ends_with("/Cargo.toml")
            && !file.text.contains("\nrepository.workspace = true\n")
        {
            found.push(finding(file, 1, "repository", "`repository.workspace = true` is missing"));
        }
        if !matches!(file.extension(), "md" | "yaml") {
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            for other in others(line, &repository) {
                let message = format!("`{other}`: Cargo.toml names {repository}");
                found.push(finding(file, number + 1, "repository", &message));
            }
        }
    }
    found
}

fn repository(manifest: &str) -> Option<String> {
    let manifest: Table = manifest.parse().ok()?;
    let package = manifest.get("workspace")?.get("package")?;
    package.get("repository").and_then(Value::as_str).map(str::to_owned)
}

/// The addresses and paths of images in a line that are not those of the repository.
fn others<'a>(line: &'a str, repository: &str) -> Vec<&'a str> {
    let path = repository.splitn(4, '/').nth(3).unwrap_or_default();
    let mut found = Vec::new();
    for rest in line.split("git clone ").skip(1).chain(line.split("REPOSITORY=").skip(1)) {
        let given = before(rest.trim_start_matches('"'), &[' ', '"', '`']);
        if given != repository && !given.starts_with('$') {
            found.push(given);
        }
    }
    let images = line.split("ghcr.io/").skip(1).map(|rest| before(rest, &[':', ' ', '`']));
    found.extend(images.filter(|given| *given != path));
    found
}

/// The text before the first of these characters.
fn before<'a>(text: &'a str, ends: &[char]) -> &'a str {
    text.split(ends).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::files::file;
    use super::*;

    #[test]
    fn pages_and_crates_have_the_address_of_the_workspace() {
        let root = file(
            "Cargo.toml",
            "[workspace.package]\nlicense = \"MIT\"\nrepository = \"https://host/me/pagewell\"\n",
        );
        let right = "REPOSITORY=https://host/me/pagewell     # text\ngit clone \"$REPOSITORY\" x\n\
                     `git clone https://host/me/pagewell`\nimage: ghcr.io/me/pagewell:0.1.0\n";
        let inherits = "[package]\nlicense.workspace = true\nrepository.workspace = true\n";
        let files = [root.clone(), file("README.md", right), file("a/Cargo.toml", inherits)];
        assert_eq!(addresses(&files), []);
        let wrong = "REPOSITORY=\n`git clone URL x`\ns|ghcr.io/OWNER/pagewell:1|x|\n";
        let alone = "[package]\nlicense.workspace = true\n";
        let files = [root, file("README.md", wrong), file("a/Cargo.toml", alone)];
        let found: Vec<String> = addresses(&files).iter().map(ToString::to_string).collect();
        let lines = ["README.md:1", "README.md:2", "README.md:3", "a/Cargo.toml:1"];
        assert_eq!(found.len(), lines.len(), "{found:?}");
        for (found, line) in found.iter().zip(lines) {
            assert!(found.starts_with(&format!("{line}: repository: ")), "{found}");
        }
    }
}
