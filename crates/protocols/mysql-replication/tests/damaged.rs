//! Recorded streams with damaged packets: the properties of the fuzzer's target hold for them too.
//!
//! The target is that of `fuzz/`, which has its own runner for more steps. Here packets are damaged one at a
//! time, so that the packets after it stay intact. The recordings are from MariaDB 10.11 (see
//! `tests/mariadb_types.rs`, `record`) and MySQL 9.7 (`tests/mysql_recorded.rs`).

#[path = "../../../../fuzz/targets/src/change_stream.rs"]
mod change_stream;

use proptest::prelude::*;
use std::path::Path;

fn recordings() -> Vec<Vec<Vec<u8>>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/change_stream");
    let mut paths: Vec<_> = std::fs::read_dir(corpus)
        .expect("a corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths.iter().map(|path| packets(&std::fs::read(path).expect("a recording"))).collect()
}

fn packets(mut data: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while let Some((len, rest)) = data.split_first_chunk::<2>() {
        let (packet, after) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*len))));
        packets.push(packet.to_vec());
        data = after;
    }
    packets
}

fn joined(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut data = Vec::new();
    for packet in packets {
        data.extend_from_slice(&(packet.len() as u16).to_le_bytes());
        data.extend_from_slice(packet);
    }
    data
}

#[derive(Debug, Clone)]
enum Damage {
    Flip(usize, u8),
    Set(usize, u8),
    Cut(usize),
    Remove(usize, usize),
    Repeat(usize, usize),
    Drop,
    Twice,
}

fn damage() -> impl Strategy<Value = (usize, Damage)> {
    let at = 0usize..400;
    let kind = prop_oneof![
        6 => (at.clone(), 0u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        6 => (at.clone(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => at.clone().prop_map(Damage::Cut),
        1 => (at.clone(), 1usize..12).prop_map(|(at, count)| Damage::Remove(at, count)),
        1 => (at, 1usize..12).prop_map(|(at, count)| Damage::Repeat(at, count)),
        1 => Just(Damage::Drop),
        1 => Just(Damage::Twice),
    ];
    (0usize..100, kind)
}

fn apply(packets: &mut Vec<Vec<u8>>, which: usize, damage: &Damage) {
    let which = which % packets.len().max(1);
    let Some(packet) = packets.get_mut(which) else { return };
    let len = packet.len().max(1);
    match *damage {
        Damage::Flip(at, bit) => {
            packet.get_mut(at % len).into_iter().for_each(|it| *it ^= 1 << bit)
        }
        Damage::Set(at, byte) => packet.get_mut(at % len).into_iter().for_each(|it| *it = byte),
        Damage::Cut(at) => packet.truncate(at % len),
        Damage::Remove(at, count) => {
            let from = (at % len).min(packet.len());
            packet.drain(from..(from + count).min(packet.len()));
        }
        Damage::Repeat(at, count) => {
            let from = (at % len).min(packet.len());
            let piece = packet[from..(from + count).min(packet.len())].to_vec();
            packet.splice(from..from, piece);
        }
        Damage::Drop => drop(packets.remove(which)),
        Damage::Twice => {
            let again = packet.clone();
            packets.insert(which, again);
        }
    }
}

#[test]
fn recordings_are_read() {
    for packets in recordings() {
        change_stream::run(&joined(&packets));
    }
    change_stream::run(b"");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn damaged_recordings_are_survived(
        which in 0usize..100,
        damages in proptest::collection::vec(damage(), 1..5),
    ) {
        let recordings = recordings();
        let mut packets = recordings[which % recordings.len()].clone();
        damages.iter().for_each(|(which, damage)| apply(&mut packets, *which, damage));
        change_stream::run(&joined(&packets));
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        change_stream::run(&bytes);
    }
}
