//! Keeps the one clock with the machine's. Where that was set, or the machine has slept, dates that others write
//! (`Date` and `Expires` of an origin, absolute times) would be compared with another time for as long as the
//! process lives.
//!
//! - The machine's clock is **ahead**: this one is put forward, and pages grow older by as much. What was kept for
//!   a time is kept for less, never for longer; after a sleep that is what has passed.
//! - It is **behind**: put back, this one would have pages live longer than they were to. So every page is dropped
//!   before that, and those that were stored meanwhile after it.

use crate::phase::{Phase, Told};
use crate::site::Site;
use crate::why::Cause;
use page_store::{ChangeTarget, Strength};
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked.
const LOOK: Duration = Duration::from_secs(1);
/// So far the two may be apart, in milliseconds: reading them takes a while.
const APART_MAX_MS: i64 = 1_000;

/// Sees to it until Pagewell stops.
pub async fn run(door: Arc<Site>, mut stop: Told) {
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = tokio::time::sleep(LOOK) => look(&door),
        }
    }
}

fn look(door: &Arc<Site>) {
    let by_ms = door.clock.apart_ms();
    if by_ms.abs() <= APART_MAX_MS {
        return;
    }
    tracing::warn!(event = "clock-moved", by_ms);
    let drop_all = || {
        for site in door.all_or(None).filter(|_| by_ms < 0) {
            site.change(&[ChangeTarget::Everything], Strength::Drop, Cause::Clock);
        }
    };
    drop_all();
    door.clock.put_right(by_ms);
    drop_all();
}
