//! Several sites on real php-fpms in one process: each has its own php-fpm with its own root and environment. A
//! start that fails for one site leaves no process of the others behind.
//!
//! Tests without PHP are in `tests/scenarios/sites`.

use acceptance::{Site, binary, cache_status, client};
use harness::{Pagewell, Request};

/// A configuration of two sites; `second` is additional configuration of the second.
fn config(site: &Site, second: &str) -> String {
    let root = |name: &str| site.root().join(name).display().to_string();
    let text = format!(
        "[[site]]\nhost = \"one.test\"\nroot = {:?}\n\
         [[site]]\nhost = \"two.test\"\nroot = {:?}\n{second}\n",
        root("one"),
        root("two")
    );
    let file = site.at("pagewell.toml");
    std::fs::write(&file, text).expect("a file can be written");
    file.display().to_string()
}

#[test]
fn each_site_has_a_php_fpm_of_its_own() {
    let script =
        "<?php header('Cache-Control: max-age=60'); echo basename(__DIR__), getenv('WHO');";
    let site = Site::new(&[("one/index.php", script), ("two/index.php", script)]);
    let file = config(&site, "[site.php]\nenv = { WHO = \" says two\" }");
    let args = ["--memory", "64M", "--config", &file];
    let pagewell = Pagewell::start(binary(), &args).expect("pagewell starts");
    let mut client = client(&pagewell);
    for state in ["stored", "hit"] {
        for (host, said) in [("one.test", "one"), ("two.test", "two says two")] {
            let request = Request::get("/").header("Host", host);
            let response = client.send(&request).expect("an answer");
            assert_eq!((response.status, response.text().as_str()), (200, said));
            assert!(cache_status(&response).contains(state), "{host}: {state}");
        }
    }
}

#[test]
fn a_start_that_fails_for_one_site_leaves_no_php_fpm_running() {
    let site = Site::new(&[("one/index.php", ""), ("two/index.php", "")]);
    // The site for other hosts is started last: the php-fpm of the first one is running by then.
    let file = config(&site, "other_hosts = \"serve\"\n[site.php]\nbinary = \"/no/such/php-fpm\"");
    let output = std::process::Command::new(binary())
        .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--config", &file])
        .output()
        .expect("pagewell can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("/no/such/php-fpm"), "{said}");
    // The log contains the process id of each php-fpm; none of them may be running.
    let pids = said.lines().filter(|line| line.contains("php-fpm-started"));
    let pids: Vec<&str> = pids.filter_map(|line| line.split("pid=").nth(1)).collect();
    let pids: Vec<&str> = pids.iter().filter_map(|rest| rest.split(' ').next()).collect();
    assert_eq!(pids.len(), 1, "{said}");
    assert!(!std::path::Path::new("/proc").join(pids[0]).exists(), "{said}");
}
