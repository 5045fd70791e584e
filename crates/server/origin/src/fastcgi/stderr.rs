//! Splits what a request wrote to STDERR into messages, one for each event in the log. A PHP exception
//! with its stack trace has many lines and is one message.
//!
//! The length is bounded by the caller. No text is lost, except empty lines and the separators of messages.

/// The beginning of a message of php-fpm.
const PHP_MESSAGE: &str = "PHP message: ";
/// The beginning of a further message, in PHP 8.
const NEXT_MESSAGE: &str = "; PHP message: ";

/// Returns the messages of a request. A message of php-fpm extends to the next one, over all lines in
/// between. The output of other programs is one message.
pub(super) fn messages(text: &str) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    let text = text.replace(NEXT_MESSAGE, "\nPHP message: ");
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match messages.last_mut() {
            Some(last) if !line.starts_with(PHP_MESSAGE) => {
                last.push('\n');
                last.push_str(line);
            }
            _ => messages.push(line.to_owned()),
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_one_message() {
        let text = "PHP message: PHP Warning:  a\nPHP message: PHP Fatal error:  Uncaught b\r\n\
                    Stack trace:\n#0 {main}\n\n  thrown in /c on line 7\n";
        let all = messages(text);
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(all[0], "PHP message: PHP Warning:  a");
        assert_eq!(all[1].lines().count(), 4);
        assert!(all[1].ends_with("  thrown in /c on line 7"), "{all:?}");
        let joined = messages("PHP message: a; PHP message: b\n#0 {main}; PHP message: c");
        assert_eq!(joined, ["PHP message: a", "PHP message: b\n#0 {main}", "PHP message: c"]);
        assert_eq!(messages("a\nb\n"), ["a\nb"]);
        assert!(messages(" \n\n").is_empty());
    }
}
