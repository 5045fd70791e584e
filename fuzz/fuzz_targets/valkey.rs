//! The target `valkey` for libFuzzer: `cargo +nightly fuzz run valkey`.
//! Its assertions are in `fuzz/targets/src/valkey.rs`; the corpus is `fuzz/corpus/valkey`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::valkey::run(data));
