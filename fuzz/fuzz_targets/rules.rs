//! The target `rules` for libFuzzer: `cargo +nightly fuzz run rules`.
//! Its assertions are in `fuzz/targets/src/rules.rs`; the corpus is `fuzz/corpus/rules`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::rules::run(data));
