//! The dashboard: a page on the admin address, and the files that it is made of, as they lie in
//! `crates/server/pagewell/dashboard`. They are in the binary as they are, without a step in between, and name
//! no other host.
//!
//! There is nothing secret in them, so they are given to whoever can reach the address; what they show
//! they have to ask for as everybody does. Their policy (CSP, Trusted Types) allows them to run their
//! own files, to call this address, and to put text into the page, but never markup.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// A file of the dashboard.
pub struct File {
    /// Its path.
    pub path: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// What is in it.
    pub content: &'static [u8],
}

macro_rules! files {
    ($($path:literal, $media_type:literal, $file:literal;)*) => {
        /// All of them.
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
    "/dashboard/explain.js", "text/javascript; charset=utf-8", "explain.js";
    "/dashboard/drop.js", "text/javascript; charset=utf-8", "drop.js";
    "/dashboard/tables.js", "text/javascript; charset=utf-8", "tables.js";
    "/dashboard/page.js", "text/javascript; charset=utf-8", "page.js";
}

/// What the page may do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// The file at a path.
pub(super) fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

/// What a browser has to know about each of them.
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
        assert!(bytes < 60 << 10, "{bytes}");
        for file in FILES {
            let text = std::str::from_utf8(file.content).expect("text");
            // The name of SVG's language is no address.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("//www") && !text.contains("https://"), "{}", file.path);
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!text.contains(way), "{}: {way}", file.path);
            }
        }
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
