//! Depth-first search over all schedules. A store cannot be copied, so each schedule runs from the start. A
//! schedule is the list of choices made; the next one changes the last choice that has an alternative.
//!
//! A deadlock is a violation too: until all actors are done, at least one of them must be able to continue.

use crate::actors::{Actor, Limits, World};

/// The result of the search.
pub struct SearchResult {
    /// The number of schedules run.
    pub interleavings: usize,
    /// The first violation, with the steps that led to it.
    pub stale: Option<String>,
}

struct Choice {
    taken: usize,
    of: usize,
}

/// Runs every schedule of the actors.
pub fn explore(limits: Limits, actors: fn() -> Vec<Box<dyn Actor>>) -> SearchResult {
    let mut choices: Vec<Choice> = Vec::new();
    let mut interleavings = 0;
    loop {
        let violation = run(World::new(limits), actors(), &mut choices);
        interleavings += 1;
        if violation.is_some() {
            return SearchResult { interleavings, stale: violation };
        }
        while choices.last().is_some_and(|choice| choice.taken + 1 == choice.of) {
            choices.pop();
        }
        match choices.last_mut() {
            Some(last) => last.taken += 1,
            None => return SearchResult { interleavings, stale: None },
        }
    }
}

/// Runs one schedule: the given choices, then always the first actor that can continue. Records all
/// choices.
fn run(
    mut world: World,
    mut actors: Vec<Box<dyn Actor>>,
    choices: &mut Vec<Choice>,
) -> Option<String> {
    let mut steps: Vec<String> = Vec::new();
    let mut depth = 0;
    while actors.iter().any(|actor| !actor.is_done()) {
        let ready: Vec<usize> = (0..actors.len())
            .filter(|at| !actors[*at].is_done() && actors[*at].can_go_on())
            .collect();
        if ready.is_empty() {
            return Some(format!("nobody can go on after {}", steps.join(", ")));
        }
        if depth == choices.len() {
            choices.push(Choice { taken: 0, of: ready.len() });
        }
        let at = ready[choices[depth].taken];
        depth += 1;
        let what = actors[at].step(&mut world);
        steps.push(format!("{at}:{what}"));
        if let Some(stale) = world.stale() {
            return Some(format!("{stale} after {}", steps.join(", ")));
        }
    }
    drop(actors);
    world.store.validate();
    let stats = world.store.stats();
    assert_eq!((stats.leases, stats.changes_remembered), (0, 0), "after {}", steps.join(", "));
    None
}
