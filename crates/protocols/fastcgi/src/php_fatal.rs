//! Detects messages on STDERR that PHP has aborted a script.
//!
//! If a script fails with a fatal error after its first output was sent, php-fpm still reports status 200,
//! `FCGI_REQUEST_COMPLETE` and application status 0. The only sign on the connection is the error message on
//! STDERR, which is sent if `log_errors` is on and `error_log` is not set. A response with such a message is
//! incomplete. If an application writes such a message itself, only the caching of that response is lost. Not
//! here: the log. Only the last few bytes of STDERR are kept, because a message may span two records.

/// The beginnings of the messages after which PHP aborts the script.
const MESSAGES: [&[u8]; 3] =
    [b"PHP Fatal error:", b"PHP Parse error:", b"PHP Recoverable fatal error:"];

/// The number of bytes to keep so that a message across two records is found: one less than the longest
/// message.
const TAIL_BYTES: usize = MESSAGES[2].len() - 1;

/// Whether PHP has reported a fatal error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PhpFatal {
    /// No fatal error has been reported so far.
    #[default]
    NotReported,
    /// PHP has aborted the script.
    Reported,
}

/// Watches the STDERR of one request.
#[derive(Clone, Debug, Default)]
pub struct PhpFatalWatch {
    tail: Vec<u8>,
    fatal: PhpFatal,
}

impl PhpFatalWatch {
    /// A watch at the beginning of STDERR.
    pub fn new() -> PhpFatalWatch {
        PhpFatalWatch::default()
    }

    /// Searches the next bytes of STDERR.
    pub fn push(&mut self, stderr: &[u8]) {
        if self.fatal == PhpFatal::Reported {
            return;
        }
        self.tail.extend_from_slice(&stderr[..stderr.len().min(TAIL_BYTES)]);
        if has_message(&self.tail) || has_message(stderr) {
            self.fatal = PhpFatal::Reported;
        }
        if stderr.len() > TAIL_BYTES {
            self.tail.clear();
            self.tail.extend_from_slice(&stderr[stderr.len() - TAIL_BYTES..]);
        }
        let excess = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess);
    }

    /// The result so far.
    pub fn fatal(&self) -> PhpFatal {
        self.fatal
    }
}

fn has_message(bytes: &[u8]) -> bool {
    MESSAGES.iter().any(|message| bytes.windows(message.len()).any(|window| window == *message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_however_the_records_cut_it() {
        let text =
            b"PHP message: PHP Warning:  x; PHP message: PHP Recoverable fatal error:  Uncaught";
        for piece in 1..text.len() {
            let mut watch = PhpFatalWatch::new();
            for chunk in text.chunks(piece) {
                watch.push(chunk);
                assert!(watch.tail.len() <= TAIL_BYTES);
            }
            assert_eq!(watch.fatal(), PhpFatal::Reported, "pieces of {piece}");
        }
    }

    #[test]
    fn warnings_and_other_words_are_no_fatal_error() {
        let mut watch = PhpFatalWatch::new();
        watch.push(b"PHP message: PHP Warning:  Undefined variable $fatal; PHP Fatal");
        watch.push(b"PHP error:");
        watch.push(b"Fatal error: of some other program");
        assert_eq!(watch.fatal(), PhpFatal::NotReported);
    }
}
