//! The header of the PROXY protocol, with arbitrary bytes. A reader that reads the requested number of missing
//! bytes finishes within the limit, and consumes no byte after the header. A prefix of a header is neither
//! complete nor refused for another reason.

use front::proxy_protocol::{Step, V2_BYTES_MAX, read};

/// Decodes the data as the first bytes of a connection.
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
    // No prefix has another result.
    for part in 0..have {
        match read(&data[..part]) {
            Ok(Step::More(missing)) => assert!(part + missing <= have || ended.is_err()),
            Ok(Step::Done(_)) => panic!("an end within the header"),
            Err(refused) => assert_eq!(Err(refused), ended),
        }
    }
}
