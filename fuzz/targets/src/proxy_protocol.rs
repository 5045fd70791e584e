//! The PROXY protocol's header, of any bytes.
//! Whoever reads as many bytes as are said to be missing comes to an end within the bound, and takes
//! no byte of what follows; no part of a header is one, or is refused for another reason.

use pagewell::proxy_protocol::{Step, V2_BYTES_MAX, read};

/// Reads the data as the first bytes of a connection.
pub fn run(data: &[u8]) {
    let mut have = 0;
    let ended = loop {
        match read(&data[..have]) {
            Ok(Step::More(missing)) => {
                assert!(missing > 0 && have + missing <= V2_BYTES_MAX, "{have} and {missing}");
                have += missing;
                if have > data.len() {
                    return;
                }
            }
            ended => break ended,
        }
    };
    // No part of it comes to another end.
    for part in 0..have {
        match read(&data[..part]) {
            Ok(Step::More(missing)) => assert!(part + missing <= have || ended.is_err()),
            Ok(Step::Done(_)) => panic!("an end within the header"),
            Err(refused) => assert_eq!(Err(refused), ended),
        }
    }
}
