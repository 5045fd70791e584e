//! The same load on another cache: Varnish with its module xkey.
//!
//! It is configured as its manual recommends. Tags are in the header that xkey indexes, a request
//! `PURGEKEYS` purges the pages with one of them, `PURGE` a URL. Both are answered after the purge.
//! The rest is Varnish's default behaviour, plus a field that reports whether a response was a hit.

use super::origin::Origin;
use super::report::Figures;
use super::run::Run;
use super::site::Site;
use super::{Amount, LeaseCheck, WRONG_MAX, play, system};
use crate::script::Faults;
use harness::{PrivateDir, StartReason, varnish};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const MEMORY_MB: u32 = 64;

/// Runs it; nothing is disturbed.
///
/// # Errors
/// The reason why it did not run: above all that it is not installed.
pub fn varnish(amount: &Amount) -> Result<Figures, String> {
    let site = Arc::new(Site::new(amount.seed, amount.items, amount.pages).by(amount.by));
    let origin = Origin::start(&site, amount.seed, Faults::Off).map_err(system)?;
    let dir = PrivateDir::temporary("varnish").map_err(|error| format!("torture: {error}"))?;
    let varnish = varnish::start(dir, &vcl(origin.address()), MEMORY_MB);
    let varnish = varnish.map_err(|error| match error.reason {
        StartReason::NotInstalled => "torture: there is no varnishd; `scripts/setup bench` \
                                      installs it"
            .to_owned(),
        _ => format!("torture: {error}"),
    })?;
    let servers = (varnish.address(), varnish.address());
    let time = Duration::from_secs(amount.seconds);
    let run = Run::new(site, Faults::Off, amount.seed, servers, time, Some(WRONG_MAX));
    let played = play(amount, &run, || {
        run.wait_until(u64::MAX);
        Ok(0)
    })?;
    let counters = BTreeMap::new();
    let check = LeaseCheck::LeftOut;
    Ok(Figures::of("varnish", amount, check, &run, played, &origin, counters, 0))
}

fn vcl(origin: SocketAddr) -> String {
    let (host, port) = (origin.ip(), origin.port());
    format!(
        r#"vcl 4.1;
import xkey;
backend default {{ .host = "{host}"; .port = "{port}"; .max_connections = 400; }}
sub vcl_recv {{
    if (req.method == "PURGEKEYS") {{
        set req.http.dropped = xkey.purge(req.http.xkey-purge);
        return (synth(200, "Purged"));
    }}
    if (req.method == "PURGE") {{ return (purge); }}
}}
sub vcl_backend_response {{
    if (beresp.http.Surrogate-Key) {{
        set beresp.http.xkey = beresp.http.Surrogate-Key;
    }} else if (beresp.http.Cache-Groups) {{
        set beresp.http.xkey = regsuball(regsuball(beresp.http.Cache-Groups, ",", " "), "\x22", "");
    }}
}}
sub vcl_deliver {{
    set resp.http.Cache-Status = "varnish; fwd=miss";
    if (obj.hits > 0) {{ set resp.http.Cache-Status = "varnish; hit"; }}
    unset resp.http.xkey;
}}
"#
    )
}
