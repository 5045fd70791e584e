//! A value that most stored responses do not have: one word if it is empty, and an allocation of its own if
//! it is not. It dereferences to the value.
//!
//! Invariant: an empty value is never allocated, so two empty values are equal and take no memory.

use std::fmt;
use std::ops::Deref;

/// A type with an empty value.
pub trait MaybeEmpty: Sized + 'static {
    /// The empty value.
    const EMPTY: &'static Self;

    /// Whether the value is empty.
    fn is_nothing(&self) -> bool;
}

/// A `T` that is usually empty.
pub struct Sparse<T>(Option<Box<T>>);

impl<T: MaybeEmpty + Clone> Sparse<T> {
    /// Changes the value.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut T)) {
        let mut thing = std::mem::take(self).into_inner();
        change(&mut thing);
        *self = thing.into();
    }

    /// Returns the value.
    pub(crate) fn into_inner(self) -> T {
        self.0.map_or_else(|| T::EMPTY.clone(), |there| *there)
    }
}

impl<T> Sparse<T> {
    /// The empty value.
    pub(crate) const NOTHING: Sparse<T> = Sparse(None);

    /// The value, if it is not empty.
    pub(crate) fn there(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// The heap bytes of the box, without those that the value owns itself.
    pub(crate) fn box_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |_| crate::stored::allocated(size_of::<T>()))
    }
}

impl<T: MaybeEmpty> From<T> for Sparse<T> {
    fn from(thing: T) -> Self {
        Sparse(if thing.is_nothing() { None } else { Some(Box::new(thing)) })
    }
}

impl<T: MaybeEmpty> Deref for Sparse<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::EMPTY)
    }
}

impl<T> Default for Sparse<T> {
    fn default() -> Self {
        Sparse(None)
    }
}

impl<T: Clone> Clone for Sparse<T> {
    fn clone(&self) -> Self {
        Sparse(self.0.clone())
    }
}

impl<T: PartialEq> PartialEq for Sparse<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: Eq> Eq for Sparse<T> {}

impl<T: MaybeEmpty + fmt::Debug> fmt::Debug for Sparse<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
