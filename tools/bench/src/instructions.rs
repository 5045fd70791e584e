//! `cargo measure instructions`: how many instructions a hit takes, beside what is written down.
//!
//! The same count as the test of `crates/testing/acceptance/tests/instructions.rs` makes, for the binary as it is
//! shipped. The figures need no quiet machine. With `--places` it says which functions they are in.

use harness::PrivateDir;
use harness::instructions::{BROWSER_HEADERS, Bounds, HitMeasurement, Protocol, TARGET};
use harness::root::{self, Profile};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Where the bounds are written down, from the root of the repository.
const BOUNDS: &str = "crates/testing/acceptance/tests/instructions.toml";
/// So many that the start of the program weighs little beside them.
const HITS_FOR_PLACES: u64 = 10_000;
const PLACES_SHOWN: usize = 45;

/// The kinds of hits that are counted.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Amount {
    /// The binary as the tests build it, not as it is shipped
    #[arg(long)]
    dev: bool,
    /// Say which functions the instructions are in, by callgrind_annotate
    #[arg(long)]
    places: bool,
    /// With an access log
    #[arg(long)]
    access_log: bool,
    /// Over HTTP/2
    #[arg(long)]
    http2: bool,
    /// Behind a password
    #[arg(long, conflicts_with = "redirect")]
    password: bool,
    /// Redirects by a rule, no hits
    #[arg(long, conflicts_with = "http2")]
    redirect: bool,
    /// The difference of runs with so many hits, and twice as many
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    hits: u64,
}

/// The user `anna` with the password `secret`, as a client sends it, and as a line of a password file.
const PASSWORD: (&str, &str) = ("Authorization", "Basic YW5uYTpzZWNyZXQ=");
const PASSWORD_LINE: &str = "anna:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n";

impl Amount {
    /// Whether the answers are not those of the recorded counts.
    fn is_special(&self) -> bool {
        self.access_log || self.http2 || self.password || self.redirect
    }

    /// Writes the configuration of the case into a directory, and returns its path.
    fn configuration(&self, dir: &Path) -> Result<String, String> {
        let passwords = dir.join("staff.htpasswd");
        let mut text = String::new();
        if self.password {
            text = format!("[[rule]]\nauth_file = {:?}\n", passwords.display().to_string());
        }
        if self.redirect {
            text =
                "[[rule]]\npath_regex = \"^/archives/(\\\\d+)$\"\nredirect = \"/?p=$1\"\n".into();
        }
        let config = dir.join("pagewell.toml");
        fs::write(&passwords, PASSWORD_LINE)
            .and_then(|()| fs::write(&config, text))
            .map_err(|error| format!("bench: {}: {error}", dir.display()))?;
        Ok(config.display().to_string())
    }
}

/// Counts, and prints the figures.
///
/// # Errors
/// A server that did not start; a count above the recorded one.
pub fn run(amount: Amount) -> Result<(), String> {
    let (profile, section) =
        if amount.dev { (Profile::Dev, "dev") } else { (Profile::Release, "release") };
    let binary = root::pagewell(profile)?;
    let file = root::repository().join(BOUNDS);
    let text = fs::read_to_string(&file).map_err(|error| format!("{BOUNDS}: {error}"))?;
    let bounds = Bounds::read(&text, section).map_err(|error| format!("{BOUNDS}: {error}"))?;
    let protocol = if amount.http2 { Protocol::Http2 } else { Protocol::Http1 };
    let dir = PrivateDir::temporary("rules").map_err(|error| format!("bench: {error}"))?;
    let config = amount.configuration(dir.path())?;
    let mut more = vec!["--config", &config];
    if amount.access_log {
        more.extend(["--access-log", "/dev/null"]);
    }
    let fields: &[(&str, &str)] = if amount.password { &[PASSWORD] } else { &[] };
    let target = if amount.redirect { "/archives/12" } else { TARGET };
    let whose = HitMeasurement { binary: &binary, more: &more, protocol, fields, target };
    let per_hit = whose.per_hit(amount.hits).map_err(|error| format!("bench: {error}"))?;
    let kinds = [
        ("bare", bounds.bare, per_hit.bare, &[][..]),
        ("browser", bounds.browser, per_hit.browser, &BROWSER_HEADERS[..]),
    ];
    let mut over = Vec::new();
    let mut figures = serde_json::Map::new();
    println!("Instructions for a hit ({section} build), and what is written down:\n");
    for (kind, bound, counted, headers) in kinds {
        println!("  {kind:<8} {counted:>8} {bound:>8}");
        figures.insert(kind.to_owned(), json!({ "counted": counted, "written_down": bound }));
        // The recorded counts are without these.
        if !amount.is_special() && bounds.exceeded(bound, counted) {
            over.push(kind);
        }
        if amount.places {
            places(&whose, kind, headers)?;
        }
    }
    super::write("instructions", &json!({ "build": section, "hits": figures }))?;
    match over.as_slice() {
        [] => Ok(()),
        kinds => Err(format!(
            "bench: more than {} % above {BOUNDS}: {}",
            bounds.margin_percent,
            kinds.join(", ")
        )),
    }
}

/// Prints the functions in which most of the instructions of many hits are.
fn places(whose: &HitMeasurement<'_>, kind: &str, headers: &[(&str, &str)]) -> Result<(), String> {
    let dir = root::target().join("bench");
    fs::create_dir_all(&dir).map_err(|error| format!("bench: {}: {error}", dir.display()))?;
    let out = dir.join(format!("callgrind.{kind}.out"));
    let busiest = whose.run(headers, HITS_FOR_PLACES, &out);
    let out = busiest.map_err(|error| format!("bench: {error}"))?.file;
    let annotate = harness::program(&["callgrind_annotate"]).map_err(|e| format!("bench: {e}"))?;
    let output = Command::new(annotate).args(["--auto=no"]).arg(&out).output();
    let output = output.map_err(|error| format!("bench: callgrind_annotate: {error}"))?;
    for line in String::from_utf8_lossy(&output.stdout).lines().take(PLACES_SHOWN) {
        println!("  {line}");
    }
    println!("  all of it: callgrind_annotate {}\n", out.display());
    Ok(())
}
