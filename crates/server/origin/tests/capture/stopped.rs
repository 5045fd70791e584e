//! A php-fpm that is not Pagewell's own, while Pagewell stops, is stopped, or is gone with its directory: PHP
//! answers each request, with or without a report. `scripts` has the same pages in Pagewell's own php-fpm.

use super::scripts::{FAKE, site};
use super::{PATIENCE, send};
use capture::NotCaptured;
use config::resolve;
use harness::{PhpFpm, PoolOptions, PrivateDir};
use http::StatusCode;
use origin::Origin;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A site in a php-fpm that prepends the file that stays.
struct RunningFpm {
    origin: Origin,
    /// The directory that Pagewell writes to.
    captures: PrivateDir,
    root: PrivateDir,
    _fpm: PhpFpm,
}

impl RunningFpm {
    async fn start() -> RunningFpm {
        let root = site(&[("index.php", FAKE)]);
        let prepend = root.path().join("prepend.php");
        fs::write(&prepend, include_str!("../../../../../php/capture/prepend.php"))
            .expect("written");
        fs::set_permissions(&prepend, fs::Permissions::from_mode(0o644)).expect("can be read");
        let options = PoolOptions {
            ini: vec![
                ("auto_prepend_file".into(), prepend.display().to_string()),
                // A file that was removed is missing at once.
                ("opcache.enable".into(), "0".into()),
                ("display_errors".into(), "1".into()),
            ],
            ..PoolOptions::default()
        };
        let dir = PrivateDir::temporary("stopped-fpm").expect("a directory");
        let fpm = PhpFpm::start(dir, &options).expect("php-fpm starts");
        let captures = PrivateDir::temporary("stopped").expect("a directory");
        fs::set_permissions(captures.path(), fs::Permissions::from_mode(0o755)).expect("set");
        let text = format!(
            "site.root = {:?}\nphp.at = \"unix:{}\"\n[automatic]\nenabled = true\n\
             application = \"wordpress\"\ncapture_directory = {:?}\n\
             [[database]]\nurl = \"mysql://nobody@localhost/none?socket=/none\"\n\
             [[change]]\ntable = \"a\"\ntags = [\"a\"]\n",
            root.path(),
            fpm.socket().display(),
            captures.path(),
        );
        let config = resolve(&toml::from_str(&text).expect("TOML")).expect("a configuration");
        let (origin, _) = Origin::start(&Arc::new(config)).await.expect("the files are written");
        RunningFpm { origin, captures, root, _fpm: fpm }
    }

    /// Requests the page as Pagewell does, and waits for its report.
    async fn request(&self, patience: Duration) -> (Option<(StatusCode, String)>, bool) {
        let capture = self.origin.begin_capture().expect("captures were asked for");
        let parameters = Some(capture.parameters());
        let response = send(&self.origin, self.root.path(), ("index.php", "/"), parameters).await;
        let report = capture.report(patience).await;
        assert!(report.is_ok() || report == Err(NotCaptured::NoReport), "{report:?}");
        (response, report.is_ok())
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.captures.path().join(name)
    }
}

#[tokio::test]
async fn php_answers_whatever_is_missing_in_the_directory_of_captures() {
    let site = RunningFpm::start().await;
    let page = Some((StatusCode::OK, String::new()));
    assert_eq!(site.request(PATIENCE).await, (page.clone(), true));
    let aside = site.file("aside");
    for name in
        ["report.php", "session-rules.php", "statement-count.php", "capture.php", "capture.sock"]
    {
        fs::rename(site.file(name), &aside).expect("moved");
        assert_eq!(site.request(Duration::ZERO).await, (page.clone(), false), "without {name}");
        fs::rename(&aside, site.file(name)).expect("moved back");
    }
    assert_eq!(site.request(PATIENCE).await, (page.clone(), true), "everything is back");
    for flaw in ["<?php this is no PHP", "<?php throw new Exception('flaw');"] {
        let content = fs::read(site.file("capture.php")).expect("can be read");
        fs::write(site.file("capture.php"), flaw).expect("written");
        assert_eq!(site.request(Duration::ZERO).await, (page.clone(), false), "{flaw}");
        fs::write(site.file("capture.php"), content).expect("written");
    }
    // As systemd does when the service has stopped.
    fs::remove_dir_all(site.captures.path()).expect("removed");
    assert_eq!(site.request(Duration::ZERO).await, (page.clone(), false), "without the directory");
    let plain = send(&site.origin, site.root.path(), ("index.php", "/"), None).await;
    assert_eq!(plain, page, "of another web server");
}

#[test]
fn the_guide_and_the_package_name_the_file_that_stays() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let text = |path: &str| fs::read_to_string(repository.join(path)).expect(path);
    let file = "/var/lib/pagewell-php/prepend.php";
    let guide = text("docs/guide/automatic.md");
    assert!(guide.contains(&format!("php_value[auto_prepend_file] = {file}\n")));
    assert_eq!(guide.matches("auto_prepend_file] = ").count(), 1, "no other file is prepended");
    assert!(text("contrib/debian/postinst").contains("/var/lib/pagewell-php"));
    assert!(!text("contrib/debian/postrm").contains("rm -rf /var/lib/pagewell-php"));
}
