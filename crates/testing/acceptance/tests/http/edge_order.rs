//! The order of the kinds of rules: one for files, scripts, cached pages, pages from the origin and fragments, over
//! HTTP/1.1 and HTTP/2, and the one that `explain` prints.
//!
//! Each kind has a rule with a header field of its own as the condition. A request with all fields is answered by the
//! first kind, one without that field by the second, and so on.

use acceptance::{Site, cache_status, client};
use harness::{Pagewell, Request};
use serde_json::json;
use std::process::{Command, Output};

/// The kinds in their order: the field, the status, and the name of the step.
const KINDS: [(&str, u16, &str); 4] = [
    ("x-deny", 403, "denied"),
    ("x-limit", 429, "limited"),
    ("x-password", 401, "password"),
    ("x-go", 301, "redirected"),
];

fn site() -> Site {
    let site = Site::new(&[
        ("index.php", "<?php keep(); echo 'a page';"),
        ("script.php", "<?php header('Cache-Control: no-store'); echo 'ran';"),
        ("style.css", "style"),
        (
            "whole.php",
            "<?php keep(); header('Surrogate-Control: content=\"ESI/1.0\"'); \
             echo '[<esi:include src=\"/part.php\" onerror=\"continue\"/>]';",
        ),
        ("part.php", "<?php keep(); echo 'part';"),
    ]);
    // anna:secret by apr1.
    std::fs::write(site.at("staff"), "anna:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n")
        .expect("written");
    site
}

fn rules(site: &Site) -> String {
    let file = site.at("staff").display().to_string();
    format!(
        "cache.esi = true\n\
         [[rule]]\nheader = \"x-go\"\nredirect = \"https://elsewhere.test/\"\n\
         [[rule]]\nheader = \"x-password\"\nauth_file = {file:?}\n\
         [[rule]]\nheader = \"x-limit\"\nlimit = {{ rate = \"1/h\", count = \"all\" }}\n\
         [[rule]]\nheader = \"x-deny\"\ndeny = 403\n\
         [[rule]]\npath = \"/part.php\"\nheader = \"x-part\"\ndeny = 403\n\
         [[rule]]\nheader = [\"x-go\", \"x-password\", \"x-limit\", \"x-deny\", \"x-part\"]\n"
    )
}

/// The status of a request with these fields, over HTTP/1.1 and over HTTP/2, which must be equal.
fn status(pagewell: &Pagewell, path: &str, fields: &[&str]) -> u16 {
    let with = |request: Request, name: &&str| request.header(name, "1");
    let request = fields.iter().fold(Request::get(path), with);
    let response = client(pagewell).send(&request).expect("an answer");
    let mut command = Command::new("nghttp");
    command.arg("-nv").args(fields.iter().flat_map(|name| ["-H".into(), format!("{name}: 1")]));
    let url = format!("http://{}{path}", pagewell.address());
    let Output { stdout, .. } = command.arg(&url).output().expect("nghttp runs");
    let head = String::from_utf8_lossy(&stdout);
    let of_http2 = format!(":status: {}", response.status);
    assert!(head.contains(&of_http2), "{path} {fields:?}: {of_http2} expected\n{head}");
    response.status
}

#[test]
fn the_order_of_rules_is_the_same_for_everything_that_answers() {
    let site = site();
    let pagewell = site.serve(&rules(&site));
    // The limit is used up.
    let first = Request::get("/style.css").header("x-limit", "1");
    assert_eq!(client(&pagewell).send(&first).expect("an answer").status, 200);
    let names: Vec<&str> = KINDS.iter().map(|(name, ..)| *name).collect();
    for path in ["/style.css", "/script.php", "/", "/new", "/whole.php", "/no-such.css"] {
        // The second time, page, file and template are in memory.
        for _ in 0..2 {
            for (at, (_, expected, step)) in KINDS.iter().enumerate() {
                let found = status(&pagewell, path, &names[at..]);
                assert_eq!(found, *expected, "{path} {:?}", &names[at..]);
                let fields: serde_json::Map<_, _> =
                    names[at..].iter().map(|name| ((*name).to_owned(), json!("1"))).collect();
                let asked = json!({ "url": path, "headers": fields }).to_string();
                let told = pagewell.explain(&asked).expect("an explanation");
                let steps = told["steps"].as_array().cloned().unwrap_or_default();
                // A limit and a password are explained as passed: the next kind answers.
                let shown =
                    if matches!(*step, "limited" | "password") { "redirected" } else { step };
                assert_eq!(steps.last(), Some(&json!(shown)), "{path}: {told}");
                let order: Vec<usize> = KINDS
                    .iter()
                    .filter_map(|(.., name)| steps.iter().position(|step| step == name))
                    .collect();
                assert!(order.is_sorted() && order.len() > at, "{path}: {steps:?}");
            }
            assert_eq!(status(&pagewell, path, &[]), 200, "{path}");
        }
    }
    // A fragment is refused by the same rule as its page, and by one of its own.
    assert_eq!(client(&pagewell).get("/whole.php").expect("an answer").text(), "[part]");
    let request = Request::get("/whole.php").header("x-part", "1");
    let whole = client(&pagewell).send(&request).expect("an answer");
    assert_eq!(whole.text(), "[]", "{}", cache_status(&whole));
}

#[test]
fn steps_after_the_answer_have_one_order_too() {
    let site = site();
    site.file("uploads/x.php", "<?php echo 'ran';");
    site.file("404.html", "no such page");
    let pagewell = site.serve(
        "[[rule]]\npath = \"/run\"\nrewrite = \"/uploads/x.php\"\n\
         [[rule]]\npath = \"/uploads/**\"\nphp = false\n\
         [[rule]]\npath = \"/closed\"\ndeny = 403\n\
         [[rule]]\npath = \"/go\"\nredirect = \"/\"\n\
         [[rule]]\nlimit = { rate = \"2/h\" }\n\
         [[rule]]\npath = \"/**.css\"\nfile_cache = \"max-age=9\"\n\
         [[rule]]\nset_headers = { X-All = \"yes\" }\n\
         [error_pages]\n404 = \"404.html\"\n",
    );
    let all = ["rewritten", "script", "limited-origin", "error-page", "fields"];
    let of_files = ["rewritten", "script", "error-page", "fields"];
    let of_steps = ["error-page", "fields"];
    // The limit is for two requests: only those that reach a script count.
    for (path, status, said, later, rules) in [
        ("/", 200, "a page", &all[..], "limit response fields"),
        ("/", 200, "a page", &["fields"], "limit response fields"),
        ("/closed", 403, "", &of_steps, "deny limit response fields"),
        ("/go", 301, "", &of_steps, "redirect limit response fields"),
        ("/style.css", 200, "style", &of_files, "limit file_cache response fields"),
        ("/run", 404, "no such page", &of_files, "limit rewrite php response fields error page"),
        ("/script.php", 200, "ran", &all, "limit response fields"),
        ("/script.php", 429, "", &all, "limit response fields"),
        ("/run", 404, "no such page", &of_files, "limit rewrite php response fields error page"),
        ("/", 200, "a page", &["fields"], "limit response fields"),
    ] {
        let told = pagewell.explain(&json!({ "url": path }).to_string()).expect("an explanation");
        assert_eq!(told["later_steps"], json!(later), "{path}: {told}");
        let kinds = told["other_rules"].as_array().into_iter().flatten();
        let kinds: Vec<&str> = kinds.filter_map(|rule| rule["kind"].as_str()).collect();
        assert_eq!(kinds.join(" "), rules, "{path}: {told}");
        let response = client(&pagewell).get(path).expect("an answer");
        assert_eq!(response.status, status, "{path}: {}", cache_status(&response));
        assert!(response.text().contains(said), "{path}: {}", response.text());
        assert_eq!(response.header("x-all"), Some("yes"), "{path}");
    }
}
