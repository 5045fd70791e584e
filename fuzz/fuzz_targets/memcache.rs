//! The target `memcache` for libFuzzer: `cargo +nightly fuzz run memcache`.
//! Its assertions are in `fuzz/targets/src/memcache.rs`; the corpus is `fuzz/corpus/memcache`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::memcache::run(data));
