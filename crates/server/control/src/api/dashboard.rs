//! The dashboard: a page on the admin address, and its files from
//! `crates/server/control/dashboard`. They are embedded in the binary without a build step, and
//! refer to no other host.
//!
//! The files contain nothing secret, so they are served without a token. Their data comes from the
//! API, which checks the token. Their policy (CSP, Trusted Types) allows them to run their own
//! scripts, to call this address, and to insert text into the page. It never allows markup.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// A file of the dashboard.
pub struct File {
    /// The path of its URL.
    pub path: &'static str,
    /// The media type of the file.
    pub media_type: &'static str,
    /// The content of the file.
    pub content: &'static [u8],
}

macro_rules! files {
    ($($path:literal, $media_type:literal, $file:literal;)*) => {
        /// All files of the dashboard.
        pub const FILES: &[File] = &[$(File {
            path: $path,
            media_type: $media_type,
            content: include_bytes!(concat!("../../dashboard/", $file)),
        },)*];
    };
}

files! {
    "/", "text/html; charset=utf-8", "index.html";
    "/dashboard/style.css", "text/css; charset=utf-8", "style.css";
    "/dashboard/main.js", "text/javascript; charset=utf-8", "main.js";
    "/dashboard/api.js", "text/javascript; charset=utf-8", "api.js";
    "/dashboard/live.js", "text/javascript; charset=utf-8", "live.js";
    "/dashboard/figures.js", "text/javascript; charset=utf-8", "figures.js";
    "/dashboard/tiles.js", "text/javascript; charset=utf-8", "tiles.js";
    "/dashboard/chart.js", "text/javascript; charset=utf-8", "chart.js";
    "/dashboard/plot.js", "text/javascript; charset=utf-8", "plot.js";
    "/dashboard/requests.js", "text/javascript; charset=utf-8", "requests.js";
    "/dashboard/attention.js", "text/javascript; charset=utf-8", "attention.js";
    "/dashboard/explain.js", "text/javascript; charset=utf-8", "explain.js";
    "/dashboard/drop.js", "text/javascript; charset=utf-8", "drop.js";
    "/dashboard/operations.js", "text/javascript; charset=utf-8", "operations.js";
    "/dashboard/tables.js", "text/javascript; charset=utf-8", "tables.js";
    "/dashboard/proof.js", "text/javascript; charset=utf-8", "proof.js";
    "/dashboard/page.js", "text/javascript; charset=utf-8", "page.js";
}

/// The content security policy of the dashboard's files.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Returns the file at a path.
pub(super) fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

/// Adds the security header fields to a response with a file.
pub(super) fn guard(headers: &mut HeaderMap) {
    let lines = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in lines {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_small_and_names_no_other_host() {
        let bytes: usize = FILES.iter().map(|file| file.content.len()).sum();
        assert!(bytes < 92 << 10, "{bytes}");
        for file in FILES {
            let text = std::str::from_utf8(file.content).expect("text");
            // The namespace of SVG is not a link.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("//www") && !text.contains("https://"), "{}", file.path);
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!text.contains(way), "{}: {way}", file.path);
            }
        }
    }

    #[test]
    fn the_script_keeps_the_metrics_that_the_server_records() {
        let script = FILES.iter().find(|file| file.path.ends_with("/figures.js")).expect("a file");
        let text = std::str::from_utf8(script.content).expect("text");
        let list = text.split_once("const KEPT = [").and_then(|(_, rest)| rest.split_once(']'));
        let names = list.expect("a list").0.split('"').skip(1).step_by(2);
        let kept: std::collections::BTreeSet<_> = names.collect();
        assert_eq!(kept, crate::metrics_table::RECORDED.into());
    }

    #[test]
    fn every_file_that_is_imported_is_there() {
        for file in FILES {
            let text = std::str::from_utf8(file.content).expect("text");
            for rest in text.split("from \"./").skip(1) {
                let name = rest.split('"').next().unwrap_or_default();
                assert!(super::file(&format!("/dashboard/{name}")).is_some(), "{name}");
            }
        }
    }
}
