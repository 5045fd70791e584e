//! Recorded streams with damaged frames: the properties of the fuzzer's target hold for them too.
//!
//! The target is that of `fuzz/`, which has its own runner for more steps. Here frames are damaged one at a
//! time, so that the frames after it stay intact. The recordings are from PostgreSQL 15 (see
//! `tests/postgres_types.rs`, `record`).

#[path = "../../../../fuzz/targets/src/logical_replication.rs"]
mod logical_replication;

use proptest::prelude::*;
use std::path::Path;

fn recordings() -> Vec<Vec<Vec<u8>>> {
    let corpus =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/logical_replication");
    let mut paths: Vec<_> = std::fs::read_dir(corpus)
        .expect("a corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths.iter().map(|path| frames(&std::fs::read(path).expect("a recording"))).collect()
}

fn frames(mut data: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some((len, rest)) = data.split_first_chunk::<2>() {
        let (frame, after) = rest.split_at(rest.len().min(usize::from(u16::from_be_bytes(*len))));
        frames.push(frame.to_vec());
        data = after;
    }
    frames
}

fn joined(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut data = Vec::new();
    for frame in frames {
        data.extend_from_slice(&(frame.len() as u16).to_be_bytes());
        data.extend_from_slice(frame);
    }
    data
}

#[derive(Debug, Clone)]
enum Damage {
    Flip(usize, u8),
    Cut(usize),
    Remove(usize, usize),
    Drop,
    Twice,
}

fn damage() -> impl Strategy<Value = (usize, Damage)> {
    let at = 0usize..200;
    let kind = prop_oneof![
        8 => (at.clone(), 0u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        1 => at.clone().prop_map(Damage::Cut),
        1 => (at, 1usize..12).prop_map(|(at, count)| Damage::Remove(at, count)),
        1 => Just(Damage::Drop),
        1 => Just(Damage::Twice),
    ];
    (0usize..100, kind)
}

fn apply(frames: &mut Vec<Vec<u8>>, which: usize, damage: &Damage) {
    let which = which % frames.len().max(1);
    let Some(frame) = frames.get_mut(which) else { return };
    let len = frame.len().max(1);
    match *damage {
        Damage::Flip(at, bit) => {
            frame.get_mut(at % len).into_iter().for_each(|byte| *byte ^= 1 << bit);
        }
        Damage::Cut(at) => frame.truncate(at % len),
        Damage::Remove(at, count) => {
            let from = (at % len).min(frame.len());
            frame.drain(from..(from + count).min(frame.len()));
        }
        Damage::Drop => drop(frames.remove(which)),
        Damage::Twice => {
            let again = frame.clone();
            frames.insert(which, again);
        }
    }
}

#[test]
fn recordings_are_read() {
    assert!(recordings().len() >= 3);
    for frames in recordings() {
        logical_replication::run(&joined(&frames));
    }
    logical_replication::run(b"");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn damaged_recordings_are_survived(
        which in 0usize..100,
        damages in proptest::collection::vec(damage(), 1..5),
    ) {
        let recordings = recordings();
        let mut frames = recordings[which % recordings.len()].clone();
        damages.iter().for_each(|(which, damage)| apply(&mut frames, *which, damage));
        logical_replication::run(&joined(&frames));
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        logical_replication::run(&bytes);
    }
}
