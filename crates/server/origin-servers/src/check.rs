//! The checks of servers (`site.origin_check`): each server is requested this path every [`EVERY`]. One that does not
//! answer 2xx or 3xx gets no requests until it has answered twice.
//!
//! Not here: what a request finds out about a server (`choice`).

use crate::{Connector, Servers};
use config::OriginServer;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

/// The time between two checks of a server.
const EVERY: Duration = Duration::from_secs(5);

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The beginning of a status line with three digits.
const STATUS_LINE: usize = "HTTP/1.1 200".len();

/// The request by which servers are checked.
#[derive(Clone, Copy, Debug)]
pub struct CheckRequest<'a> {
    /// The path with query.
    pub path: &'a str,
    /// The host of the site; `None`: that of the server's URL.
    pub host: Option<&'a str>,
}

/// Checks the servers until nobody holds them. Begins a task for each.
pub fn watch(servers: &Arc<Servers>, connector: &Connector, request: CheckRequest<'_>) {
    for number in 0..servers.list().len() {
        let check = Check {
            servers: Arc::downgrade(servers),
            number,
            connector: connector.clone(),
            path: request.path.to_owned(),
            host: request.host.map(str::to_owned),
        };
        tokio::spawn(check.run());
    }
}

struct Check {
    servers: Weak<Servers>,
    number: usize,
    connector: Connector,
    path: String,
    host: Option<String>,
}

impl Check {
    async fn run(self) {
        let mut passed = 2u8;
        loop {
            let Some(server) = self.server() else { return };
            let host = self.host.as_deref().unwrap_or(&server.authority);
            let answer =
                timeout(PATIENCE, status(&self.connector, &server, (&self.path, host))).await;
            let result = answer.unwrap_or_else(|_| Err("no answer in time".into()));
            passed = if result.is_ok() { (passed + 1).min(2) } else { 0 };
            let Some(servers) = self.servers.upgrade() else { return };
            match result {
                Err(error) => {
                    if servers.set_down(self.number, true) {
                        tracing::warn!(event = "origin-check-failed", address = %server, error);
                    }
                }
                Ok(()) if passed == 2 && servers.set_down(self.number, false) => {
                    tracing::info!(event = "origin-check-passed", address = %server);
                }
                Ok(()) => {}
            }
            drop(servers);
            sleep(EVERY).await;
        }
    }

    fn server(&self) -> Option<OriginServer> {
        self.servers.upgrade()?.list().nth(self.number).cloned()
    }
}

/// Requests a path of a server.
///
/// # Errors
/// It cannot be reached, or its answer is not 2xx or 3xx: a sentence.
async fn status(
    connector: &Connector,
    server: &OriginServer,
    (path, host): (&str, &str),
) -> Result<(), String> {
    let uri = server.to_string().parse().map_err(|_| "no URL".to_owned())?;
    let mut stream = connector.clone().connect(uri).await.map_err(|error| error.to_string())?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Pagewell\r\nConnection: close\r\n\r\n"
    );
    let mut line = [0; STATUS_LINE];
    let exchange = async {
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        stream.read_exact(&mut line).await
    };
    exchange.await.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&line).into_owned();
    match line {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', _, b' ', b'2' | b'3', _, _] => Ok(()),
        _ => Err(format!("the answer begins with {said:?}")),
    }
}
