//! Follows the machine's clock, which can be set, or advance while the machine is suspended.
//! Otherwise dates from others (`Date` and `Expires` of an origin, absolute times) would be
//! compared with a wrong time.
//!
//! - The machine's clock is **ahead**: the process's clock is advanced, and pages age by the
//!   difference. Freshness lifetimes end earlier, never later. After a suspension this is the real
//!   age.
//! - It is **behind**: setting the process's clock back would extend lifetimes. So every page is
//!   purged before that, and the pages stored in between are purged after it.

use delivery::site::Site;
use history::ChangeSource;
use page_store::{ChangeTarget, Strength};
use std::sync::Arc;
use std::time::Duration;
use telemetry::phase::{Phase, PhaseWatch};

/// How often the clocks are compared.
const LOOK: Duration = Duration::from_secs(1);
/// The largest tolerated difference in milliseconds, because reading both clocks takes time.
const APART_MAX_MS: i64 = 1_000;

/// Compares the clocks until Pagewell stops.
pub async fn run(default_site: Arc<Site>, mut stop: PhaseWatch) {
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = tokio::time::sleep(LOOK) => look(&default_site),
        }
    }
}

fn look(default_site: &Arc<Site>) {
    let by_ms = default_site.clock.apart_ms();
    if by_ms.abs() <= APART_MAX_MS {
        return;
    }
    let drop_all = || {
        for site in default_site.all_sites().filter(|_| by_ms < 0) {
            site.changes().apply(&[ChangeTarget::Everything], Strength::Drop, ChangeSource::Clock);
        }
    };
    drop_all();
    default_site.clock.put_right(by_ms);
    drop_all();
    tracing::warn!(event = "clock-moved", by_ms);
}
