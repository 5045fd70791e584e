//! The target `change_stream` for libFuzzer: `cargo +nightly fuzz run change_stream`.
//! Its assertions are in `fuzz/targets/src/change_stream.rs`; the corpus is `fuzz/corpus/change_stream`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::change_stream::run(data));
