//! The target `dialects` for libFuzzer: `cargo +nightly fuzz run dialects`.
//! Its assertions are in `fuzz/targets/src/dialects.rs`; the corpus is `fuzz/corpus/dialects`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::dialects::run(data));
