//! Writes through one machine that were answered before every machine had applied them: until it is known
//! that the machine has published them, they are lost with it.
//!
//! | event | the write |
//! |---|---|
//! | written late | waits, with the *life* of the machine in which the write began |
//! | the machine has nothing pending, when asked later | published: every machine has to show it |
//! | another process has taken its place, and the old one has ended | waits as if written there |
//! | killed, with nothing that it would find again | lost: no machine has to show it |

use super::due_versions::Version;

/// Late writes of a machine.
#[derive(Debug, Default)]
pub struct Late {
    life: u64,
    /// Writes of earlier lives than this are lost.
    lost_below: u64,
    /// Writes of earlier lives than this are pending in this one.
    kept_below: u64,
    waiting: Vec<(u64, Version)>,
    /// How many were lost.
    pub lost: u64,
}

/// A moment: what was written late before it.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    life: u64,
    count: usize,
}

impl Late {
    /// The life of this moment.
    pub fn life(&self) -> u64 {
        self.life
    }

    /// These were written in that life, and were late.
    pub fn written(&mut self, life: u64, versions: &[Version]) {
        if life < self.lost_below {
            self.lost += versions.len() as u64;
            return;
        }
        let life = if life < self.kept_below { self.kept_below } else { life };
        self.waiting.extend(versions.iter().map(|version| (life, *version)));
    }

    /// The moment before the machine is asked whether it has pending changes.
    pub fn moment(&self) -> Moment {
        Moment { life: self.life, count: self.waiting.len() }
    }

    /// It had nothing pending after that moment; returns the versions that it has published by then.
    pub fn published(&mut self, moment: Moment) -> Vec<Version> {
        let mut published = Vec::new();
        if moment.life == self.life {
            let mut place = 0;
            self.waiting.retain(|(life, version)| {
                let is_told = place < moment.count && *life == moment.life;
                place += 1;
                if is_told {
                    published.push(*version);
                }
                !is_told
            });
        }
        published
    }

    /// Another process serves, beside the previous one or instead of it.
    pub fn next_life(&mut self) {
        self.life += 1;
    }

    /// The one before has ended, and has left what it had in good hands.
    pub fn kept(&mut self) {
        self.kept_below = self.life;
        self.waiting.iter_mut().for_each(|(life, _)| *life = self.life);
    }

    /// All that was before has ended, and has left nothing.
    pub fn died(&mut self) {
        self.next_life();
        self.lost_below = self.life;
        self.lost += self.waiting.len() as u64;
        self.waiting.clear();
    }

    /// All of it, at the end.
    pub fn take(&mut self) -> Vec<Version> {
        self.waiting.drain(..).map(|(_, version)| version).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_before_a_moment_are_published() {
        let mut late = Late::default();
        late.written(0, &[(1, 1), (2, 1)]);
        let moment = late.moment();
        late.written(0, &[(1, 2)]);
        assert_eq!(late.published(moment), [(1, 1), (2, 1)]);
        assert_eq!(late.take(), [(1, 2)]);
    }

    #[test]
    fn changes_of_a_killed_machine_are_lost_also_if_noted_later() {
        let mut late = Late::default();
        let (life, moment) = (late.life(), late.moment());
        late.written(life, &[(1, 1)]);
        late.died();
        late.written(life, &[(1, 2)]);
        assert_eq!(late.lost, 2);
        late.written(late.life(), &[(1, 3)]);
        assert!(late.published(moment).is_empty());
        assert_eq!(late.take(), [(1, 3)]);
    }

    #[test]
    fn a_successor_publishes_the_changes_of_its_predecessor() {
        let mut late = Late::default();
        late.written(0, &[(1, 1)]);
        late.next_life();
        assert!(late.published(late.moment()).is_empty(), "the old one may have it");
        late.kept();
        late.written(0, &[(1, 2)]);
        assert_eq!(late.published(late.moment()), [(1, 1), (1, 2)]);
    }
}
