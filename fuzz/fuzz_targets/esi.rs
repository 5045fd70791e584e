//! The target `esi` for libFuzzer: `cargo +nightly fuzz run esi`.
//! Its assertions are in `fuzz/targets/src/esi.rs`; the corpus is `fuzz/corpus/esi`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::esi::run(data));
