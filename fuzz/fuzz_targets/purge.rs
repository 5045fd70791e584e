//! The target `purge` for libFuzzer: `cargo +nightly fuzz run purge`.
//! Its assertions are in `fuzz/targets/src/purge.rs`; the corpus is `fuzz/corpus/purge`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::purge::run(data));
