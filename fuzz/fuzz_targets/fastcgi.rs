//! The target `fastcgi` for libFuzzer: `cargo +nightly fuzz run fastcgi`.
//! Its assertions are in `fuzz/targets/src/fastcgi.rs`; the corpus is `fuzz/corpus/fastcgi`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::fastcgi::run(data));
