//! The origin: an HTTP/1.1 server of threads, one for each kept connection, which can refuse for a while.
//!
//! It counts its renders, and the concurrent renders of one page.

use super::renders::Renders;
use super::script::{Faults, ReceivedRequest, Step, perform};
use super::site::Site;
use harness::wire::{HttpConnection, MessageHead};
use harness::{AcceptedStream, Chance, TestServer};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

/// A running origin; it ends when it is dropped.
pub struct Origin {
    shared: Arc<OriginState>,
    server: TestServer,
}

struct OriginState {
    site: Arc<Site>,
    faults: Faults,
    seed: u64,
    cut: AtomicU64,
    renders: Renders,
}

impl Origin {
    /// Starts it on a port of its own.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(site: &Arc<Site>, seed: u64, faults: Faults) -> io::Result<Origin> {
        let (cut, renders) = (AtomicU64::new(0), Renders::new(site.pages.len()));
        let shared = Arc::new(OriginState { site: site.clone(), faults, seed, cut, renders });
        let own = shared.clone();
        let server = TestServer::start(move |accepted| {
            // The other side may be gone at any moment: that ends the connection, nothing else.
            let _ = serve(&own, accepted);
        })?;
        Ok(Origin { shared, server })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Refuses connections for so long.
    pub fn refuse_for(&self, time: Duration) {
        self.server.refuse_for(time);
    }

    /// How many answers it has cut.
    pub fn cut(&self) -> u64 {
        self.shared.cut.load(SeqCst)
    }

    /// The renders of each page, counted.
    pub fn renders(&self) -> &Renders {
        &self.shared.renders
    }
}

fn serve(shared: &OriginState, accepted: &AcceptedStream) -> io::Result<()> {
    let mut chance = Chance::new(shared.seed, 1 << 32 | accepted.number);
    let mut connection = HttpConnection::of(accepted.stream.try_clone()?);
    while let Ok((head, _)) = connection.read_request() {
        if accepted.is_refused() {
            return Ok(());
        }
        let asked = received(&head);
        let page = shared.site.page_at(&asked.target).filter(|_| asked.method == "GET");
        let mut running = page.map(|page| shared.renders.begin(page));
        let steps = perform(&shared.site, &asked, shared.faults, &mut chance);
        let last = steps.iter().rposition(|step| matches!(step, Step::Send(_)));
        for (at, step) in steps.into_iter().enumerate() {
            if Some(at) == last {
                // A client that has the last byte may send its next request at once.
                running = None;
            }
            match step {
                Step::Send(bytes) => connection.write(&bytes)?,
                Step::Pause(time) => sleep(time),
                Step::Cut => {
                    shared.cut.fetch_add(1, SeqCst);
                    return Ok(());
                }
            }
        }
        drop(running);
    }
    Ok(())
}

/// The parts of a request that the script reads.
fn received(head: &MessageHead) -> ReceivedRequest {
    let (method, target) = head.method_and_target();
    ReceivedRequest {
        method: method.to_owned(),
        target: target.to_owned(),
        condition: head.text("if-none-match"),
        variant: head.text("x-variant").and_then(|value| value.chars().next()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::{Client, Request};

    #[test]
    fn serves_pages_and_commits_writes() {
        let site = Arc::new(Site::new(1, 60, 10));
        let origin = Origin::start(&site, 1, Faults::Off).expect("it starts");
        let mut client = Client::new(origin.address());
        let page = client.get("/page/1").expect("it answers");
        assert_eq!(page.header("x-made-from"), Some("1 - 0.0.0.0.0"));
        let posted = Request::new("POST", "/page/1").content(b"text");
        assert_eq!(client.send(&posted).expect("it answers").header("x-committed"), Some("61:1"));
        assert_eq!(origin.cut(), 0);
    }

    #[test]
    fn the_fields_that_the_script_reads_are_found() {
        let fields = [("x-variant", "b"), ("if-none-match", "\"1\"")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        let head = MessageHead { first: "POST /a?b HTTP/1.1".to_owned(), fields: fields.to_vec() };
        let asked = received(&head);
        assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/a?b"));
        assert_eq!((asked.variant, asked.condition.as_deref()), (Some('b'), Some("\"1\"")));
    }
}
