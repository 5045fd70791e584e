//! The target `dns_query` for libFuzzer: `cargo +nightly fuzz run dns_query`.
//! Its assertions are in `fuzz/targets/src/dns_query.rs`; the corpus is `fuzz/corpus/dns_query`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::dns_query::run(data));
