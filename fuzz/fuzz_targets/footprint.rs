//! The target `footprint` for libFuzzer: `cargo +nightly fuzz run footprint`.
//! Its assertions are in `fuzz/targets/src/footprint.rs`; the corpus is `fuzz/corpus/footprint`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::footprint::run(data));
