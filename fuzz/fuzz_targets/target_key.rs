//! The target `target_key` for libFuzzer: `cargo +nightly fuzz run target_key`.
//! Its assertions are in `fuzz/targets/src/target_key.rs`; the corpus is `fuzz/corpus/target_key`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::target_key::run(data));
