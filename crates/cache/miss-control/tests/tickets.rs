//! Floods of tickets and of marks after a write: the memory for their rates is bounded, and neither do they make the
//! tickets of visitors worthless, nor does a ticket get more than its rate by them.

use miss_control::{ClientLevel, ClientTable, ShownEvidence};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

type Clients = ClientTable<BuildHasherDefault<DefaultHasher>>;

/// New tickets each second: five times as many as the sketch had room for.
const FLOOD: u64 = 2_000;

/// An unknown client of this number.
fn unknown(number: u64) -> ShownEvidence {
    let address = IpAddr::V4(Ipv4Addr::from_bits(0xc612_0000 + number as u32));
    ShownEvidence { address: Some(address), ..ShownEvidence::default() }
}

/// Each second, so many misses with new tickets, and as many with new marks; then `each_second`.
fn flood(clients: &Clients, seconds: u64, mut each_second: impl FnMut(u64, Duration)) {
    for second in 0..seconds {
        let now = Duration::from_secs(1_000 + second);
        for number in second * FLOOD..(second + 1) * FLOOD {
            let ticket = ShownEvidence { ticket: Some(1_000 + number), ..unknown(number) };
            clients.note_miss_of(&ticket, now);
            let written = ShownEvidence { written: Some(1_000 + number), ..unknown(number) };
            clients.note_miss_of(&written, now);
        }
        each_second(second, now);
    }
}

#[test]
fn a_flood_of_new_tickets_does_not_lock_out_an_honest_visitor() {
    let clients = Clients::default();
    let ticket = ShownEvidence { ticket: Some(1), ..unknown(1) };
    let written = ShownEvidence { written: Some(1), ..unknown(1) };
    flood(&clients, 300, |second, now| {
        if second % 10 == 0 {
            let (level, _) = clients.note_miss_of(&ticket, now);
            assert_eq!(level, ClientLevel::Returned, "after {second} s");
            let (level, _) = clients.note_miss_of(&written, now);
            assert_eq!(level, ClientLevel::Known, "after {second} s");
        }
    });
}

/// The other way round: who floods does not make the table forget a ticket that many clients share.
#[test]
fn a_flood_of_new_tickets_does_not_renew_one_that_is_spent() {
    let clients = Clients::default();
    let shared = |number| ShownEvidence { ticket: Some(1), ..unknown(number) };
    let mut returned = 0;
    flood(&clients, 60, |second, now| {
        for number in 0..100 {
            let (level, _) = clients.note_miss_of(&shared(second * 100 + number), now);
            returned += u32::from(level == ClientLevel::Returned);
        }
    });
    // Twenty at once, and six in a minute.
    assert!((20..=26).contains(&returned), "{returned} of 6,000");
}
