//! `pagewell doctor` on the machine that runs the tests, with a site that has known faults. Findings about the
//! machine are not checked; findings about the site are.

use acceptance::Site;
use harness::{Address, Pagewell, free_port};
use std::fs;
use std::process::{Command, Output};

fn doctor(args: &[&str]) -> Output {
    let mut command = Command::new(acceptance::binary());
    command.arg("doctor").args(args).output().expect("it runs")
}

fn served(script: &str) -> (Site, Pagewell, String) {
    let site = Site::new(&[("index.php", script)]);
    let pagewell = site.serve("");
    let Address::Tcp(address) = pagewell.address().clone() else { panic!("TCP") };
    (site, pagewell, format!("http://{address}/"))
}

/// A field of the finding with this name.
pub(super) fn of(output: &Output, name: &str, field: &str) -> Option<String> {
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = found["findings"].as_array().expect("a list");
    let one = findings.iter().find(|one| one["name"] == name)?;
    one[field].as_str().map(str::to_owned)
}

/// A configuration like that of a running Pagewell, with its real addresses.
fn configuration(site: &Site, pagewell: &Pagewell, more: &str) -> String {
    let file = site.at("doctor.toml");
    let Address::Tcp(at) = pagewell.address() else { panic!("TCP") };
    let text = format!("listen = \"{at}\"\nadmin = \"{}\"\n{more}", pagewell.admin());
    fs::write(&file, text).expect("it can be written");
    file.display().to_string()
}

/// The names of the findings, which the command must print as JSON.
fn names(output: &Output) -> Vec<String> {
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = found["findings"].as_array().expect("a list").clone();
    for finding in &findings {
        for key in ["name", "weight", "what", "evidence", "command", "risk"] {
            assert!(finding[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {finding}");
        }
    }
    findings.iter().filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_cookie_is_only_a_finding_if_every_page_sets_it() {
    let script =
        "<?php if ($_SERVER['REQUEST_URI'] !== '/free') { setcookie('a', '1'); } echo 'x';";
    let (_site, _pagewell, url) = served(script);
    let output = doctor(&["--json", "--url", &url, "--url", &format!("{url}b")]);
    assert!(names(&output).contains(&"cookie-on-every-page".to_owned()));
    let output = doctor(&["--json", "--url", &url, "--url", &format!("{url}free")]);
    assert!(!names(&output).contains(&"cookie-on-every-page".to_owned()));
}

#[test]
fn the_advised_rule_for_a_cookie_is_valid() {
    let (site, _pagewell, url) = served("<?php setcookie('a', '1'); echo 'x';");
    let output = doctor(&["--json", "--url", &url]);
    let command = of(&output, "cookie-on-every-page", "command").expect("found");
    let value = |key: &str| {
        let (_, rest) = command.split_once(&format!("{key} = \"")).expect("a key");
        rest.split('"').next().expect("its value").to_owned()
    };
    let rule = format!("[[rule]]\npath = {:?}\nignore = {:?}\n", value("path"), value("ignore"));
    let file = site.at("advised.toml");
    fs::write(&file, rule).expect("it can be written");
    let file = file.display().to_string();
    let root = site.root().display().to_string();
    let mut check = Command::new(acceptance::binary());
    let output = check.args(["check", "--config", &file, &root]).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_configuration_selects_the_host_and_the_running_process() {
    let site = Site::new(&[("index.php", "<?php setcookie('a', '1'); echo 'x';")]);
    let hosts = "[site]\nhost = \"www.example.test\"\nother_hosts = \"refuse\"\n";
    // Another running Pagewell is ignored.
    let (_other_site, _other, _) = served("<?php echo 'x';");
    let pagewell = site.serve(hosts);
    let Address::Tcp(at) = pagewell.address().clone() else { panic!("TCP") };
    let refused = doctor(&["--json", "--url", &format!("http://{at}/")]);
    let evidence = of(&refused, "site-not-judged", "evidence").expect("found");
    assert!(evidence.contains("answered 421"), "{evidence}");
    std::os::unix::fs::symlink("/proc/version", site.root().join("version.txt")).expect("a link");
    let limits = "[limits]\nconnections = 9000000\n";
    let file = configuration(&site, &pagewell, &format!("{hosts}{limits}"));
    let output = doctor(&["--json", "--config", &file, &site.root().display().to_string()]);
    assert!(names(&output).contains(&"cookie-on-every-page".to_owned()), "{:?}", names(&output));
    let command = of(&output, "link-outside-root", "command").expect("found");
    assert!(command.contains("site.allow_symlinks = [\"/proc\"]"), "{command}");
    let evidence = of(&output, "open-files", "evidence").expect("found");
    assert!(evidence.contains(&format!("(process {})", pagewell.pid())), "{evidence}");
}

#[test]
fn only_redirects_to_the_same_host_are_followed() {
    let script = "<?php match ($_SERVER['REQUEST_URI']) {
        '/a' => header('Location: /b'), '/c' => header('Location: http://elsewhere.test/'),
        default => setcookie('a', '1') }; echo 'x';";
    let (_site, _pagewell, url) = served(script);
    let output = doctor(&["--json", "--url", &format!("{url}a")]);
    assert!(names(&output).contains(&"cookie-on-every-page".to_owned()));
    let output = doctor(&["--json", "--url", &format!("{url}c")]);
    let evidence = of(&output, "site-not-judged", "evidence").expect("found");
    assert!(evidence.contains("answered 302 and leads to http://elsewhere.test/"), "{evidence}");
}

#[test]
fn a_site_that_redirects_to_https_is_examined_over_https() {
    let site = Site::new(&[("index.php", "<?php setcookie('a', '1'); echo 'x';")]);
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
    fs::write(site.at("key.pem"), made.signing_key.serialize_pem()).expect("written");
    fs::write(site.at("cert.pem"), made.cert.pem()).expect("written");
    let secure = free_port().expect("a port");
    let config = format!(
        "listen_tls = \"127.0.0.1:{secure}\"\nhttps_redirect = 308\n[[tls]]\n\
         certificate = {:?}\nkey = {:?}\n",
        site.at("cert.pem"),
        site.at("key.pem")
    );
    let pagewell = site.serve(&config);
    let output = doctor(&["--json", "--url", &format!("https://127.0.0.1:{secure}/")]);
    assert!(names(&output).contains(&"cookie-on-every-page".to_owned()));
    let file = configuration(&site, &pagewell, &config);
    let output = doctor(&["--json", "--config", &file, &site.root().display().to_string()]);
    let found = names(&output);
    assert!(found.contains(&"cookie-on-every-page".to_owned()), "{found:?}");
    assert!(!found.contains(&"site-not-judged".to_owned()), "{found:?}");
}

#[test]
fn pagewells_own_php_is_examined_by_its_configuration() {
    let (site, pagewell, _) = served("<?php echo 'x';");
    let php = "memory = \"64M\"\n[php]\nchildren = 90000\nini = { \"opcache.enable\" = false }\n";
    let file = configuration(&site, &pagewell, php);
    let output = doctor(&["--json", "--config", &file, &site.root().display().to_string()]);
    for name in ["php-children", "memory-for-all", "opcache-off"] {
        let command = of(&output, name, "command").unwrap_or_default();
        assert!(command.contains("in [php] of") && command.contains(&file), "{name}: {command}");
    }
}

#[test]
fn a_failing_site_is_the_first_finding_and_sets_the_exit_status() {
    let (_site, _pagewell, url) = served("<?php http_response_code(503);");
    let output = doctor(&["--url", &url]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("no-answer (fails)") && said.contains("answered 503"), "{said}");
    assert!(said.contains("nothing was changed"), "{said}");
}

#[test]
fn a_site_that_cannot_be_examined_is_an_error() {
    for args in [&["--url", "ftp://a/"][..], &["--config", "/nonexistent.toml"]] {
        let output = doctor(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with("pagewell: ") && !said.contains("panicked"), "{said}");
    }
}

#[test]
fn kernel_counters_are_in_the_metrics_once() {
    let (_site, pagewell, _) = served("<?php echo 'x';");
    let stats = pagewell.stats().expect("counters");
    assert!(stats.contains_key("kernel_listen_overflows"), "{stats:?}");
    assert!(stats.contains_key("kernel_conntrack_drops"), "{stats:?}");
}
