//! Captures with real peers: programs that connect to the socket, a real php-fpm, and a real WordPress.
//!
//! `peers` sends whatever a program could send, `scripts` runs small scripts in Pagewell's own php-fpm, and
//! `blog` renders pages of Debian's WordPress with its MariaDB. `relayed` has scripts whose connections to a
//! MariaDB are relayed, `stopped` a php-fpm that runs on without Pagewell. Not here: the format alone (unit tests).

#[path = "capture/blog.rs"]
mod blog;
#[path = "capture/peers.rs"]
mod peers;
#[path = "capture/relayed.rs"]
mod relayed;
#[path = "capture/scripts.rs"]
mod scripts;
#[path = "capture/stopped.rs"]
mod stopped;

use capture::{Capture, CaptureParameters, CaptureReport, CaptureSource, Captures, NotCaptured};
use config::{Config, raw, resolve};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use origin::php_fpm::PhpFpm;
use origin::routes::Script;
use origin::{
    Admission, LiteSpeedFeatures, Origin, OriginClass, OriginRequest, RequestBody, SendProgress,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use telemetry::client::{Client, ClientConnection, ClientExtras};

/// How long a test waits for a report that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether PHP runs the capture file before each script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaptureUse {
    Off,
    On,
}

/// A site with Pagewell's own php-fpm.
struct PhpSite {
    root: PathBuf,
    origin: Origin,
    php: PhpFpm,
}

impl PhpSite {
    /// Starts php-fpm for the scripts below `root`. `php` is the content of the table `[php]`.
    async fn start(root: &Path, php: &str, capture: CaptureUse) -> PhpSite {
        PhpSite::start_with(root, configuration(root, php, capture)).await
    }

    async fn start_with(root: &Path, config: Config) -> PhpSite {
        let config = Arc::new(config);
        let (origin, php) = Origin::start(&config).await.expect("php-fpm starts");
        let php = php.expect("the php-fpm is Pagewell's own");
        PhpSite { root: root.to_owned(), origin, php }
    }

    fn captures(&self) -> &Arc<Captures> {
        match self.php.captures() {
            Some(CaptureSource::Reports(captures)) => captures,
            _ => panic!("the site has no capture file"),
        }
    }

    /// Requests a script. Returns the status code and the content; `None` if the response did not end well.
    async fn send(
        &self,
        script: &str,
        target: &str,
        capture: Option<CaptureParameters>,
    ) -> Option<(StatusCode, String)> {
        send(&self.origin, &self.root, (script, target), capture).await
    }

    /// Requests a script, and waits for its report.
    async fn capture(
        &self,
        script: &str,
        target: &str,
    ) -> (Option<(StatusCode, String)>, Result<CaptureReport, NotCaptured>) {
        let capture = self.origin.begin_capture().expect("captures were asked for");
        let response = self.send(script, target, Some(capture.parameters())).await;
        (response, capture.report(PATIENCE).await)
    }
}

/// Requests a script below `root`. Returns the status code and the content; `None` if the response did not end well.
async fn send(
    origin: &Origin,
    root: &Path,
    (script, target): (&str, &str),
    capture: Option<CaptureParameters>,
) -> Option<(StatusCode, String)> {
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("blog.test"));
    let nobody = Client::of(ClientConnection::none("http").into());
    let mut request = OriginRequest {
        admission: Admission::of(&nobody, &Default::default(), OriginClass::Page, "/"),
        method: Method::GET,
        target: target.to_owned(),
        host: "blog.test".to_owned(),
        scheme: "http",
        headers,
        body: RequestBody::Empty,
        peer: None,
        local: None,
        script: Some(Script {
            filename: root.join(script),
            name: format!("/{script}"),
            path_info: String::new(),
            query: None,
        }),
        version: Version::HTTP_11,
        extras: ClientExtras::default(),
        litespeed: LiteSpeedFeatures::Nothing,
        progress: SendProgress::default(),
        counter: None,
        waited_ms: None,
        capture,
    };
    let permit = origin.admit(&request.admission).await.ok()?;
    let mut response = origin.send(&mut request, permit, &Default::default()).await.ok()?;
    let mut content = Vec::new();
    while let Some(piece) = response.body.next().await {
        content.extend_from_slice(&piece.ok()?);
    }
    Some((response.status, String::from_utf8_lossy(&content).into_owned()))
}

fn configuration(root: &Path, php: &str, capture: CaptureUse) -> Config {
    let is_automatic = capture == CaptureUse::On;
    let text = format!(
        "site.root = {root:?}\n[php]\nchildren = 2\n{php}\n[automatic]\nenabled = {is_automatic}\n\
         application = \"wordpress\"\n\
         [[database]]\nurl = \"mysql://nobody@localhost/none?socket=/none\"\n\
         [[change]]\ntable = \"a\"\ntags = [\"a\"]\n"
    );
    let file: raw::File = toml::from_str(&text).expect("a configuration");
    resolve(&file).expect("a configuration")
}

/// The token of a capture, as text.
fn token(capture: &Capture) -> String {
    let parameters = capture.parameters();
    let (_, token) = parameters.pairs().nth(1).expect("two params");
    String::from_utf8(token.to_vec()).expect("hexadecimal digits")
}

/// A report with this token and these records after the version.
fn report(token: &str, records: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = b"pagewell-capture 1\n".to_vec();
    let first = [(b'T', token.as_bytes()), (b'V', b"6.4")];
    for (kind, content) in first.iter().chain(records) {
        bytes.push(*kind);
        bytes.extend_from_slice(&(content.len() as u32).to_be_bytes());
        bytes.extend_from_slice(content);
    }
    bytes
}
