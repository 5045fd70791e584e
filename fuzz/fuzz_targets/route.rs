//! The target `route` for libFuzzer: `cargo +nightly fuzz run route`.
//! Its assertions are in `fuzz/targets/src/route.rs`; the corpus is `fuzz/corpus/route`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::route::run(data));
