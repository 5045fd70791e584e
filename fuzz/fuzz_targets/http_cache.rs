//! The target `http_cache` for libFuzzer: `cargo +nightly fuzz run http_cache`.
//! Its assertions are in `fuzz/targets/src/http_cache.rs`; the corpus is `fuzz/corpus/http_cache`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::http_cache::run(data));
