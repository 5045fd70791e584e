//! Conditions with alternatives and exceptions, such as several paths, some of them with `!`: whether one such condition
//! covers another.
//!
//! Invariant: only what is certain counts. Each alternative is compared with one alternative of the other condition.

/// Whether a condition certainly holds if another one does. Each has a list of alternatives (one must match, if there are
/// any) and a list of exceptions. `covers` compares two items.
pub(crate) fn lists_cover<T>(
    (any, none): (&[T], &[T]),
    (other_any, other_none): (&[T], &[T]),
    covers: impl Fn(&T, &T) -> bool,
) -> bool {
    let is_in = |other: &T| any.iter().any(|own| covers(own, other));
    let is_excepted = |own: &T| other_none.iter().any(|other| covers(other, own));
    (any.is_empty() || (!other_any.is_empty() && other_any.iter().all(is_in)))
        && none.iter().all(is_excepted)
}
