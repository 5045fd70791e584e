//! Causes the faults: of a machine, of the stream, of its server.
//!
//! A fault that cannot be caused, or a process that does not come up again, has failed; a machine that is not
//! there any more is started again, so that the run goes on. Only processes of the stand are ended or stopped, by their ids.

use super::fault::{Fault, Plan, PlannedFault, Step};
use super::machine::{Machine, ProcessGuard};
use super::stand::Stand;
use super::wire::Wire;
use super::{locked, pause};
use harness::Signal;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

/// The key of the stream.
pub const KEY: &str = "pagewell";
/// Nothing goes wrong for so long at first.
const CALM: Duration = Duration::from_millis(500);
/// The pause between a restart of the stream's server and one of a machine, in either order, in microseconds: a
/// machine does not know at once which others were there before.
const APART_MICROS: u64 = 6_000_000;
/// How often a command is tried; the server may be away because of another fault.
const TRIED: usize = 200;
const AGAIN: Duration = Duration::from_millis(50);
/// Deletes all that is beside the stream: how far each machine has read.
const FORGET: &str = "for _, key in ipairs(redis.call('KEYS', KEYS[1] .. '?*')) do \
    redis.call('DEL', key) end return 1";
/// An entry of an hour ahead, and then, if it is said at once, the stream is deleted: what is added next has a
/// smaller id.
const BACK: &str = "redis.call('XADD', KEYS[1], tostring(redis.call('TIME')[1] + 3600) .. '000-1', \
    'tag', 'other') if ARGV[1] == '1' then redis.call('DEL', KEYS[1]) end return 1";
/// Takes out every third of the last entries, others each time.
const PICK: &str = "local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 20) \
    for at, entry in ipairs(last) do if (at + tonumber(ARGV[1])) % 3 == 0 then \
    redis.call('XDEL', KEYS[1], entry[1]) end end return #last";

/// One step of the plan after the other, until the run is over.
pub fn disturb(stand: &Stand, mut plan: Plan) {
    pause(CALM);
    while !stand.is_over() {
        let Step { calm_ms, faults } = plan.next();
        pause(Duration::from_millis(calm_ms as u64));
        thread::scope(|scope| {
            for planned in faults {
                scope.spawn(move || cause(stand, planned));
            }
        });
        stand.machines.iter().for_each(|machine| revive(stand, machine, &mut machine.hold()));
    }
}

fn cause(stand: &Stand, planned: PlannedFault) {
    pause(Duration::from_millis(planned.delay_ms as u64));
    keep_apart(stand, planned.fault);
    if stand.is_over() {
        return;
    }
    eprintln!(
        "torture: {:.1} s: {planned}",
        Duration::from_micros(stand.tally.micros()).as_secs_f64()
    );
    stand.tally.begin(planned);
    let time = Duration::from_millis(planned.ms as u64);
    let machine = &stand.machines[planned.machine];
    match planned.fault {
        Fault::Kill | Fault::Stop => restart(stand, machine, planned.fault, time),
        Fault::TakeOver => take_over(stand, machine),
        Fault::Freeze => {
            let held = machine.hold();
            let Some(pagewell) = held.as_ref() else { return };
            pagewell.signal(Signal::STOP);
            pause(time);
            pagewell.signal(Signal::CONT);
        }
        Fault::ServerKill => {
            let mut server = locked(&stand.server);
            server.kill();
            pause(time);
            if let Err(error) = server.start_again() {
                stand.fail(format!("the stream's server does not start again: {error}"));
            }
            stand.started.1.store(stand.tally.micros(), SeqCst);
        }
        Fault::ServerPause if planned.other_way => {
            command(stand, &["CLIENT", "PAUSE", &planned.ms.to_string(), "ALL"]);
            pause(time);
        }
        Fault::ServerPause => {
            let server = locked(&stand.server);
            server.signal(Signal::STOP);
            pause(time);
            server.signal(Signal::CONT);
        }
        Fault::Full => {
            command(stand, &["CONFIG", "SET", "maxmemory", "1"]);
            pause(time);
            command(stand, &["CONFIG", "SET", "maxmemory", "0"]);
        }
        Fault::Back => {
            let at_once = if planned.other_way { "1" } else { "0" };
            for _ in 0..planned.times {
                command(stand, &["EVAL", BACK, "1", KEY, at_once]);
                pause(time);
                command(stand, &["DEL", KEY]);
            }
        }
        fault => {
            for time_no in 0..planned.times {
                say(stand, fault, time_no);
                pause(time);
            }
        }
    }
}

/// Disturbs the stream by a command.
fn say(stand: &Stand, fault: Fault, time_no: usize) {
    let round = time_no.to_string();
    let words: &[&str] = match fault {
        Fault::Cut => &["CLIENT", "KILL", "TYPE", "normal"],
        Fault::Flush => &["FLUSHALL"],
        Fault::Delete => &["DEL", KEY],
        Fault::Trim => &["XTRIM", KEY, "MAXLEN", "0"],
        Fault::Pick => &["EVAL", PICK, "1", KEY, &round],
        _ => &["EVAL", FORGET, "1", KEY],
    };
    command(stand, words);
}

fn command(stand: &Stand, words: &[&str]) {
    let mut wire = Wire::new(&stand.socket);
    for tried in 1..=TRIED {
        match wire.ask(words) {
            Ok(_) => return,
            Err(error) if tried == TRIED => stand.fail(format!("{}: {error}", words.join(" "))),
            Err(_) => pause(AGAIN),
        }
    }
}

/// Waits until it may be done, or the run is over.
fn keep_apart(stand: &Stand, fault: Fault) {
    let other = match fault {
        Fault::ServerKill => &stand.started.0,
        _ if fault.starts_machine() => &stand.started.1,
        _ => return,
    };
    loop {
        let last = other.load(SeqCst);
        if last == 0 || stand.tally.micros() >= last + APART_MICROS || stand.is_over() {
            return;
        }
        pause(AGAIN);
    }
}

fn restart(stand: &Stand, machine: &Machine, fault: Fault, time: Duration) {
    let run = &stand.runs[machine.number];
    let mut held = machine.hold();
    run.set_down(true);
    let outcome = match fault {
        Fault::Kill => {
            machine.kill(&mut held);
            stand.tally.killed();
            Ok(())
        }
        _ => machine.stop(&mut held),
    };
    pause(time);
    let outcome = outcome.and(machine.start_again(&mut held));
    noted(stand, machine, fault, outcome, held);
    run.set_down(false);
}

/// Visitors are served all the while.
fn take_over(stand: &Stand, machine: &Machine) {
    let mut held = machine.hold();
    let outcome = machine.take_over(&mut held);
    noted(stand, machine, Fault::TakeOver, outcome, held);
}

fn noted(
    stand: &Stand,
    machine: &Machine,
    fault: Fault,
    outcome: Result<(), String>,
    mut held: ProcessGuard<'_>,
) {
    if let Err(error) = outcome {
        let at = Duration::from_micros(stand.tally.micros()).as_secs_f64();
        stand.fail(format!("{at:.1} s: {} of machine {}: {error}", fault.as_str(), machine.number));
    }
    revive(stand, machine, &mut held);
    stand.tally.started(machine.number);
    stand.started.0.store(stand.tally.micros(), SeqCst);
}

/// A machine that is not there is started.
fn revive(stand: &Stand, machine: &Machine, held: &mut ProcessGuard<'_>) {
    if let Err(error) = machine.check(held) {
        stand.fail(format!("machine {}: {error}", machine.number));
        machine.kill(held);
        stand.tally.killed();
        if let Err(error) = machine.start_again(held) {
            stand.fail(format!("machine {} does not start: {error}", machine.number));
        }
    }
}
