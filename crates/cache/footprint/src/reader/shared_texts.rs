//! Texts that many statements have, such as `publish` and `post`, in memory once.
//!
//! Every short text of a statement is looked up, and kept if it is new. Invariant: the number of texts is
//! bounded. When there are too many, those that only one statement uses are forgotten; these statements keep
//! theirs.

use crate::condition::Operand;
use std::collections::HashSet;
use std::sync::Arc;

/// The maximum number of texts.
const TEXTS_MAX: usize = 4_096;
/// The maximum length of a text that is shared, in bytes.
const TEXT_BYTES_MAX: usize = 64;
/// The references to a text that one statement uses: its own, and that of the set.
const OF_ONE: usize = 2;

/// The texts of the statements that were read last.
#[derive(Debug, Default)]
pub(super) struct SharedTexts(HashSet<Arc<str>>);

impl SharedTexts {
    /// Lets the operands share the memory of texts that others have as well.
    pub fn share(&mut self, operands: &mut [Operand]) {
        for constant in operands.iter_mut().flat_map(Operand::constants_mut) {
            let Some(text) = constant.text_mut().filter(|text| text.len() <= TEXT_BYTES_MAX) else {
                continue;
            };
            if let Some(known) = self.0.get(&**text) {
                *text = known.clone();
                continue;
            }
            if self.0.len() >= TEXTS_MAX {
                self.forget();
            }
            self.0.insert(text.clone());
        }
    }

    fn forget(&mut self) {
        self.0.retain(|text| Arc::strong_count(text) > OF_ONE);
        if self.0.len() >= TEXTS_MAX / 2 {
            self.0.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Constant;

    fn operand(text: &str) -> Operand {
        Operand::One(Constant::Bytes(text.into()))
    }

    fn shares(one: &mut Operand, other: &mut Operand) -> bool {
        let (one, other) = (one.constants_mut()[0].text_mut(), other.constants_mut()[0].text_mut());
        Arc::ptr_eq(one.expect("a text"), other.expect("a text"))
    }

    #[test]
    fn equal_texts_are_in_memory_once_also_after_many_others() {
        let mut texts = SharedTexts::default();
        let mut read = |text: &str| {
            let mut operands = [operand(text)];
            texts.share(&mut operands);
            assert!(texts.0.len() <= TEXTS_MAX);
            let [operand] = operands;
            operand
        };
        let (mut first, mut second) = (read("publish"), read("publish"));
        assert!(shares(&mut first, &mut second));
        let _others: Vec<Operand> = (0..3 * TEXTS_MAX).map(|at| read(&at.to_string())).collect();
        assert!(shares(&mut first, &mut read("publish")));
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        assert!(!shares(&mut read(&long), &mut read(&long)));
    }
}
