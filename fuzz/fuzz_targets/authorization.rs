//! The target `authorization` for libFuzzer: `cargo +nightly fuzz run authorization`.
//! Its assertions are in `fuzz/targets/src/authorization.rs`; the corpus is `fuzz/corpus/authorization`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::authorization::run(data));
