//! Every target on its corpus, and on a bounded number of damaged inputs from a fixed seed; also the inputs
//! that once failed, which stay in the corpora.
//!
//! `FUZZ_INPUTS` increases the number. Nothing here depends on time.

use fuzz_targets::TARGETS;
use fuzz_targets::mutate::{Inputs, run_showing};

#[test]
fn damaged_inputs() {
    let count = std::env::var("FUZZ_INPUTS").ok().and_then(|text| text.parse().ok());
    for target in TARGETS {
        let mut inputs = Inputs::new(target.0, 0x5eed).expect("a corpus");
        for input in inputs.corpus() {
            run_showing(target, input);
        }
        for _ in 0..count.unwrap_or(5_000) {
            run_showing(target, &inputs.draw());
        }
    }
}

#[test]
fn nothing_at_all() {
    for target in TARGETS {
        run_showing(target, b"");
    }
}
