//! The target `request_head` for libFuzzer: `cargo +nightly fuzz run request_head`.
//! Its assertions are in `fuzz/targets/src/request_head.rs`; the corpus is `fuzz/corpus/request_head`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::request_head::run(data));
