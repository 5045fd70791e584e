//! What most stored responses have nothing of: one word where there is nothing, an allocation of its own
//! where there is something. It is read as the thing itself.
//!
//! Invariant: what is empty is never kept, so that two that are empty are equal and take nothing.

use std::fmt;
use std::ops::Deref;

/// A thing that may be empty.
pub trait Emptiable: Sized + 'static {
    /// The empty one.
    const EMPTY: &'static Self;

    /// Whether there is nothing in it.
    fn is_nothing(&self) -> bool;
}

/// A `T`, of which there is hardly ever anything.
pub struct Rare<T>(Option<Box<T>>);

impl<T: Emptiable + Clone> Rare<T> {
    /// Changes it.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut T)) {
        let mut thing = std::mem::take(self).into_inner();
        change(&mut thing);
        *self = thing.into();
    }

    /// Takes the thing out.
    pub(crate) fn into_inner(self) -> T {
        self.0.map_or_else(|| T::EMPTY.clone(), |there| *there)
    }
}

impl<T> Rare<T> {
    /// Nothing.
    pub(crate) const NOTHING: Rare<T> = Rare(None);

    /// The thing, if there is anything of it.
    pub(crate) fn there(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// What it takes on the heap beside what the thing itself has there.
    pub(crate) fn box_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |_| crate::stored::allocated(size_of::<T>()))
    }
}

impl<T: Emptiable> From<T> for Rare<T> {
    fn from(thing: T) -> Self {
        Rare(if thing.is_nothing() { None } else { Some(Box::new(thing)) })
    }
}

impl<T: Emptiable> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::EMPTY)
    }
}

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Rare(None)
    }
}

impl<T: Clone> Clone for Rare<T> {
    fn clone(&self) -> Self {
        Rare(self.0.clone())
    }
}

impl<T: PartialEq> PartialEq for Rare<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: Eq> Eq for Rare<T> {}

impl<T: Emptiable + fmt::Debug> fmt::Debug for Rare<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
