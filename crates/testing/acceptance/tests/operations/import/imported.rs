//! Pagewell with the imported configuration. Added is the part that the original has outside of its file: the host, and the
//! address of php-fpm where Apache's own configuration names it. The tree of a test may be behind a symbolic link.

use acceptance::{Site, binary};
use harness::Pagewell;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Pagewell with an import.
pub struct Imported {
    pub pagewell: Pagewell,
    pub text: String,
    pub report: String,
}

impl Imported {
    /// Imports a file and starts Pagewell.
    pub fn start(file: &Path, site: &Site, socket: &Path) -> Imported {
        let server =
            if file.extension().is_some_and(|end| end == "conf") { "nginx" } else { "htaccess" };
        let output =
            Command::new(binary()).args(["import", server]).arg(file).output().expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let report = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 2)), "{report}");
        let mut text = text.replace("[site]\n", "[site]\nallow_symlinks = true\n");
        if !text.contains("\nhost = ") {
            text = text.replace("[site]\n", "[site]\nhost = \"example.org\"\n");
        }
        if !text.contains("\n[php]\n") {
            text.push_str(&format!("\n[php]\nat = \"unix:{}\"\n", socket.display()));
        }
        let config = site.at("imported.toml");
        fs::write(&config, &text).expect("a file");
        let config = config.display().to_string();
        let pagewell = Pagewell::start(binary(), &["--config", &config, "--memory", "64M"])
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        Imported { pagewell, text, report }
    }
}
