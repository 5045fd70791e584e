//! The faults, and the order in which they come: drawn from a seed, in rounds of all that were chosen.
//!
//! Mostly one at a time; one in three comes together with one of the other sort, a fault of a machine with one
//! of the stream or its server, a moment later. Never together: a restart of the server, and of a machine; then a machine need
//! not know of the others (`docs/guide/several-machines.md`). When each begins is up to who does it.

use harness::Chance;
use std::collections::VecDeque;
use std::fmt;

/// A seed whose plan has ten of the faults within a few seconds.
pub const SHORT_SEED: u64 = 547;
/// One step in so many has two faults.
const TWO_ONE_IN: usize = 3;
/// The second begins by so many milliseconds later, at most.
const DELAY_MS: usize = 1_000;
/// Among all faults a kill comes in one round of so many: every write is late for some seconds after it.
const KILL_ONE_IN: usize = 3;
/// The longest that a machine is stopped, in milliseconds: less than `lag_max`, beyond which the guide promises
/// nothing.
const FREEZE_MS: usize = 2_300;
/// The longest that the server is away: more than `lag_max`, and less than a machine takes to end.
const AWAY_MS: usize = 4_500;
/// The longest that a machine is away.
const DOWN_MS: usize = 1_200;

/// A fault that the run causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// A machine is killed, and started again
    Kill,
    /// A machine is stopped in order, and started again
    Stop,
    /// A new process takes over from a machine's
    TakeOver,
    /// A machine is stopped by a signal for up to some seconds, and goes on
    Freeze,
    /// All connections to the stream's server are cut
    Cut,
    /// Everything in the stream's server is thrown away
    Flush,
    /// The stream is deleted
    Delete,
    /// All entries of the stream are taken out, again and again
    Trim,
    /// Some of the last entries are taken out, again and again
    Pick,
    /// The positions up to which each machine has read are deleted
    Forget,
    /// The stream begins again with smaller ids, as where the server's clock was put back
    Back,
    /// The stream's server has no room for anything, for up to some seconds
    Full,
    /// The stream's server is killed, and started again without what it had
    ServerKill,
    /// The stream's server hangs for up to some seconds
    ServerPause,
}

impl Fault {
    /// All of them; a fault's place in this list is its place in every count.
    pub const ALL: [Fault; 14] = [
        Fault::Kill,
        Fault::Stop,
        Fault::TakeOver,
        Fault::Freeze,
        Fault::Cut,
        Fault::Flush,
        Fault::Delete,
        Fault::Trim,
        Fault::Pick,
        Fault::Forget,
        Fault::Back,
        Fault::Full,
        Fault::ServerKill,
        Fault::ServerPause,
    ];

    /// In a word, as on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Fault::Kill => "kill",
            Fault::Stop => "stop",
            Fault::TakeOver => "take-over",
            Fault::Freeze => "freeze",
            Fault::Cut => "cut",
            Fault::Flush => "flush",
            Fault::Delete => "delete",
            Fault::Trim => "trim",
            Fault::Pick => "pick",
            Fault::Forget => "forget",
            Fault::Back => "back",
            Fault::Full => "full",
            Fault::ServerKill => "server-kill",
            Fault::ServerPause => "server-pause",
        }
    }

    /// Whether it is one of a machine, not of the stream or its server.
    pub fn is_of_machine(self) -> bool {
        self.starts_machine() || self == Fault::Freeze
    }

    /// Whether a machine is started in it.
    pub fn starts_machine(self) -> bool {
        matches!(self, Fault::Kill | Fault::Stop | Fault::TakeOver)
    }
}

/// A fault with all that is drawn of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedFault {
    /// The kind of the fault.
    pub fault: Fault,
    /// On which machine, if it is one of a machine.
    pub machine: usize,
    /// How long something is away, or how long is between two times, in milliseconds.
    pub ms: usize,
    /// How often it is caused.
    pub times: usize,
    /// In which of two ways, where there are two.
    pub other_way: bool,
    /// How long after the beginning of the step, in milliseconds.
    pub delay_ms: usize,
}

impl fmt::Display for PlannedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlannedFault { fault, machine, ms, times, other_way, .. } = *self;
        let name = fault.as_str();
        match fault {
            Fault::TakeOver => write!(f, "{name} of machine {machine}"),
            Fault::Kill | Fault::Stop | Fault::Freeze => {
                write!(f, "{name} of machine {machine} for {ms} ms")
            }
            Fault::ServerKill | Fault::Full => write!(f, "{name} for {ms} ms"),
            Fault::ServerPause if other_way => write!(f, "{name} by CLIENT PAUSE for {ms} ms"),
            Fault::ServerPause => write!(f, "{name} by a signal for {ms} ms"),
            _ if times == 1 => f.write_str(name),
            _ => write!(f, "{name} {times} times, {ms} ms between"),
        }
    }
}

/// The plan: one step after the other, without an end.
#[derive(Debug)]
pub struct Plan {
    chance: Chance,
    chosen: Vec<Fault>,
    machines: usize,
    round: VecDeque<Fault>,
}

/// The faults that happen at once, and the pause before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// How long it is calm before, in milliseconds.
    pub calm_ms: usize,
    /// One fault, or two at once.
    pub faults: Vec<PlannedFault>,
}

impl Plan {
    /// Of these faults; none are all.
    pub fn new(seed: u64, machines: usize, only: &[Fault]) -> Plan {
        let chosen = if only.is_empty() { Fault::ALL.to_vec() } else { only.to_vec() };
        Plan { chance: Chance::new(seed, 1 << 40), chosen, machines, round: VecDeque::new() }
    }

    /// Draws the next step of the plan.
    pub fn next(&mut self) -> Step {
        let calm_ms = 100 + self.chance.below(900);
        let first = self.draw();
        let mut faults = vec![self.planned(first)];
        if self.chance.one_in(TWO_ONE_IN)
            && let Some(second) = self.beside(first)
        {
            let delay_ms = self.chance.below(DELAY_MS);
            faults.push(PlannedFault { delay_ms, ..self.planned(second) });
        }
        Step { calm_ms, faults }
    }

    /// The next fault of the round.
    fn draw(&mut self) -> Fault {
        loop {
            if let Some(fault) = self.round.pop_front() {
                return fault;
            }
            let may_kill = self.chosen.len() < Fault::ALL.len() || self.chance.one_in(KILL_ONE_IN);
            let mut left = self.chosen.clone();
            left.retain(|fault| may_kill || *fault != Fault::Kill);
            while !left.is_empty() {
                self.round.push_back(left.swap_remove(self.chance.below(left.len())));
            }
        }
    }

    /// Takes one of the round that may come together with this one.
    fn beside(&mut self, first: Fault) -> Option<Fault> {
        let starts_both = |second: Fault| {
            let starts_server = first == Fault::ServerKill || second == Fault::ServerKill;
            starts_server && (first.starts_machine() || second.starts_machine())
        };
        let fits = |second: &Fault| {
            first.is_of_machine() != second.is_of_machine() && !starts_both(*second)
        };
        let place = self.round.iter().position(fits)?;
        self.round.remove(place)
    }

    fn planned(&mut self, fault: Fault) -> PlannedFault {
        let (times, ms) = match fault {
            Fault::Kill | Fault::Stop => (1, self.chance.below(DOWN_MS)),
            Fault::TakeOver => (1, 0),
            Fault::Freeze => (1, 200 + self.chance.below(FREEZE_MS - 200)),
            Fault::Full | Fault::ServerKill | Fault::ServerPause => {
                (1, 100 + self.chance.below(AWAY_MS - 100))
            }
            Fault::Cut | Fault::Forget => (1 + self.chance.below(20), self.chance.below(60)),
            Fault::Flush | Fault::Delete | Fault::Back => {
                (1 + self.chance.below(5), self.chance.below(100))
            }
            Fault::Trim | Fault::Pick => (1 + self.chance.below(100), self.chance.below(10)),
        };
        let (machine, other_way) = (self.chance.below(self.machines), self.chance.one_in(2));
        PlannedFault { fault, machine, ms, times, other_way, delay_ms: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_fault_has_its_place_and_its_name() {
        for (place, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, place);
            let value = fault.to_possible_value().expect("none is hidden");
            assert_eq!(value.get_name(), fault.as_str());
        }
        assert_eq!(Fault::value_variants(), Fault::ALL);
    }

    #[test]
    fn a_seed_has_a_plan_with_everything_in_it() {
        let steps = |seed, only: &[Fault]| {
            let mut plan = Plan::new(seed, 3, only);
            (0..200).map(|_| plan.next()).collect::<Vec<Step>>()
        };
        assert_eq!(steps(1, &[]), steps(1, &[]));
        assert_ne!(steps(1, &[]), steps(2, &[]));
        let all = steps(1, &[]);
        let of = |fault| all.iter().flat_map(|step| &step.faults).any(|one| one.fault == fault);
        assert!(Fault::ALL.into_iter().all(of));
        let two = all.iter().filter(|step| step.faults.len() == 2);
        for step in two.clone() {
            let count =
                |is: fn(Fault) -> bool| step.faults.iter().filter(|one| is(one.fault)).count();
            assert_eq!(count(Fault::is_of_machine), 1, "{step:?}");
            let anew = count(Fault::starts_machine) + count(|fault| fault == Fault::ServerKill);
            assert!(anew < 2, "{step:?}");
        }
        assert!(two.count() > 20);
        let short = steps(SHORT_SEED, &[]).into_iter().flat_map(|step| step.faults);
        assert!(short.take(10).all(|one| one.fault != Fault::ServerKill), "which takes long");
        let kills = steps(1, &[Fault::Kill]);
        assert!(kills.iter().all(|step| step.faults.len() == 1));
        assert_eq!(kills[0].faults[0].fault, Fault::Kill);
    }
}
