//! The target `snapshot` for libFuzzer: `cargo +nightly fuzz run snapshot`.
//! Its assertions are in `fuzz/targets/src/snapshot.rs`; the corpus is `fuzz/corpus/snapshot`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::snapshot::run(data));
